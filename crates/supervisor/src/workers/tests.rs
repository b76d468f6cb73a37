mod spare;

use super::*;

struct Bench {
    workers: Workers,
    now: Instant,
}

impl Bench {
    fn new(workers: usize) -> Bench {
        let now = Instant::now();
        let mut bench =
            Bench { workers: Workers::new(workers, workers, Lives::default(), now), now };
        assert_eq!(bench.step(bench.room()), [Action::StartTemplate]);
        bench
    }
    /// Returns the missing cells, numbered after the existing ones.
    fn room(&self) -> Event {
        let has = self.workers.places().len();
        Event::Room { cells: (has..has + self.workers.lacks()).collect() }
    }
    #[allow(clippy::needless_pass_by_value)] // By value, for readability of the tests.
    fn step(&mut self, event: Event) -> Vec<Action> {
        self.workers.step(&event, self.now)
    }
    /// Creates a generation whose workers all run; process ids are 100 + index.
    fn started(workers: usize) -> Bench {
        let mut bench = Bench::new(workers);
        let forks = bench.step(Event::TemplateReady { resident: false });
        assert_eq!(forks.len(), workers);
        bench.confirm(&forks);
        bench
    }
    fn confirm(&mut self, actions: &[Action]) {
        for action in actions {
            if let Action::Fork { index, incarnation, .. } = *action {
                let pid = 100 + i32::try_from(index).unwrap();
                assert_eq!(self.step(Event::Forked { index, incarnation, pid }), []);
            }
        }
    }
    fn later(&mut self, time: Duration) -> &mut Bench {
        self.now += time;
        self
    }
}

/// Wait status of a process that was killed by SIGSEGV.
const SIGSEGV_STATUS: i32 = 11;

/// A crash of a worker that had no request.
fn died(pid: i32) -> Event {
    Event::WorkerDied { pid, death: Death::from_status(SIGSEGV_STATUS), served: false }
}

fn life(number: u32) -> Incarnation {
    Incarnation::new(number).unwrap()
}

#[test]
fn dead_worker_is_repaired_and_replaced_immediately() {
    let mut bench = Bench::started(2);
    let actions = bench.later(Duration::from_secs(9)).step(died(101));
    assert_eq!(
        actions,
        [
            Action::Repair {
                index: 1,
                incarnation: life(2),
                death: Death::from_status(SIGSEGV_STATUS)
            },
            Action::Fork { index: 1, incarnation: life(3), role: Role::Any },
        ]
    );
    assert_eq!(bench.workers.restarts(), 1);
}

#[test]
fn worker_exit_counts_as_refork_not_restart() {
    let mut bench = Bench::started(1);
    for _ in 0..5 {
        let actions = bench.step(Event::WorkerLeft { pid: 100, served: true });
        assert!(matches!(actions[1], Action::Fork { .. }), "{actions:?}");
        bench.confirm(&actions);
    }
    assert_eq!((bench.workers.restarts(), bench.workers.reforks()), (0, 5));
    let mut actions = bench.step(Event::WorkerLeft { pid: 100, served: false });
    bench.confirm(&actions);
    actions = bench.step(Event::WorkerLeft { pid: 100, served: false });
    assert_eq!(actions.len(), 1, "only the repair: {actions:?}");
}

#[test]
fn short_lives_increase_wait_up_to_maximum() {
    let mut bench = Bench::started(1);
    let mut waits = Vec::new();
    for _ in 0..12 {
        let mut actions = bench.step(died(100));
        let mut waited = Duration::ZERO;
        while !actions.iter().any(|a| matches!(a, Action::Fork { .. })) {
            waited += Duration::from_millis(50);
            actions = bench.later(Duration::from_millis(50)).step(Event::Tick);
        }
        waits.push(waited.as_millis());
        bench.confirm(&actions);
    }
    assert_eq!(waits[..5], [0, 50, 100, 200, 400]);
    assert_eq!(waits[11], 5000);
}

#[test]
fn dead_worker_that_served_is_replaced_without_wait() {
    let mut bench = Bench::started(1);
    for _ in 0..20 {
        let death = Death::from_status(SIGSEGV_STATUS);
        let actions = bench.step(Event::WorkerDied { pid: 100, death, served: true });
        assert!(matches!(actions[..], [Action::Repair { .. }, Action::Fork { .. }]), "{actions:?}");
        bench.confirm(&actions);
    }
    assert_eq!(bench.workers.restarts(), 20);
}

