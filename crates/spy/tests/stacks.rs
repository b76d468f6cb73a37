//! Stacks of PHP programs that report their own stack: the stack read from outside equals PHP's
//! report in each scenario, with and without opcache and its JIT.

#[path = "stacks/moving.rs"]
mod moving;
#[path = "stacks/program.rs"]
mod program;
#[path = "stacks/shares.rs"]
mod shares;
#[path = "stacks/storms.rs"]
mod storms;
#[path = "stacks/threads.rs"]
mod threads;

use program::{MODES, Program};
use samovar_spy::{Frame, read_stack};

const SCENARIOS: &str = include_str!("stacks/scenarios.php");

/// The names of the scenarios, from the text of the program.
fn scenarios() -> Vec<&'static str> {
    let names = SCENARIOS.lines().filter_map(|line| line.strip_prefix("    case '"));
    names.filter_map(|line| line.split('\'').next()).collect()
}

#[test]
fn stacks_match_php_backtraces() {
    assert!(scenarios().len() > 20, "the scenarios have another form now");
    for mode in MODES {
        for scenario in scenarios() {
            let mut program = Program::start(SCENARIOS, mode, &[scenario]);
            let told: Vec<(String, u32)> =
                serde_json::from_str(&program.line()).expect("a trace as JSON");
            let stack = program.when_it_waits();
            check(&format!("{scenario}, {}", mode.name), &stack.frames, &told);
        }
    }
}

/// `told` is `debug_backtrace()` in the function that waits: each entry has a function and the line
/// that it was called from.
fn check(scenario: &str, frames: &[Frame], told: &[(String, u32)]) {
    let read: Vec<_> = frames.iter().map(ToString::to_string).collect();
    assert_eq!(frames[0].function.name, "fgets", "{scenario}: {read:#?}");
    assert_eq!(frames.len(), told.len() + 2, "{scenario}: {read:#?}\nbeside {told:#?}");
    for (depth, (name, line)) in told.iter().enumerate() {
        let (frame, caller) = (&frames[depth + 1], &frames[depth + 2]);
        assert_eq!(&frame.function.full_name(), name, "{scenario}: {read:#?}\nbeside {told:#?}");
        let is_said = *line != 0 && !caller.function.is_internal();
        assert!(!is_said || caller.line == *line, "{scenario}: {caller} calls {name} in {line}");
    }
    assert_eq!(frames[told.len() + 1].function.name, "{main}", "{scenario}");
}

#[test]
fn stack_of_ten_thousand_calls_is_complete() {
    let text = "<?php function f($n) {\nif ($n > 0) { return f($n - 1) + 1; }\n\
                fgets(STDIN); return 0; }\necho \"0\\n\";\nf(9999);";
    for mode in MODES {
        let mut program = Program::start(text, mode, &[]);
        program.line();
        let stack = program.when_it_waits();
        assert_eq!(stack.frames.len(), 10_002, "{}", mode.name);
        let lines: Vec<u32> = stack.frames.iter().map(|frame| frame.line).collect();
        assert_eq!(lines[..2], [0, 3]);
        assert!(lines[2..10_001].iter().all(|line| *line == 2), "{}", mode.name);
        assert_eq!((lines[10_001], stack.is_cut), (5, false));
    }
}

#[test]
fn overdeep_stacks_are_truncated_and_marked() {
    let text = "<?php ini_set('memory_limit', -1); \
                function f($n) { if ($n > 0) { f($n - 1); return; } fgets(STDIN); }\n\
                echo \"0\\n\"; f(50000);";
    let mut program = Program::start(text, &MODES[0], &[]);
    program.line();
    let stack = program.when_it_waits();
    assert!(stack.is_cut);
    assert_eq!(stack.frames.len(), samovar_spy::FRAMES_MAX);
}

#[test]
fn non_php_processes_are_rejected() {
    let own = read_stack(std::process::id()).expect_err("we are not PHP").to_string();
    assert!(own.contains("is not PHP") && own.contains("\nhint: "), "{own}");
    let gone = read_stack(u32::MAX).expect_err("there is no such process").to_string();
    assert!(gone.contains("there is no process") && gone.contains("\nhint: "), "{gone}");
}
