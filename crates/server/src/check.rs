//! `samovar check`: checks whether a server would start with these settings. Checks everything that
//! `serve` needs; does not start or change anything.
//!
//! When run as root, it switches to the user in the settings, as the server would, and checks files
//! as that user.

mod boot_reads;

use crate::check::boot_reads::BootRead;
use crate::convert::{push_options, sandbox};
use crate::serve::listen::{bind_hint, socket_hint};
use crate::serve::{self, advice, exporters, operators};
use crate::{binary, certificates, engine, publish, rights, terminal};
use anyhow::Result;
use rustix::fs::{Access, access, statfs};
use samovar_channel::{PhpQuestion, PhpResponse, jit_warning};
use samovar_config::{Endpoint, Listen, Listener, Pool, Problems, Settings, Sources, release_of};
use samovar_front::{Bound, Tls, ValidSettings, listeners};
use samovar_insight::export::otlp::Exporter;
use samovar_profile::Pusher;
use serde::Serialize;
use std::fmt::Write as _;
use std::io;
use std::net::{TcpListener, ToSocketAddrs as _, UdpSocket};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;
use std::process::ExitCode;

/// Exit code for wrong flags or settings, as for `serve`.
const EXIT_SETTINGS: u8 = 2;

/// File systems that write a file to disk when it is closed, if it was truncated before. PHP writes
/// each session this way. The magic numbers are those of ext4 (its `auto_da_alloc`), XFS
/// (`XFS_ITRUNCATED`) and btrfs (`BTRFS_INODE_FLUSH_ON_CLOSE`).
const WRITING_AT_ONCE: [u64; 3] = [0xEF53, 0x5846_5342, 0x9123_683E];

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    Ok,
    /// A server would start, but perhaps not as intended.
    Warning,
    /// A server would not start.
    Error,
}

#[derive(Debug, Serialize)]
struct Finding {
    level: Level,
    /// Subject of the check: a word.
    about: &'static str,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

#[derive(Debug, Default, Serialize)]
struct Report {
    ok: bool,
    findings: Vec<Finding>,
}

impl Report {
    fn add(&mut self, level: Level, about: &'static str, text: impl Into<String>) {
        let text: String = text.into();
        // Error messages of `serve` have their hint on a separate line.
        let (text, hint) = match text.split_once("\nhint: ") {
            Some((text, hint)) => (text.to_owned(), Some(hint.to_owned())),
            None => (text, None),
        };
        self.findings.push(Finding { level, about, text, hint });
    }

    fn take(&mut self, about: &'static str, result: Result<String>) {
        match result {
            Ok(text) => self.add(Level::Ok, about, text),
            Err(error) => self.add(Level::Error, about, format!("{error:#}")),
        }
    }

    fn has_errors(&self) -> bool {
        self.findings.iter().any(|finding| finding.level == Level::Error)
    }

