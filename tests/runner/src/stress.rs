//! Runs one test many times: next to busy loops, then next to other tests of its folder.

use crate::process::Outcome;
use crate::run::Plan;
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Number of busy loops next to the test.
const LOOPS: usize = 6;

/// Number of tests of the same folder that run next to it.
const NEIGHBOURS: usize = 2;

/// Runs the test `runs` times next to busy loops, and `runs` times next to neighbours. Returns the
/// number of failed runs.
pub fn repeat(plan: &Plan, name: &str, runs: usize) -> Result<usize> {
    std::fs::create_dir_all(&plan.logs).context("cannot create the log folder")?;
    let fits = |id: &str| id == name || id.ends_with(&format!("::{name}"));
    let found: Vec<usize> = (0..plan.tests.len()).filter(|i| fits(&plan.tests[*i].id)).collect();
    let [index] = found[..] else {
        bail!(
            "{} tests have the name `{name}`\n\
             hint: use the full name, as in the output of a run: suite::faults::NAME",
            found.len()
        );
    };
    let id = &plan.tests[index].id;
    println!("{id}: {runs} runs next to {LOOPS} busy loops");
    let mut failed = beside(|| burn, || many(plan, index, runs))?;
    let is_exclusive =
        plan.groups.of(id).is_some_and(|group| plan.groups.groups[group].at_once.is_none());
    if is_exclusive {
        println!("{id}: runs alone, because of tests/groups.toml");
        return Ok(failed);
    }
    let folder = id.rsplit_once("::").map_or(id.as_str(), |(folder, _)| folder);
    let is_neighbour = |i: &usize| {
        let test = &plan.tests[*i];
        *i != index
            && !test.is_ignored
            && test.id.starts_with(folder)
            && plan.groups.of(&test.id).is_none()
    };
    let neighbours: Vec<usize> = (0..plan.tests.len()).filter(is_neighbour).collect();
    if neighbours.is_empty() {
        return Ok(failed);
    }
    println!("{id}: {runs} runs next to {NEIGHBOURS} of {} tests of {folder}", neighbours.len());
    failed += with_neighbours(plan, index, &neighbours, runs)?;
    Ok(failed)
}

fn many(plan: &Plan, index: usize, runs: usize) -> Result<usize> {
    let test = &plan.tests[index];
    let mut failed = 0;
    for run in 1..=runs {
        let ran = plan.start(test)?;
        match &ran.outcome {
            Outcome::Passed => {
                ran.forget_log();
            }
            Outcome::Failed(why) => {
                failed += 1;
                let log = ran.log.as_deref().unwrap_or_else(|| Path::new("-")).display();
                println!("run {run} failed after {:.1} s: {why}; {log}", ran.seconds);
            }
        }
        if run % 20 == 0 {
            println!("{run} of {runs} runs, {failed} failed");
        }
    }
    Ok(failed)
}

fn burn(stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        std::hint::spin_loop();
    }
}

fn beside<F: Fn(&AtomicBool) + Send>(
    load: impl Fn() -> F,
    work: impl FnOnce() -> Result<usize>,
) -> Result<usize> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..LOOPS {
            let (load, stop) = (load(), &stop);
            scope.spawn(move || load(stop));
        }
        let result = work();
        stop.store(true, Ordering::Relaxed);
        result
    })
}

/// Each neighbour is a thread that runs one test of the list after the other.
fn with_neighbours(plan: &Plan, index: usize, neighbours: &[usize], runs: usize) -> Result<usize> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for first in 0..NEIGHBOURS {
            let stop = &stop;
            scope.spawn(move || {
                let order = neighbours.iter().cycle().skip(first).step_by(NEIGHBOURS);
                for neighbour in order.take_while(|_| !stop.load(Ordering::Relaxed)) {
                    let test = &plan.tests[*neighbour];
                    // The verdict on a neighbour is ignored: other runs check that test.
                    if let Ok(ran) = plan.start(test) {
                        ran.forget_log();
                    }
                }
            });
        }
        let result = many(plan, index, runs);
        stop.store(true, Ordering::Relaxed);
        result
    })
}
