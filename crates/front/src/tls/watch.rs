//! What of the files comes to an end, and when the operator is told of it: once before, once after.

use super::certificate::Life;
use jiff::{SignedDuration, Timestamp};
use std::path::PathBuf;

/// So long before its end a certificate is told of, or a quarter of its life if that is less, seconds.
const SOON_SECONDS_MAX: i64 = 14 * 24 * 3600;

/// What an operator should know of a file, and do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// A sentence without its full stop.
    pub what: String,
    /// What to do.
    pub hint: &'static str,
}

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    Certificate,
    /// What an authority says of a certificate (OCSP).
    Staple,
    /// Which certificates of clients an authority has called back.
    Revocations,
}

/// A file whose contents hold for a time.
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

    /// What there is to say now that was not said before.
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
                format!("`{path}` begins only on {}: clients refuse it", date(since))
            }
            (Stage::Soon, _) => format!("`{path}` ends on {}", date(until)),
            (Stage::Over, Subject::Certificate) => {
                format!("`{path}` ended on {}: clients refuse it", date(until))
            }
            (Stage::Over, Subject::Staple) => {
                format!("`{path}` ended on {}: it is sent to nobody any more", date(until))
            }
            (Stage::Over, Subject::Revocations) => {
                format!(
                    "`{path}` was to be replaced by {}: clients of its authority are turned away",
                    date(until)
                )
            }
        };
        let hint = match self.subject {
            Subject::Certificate => "renew it; its file is read again by itself",
            Subject::Staple => {
                "have `openssl ocsp -respout` write a new one regularly, or remove the file; it is read again by itself"
            }
            Subject::Revocations => {
                "fetch the authority's newest list regularly; the file is read again by itself"
            }
        };
        Some(Notice { what, hint })
    }

    fn stage(&self, now: i64) -> Stage {
        let Life { since, until } = self.life;
        // Staples and lists are short-lived, and replaced late in their lives.
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

/// Seconds of Unix time, for people.
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
    fn a_certificate_is_told_of_before_and_after_its_end() {
        let mut own = watched(Subject::Certificate);
        check(&mut own, 0, Some("`a.pem` begins only on 1970-01-02T00:00:00Z: clients refuse it"));
        check(&mut own, 1, None);
        check(&mut own, DAY, None);
        check(&mut own, 77 * DAY, None);
        check(&mut own, 77 * DAY + 1, Some("`a.pem` ends on 1970-04-02T00:00:00Z"));
        check(&mut own, 91 * DAY, None);
        check(
            &mut own,
            91 * DAY + 1,
            Some("`a.pem` ended on 1970-04-02T00:00:00Z: clients refuse it"),
        );
        check(&mut own, 92 * DAY, None);
    }

    #[test]
    fn a_short_life_is_told_of_in_its_last_quarter() {
        let mut own = watched(Subject::Certificate);
        own.life.until = 5 * DAY;
        check(&mut own, 4 * DAY, None);
        check(&mut own, 4 * DAY + 1, Some("`a.pem` ends on 1970-01-06T00:00:00Z"));
    }

    #[test]
    fn what_lives_for_days_is_told_of_when_it_is_over() {
        for (subject, said) in [(Subject::Staple, "nobody"), (Subject::Revocations, "turned away")]
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
