//! Tells what goes wrong once, and once when it goes well again: who is away for an hour is one line of a log, not 600.

/// To whom: a line without its end.
pub type Trouble = Box<dyn Fn(&str) + Send>;

/// What was told last: one of the kinds `K`, or nothing wrong.
pub struct Teller<K> {
    trouble: Trouble,
    told: Option<K>,
}

impl<K: PartialEq> Teller<K> {
    /// One that has told nothing yet.
    #[must_use]
    pub fn new(trouble: Trouble) -> Teller<K> {
        Teller { trouble, told: None }
    }

    /// Something is wrong; it is told unless the same kind was told last.
    pub fn wrong(&mut self, kind: K, line: impl FnOnce() -> String) {
        if self.told.as_ref() != Some(&kind) {
            (self.trouble)(&line());
            self.told = Some(kind);
        }
    }

    /// All is well; it is told if something wrong was told last.
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
    fn each_change_is_told_once() {
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
