//! A library that is compiled for the test, loaded, relinked and called; and misleading texts.

use crate::object;
use crate::plan::{Code64, Doubt, Plan, Slot, Slots, plan};
use crate::{Relinked, relink};
use iced_x86::{Decoder, DecoderOptions, Instruction};
use proptest::prelude::*;
use std::ffi::CString;
use std::path::Path;
use std::process::Command;

/// Other objects may define its functions, so it calls them through its table.
const SOURCE: &str = r"
    #include <string.h>
    #include <unistd.h>
    int cups = 3;
    int twice(int n) { return 2 * n; }
    int own(int n) { return twice(n) + cups; }
    int tail(int n) { return n > 0 ? twice(n) : own(n); }
    int length(const char *s) { return (int)strlen(s) + 1; }
    int pid(void) { return getpid() + 1; }
    int *where(void) { return &cups; }
    int (*which(void))(int) { return twice; }
";

struct Library(*mut libc::c_void);

impl Library {
    fn load(folder: &Path, name: &str, flags: &[&str]) -> Library {
        let (source, library) = (folder.join("cups.c"), folder.join(name));
        std::fs::write(&source, SOURCE).expect("our folder");
        let built = Command::new("cc")
            .args(["-O2", "-fPIC", "-shared", "-fno-builtin", "-Wl,-z,relro"])
            .args(flags)
            .arg(&source)
            .arg("-o")
            .arg(&library)
            .status();
        assert!(built.is_ok_and(|status| status.success()), "a C compiler");
        let path = CString::new(library.to_str().expect("ours")).expect("no NUL");
        // SAFETY: a path with a NUL at its end; the library has no constructors.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
        assert!(!handle.is_null(), "it can be loaded");
        Library(handle)
    }

    fn address(&self, name: &str) -> usize {
        let name = CString::new(name).expect("no NUL");
        // SAFETY: an open handle, and a name with a NUL at its end.
        let found = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        assert!(!found.is_null(), "{name:?}");
        found as usize
    }

    fn call(&self, name: &str, n: i32) -> i32 {
        // SAFETY: SOURCE defines these functions, from int to int (or without a parameter, which
        // reads no register).
        let function: extern "C" fn(i32) -> i32 =
            unsafe { std::mem::transmute(self.address(name)) };
        function(n)
    }

    fn points(&self, name: &str) -> usize {
        // SAFETY: SOURCE defines these functions, without parameters, returning a pointer.
        let function: extern "C" fn() -> usize = unsafe { std::mem::transmute(self.address(name)) };
        function()
    }
}

/// Runs a test in a child with one thread: a test runner has several.
fn in_child(test: impl FnOnce() -> Result<(), String>) {
    // SAFETY: the child makes only calls that any thread may make after a fork of glibc's, and ends
    // by `_exit`.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(test));
        let status = match result {
            Ok(Ok(())) => 0,
            Ok(Err(why)) => {
                eprintln!("{why}");
                1
            }
            Err(_) => 2,
        };
        // SAFETY: ends the child.
        unsafe { libc::_exit(status) }
    }
    let mut status = 0;
    // SAFETY: our own child.
    unsafe { libc::waitpid(pid, &raw mut status, 0) };
    assert_eq!(status, 0, "the child says why");
}

#[allow(clippy::needless_pass_by_value)] // The arguments are passed as with `assert_eq!`.
fn same<T: PartialEq + std::fmt::Debug>(found: T, expected: T) -> Result<(), String> {
    (found == expected).then_some(()).ok_or_else(|| format!("{found:?}, not {expected:?}"))
}

/// The lines of `/proc/self/maps` that have this file.
fn code_of(name: &str) -> Vec<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    maps.lines().filter(|line| line.ends_with(name)).map(str::to_owned).collect()
}

#[test]
fn relinked_library_calls_directly_with_same_results() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let library = Library::load(folder.path(), "cups.so", &["-Wl,-z,now"]);
    in_child(|| {
        let entries = |library: &Library| {
            let objects = object::loaded();
            let found = objects.iter().find(|o| o.has(library.address("own") as u64));
            found.and_then(object::Object::entries).expect("it binds now")
        };
        let before = entries(&library);
        same(before.values().any(|entry| entry.symbol == "twice"), true)?;
        // SAFETY: this child has one thread, which is not in the library.
        let relinked = unsafe { relink(library.address("own"), || ()) };
        let Relinked { objects, calls, loads, left } = relinked.map_err(|e| e.to_string())?;
        same((objects, calls >= 4, loads >= 2, left >= 1), (1, true, true, true))?;
        same(library.call("own", 4), 11)?;
        same((library.call("tail", 4), library.call("tail", -4)), (8, -5))?;
        let text = c"teapot".as_ptr() as usize;
        // SAFETY: in SOURCE, from a string with a NUL at its end to its length.
        let length: extern "C" fn(usize) -> i32 =
            unsafe { std::mem::transmute(library.address("length")) };
        same(length(text), 7)?;
        same(library.call("pid", 0), std::process::id().cast_signed() + 1)?;
        same(library.points("where"), library.address("cups"))?;
        same(library.points("which"), library.address("twice"))?;
        same(entries(&library), before)?;
        let code = code_of("cups.so");
        same(code.iter().any(|line| line.contains("rwx")), false)?;
        same(code.iter().filter(|line| line.contains("r-xp")).count(), 1)
    });
}

