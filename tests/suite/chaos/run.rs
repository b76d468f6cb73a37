//! Runs one kind alone, or all of them mixed in an order given by the seed.

use crate::chaos::kinds::{ALL, Kind};
use crate::chaos::stage::{Model, Sink, Stage, Surroundings};
use crate::chaos::transport::Transport;
use samovar_testkit::order::{self, Order};
use std::io::Write as _;
use std::sync::{Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// Run time of one kind alone and of all kinds mixed, without `CHAOS_SECONDS`.
const ALONE_SECONDS: u64 = 2;
const MIXED_SECONDS: u64 = 60;

/// Concurrent disturbances when kinds are mixed.
const HANDS: usize = 2;

/// Pause between two disturbances of one thread.
const BREATH: Duration = Duration::from_millis(50);

/// Writes directly to standard error: the test harness keeps a test's output until it fails.
pub(crate) fn say(what: &str) {
    // A failed write cannot be reported.
    let _ = writeln!(std::io::stderr(), "chaos: {what}");
}

fn is_wanted(kind: &Kind) -> bool {
    let only = std::env::var("CHAOS_ONLY").unwrap_or_default();
    only.is_empty() || only.split(',').any(|name| name.trim() == kind.name)
}

fn model_wanted() -> Option<Model> {
    let name = std::env::var("CHAOS_MODEL").ok().filter(|name| !name.is_empty())?;
    let model = Model::ALL.into_iter().find(|model| model.name() == name);
    Some(model.unwrap_or_else(|| panic!("CHAOS_MODEL is script, resident or checkpoint: {name}")))
}

/// Checks that the names in `CHAOS_ONLY` are kinds.
fn check_names() {
    let only = std::env::var("CHAOS_ONLY").unwrap_or_default();
    for name in only.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        let known: Vec<_> = ALL.iter().map(|kind| kind.name).collect();
        assert!(known.contains(&name), "CHAOS_ONLY: no kind `{name}`; there are {known:?}");
    }
}

/// Runs one kind for a few seconds.
pub(crate) fn alone(name: &str) {
    check_names();
    let kind = ALL.iter().find(|kind| kind.name == name).expect("a kind of the table");
    let model = model_wanted().unwrap_or(kind.model);
    if !is_wanted(kind) {
        return;
    }
    let mut around = Surroundings { transport: Transport::wanted(), ..Surroundings::default() };
    if let Err(why) = (kind.prepare)(&mut around) {
        say(&format!("skipped {name}: {why}"));
        return;
    }
    if !(kind.fits)(&around, model) {
        say(&format!("skipped {name}: it has no meaning in the {} model", model.name()));
        return;
    }
    let seconds = order::number_of("CHAOS_SECONDS").unwrap_or(ALONE_SECONDS);
    run(model, &[kind], around, 1, seconds, order::seed("CHAOS_SEED"));
}

/// Runs all kinds mixed, in an environment chosen by the seed.
pub(crate) fn mixed(model: Model) {
    check_names();
    if model_wanted().is_some_and(|wanted| wanted != model) {
        return;
    }
    let seed = order::seed("CHAOS_SEED");
    let mut order = Order::new(seed, HANDS);
    let disks = samovar_testkit::may_mount().is_ok();
    let mut sink = || if order.next(2) == 0 && disks { Sink::Disk } else { Sink::Pipe };
    let transport = Transport::wanted();
    let (log, access) = (sink(), sink());
    let mut around = Surroundings { disks, log, access, transport, ..Surroundings::default() };
    let (log, access) = (around.log, around.access);
    let mut kinds = Vec::new();
    for kind in ALL.iter().filter(|kind| is_wanted(kind)) {
        match (kind.prepare)(&mut around) {
            Ok(()) => kinds.push(kind),
            Err(why) => say(&format!("skipped {}: {why}", kind.name)),
        }
    }
    // Some kinds need a pipe, others a file: the seed has chosen between them.
    (around.log, around.access) = (log, access);
    around.files_later = false;
    kinds.retain(|kind| (kind.fits)(&around, model));
    let seconds = order::number_of("CHAOS_SECONDS").unwrap_or(MIXED_SECONDS);
    run(model, &kinds, around, HANDS, seconds, seed);
}

/// Runs some kinds for a short time over `transport`.
pub(crate) fn over(transport: Transport, names: &[&str], model: Model) {
    let kinds: Vec<_> = ALL.iter().filter(|kind| names.contains(&kind.name)).collect();
    assert_eq!(kinds.len(), names.len(), "kinds of the table");
    let around = Surroundings { transport, ..Surroundings::default() };
    let seconds = order::number_of("CHAOS_SECONDS").unwrap_or(ALONE_SECONDS);
    run(model, &kinds, around, 1, seconds, order::seed("CHAOS_SEED"));
}

fn run(model: Model, kinds: &[&Kind], around: Surroundings, hands: usize, seconds: u64, seed: u64) {
    let transport = around.transport;
    let stage = Stage::set(model, around, hands > 1);
    let plan = Plan {
        kinds,
        busy: kinds.iter().map(|_| Mutex::default()).collect(),
        gate: RwLock::default(),
        end: Instant::now() + Duration::from_secs(seconds),
    };
    std::thread::scope(|scope| {
        for hand in 0..hands {
            let (stage, plan) = (&stage, &plan);
            scope.spawn(move || plan.disturb(stage, Order::new(seed, hand)));
        }
    });
    let (summary, found) = stage.end();
    let names: Vec<_> = kinds.iter().map(|kind| kind.name).collect();
    let (names, model) = (names.join(","), model.name());
    let what = format!("{names} ({model} model, over {}, CHAOS_SEED={seed})", transport.name());
    assert!(found.is_empty(), "{what}: {summary}\n- {}", found.join("\n- "));
    println!("{what}: {summary}");
}

struct Plan<'a> {
    kinds: &'a [&'a Kind],
    /// Each kind runs one disturbance at a time.
    busy: Vec<Mutex<()>>,
    /// Exclusive kinds hold it for writing.
    gate: RwLock<()>,
    end: Instant,
}

impl Plan<'_> {
    fn disturb(&self, stage: &Stage, mut order: Order) {
        loop {
            let number = order.next(self.kinds.len());
            let kind = self.kinds[number];
            let _one = self.busy[number].lock().unwrap_or_else(PoisonError::into_inner);
            let (shared, own) = if kind.exclusive {
                (None, Some(self.gate.write().unwrap_or_else(PoisonError::into_inner)))
            } else {
                (Some(self.gate.read().unwrap_or_else(PoisonError::into_inner)), None)
            };
            stage.did(kind.name);
            let pardons = &stage.load.shared.pardons;
            let granted: Vec<_> = kind.pardons.iter().map(|p| pardons.begin(*p)).collect();
            (kind.disturb)(stage, &mut order);
            for number in granted {
                pardons.end(number);
            }
            drop((shared, own));
            // Later findings may be consequences of the first one.
            if stage.has_found() || !stage.is_alive() || Instant::now() >= self.end {
                return;
            }
            std::thread::sleep(BREATH);
        }
    }
}
