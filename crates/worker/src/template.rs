//! The template process: starts PHP once, forks a worker when told to, says when one has died.
//!
//! Messages are one text datagram each over a `SOCK_SEQPACKET` pair:
//! `fork INDEX INCARNATION any|boot|script` comes in; `ready VERSION MODEL`, `forked INDEX INCARNATION PID`,
//! `died INDEX INCARNATION PID STATUS`, `failed INDEX INCARNATION ERROR` and `boot-failed` go out, and from the image process
//! `image MODE BYTES REGIONS BOOT_US` and `finding KIND ACTION WHAT WHERE ADVICE` (separated by tabs).
//! Console workers: `console LIFE NAME NUMBER FOLDER SCRIPT ARGUMENT …` (separated by zero bytes, with the pipe for the output)
//! comes in; `console-forked LIFE PID`, `console-failed LIFE ERROR` and `console-died PID STATUS` go out. The channel's
//! end is the end of the template: it stops its workers and leaves.
//!
//! Workers that boot the application are forked by the image process (image.rs), which is started for the first of
//! them; what it says of itself decides how the others come about.

use crate::boundary::{self, PhpOptions};
use crate::console::Order;
use crate::image::{self, ImageProcess, Verdict};
use crate::life::{self, Role, Wish};
use crate::log;
use crate::options::{Compat, Options};
use crate::{os, warmup};
use samovar_ring::{Incarnation, Ring};
use std::collections::{HashMap, HashSet};
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

/// After a boot that failed, the next is tried this much later.
const RETRY: Duration = Duration::from_secs(5);

/// Starts PHP and serves the supervisor until it closes the channel.
pub(crate) fn run(options: Options) -> Result<(), Box<dyn std::error::Error>> {
    log::use_json(options.json_log);
    os::die_with_parent();
    for fd in [&options.channel, &options.ring, &options.bell] {
        os::close_on_exec(fd);
    }
    os::close_others(&[&options.channel, &options.ring, &options.bell].map(AsRawFd::as_raw_fd));
    os::stdout_to_stderr();
    let ring = Ring::attach(options.ring, options.bell)?;
    let is_told = options.compat == Compat::FrankenPhp && !options.app.is_empty();
    let frankenphp_worker = is_told || is_frankenphp_worker(&options.app);
    let boots =
        !options.checkpoint_after.is_empty() || frankenphp_worker || boots_ahead(&options.app);
    warmup::prepare(&options.warmup, &options.app, &options.root);
    boundary::php_startup(PhpOptions {
        ini_file: options.php_ini.map(CString::new).transpose()?,
        ini_entries: CString::new(options.ini_entries)?,
        app: CString::new(options.app)?,
        root: CString::new(options.root)?,
        checkpoint_after: CString::new(options.checkpoint_after)?,
        growth_bytes_max: options.growth_bytes_max,
        rollback_every: options.rollback_every,
        frankenphp_worker,
        log_debug: options.debug_log,
    })?;
    let (loaded, built) = (boundary::php_version(), boundary::php_built_for());
    if loaded != built {
        // The engine's structs changed inside 8.2.x: running on would corrupt memory.
        return Err(format!(
            "built for PHP {built}, but libphp is {loaded}\nhint: rebuild samovar-php for this PHP"
        )
        .into());
    }
    os::reset_rust_signal_handlers();
    let children = os::block_sigchld()?;
    let model = if boots { "resident" } else { "script" };
    let workers = HashMap::new();
    let mut template = Template {
        rehearse: options.rehearse,
        channel: options.channel,
        children,
        ring,
        workers,
        consoles: HashSet::new(),
        image: Image::None,
        image_pid: 0,
    };
    template.send(&format!("ready {loaded} {model}"))?;
    template.serve()?;
    boundary::php_shutdown();
    Ok(())
}

/// How workers that boot the application come about.
enum Image {
    /// Nobody has asked for one yet.
    None,
    /// It boots; these workers wait for it.
    Booting { pid: i32, channel: OwnedFd, waiting: Vec<(usize, Incarnation)> },
    /// It forks them.
    Ready { pid: i32, channel: OwnedFd },
    /// Each boots by itself.
    PerWorker,
    /// They run whole scripts: there can be no image.
    Script,
    /// They run whole scripts, until the next try.
    Failed { since: Instant },
}

struct Template {
    channel: OwnedFd,
    children: OwnedFd,
    ring: Ring,
    workers: HashMap<i32, (usize, Incarnation)>,
    consoles: HashSet<i32>,
    image: Image,
    rehearse: bool,
    /// The last image process: its death is told.
    image_pid: i32,
}

