//! Processes and rows of the model, and the bounds of a search.

use crate::chain::{Chains, Dimensions, Refused};
use crate::lock::{ActingProcess, Living, Owner};
use crate::sync::AtomicU64;
use loom::sync::Arc;

pub(super) const SMALL: Dimensions = Dimensions { rows: 2, key_words: 1, data_words: 2 };
/// Owner numbers, far from `IN_USE`.
pub(super) const ONE: Owner = 1024;
pub(super) const TWO: Owner = 1025;

pub(super) struct AllLive;
impl Living for AllLive {
    fn is_alive(&self, _owner: Owner) -> bool {
        true
    }
}

pub(super) struct Dead(pub(super) Owner);
impl Living for Dead {
    fn is_alive(&self, owner: Owner) -> bool {
        owner != self.0
    }
}

pub(super) fn words() -> Arc<Vec<AtomicU64>> {
    Arc::new((0..SMALL.words() + 3).map(|_| AtomicU64::new(0)).collect())
}

/// Runs `f` with the chains in these words and with one process's journal, which follows them.
pub(super) fn act<R>(
    words: &[AtomicU64],
    owner: Owner,
    living: &dyn Living,
    f: impl FnOnce(Chains<'_>, ActingProcess<'_>) -> R,
) -> R {
    let (chains, journals) = words.split_at(SMALL.words());
    let journal = &journals[owner as usize % 3];
    f(Chains::new(chains, SMALL), ActingProcess { owner, living, journal, object: 0 })
}

pub(super) fn set(words: &[AtomicU64], owner: Owner, key: u8, value: u64) -> Result<(), Refused> {
    act(words, owner, &AllLive, |chains, me| {
        chains.update(me, (u64::from(key), &[key]), &mut [0; 2], |row, _| {
            row.fill(value);
            (true, ())
        })
    })
}

pub(super) fn add(words: &[AtomicU64], owner: Owner, key: u8) {
    let added = act(words, owner, &AllLive, |chains, me| {
        chains.update(me, (u64::from(key), &[key]), &mut [0; 2], |row, _| {
            row[0] += 1;
            row[1] += 1;
            (true, ())
        })
    });
    added.expect("there is room");
}

/// The value of a key. The row must not be torn.
pub(super) fn get(words: &[AtomicU64], owner: Owner, key: u8) -> Option<u64> {
    let mut row = [0; 2];
    let found =
        act(words, owner, &AllLive, |chains, me| chains.read(me, u64::from(key), &[key], &mut row));
    assert_eq!(row[0], row[1], "a torn row");
    found.expect("no process is stopped").then_some(row[0])
}

pub(super) fn count(words: &[AtomicU64]) -> usize {
    act(words, ONE, &AllLive, |chains, _| chains.count())
}

pub(super) fn bounded(check: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.max_branches = 20_000;
    builder.check(check);
}