#[test]
fn dead_template_is_replaced_after_its_workers_end() {
    let mut bench = Bench::started(2);
    bench.later(Duration::from_secs(9));
    assert_eq!(bench.step(Event::TemplateDied), []);
    assert_eq!(bench.step(died(100)).len(), 1, "only the repair");
    let last = bench.step(died(101));
    assert_eq!(last.len(), 1);
    assert_eq!(bench.step(Event::Tick), [Action::StartTemplate]);
    assert_eq!(bench.step(Event::TemplateReady { resident: false }).len(), 2);
}

#[test]
fn scripts_of_resident_application_get_separate_workers() {
    let mut bench = Bench::started(2);
    assert_eq!(bench.step(Event::ScriptsWait), [], "any worker still runs them");
    assert_eq!(bench.step(Event::Resident), []);
    assert_eq!(bench.step(Event::ScriptsWait), []);
    assert_eq!(bench.workers.lacks(), 2);
    let actions = bench.step(bench.room());
    let roles: Vec<_> = actions
        .iter()
        .filter_map(|a| match a {
            Action::Fork { role, .. } => Some(*role),
            _ => None,
        })
        .collect();
    assert_eq!(roles, [Role::Script, Role::Script]);
    bench.confirm(&actions);
    assert_eq!(bench.step(Event::ScriptsWait), []);
    assert_eq!(bench.workers.lacks(), 0);
    let next = bench.later(Duration::from_secs(9)).step(died(100));
    assert!(matches!(next[1], Action::Fork { role: Role::Boot, .. }));
}

#[test]
fn pool_starts_with_available_cells() {
    let mut bench = Bench {
        workers: Workers::new(3, 3, Lives::default(), Instant::now()),
        now: Instant::now(),
    };
    assert_eq!(bench.step(Event::Tick), [Action::StartTemplate]);
    assert_eq!(bench.step(Event::Room { cells: vec![7] }), []);
    let forks = bench.step(Event::TemplateReady { resident: false });
    assert!(matches!(forks[..], [Action::Fork { index: 7, .. }]), "{forks:?}");
    assert_eq!((bench.workers.lacks(), bench.workers.cells().collect::<Vec<_>>()), (2, vec![7]));
    let forks = bench.step(Event::Room { cells: vec![1, 2, 3, 4] });
    assert_eq!(forks.len(), 2, "no more than it lacks");
    assert_eq!(bench.workers.lacks(), 0);
}

#[test]
fn stopping_pool_releases_cells_of_ended_workers() {
    let mut bench = Bench::started(2);
    let _ = bench.step(Event::Stop);
    assert_eq!(bench.workers.cells().collect::<Vec<_>>(), [0, 1]);
    let _ = bench.step(died(100));
    assert_eq!((bench.workers.cells().collect::<Vec<_>>(), bench.workers.lacks()), (vec![1], 0));
}

#[test]
fn incarnations_are_unique_across_pools() {
    let lives = Lives::default();
    let now = Instant::now();
    let mut seen = Vec::new();
    for cell in [0, 1] {
        let mut state = Workers::new(1, 1, lives.clone(), now);
        let _ = state.step(&Event::Room { cells: vec![cell] }, now);
        for action in state.step(&Event::TemplateReady { resident: false }, now) {
            let Action::Fork { incarnation, .. } = action else { panic!("{action:?}") };
            seen.push(incarnation.get());
        }
    }
    assert_eq!(seen, [1, 2]);
}

#[test]
fn kill_affects_only_named_incarnation() {
    let mut bench = Bench::started(2);
    assert_eq!(bench.step(Event::Kill { incarnation: 2 }), [Action::Kill { pid: 101 }]);
    assert_eq!(bench.step(Event::Kill { incarnation: 77 }), []);
}

#[test]
fn stop_ends_workers_then_template() {
    let mut bench = Bench::started(1);
    assert_eq!(bench.step(Event::Stop), [Action::StopWorkers]);
    let actions = bench.step(died(100));
    assert!(actions.contains(&Action::CloseTemplate));
    assert!(!actions.iter().any(|a| matches!(a, Action::Fork { .. })));
    assert_eq!(bench.step(Event::TemplateDied), [Action::Exit]);
}

