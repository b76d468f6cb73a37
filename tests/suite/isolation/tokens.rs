//! Randomness and identity: no two requests draw the same values, in the same worker, another one,
//! a new fork, or another server. Each process knows its own ID.
//!
//! Every generator has been used above the checkpoint, so its state is in the image.
//! `ISOLATION_TOKENS=200000` sends 200,000 requests.

use crate::isolation::stage::{ask, start};
use samovar_testkit::http::{Client, Request};
use samovar_testkit::{Server, eventually, workspace};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Total number of requests; `ISOLATION_TOKENS` overrides it.
const REQUESTS: usize = 3_000;
/// One of this number of requests also uses the expensive generators.
const DEAR_EVERY: usize = 50;
/// Number of killed workers per server.
const KILLS: usize = 4;
/// Generators with a small seed, in bits: repetitions by chance are expected (birthday problem).
/// PHP's `mt_rand` has a small seed, too, but applications use its values as tokens.
const SMALL_SEEDS: &[(&str, u32)] = &[
    ("Random\\Engine\\Mt19937", 32),
    ("libc: rand", 32),
    ("libc: random", 32),
    ("libc: math:random", 32),
    ("libc: drand48", 48),
];

/// Values drawn so far, by generator.
#[derive(Default)]
struct Drawn {
    /// 64-bit hashes: the probability of a false alarm is one in a billion.
    values: BTreeMap<String, HashSet<u64>>,
    repeated: BTreeMap<String, Vec<String>>,
    pids: HashSet<i64>,
}

impl Drawn {
    fn add(&mut self, response: &Value) {
        self.pids.insert(response["pid"].as_i64().expect("a number"));
        for (name, value) in response["values"].as_object().expect("values by generator") {
            let mut hasher = DefaultHasher::new();
            value.to_string().hash(&mut hasher);
            if !self.values.entry(name.clone()).or_default().insert(hasher.finish()) {
                self.repeated.entry(name.clone()).or_default().push(value.to_string());
            }
        }
    }

    /// Generators that repeated a value more often than chance explains.
    fn wrong(&self) -> Vec<String> {
        let suspect = self.repeated.iter().filter(|(name, values)| {
            values.len() > birthdays_max(name, self.values[name.as_str()].len())
        });
        suspect.map(|(name, values)| format!("{name}: {} × {}", values.len(), values[0])).collect()
    }
}

fn birthdays_max(generator: &str, drawn: usize) -> usize {
    let small = SMALL_SEEDS.iter().find(|(name, _)| generator.starts_with(name));
    // The expected number is n² / 2^(bits + 1). Four times as many plus two occur once in a million
    // runs.
    small.map_or(0, |(_, bits)| 2 + 4 * ((drawn * drawn) >> (bits + 1)))
}

#[test]
fn requests_draw_unique_random_values() {
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
    // Two workers per server, and one for each killed worker that the test knew.
    assert!(drawn.pids.len() > 2 * 3 + KILLS, "{:?}", drawn.pids);
    assert!(drawn.wrong().is_empty(), "{}", drawn.wrong().join("\n"));
}

/// Sends requests from two clients at once, and kills a worker now and then.
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
                    let response = draw_once(&mut client, n);
                    drawn.lock().expect("no client has panicked").add(&response);
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
fn each_random_generator_is_documented() {
    let guide = workspace().join("docs/guide/checkpoint-model.md");
    let guide = std::fs::read_to_string(guide).expect("the guide");
    let (_, chapter) = guide.split_once("\n## Randomness\n").expect("a chapter");
    let chapter = chapter.split("\n## ").next().unwrap_or_default();
    let server = start("tokens.php").workers(1).env("ISOLATION_EVERY", "0").start();
    let response = ask(&server, "/?dear");
    let names = response["values"].as_object().expect("values by generator").keys();
    let missing: Vec<_> =
        names.filter(|name| !chapter.contains(name.split(": ").next().unwrap_or(name))).collect();
    assert!(missing.is_empty(), "not in the chapter on randomness: {missing:?}");
}

#[test]
fn seed_set_by_application_is_kept() {
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

/// Each request decides by a random number whether it collects expired sessions, and PHP 8.4 has a
/// separate generator for this. With its state in the image, either all requests or none would
/// collect them.
#[test]
fn session_collection_is_random_in_each_request() {
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
fn worker_has_its_own_process_id() {
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
        let response = ask(&server, "/");
        let own = response[0].clone();
        assert!(workers.iter().any(|pid| own == *pid), "{response} {workers:?}");
        assert_ne!(response[6], own, "the boot was another process's");
        for (n, what) in
            ["posix_getpid", "readlink", "file_get_contents", "realpath"].iter().enumerate()
        {
            assert_eq!(response[n + 1], own, "{what}: {response}");
        }
    }
}

/// libuuid draws its clock sequence once per process. Two workers that use it at the same time
/// would get the same number.
#[test]
fn time_based_uuids_differ_between_workers() {
    let server = Server::script(
        "<?php $libuuid = FFI::cdef('void uuid_generate_time(unsigned char *);');
         $draw = function () use ($libuuid) {
             $bytes = $libuuid->new('unsigned char[16]');
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
                    let response = ask(&server, "/");
                    let pid = response[0].as_i64().expect("a number");
                    let mut drawn = drawn.lock().expect("no client has panicked");
                    for n in [1, 2] {
                        let uuid = response[n].as_str().expect("a text").to_owned();
                        let of_worker = drawn.entry(pid).or_default();
                        assert!(of_worker.insert(uuid.clone()), "twice: {uuid}");
                    }
                });
            }
        });
        (drawn.lock().expect("no client has panicked").len() == 2).then_some(())
    });
    let drawn = drawn.into_inner().expect("no client has panicked");
    // RFC 9562: version 1 in the seventh byte, variant and sequence in the ninth and tenth, then
    // the machine.
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

/// `MongoDB`'s `ObjectId` contains a part that each process draws once, and a counter. In all
/// workers of an image both are the same.
#[test]
fn mongodb_object_ids_are_unique() {
    const REQUESTS: usize = 50;
    // With an open pipe above the checkpoint, each worker boots separately, and has drawn the
    // values itself.
    for (above, mode) in [("", "shared"), ("$p = popen('cat', 'w');", "worker")] {
        let server = Server::script(&format!(
            "<?php {above} new MongoDB\\BSON\\ObjectId(); Samovar\\checkpoint();
             echo json_encode([getmypid(), (string) new MongoDB\\BSON\\ObjectId()]);"
        ))
        .workers(1)
        .extensions(&["mongodb"])
        .args(["--prewarm-boot", "false"])
        .start();
        eventually(mode, || (server.status()["image"]["mode"] == mode).then_some(()));
        let responses: Vec<Value> = (0..REQUESTS).map(|_| ask(&server, "/")).collect();
        let numbers: BTreeSet<_> =
            responses.iter().filter_map(|response| response[1].as_str()).collect();
        assert_eq!(numbers.len(), REQUESTS, "{mode}: {numbers:?}");
        let last = &responses[REQUESTS - 1];
        assert_eq!(responses[REQUESTS - 2][0], last[0], "{mode}: one worker has drawn them");
    }
}
