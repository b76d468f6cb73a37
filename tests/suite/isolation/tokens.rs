//! Randomness and identity: no two requests draw the same, whether the same worker answers them,
//! another, one that was forked anew, or another server; and each process knows who it is.
//!
//! Every generator has been used above the checkpoint, so its state is in the image.
//! `ISOLATION_TOKENS=200000` asks as often.

use crate::isolation::stage::{ask, start};
use samovar_testkit::http::{Client, Request};
use samovar_testkit::{Server, eventually, workspace};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Requests in all; `ISOLATION_TOKENS` asks for more.
const REQUESTS: usize = 3_000;
/// Requests between two that draw from the dear generators too.
const DEAR_EVERY: usize = 50;
/// Workers that are killed, per server.
const KILLS: usize = 4;
/// What has a small seed by its nature, in bits: birthdays are to be expected. That of `mt_rand` is
/// as small in PHP, but its values are what applications take for tokens.
const SMALL_SEEDS: &[(&str, u32)] = &[
    ("Random\\Engine\\Mt19937", 32),
    ("libc: rand", 32),
    ("libc: random", 32),
    ("libc: math:random", 32),
    ("libc: drand48", 48),
];

/// What was drawn so far, by generator.
#[derive(Default)]
struct Drawn {
    /// Hashes of 64 bits: a false alarm is as likely as one in a billion.
    values: BTreeMap<String, HashSet<u64>>,
    repeated: BTreeMap<String, Vec<String>>,
    pids: HashSet<i64>,
}

impl Drawn {
    fn add(&mut self, answer: &Value) {
        self.pids.insert(answer["pid"].as_i64().expect("a number"));
        for (name, value) in answer["values"].as_object().expect("values by generator") {
            let mut hasher = DefaultHasher::new();
            value.to_string().hash(&mut hasher);
            if !self.values.entry(name.clone()).or_default().insert(hasher.finish()) {
                self.repeated.entry(name.clone()).or_default().push(value.to_string());
            }
        }
    }

    /// Generators that gave one value twice, more often than chance explains.
    fn wrong(&self) -> Vec<String> {
        let suspect = self.repeated.iter().filter(|(name, values)| {
            values.len() > birthdays_max(name, self.values[name.as_str()].len())
        });
        suspect.map(|(name, values)| format!("{name}: {} × {}", values.len(), values[0])).collect()
    }
}

fn birthdays_max(generator: &str, drawn: usize) -> usize {
    let small = SMALL_SEEDS.iter().find(|(name, _)| generator.starts_with(name));
    // Expected are n² / 2^(bits + 1); four times as many and two more come once in a million runs.
    small.map_or(0, |(_, bits)| 2 + 4 * ((drawn * drawn) >> (bits + 1)))
}

#[test]
fn no_two_requests_draw_the_same() {
    let requests = std::env::var("ISOLATION_TOKENS")
        .map_or(REQUESTS, |text| text.parse().expect("ISOLATION_TOKENS is a number"));
    let drawn = Mutex::new(Drawn::default());
    for (every, alone, share) in
        [("checkpoint", "", 2), ("checkpoint", "alone", 1), ("3", "", 1), ("0", "", 1)]
    {
        let server = start("tokens.php").workers(2).env("ISOLATION_EVERY", every);
        let server = server.env("ISOLATION_ALONE", alone).start();
        draw(&server, &drawn, requests * share / 5);
        assert!(server.worker_pids().len() == 2, "{}", server.log());
        server.stop();
    }
    let drawn = drawn.into_inner().expect("no client has panicked");
    println!("{} generators, {} processes", drawn.values.len(), drawn.pids.len());
    assert!(drawn.values.len() >= 25, "{:?}", drawn.values.keys());
    // Two workers each, and one for each that was killed while it was known to the test.
    assert!(drawn.pids.len() > 2 * 3 + KILLS, "{:?}", drawn.pids);
    assert!(drawn.wrong().is_empty(), "{}", drawn.wrong().join("\n"));
}

