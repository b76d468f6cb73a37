//! nginx + php-fpm on the same document root: the server behaviour that PHP applications expect.

use crate::certificate::Certificate;
use crate::http::{Client, Response};
use crate::php;
use crate::process::Process;
use crate::server::ini;
use crate::wait::eventually;
use std::fmt::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// A private nginx and a private php-fpm, on their own port; stopped when dropped.
#[derive(Debug)]
pub struct Oracle {
    _nginx: Process,
    fpm: Process,
    address: SocketAddr,
    folder: TempDir,
}

impl Oracle {
    /// Serves `root` with `try_files $uri $uri/ /index.php`.
    pub fn start(root: &Path) -> Oracle {
        Oracle::with(root, &[])
    }

    /// The same with further PHP settings.
    pub fn with(root: &Path, define: &[(&str, &str)]) -> Oracle {
        Oracle::speaking(root, define, None, "")
    }

    /// The same with further locations in nginx's syntax, placed before the others. `FPM` in them
    /// is replaced by the address of php-fpm.
    pub fn located(root: &Path, locations: &str) -> Oracle {
        Oracle::speaking(root, &[], None, locations)
    }

    /// The same over TLS, with HTTP/2.
    pub fn secure(root: &Path, certificate: &Certificate) -> Oracle {
        Oracle::speaking(root, &[], Some(certificate), "")
    }

    /// The same over TLS with further PHP settings.
    pub fn secure_with(root: &Path, define: &[(&str, &str)], certificate: &Certificate) -> Oracle {
        Oracle::speaking(root, define, Some(certificate), "")
    }

    /// Serves with whole configuration files of nginx and php-fpm. `ADDRESS` and `FOLDER` in them
    /// are replaced; php-fpm listens at `FOLDER/fpm.sock`. The files are then `nginx.conf` and
    /// `fpm.conf` in its folder.
    pub fn configured(nginx: &str, pool: &str) -> Oracle {
        let folder = TempDir::with_prefix("samovar-oracle-").expect("a temporary folder");
        let path = folder.path();
        for below in ["nginx", "sessions", "uploads"] {
            std::fs::create_dir(path.join(below)).expect("an empty folder");
        }
        open_to_all(path);
        let address = crate::port();
        let filled = |text: &str| {
            let text = text.replace("FOLDER", &path.display().to_string());
            text.replace("ADDRESS", &address.to_string())
        };
        std::fs::write(path.join("nginx.conf"), filled(nginx)).expect("a configuration");
        std::fs::write(path.join("fpm.conf"), filled(pool)).expect("a configuration");
        let fpm = run_fpm(path, &[]);
        let nginx = run_nginx(path, address);
        Oracle { _nginx: nginx, fpm, address, folder }
    }

