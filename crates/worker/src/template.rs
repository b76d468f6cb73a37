//! The template process: starts PHP once, forks workers on the supervisor's orders, and reports
//! their deaths.
//!
//! Its messages are declared in crates/channel. The supervisor pings the template about once a
//! second, and the template pings the image process in the same way. A process that is still
//! starting is not pinged: only a process that waits for orders must respond. When the supervisor
//! closes the channel, the template stops its workers and ends.
//!
//! Workers that boot the application are forked by the image process (image.rs), which is started
//! for the first of them. Its first message decides how the others are made.

use crate::boundary;
use crate::console::Console;
use crate::image::{self, ImageProcess};
use crate::life::{self, Wish};
use crate::log;
use crate::options::Inherited;
use crate::php_options::PhpOptions;
use crate::{engine, ini, jobs, loads, os, relinking, shared, tracing, warmup};
use nix::sys::signalfd::SignalFd;
use samovar_channel::{
    Boots, ConsoleOrder, Engine, Event, Heard, ImageOrder, ImageWord, Opcache, Order, PhpSetup,
    Role, TemplateEnd, TemplateImageEnd, WorkerId, pair,
};
use samovar_published::Region;
use samovar_ring::Ring;
use samovar_shared::Shared;
use std::collections::{HashMap, HashSet, VecDeque};
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::time::{Duration, Instant};

/// Delay before the next try after a failed boot.
const RETRY: Duration = Duration::from_secs(5);
/// Minimum time between two looks at opcache's figures.
const OPCACHE_PAUSE: Duration = Duration::from_secs(1);

/// Starts PHP and serves the supervisor until it closes the channel.
pub(crate) fn run(inherited: Inherited) -> Result<(), Box<dyn std::error::Error>> {
    let Inherited { channel, parent, ring, notifiers, shared, published, publishing, .. } =
        inherited;
    let engine = engine::settle(inherited.options.engine.as_deref())?;
    let (traces, loads, options) = (inherited.traces, inherited.loads, inherited.options);
    log::use_json(options.json_log);
    log::name(&options.pool);
    if options.is_idle {
        os::use_idle_cpus();
    }
    os::die_with_parent(parent);
    os::close_on_exec(&channel);
    let kept: Vec<_> =
        [&ring, &shared, &published, &publishing].into_iter().chain(&notifiers).collect();
    kept.iter().for_each(os::close_on_exec);
    let mut fds: Vec<_> = kept.iter().map(|fd| fd.as_raw_fd()).collect();
    fds.push(channel.as_raw_fd());
    if let Some(traces) = traces {
        os::close_on_exec(&traces);
        fds.push(traces.as_raw_fd());
        tracing::begin(traces);
    }
    if let Some(loads) = loads {
        os::close_on_exec(&loads);
        fds.push(loads.as_raw_fd());
        loads::begin(loads);
    }
    if let Some(jobs) = inherited.jobs {
        os::close_on_exec(&jobs);
        fds.push(jobs.as_raw_fd());
        jobs::begin(jobs);
    }
    os::close_others(&fds);
    os::stdout_to_stderr();
    let ring = Ring::attach(ring, notifiers)?;
    shared::attach(Shared::attach(shared)?, Region::attach(published)?, publishing);
    let app = options.app.as_deref();
    let is_told = options.frankenphp && app.is_some();
    let frankenphp_worker = is_told || app.is_some_and(is_frankenphp_worker);
    let wants_boot =
        options.checkpoint_after.is_some() || frankenphp_worker || app.is_some_and(boots_ahead);
    let boots = wants_boot && options.boots != Boots::Never;
    warmup::prepare(&options);
    boundary::php_startup(PhpOptions::new(&options, frankenphp_worker)?)?;
    warn_of_unknown(options.define.keys());
    if let Some(mode) = boundary::jit() {
        log::write(&format!("PHP Samovar: {}", samovar_channel::jit_warning(&mode)), "");
    }
    let (loaded, built) = (boundary::php_version(), boundary::php_built_for());
    if loaded != built {
        // The engine's structs changed inside 8.2.x: running on would corrupt memory.
        return Err(format!(
            "built for PHP {built}, but libphp is {loaded}\nhint: rebuild samovar-php for this PHP"
        )
        .into());
    }
    os::reset_rust_signal_handlers();
    if tracing::is_on() && !tracing::calibrate() {
        log::write(
            "PHP Samovar: cannot measure the overhead of tracing; call graphs include it",
            "",
        );
    }
    let linking = relinking::relink(options.relink);
    let children = os::block_sigchld()?;
    let workers = HashMap::new();
    let mut template = Template {
        prewarm_boot: options.boots == Boots::Rehearsed,
        channel,
        children,
        ring,
        workers,
        consoles: HashSet::new(),
        image: if options.boots == Boots::Never { Image::Script } else { Image::None },
        waiting: VecDeque::new(),
        image_pid: 0,
        opcache: None,
        opcache_at: None,
    };
    let engine = engine.map(|facts| Engine {
        file: facts.file.to_string_lossy().into_owned(),
        source: facts.source,
    });
    template.send(&Event::Ready { php: loaded, resident: boots, linking, engine })?;
    let text = |path: &Path| path.to_str().map(str::to_owned).unwrap_or_default();
    let (root, script) = (text(&options.root), app.map(text).unwrap_or_default());
    let setup = PhpSetup { root, script, ..boundary::setup() };
    template.send(&Event::Php(setup.bounded()))?;
    template.serve()?;
    boundary::php_shutdown();
    Ok(())
}

