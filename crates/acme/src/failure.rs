//! Errors while a certificate is ordered, with hints for the operator.

use crate::plan::Way;
use instant_acme::{Error, Problem};
use samovar_log::is_unprintable;
use std::time::Duration;

/// Maximum number of characters of an authority's text that are logged.
const TEXT_CHARS_MAX: usize = 600;

/// A failed step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AcmeFailure {
    /// Failed step and reason: the end of a sentence such as "no certificate: …".
    pub(crate) message: String,
    pub(crate) hint: String,
    /// Wait that the authority requested.
    pub(crate) asked: Option<Duration>,
    /// The authority does not know the account.
    pub(crate) is_stranger: bool,
}

impl AcmeFailure {
    pub(crate) fn new(message: impl Into<String>, hint: impl Into<String>) -> AcmeFailure {
        let message = one_line(&message.into());
        AcmeFailure { message, hint: hint.into(), asked: None, is_stranger: false }
    }

    /// Makes an error from one step with the authority.
    pub(crate) fn of(step: &str, error: &Error, way: Option<Way>) -> AcmeFailure {
        match error {
            Error::Api(problem) => AcmeFailure::told(step, problem, way),
            Error::Json(error) => AcmeFailure::new(
                format!("{step}: invalid response from the authority: {error}"),
                "check that `acme.directory` is the URL of an ACME directory",
            ),
            Error::Timeout(_) => AcmeFailure::new(
                format!("{step}: the authority did not decide in time"),
                "wait for the next attempt; the authority may be busy",
            ),
            Error::Other(error) => AcmeFailure::new(
                format!("{step}: {error}"),
                "check that this machine can reach `acme.directory` (DNS, firewall), and check its \
                 clock; for a private authority, set `acme.ca`",
            ),
            other => AcmeFailure::new(
                format!("{step}: {other}"),
                "wait for the next attempt; if it fails too, use another `acme.directory`",
            ),
        }
    }

    /// Makes an error from a problem document of the authority.
    fn told(step: &str, problem: &Problem, way: Option<Way>) -> AcmeFailure {
        let kind = problem.r#type.as_deref().unwrap_or_default();
        let kind = kind.strip_prefix("urn:ietf:params:acme:error:").unwrap_or(kind);
        let detail = match (&problem.detail, problem.subproblems.first()) {
            (Some(detail), Some(first)) => format!("{detail} ({first})"),
            (Some(detail), None) => detail.clone(),
            (None, _) => "no reason given".to_owned(),
        };
        let port = match way {
            Some(Way::TlsAlpn01) => "443",
            Some(Way::Http01) => "80",
            None => "80 or 443",
        };
        let hint = match kind {
            "dns" => "check the A and AAAA records of the name: it must resolve to this machine"
                .to_owned(),
            "connection" | "tls" => format!(
                "make sure that the authority can reach this server on port {port} of that name: \
                 check firewall, port forwarding, `listen`, and its A and AAAA records"
            ),
            "unauthorized" | "incorrectResponse" => format!(
                "another server responded on port {port} of that name: check its A and AAAA \
                 records, and any proxy in front"
            ),
            "caa" => "allow this authority in the CAA record of the name".to_owned(),
            "rateLimited" => {
                "wait for the next attempt, at the time that the authority requested; do not start \
                 the server with an empty `acme.folder` until then, and use a staging directory \
                 for tests"
                    .to_owned()
            }
            "externalAccountRequired" => {
                "set `acme.eab_id` and `acme.eab_key`: the authority requires an account that it \
                 has created"
                    .to_owned()
            }
            "userActionRequired" => {
                "read the changed terms of the authority, and agree to them as it describes"
                    .to_owned()
            }
            "rejectedIdentifier" | "unsupportedIdentifier" => {
                "remove the name from `acme.domains`, or use another `acme.directory`: this \
                 authority issues no certificate for it"
                    .to_owned()
            }
            "invalidContact" | "unsupportedContact" => "check `acme.email`".to_owned(),
            "accountDoesNotExist" => {
                "wait for the next attempt: a new account is created".to_owned()
            }
            _ => "wait for the next attempt".to_owned(),
        };
        let mut trouble = AcmeFailure::new(format!("{step}: {detail} ({kind})"), hint);
        trouble.is_stranger = kind == "accountDoesNotExist";
        trouble
    }

    /// Adds the wait that the authority requested.
    pub(crate) fn after(mut self, asked: Option<Duration>) -> AcmeFailure {
        self.asked = self.asked.or(asked);
        self
    }
}

/// Makes external text safe for the log: control characters become spaces, and the length is
/// limited.
fn one_line(text: &str) -> String {
    let plain = |c: char| if is_unprintable(c) { ' ' } else { c };
    let mut line: String = text.chars().map(plain).take(TEXT_CHARS_MAX).collect();
    if text.chars().nth(TEXT_CHARS_MAX).is_some() {
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(json: &str) -> Error {
        Error::Api(serde_json::from_str(json).expect("a problem"))
    }

    #[test]
    fn problem_of_authority_has_matching_hint() {
        for (kind, hint) in [
            ("dns", "A and AAAA records"),
            ("connection", "port 80 of that name"),
            ("unauthorized", "another server responded"),
            ("rateLimited", "the time that the authority requested"),
            ("externalAccountRequired", "acme.eab_id"),
            ("unknown", "next attempt"),
        ] {
            let json = format!(
                r#"{{"type": "urn:ietf:params:acme:error:{kind}", "detail": "No.", "status": 400}}"#
            );
            let trouble = AcmeFailure::of("the order", &problem(&json), Some(Way::Http01));
            assert_eq!(trouble.message, format!("the order: No. ({kind})"));
            assert!(trouble.hint.contains(hint), "{kind}: {}", trouble.hint);
        }
        let stranger = r#"{"type": "urn:ietf:params:acme:error:accountDoesNotExist"}"#;
        assert!(AcmeFailure::of("the order", &problem(stranger), None).is_stranger);
    }

    #[test]
    fn text_of_authority_is_one_short_line() {
        let long = format!(r#"{{"detail": "a\nb\u001b[1m{}"}}"#, "x".repeat(5000));
        let trouble = AcmeFailure::of("the order", &problem(&long), None);
        assert!(trouble.message.starts_with("the order: a b [1mxxx"), "{}", trouble.message);
        assert!(trouble.message.chars().count() <= TEXT_CHARS_MAX + 1);
        let first = AcmeFailure::new("a", "b").after(Some(Duration::from_secs(3)));
        assert_eq!(first.asked, Some(Duration::from_secs(3)));
    }
}