#[test]
fn endless_boot_does_not_delay_stop() {
    let mut bench = Bench::new(1);
    let _ = bench.step(Event::Tick);
    assert_eq!(bench.step(Event::TemplateReady { resident: true }).len(), 1, "asked for");
    assert_eq!(bench.step(Event::Stop), [Action::StopWorkers]);
    assert_eq!(bench.step(Event::StopNow), [Action::CloseTemplate]);
    assert!(bench.step(Event::TemplateDied).contains(&Action::Exit));
}

#[test]
fn fork_reported_after_template_death_is_ignored() {
    let mut bench = Bench::new(1);
    let _ = bench.step(Event::Tick);
    let forks = bench.step(Event::TemplateReady { resident: false });
    let Action::Fork { index, incarnation, .. } = forks[0] else { panic!("{forks:?}") };
    let repair = Action::Repair { index, incarnation, death: Death::UNKNOWN };
    assert_eq!(bench.step(Event::TemplateDied), [repair]);
    let _ = bench.step(Event::Forked { index, incarnation, pid: 100 });
    assert_eq!(bench.workers.places()[0].process(), None);
}

#[test]
fn late_fork_failure_does_not_affect_next_incarnation() {
    let mut bench = Bench::started(1);
    let late = |life| Event::ForkFailed { index: 0, incarnation: life };
    assert_eq!(bench.step(late(life(1))), [], "it was forked after all");
    assert!(bench.workers.places()[0].process().is_some());
    let forks = bench.later(Duration::from_secs(9)).step(died(100));
    assert!(matches!(forks[..], [Action::Repair { .. }, Action::Fork { .. }]), "{forks:?}");
    assert_eq!(bench.step(late(life(1))), []);
    bench.confirm(&forks);
    assert!(bench.workers.places()[0].process().is_some(), "the second life was not given up");
}

#[test]
fn recycled_worker_exits_after_successor_is_up() {
    let mut bench = Bench::started(2);
    assert_eq!(bench.step(Event::Recycle { cell: 0 }), []);
    assert_eq!(bench.step(Event::Recycle { cell: 1 }), [], "one at a time");
    assert_eq!((bench.workers.lacks(), bench.workers.awaited_successor()), (1, None));
    let forks = bench.step(bench.room());
    let [Action::Fork { index: 2, role: Role::Any, .. }] = forks[..] else { panic!("{forks:?}") };
    assert!(!bench.workers.is_leaving(0), "it serves");
    bench.confirm(&forks);
    assert_eq!(bench.workers.awaited_successor(), Some(2));
    assert_eq!(bench.step(Event::SuccessorUp), [Action::Retire { index: 0 }]);
    assert!(bench.workers.is_leaving(0) && bench.workers.awaited_successor().is_none());
    let death = Death::from_status(0);
    let actions = bench.step(Event::WorkerDied { pid: 100, death, served: true });
    assert_eq!(actions, [Action::Repair { index: 0, incarnation: life(1), death }]);
    let cells: Vec<usize> = bench.workers.cells().collect();
    assert_eq!((cells, bench.workers.lacks()), (vec![1, 2], 0));
    assert_eq!((bench.workers.recycled(), bench.workers.restarts()), (1, 0));
    bench.step(Event::Recycle { cell: 1 });
    assert!(bench.workers.is_recycling());
}