/// A worker to be forked, and its output, if it differs from that of this process.
type Waiting = (WorkerId, Option<OwnedFd>);

/// Logs a warning for directives that PHP does not know. Such a directive has no effect: it is
/// mistyped, or its extension is not loaded. A script may still read it with `get_cfg_var()`, so it
/// is not an error.
fn warn_of_unknown<'a>(names: impl Iterator<Item = &'a String>) {
    for name in names.filter(|name| ini::is_kept(name)) {
        let is_known = CString::new(name.as_str()).is_ok_and(|name| boundary::has_directive(&name));
        if !is_known {
            let text = format!(
                "PHP Samovar: no loaded extension knows the directive `{name}`; only \
                 get_cfg_var() sees it"
            );
            log::write(&text, "");
        }
    }
}

/// The way in which workers that boot the application are made.
enum Image {
    /// No such worker was requested yet.
    None,
    /// The image process boots; workers wait for it.
    Booting { pid: i32, channel: TemplateImageEnd, looks: u32 },
    /// The image process forks booted workers.
    Ready { pid: i32, channel: TemplateImageEnd, unanswered: u32, handed: VecDeque<WorkerId> },
    /// Each worker boots the application itself.
    PerWorker,
    /// Workers run whole scripts: there can be no image.
    Script,
    /// Workers run whole scripts until the next try.
    Failed { since: Instant },
}

struct Template {
    channel: TemplateEnd,
    children: SignalFd,
    ring: Ring,
    workers: HashMap<i32, WorkerId>,
    consoles: HashSet<i32>,
    image: Image,
    /// Workers that wait for an image process that boots.
    waiting: VecDeque<Waiting>,
    prewarm_boot: bool,
    /// The last image process, whose death is logged.
    image_pid: i32,
    /// Figures of opcache that the supervisor has, and the time of the last look.
    opcache: Option<Opcache>,
    opcache_at: Option<Instant>,
}

impl Template {
    fn serve(&mut self) -> io::Result<()> {
        loop {
            let image = match &self.image {
                Image::Booting { channel, .. } | Image::Ready { channel, .. } => {
                    Some(channel.as_fd())
                }
                _ => None,
            };
            let fds = [Some(self.channel.as_fd()), Some(self.children.as_fd()), image];
            let [message, child, verdict] = os::wait_for_any(fds)?;
            match &self.image {
                Image::Ready { .. } if verdict => self.hear_pong(),
                _ if verdict => self.hear_image()?,
                _ => {}
            }
            if child {
                os::drain(&self.children);
                self.reap()?;
            }
            if message {
                match self.channel.hear()? {
                    Heard::Message(order, passed) => self.obey(order, passed)?,
                    Heard::Garbled(garbled) => {
                        log::write(&format!("samovar-php: unknown message: {garbled}"), "");
                    }
                    Heard::End => return Ok(()),
                }
            }
        }
    }