    fn speaking(
        root: &Path,
        define: &[(&str, &str)],
        certificate: Option<&Certificate>,
        locations: &str,
    ) -> Oracle {
        let folder = TempDir::with_prefix("samovar-oracle-").expect("a temporary folder");
        std::fs::create_dir(folder.path().join("nginx")).expect("an empty folder");
        let fpm = start_fpm(folder.path(), define);
        let server = format!("unix:{}/fpm.sock", folder.path().display());
        let behind = Behind { server: &server, is_kept: false };
        let (nginx, address) = start_nginx(folder.path(), root, certificate, locations, &behind);
        Oracle { _nginx: nginx, fpm, address, folder }
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its own folder, with `sessions/` and `uploads/`.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Opens a connection.
    pub fn client(&self) -> Client {
        Client::connect(self.address)
    }

    /// GET on a new connection.
    pub fn get(&self, target: &str) -> Response {
        self.client().get(target)
    }

    /// php-fpm's log so far.
    pub fn log(&self) -> String {
        self.fpm.log()
    }
}

/// A private nginx in front of a FastCGI server at a socket; stopped when dropped.
#[derive(Debug)]
pub struct Nginx {
    process: Process,
    address: SocketAddr,
    _folder: TempDir,
}

impl Nginx {
    /// Serves `root` as the oracle does, with kept connections. `fastcgi` is the text after
    /// `server` in nginx's `upstream`.
    pub fn before(root: &Path, fastcgi: &str) -> Nginx {
        let folder = TempDir::with_prefix("samovar-nginx-").expect("a temporary folder");
        std::fs::create_dir(folder.path().join("nginx")).expect("an empty folder");
        let behind = Behind { server: fastcgi, is_kept: true };
        let (process, address) = start_nginx(folder.path(), root, None, "", &behind);
        Nginx { process, address, _folder: folder }
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// GET on a new connection.
    pub fn get(&self, target: &str) -> Response {
        Client::connect(self.address).get(target)
    }

    /// Its error log so far.
    pub fn log(&self) -> String {
        self.process.log()
    }
}

/// The FastCGI server behind nginx.
struct Behind<'a> {
    server: &'a str,
    is_kept: bool,
}

fn open_to_all(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let all = || std::fs::Permissions::from_mode(0o777);
    for path in [folder.to_owned(), folder.join("sessions"), folder.join("uploads")] {
        std::fs::set_permissions(path, all()).expect("our own folder");
    }
}

/// The shared settings, overridden by `define`: php-fpm uses the first setting of a key.
fn settings(folder: &Path, define: &[(&str, &str)]) -> Vec<(String, String)> {
    let is_shared = |(key, _): &(String, String)| define.iter().all(|(other, _)| other != key);
    let own = define.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    ini(folder).into_iter().filter(is_shared).chain(own).collect()
}

fn start_fpm(folder: &Path, define: &[(&str, &str)]) -> Process {
    start_fpm_by(folder, define, 4, "")
}

/// Starts php-fpm with `children` processes and further lines of its pool's settings. Creates the
/// folders that must be in `folder`.
pub(crate) fn start_fpm_by(
    folder: &Path,
    define: &[(&str, &str)],
    children: usize,
    pool: &str,
) -> Process {
    for below in ["sessions", "uploads"] {
        std::fs::create_dir_all(folder.join(below)).expect("our own folder");
    }
    // Its children may run as another user.
    open_to_all(folder);
    let socket = folder.join("fpm.sock");
    let mut text = format!(
        "[global]\nerror_log = /proc/self/fd/2\ndaemonize = no\n\
         [www]\nlisten = {}\npm = static\npm.max_children = {children}\n\
         catch_workers_output = yes\n\
         security.limit_extensions = .php\n{pool}\n",
        socket.display()
    );
    let settings = settings(folder, define);
    for (key, value) in &settings {
        let _ = writeln!(text, "php_value[{key}] = \"{value}\"");
    }
    let config = folder.join("fpm.conf");
    std::fs::write(&config, text.replace("\"E_ALL\"", &php::all_errors().to_string()))
        .expect("a configuration");
    // `php_value` cannot set values that PHP reads before a request begins.
    let define: Vec<String> =
        settings.iter().map(|(key, value)| format!("{key}={value}")).collect();
    run_fpm(folder, &define)
}

/// Starts php-fpm with `fpm.conf` of its folder, and waits for its socket there.
fn run_fpm(folder: &Path, define: &[String]) -> Process {
    let socket = folder.join("fpm.sock");
    let mut command = Command::new(php::program("php-fpm"));
    command.args(["-R", "-F", "-O", "-y"]).arg(folder.join("fpm.conf"));
    for pair in define {
        command.args(["-d", pair]);
    }
    command.stdout(Stdio::null());
    let mut fpm = Process::start("php-fpm", &mut command);
    eventually("php-fpm's socket", || {
        if let Some(status) = fpm.ended() {
            panic!("php-fpm ended ({status}):\n{}", fpm.log());
        }
        std::os::unix::net::UnixStream::connect(&socket).ok()
    });
    fpm
}

fn start_nginx(
    folder: &Path,
    root: &Path,
    certificate: Option<&Certificate>,
    locations: &str,
    behind: &Behind<'_>,
) -> (Process, SocketAddr) {
    let address = crate::port();
    let config = folder.join("nginx.conf");
    let listening = listening(address, certificate);
    std::fs::write(&config, nginx_config(folder, root, &listening, locations, behind))
        .expect("a configuration");
    (run_nginx(folder, address), address)
}

/// Starts nginx with `nginx.conf` of its folder, and waits for its port.
fn run_nginx(folder: &Path, address: SocketAddr) -> Process {
    let mut command = Command::new(nginx_binary());
    command.arg("-p").arg(folder).arg("-c").arg(folder.join("nginx.conf")).args(["-e", "stderr"]);
    command.stdout(Stdio::null());
    let mut nginx = Process::start("nginx", &mut command);
    eventually("nginx's port", || {
        if let Some(status) = nginx.ended() {
            panic!("nginx ended ({status}):\n{}", nginx.log());
        }
        TcpStream::connect(address).ok()
    });
    nginx
}

/// Major and minor version of the oracle's nginx, such as `(1, 22)`.
pub fn nginx_version() -> (u32, u32) {
    let output = Command::new(nginx_binary()).arg("-v").output().expect("nginx is installed");
    let text = String::from_utf8_lossy(&output.stderr);
    let version = text.trim().rsplit('/').next().unwrap_or_default();
    let mut numbers = version.split('.').map_while(|number| number.parse().ok());
    match (numbers.next(), numbers.next()) {
        (Some(major), Some(minor)) => (major, minor),
        _ => panic!("`nginx -v` answered `{text}`, not a version"),
    }
}

fn nginx_binary() -> PathBuf {
    let sbin = PathBuf::from("/usr/sbin/nginx");
    if sbin.exists() { sbin } else { PathBuf::from("nginx") }
}

fn listening(address: SocketAddr, certificate: Option<&Certificate>) -> String {
    let Some(Certificate { chain, key, .. }) = certificate else {
        return format!("listen {address};");
    };
    let (chain, key) = (chain.display(), key.display());
    format!("listen {address} ssl http2; ssl_certificate {chain}; ssl_certificate_key {key};")
}

fn nginx_config(
    folder: &Path,
    root: &Path,
    listen: &str,
    locations: &str,
    behind: &Behind<'_>,
) -> String {
    let keep = if behind.is_kept { ("keepalive 8;", "fastcgi_keep_conn on;") } else { ("", "") };
    let (pool, kept) = keep;
    let server = behind.server;
    let (folder, root) = (folder.display(), root.display());
    let locations = locations.replace("FPM", server);
    format!(
        r"daemon off; master_process off; worker_processes 1; pid {folder}/nginx.pid;
events {{ worker_connections 512; }}
http {{
    include /etc/nginx/mime.types;
    default_type application/octet-stream;
    access_log off;
    client_max_body_size 0;
    large_client_header_buffers 8 64k;
    client_body_temp_path {folder}/nginx/body; proxy_temp_path {folder}/nginx/proxy;
    fastcgi_temp_path {folder}/nginx/fastcgi; uwsgi_temp_path {folder}/nginx/uwsgi;
    scgi_temp_path {folder}/nginx/scgi;
    fastcgi_buffers 16 64k; fastcgi_buffer_size 64k;
    upstream php {{ server {server}; {pool} }}
    server {{
        {listen}
        server_name localhost;
        root {root};
        index index.php index.html;
        {locations}
        location / {{ try_files $uri $uri/ /index.php$is_args$args; }}
        location ~ [^/]\.php(/|$) {{
            fastcgi_split_path_info ^(.+?\.php)(/.*)$;
            set $path_info $fastcgi_path_info;
            try_files $fastcgi_script_name /index.php$is_args$args;
            include /etc/nginx/fastcgi_params;
            fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
            fastcgi_param PATH_INFO $path_info;
            fastcgi_pass php;
            {kept}
        }}
        location ~ /\.(?!well-known) {{ deny all; }}
    }}
}}
"
    )
}
