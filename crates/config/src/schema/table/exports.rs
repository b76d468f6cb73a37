//! The exports of the section Insight: external systems that receive measurements, and the traces
//! that requests belong to.

use crate::schema::notation;
use crate::schema::setting::{Group, Kind, OnReload, Preset, Setting};
use crate::schema::settings::{OtlpHistograms, TraceFrom};

use super::row::{self, path};

/// Common values of this section's rows.
const PLAIN: Setting = Setting { group: Group::Insight, ..row::PLAIN };

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        key: "insight.service",
        flag: "insight-service",
        value: "NAME",
        kind: Kind::Text {
            allowed: "1 to 200 characters without control characters",
            set: |settings, text, _| {
                let is_name = (1..=200).contains(&text.len()) && !text.contains(char::is_control);
                is_name.then(|| text.clone_into(&mut settings.insight.service))
            },
        },
        default: Preset::Text("samovar"),
        doc: "Name of this site in exported data",
        long: "OpenTelemetry's `service.name`, and the server name in Pinba's packets.",
        on_reload: OnReload::Kept(|old, new| old.insight.service != new.insight.service),
        ..PLAIN
    },
    Setting {
        key: "insight.otlp",
        flag: "insight-otlp",
        value: "URL",
        kind: Kind::Text {
            allowed: "an address such as `http://127.0.0.1:4318`, without /v1/traces",
            set: |settings, text, _| {
                is_collector(text).then(|| settings.insight.otlp.endpoint = Some(text.to_owned()))
            },
        },
        default: Preset::Derived("none: nothing is exported"),
        doc: "OpenTelemetry collector for spans and metrics: OTLP over HTTP",
        long: "If the collector is unreachable or hangs, spans are lost, and requests are not \
               affected. If it is set, each request belongs to a trace, and PHP receives a \
               `traceparent`.",
        on_reload: OnReload::Kept(|old, new| {
            old.insight.otlp.endpoint != new.insight.otlp.endpoint
        }),
        ..PLAIN
    },
    Setting {
        key: "insight.otlp_headers",
        flag: "insight-otlp-headers",
        value: "NAME=VALUE",
        kind: Kind::Pairs {
            allowed: "`name=value` of a header, such as `authorization=Bearer abc`",
            put: |settings, text, _| {
                let (name, value) = header(text)?;
                settings.insight.otlp.headers.insert(name, value.into());
                Some(())
            },
            unpaired: None,
        },
        default: Preset::Derived("none"),
        doc: "Header of each request to the collector (repeatable)",
        long: "In the file: the table [insight.otlp_headers]. Set secrets in the environment: the \
               command line is visible to all users of the machine.",
        on_reload: OnReload::Kept(|old, new| old.insight.otlp.headers != new.insight.otlp.headers),
        is_secret: true,
        ..PLAIN
    },
    Setting {
        key: "insight.otlp_timeout",
        flag: "insight-otlp-timeout",
        value: "TIME",
        kind: Kind::Timeout { zero: None, field: |settings| &mut settings.insight.otlp.timeout },
        default: Preset::Text("10s"),
        doc: "Timeout of each step of a request to the collector",
        long: "Steps are connecting, sending, and waiting for the response.",
        on_reload: OnReload::Kept(|old, new| old.insight.otlp.timeout != new.insight.otlp.timeout),
        ..PLAIN
    },
    Setting {
        key: "insight.otlp_interval",
        flag: "insight-otlp-interval",
        former_flag: Some("insight-otlp-every"),
        former_key: Some("insight.otlp_every"),
        value: "TIME",
        kind: Kind::Timeout { zero: None, field: |settings| &mut settings.insight.otlp.interval },
        default: Preset::Text("5s"),
        doc: "Interval between two exports of spans",
        on_reload: OnReload::Kept(|old, new| {
            old.insight.otlp.interval != new.insight.otlp.interval
        }),
        ..PLAIN
    },
    Setting {
        key: "insight.otlp_metrics_interval",
        flag: "insight-otlp-metrics-interval",
        former_flag: Some("insight-otlp-figures-every"),
        former_key: Some("insight.otlp_figures_every"),
        value: "TIME",
        kind: Kind::Timeout {
            zero: Some("never"),
            field: |settings| &mut settings.insight.otlp.metrics_interval,
        },
        default: Preset::Text("1m"),
        doc: "Interval between two exports of metrics to the collector",
        on_reload: OnReload::Kept(|old, new| {
            old.insight.otlp.metrics_interval != new.insight.otlp.metrics_interval
        }),
        ..PLAIN
    },
    Setting {
        key: "insight.otlp_histograms",
        flag: "insight-otlp-histograms",
        value: "FORM",
        kind: Kind::Word {
            words: OtlpHistograms::WORDS,
            set: |settings, index| settings.insight.otlp.histograms = OtlpHistograms::ALL[index],
        },
        default: Preset::Text("explicit"),
        doc: "Form of the histograms that the collector receives",
        long: "explicit: with the bounds of `insight.buckets`, which every receiver reads. \
               exponential: buckets 9 % apart, if the receiver supports exponential histograms.",
        on_reload: OnReload::Kept(|old, new| {
            old.insight.otlp.histograms != new.insight.otlp.histograms
        }),
        ..PLAIN
    },
    Setting {
        key: "insight.otlp_bytes_max",
        flag: "insight-otlp-bytes-max",
        value: "SIZE",
        kind: Kind::Size {
            min: 64 << 10,
            max: 1 << 30,
            field: |settings| &mut settings.insight.otlp.bytes_max,
        },
        default: Preset::Text("16M"),
        doc: "Maximum size of spans that wait for the collector; the oldest are dropped",
        long: "A span takes about 300 bytes, and a request has three or more.",
        on_reload: OnReload::Kept(|old, new| {
            old.insight.otlp.bytes_max != new.insight.otlp.bytes_max
        }),
        ..PLAIN
    },
    Setting {
        key: "insight.otlp_ca_file",
        flag: "insight-otlp-ca-file",
        former_flag: Some("insight-otlp-roots"),
        former_key: Some("insight.otlp_roots"),
        value: "FILE",
        kind: path(|settings, path| settings.insight.otlp.ca_file = Some(path), "a file in PEM"),
        default: Preset::Derived("the certificates that this machine trusts"),
        doc: "CA certificates to trust for an https:// collector",
        on_reload: OnReload::Kept(|old, new| old.insight.otlp.ca_file != new.insight.otlp.ca_file),
        ..PLAIN
    },
    Setting {
        key: "insight.trace_from",
        flag: "insight-trace-from",
        value: "CLIENTS",
        kind: Kind::Word {
            words: TraceFrom::WORDS,
            set: |settings, index| settings.insight.trace_from = TraceFrom::ALL[index],
        },
        default: Preset::Text("proxies"),
        doc: "Clients whose `traceparent` is accepted",
        long: "proxies: those in `trusted_proxies`. all: any client; each can then have its \
               requests recorded, and add them to other traces. A request without an accepted \
               `traceparent` begins a trace of this server.",
        ..PLAIN
    },
    Setting {
        key: "insight.trace_share",
        flag: "insight-trace-share",
        value: "PERCENT",
        kind: Kind::Text {
            allowed: "a share from `0%` to `100%`, such as `1%` or `0.05%`",
            set: |settings, text, _| share(text).map(|ppm| settings.insight.trace_share_ppm = ppm),
        },
        default: Preset::Text("100%"),
        doc: "Share of the traces begun here that are recorded and sent to the collector",
        long: "The sender of an accepted `traceparent` decides whether its trace is recorded.",
        ..PLAIN
    },
    Setting {
        key: "insight.pinba",
        flag: "insight-pinba",
        value: "HOST:PORT",
        kind: Kind::Text {
            allowed: "an address such as `pinba.internal:30002`",
            set: |settings, text, _| {
                notation::listen(text).filter(|at| at.port != 0)?;
                settings.insight.pinba = Some(text.to_owned());
                Some(())
            },
        },
        default: Preset::Derived("none: nothing is sent"),
        doc: "Pinba server that receives a packet for each request that PHP has run",
        on_reload: OnReload::Kept(|old, new| old.insight.pinba != new.insight.pinba),
        ..PLAIN
    },
    Setting {
        key: "insight.pinba_listen",
        flag: "insight-pinba-listen",
        value: "ADDR",
        kind: Kind::Text {
            allowed: "an address such as `10.0.0.1:30002`",
            set: |settings, text, _| {
                settings.insight.pinba_listen = Some(notation::listen(text)?);
                Some(())
            },
        },
        default: Preset::Derived("none: no packets are received"),
        doc: "UDP address for packets of pinba extensions on other machines",
        long: "They are shown together with this server's own requests. Any client that reaches \
               the port can send false data: allow access from your own machines only.",
        on_reload: OnReload::Kept(|old, new| old.insight.pinba_listen != new.insight.pinba_listen),
        ..PLAIN
    },
];

