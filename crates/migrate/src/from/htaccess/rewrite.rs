//! `RewriteRule` with its conditions → redirects, denials, the front controller.

use super::reader::Reader;
use crate::from::draft::{Block, Value};
use crate::from::glob;
use crate::from::origin::Origin;
use crate::from::shared::{is_script, script_and_query};

impl Reader<'_> {
    pub(super) fn rule(
        &mut self,
        args: &[String],
        conditions: &[(String, Origin)],
        origin: &Origin,
    ) {
        let arg = |at: usize| args.get(at).map_or("", String::as_str);
        let (regex, target) = (arg(0), arg(1));
        let flags: Vec<String> = arg(2)
            .trim_matches(['[', ']'])
            .split(',')
            .map(|flag| flag.trim().to_ascii_uppercase())
            .collect();
        let has = |name: &str| {
            let long = if name == "F" { "FORBIDDEN" } else { "GONE" };
            flags.iter().any(|flag| flag == name || flag == long)
        };
        let redirect = flags.iter().find_map(|flag| match flag.as_str() {
            "R" => Some(302),
            flag => flag.strip_prefix("R=")?.parse::<u16>().ok(),
        });
        let refusal = redirect.filter(|status| *status >= 400);
        let redirect = redirect.filter(|status| *status < 400);
        let is_file =
            |text: &str| text.contains("%{REQUEST_FILENAME}") || text.contains("%{DOCUMENT_ROOT}");
        let only_files = conditions.iter().all(|(text, _)| is_file(text));
        let (script, _) = script_and_query(target);
        if target == "-" && flags.iter().any(|flag| flag.starts_with("E=")) {
            return self.draft.built_in(origin, "PHP gets all headers, Authorization included");
        }
        if let Some(status) = redirect {
            let is_https = conditions
                .iter()
                .any(|(text, _)| text.contains("HTTPS") || text.contains("X-Forwarded-Proto"));
            if is_https {
                return self
                    .draft
                    .differs(origin, "redirect to HTTPS with `listen = [\":80?redirect\"]`");
            }
            if !conditions.is_empty() {
                return self.conditional(conditions, regex, target, status, origin);
            }
            return self.moved(
                rewrite_patterns(regex).as_deref(),
                &absolute(&target.replace("$1", "*")),
                status,
                origin,
            );
        }
        if has("F") || has("G") || refusal.is_some() {
            let is_control = |(text, _): &(String, Origin)| {
                let (variable, rest) = text.split_once(' ').unwrap_or((text, ""));
                let names = ["%{REMOTE_ADDR}", "%{REMOTE_HOST}", "%{REMOTE_USER}", "%{HTTP:"];
                let is_about = names.iter().any(|name| variable.starts_with(name));
                is_about && (rest.starts_with('!') || rest == "^$")
            };
            if conditions.iter().any(is_control) {
                let paths = rewrite_patterns(regex).filter(|_| !is_every(regex));
                let Some(paths) = paths else {
                    self.control.get_or_insert(origin.clone());
                    return;
                };
                let mut block = Block::location(&[], &paths, origin);
                self.draft.guard(&mut block, origin);
                self.blocks.push(block);
                return;
            }
            if !only_files && !conditions.is_empty() {
                return self.draft.missing(origin, "no conditions: decide it in PHP");
            }
            let is_hidden = regex.contains("(^|/)\\.")
                || regex.starts_with("^\\.")
                || regex.starts_with("/\\.");
            let paths = rewrite_patterns(regex);
            if paths.is_none() && is_hidden && !regex.trim_start_matches("(^|/)").contains('|') {
                return self.draft.built_in(origin, "hidden files are never served");
            }
            let (key, value) = if has("F") || refusal == Some(403) {
                ("deny", Value::plain(true))
            } else {
                ("status", Value::plain(refusal.unwrap_or(410)))
            };
            return self.ended(paths, key, value, origin);
        }
        if target == "-" {
            return self.draft.built_in(origin, "files are served before the front controller");
        }
        let is_all = matches!(
            regex,
            "^" | "." | ".*" | "^.*$" | "^(.*)$" | "(.*)" | "^(.*)" | "^.*" | "^(.+)$" | ".?"
        );
        if is_script(script) && is_all && only_files {
            return self.front(target, origin);
        }
        let advice = "paths are not rewritten: let the front controller read REQUEST_URI";
        self.draft.missing(origin, advice);
    }

    /// A redirect of one host.
    fn conditional(
        &mut self,
        conditions: &[(String, Origin)],
        regex: &str,
        target: &str,
        status: u16,
        origin: &Origin,
    ) {
        let [(condition, _)] = conditions else {
            return self.draft.missing(origin, "no conditions: redirect in PHP");
        };
        let host = condition.strip_prefix("%{HTTP_HOST} ").map(|text| {
            let text = text.split(' ').next().unwrap_or_default();
            text.trim_start_matches('^').trim_end_matches('$').replace("\\.", ".")
        });
        let is_name =
            |host: &String| host.bytes().all(|b| b.is_ascii_alphanumeric() || b"-.".contains(&b));
        let is_all = matches!(regex, "^(.*)$" | "(.*)" | "^" | ".*" | "^(.*)" | "^.*$");
        let to = target.replace("%{REQUEST_URI}", "/*").replace("$1", "*").replace("//*", "/*");
        match host.filter(is_name) {
            Some(host) if is_all && target.contains("://") && !to.contains('%') => {
                let to = to.replacen(":/", "://", usize::from(!to.contains("://")));
                let mut block = Block::location(&[host], &[String::from("/*")], origin);
                block.set("redirect", Value::Text(to), origin);
                if status != 301 {
                    block.set("status", Value::plain(status), origin);
                }
                self.blocks.push(block);
            }
            _ => self.draft.missing(origin, "no conditions: redirect in PHP, or by `host`"),
        }
    }
}

/// Patterns of a `RewriteRule`: its paths have no leading slash.
fn rewrite_patterns(regex: &str) -> Option<Vec<String>> {
    match regex.strip_prefix('^') {
        Some(rest) => glob::patterns(&format!("^/{}", rest.trim_start_matches('/'))),
        None => glob::patterns(regex),
    }
}

/// Whether an expression matches all paths.
fn is_every(regex: &str) -> bool {
    matches!(
        regex,
        "^" | "." | ".*" | "^.*$" | "^(.*)$" | "(.*)" | "^(.*)" | "^.*" | "^(.+)$" | "$"
    )
}

fn absolute(target: &str) -> String {
    if target.contains("://") || target.starts_with('/') {
        target.to_owned()
    } else {
        format!("/{target}")
    }
}
