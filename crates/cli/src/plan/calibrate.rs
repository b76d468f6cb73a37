//! `samovar plan calibrate`: the speed-up of hyper-threading. The same busy work runs on one thread
//! of each core, and then on all threads, several times in turn.

use crate::subcommand::Run;
use anyhow::{Context, Result, anyhow, bail};
use clap::{Arg, ArgMatches, Command, value_parser};
use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use samovar_plan::{Calibration, Topology, cpu_model};
use samovar_server::{Predecessor, terminal};
use std::process::ExitCode;
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// Pairs of measurements.
const ROUNDS: u32 = 4;
/// Units of work between two looks at the clock.
const UNITS: u64 = 2_000;
/// Words of each thread's table: it fits into a cache of the second level.
const TABLE: usize = 1 << 14;
/// Share of the time that a thread must get.
const UNDISTURBED: f64 = 0.9;

/// Options of the command.
#[derive(Debug)]
pub(super) struct CalibrateOptions {
    seconds: u64,
}

pub(super) fn command() -> Command {
    Command::new("calibrate")
        .about("Measures the speed-up of hyper-threading on this machine, for samovar plan")
        .arg(
            Arg::new("seconds")
                .long("seconds")
                .value_name("N")
                .overrides_with("seconds")
                .value_parser(value_parser!(u64).range(2..=600))
                .help("Duration of the measurement; it uses all CPUs [default: 20]"),
        )
}

pub(super) fn parse(matches: &ArgMatches) -> CalibrateOptions {
    CalibrateOptions { seconds: matches.get_one("seconds").copied().unwrap_or(20) }
}

impl Run for CalibrateOptions {
    fn run(&self, _: Option<&Predecessor>) -> Result<ExitCode> {
        let topology = Topology::read();
        let (cores, cpus) = (topology.cores.len(), topology.cpus());
        let speedup = if topology.has_smt() { self.measure(&topology)? } else { 1.0 };
        let file = store(&Calibration { speedup, cpus, cores, model: cpu_model() })?;
        let found = if topology.has_smt() {
            format!(
                "{cores} cores, {cpus} threads: a full core does {speedup:.2} × the work of one \
                 thread\na displayed CPU use of 50 % is {:.0} % of the capacity",
                100.0 / speedup
            )
        } else {
            format!("{cores} cores with one thread each: no hyper-threading, the speed-up is 1.0")
        };
        terminal::print(&format!("{found}\nstored in {}\n", file.display()))?;
        Ok(ExitCode::SUCCESS)
    }
}

impl CalibrateOptions {
    fn measure(&self, topology: &Topology) -> Result<f64> {
        let one: Vec<usize> =
            topology.cores.iter().filter_map(|core| core.first().copied()).collect();
        let all: Vec<usize> = topology.cores.iter().flatten().copied().collect();
        let time = Duration::from_secs(self.seconds) / (2 * ROUNDS);
        let mut found = Vec::new();
        for _ in 0..ROUNDS {
            let (single, full) = (work(&one, time)?, work(&all, time)?);
            found.push(full / single.max(1.0));
        }
        found.sort_by(f64::total_cmp);
        Ok(f64::midpoint(found[1], found[2]).max(1.0))
    }
}

/// Runs the work on these CPUs; returns the units per second.
fn work(cpus: &[usize], time: Duration) -> Result<f64> {
    let barrier = Barrier::new(cpus.len());
    let run = |cpu: usize| -> Result<(u64, f64)> {
        let mut set = CpuSet::new();
        if cpu < CpuSet::MAX_CPU {
            set.set(cpu);
        }
        let pinned = sched_setaffinity(None, &set);
        let mut table = vec![1_u64; TABLE];
        barrier.wait();
        pinned.with_context(|| format!("cannot use CPU {cpu}"))?;
        let (begun, before) = (Instant::now(), thread_time());
        let mut units = 0;
        while begun.elapsed() < time {
            churn(&mut table, units);
            units += UNITS;
        }
        Ok((units, (thread_time() - before) / begun.elapsed().as_secs_f64()))
    };
    let results: Vec<Result<(u64, f64)>> = std::thread::scope(|scope| {
        let threads: Vec<_> = cpus.iter().map(|cpu| scope.spawn(|| run(*cpu))).collect();
        let joined = threads.into_iter().map(|thread| {
            thread.join().unwrap_or_else(|_| Err(anyhow!("a thread of the measurement failed")))
        });
        joined.collect()
    });
    let mut sum = 0;
    for result in results {
        let (units, share) = result?;
        if share < UNDISTURBED {
            bail!(
                "other work or a quota took {:.0} % of a CPU during the measurement\nhint: repeat \
                 it on an idle machine",
                100.0 * (1.0 - share)
            );
        }
        sum += units;
    }
    #[allow(clippy::cast_precision_loss)] // Far below 2^52.
    Ok(sum as f64 / time.as_secs_f64())
}

/// Work like that of an interpreter: reads that depend on each other, branches, multiplications.
fn churn(table: &mut [u64], seed: u64) {
    let mut x = seed | 1;
    for _ in 0..UNITS {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let place = (x >> 33) as usize % TABLE;
        x ^= table[place];
        let is_rare = x.trailing_zeros() >= 2;
        table[place] = if is_rare { x.rotate_left(7) } else { table[place].wrapping_add(x) };
    }
    std::hint::black_box(table);
}

fn thread_time() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    #[allow(clippy::cast_precision_loss)] // Seconds of one run.
    let seconds = time.tv_sec as f64 + time.tv_nsec as f64 / 1e9;
    seconds
}

fn store(found: &Calibration) -> Result<std::path::PathBuf> {
    let hint = "hint: set XDG_STATE_HOME to a folder that you can write";
    let file = Calibration::file(rustix::process::geteuid().is_root())
        .ok_or_else(|| anyhow!("no folder for the result\n{hint}"))?;
    let folder = file.parent().unwrap_or(&file);
    let written = std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(&file, serde_json::to_string(found)?));
    written.with_context(|| format!("cannot write `{}`\n{hint}", file.display()))?;
    Ok(file)
}
