//! Pages of queues with a range: totals of an hour, as the server keeps them by minute.

use super::{show, sources};
use samovar_insight::Batch;
use samovar_wire::{QueueMinute, QueueTotals};
use serde_json::json;
use std::sync::Arc;

/// Ten jobs a minute for an hour.
pub(super) fn minutes() -> Vec<Arc<QueueMinute>> {
    let now = samovar_insight::now();
    let minute = |minutes: u64| {
        let pushed = 600 - 10 * minutes;
        let totals = QueueTotals { pushed, oldest_ms: 7_000, ..QueueTotals::default() };
        let queues = vec![("mail".into(), totals)];
        Arc::new(QueueMinute { at: (now / 60 - minutes) * 60, queues })
    };
    (0..60).rev().map(minute).collect()
}

/// The last 20 jobs came since the last minute.
#[test]
fn queues_have_a_range_and_the_period_before() {
    let report = json!({ "uptime_seconds": 3_600, "queues": [
        { "name": "mail", "pushed_total": 620, "ready": 3 },
    ] });
    let sources = sources(report, &Batch::default(), 10);
    let page = show(&sources, "/queues?range=15m");
    for expected in [
        "/queue?name=mail&amp;range=15m",
        "aria-current=\"true\">15 min<",
        ", before 10/min",
        ">7 s<",
    ] {
        assert!(page.contains(expected), "{expected}:\n{page}");
    }
    // The range begins with the minute of 15 minutes ago.
    assert!(page.contains(">170<") || page.contains(">180<"), "{page}");
    let page = show(&sources, "/queues?range=1d");
    assert!(page.contains("for at most 25 hours") && page.contains(">610<"), "{page}");
    assert!(!page.contains(", before "), "{page}");
    let page = show(&sources, "/queue?name=mail&range=15m&compare=none");
    assert!(page.contains("Jobs per minute") && !page.contains("before: "), "{page}");
}
