//! Figures of PHP's engine in the status of a pool.

use samovar_supervisor::Report;
use samovar_wire::{MessagesStatus, OpcacheStatus};

pub(super) fn opcache(report: &Report) -> Option<OpcacheStatus> {
    report.opcache.map(|of| OpcacheStatus {
        used_bytes: of.used_bytes,
        free_bytes: of.free_bytes,
        wasted_bytes: of.wasted_bytes,
        full: of.is_full,
        strings: of.strings,
        strings_used_bytes: of.strings_used_bytes,
        strings_free_bytes: of.strings_free_bytes,
        scripts: of.scripts,
        keys: of.keys,
        keys_max: of.keys_max,
        hits_total: of.hits,
        misses_total: of.misses,
        restarts_memory_total: of.restarts_memory,
        restarts_keys_total: of.restarts_keys,
        restarts_manual_total: of.restarts_manual,
    })
}

pub(super) fn messages(report: &Report) -> MessagesStatus {
    let [error_total, warning_total, notice_total, deprecated_total] = report.messages;
    MessagesStatus { error_total, warning_total, notice_total, deprecated_total }
}
