//! What a server and its successor say to each other while the one takes over from the other.
//!
//! `predecessor` is the successor's side; the other one is `crate::upgrade`. The two may be of different versions: words are
//! added and never changed, and whoever does not know one leaves it alone, with the descriptor that came with it.

use samovar_channel::Socket;
use samovar_config::DEFAULT_POOL;
use samovar_supervisor::Elsewhere;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What the server that serves says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Word {
    /// Beside it: where this server's log goes.
    Stderr,
    /// Beside it: a listener. Its name is the place that `listen` says; none: a service manager has opened it.
    Listener { name: String },
    /// Beside it: the admin listener of that entry of `admin`.
    Admin { name: String },
    /// Beside it: the UDP socket of `insight.pinba_listen`.
    Pinba { name: String },
    /// Beside it: the control socket, which has that file.
    Control { path: PathBuf },
    /// Beside it: what whoever is to serve takes after [`Word::Go`], and the other one where that is late.
    Claim,
    /// All was handed over. Whether this server's own application has booted ahead, or had nothing to boot.
    Complete { boots: bool },
    /// Take the claim, and over: accept, and answer commands. Who finds it taken does not serve.
    Go,
    /// So many console workers of this server are left, by name and number; more than are named: all.
    Consoles { left: usize, named: Vec<(String, usize)> },
}

/// What the successor says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// It is a server, and has what was handed over.
    Hello { version: String },
    /// Its workers wait for requests.
    Ready,
    /// It will not serve.
    Failed { why: String },
    /// It has gone.
    Took,
}

/// The end of whoever serves.
pub(crate) type ServingEnd = Socket<Word, Answer>;
/// The end of whoever is to follow.
pub(crate) type FollowingEnd = Socket<Answer, Word>;

/// Of a reason, bytes: a message has room for all of them escaped.
const WHY_BYTES_MAX: usize = 1_500;

/// As much of a reason as a message has room for.
pub(crate) fn shortened(why: &str) -> String {
    let end = (0..=WHY_BYTES_MAX.min(why.len())).rev().find(|end| why.is_char_boundary(*end));
    why[..end.unwrap_or(0)].to_owned()
}

/// What stands between a pool and the name of a console worker; neither has it.
const OF_POOL: char = ':';

/// A pool's console workers by the names that they have among those of all: the default pool's are called so whether there are others or
/// not, and as a version says it that knows theirs alone.
pub(crate) fn named_consoles(pool: &str, living: Vec<(String, usize)>) -> Vec<(String, usize)> {
    if pool.is_empty() || pool == DEFAULT_POOL {
        return living;
    }
    living.into_iter().map(|(name, number)| (format!("{pool}{OF_POOL}{name}"), number)).collect()
}

/// Those of that pool.
pub(crate) fn consoles_of(pool: &str, all: &Elsewhere) -> Elsewhere {
    let Elsewhere::These(all) = all else { return Elsewhere::All };
    let is_default = pool.is_empty() || pool == DEFAULT_POOL;
    let own = |(name, number): &(String, usize)| match name.split_once(OF_POOL) {
        None => is_default.then(|| (name.clone(), *number)),
        Some((of, name)) => (of == pool).then(|| (name.to_owned(), *number)),
    };
    Elsewhere::These(all.iter().filter_map(own).collect())
}

/// Console workers that are named in one message.
const CONSOLES_NAMED_MAX: usize = 32;

impl Word {
    /// Those that are left.
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
    fn each_pool_has_its_own_console_workers() {
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
    fn words_arrive_and_unknown_ones_are_left_alone() {
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
        theirs.send(&Answer::Failed { why: why.clone() }).expect("room");
        assert!(
            matches!(ours.hear(), Ok(Heard::Message(Answer::Failed { why: got }, _)) if got == why)
        );
        let (other, unknowing): (Socket<String, String>, _) = pair().expect("sockets");
        let unknowing = FollowingEnd::from(unknowing.as_fd().try_clone_to_owned().expect("a copy"));
        other.send(&"of another version".to_owned()).expect("room");
        assert!(matches!(unknowing.hear(), Ok(Heard::Garbled(_))));
    }
}