    fn text(&mut self, json: bool) -> String {
        self.ok = !self.has_errors();
        if json {
            return serde_json::to_string(&self).unwrap_or_default() + "\n";
        }
        let mut out = String::new();
        for Finding { level, about, text, hint } in &self.findings {
            let level = match level {
                Level::Ok => "ok",
                Level::Warning => "warning",
                Level::Error => "error",
            };
            // Writing to a string cannot fail.
            let _ = writeln!(out, "{level:<8} {about}: {text}");
            if let Some(hint) = hint {
                let _ = writeln!(out, "         hint: {hint}");
            }
        }
        out
    }
}

/// Prints the findings. Returns 0 if a server would start, 1 if not, 2 if the settings themselves
/// are wrong.
pub fn run(sources: &Sources, json: bool) -> ExitCode {
    let mut found = Report::default();
    let exit = match sources.resolve() {
        Err(problems) => {
            say_problems(&problems, &mut found);
            ExitCode::from(EXIT_SETTINGS)
        }
        Ok(settings) => {
            look(&settings, &mut found);
            if found.has_errors() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
        }
    };
    match terminal::print(&found.text(json)) {
        Ok(()) => exit,
        Err(_) => ExitCode::FAILURE,
    }
}

fn say_problems(problems: &Problems, found: &mut Report) {
    for problem in problems {
        found.add(Level::Error, "settings", problem.to_string());
    }
}

fn look(settings: &Settings, found: &mut Report) {
    let file = settings.config_file.as_ref().map(|file| format!("`{}`", file.display()));
    found.add(
        Level::Ok,
        "settings",
        file.unwrap_or_else(|| "no file; only defaults and flags".into()),
    );
    if let Err(error) = serve::open_files(settings) {
        found.add(Level::Error, "limits", format!("{error:#}"));
    }
    let pools = settings.pools.iter().map(|pool| &pool.settings);
    for surplus in std::iter::once(settings).chain(pools).filter_map(advice::surplus) {
        found.add(Level::Warning, "workers", surplus);
    }
    for exposure in advice::exposures(settings) {
        found.add(Level::Warning, "access", exposure);
    }
    look_at_addresses(settings, found);
    look_at_ways(settings, found);
    if !settings.acme.domains.is_empty() {
        look_at_domains(settings, found);
    }
    if !settings.tls.certificates.is_empty() {
        let loaded = Tls::load(settings).map_err(anyhow::Error::new);
        let count = settings.tls.certificates.len();
        for notice in loaded.iter().flatten().flat_map(|tls| tls.notices()) {
            found.add(Level::Warning, "tls", format!("{}\nhint: {}", notice.what, notice.hint));
        }
        found.take("tls", loaded.map(|_| format!("{count} certificates are usable")));
    }
    // From here on, the checks run with the rights that the server would have.
    match rights::identity(settings) {
        Err(error) => found.add(Level::Error, "user", format!("{error:#}")),
        Ok(None) => {}
        Ok(Some(identity)) => {
            let become_it = identity
                .assume()
                .map(|()| format!("the server switches to the user `{}`", identity.name));
            found.take("user", become_it.map_err(Into::into));
        }
    }
    look_at_root(settings, found);
    for (pool, own) in crate::pools::settings(settings) {
        match release_of(own, None) {
            Ok(label) if label.is_empty() => {}
            Ok(label) => found.add(Level::Ok, "release", format!("`{label}` of pool `{pool}`")),
            Err(error) => found.add(Level::Error, "release", error.to_string()),
        }
    }
    if !settings.shared.publish.is_empty() {
        let count = settings.shared.publish.len();
        let read = publish::read(settings);
        found.take("published", read.map(|_| format!("{count} files can be published")));
    }
    match ValidSettings::new(settings.clone()) {
        Err(error) => found.add(Level::Error, "site", format!("{:#}", anyhow::Error::new(error))),
        Ok(_) if settings.locations.is_empty() => {}
        Ok(_) => {
            let text = format!("{} locations are valid", settings.locations.len());
            found.add(Level::Ok, "locations", text);
        }
    }
    look_at_worker(settings, found);
    settings.pools.iter().for_each(|pool| look_at_pool(pool, found));
    for obstacle in rights::obstacles(settings, None) {
        found.add(Level::Error, "files", format!("this user {obstacle}"));
    }
    if let Some(file) = rights::unreadable_file(settings) {
        let text = format!("this user cannot read `{}`: no reload would work", file.display());
        found.add(Level::Warning, "files", text);
    }
    look_at_logs(settings, found);
    look_at_control(settings, found);
}

/// Sockets that the check holds, as the server would: two addresses of the settings may exclude
/// each other.
#[derive(Default)]
struct Sockets {
    listeners: Vec<Bound>,
    admin: Vec<TcpListener>,
}

impl Sockets {
    /// Opens a socket next to the held ones. An address that is in use is tried again without them.
    fn open<T>(&mut self, open: impl Fn() -> io::Result<T>) -> Result<T, Unavailable> {
        let error = match open() {
            Ok(socket) => return Ok(socket),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => error,
            Err(error) => return Err(Unavailable::Failed(error)),
        };
        *self = Sockets::default();
        match open() {
            Ok(_) => Err(Unavailable::ByTheseSettings(error)),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(Unavailable::InUse),
            Err(error) => Err(Unavailable::Failed(error)),
        }
    }
}

/// Reason why an address cannot be bound.
enum Unavailable {
    /// Another address of the settings uses it.
    ByTheseSettings(io::Error),
    /// Most likely a server with these settings uses it.
    InUse,
    Failed(io::Error),
}

fn look_at_addresses(settings: &Settings, found: &mut Report) {
    let mut held = Sockets::default();
    settings.listen.iter().for_each(|at| look_at_address(at, &mut held, found));
    settings.admin.iter().for_each(|at| look_at_admin(at, settings, &mut held, found));
}

fn say_in_use(found: &mut Report, about: &'static str, at: &impl std::fmt::Display) {
    let text = format!("`{at}` is in use, probably by a running server");
    found.add(Level::Warning, about, text);
}

fn say_used_twice(
    found: &mut Report,
    about: &'static str,
    at: &impl std::fmt::Display,
    error: &io::Error,
) {
    let text = format!(
        "cannot bind `{at}`: {error}\nhint: another address of these settings uses it; remove one \
         of both"
    );
    found.add(Level::Error, about, text);
}

fn look_at_address(at: &Listener, held: &mut Sockets, found: &mut Report) {
    match held.open(|| Bound::open(at, 1, None)) {
        Ok(socket) => {
            held.listeners.push(socket);
            found.add(Level::Ok, "listen", format!("`{at}` is available"));
        }
        Err(Unavailable::InUse) => say_in_use(found, "listen", at),
        Err(Unavailable::ByTheseSettings(error)) => say_used_twice(found, "listen", at, &error),
        Err(Unavailable::Failed(error)) => found.add(
            Level::Error,
            "listen",
            match at.place {
                Endpoint::Tcp(_) => {
                    format!("cannot bind `{at}`: {error}\nhint: {}", bind_hint("listen", &error))
                }
                Endpoint::Unix(_) => {
                    format!("cannot bind `{at}`: {error}\nhint: {}", socket_hint(&error))
                }
            },
        ),
    }
}

/// Checks whether certificates could be obtained for the domains, as far as this machine alone can
/// tell.
fn look_at_domains(settings: &Settings, found: &mut Report) {
    let names = settings.acme.domains.join(", ");
    let ways: Vec<_> = certificates::plan(settings).ways.iter().map(|way| way.name()).collect();
    if ways.is_empty() {
        let text = format!(
            "no listener can prove to the authority that `{names}` is this server\nhint: `listen` \
             on :80?redirect for http-01, on https://:443 for tls-alpn-01"
        );
        return found.add(Level::Error, "acme", text);
    }
    let text = format!("certificates for {names} are obtained with {}", ways.join(" or "));
    found.add(Level::Ok, "acme", text);
    if !settings.acme.agree {
        let text = "the authority's terms are not accepted: no certificate is obtained\nhint: \
                    read them, and set `acme.agree`";
        found.add(Level::Warning, "acme", text);
    }
}

/// Checks whether the admin address can be bound, and whether it is reachable from other machines.
fn look_at_admin(at: &Listen, settings: &Settings, held: &mut Sockets, found: &mut Report) {
    let addresses = (&*at.host, at.port).to_socket_addrs().into_iter().flatten();
    for address in addresses {
        if let Err(error) = operators::refuse_strangers(settings, address) {
            return found.add(Level::Error, "admin", format!("{error:#}"));
        }
    }
    match held.open(|| listeners::bind(&at.host, at.port, 1)) {
        Ok(socket) => {
            held.admin.push(socket);
            found.add(Level::Ok, "admin", format!("`{at}` is available"));
        }
        Err(Unavailable::InUse) => say_in_use(found, "admin", at),
        Err(Unavailable::ByTheseSettings(error)) => say_used_twice(found, "admin", at, &error),
        Err(Unavailable::Failed(error)) => {
            let text = format!("cannot bind `{at}`: {error}\nhint: {}", bind_hint("admin", &error));
            found.add(Level::Error, "admin", text);
        }
    }
}

/// Checks the importers and exporters of requests.
fn look_at_ways(settings: &Settings, found: &mut Report) {
    if let Some((endpoint, options)) = push_options(settings) {
        let result = Pusher::check(&options).map_err(anyhow::Error::new);
        found.take("push", result.map(|()| format!("profiles can be sent to `{endpoint}`")));
        if settings.profile.hertz == 0 {
            let text =
                "there are no profiles to send\nhint: `profile.hertz` is 0; set it to a frequency";
            found.add(Level::Warning, "push", text);
        }
    }
    if !settings.insight.enabled {
        return;
    }
    if let Some((endpoint, options)) = exporters::otlp(settings) {
        let result = Exporter::check(&options).map_err(anyhow::Error::new);
        found.take("otlp", result.map(|()| format!("`{endpoint}` can be used")));
    }
    if let Some(at) = &settings.insight.pinba_listen {
        match UdpSocket::bind((&*at.host, at.port)) {
            Ok(_) => found.add(Level::Ok, "pinba", format!("packets can be received on `{at}`")),
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
                let text = format!("`{at}` (UDP) is in use, probably by a running server");
                found.add(Level::Warning, "pinba", text);
            }
            Err(error) => {
                let text = format!("packets cannot be received on `{at}` (UDP): {error}");
                found.add(Level::Error, "pinba", text);
            }
        }
    }
}

