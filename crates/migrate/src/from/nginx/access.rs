//! Control of access that Samovar has no setting for: passwords, addresses, subrequests, code.
//!
//! A path with it is denied in the converted settings: an open path would be worse than a closed
//! one. As in nginx, a block has the controls of the block around it unless it sets its own.

use crate::from::directive::Directive;
use crate::from::origin::Origin;

/// Directives of a kind that control nothing themselves.
const DETAILS: [&str; 6] = [
    "auth_basic_user_file",
    "auth_delay",
    "auth_digest_user_file",
    "auth_http",
    "auth_jwt_key_file",
    "auth_request_set",
];
/// Starts of the names of directives that control access.
const STARTS: [&str; 5] = ["auth_", "access_by_lua", "rewrite_by_lua", "js_access", "secure_link"];

/// Variables that are compared for other reasons than access.
const NO_CONTROL: [&str; 17] = [
    "$args",
    "$content_type",
    "$host",
    "$http_host",
    "$http_referer",
    "$http_user_agent",
    "$http_x_forwarded_proto",
    "$https",
    "$request_filename",
    "$request_method",
    "$request_uri",
    "$scheme",
    "$server_name",
    "$server_port",
    "$server_protocol",
    "$ssl_protocol",
    "$uri",
];
/// Variables whose every comparison is about access.
const VERDICTS: [&str; 3] = ["$secure_link", "$ssl_client_verify", "$remote_user"];

/// Whether an `if` refuses all requests but those with a certain value.
fn is_condition(d: &Directive) -> bool {
    let refuses = |inner: &Directive| {
        inner.name == "return" && matches!(inner.arg(0), "401" | "403" | "404" | "444")
    };
    if d.name != "if" || !d.inner().iter().any(refuses) {
        return false;
    }
    let text = d.args.join(" ");
    let mut words = text.trim_start_matches(['(', ' ']).split_whitespace();
    let variable = words.next().unwrap_or_default();
    let operator = words.next().unwrap_or_default();
    let is_variable = variable.starts_with('$') && !NO_CONTROL.contains(&variable);
    VERDICTS.contains(&variable) || (is_variable && operator.starts_with('!'))
}

/// Controls of a block by kind, with the directive that applies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Controls(Vec<(String, Origin)>);

impl Controls {
    /// Controls of the directives outside of servers.
    pub(super) fn of_all(directives: &[&Directive]) -> Controls {
        let mut controls = Controls::default();
        controls.read(directives.iter().copied());
        controls
    }

    /// Controls of a block inside of this one.
    pub(super) fn inside(&self, block: &Directive) -> Controls {
        let mut controls = self.clone();
        controls.read(block.inner().iter());
        controls
    }

    fn read<'a>(&mut self, directives: impl Iterator<Item = &'a Directive> + Clone) {
        let is_rule = |d: &&Directive| matches!(d.name.as_str(), "allow" | "deny");
        if let Some(rule) = directives.clone().find(is_rule) {
            let denies = |d: &&Directive| {
                d.name == "deny" && matches!(d.arg(0), "all" | "0.0.0.0/0" | "::/0")
            };
            let last = directives.clone().filter(is_rule).find(denies);
            self.set("address", last.is_some(), last.unwrap_or(rule));
        }
        for d in directives {
            let name = d.name.as_str();
            if STARTS.iter().any(|start| name.starts_with(start)) && !DETAILS.contains(&name) {
                self.set(name, d.arg(0) != "off", d);
            } else if is_condition(d) {
                self.set("if", true, d);
            }
        }
    }

    fn set(&mut self, kind: &str, is_on: bool, d: &Directive) {
        self.0.retain(|(known, _)| known != kind);
        if is_on {
            self.0.push((kind.to_owned(), d.origin.clone()));
        }
    }

    /// The directive that controls access; `None`: everyone has access.
    pub(super) fn first(&self) -> Option<&Origin> {
        self.0.first().map(|(_, origin)| origin)
    }
}

/// The constant start of a regular expression, such as `/intern/` of `^/intern/(?!open)`.
pub(super) fn constant_start(regex: &str) -> Option<String> {
    let rest = regex.strip_prefix('^')?;
    if has_outer_alternative(rest) {
        return None;
    }
    let mut start = String::new();
    let mut chars = rest.chars().peekable();
    while let Some(c) = chars.next() {
        let literal = match c {
            '\\' => match chars.next() {
                Some(escaped) if !escaped.is_ascii_alphanumeric() => escaped,
                _ => break,
            },
            '.' | '(' | '[' | '{' | '*' | '+' | '?' | '|' | '^' | '$' | ')' => break,
            c => c,
        };
        // The character may be missing in the path.
        if matches!(chars.peek(), Some('?' | '*' | '{')) {
            break;
        }
        start.push(literal);
    }
    (start.len() > 1 && start.starts_with('/')).then_some(start)
}

/// Whether an alternative is outside of groups: it has a start of its own.
pub(super) fn has_outer_alternative(regex: &str) -> bool {
    let (mut depth, mut is_escaped) = (0_usize, false);
    for c in regex.chars() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            '|' if depth == 0 => return true,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::constant_start;

    #[test]
    fn constant_starts_are_those_of_all_matches() {
        for (regex, start) in [
            ("^/intern/(?!open)", Some("/intern/")),
            ("^/a\\.b/[^x]+$", Some("/a.b/")),
            ("^/ab?c", Some("/a")),
            ("^/ab*(c)", Some("/a")),
            ("^/a+(?=x)", Some("/a")),
            ("^/(a|b)(?!c)", None),
            ("^/a|^/b(?!c)", None),
            ("^/a(x)|^/b(?!c)", None),
            ("/a(?!b)", None),
            ("^/\\d+", None),
        ] {
            assert_eq!(constant_start(regex).as_deref(), start, "{regex}");
        }
    }
}
