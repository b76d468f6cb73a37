//! The template process seen from the supervisor: how it is started, and what it says.
//!
//! The words of the protocol stand in crates/worker/src/template.rs.

use crate::os;
use crate::state::{Event, Role};
use samovar_ring::{Incarnation, Ring};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// How `samovar-php` is started.
#[derive(Clone, Debug)]
pub struct TemplateCommand {
    /// The binary.
    pub program: PathBuf,
    /// Arguments beside the descriptors: application, ini settings …
    pub arguments: Vec<String>,
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
    Died { pid: i32, status: i32 },
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

fn parse(text: &str) -> Option<Message> {
    let mut words = text.split(' ');
    let kind = words.next()?;
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
            Some(Message::Died { pid, status })
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
        assert!(matches!(parse("died 3 7 4711 9"), Some(Message::Died { pid: 4711, status: 9 })));
        for garbage in ["", "forked", "forked 3 0 1", "forked 3 99999999 1", "dance 1 2 3"] {
            assert!(parse(garbage).is_none(), "{garbage}");
        }
    }
}
