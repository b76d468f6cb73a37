//! The most of what was seen at one time, since the start.

use std::cell::Cell;

/// Of requests that wait and of workers that run one: as often as somebody looks.
#[derive(Debug, Default)]
pub(crate) struct Peaks {
    pub(crate) queued: Cell<u64>,
    pub(crate) busy: Cell<u64>,
}

impl Peaks {
    /// So many there are now.
    pub(crate) fn note(&self, queued: u64, busy: u64) {
        self.queued.set(self.queued.get().max(queued));
        self.busy.set(self.busy.get().max(busy));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_stays() {
        let peaks = Peaks::default();
        for (queued, busy) in [(1, 2), (5, 1), (0, 0)] {
            peaks.note(queued, busy);
        }
        assert_eq!((peaks.queued.get(), peaks.busy.get()), (5, 2));
    }
}
