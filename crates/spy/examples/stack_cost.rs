//! Cost of a read: `stack_cost PID READS` prints the microseconds of the median read and the number
//! of torn reads. For `bench/scenarios`.

use samovar_spy::{Files, Names, Reader, Reading};
use std::time::Instant;

fn main() {
    let mut numbers = std::env::args().skip(1).filter_map(|text| text.parse::<u32>().ok());
    let (pid, reads) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(10_000));
    let mut reader = match Reader::open(pid, &mut Files::default()) {
        Ok(reader) => reader,
        Err(error) => {
            eprintln!("stack_cost: {error}");
            std::process::exit(1);
        }
    };
    let mut names = Names::new();
    let own = std::process::id();
    let used = || samovar_spy::cpu_ns(own, own).unwrap_or(0);
    let before = used();
    let (mut torn, mut frames, mut took) = (0_u32, 0, Vec::new());
    for _ in 0..reads {
        let began = Instant::now();
        match reader.read_first(&mut names) {
            Ok(Reading::Stack(stack)) => {
                took.push(began.elapsed());
                frames = frames.max(stack.frames.len());
            }
            Ok(Reading::Torn { .. }) => torn += 1,
            Ok(Reading::Idle { .. }) => {}
            Err(error) => {
                eprintln!("stack_cost: {error}");
                break;
            }
        }
    }
    let cpu_us = std::time::Duration::from_nanos(used() - before).as_secs_f64() * 1e6
        / f64::from(reads.max(1));
    took.sort();
    let at = |percent: usize| took.get(took.len() * percent / 100).copied().unwrap_or_default();
    let (median, high) = (at(50), at(99));
    println!(
        "PHP {}: {frames} frames, {cpu_us:.1} µs CPU a read, median {median:?}, p99 {high:?}, torn \
         {torn} of {}",
        reader.engine().version(),
        took.len()
    );
}
