//! Figures of a measurement, and their lines for people.

#![allow(clippy::cast_precision_loss)] // Sizes.

use super::gain::Gain;
use serde::Serialize;

const KIB: f64 = 1024.0;

/// Memory of a server after the measurement.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Memory {
    /// Used memory of opcache, shared by all processes; 0: opcache is off.
    pub(super) opcache_bytes: u64,
    /// Memory of one worker that it shares with no process.
    pub(super) worker_bytes: u64,
}

/// Two servers that got the same requests.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Measured {
    /// Gain in CPU time; `null`: too few rounds.
    pub(super) gain: Option<Gain>,
    pub(super) rounds: u32,
    pub(super) before: Memory,
    pub(super) after: Memory,
}

impl Measured {
    pub(super) fn is_clear_gain(&self) -> bool {
        self.gain.as_ref().is_some_and(Gain::is_clear)
    }

    /// Returns the lines for people.
    pub(super) fn lines(&self) -> Vec<String> {
        let mib = |bytes: u64| short(bytes as f64 / KIB / KIB);
        let change = |of: fn(&Memory) -> u64| {
            let change = (of(&self.after) as f64 - of(&self.before) as f64) / KIB;
            format!("{} KiB {}", short(change.abs()), if change < 0.0 { "less" } else { "more" })
        };
        let mut lines: Vec<String> = (self.gain.iter())
            .map(|gain| format!("{}, {} rounds", gain.text(), self.rounds))
            .collect();
        lines.push(format!(
            "memory: opcache {} MiB ({}), one worker {} MiB ({})",
            mib(self.after.opcache_bytes),
            change(|memory| memory.opcache_bytes),
            mib(self.after.worker_bytes),
            change(|memory| memory.worker_bytes)
        ));
        lines
    }
}

/// Formats a number without decimals if it is large.
fn short(number: f64) -> String {
    if number < 10.0 { format!("{number:.1}") } else { format!("{number:.0}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_gain_and_memory() {
        let before = Memory { opcache_bytes: 20 << 20, worker_bytes: 7 << 20 };
        let after = Memory { opcache_bytes: 21 << 20, worker_bytes: (7 << 20) - 1024 };
        let gain = Gain { before_us: 100.0, after_us: 90.0, percent: 10.0, interval: 1.0 };
        let measured = Measured { gain: Some(gain), rounds: 5, before, after };
        let expected = "gain 10.0 % ± 1.0 (100 µs → 90 µs of CPU per request), 5 rounds\n\
                        memory: opcache 21 MiB (1024 KiB more), one worker 7.0 MiB (1.0 KiB less)";
        assert_eq!(measured.lines().join("\n"), expected);
        assert!(measured.is_clear_gain() && !Measured::default().is_clear_gain());
    }
}