/// Reads a share in percent, as millionths: `100%`, `2.5%`, `0.0001%`.
pub(super) fn share(text: &str) -> Option<u32> {
    const PPM_OF_PERCENT: u32 = 10_000;
    let (whole, part) = {
        let number = text.strip_suffix('%')?;
        number.split_once('.').unwrap_or((number, "0"))
    };
    let is_plain = (1..=4).contains(&part.len()) && whole.len() <= 3;
    let whole = u32::try_from(notation::digits(whole)?).ok().filter(|_| is_plain)?;
    let part = u32::try_from(notation::digits(&format!("{part:0<4}"))?).ok()?;
    Some(whole * PPM_OF_PERCENT + part).filter(|ppm| *ppm <= 100 * PPM_OF_PERCENT)
}

/// Reads a header whose name and value are valid in HTTP.
pub(super) fn header(text: &str) -> Option<(String, String)> {
    let (name, value) = text.split_once('=')?;
    let (name, value) = (name.trim().to_ascii_lowercase(), value.trim());
    let is_name = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    let is_fine = !name.is_empty()
        && name.bytes().all(is_name)
        && value.bytes().all(|b| b == b' ' || b.is_ascii_graphic());
    is_fine.then(|| (name, value.to_owned()))
}

pub(super) fn is_collector(text: &str) -> bool {
    let host = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    host.is_some_and(|host| {
        !host.is_empty() && host.bytes().all(|b| b.is_ascii_graphic() && !b"?#@".contains(&b))
    })
}

