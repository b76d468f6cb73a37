//! Class of a file or of a unix socket: its path without ids. A path can be a secret, because the
//! name of PHP's session file contains the session's id.
//!
//! Workers classify the files that they wait for before they report them, and the server classifies
//! each reported name again. A class of a class is that class.
//!
//! | path | class |
//! |---|---|
//! | `/var/lib/php/sessions/sess_0a4f…` | `session file` |
//! | `/srv/app/var/lock/order-4711.lock` | `/srv/app/var/lock/order-*.lock` |
//! | `/cache/a3/f9/a3f9d41d8cd98f00` | `/cache/*/*/*` |
//! | `/tmp/.ZendSem.kQ8xZb (deleted)` | `/tmp/.ZendSem.*` |

/// Maximum bytes of a class. The end of a longer one is cut off.
pub const CLASS_BYTES_MAX: usize = 255;

/// Class of all session files.
const SESSION: &[u8] = b"session file";
/// Suffix of the path of a file that was deleted, from the kernel.
const DELETED: &[u8] = b" (deleted)";
/// Name of PostgreSQL's socket before its port, which names the server.
const POSTGRESQL: &[u8] = b".s.PGSQL.";
/// Placeholder of an id.
const ID: u8 = b'*';
/// Minimum length of a run of letters and digits that is an id in any case.
const LONG_RUN: usize = 24;
/// Minimum length of a run with digits that is an id as a whole.
const MIXED_RUN: usize = 8;
/// Minimum length of a run of hexadecimal letters, without digits, that is an id.
const HEX_LETTERS: usize = 8;
/// Minimum length of a run of hexadecimal digits, at least one below ten, that is an id as a whole.
const HEX_RUN: usize = 3;
/// Number of random characters at the end of a temporary name: `mkstemp`, `tempnam`.
const TEMPORARY_RUN: usize = 6;
/// Minimum length of a part with capitals, small letters and digits that is an id as a whole.
const RANDOM_PART: usize = 16;
/// Maximum length of a part that distributes files over directories by the start of their names.
const SHARD: usize = 2;
/// Maximum number of alternations between letters and digits in a name.
const ALTERNATIONS: usize = 2;

/// A class, without memory of the heap: workers classify while they are rolled back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileClass {
    text: [u8; CLASS_BYTES_MAX],
    len: usize,
}

impl FileClass {
    /// Returns the class of a path, or of the name of an abstract socket (`@name`).
    #[must_use]
    pub fn of(path: &[u8]) -> FileClass {
        let mut class = FileClass { text: [0; CLASS_BYTES_MAX], len: 0 };
        let is_deleted = path.ends_with(DELETED);
        let path = path.strip_suffix(DELETED).unwrap_or(path);
        if is_session(path) {
            class.push_all(SESSION);
            return class;
        }
        let of_root = path.strip_prefix(b"@").unwrap_or(path);
        let is_temporary = is_deleted
            || [&b"/tmp/"[..], b"/var/tmp/", b"/dev/shm/"].iter().any(|at| of_root.starts_with(at));
        let name = path.rsplit(|b| *b == b'/').next().unwrap_or_default();
        let is_sharded = FileClass::starts_with_id(name);
        for (at, part) in path.split(|b| *b == b'/').enumerate() {
            if at > 0 {
                class.push(b'/');
            }
            let is_shard = (1..=SHARD).contains(&part.len())
                && part.iter().all(|b| b.is_ascii_hexdigit() || *b == ID);
            if is_sharded && is_shard {
                class.push(ID);
            } else {
                class.push_part(part, is_temporary);
            }
        }
        class
    }