impl Template {
    fn serve(&mut self) -> io::Result<()> {
        loop {
            let image = match &self.image {
                Image::Booting { channel, .. } => channel.as_raw_fd(),
                _ => -1,
            };
            let fds = [self.channel.as_raw_fd(), self.children.as_raw_fd(), image];
            let [message, child, verdict] = os::wait_for_any(fds)?;
            if verdict {
                self.hear_image()?;
            }
            if child {
                os::drain(self.children.as_raw_fd());
                self.reap()?;
            }
            if message {
                let Some((text, passed)) = os::receive_with(self.channel.as_fd())? else {
                    return Ok(());
                };
                self.obey(&text, passed)?;
            }
        }
    }

    fn obey(&mut self, text: &str, passed: Option<OwnedFd>) -> io::Result<()> {
        if let (Some(order), Some(output)) = (Order::parse(text), passed) {
            return self.fork_console(order, &output);
        }
        match life::parse_fork(text) {
            Some((index, me, Role::Boot)) => self.fork_booted(index, me),
            Some((index, me, role)) => self.fork(index, me, role),
            None => {
                log::write(&format!("samovar-php: unknown message `{text}`"), "");
                Ok(())
            }
        }
    }

    fn own_descriptors(&self) -> Vec<RawFd> {
        let image = match &self.image {
            Image::Booting { channel, .. } | Image::Ready { channel, .. } => Some(channel),
            _ => None,
        };
        let ring = [self.ring.file().as_raw_fd(), self.ring.bell().as_raw_fd()];
        let own = [self.channel.as_raw_fd(), self.children.as_raw_fd()];
        own.into_iter().chain(ring).chain(image.map(AsRawFd::as_raw_fd)).collect()
    }

    fn fork_console(&mut self, order: Order, output: &OwnedFd) -> io::Result<()> {
        let life = order.life;
        // SAFETY: the process has one thread, so that the child may go on as an ordinary process.
        match unsafe { libc::fork() } {
            -1 => {
                let error = io::Error::last_os_error();
                self.send(&format!("console-failed {life} {error}"))
            }
            0 => order.run(output, &self.own_descriptors()),
            pid => {
                self.consoles.insert(pid);
                self.send(&format!("console-forked {life} {pid}"))
            }
        }
    }

    fn fork_booted(&mut self, index: usize, me: Incarnation) -> io::Result<()> {
        if let Image::Failed { since } = self.image
            && since.elapsed() > RETRY
        {
            self.image = Image::None;
        }
        if matches!(self.image, Image::None) {
            self.start_image()?;
        }
        match &mut self.image {
            Image::Booting { waiting, .. } => waiting.push((index, me)),
            Image::Ready { channel, .. } => {
                let order = format!("fork {index} {} boot", me.get());
                // It may be dying: its end will be noticed, and this life ends with it.
                if os::send(channel.as_raw_fd(), &order).is_err() {
                    self.send(&format!("failed {index} {} the image process ended", me.get()))?;
                }
            }
            Image::PerWorker => self.fork(index, me, Role::Boot)?,
            Image::None | Image::Script | Image::Failed { .. } => {
                self.fork(index, me, Role::Any)?;
            }
        }
        Ok(())
    }

    fn start_image(&mut self) -> io::Result<()> {
        let (ours, theirs) = os::message_pair()?;
        // SAFETY: the process has one thread, so that the child may go on as an ordinary process.
        match unsafe { libc::fork() } {
            -1 => self.image = Image::Failed { since: Instant::now() },
            0 => {
                os::die_with_parent();
                os::close(self.children.as_raw_fd());
                drop(ours);
                let supervisor = self.channel.try_clone()?;
                os::close(self.channel.as_raw_fd());
                let ring = self.ring.clone();
                image::run(ImageProcess { template: theirs, supervisor, ring }, self.rehearse);
            }
            pid => {
                self.image_pid = pid;
                self.image = Image::Booting { pid, channel: ours, waiting: Vec::new() };
            }
        }
        Ok(())
    }

    /// The image process has said what it is, or has ended without a word.
    fn hear_image(&mut self) -> io::Result<()> {
        let Image::Booting { pid, channel, waiting } =
            std::mem::replace(&mut self.image, Image::None)
        else {
            return Ok(());
        };
        let word = os::receive(channel.as_raw_fd())?;
        self.image = match word.as_deref().and_then(Verdict::parse) {
            Some(Verdict::Ready) => Image::Ready { pid, channel },
            Some(Verdict::BootPerWorker) => Image::PerWorker,
            Some(Verdict::Script) => Image::Script,
            Some(Verdict::Failed) | None => {
                log::write(
                    "PHP Samovar: the front controller's boot ended without Samovar\\serve(), \
                     Samovar\\checkpoint() or frankenphp_handle_request(); requests run it whole",
                    "",
                );
                self.send("boot-failed")?;
                Image::Failed { since: Instant::now() }
            }
        };
        for (index, me) in waiting {
            self.fork_booted(index, me)?;
        }
        if matches!(self.image, Image::Ready { .. }) {
            // From now on this process only passes orders on. It works as well with its pages.
            let _ = os::release_clean_pages();
        }
        Ok(())
    }

