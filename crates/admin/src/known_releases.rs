//! Releases that a time range can refer to: their labels, and the time for which they served.

use samovar_insight::Release;
use std::fmt;

/// Maximum length of a label in bytes; longer ones are never given.
const LABEL_BYTES_MAX: usize = 100;

/// Label of a release, copied from a query.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Label {
    bytes: [u8; LABEL_BYTES_MAX],
    length: u8,
}

impl Label {
    /// Returns the label; `None` if the text cannot be one.
    pub(crate) fn new(text: &str) -> Option<Label> {
        let is_label = !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic());
        let length = u8::try_from(text.len()).ok().filter(|_| is_label)?;
        let mut bytes = [0; LABEL_BYTES_MAX];
        bytes.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
        Some(Label { bytes, length })
    }

    pub(crate) fn text(&self) -> &str {
        let bytes = self.bytes.get(..usize::from(self.length)).unwrap_or_default();
        std::str::from_utf8(bytes).unwrap_or_default()
    }
}

impl fmt::Debug for Label {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.text(), to)
    }
}

/// A release of one pool. Times in seconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KnownRelease {
    /// Empty: none was given.
    pub(crate) label: String,
    /// Empty if the server has one pool.
    pub(crate) pool: String,
    pub(crate) from: u64,
    /// `None`: it serves.
    pub(crate) to: Option<u64>,
    /// Description for people.
    pub(crate) text: String,
}

impl KnownRelease {
    /// Creates a release without a label that serves since this time.
    pub(crate) fn since(from: u64, text: String) -> KnownRelease {
        KnownRelease { from, text, ..KnownRelease::default() }
    }

    /// Returns whether it served for less than a second: it has no range, because the figures of
    /// that second are those of the next release, too.
    pub(crate) fn is_momentary(&self) -> bool {
        self.to.is_some_and(|to| to <= self.from)
    }
}

/// Returns the releases of all pools in the order of their begin. Generations of a pool that follow
/// one another with the same label are one release.
pub(crate) fn known_releases(mut generations: Vec<Release>) -> Vec<KnownRelease> {
    generations.sort_by_key(|one| one.at);
    let mut all: Vec<KnownRelease> = Vec::new();
    for one in generations {
        let last = all.iter_mut().rfind(|known| known.pool == one.pool);
        if let Some(last) = last {
            if !one.label.is_empty() && *last.label == *one.label {
                continue;
            }
            last.to = Some(one.at);
        }
        let of = if one.pool.is_empty() { String::new() } else { format!("pool {}: ", one.pool) };
        let text = match (&*one.label, one.generation) {
            ("", 1) => format!("{of}the start"),
            ("", generation) => format!("{of}generation {generation}"),
            (label, _) => format!("{of}release {label}"),
        };
        let label = one.label.to_string();
        all.push(KnownRelease { label, pool: one.pool, from: one.at, to: None, text });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::{Label, known_releases};
    use samovar_insight::Release;

    #[test]
    fn generations_with_same_label_are_one_release() {
        let generation = |(at, pool, generation, label): (u64, &str, u64, &str)| Release {
            at,
            pool: pool.to_owned(),
            generation,
            label: label.into(),
        };
        let all = [
            (60, "", 2, "1.1"),
            (10, "", 1, "1.0"),
            (20, "", 2, "1.0"),
            (50, "", 1, "1.0"), // the server was started again
            (70, "", 3, ""),
            (80, "", 4, ""),
            (90, "", 5, "1.0"), // back to it
        ];
        let found = known_releases(all.map(generation).to_vec());
        let brief: Vec<_> = found.iter().map(|one| (&*one.text, one.from, one.to)).collect();
        assert_eq!(
            brief,
            [
                ("release 1.0", 10, Some(60)),
                ("release 1.1", 60, Some(70)),
                ("generation 3", 70, Some(80)),
                ("generation 4", 80, Some(90)),
                ("release 1.0", 90, None),
            ]
        );
        let pools = [(10, "default", 1, "1"), (10, "api", 1, "1"), (20, "api", 2, "2")];
        let found = known_releases(pools.map(generation).to_vec());
        let brief: Vec<_> = found.iter().map(|one| (&*one.text, one.from, one.to)).collect();
        assert_eq!(
            brief,
            [
                ("pool default: release 1", 10, None),
                ("pool api: release 1", 10, Some(20)),
                ("pool api: release 2", 20, None),
            ]
        );
    }

    #[test]
    fn hostile_texts_are_no_labels() {
        for text in ["", "a b", "a\n", "\u{202e}", "é", &"a".repeat(101), &"a".repeat(300)] {
            assert_eq!(Label::new(text), None, "{text:?}");
        }
        let longest = "a".repeat(100);
        assert_eq!(Label::new(&longest).expect("a label").text(), longest);
    }
}
