//! Reports a failure once, and the recovery once: a peer that is away for an hour causes one line
//! in the log, not 600.

/// Receives each report as a line without a line end.
pub type ProblemSink = Box<dyn Fn(&str) + Send>;

/// Remembers the last reported state: a failure of kind `K`, or no failure.
pub struct Teller<K> {
    trouble: ProblemSink,
    told: Option<K>,
}

impl<K: PartialEq> Teller<K> {
    /// Creates a reporter that has reported nothing.
    #[must_use]
    pub fn new(trouble: ProblemSink) -> Teller<K> {
        Teller { trouble, told: None }
    }

    /// Reports a failure, unless the last report was of the same kind.
    pub fn wrong(&mut self, kind: K, line: impl FnOnce() -> String) {
        if self.told.as_ref() != Some(&kind) {
            (self.trouble)(&line());
            self.told = Some(kind);
        }
    }

    /// Reports a recovery if the last report was a failure.
    pub fn well(&mut self, line: impl FnOnce() -> String) {
        if self.told.take().is_some() {
            (self.trouble)(&line());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Teller;
    use std::sync::{Arc, Mutex};

    #[test]
    fn teller_reports_each_change_once() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::clone(&lines);
        let mut teller =
            Teller::new(Box::new(move |line| told.lock().unwrap().push(line.to_owned())));
        teller.well(|| "well before anything was wrong".to_owned());
        for (kind, line) in [("away", "a"), ("away", "b"), ("refused", "c"), ("away", "d")] {
            teller.wrong(kind, || line.to_owned());
        }
        for line in ["e", "f"] {
            teller.well(|| line.to_owned());
        }
        teller.wrong("away", || "g".to_owned());
        assert_eq!(*lines.lock().unwrap(), ["a", "c", "d", "e", "g"]);
    }
}
