//! Messages between a server and its successor during a handover.
//!
//! `predecessor` is the successor's side; `crate::upgrade` is the other one. The two servers may
//! have different versions: messages are added but never changed, and a receiver ignores unknown
//! ones together with their descriptors.

use samovar_channel::Socket;
use samovar_config::DEFAULT_POOL;
use samovar_supervisor::Elsewhere;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Message of the serving server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Word {
    /// With the descriptor of this server's log.
    Stderr,
    /// With a listener's descriptor. Its name is the address in `listen`; empty if a service
    /// manager has opened it.
    Listener { name: String },
    /// With the admin listener's descriptor for this entry of `admin`.
    Admin { name: String },
    /// With the descriptor of the UDP socket of `insight.pinba_listen`.
    Pinba { name: String },
    /// With the control socket's descriptor and the path of its file.
    Control { path: PathBuf },
    /// With the claim's descriptor. The successor takes the claim after [`Word::Go`]; if it is
    /// late, the serving server takes it.
    Claim,
    /// The label of a pool's serving release, if it has one. The pool is empty if the server has
    /// one pool.
    Release { pool: String, label: String },
    /// All descriptors were sent. `boots` is true if this server's application has booted, or none
    /// had to be booted.
    Complete { boots: bool },
    /// Take the claim and take over: accept connections and answer commands. If the claim is
    /// already taken, do not serve.
    Go,
    /// Console workers of this server that still run: their number, and their names and numbers. If
    /// fewer are named than `left`, all are meant.
    Consoles { left: usize, named: Vec<(String, usize)> },
}

/// Message of the successor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reply {
    /// The process is a server and has received the descriptors.
    Hello { version: String },
    /// Its workers wait for requests.
    Ready,
    /// It will not serve.
    Failed { why: String },
    /// It has taken over.
    Took,
}

/// Channel end of the serving server.
pub(crate) type ServingEnd = Socket<Word, Reply>;
/// Channel end of the successor.
pub(crate) type FollowingEnd = Socket<Reply, Word>;

/// Maximum bytes of a reason: it fits into a message even if all bytes are escaped.
const WHY_BYTES_MAX: usize = 1_500;

/// Returns the part of a reason that fits into a message.
pub(crate) fn shortened(why: &str) -> String {
    let end = (0..=WHY_BYTES_MAX.min(why.len())).rev().find(|end| why.is_char_boundary(*end));
    why[..end.unwrap_or(0)].to_owned()
}

/// Separator between a pool and a console worker's name; neither contains it.
const OF_POOL: char = ':';

/// Returns a pool's console workers with names that are unique among all pools. The default pool's
/// names have no prefix, with or without other pools, because an older version knows only these.
pub(crate) fn named_consoles(pool: &str, living: Vec<(String, usize)>) -> Vec<(String, usize)> {
    if pool.is_empty() || pool == DEFAULT_POOL {
        return living;
    }
    living.into_iter().map(|(name, number)| (format!("{pool}{OF_POOL}{name}"), number)).collect()
}

/// Returns the console workers of this pool.
pub(crate) fn consoles_of(pool: &str, all: &Elsewhere) -> Elsewhere {
    let Elsewhere::These(all) = all else { return Elsewhere::All };
    let is_default = pool.is_empty() || pool == DEFAULT_POOL;
    let own = |(name, number): &(String, usize)| match name.split_once(OF_POOL) {
        None => is_default.then(|| (name.clone(), *number)),
        Some((of, name)) => (of == pool).then(|| (name.to_owned(), *number)),
    };
    Elsewhere::These(all.iter().filter_map(own).collect())
}

/// Maximum number of console workers named in one message.
const CONSOLES_NAMED_MAX: usize = 32;

impl Word {
    /// Returns the message for the console workers that still run.
    pub(crate) fn consoles(living: &[(String, usize)]) -> Word {
        let named = if living.len() > CONSOLES_NAMED_MAX { &[] } else { living };
        Word::Consoles { left: living.len(), named: named.to_vec() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use samovar_channel::{Heard, pair};
    use std::os::fd::AsFd;

    #[test]
    fn console_workers_are_separate_per_pool() {
        let living = |name: &str| vec![(name.to_owned(), 1)];
        let all = [("default", "mail"), ("blog", "mail"), ("export", "csv")];
        let all = all.map(|(pool, name)| named_consoles(pool, living(name))).concat();
        let all = Elsewhere::These(all);
        for (pool, expected) in [
            ("default", living("mail")),
            ("", living("mail")),
            ("blog", living("mail")),
            ("export", living("csv")),
            ("new", vec![]),
        ] {
            assert_eq!(consoles_of(pool, &all), Elsewhere::These(expected), "{pool}");
        }
        assert_eq!(consoles_of("blog", &Elsewhere::All), Elsewhere::All);
    }

    #[test]
    fn known_messages_arrive_and_unknown_are_ignored() {
        let (ours, theirs): (ServingEnd, FollowingEnd) = pair().expect("sockets");
        let many: Vec<_> = (0..CONSOLES_NAMED_MAX).map(|n| ("x".repeat(100), n)).collect();
        let more: Vec<_> = many.iter().cloned().chain([("y".to_owned(), 1)]).collect();
        for word in [
            Word::Complete { boots: true },
            Word::Listener { name: "127.0.0.1:0".to_owned() },
            Word::consoles(&many),
            Word::consoles(&more),
        ] {
            ours.send(&word).expect("room");
            assert!(matches!(theirs.hear(), Ok(Heard::Message(heard, None)) if heard == word));
        }
        let why = shortened(&"\u{1}ä".repeat(WHY_BYTES_MAX));
        theirs.send(&Reply::Failed { why: why.clone() }).expect("room");
        assert!(
            matches!(ours.hear(), Ok(Heard::Message(Reply::Failed { why: got }, _)) if got == why)
        );
        let (other, unknowing): (Socket<String, String>, _) = pair().expect("sockets");
        let unknowing = FollowingEnd::from(unknowing.as_fd().try_clone_to_owned().expect("a copy"));
        other.send(&"of another version".to_owned()).expect("room");
        assert!(matches!(unknowing.hear(), Ok(Heard::Garbled(_))));
    }
}
