//! The template process seen from the supervisor: how it is started, and what it says.
//!
//! The words of the protocol stand in crates/worker/src/template.rs.

use crate::consoles::Console;
use crate::os;
use crate::state::{Event, Role};
use samovar_ring::{Incarnation, Ring};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// The template's room for an order (`MESSAGE_BYTES_MAX` in crates/worker/src/os.rs): it would cut off a longer one.
const ORDER_BYTES_MAX: usize = 4096;

/// How `samovar-php` is started.
#[derive(Clone, Debug)]
pub struct TemplateCommand {
    /// The binary.
    pub program: PathBuf,
    /// Arguments beside the descriptors: application, ini settings …
    pub arguments: Vec<String>,
}

/// What the application's boot came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// `shared`: workers are forked from the image; `resident`: from the booted application, without rollback;
    /// `worker`: each boots by itself; `script`: there is none.
    pub mode: String,
    /// Bytes of memory in it.
    pub bytes: u64,
    /// Mappings in it.
    pub regions: u64,
    /// What the boot took.
    pub boot: Duration,
}

/// One thing that the boot has left open. Texts come from the application's process: for people only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// A word, as `connection`.
    pub kind: String,
    /// `note`, or the fall-back: `worker`, `script`.
    pub action: String,
    /// What it is.
    pub what: String,
    /// `file:line` that opened it, or empty.
    pub place: String,
    /// What to do about it.
    pub advice: String,
}

/// A running template.
pub(crate) struct Template {
    pub(crate) pid: i32,
    channel: Option<OwnedFd>,
}

/// A message of the template.
pub(crate) enum Message {
    /// For the state machine.
    Event(Event),
    /// Like an event, with what a person wants to read in the log.
    Logged(Event, String),
    /// A worker's end, with its wait status.
    Died { index: usize, pid: i32, status: i32 },
    /// What the booted application is.
    Image(Image),
    /// The application's boot ended without asking for requests.
    BootFailed,
    /// What stands against sharing or rolling back the booted application.
    Finding(Finding),
    /// A console worker was forked.
    ConsoleStarted { life: u32, pid: i32 },
    /// It could not be.
    ConsoleFailed { life: u32, why: String },
    /// A console worker's end, with its wait status.
    ConsoleDied { pid: i32, status: i32 },
    /// Nothing that we know.
    Unknown(String),
}

impl Template {
    pub(crate) fn start(command: &TemplateCommand, ring: &Ring) -> io::Result<Template> {
        let (ours, theirs) = os::message_pair()?;
        let fds = [theirs.as_raw_fd(), ring.file().as_raw_fd(), ring.bell().as_raw_fd()];
        let mut process = Command::new(&command.program);
        process.args(&command.arguments);
        for (flag, fd) in ["--channel", "--ring", "--bell"].into_iter().zip(fds) {
            process.args([flag, &fd.to_string()]);
        }
        // A process group of its own: a terminal's Ctrl-C reaches the supervisor alone, which drains first.
        process.stdin(std::process::Stdio::null()).process_group(0);
        // SAFETY: `prepare_exec` makes only async-signal-safe calls and allocates nothing unless it fails.
        unsafe { process.pre_exec(move || os::prepare_exec(&fds)) };
        // Reaped by `os::reap` with all other children, so the handle is not kept.
        let child = process.spawn()?;
        let pid = i32::try_from(child.id()).map_err(|_| io::ErrorKind::InvalidData)?;
        Ok(Template { pid, channel: Some(ours) })
    }

    /// Its end of the channel, -1 once closed.
    pub(crate) fn fd(&self) -> RawFd {
        self.channel.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }

    pub(crate) fn fork(&self, index: usize, life: Incarnation, role: Role) -> io::Result<()> {
        os::send(self.fd(), &format!("fork {index} {} {}", life.get(), role.word()))
    }

