//! Runs a front against a memory file with arbitrary writes. Shared by the property test and the
//! fuzzer.
//!
//! Each byte string is a program. It consists of operations of an honest front, and of writes of
//! arbitrary words to arbitrary places of the file, as a faulty worker could make them. With every
//! program the front must neither panic nor run forever, and must get every slot back.

use samovar_ring::{End, FrontEnd, Hostile, Lane, Ring, SlotIndex};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;
use std::time::Duration;

const SLOTS: usize = 4;
/// Words of a slot's control cell: six cache lines.
const SLOT_WORDS: usize = 48;
/// Maximum length of a program, bytes; more are ignored.
const STEPS_MAX: usize = 400;

struct Program<'a>(std::slice::Iter<'a, u8>);

impl Program<'_> {
    fn byte(&mut self) -> u8 {
        self.0.next().copied().unwrap_or(0)
    }
    /// Half a word: small, huge or arbitrary.
    fn number(&mut self) -> u32 {
        match self.byte() % 4 {
            0 => u32::from(self.byte()),
            1 => u32::MAX - u32::from(self.byte()),
            2 => 1 << (self.byte() % 32),
            _ => self.word() as u32,
        }
    }
    fn word(&mut self) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|_| self.byte()))
    }
}

/// Runs the program, with one front and with two that alternate. Panics if a front does.
pub(crate) fn run(bytes: &[u8]) {
    for fronts in [1, 2] {
        run_as(fronts, bytes);
    }
}

fn run_as(fronts: usize, bytes: &[u8]) {
    let ring = Ring::shared_by(fronts, SLOTS).expect("a small ring");
    let file = File::from(ring.file().try_clone_to_owned().expect("a descriptor"));
    let len = file.metadata().expect("a file").len();
    let ends = FrontEnd::all(&ring).into_iter().map(|front| (front, Vec::new()));
    let mut ends: Vec<(FrontEnd, Vec<SlotIndex>)> = ends.collect();
    let mut program = Program(bytes[..bytes.len().min(STEPS_MAX)].iter());
    while program.0.len() > 0 {
        let turn = program.0.len() % fronts;
        let (front, open) = &mut ends[turn];
        match program.byte() % 12 {
            0 => {
                let at = program.word() % (len / 8) * 8;
                file.write_at(&program.word().to_le_bytes(), at).expect("within the file");
            }
            1..=5 => {
                let words = control_words();
                let at = words[program.word() as usize % words.len()];
                let half = u64::from(program.byte() % 2) * 4;
                file.write_at(&program.number().to_le_bytes(), at + half).expect("within the file");
            }
            6 | 7 => {
                let lane = if program.byte() % 2 == 0 { Lane::App } else { Lane::Script };
                if let Some(filling) = front.fill() {
                    front.put_request(&filling, &[0; 64]);
                    match front.submit(filling, lane, Duration::ZERO) {
                        Ok(slot) => open.push(slot),
                        Err(filling) => front.release(filling.slot()),
                    }
                }
            }
            8 | 9 => look(front, open),
            10 => {
                if let Some(slot) = open.pop() {
                    let _ = front.cancel(slot);
                    front.release(slot);
                }
            }
            _ => {
                let part = front.part();
                front.tick(|_| {});
                front.take_news(|slot| assert!(part.contains(&slot.get()), "another's news"));
                if front.fall_asleep() {
                    front.wake_up();
                }
                front.ring_workers();
            }
        }
    }
    for (front, open) in &mut ends {
        look(front, open);
        for slot in open {
            let _ = front.cancel(*slot);
            front.release(*slot);
        }
        assert_eq!(front.in_use(), 0, "every slot comes back");
    }
    assert_eq!(ends[0].0.in_use_of_all(), 0);
}

/// Offsets of the words that a request changes, and of the rest of their cells. Found by making
/// some requests.
fn control_words() -> &'static [u64] {
    static WORDS: OnceLock<Vec<u64>> = OnceLock::new();
    WORDS.get_or_init(|| {
        let ring = Ring::create(SLOTS).expect("a small ring");
        let file = File::from(ring.file().try_clone_to_owned().expect("a descriptor"));
        let mut front = FrontEnd::new(ring);
        for lane in [Lane::App, Lane::Script, Lane::App, Lane::Script] {
            let filling = front.fill().expect("a free slot");
            let slot = front.submit(filling, lane, Duration::ZERO).expect("room in the queue");
            front.end_body(slot, End::Complete);
        }
        let len = file.metadata().expect("a file").len() as usize;
        let mut bytes = vec![0; len];
        file.read_exact_at(&mut bytes, 0).expect("the whole file");
        let words = bytes.chunks_exact(8).enumerate();
        let used = words.filter(|(_, word)| word.iter().any(|byte| *byte != 0));
        let near = used.flat_map(|(at, _)| at.saturating_sub(2)..=at + SLOT_WORDS);
        near.map(|at| (at * 8) as u64).filter(|at| *at < len as u64 - 8).collect()
    })
}

fn look(front: &mut FrontEnd, open: &[SlotIndex]) {
    for slot in open {
        let _: Result<_, Hostile> = front.progress(*slot);
        let (mut lines, mut body) = (Vec::new(), Vec::new());
        // Each call takes bytes of a bounded range, so the loop ends.
        while let Ok(Some(status)) = front.read_interim(*slot, &mut lines) {
            assert!((100..200).contains(&status) && lines.len() <= 16 * 1024);
        }
        let _ = front.read_head(*slot, &mut lines);
        assert!(lines.len() <= 32 * 1024);
        let _: Result<End, Hostile> = front.read_body(*slot, &mut body);
        assert!(body.len() <= 128 * 1024);
        let _ = front.write_body(*slot, &[1; 1000]);
        front.end_body(*slot, End::Complete);
        let _ = (front.owner(*slot), front.account(*slot));
    }
}
