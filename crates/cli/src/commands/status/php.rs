//! Lines of `samovar status` about PHP's engine: a full opcache, and messages.

use samovar_wire::Application;
use std::fmt::Write;

/// Writes nothing if opcache has room and PHP has reported nothing.
pub(super) fn render(of: &Application<'_>, prefix: &str, out: &mut String) {
    if let Some(opcache) = of.opcache.filter(|opcache| opcache.full) {
        let _ = writeln!(
            out,
            "{prefix}opcache is full: {} scripts, {} restarts because of that; raise \
             opcache.memory_consumption",
            opcache.scripts, opcache.restarts_memory_total
        );
    }
    let levels = of.messages.by_level();
    if levels.iter().any(|(_, number)| *number > 0) {
        let each: Vec<_> =
            levels.iter().map(|(level, number)| format!("{level} {number}")).collect();
        let _ = writeln!(out, "{prefix}PHP messages: {}", each.join("  "));
    }
}

#[cfg(test)]
mod tests {
    use super::render;
    use samovar_wire::{MessagesStatus, OpcacheStatus, Status};

    #[test]
    fn full_opcache_and_messages_have_lines() {
        let text = |status: &Status| {
            let mut out = String::new();
            render(&status.applications()[0], "", &mut out);
            out
        };
        let mut status = Status { opcache: Some(OpcacheStatus::default()), ..Status::default() };
        assert_eq!(text(&status), "");
        status.opcache = Some(OpcacheStatus { full: true, scripts: 7, ..Default::default() });
        status.messages = MessagesStatus { warning_total: 3, ..MessagesStatus::default() };
        assert_eq!(
            text(&status),
            "opcache is full: 7 scripts, 0 restarts because of that; raise \
             opcache.memory_consumption\nPHP messages: error 0  warning 3  notice 0  deprecated 0\n"
        );
    }
}