    /// Asks for a console worker, whose output goes to `output`.
    pub(crate) fn start_console(
        &self,
        life: u32,
        number: usize,
        command: &Console,
        output: &OwnedFd,
    ) -> io::Result<()> {
        let Console { name, folder, .. } = command;
        let mut order = format!("console\0{life}\0{name}\0{number}\0{}", folder.display());
        for word in &command.command {
            order.push('\0');
            order.push_str(word);
        }
        if order.len() > ORDER_BYTES_MAX {
            let text =
                format!("command, script and folder are longer than {ORDER_BYTES_MAX} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let channel = self.channel.as_ref().ok_or(io::ErrorKind::BrokenPipe)?;
        os::send_with(channel.as_fd(), &order, output.as_fd())
    }

    /// The next message, if one is there.
    pub(crate) fn receive(&mut self) -> io::Result<Option<Message>> {
        if self.channel.is_none() {
            return Ok(None);
        }
        match os::receive(self.fd())? {
            None => Ok(None),
            Some(text) if text.is_empty() => {
                self.close();
                Ok(None)
            }
            Some(text) => Ok(Some(parse(&text).unwrap_or(Message::Unknown(text)))),
        }
    }

    /// Tells it to leave.
    pub(crate) fn close(&mut self) {
        self.channel = None;
    }
}

fn parse_finding(text: &str) -> Option<Finding> {
    let mut fields = text.split('\t').map(str::to_owned);
    let mut next = || fields.next();
    Some(Finding { kind: next()?, action: next()?, what: next()?, place: next()?, advice: next()? })
}

fn parse_image<'a>(mut words: impl Iterator<Item = &'a str>) -> Option<Image> {
    Some(Image {
        mode: words.next()?.to_owned(),
        bytes: words.next()?.parse().ok()?,
        regions: words.next()?.parse().ok()?,
        boot: Duration::from_micros(words.next()?.parse().ok()?),
    })
}

fn parse_console<'a>(kind: &str, mut words: impl Iterator<Item = &'a str>) -> Option<Message> {
    let number: u32 = words.next()?.parse().ok()?;
    Some(match kind {
        "console-forked" => {
            Message::ConsoleStarted { life: number, pid: words.next()?.parse().ok()? }
        }
        "console-failed" => {
            Message::ConsoleFailed { life: number, why: words.collect::<Vec<_>>().join(" ") }
        }
        "console-died" => Message::ConsoleDied {
            pid: i32::try_from(number).ok()?,
            status: words.next()?.parse().ok()?,
        },
        _ => return None,
    })
}

fn parse(text: &str) -> Option<Message> {
    if let Some(finding) = text.strip_prefix("finding ") {
        return parse_finding(finding).map(Message::Finding);
    }
    let mut words = text.split(' ');
    let kind = words.next()?;
    if kind == "boot-failed" {
        return Some(Message::BootFailed);
    }
    if kind.starts_with("console") {
        return parse_console(kind, words);
    }
    if kind == "image" {
        return parse_image(words).map(Message::Image);
    }
    if kind == "ready" {
        let version = words.next()?;
        let resident = words.next()? == "resident";
        let event = Event::TemplateReady { resident };
        return Some(Message::Logged(event, format!("PHP {version} is ready")));
    }
    let index: usize = words.next()?.parse().ok()?;
    let incarnation = Incarnation::new(words.next()?.parse().ok()?)?;
    match kind {
        "forked" => {
            let pid = words.next()?.parse().ok()?;
            Some(Message::Event(Event::Forked { index, incarnation, pid }))
        }
        "died" => {
            let pid = words.next()?.parse().ok()?;
            let status = words.next()?.parse().ok()?;
            Some(Message::Died { index, pid, status })
        }
        "failed" => {
            let why: Vec<&str> = words.collect();
            let text = format!("cannot fork a worker: {}", why.join(" "));
            Some(Message::Logged(Event::ForkFailed { index }, text))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_understood_or_kept_as_they_are() {
        assert!(matches!(
            parse("ready 8.2.35 resident"),
            Some(Message::Logged(Event::TemplateReady { resident: true }, _))
        ));
        assert!(matches!(
            parse("forked 3 7 4711"),
            Some(Message::Event(Event::Forked { index: 3, pid: 4711, .. }))
        ));
        assert!(matches!(
            parse("died 3 7 4711 9"),
            Some(Message::Died { index: 3, pid: 4711, status: 9 })
        ));
        assert!(matches!(parse("image shared 12 3 4"), Some(Message::Image(_))));
        assert!(matches!(parse("boot-failed"), Some(Message::BootFailed)));
        let finding = parse("finding tls\tscript\ta connection to x\ta.php:3\topen it later");
        assert!(matches!(finding, Some(Message::Finding(f)) if f.place == "a.php:3"));
        assert!(matches!(
            parse("console-forked 7 4711"),
            Some(Message::ConsoleStarted { life: 7, pid: 4711 })
        ));
        assert!(matches!(
            parse("console-died 4711 9"),
            Some(Message::ConsoleDied { pid: 4711, status: 9 })
        ));
        for garbage in [
            "console-forked x 1",
            "console-died 1",
            "console-danced 1 2",
            "image shared",
            "finding a\tb",
            "",
            "forked",
            "forked 3 0 1",
            "forked 3 99999999 1",
            "dance 1 2 3",
        ] {
            assert!(parse(garbage).is_none(), "{garbage}");
        }
    }
}
