//! The section Compression: which answers are packed, and how.

use crate::schema::compression::Coding;
use crate::schema::notation;
use crate::schema::setting::{Group, Kind, Preset, Setting};

use super::row;

/// What its settings have in common.
const PLAIN: Setting = Setting { group: Group::Compression, ..row::PLAIN };

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        key: "compression.codings",
        flag: "compression-codings",
        value: "CODING",
        kind: Kind::List {
            allowed: "`zstd`, `br` or `gzip`",
            clear: |settings| settings.compression.codings.clear(),
            push: |settings, text| {
                let coding = Coding::named(text)?;
                let codings = &mut settings.compression.codings;
                (!codings.contains(&coding)).then(|| codings.push(coding))
            },
        },
        default: Preset::Derived("none: answers go out as they are"),
        doc: "How answers may be compressed, the best first; can be given several times",
        long: "Which of them, the client's Accept-Encoding says; among those that it likes equally, the first. \
               A page that shows a secret and what somebody else has sent must not be compressed: see BREACH \
               in the guide.",
        ..PLAIN
    },
    Setting {
        key: "compression.types",
        flag: "compression-types",
        value: "TYPE",
        kind: Kind::List {
            allowed: "a media type such as `text/html`, or `text/*`",
            clear: |settings| settings.compression.types.clear(),
            push: |settings, text| {
                notation::media_type(text).then(|| {
                    settings.compression.types.push(text.to_ascii_lowercase());
                })
            },
        },
        default: Preset::Derived(
            "text but for event streams, JSON, XML, SVG, WebAssembly, fonts that are not packed",
        ),
        doc: "Media types of answers that are compressed; can be given several times",
        long: "Event streams are not, whatever is set.",
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
        doc: "Size from which an answer is compressed, where it is known beforehand",
        long: "Smaller ones fit into one packet anyway.",
        ..PLAIN
    },
    Setting {
        key: "compression.precompressed",
        flag: "compression-precompressed",
        value: "BOOL",
        kind: Kind::Switch(|settings| &mut settings.compression.precompressed),
        default: Preset::Text("false"),
        doc: "Send FILE.br, FILE.zst or FILE.gz for FILE where it is there and not older",
        long: "To clients that accept it. It goes by itself, whether or not answers are compressed otherwise.",
        ..PLAIN
    },
];
