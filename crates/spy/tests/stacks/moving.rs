//! Stacks that move while they are read, and processes that die: no line is wrong, and no read
//! blocks forever.

use crate::program::{MODES, Program};
use samovar_spy::{Error, Files, Frame, Names, Reader, Reading};
use samovar_testkit::eventually;
use std::fmt::Write as _;

/// Number of reads of each test; `SPY_READS=100000` for a long one.
pub(crate) fn reads() -> u32 {
    std::env::var("SPY_READS").ok().and_then(|text| text.parse().ok()).unwrap_or(4000)
}

/// A program whose lines follow from its names. `f12` is declared in line 12 and calls `f13` there.
/// Each of `l101`, `l102` … is called from the line with that number, repeatedly, and does almost
/// nothing. The fewer of them there are, the sooner a stack looks as it did a moment before.
fn restless(lines: u32) -> String {
    restless_with(lines, "while (true) { f2(1); }\n")
}

/// The same program with another line 172 and other lines after it.
pub(crate) fn restless_with(lines: u32, end: &str) -> String {
    let mut text = "<?php\n".to_owned();
    for line in 2..30 {
        let _ = writeln!(text, "function f{line}($n) {{ return f{}($n + 1) + 1; }}", line + 1);
    }
    text.push_str("function f30($n) { return many($n); }\n");
    for line in 31..100 {
        let _ = writeln!(text, "function l{}($x) {{ return $x + 1; }}", line + 70);
    }
    text.push_str("function many($n) { for ($i = 0; $i < 200; $i++) {\n");
    for line in 101..170 {
        let call = if line < 101 + lines { format!("$n = l{line}($n);") } else { String::new() };
        let _ = writeln!(text, "{call}");
    }
    text.push_str("} return $n; }\necho \"ready\\n\";\n");
    text.push_str(end);
    text
}

/// The error in a stack of that program, if there is one.
pub(crate) fn mistake(frames: &[Frame]) -> Option<String> {
    let calls: Vec<_> = frames.iter().map(|f| (f.function.name.as_str(), f.line)).collect();
    let number = |name: &str, kind: char| name.strip_prefix(kind)?.parse::<u32>().ok();
    for (depth, (name, line)) in calls.iter().enumerate() {
        let caller = calls.get(depth + 1);
        let is_right = if let Some(declared) = number(name, 'f') {
            let is_called = match declared {
                2 => matches!(caller, Some(("{main}", 172))),
                _ => caller.is_some_and(|(name, _)| number(name, 'f') == Some(declared - 1)),
            };
            *line == declared && is_called
        } else if let Some(from) = number(name, 'l') {
            *line == from - 70 && depth == 0 && caller == Some(&("many", from))
        } else {
            match *name {
                "many" => caller == Some(&("f30", 30)) && (100..=170).contains(line),
                "{main}" => depth + 1 == calls.len(),
                _ => false,
            }
        };
        if !is_right {
            return Some(format!("{name} in line {line}, in {calls:?}"));
        }
    }
    None
}

#[test]
fn moving_stack_has_no_wrong_line() {
    for (lines, mode) in [(69, &MODES[0]), (69, &MODES[1]), (2, &MODES[0]), (3, &MODES[1])] {
        let text = restless(lines);
        let mut program = Program::start(&text, mode, &[]);
        program.line();
        let mut reader = open(program.pid());
        let mut names = Names::new();
        let (mut stacks, mut torn, mut wrong) = (0, 0, Vec::new());
        for _ in 0..reads() {
            match reader.read_first(&mut names).expect("it lives") {
                Reading::Stack(stack) => {
                    stacks += 1;
                    wrong.extend(mistake(&stack.frames));
                }
                Reading::Torn { .. } => torn += 1,
                Reading::Idle { .. } => panic!("the program never ends"),
            }
        }
        println!(
            "{}, {lines} lines: {stacks} stacks, {torn} torn, {} wrong",
            mode.name,
            wrong.len()
        );
        assert!(wrong.is_empty(), "{} of {stacks}: {}", wrong.len(), wrong[0]);
        assert!(stacks > torn, "{stacks} stacks, {torn} torn");
    }
}

fn open(pid: u32) -> Reader {
    eventually("PHP has begun", || Reader::open(pid, &mut Files::default()).ok())
}

#[test]
fn death_of_worker_during_read_is_reported() {
    let text = restless(69);
    let mut files = Files::default();
    let (mut stacks, mut ended) = (0, 0);
    let lives = (reads() / 200).max(20) as usize;
    for life in 0..lives {
        let mut program = Program::start(&text, &MODES[life % MODES.len()], &[]);
        program.line();
        let pid = program.pid();
        let mut reader = Reader::open(pid, &mut files).expect("it lives");
        let mut names = Names::new();
        // Killed between two reads or during one.
        let killer = std::thread::spawn(move || drop(program));
        for _ in 0..reads() {
            match reader.read(&mut names) {
                Ok(readings) => {
                    for reading in readings {
                        if let Reading::Stack(stack) = reading {
                            stacks += 1;
                            assert_eq!(mistake(&stack.frames), None);
                        }
                    }
                }
                Err(Error::Gone { .. }) => {
                    ended += 1;
                    break;
                }
                Err(error) => panic!("{error}"),
            }
        }
        killer.join().expect("killed");
        assert!(matches!(reader.read(&mut names), Err(Error::Gone { .. })));
    }
    println!("{lives} lives: {stacks} stacks, {ended} ended while they were read");
}
