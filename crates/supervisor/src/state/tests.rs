use super::*;

struct Bench {
    state: State,
    now: Instant,
}

impl Bench {
    fn new(workers: usize) -> Bench {
        let now = Instant::now();
        let mut bench = Bench { state: State::new(workers, Lives::default(), now), now };
        assert_eq!(bench.step(bench.room()), [Action::StartTemplate]);
        bench
    }
    /// The cells that it lacks, after those that it has.
    fn room(&self) -> Event {
        let has = self.state.places().len();
        Event::Room { cells: (has..has + self.state.lacks()).collect() }
    }
    #[allow(clippy::needless_pass_by_value)] // Reads better in the tests.
    fn step(&mut self, event: Event) -> Vec<Action> {
        self.state.step(&event, self.now)
    }
    /// A pool whose workers all run; pids are 100 + index.
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

fn life(number: u32) -> Incarnation {
    Incarnation::new(number).unwrap()
}

#[test]
fn a_dead_worker_is_repaired_and_replaced_at_once() {
    let mut bench = Bench::started(2);
    let actions = bench.later(Duration::from_secs(9)).step(Event::WorkerDied { pid: 101 });
    assert_eq!(
        actions,
        [
            Action::Repair { index: 1, incarnation: life(2) },
            Action::Fork { index: 1, incarnation: life(3), role: Role::Any },
        ]
    );
    assert_eq!(bench.state.restarts(), 1);
}

#[test]
fn a_worker_that_leaves_is_no_restart_and_waits_only_if_it_did_nothing() {
    let mut bench = Bench::started(1);
    for _ in 0..5 {
        let actions = bench.step(Event::WorkerLeft { pid: 100, served: true });
        assert!(matches!(actions[1], Action::Fork { .. }), "{actions:?}");
        bench.confirm(&actions);
    }
    assert_eq!((bench.state.restarts(), bench.state.reforks()), (0, 5));
    let mut actions = bench.step(Event::WorkerLeft { pid: 100, served: false });
    bench.confirm(&actions);
    actions = bench.step(Event::WorkerLeft { pid: 100, served: false });
    assert_eq!(actions.len(), 1, "only the repair: {actions:?}");
}

#[test]
fn short_lives_wait_longer_and_longer_but_never_for_ever() {
    let mut bench = Bench::started(1);
    let mut waits = Vec::new();
    for _ in 0..12 {
        let mut actions = bench.step(Event::WorkerDied { pid: 100 });
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
fn a_dead_template_waits_for_its_workers_before_it_is_replaced() {
    let mut bench = Bench::started(2);
    bench.later(Duration::from_secs(9));
    assert_eq!(bench.step(Event::TemplateDied), []);
    assert_eq!(bench.step(Event::WorkerDied { pid: 100 }).len(), 1, "only the repair");
    let last = bench.step(Event::WorkerDied { pid: 101 });
    assert_eq!(last.len(), 1);
    assert_eq!(bench.step(Event::Tick), [Action::StartTemplate]);
    assert_eq!(bench.step(Event::TemplateReady { resident: false }).len(), 2);
}

#[test]
fn scripts_beside_a_resident_application_get_workers_of_their_own() {
    let mut bench = Bench::started(2);
    assert_eq!(bench.step(Event::ScriptsWait), [], "any worker still runs them");
    assert_eq!(bench.step(Event::Resident), []);
    assert_eq!(bench.step(Event::ScriptsWait), []);
    assert_eq!(bench.state.lacks(), 2);
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
    assert_eq!(bench.state.lacks(), 0);
    let next = bench.later(Duration::from_secs(9)).step(Event::WorkerDied { pid: 100 });
    assert!(matches!(next[1], Action::Fork { role: Role::Boot, .. }));
}

#[test]
fn a_pool_begins_with_the_room_there_is() {
    let mut bench =
        Bench { state: State::new(3, Lives::default(), Instant::now()), now: Instant::now() };
    assert_eq!(bench.step(Event::Tick), [Action::StartTemplate]);
    assert_eq!(bench.step(Event::Room { cells: vec![7] }), []);
    let forks = bench.step(Event::TemplateReady { resident: false });
    assert!(matches!(forks[..], [Action::Fork { index: 7, .. }]), "{forks:?}");
    assert_eq!((bench.state.lacks(), bench.state.cells().collect::<Vec<_>>()), (2, vec![7]));
    let forks = bench.step(Event::Room { cells: vec![1, 2, 3, 4] });
    assert_eq!(forks.len(), 2, "no more than it lacks");
    assert_eq!(bench.state.lacks(), 0);
}

#[test]
fn a_pool_that_stops_gives_its_cells_back_as_its_workers_leave() {
    let mut bench = Bench::started(2);
    let _ = bench.step(Event::Stop);
    assert_eq!(bench.state.cells().collect::<Vec<_>>(), [0, 1]);
    let _ = bench.step(Event::WorkerDied { pid: 100 });
    assert_eq!((bench.state.cells().collect::<Vec<_>>(), bench.state.lacks()), (vec![1], 0));
}

#[test]
fn no_two_pools_share_a_life() {
    let lives = Lives::default();
    let now = Instant::now();
    let mut seen = Vec::new();
    for cell in [0, 1] {
        let mut state = State::new(1, lives.clone(), now);
        let _ = state.step(&Event::Room { cells: vec![cell] }, now);
        for action in state.step(&Event::TemplateReady { resident: false }, now) {
            let Action::Fork { incarnation, .. } = action else { panic!("{action:?}") };
            seen.push(incarnation.get());
        }
    }
    assert_eq!(seen, [1, 2]);
}

#[test]
fn only_the_named_life_is_killed() {
    let mut bench = Bench::started(2);
    assert_eq!(bench.step(Event::Kill { incarnation: 2 }), [Action::Kill { pid: 101 }]);
    assert_eq!(bench.step(Event::Kill { incarnation: 77 }), []);
}

#[test]
fn stop_ends_workers_then_the_template_then_us() {
    let mut bench = Bench::started(1);
    assert_eq!(bench.step(Event::Stop), [Action::StopWorkers]);
    let actions = bench.step(Event::WorkerDied { pid: 100 });
    assert!(actions.contains(&Action::CloseTemplate));
    assert!(!actions.iter().any(|a| matches!(a, Action::Fork { .. })));
    assert_eq!(bench.step(Event::TemplateDied), [Action::Exit]);
}

#[test]
fn a_boot_that_never_ends_holds_up_no_stop() {
    let mut bench = Bench::new(1);
    let _ = bench.step(Event::Tick);
    assert_eq!(bench.step(Event::TemplateReady { resident: true }).len(), 1, "asked for");
    assert_eq!(bench.step(Event::Stop), [Action::StopWorkers]);
    assert_eq!(bench.step(Event::StopNow), [Action::CloseTemplate]);
    assert!(bench.step(Event::TemplateDied).contains(&Action::Exit));
}

#[test]
fn a_fork_that_comes_after_its_template_died_is_forgotten() {
    let mut bench = Bench::new(1);
    let _ = bench.step(Event::Tick);
    let forks = bench.step(Event::TemplateReady { resident: false });
    let Action::Fork { index, incarnation, .. } = forks[0] else { panic!("{forks:?}") };
    let repair = Action::Repair { index, incarnation };
    assert_eq!(bench.step(Event::TemplateDied), [repair]);
    let _ = bench.step(Event::Forked { index, incarnation, pid: 100 });
    assert_eq!(bench.state.places()[0].process(), None);
}
