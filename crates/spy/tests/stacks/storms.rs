//! Processes that are forked and killed all the time while they are read: each line is correct, and
//! no read blocks forever.

use crate::moving::{mistake, reads, restless_with};
use crate::program::{MODES, Program};
use samovar_spy::{Error, Files, Frame, Names, Reader, Reading};
use samovar_testkit::kill;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

const SIGKILL: i32 = 9;
const SIGSTOP: i32 = 19;
/// Number of children at once.
const CHILDREN: usize = 6;
/// Interval between two kills: a child lives for some of these.
const KILL_EVERY: Duration = Duration::from_micros(500);
/// Number of reads per death: a test sees at least one death for this number of reads.
const READS_PER_DEATH: u32 = 100;

/// A parent with children that run like `restless` programs, each for two seconds unless it is
/// killed.
const END: &str =
    "if (storm()) { $end = hrtime(true) + 2e9; while (hrtime(true) < $end) { f2(1); } exit; }
function storm() {
    for ($children = 0; ; $children++) {
        while ($children >= CHILDREN) { $children -= pcntl_wait($status) > 0 ? 1 : 0; }
        if (pcntl_fork() === 0) { return true; }
    }
}
";

/// The error in a child's stack, once the child has begun the work that it was forked for.
fn mistake_of_child(frames: &[Frame]) -> Option<String> {
    let names: Vec<_> = frames.iter().map(|frame| frame.function.name.as_str()).collect();
    match names[..] {
        ["hrtime" | "storm", "{main}"] | ["pcntl_fork", "storm", "{main}"] => None,
        _ => mistake(frames),
    }
}

fn children(parent: u32) -> Vec<u32> {
    let all = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
    let all = all.unwrap_or_default();
    all.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

fn signal(pid: u32, signal: i32) {
    // It may have ended.
    kill(pid.cast_signed(), signal);
}

/// The parent and all of its children, for the duration of a test.
struct Storm(Program);

impl Drop for Storm {
    fn drop(&mut self) {
        let parent = self.0.pid();
        // It no longer forks, so the list of its children is complete.
        signal(parent, SIGSTOP);
        for child in children(parent) {
            signal(child, SIGKILL);
        }
    }
}

/// Kills one child after the other until `ends` is set.
fn killer(parent: u32, ends: &AtomicBool, kills: &AtomicU32) {
    let mut turn = 0_usize;
    while !ends.load(Ordering::Relaxed) {
        let all = children(parent);
        if let Some(child) = all.get(turn % CHILDREN) {
            signal(*child, SIGKILL);
            kills.fetch_add(1, Ordering::Relaxed);
        }
        turn = turn.wrapping_add(7);
        std::thread::park_timeout(KILL_EVERY);
    }
}

/// Counts of the results.
#[derive(Debug, Default)]
struct Seen {
    reads: u32,
    stacks: u32,
    torn: u32,
    ended: u32,
}

fn read_children(first: &Reader, parent: u32, names: &mut Names, seen: &mut Seen) {
    let mut readers: HashMap<u32, Reader> = HashMap::new();
    for pid in children(parent) {
        if let Ok(reader) = first.sibling(pid) {
            readers.insert(pid, reader);
        }
    }
    // Until one of them has ended: then there are other children.
    loop {
        for (pid, reader) in &mut readers {
            seen.reads += 1;
            match reader.read_first(names) {
                Ok(Reading::Stack(stack)) => {
                    seen.stacks += 1;
                    assert_eq!(mistake_of_child(&stack.frames), None, "{pid}, {seen:?}");
                }
                Ok(Reading::Torn { .. }) => seen.torn += 1,
                Ok(Reading::Idle { .. }) => {}
                Err(Error::Gone { .. }) => {
                    seen.ended += 1;
                    return;
                }
                Err(error) => panic!("{error}"),
            }
        }
        if readers.is_empty() {
            std::thread::yield_now();
            return;
        }
    }
}

#[test]
fn constantly_killed_forks_are_read_correctly() {
    let end = END.replace("CHILDREN", &CHILDREN.to_string());
    for mode in &MODES[..2] {
        let mut storm = Storm(Program::start(&restless_with(69, &end), mode, &[]));
        storm.0.line();
        let parent = storm.0.pid();
        let first = Reader::open(parent, &mut Files::default()).expect("it lives");
        let (ends, kills) = (AtomicBool::new(false), AtomicU32::new(0));
        let mut seen = Seen::default();
        std::thread::scope(|scope| {
            let _ends = Ends(&ends);
            scope.spawn(|| killer(parent, &ends, &kills));
            let mut names = Names::new();
            while seen.reads < reads() || seen.ended < reads() / READS_PER_DEATH {
                read_children(&first, parent, &mut names, &mut seen);
            }
        });
        println!("{}: {seen:?}, {} kills", mode.name, kills.into_inner());
        assert!(seen.stacks > seen.torn, "{seen:?}");
    }
}

/// Also stops the killer if a stack is wrong: the scope waits for it.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