/// Two clients at once, and a worker that is killed now and then.
fn draw(server: &Server, drawn: &Mutex<Drawn>, requests: usize) {
    let sent = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut client = server.client();
                loop {
                    let n = sent.fetch_add(1, Ordering::Relaxed);
                    if n >= requests {
                        break;
                    }
                    if n % (requests / KILLS) == requests / KILLS / 2 {
                        kill_one(server);
                    }
                    let answer = draw_once(&mut client, n);
                    drawn.lock().expect("no client has panicked").add(&answer);
                }
            });
        }
    });
}

fn draw_once(client: &mut Client, n: usize) -> Value {
    let target = if n.is_multiple_of(DEAR_EVERY) { "/?dear" } else { "/" };
    crate::isolation::stage::json(&client.request(&Request::get(target)))
}

fn kill_one(server: &Server) {
    let killed = *server.worker_pids().first().expect("a worker");
    server.kill_worker(killed);
    eventually("another worker", || {
        let now = server.worker_pids();
        (now.len() == 2 && !now.contains(&killed)).then_some(())
    });
}

#[test]
fn what_is_drawn_from_is_documented() {
    let guide = workspace().join("docs/guide/checkpoint-model.md");
    let guide = std::fs::read_to_string(guide).expect("the guide");
    let (_, chapter) = guide.split_once("\n## Randomness\n").expect("a chapter");
    let chapter = chapter.split("\n## ").next().unwrap_or_default();
    let server = start("tokens.php").workers(1).env("ISOLATION_EVERY", "0").start();
    let answer = ask(&server, "/?dear");
    let names = answer["values"].as_object().expect("values by generator").keys();
    let missing: Vec<_> =
        names.filter(|name| !chapter.contains(name.split(": ").next().unwrap_or(name))).collect();
    assert!(missing.is_empty(), "not in the chapter on randomness: {missing:?}");
}

#[test]
fn a_seed_of_the_applications_own_is_kept() {
    let server = Server::script(
        "<?php $own = new Random\\Engine\\Mt19937(7); $free = new Random\\Engine\\Mt19937();
         Samovar\\checkpoint();
         $two = $free->generate() . $free->generate();
         echo json_encode([bin2hex($own->generate()), bin2hex($two)]);",
    )
    .workers(1)
    .start();
    let (first, second) = (ask(&server, "/"), ask(&server, "/"));
    assert_eq!(first[0], second[0], "the same sequence for each request, as was asked for");
    assert_ne!(first[1], second[1]);
}

/// Which request collects the garbage of sessions is drawn too, and PHP 8.4 has a generator for that
/// alone: with its state in the image all requests would, or none.
#[test]
fn each_request_draws_whether_it_collects_sessions() {
    const REQUESTS: usize = 40;
    let server = Server::script(
        "<?php
         final class Noted extends SessionHandler {
             public static int $collections = 0;
             public function gc(int $age): int|false { self::$collections++; return 0; }
         }
         Samovar\\warmup(session_start(...));
         Samovar\\checkpoint();
         session_set_save_handler(new Noted());
         session_start();
         echo json_encode(Noted::$collections);",
    )
    .workers(1)
    .define("session.gc_probability", "1")
    .define("session.gc_divisor", "2")
    .start();
    let collections: HashSet<u64> =
        (0..REQUESTS).filter_map(|_| ask(&server, "/").as_u64()).collect();
    assert_eq!(collections, HashSet::from([0, 1]), "{}", server.log());
    assert_eq!(server.status()["image"]["mode"], "shared", "{}", server.log());
}

#[test]
fn a_worker_knows_who_it_is() {
    let server = Server::script(
        "<?php $boot = strtok(file_get_contents('/proc/self/stat'), ' ') . is_dir('/proc/self/fd');
         Samovar\\checkpoint();
         echo json_encode([getmypid(), posix_getpid(), (int) readlink('/proc/self'),
             (int) file_get_contents('/proc/self/stat'), (int) basename(realpath('/proc/self')),
             (int) strtok(file_get_contents('/proc/thread-self/status'), ' '), (int) $boot]);",
    )
    .workers(2)
    .start();
    let workers: Vec<_> = server.worker_pids();
    for _ in 0..10 {
        let answer = ask(&server, "/");
        let own = answer[0].clone();
        assert!(workers.iter().any(|pid| own == *pid), "{answer} {workers:?}");
        assert_ne!(answer[6], own, "the boot was another process's");
        for (n, what) in
            ["posix_getpid", "readlink", "file_get_contents", "realpath"].iter().enumerate()
        {
            assert_eq!(answer[n + 1], own, "{what}: {answer}");
        }
    }
}