    /// Returns the text.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.text[..self.len]
    }

    fn starts_with_id(name: &[u8]) -> bool {
        let mut first = FileClass { text: [0; CLASS_BYTES_MAX], len: 0 };
        first.push_part(name, false);
        first.bytes().first() == Some(&ID)
    }

    fn push(&mut self, byte: u8) {
        if let Some(at) = self.text.get_mut(self.len) {
            *at = byte;
            self.len += 1;
        }
    }

    fn push_all(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.push(*byte);
        }
    }

    /// Adds an id. Ids that only a separator divides are one: the groups of a UUID.
    fn push_id(&mut self, part_at: usize) {
        let written = self.text.get(part_at..self.len).unwrap_or_default();
        match written {
            [.., ID] => {}
            [.., ID, b'-' | b'_' | b'.' | b','] => self.len -= 1,
            _ => self.push(ID),
        }
    }

    /// Adds one part of the path.
    fn push_part(&mut self, part: &[u8], is_temporary: bool) {
        if part.strip_prefix(POSTGRESQL).is_some_and(is_port) {
            return self.push_all(part);
        }
        let part_at = self.len;
        let (stem, extension) = match part.iter().rposition(|b| *b == b'.') {
            Some(dot) if dot > 0 => part.split_at(dot),
            _ => (part, &[][..]),
        };
        if is_random(stem) {
            self.push_id(part_at);
            self.push_runs(extension, part_at, is_temporary);
        } else {
            self.push_runs(part, part_at, is_temporary);
        }
    }

    fn push_runs(&mut self, mut rest: &[u8], part_at: usize, is_temporary: bool) {
        while let Some(first) = rest.first() {
            if !first.is_ascii_alphanumeric() {
                if *first == ID {
                    self.push_id(part_at);
                } else {
                    self.push(*first);
                }
                rest = &rest[1..];
                continue;
            }
            let end = rest.iter().position(|b| !b.is_ascii_alphanumeric()).unwrap_or(rest.len());
            let (run, after) = rest.split_at(end);
            self.push_run(run, part_at, is_temporary && after.is_empty());
            rest = after;
        }
    }

    /// Adds letters and digits.
    fn push_run(&mut self, run: &[u8], part_at: usize, ends_temporary: bool) {
        let written = self.text.get(part_at..self.len).unwrap_or_default();
        let is_group = matches!(written, [.., ID, b'-']);
        if is_id(run) || (is_group && run.len() > SHARD && is_hex(run)) {
            return self.push_id(part_at);
        }
        if ends_temporary && run.len() >= TEMPORARY_RUN && ends_random(run) {
            self.push_all(&run[..run.len() - TEMPORARY_RUN]);
            return self.push_id(part_at);
        }
        for byte in run {
            if byte.is_ascii_digit() { self.push_id(part_at) } else { self.push(*byte) }
        }
    }
}

/// Returns whether the path is one of PHP's session files, or a file in a directory of sessions.
fn is_session(path: &[u8]) -> bool {
    let mut parts = path.rsplit(|b| *b == b'/');
    let name = parts.next().unwrap_or_default();
    let is_of_sessions = |part: &[u8]| {
        [&b"sessions"[..], b"session"].iter().any(|word| part.eq_ignore_ascii_case(word))
    };
    name.starts_with(b"sess_") || (!name.is_empty() && parts.any(is_of_sessions))
}

fn is_port(text: &[u8]) -> bool {
    (1..=5).contains(&text.len()) && text.iter().all(u8::is_ascii_digit)
}

fn is_hex(run: &[u8]) -> bool {
    run.iter().all(u8::is_ascii_hexdigit)
}

/// Returns whether no part of a run is a word.
fn is_id(run: &[u8]) -> bool {
    let digits = run.iter().filter(|b| b.is_ascii_digit()).count();
    let pairs = run.iter().zip(run.iter().skip(1));
    let alternations = pairs.filter(|(a, b)| a.is_ascii_digit() != b.is_ascii_digit()).count();
    run.len() >= LONG_RUN
        || (digits == 0 && run.len() >= HEX_LETTERS && is_hex(run))
        || (digits > 0 && run.len() >= HEX_RUN && is_hex(run))
        || (digits > 0 && run.len() >= MIXED_RUN && run.len() < digits * 4)
        || alternations > ALTERNATIONS
}

