//! Files whose contents expire, and the notices to the operator: one before, one after.

use super::certificate::Life;
use jiff::{SignedDuration, Timestamp};
use std::path::PathBuf;

/// A certificate's end is announced this number of seconds before, or a quarter of its validity
/// period before if that is less.
const SOON_SECONDS_MAX: i64 = 14 * 24 * 3600;

/// Information about a file for the operator, with an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// A sentence without its full stop.
    pub what: String,
    /// Action to take.
    pub hint: &'static str,
}

/// Contents of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    Certificate,
    /// An authority's response about a certificate (OCSP).
    Staple,
    /// An authority's list of revoked client certificates.
    Revocations,
}

/// A file whose contents are valid for a limited time.
#[derive(Clone, Debug)]
pub(super) struct Watched {
    path: PathBuf,
    subject: Subject,
    life: Life,
    told: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Early,
    Good,
    Soon,
    Over,
}

impl Watched {
    pub(super) fn new(path: PathBuf, subject: Subject, life: Life) -> Watched {
        Watched { path, subject, life, told: Stage::Good }
    }

    /// Returns a notice if there is a new one at `now`.
    pub(super) fn notice(&mut self, now: i64) -> Option<Notice> {
        let stage = self.stage(now);
        if std::mem::replace(&mut self.told, stage) == stage {
            return None;
        }
        let path = self.path.display();
        let Life { since, until } = self.life;
        let what = match (stage, self.subject) {
            (Stage::Good, _) => return None,
            (Stage::Early, _) => {
                format!("`{path}` is valid only from {}: clients reject it", date(since))
            }
            (Stage::Soon, _) => format!("`{path}` expires on {}", date(until)),
            (Stage::Over, Subject::Certificate) => {
                format!("`{path}` expired on {}: clients reject it", date(until))
            }
            (Stage::Over, Subject::Staple) => {
                format!("`{path}` expired on {}: it is no longer sent", date(until))
            }
            (Stage::Over, Subject::Revocations) => {
                format!(
                    "`{path}` was due for replacement on {}: clients of its authority are rejected",
                    date(until)
                )
            }
        };
        let hint = match self.subject {
            Subject::Certificate => "renew it; the server reloads the file automatically",
            Subject::Staple => {
                "run `openssl ocsp -respout` regularly, or remove the file; the server reloads it \
                 automatically"
            }
            Subject::Revocations => {
                "download the authority's newest list regularly; the server reloads the file \
                 automatically"
            }
        };
        Some(Notice { what, hint })
    }

    fn stage(&self, now: i64) -> Stage {
        let Life { since, until } = self.life;
        // OCSP responses and lists are short-lived, and are replaced late in their validity period.
        let soon = match self.subject {
            Subject::Certificate => (until.saturating_sub(since) / 4).min(SOON_SECONDS_MAX),
            Subject::Staple | Subject::Revocations => 0,
        };
        match now {
            _ if now > until => Stage::Over,
            _ if now < since && self.subject == Subject::Certificate => Stage::Early,
            _ if now > until.saturating_sub(soon) => Stage::Soon,
            _ => Stage::Good,
        }
    }
}

/// Formats seconds of Unix time.
fn date(at: i64) -> String {
    let at = Timestamp::UNIX_EPOCH.checked_add(SignedDuration::from_secs(at));
    at.map_or_else(|_| "?".to_owned(), |at| at.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 24 * 3600;

    fn watched(subject: Subject) -> Watched {
        Watched::new(PathBuf::from("a.pem"), subject, Life { since: DAY, until: 91 * DAY })
    }

    #[track_caller]
    fn check(watched: &mut Watched, now: i64, expected: Option<&str>) {
        let told = watched.notice(now).map(|notice| notice.what);
        assert_eq!(told.as_deref(), expected, "at {now}");
    }

    #[test]
    fn certificate_is_announced_before_and_after_its_end() {
        let mut own = watched(Subject::Certificate);
        check(
            &mut own,
            0,
            Some("`a.pem` is valid only from 1970-01-02T00:00:00Z: clients reject it"),
        );
        check(&mut own, 1, None);
        check(&mut own, DAY, None);
        check(&mut own, 77 * DAY, None);
        check(&mut own, 77 * DAY + 1, Some("`a.pem` expires on 1970-04-02T00:00:00Z"));
        check(&mut own, 91 * DAY, None);
        check(
            &mut own,
            91 * DAY + 1,
            Some("`a.pem` expired on 1970-04-02T00:00:00Z: clients reject it"),
        );
        check(&mut own, 92 * DAY, None);
    }

    #[test]
    fn short_validity_is_announced_in_its_last_quarter() {
        let mut own = watched(Subject::Certificate);
        own.life.until = 5 * DAY;
        check(&mut own, 4 * DAY, None);
        check(&mut own, 4 * DAY + 1, Some("`a.pem` expires on 1970-01-06T00:00:00Z"));
    }

    #[test]
    fn staples_and_lists_are_announced_only_after_their_end() {
        for (subject, said) in
            [(Subject::Staple, "no longer sent"), (Subject::Revocations, "rejected")]
        {
            let mut own = watched(subject);
            check(&mut own, 0, None);
            check(&mut own, 91 * DAY, None);
            let notice = own.notice(91 * DAY + 1).expect("it is over");
            assert!(notice.what.contains(said), "{notice:?}");
            check(&mut own, 99 * DAY, None);
        }
    }
}
