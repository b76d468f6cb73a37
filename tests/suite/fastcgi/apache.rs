//! Apache in front, by each of its FastCGI modules. PHP must receive the same variables as php-fpm
//! behind the same Apache.

use super::*;
use std::fmt::Write as _;
use std::net::TcpStream;
use std::process::Child;

/// An Apache process, killed on drop.
struct Apache(Child, SocketAddr);

impl Drop for Apache {
    fn drop(&mut self) {
        samovar_testkit::end(&mut self.0);
    }
}

/// Starts an Apache that serves `root` with the configuration `lines`. Its own files are in
/// `folder`.
fn apache(folder: &Path, root: &Path, lines: &str) -> Apache {
    let address = samovar_testkit::port();
    let (shown, documents) = (folder.display(), root.display());
    let mut text = format!(
        "ServerName x\nListen {address}\nPidFile {shown}/apache.pid\nErrorLog {shown}/apache.log\n\
         Mutex file:{shown}\nUser nobody\nGroup nogroup\n"
    );
    for module in ["mpm_event", "authz_core", "proxy", "proxy_fcgi", "dir"] {
        let _ =
            writeln!(text, "LoadModule {module}_module /usr/lib/apache2/modules/mod_{module}.so");
    }
    let _ = writeln!(
        text,
        "DocumentRoot {documents}\nDirectoryIndex index.php\n\
         <Directory {documents}>\nRequire all granted\n\
         AcceptPathInfo On\n</Directory>\n{lines}"
    );
    let config = folder.join("apache.conf");
    std::fs::write(&config, text).expect("our own file");
    let config = config.display().to_string();
    let child = Command::new("/usr/sbin/apache2").args(["-DFOREGROUND", "-f", &config]).spawn();
    let mut apache = Apache(child.expect("apache2-bin is installed"), address);
    eventually("Apache's port", || {
        assert!(apache.0.try_wait().expect("our child").is_none(), "apache2 has ended");
        TcpStream::connect(address).ok()
    });
    apache
}

#[test]
fn apache_sends_same_variables_as_to_php_fpm() {
    let site = behind(DUMP, 1);
    let root = site.server.folder().join("root");
    std::fs::create_dir(root.join("below")).expect("our own folder");
    std::fs::write(root.join("below/page.php"), DUMP).expect("our own folder");
    let oracle = Oracle::start(&root);
    let (ours, theirs) = (site.folder.path().join("fcgi.sock"), oracle.folder().join("fpm.sock"));
    for path in
        [site.folder.path(), site.server.folder(), &root, &root.join("below"), &ours, &theirs]
    {
        open(path);
    }
    let handler = |socket: &Path| {
        let socket = socket.display();
        format!(
            "<FilesMatch \"\\.php$\">\n\
             SetHandler \"proxy:unix:{socket}|fcgi://localhost/\"\n</FilesMatch>"
        )
    };
    let pass = |socket: &Path| {
        let (socket, root) = (socket.display(), root.display());
        format!("ProxyPass / \"unix:{socket}|fcgi://localhost{root}/\"")
    };
    for lines in [&handler as &dyn Fn(&Path) -> String, &pass] {
        let started = [&ours, &theirs].map(|socket| {
            let folder = TempDir::with_prefix("samovar-apache-").expect("a temporary folder");
            open(folder.path());
            let apache = apache(folder.path(), &root, &lines(socket));
            (apache, folder)
        });
        for request in [
            Request::get("/index.php?a=1&b[]=%20"),
            Request::get("/index.php/path/info?a"),
            Request::get("/below/page.php"),
            Request::get("/below/page.php/x.php/y"),
            Request::get("/missing.php"),
            Request::post("/index.php", "text/plain", "hello"),
            Request::form("/index.php/x", "a=1"),
            Request::get("/index.php").header("Authorization", "Basic dTpw").header("X-Own", "1"),
        ] {
            let [ours, theirs] = [&started[0].0, &started[1].0].map(|a| told(a.1, &request));
            assert_eq!(ours, theirs, "{}", request.bytes().escape_ascii());
        }
    }
}