/// libuuid draws its clock sequence once in a process: two workers that ask at once would be given the same number.
#[test]
fn numbers_by_the_time_are_told_apart_by_the_worker() {
    let server = Server::script(
        "<?php $libuuid = FFI::cdef('void uuid_generate_time(unsigned char *);');
         $draw = function () use ($libuuid) {
             $bytes = FFI::new('unsigned char[16]');
             $libuuid->uuid_generate_time($bytes);
             return bin2hex(FFI::string($bytes, 16));
         };
         $draw();
         Samovar\\checkpoint();
         usleep(1000);
         echo json_encode([getmypid(), $draw(), $draw()]);",
    )
    .workers(2)
    .define("ffi.enable", "1")
    .start();
    let drawn = Mutex::new(BTreeMap::<i64, BTreeSet<String>>::new());
    eventually("answers of both workers", || {
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let answer = ask(&server, "/");
                    let pid = answer[0].as_i64().expect("a number");
                    let mut drawn = drawn.lock().expect("no client has panicked");
                    for n in [1, 2] {
                        let uuid = answer[n].as_str().expect("a text").to_owned();
                        let of_worker = drawn.entry(pid).or_default();
                        assert!(of_worker.insert(uuid.clone()), "twice: {uuid}");
                    }
                });
            }
        });
        (drawn.lock().expect("no client has panicked").len() == 2).then_some(())
    });
    let drawn = drawn.into_inner().expect("no client has panicked");
    // RFC 9562: version 1 in the seventh byte, variant and sequence in the ninth and tenth, then the machine.
    let parts = |range: std::ops::Range<usize>| -> Vec<BTreeSet<&str>> {
        drawn.values().map(|of| of.iter().map(|uuid| &uuid[range.clone()]).collect()).collect()
    };
    assert!(parts(12..13).iter().all(|version| version.iter().eq(["1"].iter())), "{drawn:?}");
    let sequences = parts(16..20);
    assert!(sequences.iter().all(|own| own.len() == 1), "{drawn:?}");
    assert_ne!(sequences[0], sequences[1], "{drawn:?}");
    assert_eq!(parts(20..32)[0], parts(20..32)[1], "the same machine: {drawn:?}");
    assert!(sequences.iter().flatten().all(|s| matches!(&s[..1], "8" | "9" | "a" | "b")));
}

/// `MongoDB`'s `ObjectId` has a part that each process draws once, and a count. Of an image, both are the same.
#[test]
fn no_two_requests_number_a_document_alike() {
    const REQUESTS: usize = 50;
    // With a pipe above, each worker boots by itself, and is the process that has drawn.
    for (above, mode) in [("", "shared"), ("$p = popen('cat', 'w');", "worker")] {
        let server = Server::script(&format!(
            "<?php {above} new MongoDB\\BSON\\ObjectId(); Samovar\\checkpoint();
             echo json_encode([getmypid(), (string) new MongoDB\\BSON\\ObjectId()]);"
        ))
        .workers(1)
        .extensions(&["mongodb"])
        .args(["--rehearse", "false"])
        .start();
        eventually(mode, || (server.status()["image"]["mode"] == mode).then_some(()));
        let answers: Vec<Value> = (0..REQUESTS).map(|_| ask(&server, "/")).collect();
        let numbers: BTreeSet<_> = answers.iter().filter_map(|answer| answer[1].as_str()).collect();
        assert_eq!(numbers.len(), REQUESTS, "{mode}: {numbers:?}");
        let last = &answers[REQUESTS - 1];
        assert_eq!(answers[REQUESTS - 2][0], last[0], "{mode}: one worker has drawn them");
    }
}
