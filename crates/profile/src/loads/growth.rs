//! Causes of memory growth in resident workers, as the workers found them
//! (`crates/worker/csrc/heap_walk/watch.c`).

use crate::fields::{self, Fields};
use samovar_wire::GrowthStatus;
use std::collections::VecDeque;

const BEGIN: &str = "samovar-growth 1";
/// Maximum number of growing values; the one with the oldest latest report is replaced.
const GROWERS_MAX: usize = 32;
/// Maximum number of processes counted for one value.
const PIDS_MAX: usize = 64;
/// Maximum bytes of a stored text.
const TEXT_BYTES_MAX: usize = 1_024;

/// Report of one worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Growth {
    seen: GrowthStatus,
    pid: u32,
}

impl Growth {
    /// Parses a report. Returns `None` if it is not a valid one.
    pub(super) fn read(text: &[u8], now: u64) -> Option<Growth> {
        let mut lines = std::str::from_utf8(text).ok()?.lines();
        if lines.next()? != BEGIN {
            return None;
        }
        let mut fields = Fields::of(lines.next()?);
        if fields.text()? != "g" || lines.next()? != "end" {
            return None;
        }
        let (generation, pid) = (fields.number()?, fields.number()?);
        let (grown, requests) = (fields.number()?, fields.number()?);
        let bytes_each = fields.number()?;
        let mut text = || fields.text().map(|text| fields::cut(text, TEXT_BYTES_MAX));
        let (unit, place, name) = (text()?, text()?, text()?);
        let (since, at, workers) = (now, now, 1);
        let seen = GrowthStatus {
            pool: String::new(),
            name,
            unit,
            place,
            generation,
            grown,
            requests,
            bytes_each,
            since,
            at,
            workers,
        };
        Some(Growth { seen, pid })
    }
}

/// Reported growing values, latest last.
#[derive(Debug, Default)]
pub(super) struct Growths(VecDeque<(GrowthStatus, Vec<u32>)>);

impl Growths {
    pub(super) fn add(&mut self, growth: Growth) {
        let Growth { mut seen, pid } = growth;
        let is_it = |(known, _): &(GrowthStatus, Vec<u32>)| {
            (&known.name, known.generation) == (&seen.name, seen.generation)
        };
        let mut pids = Vec::new();
        if let Some(at) = self.0.iter().position(is_it)
            && let Some((known, of)) = self.0.remove(at)
        {
            (seen.since, pids) = (known.since, of);
        } else if self.0.len() == GROWERS_MAX {
            self.0.pop_front();
        }
        if !pids.contains(&pid) && pids.len() < PIDS_MAX {
            pids.push(pid);
        }
        seen.workers = pids.len() as u64;
        self.0.push_back((seen, pids));
    }

    pub(super) fn told(&self) -> Vec<GrowthStatus> {
        self.0.iter().rev().map(|(seen, _)| seen.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn growth(name: &str, pid: u32, generation: u32, now: u64) -> Growth {
        let text = format!(
            "samovar-growth 1\n\
             g\t{generation}\t{pid}\t40\t20\t212\telements\t/srv/Foo.php:88\t{name}\nend\n"
        );
        Growth::read(text.as_bytes(), now).expect("a report")
    }

    #[test]
    fn growth_in_several_workers_is_one_entry_per_generation() {
        let mut all = Growths::default();
        for (pid, generation, now) in [(1, 7, 100), (2, 7, 200), (2, 7, 300), (3, 8, 400)] {
            all.add(growth("Registry::$items", pid, generation, now));
        }
        let told = all.told();
        let figures: Vec<_> =
            told.iter().map(|g| (g.generation, g.workers, g.since, g.at)).collect();
        assert_eq!(figures, [(8, 1, 400, 400), (7, 2, 100, 300)]);
        assert_eq!((&*told[0].place, told[0].bytes_each), ("/srv/Foo.php:88", 212));
    }

    #[test]
    fn growth_list_is_bounded_in_names_and_workers() {
        let mut all = Growths::default();
        for n in 0..1_000 {
            all.add(growth(&format!("f{}() $x", n % 100), n, 1, u64::from(n)));
        }
        assert_eq!(all.told().len(), GROWERS_MAX);
        (0..1_000).for_each(|pid| all.add(growth("one", pid, 1, 1)));
        assert_eq!(all.told()[0].workers, PIDS_MAX as u64);
    }

    #[test]
    fn growth_with_invalid_report_is_rejected() {
        for text in [
            "",
            "samovar-growth 1\n",
            "samovar-growth 1\ng\t1\t2\t3\nend\n",
            "samovar-growth 1\ng\t1\t2\t-3\t4\t5\ta\tb\tc\nend\n",
            "samovar-growth 1\ng\t1\t2\t3\t4\t5\ta\tb\tc\n",
            "samovar-growth 2\ng\t1\t2\t3\t4\t5\ta\tb\tc\nend\n",
        ] {
            assert_eq!(Growth::read(text.as_bytes(), 1), None, "{text:?}");
        }
        assert_eq!(Growth::read(b"\xff\xfe", 1), None);
    }
}
