//! Why a request failed.

use std::io::ErrorKind;

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No connection could be opened, or it broke. The request may have been carried out.
    #[error("no connection to Redis at {address}: {}", reason(source))]
    Connection {
        /// Address, without the password.
        address: String,
        /// Error of the system or of TLS.
        source: std::io::Error,
    },
    /// Redis refused the request. Nothing was done.
    #[error("Redis at {address} responded `{text}`{}", hint(text))]
    Refused {
        /// Address, without the password.
        address: String,
        /// Its message.
        text: String,
    },
    /// The peer sent something else than a reply, or one that is too large.
    #[error(
        "Redis at {address} sent an invalid reply: {why}\nhint: check the address; another server \
         may listen there"
    )]
    Invalid {
        /// Address, without the password.
        address: String,
        /// The defect.
        why: &'static str,
    },
    /// The server cannot be used.
    #[error("Redis at {address} has version {found}\nhint: use Redis 7.0 or newer, or Valkey")]
    Older {
        /// Address, without the password.
        address: String,
        /// Its version.
        found: String,
    },
}

impl Error {
    /// Whether waiting may help: the connection failed.
    pub fn is_connection(&self) -> bool {
        matches!(self, Error::Connection { .. })
    }

    /// Whether Redis reads its files after a start. It has done nothing.
    pub(crate) fn is_loading(&self) -> bool {
        matches!(self, Error::Refused { text, .. } if text.starts_with("LOADING"))
    }

    /// Whether Redis is up but cannot serve requests at present.
    pub fn is_temporary(&self) -> bool {
        let starts = |text: &str, words: &[&str]| words.iter().any(|word| text.starts_with(word));
        match self {
            Error::Connection { .. } => true,
            Error::Refused { text, .. } => {
                starts(text, &["LOADING", "BUSY", "MASTERDOWN", "READONLY", "OOM", "MISCONF"])
            }
            Error::Invalid { .. } | Error::Older { .. } => false,
        }
    }
}

/// Names the usual reason: a time limit of the system has the text `Resource temporarily
/// unavailable`.
fn reason(source: &std::io::Error) -> String {
    match source.kind() {
        _ if source.get_ref().is_some() => source.to_string(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut => "it did not respond in time".to_owned(),
        ErrorKind::UnexpectedEof => "it closed the connection".to_owned(),
        _ => source.to_string(),
    }
}

fn hint(text: &str) -> &'static str {
    let hints = [
        ("OOM", "\nhint: Redis has reached `maxmemory`: raise it, or lower `jobs.bytes_max`"),
        ("MISCONF", "\nhint: Redis cannot write its snapshot: check its disk"),
        ("NOAUTH", "\nhint: set `jobs.redis_password`"),
        ("WRONGPASS", "\nhint: check `jobs.redis_password`, and the user in `jobs.redis`"),
        ("READONLY", "\nhint: this is a replica: use the address of its primary"),
        ("NOPERM", "\nhint: the user needs the commands and keys that the guide lists"),
    ];
    hints.iter().find(|(word, _)| text.starts_with(word)).map_or("", |(_, hint)| hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_a_hint_for_the_operator() {
        let refused = |text: &str| Error::Refused { address: "a:1".into(), text: text.into() };
        assert!(refused("OOM command not allowed").to_string().contains("jobs.bytes_max"));
        assert!(refused("WRONGPASS invalid").to_string().contains("jobs.redis_password"));
        assert_eq!(refused("ERR other").to_string(), "Redis at a:1 responded `ERR other`");
        assert!(refused("LOADING Redis is loading").is_temporary());
        assert!(!refused("WRONGPASS invalid").is_temporary());
        assert!(refused("LOADING Redis is loading").is_loading());
        assert!(!refused("BUSY Redis is busy").is_loading());
        let source = std::io::Error::from(ErrorKind::WouldBlock);
        let late = Error::Connection { address: "a:1".into(), source };
        assert!(late.is_connection() && late.to_string().contains("did not respond in time"));
        let source = std::io::Error::new(ErrorKind::TimedOut, "the lookup did not end in time");
        let late = Error::Connection { address: "a:1".into(), source };
        assert!(late.to_string().contains("the lookup did not end"));
    }
}