#[test]
fn lazily_bound_table_is_rejected() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let library = Library::load(folder.path(), "lazy.so", &["-Wl,-z,lazy"]);
    in_child(|| {
        // SAFETY: as above.
        let refused = unsafe { relink(library.address("own"), || ()) }.err();
        same(refused.is_some_and(|why| why.to_string().contains("may still change")), true)?;
        same(library.call("own", 4), 11)
    });
}

#[test]
fn crash_of_trial_child_prevents_relinking() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let library = Library::load(folder.path(), "trial.so", &["-Wl,-z,now"]);
    in_child(|| {
        // SAFETY: as above.
        let refused = unsafe { relink(library.address("own"), || std::process::abort()) }.err();
        same(refused.is_some_and(|why| why.to_string().contains("SIGABRT")), true)?;
        let objects = object::loaded();
        let found = objects.iter().find(|o| o.has(library.address("own") as u64));
        let library = found.ok_or("it is loaded")?;
        let text = library.text().and_then(|range| library.read(range)).ok_or("its text")?;
        let on_disk = std::fs::read(folder.path().join("trial.so")).map_err(|e| e.to_string())?;
        same(on_disk.windows(text.len()).any(|part| part == text), true)
    });
}

#[test]
fn process_with_threads_is_left_unchanged() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let library = Library::load(folder.path(), "threads.so", &["-Wl,-z,now"]);
    in_child(|| {
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || ended.recv());
        // SAFETY: it is rejected.
        let refused = unsafe { relink(library.address("own"), || ()) };
        drop(end);
        let _ = thread.join();
        same(refused, Err(crate::Refusal::Threads(2)))
    });
}

const AT: u64 = 0x1000;
const SLOT: u64 = 0x4000;

/// A plan for functions that begin at each of `cuts` but the last, which is the end of the last
/// function. The only slot leads to `target`.
fn planned(text: &[u8], cuts: &[u64], target: u64, is_direct: bool) -> Result<Plan, Doubt> {
    let functions: Vec<_> = cuts.windows(2).map(|pair| pair[0]..pair[1]).collect();
    let functions = &functions[..];
    let slots = Slots::from_iter([(SLOT, Slot { target, is_direct })]);
    plan(&Code64 { at: AT, text, functions, slots: &slots })
}

/// `jmp *SLOT(%rip)` at AT, padded to 16 bytes; then `code`.
fn with_stub(code: &[u8]) -> Vec<u8> {
    let mut text = vec![0xff, 0x25];
    text.extend(u32::try_from(SLOT - AT - 6).expect("near").to_le_bytes());
    text.resize(16, 0x90);
    text.extend(code);
    text
}

fn distance(from_end: u64, to: u64) -> [u8; 4] {
    let distance = to.wrapping_sub(from_end).cast_signed();
    i32::try_from(distance).expect("near").to_le_bytes()
}

fn instruction(opcode: &[u8], at: u64, to: u64) -> Vec<u8> {
    let end = at + opcode.len() as u64 + 4;
    [opcode, &distance(end, to)].concat()
}

const FIRST: u64 = AT + 16;

#[test]
fn each_kind_of_instruction_is_rewritten() {
    let target = 0x9000;
    let cases: [(&[u8], u64, &[u8]); 6] = [
        (&[0xe8], AT, &[0xe8]),
        (&[0xe9], AT, &[0xe9]),
        (&[0x0f, 0x84], AT, &[0x0f, 0x84]),
        (&[0xff, 0x15], SLOT, &[0x67, 0xe8]),
        (&[0x48, 0x8b, 0x05], SLOT, &[0x48, 0x8d, 0x05]),
        (&[0x4c, 0x8b, 0x3d], SLOT, &[0x4c, 0x8d, 0x3d]),
    ];
    for (before, to, after) in cases {
        let text = with_stub(&instruction(before, FIRST, to));
        let end = AT + text.len() as u64;
        let plan = planned(&text, &[FIRST, end], target, true).expect("nothing is wrong");
        assert_eq!(plan.text, with_stub(&instruction(after, FIRST, target)), "{before:x?}");
        assert_eq!(plan.calls + plan.loads, 1, "{before:x?}");
    }
}