fn look_at_worker(settings: &Settings, found: &mut Report) {
    let program = samovar_config::locate_php(settings).map_err(anyhow::Error::new);
    let worker = program.and_then(|file| {
        let version = binary::version(&file)?;
        look_at_engine(settings, &file, found);
        look_at_start(settings, &file, found);
        look_at_sandbox(settings, &file, found);
        Ok(format!("`{}` runs PHP {version}", file.display()))
    });
    found.take("worker", worker);
}

fn look_at_engine(settings: &Settings, program: &Path, found: &mut Report) {
    match engine::examine(settings, program) {
        Ok(None) => {}
        Ok(Some(examined)) => match examined.outdated {
            None => found.add(Level::Ok, "engine", examined.text),
            Some(why) => {
                found.add(Level::Warning, "engine", format!("{}, but {why}", examined.text));
            }
        },
        Err(error) => found.add(Level::Error, "engine", format!("{error:#}")),
    }
}

/// Checks the settings with which PHP would start.
fn look_at_start(settings: &Settings, program: &Path, found: &mut Report) {
    let question = PhpQuestion::new(settings.php_ini.as_deref(), &settings.php);
    let environment = engine::environment(settings.php_engine.as_deref());
    // If PHP does not start, the check of the worker reports the reason.
    let said = binary::ask(program, &question.arguments(), environment.as_ref(), "see its output");
    let response = said.as_deref().map(PhpResponse::of).unwrap_or_default();
    if let Some(mode) = response.jit {
        found.add(Level::Warning, "jit", jit_warning(&mode));
    }
    if let Some(folder) = response.sessions {
        look_at_sessions(&folder, found);
    }
}