#[cfg(test)]
mod tests {
    use super::{header, is_collector, share};

    #[test]
    fn share_in_percent_is_exact() {
        for (text, expected) in [
            ("100%", Some(1_000_000)),
            ("1%", Some(10_000)),
            ("2.5%", Some(25_000)),
            ("0.0001%", Some(1)),
            ("0%", Some(0)),
            ("100.0001%", None),
            ("0.00001%", None),
            ("1", None),
            ("-1%", None),
            (".5%", None),
            ("1.%", None),
            ("%", None),
            ("1e1%", None),
        ] {
            assert_eq!(share(text), expected, "{text}");
        }
    }

    #[test]
    fn header_with_invalid_characters_is_refused() {
        for (text, is_one) in [
            ("authorization=Bearer a=b", true),
            ("X-Scope-OrgID=1", true),
            ("a b=c", false),
            ("=c", false),
            ("name", false),
            ("a=b\r\nc: d", false),
        ] {
            assert_eq!(header(text).is_some(), is_one, "{text}");
        }
    }

    #[test]
    fn collector_needs_http_or_https_url() {
        for (text, is_one) in [
            ("http://127.0.0.1:4318", true),
            ("https://otel.example/base", true),
            ("127.0.0.1:4318", false),
            ("http://", false),
            ("http://a b", false),
            ("http://user:secret@host", false),
        ] {
            assert_eq!(is_collector(text), is_one, "{text}");
        }
    }
}
