//! What went wrong while a certificate was fetched, and what to do about it.

use crate::plan::Way;
use instant_acme::{Error, Problem};
use std::time::Duration;

/// Longest text of an authority's that is told.
const TEXT_CHARS_MAX: usize = 600;

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    /// The end of a sentence that begins with what was tried.
    pub(crate) what: String,
    pub(crate) hint: String,
    /// The authority wants to be left alone for so long.
    pub(crate) asked: Option<Duration>,
    /// It does not know the account.
    pub(crate) is_stranger: bool,
}

impl Trouble {
    pub(crate) fn new(what: impl Into<String>, hint: impl Into<String>) -> Trouble {
        let what = one_line(&what.into());
        Trouble { what, hint: hint.into(), asked: None, is_stranger: false }
    }

    /// Of an authority, in one step.
    pub(crate) fn of(step: &str, error: &Error, way: Option<Way>) -> Trouble {
        match error {
            Error::Api(problem) => Trouble::told(step, problem, way),
            Error::Json(error) => Trouble::new(
                format!("{step}: the authority's answer makes no sense: {error}"),
                "does `acme.directory` name an ACME directory?",
            ),
            Error::Timeout(_) => Trouble::new(
                format!("{step}: the authority did not come to a decision in time"),
                "it is tried again; the authority may be busy",
            ),
            Error::Other(error) => Trouble::new(
                format!("{step}: {error}"),
                "can this machine reach `acme.directory` (names, firewall)? Is its clock right? A private authority \
                 needs `acme.ca`",
            ),
            other => Trouble::new(
                format!("{step}: {other}"),
                "it is tried again; if it stays so, another `acme.directory` may do better",
            ),
        }
    }

    /// What the authority itself says.
    fn told(step: &str, problem: &Problem, way: Option<Way>) -> Trouble {
        let kind = problem.r#type.as_deref().unwrap_or_default();
        let kind = kind.strip_prefix("urn:ietf:params:acme:error:").unwrap_or(kind);
        let detail = match (&problem.detail, problem.subproblems.first()) {
            (Some(detail), Some(first)) => format!("{detail} ({first})"),
            (Some(detail), None) => detail.clone(),
            (None, _) => "it does not say why".to_owned(),
        };
        let port = match way {
            Some(Way::TlsAlpn01) => "443",
            Some(Way::Http01) => "80",
            None => "80 or 443",
        };
        let hint = match kind {
            "dns" => "the name must lead to this machine: look at its A and AAAA records".to_owned(),
            "connection" | "tls" => format!(
                "the authority must reach this server on port {port} of that name: look at firewall, port \
                 forwarding, `listen`, and at its A and AAAA records"
            ),
            "unauthorized" | "incorrectResponse" => format!(
                "something else answered on port {port} of that name: another server, a proxy in front, or what \
                 its AAAA record leads to"
            ),
            "caa" => "the name's CAA record must allow this authority".to_owned(),
            "rateLimited" => {
                "it is asked again when it wants to; until then do not start the server with an empty \
                 `acme.folder`, and try things out with a staging directory"
                    .to_owned()
            }
            "externalAccountRequired" => {
                "it wants an account that it has made: set `acme.eab_id` and `acme.eab_key`".to_owned()
            }
            "userActionRequired" => {
                "its terms have changed: read them, and agree to them as it says".to_owned()
            }
            "rejectedIdentifier" | "unsupportedIdentifier" => {
                "this authority issues no certificate for that name: take it out of `acme.domains`, or choose \
                 another `acme.directory`"
                    .to_owned()
            }
            "invalidContact" | "unsupportedContact" => "look at `acme.email`".to_owned(),
            "accountDoesNotExist" => "an account is made anew".to_owned(),
            _ => "it is tried again".to_owned(),
        };
        let mut trouble = Trouble::new(format!("{step}: {detail} ({kind})"), hint);
        trouble.is_stranger = kind == "accountDoesNotExist";
        trouble
    }

    /// With what the authority has asked for.
    pub(crate) fn after(mut self, asked: Option<Duration>) -> Trouble {
        self.asked = self.asked.or(asked);
        self
    }
}

/// What others say may hold anything.
fn one_line(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
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
    fn what_is_told_says_what_to_do() {
        for (kind, hint) in [
            ("dns", "A and AAAA records"),
            ("connection", "port 80 of that name"),
            ("unauthorized", "something else answered"),
            ("rateLimited", "asked again when it wants to"),
            ("externalAccountRequired", "acme.eab_id"),
            ("whatever", "tried again"),
        ] {
            let json = format!(
                r#"{{"type": "urn:ietf:params:acme:error:{kind}", "detail": "No.", "status": 400}}"#
            );
            let trouble = Trouble::of("the order", &problem(&json), Some(Way::Http01));
            assert_eq!(trouble.what, format!("the order: No. ({kind})"));
            assert!(trouble.hint.contains(hint), "{kind}: {}", trouble.hint);
        }
        let stranger = r#"{"type": "urn:ietf:params:acme:error:accountDoesNotExist"}"#;
        assert!(Trouble::of("the order", &problem(stranger), None).is_stranger);
    }

    #[test]
    fn no_authority_forges_a_line() {
        let long = format!(r#"{{"detail": "a\nb\u001b[1m{}"}}"#, "x".repeat(5000));
        let trouble = Trouble::of("the order", &problem(&long), None);
        assert!(trouble.what.starts_with("the order: a b [1mxxx"), "{}", trouble.what);
        assert!(trouble.what.chars().count() <= TEXT_CHARS_MAX + 1);
        let first = Trouble::new("a", "b").after(Some(Duration::from_secs(3)));
        assert_eq!(first.asked, Some(Duration::from_secs(3)));
    }
}
