use super::*;
use samovar_config::Settings;

/// Budgets of `total` units, of which a client may have `share` percent.
fn budgets(total: u64, share: usize) -> Budgets {
    let folder = tempfile::tempdir().expect("a folder");
    let mut limits = Settings::defaults(folder.path()).expect("defaults").limits;
    limits.buffered_bytes_max = total * UNIT_BYTES;
    limits.spooled_bytes_max = total * UNIT_BYTES;
    limits.buffer_share = share;
    Budgets::new(BudgetCounts::of(1), &limits)
}

fn client(last: u8) -> IpAddr {
    [10, 0, 0, last].into()
}

/// A holding, and whether it was cut.
fn held(budget: &Rc<Budget>, of: IpAddr, units: u64) -> (Charge, Rc<Cell<bool>>) {
    let is_cut = Rc::new(Cell::new(false));
    let flag = Rc::clone(&is_cut);
    let cut: Cutter = Rc::new(move || flag.set(true));
    let charge = budget.charge(of, &cut);
    charge.set(units * UNIT_BYTES);
    (charge, is_cut)
}

#[test]
fn dropped_charges_are_given_back() {
    let budgets = budgets(100, 100);
    let (charge, _) = held(&budgets.spool, client(1), 7);
    charge.set(1);
    assert_eq!(budgets.figures(), [0, UNIT_BYTES, 0]);
    let (other, _) = held(&budgets.memory, client(1), 3);
    drop(charge);
    assert_eq!(budgets.figures(), [3 * UNIT_BYTES, 0, 0]);
    drop(other);
    assert_eq!(budgets.figures(), [0, 0, 0]);
    assert_eq!((budgets.memory.total(), budgets.spool.holdings.borrow().len()), (0, 0));
}

#[test]
fn client_over_its_share_of_files_loses_its_largest_holding() {
    let budgets = budgets(100, 25);
    let (_victim, victim_cut) = held(&budgets.spool, client(2), 24);
    let small = held(&budgets.spool, client(1), 5);
    let large = held(&budgets.spool, client(1), 15);
    assert!(!small.1.get() && !large.1.get());
    let middle = held(&budgets.spool, client(1), 10);
    assert!(large.1.get() && !small.1.get() && !middle.1.get() && !victim_cut.get());
    // A holding that was cut is about to be dropped, and is not counted again.
    middle.0.set(11 * UNIT_BYTES);
    assert!(!small.1.get() && !middle.1.get());
    assert_eq!(budgets.figures()[2], 1);
}

#[test]
fn full_budget_is_relieved_by_client_that_holds_most() {
    let budgets = budgets(100, 100);
    let flood: Vec<_> = (1..=9).map(|n| held(&budgets.memory, client(1), n)).collect();
    let other = held(&budgets.memory, client(2), 40);
    assert!(!flood.iter().any(|one| one.1.get()));
    let newcomer = held(&budgets.memory, client(3), 20);
    assert!(flood[8].1.get() && !flood[7].1.get());
    assert!(!other.1.get() && !newcomer.1.get());
}

#[test]
fn body_is_refused_if_its_own_client_holds_most() {
    let budgets = budgets(100, 50);
    let (first, _) = held(&budgets.spool, client(1), 40);
    let (second, second_cut) = held(&budgets.spool, client(1), 0);
    assert!(second.try_set(10 * UNIT_BYTES));
    assert!(!second.try_set(11 * UNIT_BYTES), "more than half of all");
    assert_eq!(budgets.figures()[1], 50 * UNIT_BYTES, "the former number stays");
    let others: Vec<_> = (2..=5).map(|n| held(&budgets.spool, client(n), 12)).collect();
    // Together with the newcomer, all are used: the one that has most makes room.
    let (newcomer, newcomer_cut) = held(&budgets.spool, client(9), 0);
    assert!(newcomer.try_set(5 * UNIT_BYTES));
    assert!(!newcomer_cut.get() && !second_cut.get());
    assert!(others.iter().all(|(_, is_cut)| !is_cut.get()));
    drop(first);
    assert_eq!(budgets.figures()[2], 1);
}

#[test]
fn memory_of_client_at_its_share_is_used_up_but_not_cut() {
    let budgets = budgets(100, 10);
    let (_charge, is_cut) = held(&budgets.memory, client(1), 10);
    let (_small, _) = held(&budgets.memory, client(2), 1);
    assert!(budgets.memory.is_used_up_by(|| client(1)) && !is_cut.get());
    assert!(
        !budgets.memory.is_used_up_by(|| client(2)) && !budgets.memory.is_used_up_by(|| client(3))
    );
}

#[test]
fn bytes_that_can_go_to_a_file_use_half_of_the_memory() {
    let budgets = budgets(100, 10);
    let (charge, _) = held(&budgets.memory, client(1), 4);
    assert!(charge.has_room());
    charge.set(5 * UNIT_BYTES);
    assert!(!charge.has_room() && !budgets.memory.is_used_up_by(|| client(1)));
    let others: Vec<_> = (2..=12).map(|n| held(&budgets.memory, client(n), 4)).collect();
    assert!(others.iter().all(|(_, is_cut)| !is_cut.get()));
    let (newcomer, _) = held(&budgets.memory, client(20), 1);
    assert!(!newcomer.has_room(), "half of all is in use");
}

#[test]
fn no_limit_is_never_exceeded() {
    let budgets = budgets(0, 25);
    let (charge, is_cut) = held(&budgets.spool, client(1), 1 << 24);
    assert!(charge.has_room() && charge.try_set(1 << 40) && !is_cut.get());
    assert!(!budgets.spool.is_used_up_by(|| client(1)));
}
