//! A program that measures its time in each of its functions: the shares read from outside must
//! match.

use crate::program::{MODES, Program};
use samovar_spy::profile::{Profile, Weight};
use samovar_spy::{Activity, Files, Names, Reader, Reading};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Runs for `$argv[1]` seconds, then writes the nanoseconds spent in each function.
const PROGRAM: &str = r#"<?php
$spent = ['heavy' => 0, 'middle' => 0, 'light' => 0, 'waits' => 0];
function busy($ms) {
    $end = hrtime(true) + $ms * 1000000;
    while (hrtime(true) < $end) { for ($i = 0; $i < 50; $i++); }
}
function heavy() { busy(6); }
function middle() { busy(3); }
function light() { busy(1); }
function waits() { usleep(2000); }
echo "ready\n";
$end = hrtime(true) + $argv[1] * 1000000000;
while (hrtime(true) < $end) {
    foreach (['heavy', 'light', 'middle', 'waits'] as $name) {
        $since = hrtime(true);
        $name();
        $spent[$name] += hrtime(true) - $since;
    }
}
echo json_encode($spent);
"#;

/// Tolerance of a share, in percentage points. With n samples of the same weight the standard
/// deviation is at most 50 points / √n. A sample that represents many beats, because the machine
/// was busy, makes n smaller.
fn tolerance(weights: &[u64]) -> f64 {
    #[allow(clippy::cast_precision_loss)] // Numbers in the thousands.
    let sum = |power: i32| weights.iter().map(|weight| (*weight as f64).powi(power)).sum::<f64>();
    let deviation = 50.0 / (sum(1).powi(2) / sum(2).max(1.0)).sqrt().max(1.0);
    // Five standard deviations, and half a point for time that the program cannot measure of
    // itself.
    5.0 * deviation + 0.5
}

#[test]
fn sampled_shares_match_measured_shares() {
    let seconds = std::env::var("SPY_SECONDS").unwrap_or_else(|_| "4".to_owned());
    for mode in &MODES[..3] {
        let mut program = Program::start(PROGRAM, mode, &[&seconds]);
        program.line();
        let (profile, weights) = sample(program.pid());
        let told: BTreeMap<String, u64> =
            serde_json::from_str(&program.rest()).expect("what it measured");
        let all: u64 = told.values().sum();
        let total = profile.total().samples;
        for share in profile.shares() {
            let Some(spent) = told.get(&share.function.name) else { continue };
            #[allow(clippy::cast_precision_loss)] // Shares.
            let (is, should) = (
                share.total.samples as f64 * 100.0 / total as f64,
                *spent as f64 * 100.0 / all as f64,
            );
            let name = &share.function.name;
            println!("{}: {name} {is:.2} %, by itself {should:.2} %, {total} samples", mode.name);
            assert!(
                (is - should).abs() < tolerance(&weights),
                "{name}: {is:.2} % beside {should:.2} %"
            );
        }
    }
}

/// Samples about a thousand times a second until the program ends. Also returns the number of beats
/// that each sample represents.
fn sample(pid: u32) -> (Profile, Vec<u64>) {
    let mut reader = Reader::open(pid, &mut Files::default()).expect("it lives");
    let (mut names, mut profile) = (Names::new(), Profile::new());
    let (mut next, mut weights) = (Instant::now(), Vec::new());
    // An odd interval, so that it does not stay in step with a program that works in milliseconds.
    let every = Duration::from_micros(1037);
    while let Ok(reading) = reader.read_first(&mut names) {
        if let Reading::Stack(stack) = reading {
            let late = next.elapsed().as_nanos() / every.as_nanos();
            let samples = u64::try_from(late).unwrap_or(0) + 1;
            // The sample also represents the time that was slept through, as in a recording.
            let weight = Weight { samples, wall_ns: 0, cpu_ns: 0 };
            let is_at_work = stack.frames.iter().any(|f| f.function.name.as_str() != "{main}");
            if is_at_work {
                weights.push(samples);
                profile.add(&stack.frames, &Activity::Running, weight);
            }
        }
        while next < Instant::now() {
            next += every;
        }
        std::thread::park_timeout(next - Instant::now());
    }
    (profile, weights)
}
