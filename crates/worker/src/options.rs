//! The command line of `samovar-php`: what the supervisor tells the template.

use crate::{boundary, ini};
use lexopt::prelude::*;
use std::os::fd::{FromRawFd, OwnedFd};

/// What the template needs to know.
pub(crate) struct Options {
    /// `SOCK_SEQPACKET` to the supervisor.
    pub(crate) channel: OwnedFd,
    /// The ring's memory file.
    pub(crate) ring: OwnedFd,
    /// The eventfd that wakes the front.
    pub(crate) bell: OwnedFd,
    /// Front controller, empty for none.
    pub(crate) app: String,
    /// Document root, empty for none.
    pub(crate) root: String,
    /// The file whose first inclusion ends in a checkpoint, empty for none.
    pub(crate) checkpoint_after: String,
    /// Targets of the requests that are made before the image is taken.
    pub(crate) warmup: Vec<String>,
    /// Whether the boot that is kept comes after one for the caches.
    pub(crate) rehearse: bool,
    /// Growth of PHP's heap after which a resident worker rolls back.
    pub(crate) growth_bytes_max: usize,
    /// Requests after which a `FrankenPHP` worker script rolls back, 0: never.
    pub(crate) rollback_every: u32,
    /// Whose worker script the front controller is.
    pub(crate) compat: Compat,
    /// php.ini instead of the built-in one.
    pub(crate) php_ini: Option<String>,
    /// Settings stronger than php.ini, as ini lines.
    pub(crate) ini_entries: String,
    /// Log lines as JSON.
    pub(crate) json_log: bool,
    /// What `frankenphp_log` is told for debugging is logged.
    pub(crate) debug_log: bool,
}

/// Which other server's worker scripts the front controller is one of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compat {
    /// To be found out.
    Auto,
    /// It calls `frankenphp_handle_request`.
    FrankenPhp,
}

pub(crate) enum Invocation {
    Template(Options),
    Print(String),
}

const USAGE: &str = "\
samovar-php: the worker process of Samovar; `samovar serve` starts it.

  --version              the PHP version it was built for
  --channel FD           socket to the supervisor
  --ring FD, --bell FD   the shared-memory ring and its eventfd
  --app FILE             front controller
  --root FOLDER          document root
  --checkpoint-after FILE  place a checkpoint after FILE was first included
  --warmup TARGET        a request before the image is taken; may be repeated
  --no-rehearsal         boot once, not first for the caches
  --growth-bytes-max N   growth of the heap after which a resident worker rolls back
  --compat WHAT          auto or frankenphp: whose worker script the front controller is
  --rollback-every N     requests after which a FrankenPHP worker script rolls back
  --php-ini FILE         php.ini instead of the built-in one
  --define KEY=VALUE     a setting stronger than php.ini; may be repeated
  --json-log             log lines as JSON
  --debug-log            log what frankenphp_log() is told for debugging";

pub(crate) fn parse() -> Result<Invocation, lexopt::Error> {
    let (mut channel, mut ring, mut bell) = (None, None, None);
    let (mut app, mut php_ini, mut json_log) = (String::new(), None, false);
    let (mut root, mut checkpoint_after, mut warmup) = (String::new(), String::new(), Vec::new());
    let (mut growth_bytes_max, mut rehearse) = (usize::MAX / 2, true);
    let (mut rollback_every, mut debug_log) = (0, false);
    let (mut ini_entries, mut compat) = (String::new(), Compat::Auto);
    let mut parser = lexopt::Parser::from_env();
    while let Some(arg) = parser.next()? {
        match arg {
            Long("channel") => channel = Some(parser.value()?.parse()?),
            Long("ring") => ring = Some(parser.value()?.parse()?),
            Long("bell") => bell = Some(parser.value()?.parse()?),
            Long("app") => app = parser.value()?.string()?,
            Long("root") => root = parser.value()?.string()?,
            Long("checkpoint-after") => checkpoint_after = parser.value()?.string()?,
            Long("warmup") => warmup.push(parser.value()?.string()?),
            Long("no-rehearsal") => rehearse = false,
            Long("growth-bytes-max") => growth_bytes_max = parser.value()?.parse()?,
            Long("rollback-every") => rollback_every = parser.value()?.parse()?,
            Long("compat") => compat = Compat::of(&parser.value()?.string()?)?,
            Long("php-ini") => php_ini = Some(parser.value()?.string()?),
            Long("define") => ini_entries.push_str(&ini::line(&parser.value()?.string()?)),
            Long("json-log") => json_log = true,
            Long("debug-log") => debug_log = true,
            Long("version") => {
                let text = format!(
                    "samovar-php {} (PHP {})",
                    env!("CARGO_PKG_VERSION"),
                    boundary::php_built_for()
                );
                return Ok(Invocation::Print(text));
            }
            Short('h') | Long("help") => return Ok(Invocation::Print(USAGE.into())),
            other => return Err(other.unexpected()),
        }
    }
    Ok(Invocation::Template(Options {
        channel: inherited(channel, "--channel")?,
        ring: inherited(ring, "--ring")?,
        bell: inherited(bell, "--bell")?,
        app,
        root,
        checkpoint_after,
        warmup,
        rehearse,
        growth_bytes_max,
        rollback_every,
        compat,
        php_ini,
        ini_entries,
        json_log,
        debug_log,
    }))
}

impl Compat {
    fn of(word: &str) -> Result<Compat, lexopt::Error> {
        match word {
            "auto" => Ok(Compat::Auto),
            "frankenphp" => Ok(Compat::FrankenPhp),
            other => Err(format!("--compat takes auto or frankenphp, not `{other}`").into()),
        }
    }
}

fn inherited(fd: Option<i32>, name: &str) -> Result<OwnedFd, lexopt::Error> {
    let fd = fd.ok_or_else(|| format!("missing {name}"))?;
    // SAFETY: F_GETFD only asks whether the number is an open descriptor.
    if unsafe { libc::fcntl(fd, libc::F_GETFD) } < 0 {
        return Err(format!("{name} {fd} is no open descriptor").into());
    }
    // SAFETY: open (just asked), and the supervisor passed it for us to own.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
