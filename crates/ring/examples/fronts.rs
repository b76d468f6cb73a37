//! Counts the cache lines that a request moves between fronts and workers.
//! `bench/scenarios/fronts.py` runs it.
//!
//! `RUSTFLAGS="--cfg counted" cargo run -p samovar-ring --example fronts FRONTS WORKERS REQUESTS
//! BUSY_US`
//!
//! Each front and each worker is a thread that runs the protocol. Each front keeps `IN_FLIGHT`
//! requests in flight. A worker sleeps for `BUSY_US` µs per request (0: not at all). The output is
//! one line of JSON per place: plain accesses, locked accesses and moved lines per request, for
//! fronts and for workers.

#[cfg(not(counted))]
fn main() -> std::process::ExitCode {
    eprintln!("nothing is counted: build it with RUSTFLAGS=\"--cfg counted\"");
    std::process::ExitCode::from(2)
}

#[cfg(counted)]
fn main() {
    counting_atomics::run();
}

#[cfg(counted)]
mod counted {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use samovar_ring::counting_atomics::{Counts, act_as, take};
    use samovar_ring::{
        End, FrontEnd, Incarnation, Lane, Progress, Ring, SlotIndex, Supervision, Take, Usage,
        WorkerEnd, offsets,
    };
    use std::collections::BTreeMap;
    use std::time::Duration;

    const IN_FLIGHT: usize = 8;
    /// Slots per front.
    const SLOTS: usize = 64;
    /// Maximum sleep of a front before it looks again, as in the server's sweep.
    const SWEEP: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

    pub(super) fn run() {
        let numbers: Vec<usize> =
            std::env::args().skip(1).map(|text| text.parse().expect("a number")).collect();
        let [fronts, workers, requests, busy_us] = numbers[..] else {
            panic!("four numbers: fronts, workers, requests of each front, busy µs");
        };
        let ring = Ring::shared_by(fronts, SLOTS).expect("memory");
        let supervision = Supervision::new(ring.clone());
        // As the supervisor does if there is a core for each worker.
        supervision.set_permits(0, 0, workers);
        std::thread::scope(|scope| {
            let serving: Vec<_> = (0..workers)
                .map(|index| {
                    let ring = ring.clone();
                    scope.spawn(move || work(&ring, fronts + index, index, busy_us as u64))
                })
                .collect();
            let asking: Vec<_> = FrontEnd::all(&ring)
                .into_iter()
                .map(|front| scope.spawn(move || ask(front, requests)))
                .collect();
            asking.into_iter().for_each(|front| front.join().expect("a front"));
            supervision.stop();
            let served = serving.into_iter().map(|worker| worker.join().expect("a worker"));
            assert_eq!(served.sum::<usize>(), fronts * requests, "each is served once");
        });
        print(&ring, fronts, fronts * requests);
    }

    fn work(ring: &Ring, agent: usize, index: usize, busy_us: u64) -> usize {
        act_as(agent);
        let life = Incarnation::new(index as u32 + 1).expect("a life");
        let mut worker = WorkerEnd::new(ring.clone(), index, life);
        let mut served = 0;
        while let Take::Request(slot, _) = worker.take(&[Lane::App, Lane::Script], || true) {
            if busy_us > 0 {
                std::thread::sleep(Duration::from_micros(busy_us));
            }
            assert!(worker.put_head(slot, 200, b"Content-Type: text/plain\n"));
            worker.write_body(slot, b"hello").expect("room");
            let run_ns = busy_us * 1_000 + 1_000;
            worker.finish(slot, &Usage { run_ns, ..Usage::default() });
            served += 1;
        }
        served
    }

    /// Same loop as the server's front: submits requests while there is room, takes news, then
    /// sleeps until it is woken.
    fn ask(mut front: FrontEnd, requests: usize) {
        act_as(front.number());
        let (mut begun, mut done) = (0, 0);
        let (mut news, mut bytes) = (Vec::new(), Vec::new());
        while done < requests {
            while front.in_use() < IN_FLIGHT && begun < requests {
                let Some(filling) = front.fill() else { break };
                front.put_request(&filling, b"GET /");
                front.end_body(filling.slot(), End::Complete);
                front.submit(filling, Lane::App).expect("room in the queue");
                begun += 1;
            }
            front.ring_workers();
            front.take_news(|slot| news.push(slot));
            let is_idle = news.is_empty();
            for slot in news.drain(..) {
                done += usize::from(deliver(&mut front, slot, &mut bytes));
            }
            if is_idle && front.fall_asleep() {
                sleep(&front);
                front.wake_up();
                let _ = front.ring_withheld();
            }
        }
    }

    fn deliver(front: &mut FrontEnd, slot: SlotIndex, bytes: &mut Vec<u8>) -> bool {
        if front.progress(slot) != Ok(Progress::Responded) {
            return false;
        }
        front.read_head(slot, bytes).expect("an honest worker");
        bytes.clear();
        front.read_body(slot, bytes).expect("an honest worker");
        assert_eq!(bytes, b"hello");
        front.account(slot);
        front.release(slot);
        true
    }

    fn sleep(front: &FrontEnd) {
        let notifier = front.notifier();
        let _ = poll(&mut [PollFd::new(&notifier, PollFlags::IN)], Some(&SWEEP));
        let _ = rustix::io::read(notifier, &mut [0; 8]);
    }

    fn place(ring: &Ring, address: usize) -> &'static str {
        let at = address.checked_sub(ring.base()).filter(|at| *at < ring.bytes());
        let Some(at) = at else { return "the fronts' lock" };
        let head = offsets::QUEUE_HEAD - offsets::QUEUE_TAIL;
        let entries = offsets::QUEUE_ENTRIES - offsets::QUEUE_TAIL;
        match at {
            at if at < offsets::FRONT_BELL => "header, stop",
            at if at < offsets::WORKER_SETS => "notifiers of the fronts",
            at if at < offsets::PACE => "sleeping workers",
            at if at < offsets::TURNS => "pace",
            at if at < offsets::QUEUE_TAIL => "turns",
            at if at < offsets::WORKERS => {
                match (at - offsets::QUEUE_TAIL) % offsets::QUEUE_BYTES {
                    at if at < head => "the queue's tail",
                    at if at < entries => "the queue's head",
                    _ => "the queue's entries",
                }
            }
            at if at < offsets::SLOTS => "cells of the workers",
            _ => "slots",
        }
    }

    fn print(ring: &Ring, fronts: usize, requests: usize) {
        let mut places: BTreeMap<&str, [Counts; 2]> = BTreeMap::new();
        for (address, agent, counts) in take() {
            let sides = places.entry(place(ring, address)).or_default();
            let sum = &mut sides[usize::from(agent >= fronts)];
            sum.plain += counts.plain;
            sum.locked += counts.locked;
            sum.moved += counts.moved;
        }
        let side = |counts: Counts| {
            let each = |count: u64| count as f64 / requests as f64;
            let [plain, locked, moved] = [counts.plain, counts.locked, counts.moved].map(each);
            format!("[{plain:.3},{locked:.3},{moved:.3}]")
        };
        for (place, [front, worker]) in places {
            println!(
                "{{\"place\":\"{place}\",\"front\":{},\"worker\":{}}}",
                side(front),
                side(worker)
            );
        }
    }
}