    fn obey(&mut self, order: Order, passed: Option<OwnedFd>) -> io::Result<()> {
        match order {
            Order::Fork { worker, role: Role::Boot } => self.fork_booted(worker, passed),
            Order::Fork { worker, role } => self.fork(worker, role, passed),
            Order::Console(order) => self.fork_console(order, passed),
            Order::Ping { looks, boot_looks } => {
                self.ping_image(looks);
                self.look_at_boot(boot_looks);
                self.report_opcache()?;
                self.send(&Event::Pong)
            }
        }
    }

    /// Sends the figures of opcache if they have changed. All processes of the generation share
    /// its memory, which the template has created, and only the template has no request that this
    /// delays.
    fn report_opcache(&mut self) -> io::Result<()> {
        if self.opcache_at.is_some_and(|at| at.elapsed() < OPCACHE_PAUSE) {
            return Ok(());
        }
        self.opcache_at = Some(Instant::now());
        match boundary::opcache() {
            Some(opcache) if self.opcache != Some(opcache) => {
                self.opcache = Some(opcache);
                self.send(&Event::Opcache(opcache))
            }
            _ => Ok(()),
        }
    }

    fn own_descriptors(&self) -> Vec<RawFd> {
        let image = match &self.image {
            Image::Booting { channel, .. } | Image::Ready { channel, .. } => Some(channel),
            _ => None,
        };
        let notifiers = self.ring.notifiers().map(|notifier| notifier.as_raw_fd());
        let ring = std::iter::once(self.ring.file().as_raw_fd()).chain(notifiers);
        let own = [self.channel.as_raw_fd(), self.children.as_raw_fd()];
        own.into_iter()
            .chain(ring)
            .chain(tracing::socket().map(AsRawFd::as_raw_fd))
            .chain(loads::socket().map(AsRawFd::as_raw_fd))
            .chain(jobs::socket().map(AsRawFd::as_raw_fd))
            .chain(image.map(AsRawFd::as_raw_fd))
            .chain(self.outputs_of_others())
            .collect()
    }

    /// Returns the pipes of workers that are still to be forked.
    fn outputs_of_others(&self) -> impl Iterator<Item = RawFd> {
        self.waiting.iter().filter_map(|(_, output)| output.as_ref().map(AsRawFd::as_raw_fd))
    }

    fn fork_console(&mut self, order: ConsoleOrder, output: Option<OwnedFd>) -> io::Result<()> {
        let life = order.life;
        let failed = |why: String| Event::ConsoleFailed { life, why };
        let Some(output) = output else {
            return self.send(&failed("the order contains no pipe for its output".into()));
        };
        let console = match Console::try_from(order) {
            Ok(console) => console,
            Err(error) => return self.send(&failed(error.to_string())),
        };
        let parent = os::own_pid();
        // SAFETY: the process has one thread, so the child may continue as an ordinary process.
        match unsafe { libc::fork() } {
            -1 => self.send(&failed(io::Error::last_os_error().to_string())),
            0 => console.run(parent, &output, &self.own_descriptors()),
            pid => {
                self.consoles.insert(pid);
                self.send(&Event::ConsoleForked { life, pid })
            }
        }
    }