/// Checks the session settings of php.ini and of the server. An application may override them.
fn look_at_sessions(folder: &str, found: &mut Report) {
    let usable = access(folder, Access::WRITE_OK | Access::EXEC_OK);
    let (level, text) = match usable.and_then(|()| statfs(folder)) {
        Err(error) => (
            Level::Warning,
            format!(
                "this user cannot write to `{folder}`: {error}; session_start() would fail\nhint: \
                 create the folder for this user, or set `session.save_path` to another one"
            ),
        ),
        Ok(at) if WRITING_AT_ONCE.contains(&(at.f_type.cast_unsigned() & 0xFFFF_FFFF)) => (
            Level::Ok,
            format!(
                "files in `{folder}`, on a disk\nhint: each request that changes its session \
                 causes a synchronous disk write; with `session.save_path` on a tmpfs (below \
                 /run) a Symfony page took two thirds of the CPU time. On a tmpfs, sessions are \
                 lost at a restart of the machine"
            ),
        ),
        Ok(_) => (Level::Ok, format!("files in `{folder}`")),
    };
    found.add(level, "sessions", text);
}

/// Checks a pool's own settings.
fn look_at_pool(pool: &Pool, found: &mut Report) {
    let mut own = Report::default();
    look_at_root(&pool.settings, &mut own);
    let usable = ValidSettings::new(pool.settings.clone()).map_err(anyhow::Error::new);
    if let Err(error) = usable {
        own.add(Level::Error, "root", format!("{error:#}"));
    }
    if let Err(error) = publish::read(&pool.settings) {
        own.add(Level::Error, "published", format!("{error:#}"));
    }
    look_at_worker(&pool.settings, &mut own);
    let matches: Vec<String> =
        pool.hosts.iter().chain(&pool.paths).map(|text| format!("`{text}`")).collect();
    let name = &pool.name;
    let work = match &pool.queue {
        Some(_) => "runs the jobs of its queue".to_owned(),
        None => format!("serves the requests of {}", matches.join(", ")),
    };
    found.add(Level::Ok, "pool", format!("`{name}` {work}"));
    for Finding { level, text, hint, .. } in own.findings {
        found.findings.push(Finding {
            level,
            about: "pool",
            text: format!("`{name}`: {text}"),
            hint,
        });
    }
    for obstacle in rights::obstacles(&pool.settings, None) {
        found.add(Level::Error, "pool", format!("`{name}`: this user {obstacle}"));
    }
}

