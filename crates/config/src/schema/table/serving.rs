//! The section Serving: served files and scripts, clients, and addresses.

use crate::schema::listener::Listener;
use crate::schema::send_folder::SendFolder;
use crate::schema::setting::{Group, Kind, OnReload, Preset, Setting};
use crate::schema::settings::EarlyHints;
use crate::schema::{notation, resolve};

use super::row::{self, count, path};

/// Number of cores per front thread. The workers of that number of cores, with pages of 100 µs,
/// keep one front thread busy for two thirds of its time (`bench/scenarios/fronts.py`).
const CORES_PER_FRONT_THREAD: usize = 8;
/// Maximum number of fronts of a ring.
const FRONT_THREADS_MAX: usize = 16;

/// Common values of this section's rows.
const PLAIN: Setting = Setting { group: Group::Serving, ..row::PLAIN };

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        key: "root",
        flag: "root",
        positional: true,
        value: "PATH",
        kind: path(|settings, path| settings.root = path, "a folder or a `.php` file"),
        default: Preset::Derived("`public` if that folder exists, else `.`"),
        doc: "Folder to serve, or the .php file in it that handles requests",
        long: "A folder is the document root. Its index.php, if there is one, handles all requests \
               for which no file exists. A .php file is the front controller, and its folder is \
               the document root.",
        finish: Some(resolve::root),
        ..PLAIN
    },
    Setting {
        key: "listen",
        flag: "listen",
        short: Some('l'),
        value: "ADDR",
        kind: Kind::List {
            allowed: "an address such as `127.0.0.1:8080`, `[::1]:8080`, `localhost:8080` or \
                      `:8080` (all IPv4 interfaces), `https://:443`, `:80?redirect`, \
                      `fcgi://127.0.0.1:9000`, `unix:/run/samovar.sock` or \
                      `fcgi-unix:/run/samovar.sock`",
            clear: |settings| settings.listen.clear(),
            push: |settings, text, _| {
                Listener::read(text).map(|listener| settings.listen.push(listener))
            },
        },
        default: Preset::Derived("127.0.0.1:8080; with acme.domains :80?redirect and https://:443"),
        doc: "Address to listen on (repeatable)",
        long: "HOST:PORT, where :PORT means all IPv4 interfaces and port 0 means any free port; \
               the ready message names the port. https://: TLS, with the certificates of \
               tls.certificates or acme.domains. unix:PATH: a Unix socket. fcgi:// and \
               fcgi-unix:PATH: FastCGI, for a web server in front. Options follow a question mark. \
               ?redirect: only redirects to HTTPS; ?redirect=443 sets the public HTTPS port. \
               ?proxy: each connection begins with a PROXY protocol header, which is trusted. \
               ?mode=0666: permissions of the socket's file; the default is 0660.",
        on_reload: OnReload::Kept(|old, new| old.listen != new.listen),
        finish: Some(resolve::listen),
        ..PLAIN
    },
    Setting {
        key: "listen_backlog",
        flag: "listen-backlog",
        value: "N",
        kind: count(1, 1 << 20, |settings| &mut settings.listen_backlog),
        default: Preset::Text("4096"),
        doc: "Maximum number of connections that wait in the kernel to be accepted",
        long: "Capped by the kernel's net.core.somaxconn. Sockets from a service manager keep the \
               backlog that it set.",
        on_reload: OnReload::Kept(|old, new| old.listen_backlog != new.listen_backlog),
        ..PLAIN
    },
    Setting {
        key: "front_threads",
        flag: "front-threads",
        value: "N",
        kind: Kind::PerCores {
            cores: CORES_PER_FRONT_THREAD,
            max: FRONT_THREADS_MAX,
            field: |settings| &mut settings.front_threads,
        },
        default: Preset::Text("auto"),
        doc: "Number of threads that serve connections; auto: one per 8 cores, at least 1",
        long: "One thread does all the work of a connection: TLS, HTTP, static files and the \
               exchange with workers. One thread serves tens of thousands of requests per second. \
               More are useful if it is always busy, on machines with many cores. With 16 or more \
               pools, fewer are used.",
        on_reload: OnReload::Kept(|old, new| old.front_threads != new.front_threads),
        ..PLAIN
    },
    Setting {
        key: "user",
        flag: "user",
        value: "NAME",
        kind: Kind::Text {
            allowed: "a user name or number",
            set: |settings, text, _| {
                notation::account(text).then(|| settings.user = Some(text.to_owned()))
            },
        },
        default: Preset::Derived("the user that starts the server"),
        doc: "User that a server started by root switches to after it has bound its addresses",
        long: "The whole server switches, with all its processes, and cannot switch back. Log \
               files, control socket and temporary files belong to this user, which must be able \
               to open them.",
        on_reload: OnReload::Kept(|old, new| old.user != new.user),
        ..PLAIN
    },
    Setting {
        key: "group",
        flag: "group",
        value: "NAME",
        kind: Kind::Text {
            allowed: "a group name or number",
            set: |settings, text, _| {
                notation::account(text).then(|| settings.group = Some(text.to_owned()))
            },
        },
        default: Preset::Derived("the primary group of the user"),
        doc: "Group that the server switches to together with `user`",
        on_reload: OnReload::Kept(|old, new| old.group != new.group),
        finish: Some(resolve::group),
        ..PLAIN
    },
    Setting {
        key: "allow_root",
        flag: "allow-root",
        bare: true,
        value: "BOOL",
        kind: Kind::Switch(|settings| &mut settings.allow_root),
        default: Preset::Text("false"),
        doc: "Whether PHP may run as root",
        long: "Without it, a server that root starts without `user` exits with an error: a \
               vulnerability in the application would compromise the machine.",
        on_reload: OnReload::Kept(|old, new| old.allow_root != new.allow_root),
        ..PLAIN
    },
    Setting {
        key: "no_new_privileges",
        flag: "no-new-privileges",
        bare: true,
        value: "BOOL",
        kind: Kind::Switch(|settings| &mut settings.no_new_privileges),
        default: Preset::Text("true"),
        doc: "Whether programs that PHP starts are denied more privileges than PHP has",
        long: "The setuid and setgid bits and file capabilities of programs then have no effect. \
               mail() with a local Postfix or Exim, sudo and ping need them: set it to false for \
               these. The server reports such a mail program when it starts.",
        ..PLAIN
    },
    Setting {
        key: "control_from_php",
        flag: "control-from-php",
        bare: true,
        value: "BOOL",
        kind: Kind::Switch(|settings| &mut settings.control_from_php),
        default: Preset::Text("false"),
        doc: "Whether PHP processes may order a reload, a stop or an upgrade of the server",
        long: "PHP processes run as the server's user, so the permissions of the control socket do \
               not keep them out. The server therefore asks the kernel which process has \
               connected. Its own processes, and processes that they have started, may only query \
               its state. Set it to true for a deploy that a page starts.",
        on_reload: OnReload::Kept(|old, new| old.control_from_php != new.control_from_php),
        ..PLAIN
    },
    Setting {
        key: "sandbox.write",
        flag: "sandbox-write",
        value: "PATH",
        kind: Kind::List {
            allowed: "a path",
            clear: |settings| settings.sandbox.write.clear(),
            push: |settings, text, base| {
                row::below(base, text).map(|path| settings.sandbox.write.push(path))
            },
        },
        default: Preset::Derived("anywhere"),
        doc: "Folders and files that PHP may write to, and no others (repeatable)",
        long: "Enforced by the kernel (Landlock, Linux 6.2), regardless of the user's permissions. \
               PHP and all programs that it starts can write below these paths, in `temp_dir` and \
               to devices. PHP's sys_temp_dir is then `temp_dir`. These processes cannot trace \
               processes outside, or (Linux 6.12) send them signals. Include the folders for \
               sessions and uploads. Writes to other paths fail with \"Permission denied\". The \
               modes, owners and times of files are not protected.",
        ..PLAIN
    },
    Setting {
        key: "sandbox.read",
        flag: "sandbox-read",
        value: "PATH",
        kind: Kind::List {
            allowed: "a path",
            clear: |settings| settings.sandbox.read.clear(),
            push: |settings, text, base| {
                row::below(base, text).map(|path| settings.sandbox.read.push(path))
            },
        },
        default: Preset::Derived("anywhere"),
        doc: "Folders and files that PHP may read, and no others (repeatable)",
        long: "PHP may also read the paths in `sandbox.write` and the document root. The same is \
               true for paths that every program needs: /usr, /lib, /bin, /etc, /dev, /proc and \
               /sys. Include the application's folder if its classes are outside the document \
               root. Writes are restricted as with `sandbox.write`, even if that is not set.",
        ..PLAIN
    },
    Setting {
        key: "sandbox.isolate_processes",
        flag: "sandbox-isolate-processes",
        former_flag: Some("sandbox-apart"),
        former_key: Some("sandbox.apart"),
        bare: true,
        value: "BOOL",
        kind: Kind::Switch(|settings| &mut settings.sandbox.isolate_processes),
        default: Preset::Text("true"),
        doc: "Whether PHP is prevented from reading the memory of processes outside its pool",
        long: "The kernel (Landlock, Linux 5.19) forbids PHP processes to trace the server, \
               workers of other pools and other processes of their user. This covers debuggers, \
               `process_vm_readv`, and /proc/PID/mem, fd and similar files. Access to other files \
               does not change. Programs that PHP starts cannot mount file systems either: set it \
               to false if they build containers or have their own sandbox. With `sandbox.write` \
               or `sandbox.read` it is always on. Without `no_new_privileges` it has no effect.",
        ..PLAIN
    },
    Setting {
        key: "server_name",
        flag: "server-name",
        value: "NAME",
        kind: Kind::Text {
            allowed: "a host name",
            set: |settings, text, _| {
                let plain = !text.is_empty() && !text.contains(|c: char| c <= ' ');
                plain.then(|| settings.server_name = Some(text.to_owned()))
            },
        },
        default: Preset::Derived("the address that the client connected to"),
        doc: "SERVER_NAME of requests without a Host header",
        ..PLAIN
    },
    Setting {
        key: "static_files",
        flag: "static-files",
        value: "BOOL",
        kind: Kind::Switch(|settings| &mut settings.static_files),
        default: Preset::Text("true"),
        doc: "Whether files other than PHP scripts are served",
        long: "With false every request goes to a script. Use it if a server in front of Samovar \
               serves the files.",
        ..PLAIN
    },
    Setting {
        key: "deny_files",
        flag: "deny-files",
        value: "PATTERN",
        kind: Kind::List {
            allowed: PATTERNS,
            clear: |settings| settings.deny_files.clear(),
            push: |settings, text, _| {
                notation::pattern(text).map(|pattern| settings.deny_files.push(pattern))
            },
        },
        default: Preset::Derived("none"),
        doc: "Files that are treated as missing (repeatable)",
        long: "Patterns with `*` and `?`: a file name such as `*.tpl`, or with a slash a path \
               below the root such as `/data/*`. Always treated as missing: hidden files, PHP \
               source that would not run (`x.php.bak`), and project files such as composer.json.",
        ..PLAIN
    },
    Setting {
        key: "allow_files",
        flag: "allow-files",
        value: "PATTERN",
        kind: Kind::List {
            allowed: PATTERNS,
            clear: |settings| settings.allow_files.clear(),
            push: |settings, text, _| {
                notation::pattern(text).map(|pattern| settings.allow_files.push(pattern))
            },
        },
        default: Preset::Derived("none"),
        doc: "Files that are served although their names are denied by default (repeatable)",
        long: "Patterns as in deny_files, which they override. Hidden files and the server's \
               settings and logs are never served.",
        ..PLAIN
    },
    Setting {
        key: "request_buffering",
        flag: "request-buffering",
        value: "BOOL",
        kind: Kind::Switch(|settings| &mut settings.request_buffering),
        default: Preset::Text("true"),
        doc: "Whether a request's body is read completely before a worker gets the request",
        long: "The part beyond 64 KiB goes to an unlinked temporary file, so a slow client \
               occupies no worker. With false the worker receives the body as it arrives.",
        ..PLAIN
    },
    Setting {
        key: "link_targets",
        flag: "link-targets",
        value: "DIR",
        kind: Kind::List {
            allowed: "a folder",
            clear: |settings| settings.link_targets.clear(),
            push: |settings, text, base| {
                row::below(base, text).map(|path| settings.link_targets.push(path))
            },
        },
        default: Preset::Derived("none"),
        doc: "Folders outside the root that symlinks may lead to (repeatable)",
        long: "Any other symlink that leaves the root gets a 403 response. Laravel's \
               public/storage needs its storage/app/public here.",
        ..PLAIN
    },
    Setting {
        key: "sendfile",
        flag: "sendfile",
        value: "PATH=DIR",
        kind: Kind::Pairs {
            allowed: "a path and a folder, such as `/protected/=/srv/files`",
            put: |settings, text, base| {
                let (path, folder) = notation::sendfile(text, base)?;
                let folder = SendFolder { named: folder, ..SendFolder::default() };
                settings.sendfile.insert(path, folder);
                Some(())
            },
            unpaired: None,
        },
        default: Preset::Derived("none: X-Accel-Redirect and X-Sendfile are passed to the client"),
        doc: "Folders with files that scripts may have the server send (repeatable)",
        long: "With /protected/=/srv/files, a script's header X-Accel-Redirect: /protected/a.zip \
               replaces its body with the file /srv/files/a.zip. X-Sendfile: /srv/files/a.zip does \
               the same. Ranges and conditional requests work as for any file. The folder itself \
               may be a symlink. Files outside it are refused, and so are files outside it that a \
               symlink below it leads to. In FastCGI responses to a web server, headers with paths \
               of other folders are passed to the web server.",
        finish: Some(resolve::sendfile),
        ..PLAIN
    },
    Setting {
        key: "trusted_proxies",
        flag: "trusted-proxies",
        value: "NET",
        kind: Kind::List {
            allowed: "an address, a network such as `10.0.0.0/8` or `::1`, or `unix:`",
            clear: |settings| {
                settings.trusted_proxies.clear();
                settings.trusts_unix = false;
            },
            push: |settings, text, _| {
                if text == "unix:" {
                    settings.trusts_unix = true;
                    return Some(());
                }
                notation::network(text).map(|network| settings.trusted_proxies.push(network))
            },
        },
        default: Preset::Derived("none"),
        doc: "Peers whose X-Forwarded-* headers are trusted (repeatable)",
        long: "From other peers these headers are passed to PHP unchanged, and do not affect the \
               client's address or the scheme. unix: trusts every peer that connects to a Unix \
               socket.",
        ..PLAIN
    },
    Setting {
        key: "http2",
        flag: "http2",
        value: "BOOL",
        kind: Kind::Switch(|settings| &mut settings.http2),
        default: Preset::Text("true"),
        doc: "Whether HTTP/2 is enabled",
        long: "With TLS, clients select it in the handshake (ALPN); without TLS, by the connection \
               preface.",
        ..PLAIN
    },
    Setting {
        key: "early_hints",
        flag: "early-hints",
        value: "WHEN",
        kind: Kind::Word {
            words: EarlyHints::WORDS,
            set: |settings, index| settings.early_hints = EarlyHints::ALL[index],
        },
        default: Preset::Text("auto"),
        doc: "Clients that receive early hints (103) from headers_send(103)",
        long: "auto: clients that are not proxies. A proxy is one of `trusted_proxies`, or a \
               client that sends Via, Forwarded, X-Forwarded-For or X-Real-IP. nginx before 1.29 \
               takes a 103 response for the final one, and its client never gets the final one.",
        ..PLAIN
    },
    Setting {
        key: "temp_dir",
        flag: "temp-dir",
        value: "DIR",
        kind: path(|settings, path| settings.temp_dir = path, "a folder that exists"),
        default: Preset::Derived("`$TMPDIR`, else `/tmp`"),
        doc: "Folder for request and response bodies that do not fit into memory",
        finish: Some(resolve::temp_dir),
        ..PLAIN
    },
    Setting {
        key: "control",
        flag: "control",
        value: "SOCKET",
        kind: path(|settings, path| settings.control = Some(path), "the path of a socket"),
        default: Preset::Derived(
            "`samovar-PORT.sock` in `$XDG_RUNTIME_DIR`, else in `/tmp/samovar-UID`",
        ),
        doc: "Control socket for samovar status, reload and stop",
        long: "PORT is the port of the first address. These commands find the socket automatically \
               if only one server is running.",
        on_reload: OnReload::Kept(|old, new| old.control != new.control),
        finish: Some(resolve::control),
        ..PLAIN
    },
    Setting {
        key: "reload_probe",
        flag: "reload-probe",
        value: "TARGET",
        kind: Kind::Text {
            allowed: "a path with its query, such as `/` or `/health?full=1`, or `off`",
            set: |settings, text, _| {
                settings.reload_probe = (text != "off").then(|| text.to_owned());
                (text == "off" || notation::target(text)).then_some(())
            },
        },
        default: Preset::Text("/"),
        doc: "GET request that new workers must pass before a reload switches to them",
        long: "If the new workers respond with a server error and the old ones do not, the old \
               ones stay in use. off: no probe.",
        ..PLAIN
    },
    Setting {
        key: "release",
        flag: "release",
        value: "LABEL",
        kind: Kind::Text {
            allowed: "up to 100 letters, digits, `.`, `_`, `-`, `+`, `/`, `:`, `@`, `~`, a letter \
                      or digit first",
            set: |settings, text, _| {
                settings.release = Some(text.to_owned());
                notation::release(text).then_some(())
            },
        },
        default: Preset::Derived("the label in `release_file`, else none"),
        doc: "Label of the application's release, such as a version or a commit",
        long: "Shown in the dashboard, in metrics and in traces. It is read at each start and \
               reload. `samovar reload --release` overrides it for one reload.",
        ..PLAIN
    },
    Setting {
        key: "release_file",
        flag: "release-file",
        value: "FILE",
        kind: path(|settings, path| settings.release_file = Some(path), "a file"),
        default: Preset::Derived("none"),
        doc: "File whose first line is the label of the release, such as `REVISION`",
        long: "Read at each start and reload, if `release` is not set. A reload fails if the file \
               is missing, or its label is invalid.",
        ..PLAIN
    },
    Setting {
        key: "server_software",
        flag: "server-software",
        value: "TEXT",
        kind: Kind::Text {
            allowed: "up to 128 printable characters",
            set: |settings, text, _| {
                let plain = (1..=128).contains(&text.len())
                    && text.bytes().all(|b| (b' '..0x7f).contains(&b));
                plain.then(|| text.clone_into(&mut settings.server_software))
            },
        },
        default: Preset::Text("Samovar (like nginx)"),
        doc: "Value of SERVER_SOFTWARE in PHP",
        long: "Applications search it for nginx or Apache: WordPress writes links without \
               index.php only under these.",
        ..PLAIN
    },
];

/// Description of the values that [`notation::pattern`] accepts.
const PATTERNS: &str = "a file name such as `*.sql`, or a path below the root such as `/data/*`";