    fn fork_booted(&mut self, worker: WorkerId, output: Option<OwnedFd>) -> io::Result<()> {
        if let Image::Failed { since } = self.image
            && since.elapsed() > RETRY
        {
            self.image = Image::None;
        }
        match &mut self.image {
            Image::None => {
                self.waiting.push_back((worker, output));
                self.start_image()?;
            }
            Image::Booting { .. } => self.waiting.push_back((worker, output)),
            Image::Ready { channel, handed, .. } => {
                let output = output.as_ref().map(AsFd::as_fd);
                // The image process may be dying or stopped. That will be noticed, and this order
                // fails with it.
                if channel.send_now(&ImageOrder::Fork { worker }, output).is_err() {
                    let why = "the image process accepts no order".to_owned();
                    self.send(&Event::Failed { worker, why })?;
                } else {
                    handed.push_back(worker);
                }
            }
            Image::PerWorker => self.fork(worker, Role::Boot, output)?,
            Image::Script | Image::Failed { .. } => {
                self.fork(worker, Role::Any, output)?;
            }
        }
        Ok(())
    }

    fn start_image(&mut self) -> io::Result<()> {
        let (ours, theirs): (TemplateImageEnd, _) = pair()?;
        let parent = os::own_pid();
        // SAFETY: the process has one thread, so the child may continue as an ordinary process.
        match unsafe { libc::fork() } {
            -1 => {
                self.image = Image::Failed { since: Instant::now() };
                self.fork_waiting()?;
            }
            0 => {
                os::die_with_parent(parent);
                os::close(self.children.as_raw_fd());
                self.outputs_of_others().for_each(os::close);
                drop(ours);
                let supervisor = self.channel.try_clone()?;
                os::close(self.channel.as_raw_fd());
                let ring = self.ring.clone();
                image::run(ImageProcess { template: theirs, supervisor, ring }, self.prewarm_boot);
            }
            pid => {
                self.image_pid = pid;
                self.image = Image::Booting { pid, channel: ours, looks: 0 };
            }
        }
        Ok(())
    }

    /// Reads the first message of the image process, or the end of its channel.
    fn hear_image(&mut self) -> io::Result<()> {
        let Image::Booting { pid, channel, .. } = std::mem::replace(&mut self.image, Image::None)
        else {
            return Ok(());
        };
        self.image = match channel.hear()? {
            Heard::Message(ImageWord::Ready, _) => {
                Image::Ready { pid, channel, unanswered: 0, handed: VecDeque::new() }
            }
            Heard::Message(ImageWord::BootPerWorker, _) => Image::PerWorker,
            Heard::Message(ImageWord::Script, _) => Image::Script,
            Heard::Message(..) | Heard::Garbled(_) | Heard::End => {
                log::write(
                    "PHP Samovar: the front controller's boot ended without Samovar\\serve(), \
                     Samovar\\checkpoint() or frankenphp_handle_request(); requests run the whole \
                     script",
                    "",
                );
                self.send(&Event::BootFailed)?;
                Image::Failed { since: Instant::now() }
            }
        };
        self.fork_waiting()?;
        if matches!(self.image, Image::Ready { .. }) {
            // From now on this process only passes orders on, and does not need these pages.
            let _ = os::release_clean_pages();
        }
        Ok(())
    }

    /// Pings the image process. `looks` is the number of pings that may remain unanswered; 0
    /// disables the check.
    fn ping_image(&mut self, looks: u32) {
        let Image::Ready { pid, channel, unanswered, .. } = &mut self.image else { return };
        if looks == 0 {
            return;
        }
        if *unanswered >= looks {
            log::write("PHP Samovar: no heartbeat of the image process, killing it", "");
            os::kill(*pid);
            *unanswered = 0;
        }
        *unanswered += 1;
        // If its queue is full, it has enough pings to respond to.
        let _ = channel.send_now(&ImageOrder::Ping, None);
    }

    /// Kills an image process that has booted for more than `limit` looks. 0: there is no limit.
    /// The rest follows from the end of its channel.
    fn look_at_boot(&mut self, limit: u32) {
        let Image::Booting { pid, looks, .. } = &mut self.image else { return };
        *looks += 1;
        if limit > 0 && *looks > limit {
            log::write("PHP Samovar: the application did not boot in time, killing it", "");
            os::kill(*pid);
        }
    }

