//! Figures and alarms of a canary → texts and wire messages.

use samovar_canary::{Alarm, Metric, RouteSummary};
use samovar_insight::RecordedError;
use samovar_wire::CanaryRoute;
use std::path::Path;

/// Maximum length of the stored text of an error.
pub(super) const TRACE_BYTES_MAX: usize = 4_096;
/// Number of characters of a message that distinguish it.
const MESSAGE_CHARS: usize = 200;

/// An error that a request has reported.
pub(super) struct KnownError {
    pub(super) id: u64,
    pub(super) trace: String,
    /// Route of the first occurrence.
    pub(super) route: String,
    /// PHP ended the request.
    pub(super) is_fatal: bool,
}

/// Returns the fingerprint of an error (FNV-1a, 64 bits): class, file and message. Lines and
/// numbers are left out, and files are relative to the application, so a release that only moves
/// code has the same fingerprints.
pub(super) fn fingerprint(error: &RecordedError, root: &Path) -> u64 {
    let file = Path::new(&*error.file);
    let below = |folder: &'_ Path| file.strip_prefix(folder).ok().map(Path::to_path_buf);
    // The root is usually the folder `public` of the application.
    let parent = root.parent().filter(|parent| parent.parent().is_some());
    let file = parent.and_then(below).or_else(|| below(root)).unwrap_or_else(|| file.to_owned());
    let message: String = error.message.chars().take(MESSAGE_CHARS).collect();
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |bytes: &[u8]| {
        for byte in bytes.iter().chain(&[0]) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    add(error.class.as_bytes());
    add(file.as_os_str().as_encoded_bytes());
    for part in message.split(|c: char| c.is_ascii_digit()).filter(|part| !part.is_empty()) {
        add(part.as_bytes());
    }
    hash
}

pub(super) fn route_status(route: &RouteSummary) -> CanaryRoute {
    let [fatal, failure, rejection, cpu_ns, latency_ns, memory_bytes, growth_bytes] = route.figures;
    CanaryRoute {
        route: route.name.clone(),
        requests: route.requests,
        fatal,
        failure,
        rejection,
        cpu_ns,
        latency_ns,
        memory_bytes,
        growth_bytes,
    }
}

pub(super) fn alarm_text(alarm: &Alarm) -> String {
    let [old, new] = alarm.figures.map(|value| figure_text(alarm.metric, value));
    let [before, now] = alarm.requests;
    let on = match (&*alarm.route, alarm.is_sum) {
        ("", _) => "on all routes".to_owned(),
        (route, true) => format!("on all routes, most on `{route}`"),
        (route, false) => format!("on `{route}`"),
    };
    format!(
        "{} {on}: {old} in the serving generation ({before} requests), {new} in the canary ({now} \
         requests)",
        alarm.metric.name()
    )
}

fn figure_text(metric: Metric, value: f64) -> String {
    match metric {
        Metric::Fatal | Metric::Failure | Metric::Rejection => format!("{:.2} %", 100.0 * value),
        Metric::Cpu | Metric::Latency => format!("{:.3} ms", value / 1e6),
        Metric::Memory | Metric::Growth => format!("{:.1} KiB", value / 1_024.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use samovar_insight::ErrorKind;

    fn error(file: &str, line: u32, message: &str) -> RecordedError {
        RecordedError {
            kind: ErrorKind::Uncaught,
            class: "RuntimeException".into(),
            message: message.into(),
            file: file.into(),
            line,
            stack: "".into(),
            previous: Vec::new(),
        }
    }

    #[test]
    fn moved_code_keeps_its_fingerprint() {
        let of = |release: u32, line, message| {
            let file = format!("/srv/releases/{release}/src/Shop.php");
            let root = format!("/srv/releases/{release}/public");
            fingerprint(&error(&file, line, message), Path::new(&root))
        };
        assert_eq!(of(41, 3, "no stock of 17"), of(42, 99, "no stock of 4"));
        assert_ne!(of(41, 3, "no stock of 17"), of(41, 3, "no price of 17"));
        let at_top = |file: &str| fingerprint(&error(file, 1, "x"), Path::new("/srv"));
        assert_ne!(at_top("/srv/a.php"), at_top("/srv/b.php"));
    }

    #[test]
    fn alarm_names_route_and_figures() {
        let alarm = Alarm {
            metric: Metric::Cpu,
            route: "GET /cart".to_owned(),
            is_sum: false,
            figures: [2e6, 2.5e6],
            requests: [900, 50],
            excess: 0.1,
        };
        assert_eq!(
            alarm_text(&alarm),
            "CPU time on `GET /cart`: 2.000 ms in the serving generation (900 requests), 2.500 ms \
             in the canary (50 requests)"
        );
    }
}
