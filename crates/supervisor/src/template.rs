//! The template process from the supervisor's side: its start, the orders to it, and its messages.

use crate::os;
use crate::settings::{ConsoleSettings, TemplateCommand};
use samovar_channel::{
    ConsoleOrder, Heard, Order, Role, Start, SupervisorEnd, TemplateEnd, WorkerId, pair,
};
use samovar_log::{Intake, Speaker};
use samovar_published::Publishing;
use samovar_ring::Ring;
use samovar_shared::Shared;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// A running template.
pub(crate) struct Template {
    pub(crate) pid: i32,
    channel: Option<SupervisorEnd>,
    /// Guard of its output pipe, which descendants without a pipe of their own use too.
    _speaker: Option<Speaker>,
}

impl Template {
    pub(crate) fn start(
        command: &TemplateCommand,
        (ring, shared, published): (&Ring, &Shared, &Publishing),
        intake: &Intake,
    ) -> io::Result<Template> {
        let (output, speaker) = intake.pipe()?;
        let (ours, theirs): (SupervisorEnd, TemplateEnd) = pair()?;
        let start = Start {
            parent: rustix::process::getpid().as_raw_pid(),
            channel: theirs.as_raw_fd(),
            ring: ring.file().as_raw_fd(),
            notifiers: ring.notifiers().map(|notifier| notifier.as_raw_fd()).collect(),
            shared: shared.file().as_raw_fd(),
            published: published.region().as_raw_fd(),
            publishing: published.socket().as_raw_fd(),
            traces: command.graphs.as_ref().map(AsRawFd::as_raw_fd),
            loads: command.loads.as_ref().map(AsRawFd::as_raw_fd),
            jobs: command.jobs.as_ref().map(AsRawFd::as_raw_fd),
            options: command.options.clone(),
        };
        let file = start.seal()?;
        let mut inherited = vec![
            start.channel,
            start.ring,
            start.shared,
            start.published,
            start.publishing,
            file.as_raw_fd(),
        ];
        inherited.extend(start.traces.into_iter().chain(start.loads).chain(start.jobs));
        inherited.extend(&start.notifiers);
        let mut process = Command::new(command.program.executable());
        process.arg0(command.program.path());
        process.args(start.arguments(&file));
        for (name, value) in &command.environment {
            match value {
                Some(value) => process.env(name, value),
                None => process.env_remove(name),
            };
        }
        // It gets its own process group: a terminal's Ctrl-C reaches only the supervisor, which
        // drains first.
        process.stdin(Stdio::null()).stdout(Stdio::null()).stderr(output).process_group(0);
        let rules = command.sandbox.rules()?;
        // If the kernel does not support it, `samovar check` reports that.
        let fence = command.sandbox.fence().unwrap_or_default();
        let confines = os::Confines {
            limits: command.limits,
            // The kernel accepts rules only from processes that cannot gain privileges.
            no_new_privileges: command.no_new_privileges || rules.is_some(),
            rules: rules.as_ref().map(AsRawFd::as_raw_fd),
            fence: fence.as_ref().map(AsRawFd::as_raw_fd),
        };
        // SAFETY: `prepare_exec` makes only async-signal-safe calls, and allocates nothing unless
        // it fails.
        unsafe { process.pre_exec(move || os::prepare_exec(&inherited, confines)) };
        // `os::reap` reaps it with all other children, so the handle is not kept.
        let child = process.spawn()?;
        let pid = i32::try_from(child.id()).map_err(|_| io::ErrorKind::InvalidData)?;
        Ok(Template { pid, channel: Some(ours), _speaker: Some(speaker) })
    }

    /// Returns our end of the channel, until it is closed.
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.channel.as_ref().map(AsFd::as_fd)
    }

    /// Orders a worker, which prints to `output`, or to the template's output.
    pub(crate) fn fork(
        &self,
        worker: WorkerId,
        role: Role,
        output: Option<&OwnedFd>,
    ) -> io::Result<()> {
        self.order(&Order::Fork { worker, role }, output)
    }

    /// Pings the template, which pings the image process in turn. The image process may leave
    /// `looks` pings without a reply, and `boot_looks` while it boots.
    pub(crate) fn ping(&self, looks: u32, boot_looks: u32) -> io::Result<()> {
        self.order(&Order::Ping { looks, boot_looks }, None)
    }

    /// Orders a console worker, which prints to `output`.
    pub(crate) fn start_console(
        &self,
        life: u32,
        number: usize,
        command: &ConsoleSettings,
        output: &OwnedFd,
    ) -> io::Result<()> {
        let order = Order::Console(ConsoleOrder {
            life,
            name: command.name.clone(),
            number,
            folder: command.folder.clone(),
            script: command.script.clone(),
            arguments: command.arguments.clone(),
        });
        self.order(&order, Some(output)).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidInput => {
                let text =
                    format!("command, script and folder exceed the size of a message: {error}");
                io::Error::new(io::ErrorKind::InvalidInput, text)
            }
            _ => error,
        })
    }

    fn order(&self, order: &Order, output: Option<&OwnedFd>) -> io::Result<()> {
        let channel = self.channel.as_ref().ok_or(io::ErrorKind::BrokenPipe)?;
        channel.send_now(order, output.map(AsFd::as_fd))
    }

    /// Whether the channel is closed, so that the template exits.
    pub(crate) fn is_closed(&self) -> bool {
        self.channel.is_none()
    }

    /// Returns its next message, if there is one.
    pub(crate) fn hear(&self) -> io::Result<Option<Heard<samovar_channel::Event>>> {
        self.channel.as_ref().map_or(Ok(None), SupervisorEnd::hear_now)
    }

    /// Closes the channel, so that the template exits.
    pub(crate) fn close(&mut self) {
        self.channel = None;
    }

    /// Creates a template whose process is a test.
    #[cfg(test)]
    pub(crate) fn fake(pid: i32) -> (Template, TemplateEnd) {
        let (ours, theirs) = pair().expect("sockets");
        (Template { pid, channel: Some(ours), _speaker: None }, theirs)
    }
}