    fn hear_pong(&mut self) {
        let Image::Ready { pid, channel, unanswered, handed } = &mut self.image else {
            return;
        };
        match channel.hear() {
            Ok(Heard::Message(ImageWord::Done, _)) => {
                *unanswered = 0;
                handed.pop_front();
            }
            Ok(Heard::Message(..) | Heard::Garbled(_)) => *unanswered = 0,
            // The image process has ended, which `reap` will see, or it has closed its channel and
            // is of no use.
            Ok(Heard::End) | Err(_) => os::kill(*pid),
        }
    }

    /// Forks the waiting workers, now that the state of the image process is known.
    fn fork_waiting(&mut self) -> io::Result<()> {
        for _ in 0..self.waiting.len() {
            if let Some((worker, output)) = self.waiting.pop_front() {
                self.fork_booted(worker, output)?;
            }
        }
        Ok(())
    }

    fn fork(&mut self, worker: WorkerId, role: Role, output: Option<OwnedFd>) -> io::Result<()> {
        let parent = os::own_pid();
        // SAFETY: the process has one thread, so the child may continue as an ordinary process.
        match unsafe { libc::fork() } {
            -1 => {
                let why = io::Error::last_os_error().to_string();
                self.send(&Event::Failed { worker, why })
            }
            0 => {
                os::print_there(output);
                self.become_worker(parent, worker, role)
            }
            pid => {
                self.workers.insert(pid, worker);
                self.send(&Event::Forked { worker, pid })
            }
        }
    }

    fn become_worker(&self, parent: i32, me: WorkerId, role: Role) -> ! {
        os::die_with_parent(parent);
        // This process leaves through `_exit` and never drops the owners.
        for fd in [self.channel.as_raw_fd(), self.children.as_raw_fd()] {
            os::close(fd);
        }
        self.outputs_of_others().for_each(os::close);
        let wish = match &self.image {
            Image::Script => Wish::Never,
            Image::Failed { .. } => Wish::BootAheadLater,
            Image::Booting { channel, .. } | Image::Ready { channel, .. } => {
                os::close(channel.as_raw_fd());
                Wish::BootAhead
            }
            Image::None | Image::PerWorker => Wish::BootAhead,
        };
        os::unblock_signals();
        life::run(self.ring.clone(), me, role, wish);
        boundary::php_shutdown();
        // SAFETY: ends the process; destructors of the template's copies must not run here.
        unsafe { libc::_exit(0) }
    }

    fn reap(&mut self) -> io::Result<()> {
        while let Some((pid, status)) = os::reap() {
            if self.consoles.remove(&pid) {
                self.send(&Event::ConsoleDied { pid, status })?;
            }
            if let Some(worker) = self.workers.remove(&pid) {
                self.send(&Event::Died { worker, pid, status })?;
            }
            if pid == self.image_pid && libc::WIFSIGNALED(status) {
                let signal = libc::WTERMSIG(status);
                let text =
                    format!("PHP Samovar: the application's boot was killed by signal {signal}");
                log::write(&text, "");
            }
            // Its workers die with it; the supervisor reaps them and orders others. The end of an
            // image process that boots is noticed by the end of its channel.
            if let Image::Ready { pid: image, handed, .. } = &mut self.image
                && *image == pid
            {
                let undone = std::mem::take(handed);
                self.image = Image::None;
                log::write(
                    "PHP Samovar: the image process died; the application is booted again",
                    "",
                );
                for worker in undone {
                    let why = "the image process died".to_owned();
                    self.send(&Event::Failed { worker, why })?;
                }
            }
        }
        Ok(())
    }

    fn send(&self, event: &Event) -> io::Result<()> {
        self.channel.send(event)
    }
}

/// Returns true if workers must boot the front controller before their first request: its own text
/// calls or imports `Samovar\serve`, `Samovar\checkpoint` or `Samovar\consume`, or the equivalent
/// of the Composer package. If the call is in an included file, the first request detects it.
fn boots_ahead(app: &Path) -> bool {
    let text = script_text(app);
    names(&text, b"samovar\\serve")
        || names(&text, b"samovar\\checkpoint")
        || names(&text, b"samovar\\consume")
        || mentions(&text, b"samovar\\runtime\\")
        || mentions(&text, b"spiral\\roadrunner\\")
        || (mentions(&text, b"autoload_runtime.php") && runtime_is(b"samovar\\runtime\\"))
}