    fn fork(&mut self, index: usize, me: Incarnation, role: Role) -> io::Result<()> {
        // SAFETY: the process has one thread, so that the child may go on as an ordinary process.
        match unsafe { libc::fork() } {
            -1 => {
                let error = io::Error::last_os_error();
                self.send(&format!("failed {index} {} {error}", me.get()))
            }
            0 => self.become_worker(index, me, role),
            pid => {
                self.workers.insert(pid, (index, me));
                self.send(&format!("forked {index} {} {pid}", me.get()))
            }
        }
    }

    fn become_worker(&self, index: usize, me: Incarnation, role: Role) -> ! {
        os::die_with_parent();
        // This process leaves through `_exit` and never drops the owners.
        for fd in [self.channel.as_raw_fd(), self.children.as_raw_fd()] {
            os::close(fd);
        }
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
        life::run(self.ring.clone(), index, me, role, wish);
        boundary::php_shutdown();
        // SAFETY: ends the process; destructors of the template's copies must not run here.
        unsafe { libc::_exit(0) }
    }

    fn reap(&mut self) -> io::Result<()> {
        while let Some((pid, status)) = os::reap() {
            if self.consoles.remove(&pid) {
                self.send(&format!("console-died {pid} {status}"))?;
            }
            if let Some((index, me)) = self.workers.remove(&pid) {
                self.send(&image::died(index, me, pid, status))?;
            }
            if pid == self.image_pid && libc::WIFSIGNALED(status) {
                let signal = libc::WTERMSIG(status);
                let text =
                    format!("PHP Samovar: the application's boot was killed by signal {signal}");
                log::write(&text, "");
            }
            // Its workers die with it; the supervisor reaps them, and asks for others. A booting one's channel
            // tells of its end by itself.
            if matches!(self.image, Image::Ready { pid: image, .. } if image == pid) {
                log::write(
                    "PHP Samovar: the image process died; the application is booted again",
                    "",
                );
                self.image = Image::None;
            }
        }
        Ok(())
    }

    fn send(&self, text: &str) -> io::Result<()> {
        os::send(self.channel.as_raw_fd(), text)
    }
}

/// Whether the front controller's own text calls or imports `Samovar\serve` or `Samovar\checkpoint`, or what the Composer
/// package has in their stead: then workers boot it before their first request. One that calls it from an included file is
/// found out by its first request.
fn boots_ahead(app: &str) -> bool {
    let text = script_text(app);
    names(&text, b"samovar\\serve")
        || names(&text, b"samovar\\checkpoint")
        || mentions(&text, b"samovar\\runtime\\")
        || mentions(&text, b"spiral\\roadrunner\\")
        || (mentions(&text, b"autoload_runtime.php") && runtime_is(b"samovar\\runtime\\"))
}

/// Whether the front controller is a worker script for `FrankenPHP`: its text calls `frankenphp_handle_request`, or
/// includes what does (Laravel Octane's worker; Symfony's runtime of php-runtime), or the environment says so.
fn is_frankenphp_worker(app: &str) -> bool {
    let text = script_text(app);
    let says_so = std::env::var_os("FRANKENPHP_WORKER").is_some_and(|v| !v.is_empty() && v != "0");
    says_so && !app.is_empty()
        || names(&text, b"frankenphp_handle_request")
        || mentions(&text, b"octane/bin/frankenphp-worker.php")
        || (mentions(&text, b"autoload_runtime.php") && runtime_is(b"runtime\\frankenphpsymfony\\"))
}

/// The front controller's own text; empty for none, and for one too long to be looked through.
fn script_text(app: &str) -> Vec<u8> {
    const SCRIPT_BYTES_MAX: u64 = 1 << 20;
    let small = std::fs::metadata(app).is_ok_and(|m| m.len() <= SCRIPT_BYTES_MAX);
    if small { std::fs::read(app).unwrap_or_default() } else { Vec::new() }
}

/// The Composer package's own functions call one of the two.
fn mentions(text: &[u8], name: &[u8]) -> bool {
    text.windows(name.len()).any(|part| part.eq_ignore_ascii_case(name))
}

/// Symfony's runtime component takes the class that runs the application from here.
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
    fn a_call_or_an_import_of_serve_is_seen() {
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
    fn a_worker_script_for_frankenphp_is_seen() {
        let is_worker = |text: &str| {
            let folder = std::env::temp_dir();
            let file = folder.join(format!("samovar-worker-script-{}.php", std::process::id()));
            std::fs::write(&file, text).expect("a temporary file");
            let found = is_frankenphp_worker(&file.to_string_lossy());
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