/// Returns whether a name is random text: Base64, with `-` and `_`.
fn is_random(stem: &[u8]) -> bool {
    let has = |is: fn(&u8) -> bool| stem.iter().any(is);
    stem.len() >= RANDOM_PART
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_lowercase)
        && has(u8::is_ascii_uppercase)
}

/// Returns whether the end of a name is random: it has a capital or a digit before its last letter.
fn ends_random(run: &[u8]) -> bool {
    let end = run.get(run.len().saturating_sub(TEMPORARY_RUN)..).unwrap_or_default();
    let is_change = |pair: &[u8]| {
        pair[1].is_ascii_uppercase() || (pair[0].is_ascii_digit() && pair[1].is_ascii_alphabetic())
    };
    end.windows(2).any(is_change)
}

#[cfg(test)]
mod tests {
    use super::FileClass;

    fn class(path: &str) -> String {
        String::from_utf8_lossy(FileClass::of(path.as_bytes()).bytes()).into_owned()
    }

    #[test]
    fn class_of_path_has_no_ids() {
        for (path, expected) in [
            ("/var/lib/php/sessions/sess_0a4f1b2c3d4e5f60718293a4b5", "session file"),
            ("/tmp/a/b/sess_ab-CD,ef", "session file"),
            ("/app/storage/framework/sessions/kQzXbWvTnMqRsLpYhGfD", "session file"),
            ("/srv/app/var/lock/order-4711.lock", "/srv/app/var/lock/order-*.lock"),
            ("/srv/lock", "/srv/lock"),
            ("/run/mysqld/mysqld.sock", "/run/mysqld/mysqld.sock"),
            ("/run/php/php8.2-fpm.sock", "/run/php/php*-fpm.sock"),
            ("/run/db", "/run/db"),
            ("/run/postgresql/.s.PGSQL.5432", "/run/postgresql/.s.PGSQL.5432"),
            ("/cache/a3/f9/a3f9d41d8cd98f00", "/cache/*/*/*"),
            ("/cache/fe/ab/a3f9d41d8cd98f00.php", "/cache/*/*/*.php"),
            ("/u/6fa459ea-face-3ca4-894e-db77e160355e/x.lock", "/u/*/x.lock"),
            ("/t/aB3_dEfGh-KlMnOpQr9z.bin", "/t/*.bin"),
            ("/tmp/.ZendSem.kQ8xZb (deleted)", "/tmp/.ZendSem.*"),
            ("/tmp/.ZendSem.QwErTy (deleted)", "/tmp/.ZendSem.*"),
            ("/tmp/phpQwErTy", "/tmp/php*"),
            ("/tmp/phpab3dxy", "/tmp/php*"),
            ("/tmp/worker12", "/tmp/worker*"),
            ("/tmp/.tmpQwErTy/the.lock", "/tmp/.tmp*/the.lock"),
            ("/app/src/UserController.php", "/app/src/UserController.php"),
            ("@/tmp/dbus-kQ8xZb", "@/tmp/dbus-*"),
            ("@0a4f1", "@*"),
            ("", ""),
            ("accept", "accept"),
            ("System V", "System V"),
        ] {
            assert_eq!(class(path), expected, "{path}");
            assert_eq!(class(expected), expected, "the class of a class");
        }
        assert_eq!(class(&"/ab".repeat(2_000)).len(), super::CLASS_BYTES_MAX);
    }

    #[test]
    fn paths_that_differ_by_their_id_have_one_class() {
        let ids = (0..5_000_u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut found = [const { std::collections::BTreeSet::new() }; 4];
        for id in ids {
            let (hex, shard) = (format!("{id:016x}"), id & 0xff);
            found[0].insert(class(&format!("/l/{id}.lock")));
            found[1].insert(class(&format!("/c/{shard:02x}/{:02x}/{hex}", id >> 8 & 0xff)));
            found[2].insert(class(&format!("/l/{:08x}", id as u32)));
            found[3].insert(class(&format!("/l/job_{}", id % 100)));
        }
        let sizes = found.map(|classes| classes.len());
        assert_eq!(sizes, [1; 4]);
    }
}