#[test]
fn deaths_while_recycling_keep_number_of_workers() {
    // The old worker dies before its successor has a place: it is replaced as after any death.
    let mut bench = Bench::started(2);
    bench.step(Event::Recycle { cell: 0 });
    let actions = bench.step(Event::WorkerDied { pid: 100, death: Death::UNKNOWN, served: true });
    assert!(matches!(actions[1], Action::Fork { index: 0, .. }), "{actions:?}");
    assert_eq!((bench.workers.lacks(), bench.workers.is_recycling()), (0, false));
    // The old worker dies while its successor starts: no further worker is started.
    let mut bench = Bench::started(2);
    bench.step(Event::Recycle { cell: 0 });
    let forks = bench.step(bench.room());
    let actions = bench.step(Event::WorkerDied { pid: 100, death: Death::UNKNOWN, served: true });
    assert_eq!(actions.len(), 1, "only the repair: {actions:?}");
    bench.confirm(&forks);
    assert_eq!((bench.workers.places().len(), bench.workers.lacks()), (2, 0));
    // The successor dies: another one starts, and the old worker serves until that is up.
    let mut bench = Bench::started(2);
    bench.step(Event::Recycle { cell: 0 });
    let forks = bench.step(bench.room());
    bench.confirm(&forks);
    let actions = bench.later(Duration::from_secs(9)).step(died(102));
    assert!(matches!(actions[1], Action::Fork { index: 2, .. }), "{actions:?}");
    assert!(!bench.workers.is_leaving(0) && bench.workers.is_recycling());
    // All workers die, with the template.
    let mut bench = Bench::started(1);
    bench.step(Event::Recycle { cell: 0 });
    let forks = bench.step(bench.room());
    bench.confirm(&forks);
    bench.step(Event::TemplateDied);
    bench.step(died(100));
    bench.step(died(101));
    assert_eq!((bench.workers.places().len(), bench.workers.lacks()), (1, 0));
    // The server stops first.
    let mut bench = Bench::started(1);
    bench.step(Event::Recycle { cell: 0 });
    bench.step(Event::Stop);
    assert_eq!(bench.workers.lacks(), 0);
}

#[test]
fn successor_has_role_of_predecessor() {
    let mut bench = Bench::started(1);
    bench.step(Event::Resident);
    bench.step(Event::ScriptsWait);
    let forks = bench.step(bench.room());
    bench.confirm(&forks);
    for (cell, role) in [(1, Role::Script), (0, Role::Boot)] {
        bench.step(Event::Recycle { cell });
        let next = bench.workers.places().iter().map(WorkerPlace::cell).max().unwrap_or(0) + 1;
        let forks = bench.step(Event::Room { cells: vec![next] });
        let [Action::Fork { role: found, .. }] = forks[..] else { panic!("{forks:?}") };
        assert_eq!(found, role);
        bench.confirm(&forks);
        bench.step(Event::SuccessorUp);
        let pid = 100 + i32::try_from(cell).unwrap();
        bench.step(Event::WorkerDied { pid, death: Death::from_status(0), served: true });
    }
    assert_eq!(bench.workers.recycled(), 2);
}

/// Creates a generation with `count` workers and a minimum of `least`.
fn elastic(count: usize, least: usize) -> Bench {
    let now = Instant::now();
    let workers = Workers::new(count, least, Lives::default(), now);
    let mut bench = Bench { workers, now };
    assert_eq!(bench.step(Event::Tick), [Action::StartTemplate]);
    bench.step(Event::TemplateReady { resident: false });
    bench.fill();
    bench
}

impl Bench {
    /// Assigns the lowest free cells for all missing workers, and confirms the forks. Returns the
    /// number of forks.
    fn fill(&mut self) -> usize {
        let used: Vec<usize> = self.workers.cells().collect();
        let cells = (0..64).filter(|cell| !used.contains(cell)).collect();
        let forks = self.step(Event::Room { cells });
        self.confirm(&forks);
        forks.iter().filter(|action| matches!(action, Action::Fork { .. })).count()
    }

    fn sizes(&self) -> (usize, usize) {
        let alive = self.workers.places().iter().filter(|place| place.process().is_some()).count();
        (self.workers.places().len(), alive)
    }
}

#[test]
fn grow_adds_and_shrink_retires_workers() {
    let mut bench = elastic(2, 2);
    assert_eq!(bench.step(Event::Grow { script: false, count: 3 }), []);
    assert_eq!((bench.fill(), bench.sizes()), (3, (5, 5)));
    let told = bench.step(Event::Shrink { cells: vec![4, 3, 9] });
    assert_eq!(told, [Action::Retire { index: 4 }, Action::Retire { index: 3 }]);
    assert!(bench.workers.is_leaving(4) && !bench.workers.is_leaving(2));
    // Retiring it again has no effect, and the removed workers get no successors.
    assert_eq!(bench.step(Event::Shrink { cells: vec![4] }), []);
    assert_eq!(bench.workers.lacks(), 0);
    let repair = bench.step(Event::WorkerDied { pid: 104, death: Death::UNKNOWN, served: true });
    assert!(matches!(repair[..], [Action::Repair { index: 4, .. }]), "{repair:?}");
    bench.step(Event::WorkerLeft { pid: 103, served: true });
    assert_eq!((bench.sizes(), bench.workers.restarts()), ((3, 3), 0));
    // The minimum number of workers always stays.
    assert_eq!(bench.step(Event::Shrink { cells: vec![0, 1, 2] }), [Action::Retire { index: 0 }]);
}

