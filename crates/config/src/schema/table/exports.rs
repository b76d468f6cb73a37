//! The section Insight, its ways out: who else is told of requests, and which traces they belong to.

use crate::schema::notation;
use crate::schema::setting::{Group, Kind, OnReload, Preset, Setting};
use crate::schema::settings::TraceFrom;

use super::row::{self, path};

/// What its settings have in common.
const PLAIN: Setting = Setting { group: Group::Insight, ..row::PLAIN };

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        key: "insight.service",
        flag: "insight-service",
        value: "NAME",
        kind: Kind::Text {
            allowed: "1 to 200 characters, none of them a control character",
            set: |settings, text, _| {
                let is_name = (1..=200).contains(&text.len()) && !text.contains(char::is_control);
                is_name.then(|| text.clone_into(&mut settings.insight.service))
            },
        },
        default: Preset::Text("samovar"),
        doc: "What this site is called where its figures go",
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
        default: Preset::Derived("none: nobody is told"),
        doc: "OpenTelemetry collector for spans and figures: OTLP over HTTP",
        long: "A collector that is away or hangs costs spans, never a request. While it is set, each \
               request belongs to a trace, and PHP is handed a `traceparent`.",
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
            put: |settings, text| {
                let (name, value) = header(text)?;
                settings.insight.otlp.headers.insert(name, value);
                Some(())
            },
            unpaired: None,
        },
        default: Preset::Derived("none"),
        doc: "Header of each request to the collector; can be given several times",
        long: "In the file: the table [insight.otlp_headers]. Secrets are best set in the environment: \
               the command line is seen by all users of the machine.",
        on_reload: OnReload::Kept(|old, new| old.insight.otlp.headers != new.insight.otlp.headers),
        ..PLAIN
    },
    Setting {
        key: "insight.otlp_timeout",
        flag: "insight-otlp-timeout",
        value: "TIME",
        kind: Kind::Timeout { zero: None, field: |settings| &mut settings.insight.otlp.timeout },
        default: Preset::Text("10s"),
        doc: "How long each step of a request to the collector may take",
        long: "Connecting, sending, waiting for the answer.",
        on_reload: OnReload::Kept(|old, new| old.insight.otlp.timeout != new.insight.otlp.timeout),
        ..PLAIN
    },
    Setting {
        key: "insight.otlp_every",
        flag: "insight-otlp-every",
        value: "TIME",
        kind: Kind::Timeout { zero: None, field: |settings| &mut settings.insight.otlp.every },
        default: Preset::Text("5s"),
        doc: "How long spans are collected before they are sent",
        on_reload: OnReload::Kept(|old, new| old.insight.otlp.every != new.insight.otlp.every),
        ..PLAIN
    },
    Setting {
        key: "insight.otlp_figures_every",
        flag: "insight-otlp-figures-every",
        value: "TIME",
        kind: Kind::Timeout {
            zero: Some("never"),
            field: |settings| &mut settings.insight.otlp.figures_every,
        },
        default: Preset::Text("1m"),
        doc: "How often figures are sent to the collector",
        on_reload: OnReload::Kept(|old, new| {
            old.insight.otlp.figures_every != new.insight.otlp.figures_every
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
        doc: "Most bytes of spans that wait for the collector; the oldest make room",
        long: "One span takes about 300 bytes, a request has three or more.",
        on_reload: OnReload::Kept(|old, new| {
            old.insight.otlp.bytes_max != new.insight.otlp.bytes_max
        }),
        ..PLAIN
    },
    Setting {
        key: "insight.otlp_roots",
        flag: "insight-otlp-roots",
        value: "FILE",
        kind: path(|settings, path| settings.insight.otlp.roots = Some(path), "a file in PEM"),
        default: Preset::Derived("those that the machine trusts"),
        doc: "Certificates to trust when the collector's address is https://",
        on_reload: OnReload::Kept(|old, new| old.insight.otlp.roots != new.insight.otlp.roots),
        ..PLAIN
    },
    Setting {
        key: "insight.trace_from",
        flag: "insight-trace-from",
        value: "WHOM",
        kind: Kind::Word {
            words: TraceFrom::WORDS,
            set: |settings, index| settings.insight.trace_from = TraceFrom::ALL[index],
        },
        default: Preset::Text("proxies"),
        doc: "Whose `traceparent` is taken over",
        long: "proxies: that of `trusted_proxies`. all: a stranger may then have any of his requests \
               kept, and put it into traces of others. Who is not believed is in a trace of this server.",
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
        doc: "How many of the traces that begin here are kept: sent to the collector",
        long: "Of a trace that was taken over, whoever began it has decided.",
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
        default: Preset::Derived("none: nobody is told"),
        doc: "Pinba server that is sent a packet for each request that PHP has run",
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
        default: Preset::Derived("none: no packets are taken in"),
        doc: "Address where packets of other machines' pinba extensions come in: UDP",
        long: "They are seen beside this server's own requests. Whoever reaches the port can send any \
               figures: let it be reachable for your own machines alone.",
        on_reload: OnReload::Kept(|old, new| old.insight.pinba_listen != new.insight.pinba_listen),
        ..PLAIN
    },
];

/// A part of the whole, in millionths: `100%`, `2.5%`, `0.0001%`.
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

/// What a header may be called, and hold, in HTTP.
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
    fn shares_are_exact() {
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
    fn headers_that_would_break_a_request_are_refused() {
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
    fn collectors_are_addresses() {
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
