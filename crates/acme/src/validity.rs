//! Times of renewals and retries: pure functions of the certificate's dates, the clock and the
//! failures.

use std::time::{Duration, SystemTime};
use x509_parser::pem::Pem;

/// Share of its life after which a certificate is renewed. The rest is a reserve for outages of the
/// authority.
const RENEWAL: (u32, u32) = (2, 3);
/// Renewals are spread over 1/40 of the life before that time, so that many servers do not renew at
/// once.
const JITTER_SHARE: u32 = 40;
/// Wait after the first failure; doubled after each further one, up to the maximum.
const RETRY_FIRST: Duration = Duration::from_mins(1);
const RETRY_LONGEST: Duration = Duration::from_hours(6);
/// Number of doublings until the maximum is reached.
const DOUBLINGS_MAX: u32 = 9;
/// Upper limit for a wait that the authority requests.
const LEFT_ALONE_LONGEST: Duration = Duration::from_hours(48);

/// Start and end of a certificate's validity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Validity {
    pub(crate) from: SystemTime,
    pub(crate) until: SystemTime,
}

impl Validity {
    /// Reads the dates of the first certificate in a PEM text.
    pub(crate) fn read(pem: &[u8]) -> Result<Validity, String> {
        let blocks = Pem::iter_from_buffer(pem).filter_map(Result::ok);
        let first = blocks.into_iter().find(|block| block.label == "CERTIFICATE");
        let first = first.ok_or("it contains no certificate")?;
        let parsed = first.parse_x509().map_err(|error| error.to_string())?;
        let dates = parsed.validity();
        let (from, until) = (at(dates.not_before.timestamp()), at(dates.not_after.timestamp()));
        match (from, until) {
            (Some(from), Some(until)) if from < until => Ok(Validity { from, until }),
            _ => Err("it is never valid".to_owned()),
        }
    }

    /// Returns the length of the validity.
    pub(crate) fn life(&self) -> Duration {
        self.until.duration_since(self.from).unwrap_or_default()
    }

    /// Returns the time of the renewal. `share`: part of the jitter to use, 0 to 1.
    pub(crate) fn renewal(&self, share: f64) -> SystemTime {
        let (part, of) = RENEWAL;
        let early = (self.life() / JITTER_SHARE).mul_f64(share.clamp(0.0, 1.0));
        let after = (self.life() / of * part).saturating_sub(early);
        self.from.checked_add(after).unwrap_or(self.until)
    }
}

fn at(seconds: i64) -> Option<SystemTime> {
    let seconds = u64::try_from(seconds).unwrap_or(0);
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
}

/// Returns the wait after `failures` consecutive failures. `share`: part of the jitter to use, 0 to
/// 1.
pub(crate) fn pause(failures: u32, asked: Option<Duration>, share: f64) -> Duration {
    let doublings = failures.saturating_sub(1).min(DOUBLINGS_MAX);
    let plain = (RETRY_FIRST * 2u32.pow(doublings)).min(RETRY_LONGEST);
    // From 3/4 to 5/4 of it, so that servers that failed at the same time do not retry together.
    let plain = plain.mul_f64(0.75 + share.clamp(0.0, 1.0) / 2.0);
    plain.max(asked.unwrap_or_default().min(LEFT_ALONE_LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renewal_is_due_after_two_thirds_of_life() {
        let day = Duration::from_hours(24);
        let from = SystemTime::UNIX_EPOCH + 20_000 * day;
        let validity = Validity { from, until: from + 90 * day };
        assert_eq!(validity.renewal(0.0), from + 60 * day);
        let early = (from + 60 * day).duration_since(validity.renewal(1.0)).expect("earlier");
        assert_eq!(early, 90 * day / 40);
        let short = Validity { from, until: from + Duration::from_secs(30) };
        assert!(short.renewal(1.0) > from + Duration::from_secs(18));
    }

    #[test]
    fn pause_grows_and_respects_requested_wait() {
        let minute = Duration::from_mins(1);
        let middle = |failures, asked| pause(failures, asked, 0.5);
        assert_eq!([1, 2, 3].map(|n| middle(n, None)), [minute, 2 * minute, 4 * minute]);
        assert_eq!(middle(40, None), RETRY_LONGEST);
        assert_eq!(middle(u32::MAX, None), RETRY_LONGEST);
        assert_eq!(middle(1, Some(60 * minute)), 60 * minute);
        assert_eq!(middle(3, Some(minute)), 4 * minute);
        assert_eq!(middle(1, Some(Duration::MAX)), LEFT_ALONE_LONGEST);
        assert_eq!(pause(1, None, 0.0), Duration::from_secs(45));
        assert_eq!(pause(1, None, 1.0), Duration::from_secs(75));
    }

    #[test]
    fn validity_is_read_from_first_certificate() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let made = samovar_testkit::Certificate::own(folder.path(), "a", "DNS:a.example");
        let pem = std::fs::read(&made.chain).expect("our own file");
        let key = std::fs::read(&made.key).expect("our own file");
        let validity = Validity::read(&[key.clone(), pem].concat()).expect("it has dates");
        assert_eq!(validity.life(), Duration::from_hours(30 * 24));
        assert!(Validity::read(&key).is_err() && Validity::read(b"").is_err());
    }
}
