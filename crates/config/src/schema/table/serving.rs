//! The section Serving: what is served, to whom, and where.

use std::path::PathBuf;

use crate::schema::listener::Listener;
use crate::schema::send_folder::SendFolder;
use crate::schema::setting::{Group, Kind, OnReload, Preset, Setting};
use crate::schema::settings::EarlyHints;
use crate::schema::{finish, notation};

use super::row::{self, count, path};

/// The workers of so many cores, with pages of 100 µs, keep a thread of the front busy for two thirds of its time
/// (`bench/scenarios/fronts.py`).
const CORES_PER_FRONT_THREAD: usize = 8;
/// As many as a ring can have fronts.
const FRONT_THREADS_MAX: usize = 16;

/// What its settings have in common.
const PLAIN: Setting = Setting { group: Group::Serving, ..row::PLAIN };

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        key: "root",
        flag: "root",
        positional: true,
        value: "PATH",
        kind: path(|settings, path| settings.root = path, "a folder or a `.php` file"),
        default: Preset::Derived("`public` if that folder exists, else `.`"),
        doc: "Folder to serve, or the .php file in it that answers",
        long: "A folder is the document root, and its index.php, if there is one, answers what no \
               file answers. A .php file is that script, and its folder is the root.",
        finish: Some(finish::root),
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
            push: |settings, text| {
                Listener::read(text).map(|listener| settings.listen.push(listener))
            },
        },
        default: Preset::Derived("127.0.0.1:8080; with acme.domains :80?redirect and https://:443"),
        doc: "Address to listen on; can be given several times",
        long: "HOST:PORT, where :PORT means all IPv4 interfaces and port 0 any free port; the line \
               that says the server is ready names the port. https:// in front: TLS, by \
               tls.certificates. unix:PATH: a socket in the file system. fcgi:// and fcgi-unix:PATH: FastCGI, \
               for a web server in front. ?redirect behind it: the way \
               to HTTPS and nothing else; ?redirect=443 names the port that visitors see. ?proxy: each connection begins with the PROXY protocol, whose \
               word is believed. ?mode=0666: who may connect to a socket's file; 0660 without it.",
        on_reload: OnReload::Kept(|old, new| old.listen != new.listen),
        finish: Some(finish::listen),
        ..PLAIN
    },
    Setting {
        key: "listen_backlog",
        flag: "listen-backlog",
        value: "N",
        kind: count(1, 1 << 20, |settings| &mut settings.listen_backlog),
        default: Preset::Text("4096"),
        doc: "Most connections that wait in the kernel to be accepted",
        long: "The kernel's own limit, net.core.somaxconn, holds besides. Sockets that a service \
               manager hands over keep the length it gave them.",
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
        doc: "Threads that serve connections; auto: one, from 16 cores on one for each 8",
        long: "TLS, HTTP, static files and the way to the workers of a connection are one thread's. One \
               serves tens of thousands of requests a second; more are for machines with so many \
               cores that it is busy all the time. With 16 pools and more there are fewer.",
        on_reload: OnReload::Kept(|old, new| old.front_threads != new.front_threads),
        ..PLAIN
    },
    Setting {
        key: "user",
        flag: "user",
        value: "NAME",
        kind: Kind::Text {
            allowed: "a user's name or number",
            set: |settings, text, _| {
                notation::account(text).then(|| settings.user = Some(text.to_owned()))
            },
        },
        default: Preset::Derived("who starts the server"),
        doc: "User that a server started by root becomes once it listens",
        long: "The whole server does, with all processes, and for good. Log, control socket and \
               temporary files are this user's, who must be able to open them.",
        on_reload: OnReload::Kept(|old, new| old.user != new.user),
        ..PLAIN
    },
    Setting {
        key: "group",
        flag: "group",
        value: "NAME",
        kind: Kind::Text {
            allowed: "a group's name or number",
            set: |settings, text, _| {
                notation::account(text).then(|| settings.group = Some(text.to_owned()))
            },
        },
        default: Preset::Derived("the user's own group"),
        doc: "Group that goes with the user",
        on_reload: OnReload::Kept(|old, new| old.group != new.group),
        finish: Some(finish::group),
        ..PLAIN
    },
    Setting {
        key: "allow_root",
        flag: "allow-root",
        bare: true,
        value: "BOOL",
        kind: Kind::Switch(|settings| &mut settings.allow_root),
        default: Preset::Text("false"),
        doc: "Let PHP run as root",
        long: "Without it a server that root starts without another user refuses to: each hole in the \
               application would be one in the machine.",
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
        doc: "Let no program that PHP starts have other rights than PHP",
        long: "Programs with the bits setuid, setgid or capabilities run without what these give. mail() by a local Postfix \
               or Exim, sudo and ping need them: set it to false for these. The server says at its start if it finds such a \
               mail program.",
        ..PLAIN
    },
    Setting {
        key: "control_from_php",
        flag: "control-from-php",
        bare: true,
        value: "BOOL",
        kind: Kind::Switch(|settings| &mut settings.control_from_php),
        default: Preset::Text("false"),
        doc: "Let PHP's processes tell the server to reload, to stop or to be upgraded",
        long: "They run as the server's user, so the control socket's mode does not keep them away. Without this the server asks \
               the kernel who speaks: its own processes, and what they have left behind, are told how it is, and no more. \
               For a deploy that a page starts.",
        on_reload: OnReload::Kept(|old, new| old.control_from_php != new.control_from_php),
        ..PLAIN
    },
    Setting {
        key: "sandbox.write",
        flag: "sandbox-write",
        value: "PATH",
        kind: Kind::List {
            allowed: "an absolute path",
            clear: |settings| settings.sandbox.write.clear(),
            push: |settings, text| {
                let path = PathBuf::from(text);
                path.is_absolute().then(|| settings.sandbox.write.push(path))
            },
        },
        default: Preset::Derived("anywhere"),
        doc: "Folders and files that PHP may write to, and no others; can be given several times",
        long: "The kernel sees to it (Landlock, Linux 6.2): PHP and all that it starts can write below these, into `temp_dir` and to devices, \
               whatever their user may. PHP's sys_temp_dir is that folder then. Nor can they trace or (Linux 6.12) signal a process outside. Name the folders of sessions and \
               uploads, too. A page that writes elsewhere is told that permission is denied.",
        ..PLAIN
    },
    Setting {
        key: "sandbox.read",
        flag: "sandbox-read",
        value: "PATH",
        kind: Kind::List {
            allowed: "an absolute path",
            clear: |settings| settings.sandbox.read.clear(),
            push: |settings, text| {
                let path = PathBuf::from(text);
                path.is_absolute().then(|| settings.sandbox.read.push(path))
            },
        },
        default: Preset::Derived("anywhere"),
        doc: "Folders and files that PHP may read, and no others; can be given several times",
        long: "Besides what `sandbox.write` names, the document root, and what every program needs: /usr, /lib, /bin, /etc, /dev, /proc and /sys. \
               An application whose classes lie beside its document root needs its own folder here. Writing is as with \
               `sandbox.write`.",
        ..PLAIN
    },
    Setting {
        key: "sandbox.apart",
        flag: "sandbox-apart",
        bare: true,
        value: "BOOL",
        kind: Kind::Switch(|settings| &mut settings.sandbox.apart),
        default: Preset::Text("true"),
        doc: "Keep PHP's processes from reading the memory of processes outside their pool",
        long: "The kernel refuses them to trace the server, another pool's workers and whatever else their user runs (Landlock, Linux \
               5.19): debuggers, `process_vm_readv`, and /proc/PID/mem, fd and the like. No file is out of their reach for it. Programs \
               that PHP starts cannot mount anything either; false is for those that build containers or have a sandbox of their own. With \
               `sandbox.write` or `sandbox.read` it is so in any case; without `no_new_privileges` it is not.",
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
        default: Preset::Derived("the address that was connected to"),
        doc: "SERVER_NAME of requests without a Host header",
        ..PLAIN
    },
    Setting {
        key: "static_files",
        flag: "static-files",
        value: "BOOL",
        kind: Kind::Switch(|settings| &mut settings.static_files),
        default: Preset::Text("true"),
        doc: "Serve files that are not PHP",
        long: "With false every request goes to a script, because something in front of Samovar \
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
            push: |settings, text| {
                notation::pattern(text).map(|pattern| settings.deny_files.push(pattern))
            },
        },
        default: Preset::Derived("none"),
        doc: "Files that are treated as absent; can be given several times",
        long: "With `*` and `?`: a name such as `*.tpl`, or with a slash a path below the root such as \
               `/data/*`. Hidden files, PHP source that would not run (`x.php.bak`) and what a \
               project keeps beside its pages are treated so without being named.",
        ..PLAIN
    },
    Setting {
        key: "allow_files",
        flag: "allow-files",
        value: "PATTERN",
        kind: Kind::List {
            allowed: PATTERNS,
            clear: |settings| settings.allow_files.clear(),
            push: |settings, text| {
                notation::pattern(text).map(|pattern| settings.allow_files.push(pattern))
            },
        },
        default: Preset::Derived("none"),
        doc: "Files that are served although their names speak against it; can be given several times",
        long: "Patterns as those of deny_files, and stronger than these. Hidden files stay hidden, \
               and so do the server's settings and logs.",
        ..PLAIN
    },
    Setting {
        key: "request_buffering",
        flag: "request-buffering",
        value: "BOOL",
        kind: Kind::Switch(|settings| &mut settings.request_buffering),
        default: Preset::Text("true"),
        doc: "Read a request's body completely before a worker is given the request",
        long: "What is beyond 64 KiB goes into an unlinked temporary file, so a slow client costs \
               no worker. With false the worker gets the body as it comes in.",
        ..PLAIN
    },
    Setting {
        key: "link_targets",
        flag: "link-targets",
        value: "DIR",
        kind: Kind::List {
            allowed: "the absolute path of a folder",
            clear: |settings| settings.link_targets.clear(),
            push: |settings, text| {
                let path = PathBuf::from(text);
                path.is_absolute().then(|| settings.link_targets.push(path))
            },
        },
        default: Preset::Derived("none"),
        doc: "Folders outside the root that symlinks may lead to; can be given several times",
        long: "A link that leaves the root is answered with 403 unless it leads below one of these. \
               Laravel's public/storage needs its storage/app/public here.",
        ..PLAIN
    },
    Setting {
        key: "sendfile",
        flag: "sendfile",
        value: "PATH=DIR",
        kind: Kind::Pairs {
            allowed: "a path and the absolute path of a folder, such as `/protected/=/srv/files`",
            put: |settings, text| {
                let (path, folder) = notation::sendfile(text)?;
                let folder = SendFolder { named: folder, ..SendFolder::default() };
                settings.sendfile.insert(path, folder);
                Some(())
            },
            unpaired: None,
        },
        default: Preset::Derived(
            "none: X-Accel-Redirect and X-Sendfile go to the client as any header",
        ),
        doc: "Folders that scripts may have files sent from; can be given several times",
        long: "A script's header X-Accel-Redirect: /protected/a.zip has /srv/files/a.zip sent in place of its body, \
               and so does X-Sendfile: /srv/files/a.zip. Ranges and conditions work as for any file. The folder may be \
               named by a symlink; files elsewhere, and those that a symlink below it leads to, are refused. Where \
               a web server asks by FastCGI, paths of no folder named here are for it.",
        finish: Some(finish::sendfile),
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
            push: |settings, text| {
                if text == "unix:" {
                    settings.trusts_unix = true;
                    return Some(());
                }
                notation::network(text).map(|network| settings.trusted_proxies.push(network))
            },
        },
        default: Preset::Derived("none"),
        doc: "Peers whose X-Forwarded-* headers are believed; can be given several times",
        long: "Anybody else's are passed to PHP as ordinary headers and change nothing about the \
               client's address or the scheme. unix: means whoever connects to a socket in the file \
               system.",
        ..PLAIN
    },
    Setting {
        key: "http2",
        flag: "http2",
        value: "BOOL",
        kind: Kind::Switch(|settings| &mut settings.http2),
        default: Preset::Text("true"),
        doc: "Speak HTTP/2 with clients that do",
        long: "Over TLS they say so in the handshake (ALPN), without it by their first line.",
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
        doc: "Who is sent the early hints (103) of headers_send(103)",
        long: "auto: clients that are no proxy. nginx before 1.29 takes such an answer for the final one, and the \
               client waits in vain. A proxy is one of `trusted_proxies`, and whoever sends Via, Forwarded, \
               X-Forwarded-For or X-Real-IP.",
        ..PLAIN
    },
    Setting {
        key: "temp_dir",
        flag: "temp-dir",
        value: "DIR",
        kind: path(|settings, path| settings.temp_dir = path, "a folder that exists"),
        default: Preset::Derived("`$TMPDIR`, else `/tmp`"),
        doc: "Folder for request bodies that do not fit into memory",
        finish: Some(finish::temp_dir),
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
        doc: "Socket on which the server answers samovar status, reload and stop",
        long: "PORT is that of the first address. status, reload and stop find the socket by themselves \
               while there is only one.",
        on_reload: OnReload::Kept(|old, new| old.control != new.control),
        finish: Some(finish::control),
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
        doc: "GET request that a reload's new workers must answer before they take over",
        long: "If they answer it with a server error where the old ones do not, the old ones go on. \
               off: no such request is made.",
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
        doc: "What PHP sees as SERVER_SOFTWARE",
        long: "Applications look for nginx or Apache in it: WordPress writes links without \
               index.php only under these.",
        ..PLAIN
    },
];

/// What [`notation::pattern`] takes.
const PATTERNS: &str = "a file's name such as `*.sql`, or a path below the root such as `/data/*`";