#[test]
fn far_or_foreign_targets_and_other_loads_stay_unchanged() {
    let call = with_stub(&instruction(&[0xe8], FIRST, AT));
    let whole = [FIRST, AT + call.len() as u64];
    for (target, is_direct) in [(1 << 40, true), (0x9000, false)] {
        let plan = planned(&call, &whole, target, is_direct).expect("nothing is wrong");
        assert_eq!((plan.text, plan.calls, plan.left), (call.clone(), 0, 1));
    }
    // `cmp`, a load of four bytes, a load relative to %fs, and a call within the text.
    let others: [&[u8]; 3] = [&[0x48, 0x3b, 0x05], &[0x8b, 0x05], &[0x64, 0x48, 0x8b, 0x05]];
    for opcode in others {
        let text = with_stub(&instruction(opcode, FIRST, SLOT));
        let end = AT + text.len() as u64;
        let plan = planned(&text, &[FIRST, end], 0x9000, true).expect("nothing is wrong");
        assert_eq!((plan.text, plan.loads), (text, 0), "{opcode:x?}");
    }
}

#[test]
fn bytes_that_look_like_a_call_stay_unchanged() {
    // `mov $…, %eax` with a number that looks like a call, and bytes between functions.
    let hidden = [&[0xb8][..], &instruction(&[0xe8], FIRST + 1, AT)[..4]].concat();
    let mut code = hidden.clone();
    code.push(0xc3);
    code.extend(instruction(&[0xe8], FIRST + 6, AT));
    let text = with_stub(&code);
    let plan = planned(&text, &[FIRST, FIRST + 6], 0x9000, true).expect("nothing is wrong");
    assert_eq!((plan.text, plan.calls), (text, 0));
}

#[test]
fn undecodable_function_stays_unchanged() {
    // 0x06 is not an instruction of 64-bit code; the second function ends in the middle of one.
    let mut bad = instruction(&[0xe8], FIRST, AT);
    bad.push(0x06);
    let second = FIRST + bad.len() as u64;
    bad.extend(instruction(&[0xe8], second, AT));
    let third = second + 5;
    bad.extend(instruction(&[0xe8], third, AT));
    let text = with_stub(&bad);
    let functions = [FIRST, second, third - 1, third, third + 5];
    let plan = planned(&text, &functions, 0x9000, true).expect("nothing is wrong");
    assert_eq!(plan.calls, 1);
    assert_eq!(plan.text[..text.len() - 5], text[..text.len() - 5]);
}

#[test]
fn branch_into_instruction_rejects_whole_plan() {
    let mut code = instruction(&[0xe8], FIRST, AT);
    let at = FIRST + code.len() as u64;
    code.extend(instruction(&[0xe9], at, FIRST + 1));
    let text = with_stub(&code);
    let end = AT + text.len() as u64;
    assert_eq!(planned(&text, &[FIRST, at, end], 0x9000, true), Err(Doubt::Inside(FIRST + 1)));
}

#[test]
fn program_itself_is_left_unchanged() {
    in_child(|| {
        // SAFETY: it is rejected.
        let refused = unsafe { relink(planned as *const () as usize, || ()) };
        same(refused.is_err_and(|why| why.to_string().contains("part of the program")), true)
    });
}

fn starts(text: &[u8]) -> Vec<(u64, usize)> {
    let mut decoder = Decoder::with_ip(64, text, FIRST, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    let mut found = Vec::new();
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        found.push((instruction.ip(), instruction.len()));
    }
    found
}

/// Bytes that often match the search patterns.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let call = (0..32u64).prop_map(|n| instruction(&[0xe8], FIRST + n, AT));
    let load = (0..32u64).prop_map(|n| instruction(&[0x48, 0x8b, 0x05], FIRST + n, SLOT));
    let any = prop::collection::vec(any::<u8>(), 1..6);
    prop::collection::vec(prop_oneof![call, load, any], 1..12).prop_map(|parts| parts.concat())
}

proptest! {
    /// For any text, instructions begin at the same positions as before, and nothing is written
    /// outside of functions.
    #[test]
    fn any_text_keeps_instruction_starts(code in bytes(), cut in 0..64u64, target in any::<u32>()) {
        let text = with_stub(&code);
        let end = AT + text.len() as u64;
        let cut = (FIRST + cut).min(end);
        if let Ok(plan) = planned(&text, &[FIRST, cut], u64::from(target), true) {
            let from = (FIRST - AT) as usize;
            let to = (cut - AT) as usize;
            prop_assert_eq!(&plan.text[..from], &text[..from]);
            prop_assert_eq!(&plan.text[to..], &text[to..]);
            if plan.calls + plan.loads > 0 {
                prop_assert_eq!(starts(&plan.text[from..to]), starts(&text[from..to]));
            }
        }
    }
}