fn look_at_root(settings: &Settings, found: &mut Report) {
    let root = settings.root.display();
    match &settings.front_controller {
        None => found.add(
            Level::Warning,
            "root",
            format!(
                "`{root}` has no index.php: only its files and scripts are served\nhint: pass \
                     the folder or the .php file of the front controller"
            ),
        ),
        Some(file) if file.metadata().is_ok_and(|found| found.len() == 0) => {
            found.add(
                Level::Warning,
                "root",
                format!("the front controller `{}` is empty", file.display()),
            );
        }
        Some(file) => {
            let text = format!("`{root}`; `{}` serves all paths without a file", file.display());
            found.add(Level::Ok, "root", text);
            look_at_boot(settings, file, found);
        }
    }
}

/// Checks whether the front controller reads a request above its checkpoint.
fn look_at_boot(settings: &Settings, file: &Path, found: &mut Report) {
    let is_intended = |name: &str| {
        let listed = |entry: &String| entry == name || file.ends_with(entry);
        settings.boot_reads.iter().any(listed)
    };
    if settings.disable_checkpoint {
        return;
    }
    for BootRead { name, line } in boot_reads::of_file(file) {
        if !is_intended(&name) {
            let text = format!(
                "`{}` reads {name} in line {line}, where the boot has no request\nhint: read it \
                 after the checkpoint, or name it in `boot_reads` if this is intended",
                file.display()
            );
            found.add(Level::Warning, "boot", text);
        }
    }
}

/// Checks the logs of the server and of requests.
fn look_at_logs(settings: &Settings, found: &mut Report) {
    let insight = &settings.insight;
    let logs = [
        ("log", &settings.log),
        ("access log", &settings.access_log),
        ("slow log", &insight.slow_log),
    ];
    for (what, socket) in logs.iter().filter_map(|(what, log)| Some((what, log.socket()?))) {
        let listens = UnixDatagram::unbound().and_then(|own| own.connect(socket));
        found.take(
            what,
            match listens {
                Ok(()) => Ok(format!("a daemon listens on `{}`", socket.display())),
                Err(error) => Err(anyhow::anyhow!(
                    "no daemon listens on `{}`: {error}\nhint: start rsyslog, syslog-ng or \
                 systemd-journald",
                    socket.display()
                )),
            },
        );
    }
    let files = logs.iter().filter_map(|(what, log)| Some((*what, log.file()?)));
    for (what, path) in files.chain(insight.store.as_deref().map(|path| ("history", path))) {
        let folder = path.parent().unwrap_or(path);
        let is_there = path.exists();
        let place = if is_there { path } else { folder };
        let rights = if is_there { Access::WRITE_OK } else { Access::WRITE_OK | Access::EXEC_OK };
        found.take(what, can(place, rights, &format!("`{}` is writable", path.display())));
    }
}

fn look_at_sandbox(settings: &Settings, program: &Path, found: &mut Report) {
    let sandbox = sandbox(settings, program);
    if sandbox.is_on() {
        let checked = sandbox.check().map_err(|error| anyhow::anyhow!(error));
        return found.take("sandbox", checked.map(|()| "the kernel supports its rules".to_owned()));
    }
    if sandbox.isolate_processes && (!settings.no_new_privileges || sandbox.fence().is_err()) {
        found.add(
            Level::Warning,
            "sandbox",
            "PHP can read the memory of all processes of its user, including the workers of other \
             pools (the server's own memory is protected). The protection needs Landlock (Linux \
             5.19) and `no_new_privileges`\nhint: set kernel.yama.ptrace_scope=1, or accept the \
             risk with `sandbox.isolate_processes = false`",
        );
    }
}

fn look_at_control(settings: &Settings, found: &mut Report) {
    let Some(path) = &settings.control else { return };
    if UnixStream::connect(path).is_ok() {
        let text = format!("a server already listens on `{}`", path.display());
        return found.add(Level::Warning, "control", text);
    }
    let folder = path.parent().unwrap_or(path);
    let text = format!("`{}` can be created", path.display());
    found.take("control", can(folder, Access::WRITE_OK | Access::EXEC_OK, &text));
}

fn can(place: &Path, rights: Access, text: &str) -> Result<String> {
    match access(place, rights) {
        Ok(()) => Ok(text.to_owned()),
        Err(error) => {
            let reason = std::io::Error::from(error).kind();
            let hint = "make it writable for the server's user";
            anyhow::bail!("cannot write `{}`: {reason}\nhint: {hint}", place.display())
        }
    }
}