#[test]
fn worker_that_dies_while_growing_is_replaced() {
    let mut bench = elastic(2, 2);
    bench.step(Event::Grow { script: false, count: 2 });
    let actions = bench.later(Duration::from_secs(9)).step(died(101));
    assert_eq!(actions.len(), 2, "{actions:?}");
    bench.confirm(&actions);
    assert_eq!((bench.fill(), bench.sizes()), (2, (4, 4)));
}

#[test]
fn refused_fork_above_minimum_is_not_retried() {
    let mut bench = elastic(2, 2);
    bench.step(Event::Grow { script: false, count: 1 });
    let forks = bench.step(Event::Room { cells: vec![7] });
    let [Action::Fork { index, incarnation, .. }] = forks[..] else { panic!("{forks:?}") };
    assert_eq!(bench.step(Event::ForkFailed { index, incarnation }), []);
    assert_eq!((bench.sizes(), bench.workers.fork_failures()), ((2, 2), 1));
    assert_eq!(
        (bench.workers.lacks(), bench.later(Duration::from_mins(1)).step(Event::Tick)),
        (0, vec![])
    );
    // A worker within the minimum is tried again.
    let forks = bench.step(died(100));
    let Some(Action::Fork { index, incarnation, .. }) = forks.last() else { panic!("{forks:?}") };
    let again = bench.step(Event::ForkFailed { index: *index, incarnation: *incarnation });
    assert!(matches!(again[..], [Action::Fork { index: 0, .. }]), "{again:?}");
}

#[test]
fn template_death_resets_workers_to_minimum() {
    let mut bench = elastic(2, 2);
    bench.step(Event::Grow { script: false, count: 6 });
    assert_eq!(bench.fill(), 6);
    bench.step(Event::TemplateDied);
    for pid in 100..108 {
        bench.step(died(pid));
    }
    assert_eq!((bench.sizes(), bench.workers.lacks()), ((2, 0), 0));
}

#[test]
fn shrink_keeps_worker_being_recycled() {
    let mut bench = elastic(4, 2);
    bench.step(Event::Recycle { cell: 3 });
    assert_eq!(bench.fill(), 1);
    assert_eq!(bench.step(Event::Shrink { cells: vec![3, 4] }), []);
    // A worker that is added meanwhile is additional, and not the successor.
    bench.step(Event::Grow { script: false, count: 1 });
    assert_eq!((bench.fill(), bench.sizes()), (1, (6, 6)));
    bench.step(Event::SuccessorUp);
    bench.step(Event::WorkerDied { pid: 103, death: Death::UNKNOWN, served: true });
    assert_eq!((bench.sizes(), bench.workers.recycled()), ((5, 5), 1));
}

#[test]
fn script_workers_scale_separately() {
    let mut bench = elastic(2, 2);
    bench.step(Event::Resident);
    bench.step(Event::ScriptsWait);
    assert_eq!(bench.fill(), 2);
    bench.step(Event::Grow { script: true, count: 3 });
    assert_eq!(bench.fill(), 3);
    let scripts = bench.workers.places().iter().filter(|place| place.is_script()).count();
    assert_eq!((scripts, bench.workers.places().len()), (5, 7));
    let told = bench.step(Event::Shrink { cells: vec![6, 5, 4, 3, 2] });
    assert_eq!(told.len(), 3, "{told:?}");
}

#[test]
fn retiring_worker_gets_no_successor() {
    let mut bench = elastic(3, 1);
    bench.step(Event::Shrink { cells: vec![2] });
    bench.step(Event::Recycle { cell: 2 });
    assert_eq!((bench.fill(), bench.workers.is_recycling()), (0, false));
    bench.step(Event::WorkerDied { pid: 102, death: Death::UNKNOWN, served: true });
    assert_eq!(bench.sizes(), (2, 2));
}