/// Returns true if the front controller is a worker script for `FrankenPHP`. Its text calls
/// `frankenphp_handle_request`, or includes a file that does (Laravel Octane's worker; Symfony's
/// runtime of php-runtime), or the environment sets `FRANKENPHP_WORKER`.
fn is_frankenphp_worker(app: &Path) -> bool {
    let text = script_text(app);
    let says_so = std::env::var_os("FRANKENPHP_WORKER").is_some_and(|v| !v.is_empty() && v != "0");
    says_so
        || names(&text, b"frankenphp_handle_request")
        || mentions(&text, b"octane/bin/frankenphp-worker.php")
        || (mentions(&text, b"autoload_runtime.php") && runtime_is(b"runtime\\frankenphpsymfony\\"))
}

/// Returns the front controller's own text. Empty if it cannot be read, or is too long to be
/// searched.
fn script_text(app: &Path) -> Vec<u8> {
    const SCRIPT_BYTES_MAX: u64 = 1 << 20;
    let small = std::fs::metadata(app).is_ok_and(|m| m.len() <= SCRIPT_BYTES_MAX);
    if small { std::fs::read(app).unwrap_or_default() } else { Vec::new() }
}

/// Returns true if the text contains the name. The functions of the Composer package call `serve`
/// or `checkpoint`.
fn mentions(text: &[u8], name: &[u8]) -> bool {
    text.windows(name.len()).any(|part| part.eq_ignore_ascii_case(name))
}

/// Checks the variable from which Symfony's runtime component takes the class that runs the
/// application.
fn runtime_is(namespace: &[u8]) -> bool {
    std::env::var("APP_RUNTIME")
        .is_ok_and(|class| mentions(class.trim_start_matches('\\').as_bytes(), namespace))
}

fn names(text: &[u8], name: &[u8]) -> bool {
    (0..text.len().saturating_sub(name.len())).any(|at| {
        let (found, rest) = text[at..].split_at(name.len());
        let rest = rest.trim_ascii_start();
        found.eq_ignore_ascii_case(name)
            && [&b"("[..], b";", b"as "].iter().any(|next| rest.starts_with(next))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_or_import_of_serve_is_detected() {
        for text in [
            "<?php Samovar\\serve(fn () => 1);",
            "<?php \\samovar\\Serve (fn () => 1);",
            "<?php use function Samovar\\serve; serve(fn () => 1);",
            "<?php use function Samovar\\serve as run;",
        ] {
            assert!(names(text.as_bytes(), b"samovar\\serve"), "{text}");
        }
        for text in
            ["", "<?php echo 'Samovar\\serve';", "samovar\\serve", "<?php Samovar\\server(1);"]
        {
            assert!(!names(text.as_bytes(), b"samovar\\serve"), "{text}");
        }
    }

    #[test]
    fn frankenphp_worker_script_is_detected() {
        let is_worker = |text: &str| {
            let folder = std::env::temp_dir();
            let file = folder.join(format!("samovar-worker-script-{}.php", std::process::id()));
            std::fs::write(&file, text).expect("a temporary file");
            let found = is_frankenphp_worker(&file);
            std::fs::remove_file(&file).expect("our own file");
            found
        };
        for text in [
            "<?php while (frankenphp_handle_request($handler)) {}",
            "<?php do { $on = \\FrankenPHP_handle_request ($h); } while ($on);",
            "<?php require __DIR__.'/../vendor/laravel/octane/bin/frankenphp-worker.php';",
        ] {
            assert!(is_worker(text), "{text}");
        }
        for text in
            ["", "<?php function_exists('frankenphp_handle_request');", "<?php frankenphp_log('');"]
        {
            assert!(!is_worker(text), "{text}");
        }
    }
}
