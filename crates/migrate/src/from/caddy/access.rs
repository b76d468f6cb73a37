//! Control of access: its paths are denied, because Samovar has no setting like it.

use super::context::Context;
use super::matcher::{self, Matcher};
use crate::from::directive::Directive;
use crate::from::draft::{Block, Draft, Value};
use crate::from::shared::resolved;

/// Directives that give access to some clients only.
pub(super) const CONTROLS: [&str; 6] =
    ["basic_auth", "basicauth", "forward_auth", "jwtauth", "authorize", "authenticate"];

/// Denies the paths of a matcher.
pub(super) fn guard(
    context: &mut Context<'_>,
    draft: &mut Draft,
    control: &Directive,
    matcher: &Matcher,
) {
    let mut block = context.block(matcher, control);
    draft.guard(&mut block, &control.origin);
    draft.differs(&control.origin, "Caddy ignores the case of paths, Samovar does not");
    context.blocks.push(block);
}

/// Whether a directive or one of its block passes a test.
fn any(d: &Directive, test: &dyn Fn(&Directive) -> bool) -> bool {
    test(d) || d.inner().iter().any(|inner| any(inner, test))
}

/// A directive whose matcher has no counterpart: it is not converted. If it controls access, the
/// paths of the matcher are denied without its other conditions: those of `wide`.
pub(super) fn unmatched(
    context: &mut Context<'_>,
    draft: &mut Draft,
    d: &Directive,
    wide: &Matcher,
) {
    let refuses = |d: &Directive| match d.name.as_str() {
        "abort" => true,
        "respond" | "error" => {
            d.args.iter().any(|arg| matches!(arg.as_str(), "401" | "403" | "404"))
        }
        _ => false,
    };
    if any(d, &|d| CONTROLS.contains(&d.name.as_str())) {
        return guard(context, draft, d, wide);
    }
    if !any(d, &refuses) || matcher::is_by_request(d, &context.definitions) {
        return;
    }
    let excluded = matcher::excluded(d, &context.definitions);
    match excluded {
        // One denial with exceptions; the exceptions of a second one would open the first.
        Some(open) if refuses(d) && wide.paths.is_empty() && context.last.is_empty() => {
            let mut exceptions = Matcher { hosts: wide.hosts.clone(), paths: open };
            exceptions.add_prefix(&context.prefix);
            let mut opened: Block = context.block(&exceptions, d);
            opened.set("deny", Value::plain(false), &d.origin);
            let mut denied = context.block(wide, d);
            denied.set("path", Value::text("/*"), &d.origin);
            denied.set("deny", Value::plain(true), &d.origin);
            context.last.extend([opened, denied]);
        }
        _ => guard(context, draft, d, wide),
    }
}

/// Certificates of clients. Without a file of authorities, all paths are denied.
pub(super) fn client_auth(context: &mut Context<'_>, draft: &mut Draft, d: &Directive) {
    let mode = d.first("mode").map_or("require_and_verify", |mode| mode.arg(0));
    let pool = d.first("trust_pool").filter(|pool| pool.arg(0) == "file");
    let file = d
        .first("trusted_ca_cert_file")
        .or_else(|| pool?.first("pem_file"))
        .map(|file| file.arg(0))
        .or_else(|| pool?.args.get(1).map(String::as_str));
    match (mode, file) {
        ("request" | "require", _) => {
            draft.missing(&d.origin, "certificates are verified: check them in PHP");
            if mode == "require" {
                guard(context, draft, d, &Matcher::default());
            }
        }
        (_, Some(file)) => {
            let file = resolved(context.file, file);
            draft.set("tls", "client_ca", Value::Text(file), &d.origin);
            draft.client_certificates(mode != "verify_if_given", &d.origin);
        }
        (_, None) => guard(context, draft, d, &Matcher::default()),
    }
}
