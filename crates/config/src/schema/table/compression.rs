//! The section Compression: the responses to compress, and how.

use crate::schema::compression::Coding;
use crate::schema::notation;
use crate::schema::setting::{Group, Kind, Preset, Setting};

use super::row;

/// Common values of this section's rows.
const PLAIN: Setting = Setting { group: Group::Compression, ..row::PLAIN };

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        key: "compression.codings",
        flag: "compression-codings",
        value: "CODING",
        kind: Kind::List {
            allowed: "`zstd`, `br` or `gzip`",
            clear: |settings| settings.compression.codings.clear(),
            push: |settings, text, _| {
                let coding = Coding::named(text)?;
                let codings = &mut settings.compression.codings;
                (!codings.contains(&coding)).then(|| codings.push(coding))
            },
        },
        default: Preset::Derived("none: responses are not compressed"),
        doc: "Codings for compressed responses, in order of preference (repeatable)",
        long: "The client's Accept-Encoding selects one. If the client prefers none of them, the \
               first is used. Do not compress pages that contain both a secret and input that an \
               attacker can choose: see BREACH in the guide.",
        ..PLAIN
    },
    Setting {
        key: "compression.types",
        flag: "compression-types",
        value: "TYPE",
        kind: Kind::List {
            allowed: "a media type such as `text/html`, or `text/*`",
            clear: |settings| settings.compression.types.clear(),
            push: |settings, text, _| {
                notation::media_type(text).then(|| {
                    settings.compression.types.push(text.to_ascii_lowercase());
                })
            },
        },
        default: Preset::Derived(
            "text (except event streams), JSON, XML, SVG, WebAssembly, and fonts that are not \
             compressed already",
        ),
        doc: "Media types of responses to compress (repeatable)",
        long: "Event streams are never compressed.",
        ..PLAIN
    },
    Setting {
        key: "compression.bytes_min",
        flag: "compression-bytes-min",
        value: "SIZE",
        kind: Kind::Size {
            min: 1,
            max: 1 << 30,
            field: |settings| &mut settings.compression.bytes_min,
        },
        default: Preset::Text("1K"),
        doc: "Minimum size of a response to compress, if its size is known in advance",
        long: "Smaller responses fit into one packet anyway.",
        ..PLAIN
    },
    Setting {
        key: "compression.precompressed",
        flag: "compression-precompressed",
        value: "BOOL",
        kind: Kind::Switch(|settings| &mut settings.compression.precompressed),
        default: Preset::Text("false"),
        doc: "Whether FILE.br, FILE.zst or FILE.gz is sent for FILE if it is not older",
        long: "Only to clients that accept the coding. Independent of compression.codings.",
        ..PLAIN
    },
];
