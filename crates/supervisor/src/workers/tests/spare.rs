//! The worker for a replay, next to the others.

use super::*;

/// Starts it next to two workers. Returns its cell.
fn spared(script: bool) -> (Bench, usize) {
    let mut bench = Bench::started(2);
    assert_eq!(bench.step(Event::Spare { script }), []);
    assert_eq!(bench.workers.lacks(), 1);
    let forks = bench.step(bench.room());
    assert_eq!(forks.len(), 1);
    bench.confirm(&forks);
    let cell = bench.workers.spare().expect("its place").cell();
    (bench, cell)
}

#[test]
fn spare_is_not_counted_and_exits_after_its_end() {
    let (mut bench, cell) = spared(false);
    assert_eq!((bench.workers.lacks(), bench.workers.staying(false)), (0, 2));
    assert!(bench.workers.is_spare(cell) && !bench.workers.is_leaving(cell));
    bench.step(Event::EndSpare);
    assert!(bench.workers.is_leaving(cell) && bench.workers.spare().is_none());
    bench.step(Event::WorkerLeft { pid: 100 + i32::try_from(cell).unwrap(), served: true });
    assert_eq!(bench.workers.places().len(), 2);
    assert_eq!((bench.workers.restarts(), bench.workers.reforks()), (0, 0));
}

#[test]
fn dead_spare_has_no_successor() {
    let (mut bench, cell) = spared(true);
    let actions = bench.step(died(100 + i32::try_from(cell).unwrap()));
    assert!(matches!(actions[..], [Action::Repair { .. }]), "{actions:?}");
    assert_eq!((bench.workers.places().len(), bench.workers.restarts()), (2, 0));
    assert!(bench.workers.spare().is_none() && !bench.workers.awaits_spare());
}

#[test]
fn spare_is_neither_recycled_nor_shrunk() {
    let (mut bench, cell) = spared(false);
    bench.step(Event::Recycle { cell });
    assert!(!bench.workers.is_recycling());
    assert_eq!(bench.step(Event::Shrink { cells: vec![cell] }), []);
    assert!(!bench.workers.is_leaving(cell));
}

#[test]
fn spare_without_a_cell_or_fork_is_given_up() {
    let mut bench = Bench::started(1);
    bench.step(Event::Spare { script: false });
    bench.step(Event::EndSpare);
    assert_eq!(bench.workers.lacks(), 0);
    bench.step(Event::Spare { script: false });
    let forks = bench.step(bench.room());
    let [Action::Fork { index, incarnation, .. }] = forks[..] else { panic!("{forks:?}") };
    bench.step(Event::ForkFailed { index, incarnation });
    assert_eq!((bench.workers.places().len(), bench.workers.lacks()), (1, 0));
}

#[test]
fn spare_ends_with_its_template() {
    let (mut bench, cell) = spared(false);
    bench.step(Event::TemplateDied);
    assert!(bench.workers.is_leaving(cell) && bench.workers.spare().is_none());
}
