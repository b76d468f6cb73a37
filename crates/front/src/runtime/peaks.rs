//! Maximum values since the start.

use std::cell::Cell;

/// Maximum numbers of waiting requests and of busy workers, as far as they were sampled.
#[derive(Debug, Default)]
pub(crate) struct Peaks {
    pub(crate) queued: Cell<u64>,
    pub(crate) busy: Cell<u64>,
}

impl Peaks {
    /// Adds a sample of the current numbers.
    pub(crate) fn note(&self, queued: u64, busy: u64) {
        self.queued.set(self.queued.get().max(queued));
        self.busy.set(self.busy.get().max(busy));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_keep_maximum_of_samples() {
        let peaks = Peaks::default();
        for (queued, busy) in [(1, 2), (5, 1), (0, 0)] {
            peaks.note(queued, busy);
        }
        assert_eq!((peaks.queued.get(), peaks.busy.get()), (5, 2));
    }
}
