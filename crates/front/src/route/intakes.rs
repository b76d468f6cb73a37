//! The `[[intake]]` of a request: by its method and path.

use super::locations::pattern::Pattern;
use super::path;
use samovar_config::{Intake, Settings};

/// The tables `[[intake]]`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Intakes(Vec<Table>);

#[derive(Clone, Debug)]
struct Table {
    matches: Vec<(String, Pattern)>,
    intake: Intake,
}

impl Intakes {
    pub(crate) fn new(settings: &Settings) -> Intakes {
        let table = |intake: &Intake| Table {
            matches: (intake.matches.iter())
                .map(|(method, path)| (method.clone(), Pattern::new(path)))
                .collect(),
            intake: intake.clone(),
        };
        Intakes(settings.intakes.iter().map(table).collect())
    }

    /// Returns the first table that matches, and the decoded path. A path that cannot be decoded
    /// matches none.
    pub(crate) fn find(&self, method: &str, raw: &[u8]) -> Option<(&Intake, Vec<u8>)> {
        // Usually there are no tables.
        if self.0.is_empty() {
            return None;
        }
        let path = path::normalise(raw).ok()?;
        let fits = |(of, pattern): &(String, Pattern)| of == method && pattern.fits(&path);
        let found = self.0.iter().find(|table| table.matches.iter().any(fits))?;
        Some((&found.intake, path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use samovar_config::{IntakeOverload, IntakeResponse};

    #[test]
    fn intake_is_found_by_method_and_decoded_path() {
        let intake = |queue: &str, matches: &[(&str, &str)]| Intake {
            queue: queue.to_owned(),
            matches: matches.iter().map(|(m, p)| ((*m).to_owned(), (*p).to_owned())).collect(),
            response: IntakeResponse::Status(204),
            headers: Vec::new(),
            body_bytes_max: 1,
            overload: IntakeOverload::Reject,
        };
        let settings = Settings {
            intakes: vec![
                intake("a", &[("POST", "/track"), ("GET", "/pixel/*")]),
                intake("b", &[("POST", "/*")]),
            ],
            ..samovar_config::Sources::new(env!("CARGO_MANIFEST_DIR")).resolve().expect("settings")
        };
        let intakes = Intakes::new(&settings);
        let find = |method: &str, path: &str| {
            intakes.find(method, path.as_bytes()).map(|(intake, _)| intake.queue.as_str())
        };
        assert_eq!(find("POST", "/track"), Some("a"));
        assert_eq!(find("POST", "//x/../%74rack"), Some("a"));
        assert_eq!(find("POST", "/track/"), Some("b"));
        assert_eq!(find("GET", "/track"), None);
        assert_eq!(find("GET", "/pixel"), Some("a"));
        assert_eq!(find("GET", "/pixel/a/b"), Some("a"));
        assert_eq!(find("HEAD", "/pixel/a"), None);
        assert_eq!(find("POST", "/%zz"), None);
        assert_eq!(find("POST", "/%00"), None);
    }
}
