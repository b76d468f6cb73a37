use crate::children::{Scratch, child, client, ended_well, is_over, kill, number, seed};
use samovar_shared::{Cache, Client, Condition, FlightRole, Life, Look, Shared};
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const LIFE: Life = Life { fresh: Duration::ZERO, stale: Duration::ZERO };
/// Small, so that values are evicted all the time.
const BYTES: usize = 128 << 10;
const PROCESSES: u64 = 8;
/// Limits only how long a broken test hangs.
const LONG: Duration = Duration::from_mins(2);

fn open(client: &Client) -> Cache {
    Cache::open(client, b"values", BYTES).unwrap()
}

/// A value whose bytes show its key, its number and its length.
fn value(key: &str, n: u64) -> Vec<u8> {
    let len = (n * 37 % 1500) as usize;
    let mut value = format!("{key}={n};").into_bytes();
    value.extend((0..len).map(|at| (at as u64 ^ n) as u8));
    value
}

/// The number of a value, all bytes of which must match.
fn whole(key: &str, found: &[u8]) -> u64 {
    let head = found.split(|byte| *byte == b';').next().unwrap_or_default();
    let head = String::from_utf8(head.to_vec()).expect("a head");
    let n = head.strip_prefix(&format!("{key}=")).unwrap_or_else(|| panic!("{key}: {head}"));
    let n = n.parse().unwrap_or_else(|_| panic!("{key}: {head}"));
    assert!(value(key, n) == found, "a torn value of {key}");
    n
}

fn put(cache: &mut Cache, client: &Client, key: &str, n: u64) {
    let always = (Condition::Always, (0, &[][..]));
    assert!(cache.set(client, key.as_bytes(), (0, &value(key, n)), LIFE, always).unwrap());
}

fn get(cache: &mut Cache, client: &Client, key: &str) -> Option<u64> {
    match cache.get(client, key.as_bytes()).unwrap() {
        Look::Fresh(0) => Some(whole(key, cache.value())),
        Look::Missing => None,
        other => panic!("{other:?}"),
    }
}

fn disturb(cache: &mut Cache, client: &Client, random: &mut fastrand::Rng) {
    let key = format!("common {}", random.u64(0..20));
    match random.u8(0..100) {
        0 => cache.clear(client).unwrap(),
        1..10 => drop(cache.delete(client, key.as_bytes()).unwrap()),
        10..50 => put(cache, client, &key, random.u64(0..1000)),
        _ => drop(get(cache, client, &key)),
    }
}

/// A process gets the last value of a key or none, never another value.
pub(crate) fn give_what_was_put_in() {
    let shared = Shared::create(1 << 20).unwrap();
    let operations = number("SAMOVAR_SHARED_OPERATIONS", 20_000);
    let kills = number("SAMOVAR_SHARED_KILLS", 300);
    let seed = seed();
    let life = |process: u64, client: &Client| {
        let mut random = fastrand::Rng::with_seed(seed ^ process);
        let (mut cache, mut model, mut hits) = (open(client), HashMap::new(), 0);
        for n in 0..operations {
            disturb(&mut cache, client, &mut random);
            let key = format!("{process}/{}", random.u64(0..30));
            if random.bool() {
                put(&mut cache, client, &key, n);
                model.insert(key, n);
            } else if let Some(found) = get(&mut cache, client, &key) {
                assert_eq!(Some(&found), model.get(&key), "an older value of {key}");
                hits += 1;
            }
        }
        assert!(hits > operations / 50, "{hits} hits of {operations}");
    };
    let lives: Vec<_> =
        (0..PROCESSES).map(|process| child(&shared, move |client| life(process, client))).collect();
    let mut random = fastrand::Rng::with_seed(seed);
    for victim in 0..kills {
        let pid = child(&shared, |client| {
            let mut random = fastrand::Rng::with_seed(seed ^ victim);
            let mut cache = open(client);
            loop {
                disturb(&mut cache, client, &mut random);
            }
        });
        let until = Instant::now() + Duration::from_micros(random.u64(0..4000));
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        kill(pid);
    }
    assert!(lives.into_iter().all(ended_well));
    let client = client(&shared);
    let mut cache = open(&client);
    put(&mut cache, &client, "last", 7);
    assert_eq!(get(&mut cache, &client, "last"), Some(7));
}

/// There is one maker at a time, and no process waits for a dead one.
pub(crate) fn have_one_maker() {
    let shared = Shared::create(1 << 20).unwrap();
    let kills = number("SAMOVAR_SHARED_KILLS", 300) / 3;
    let mut random = fastrand::Rng::with_seed(seed());
    // The process that makes a value, and the number of values made.
    let making = Scratch::new(2);
    let live = |client: &Client| {
        let cache = open(client);
        let me = u64::from(std::process::id());
        loop {
            match cache.begin_making(client, b"page").unwrap() {
                FlightRole::Mine => {
                    let before = making[0].swap(me, Ordering::SeqCst);
                    assert!(before == 0 || is_over(before), "{before} and {me} at once");
                    assert_eq!(
                        cache.begin_making(client, b"page").unwrap(),
                        FlightRole::Unknown,
                        "a maker does not wait for itself"
                    );
                    making[1].fetch_add(1, Ordering::SeqCst);
                    making[0].store(0, Ordering::SeqCst);
                    cache.end_making(client, cache.hash(client, b"page"));
                }
                FlightRole::Others => {
                    assert!(cache.wait(client, b"page", LONG).unwrap());
                }
                FlightRole::Unknown => panic!("nobody else makes anything"),
            }
        }
    };
    let mut alive: Vec<i32> = (0..4).map(|_| child(&shared, live)).collect();
    for _ in 0..kills {
        let (before, since) = (making[1].load(Ordering::SeqCst), Instant::now());
        while making[1].load(Ordering::SeqCst) < before + 2 {
            assert!(since.elapsed() < LONG, "all wait for a dead maker");
            std::hint::spin_loop();
        }
        kill(alive.swap_remove(random.usize(0..alive.len())));
        alive.push(child(&shared, live));
    }
    alive.into_iter().for_each(kill);
}

/// Values that are read stay longest, values that are too large are rejected, and expired values
/// are not found.
pub(crate) fn keep_to_their_room() {
    let shared = Shared::create(1 << 20).unwrap();
    let client = client(&shared);
    let mut cache = open(&client);
    let always = (Condition::Always, (0, &[][..]));
    let mut found = 0;
    put(&mut cache, &client, "liked", 1);
    for n in 0..5000 {
        put(&mut cache, &client, &format!("fleeting {n}"), n);
        found += u64::from(get(&mut cache, &client, "liked") == Some(1));
    }
    assert!(found > 4900, "what is read again and again stays: {found}");
    let kept = (0..5000).filter(|n| get(&mut cache, &client, &format!("fleeting {n}")).is_some());
    assert!((50..400).contains(&kept.count()), "as many stay as there is room for");
    let huge = vec![1; cache.item_bytes_max() + 1];
    assert!(!cache.set(&client, b"liked", (0, &huge), LIFE, always).unwrap());
    assert_eq!(
        cache.get(&client, b"liked").unwrap(),
        Look::Missing,
        "an old value is worse than none"
    );
    let largest = &huge[..cache.item_bytes_max() - 5];
    assert!(cache.set(&client, b"large", (3, largest), LIFE, always).unwrap());
    assert_eq!(cache.get(&client, b"large").unwrap(), Look::Fresh(3));
    assert_eq!(cache.value(), largest);
    // Times.
    let short = |fresh: u64, stale: u64| Life {
        fresh: Duration::from_nanos(fresh),
        stale: Duration::from_secs(stale),
    };
    assert!(cache.set(&client, b"a", (0, b"1"), short(1, 0), always).unwrap());
    assert_eq!(cache.get(&client, b"a").unwrap(), Look::Missing);
    assert!(cache.set(&client, b"a", (0, b"1"), short(1, 60), always).unwrap());
    assert_eq!(cache.get(&client, b"a").unwrap(), Look::Stale(0));
    // Conditions.
    let absent = (Condition::Absent, (0, &[][..]));
    assert!(cache.set(&client, b"a", (0, b"2"), LIFE, absent).unwrap(), "what has ended is absent");
    assert!(!cache.set(&client, b"a", (0, b"3"), LIFE, absent).unwrap());
    assert!(!cache.set(&client, b"a", (0, b"3"), LIFE, (Condition::Equals, (1, b"2"))).unwrap());
    assert!(cache.set(&client, b"a", (0, b"3"), LIFE, (Condition::Equals, (0, b"2"))).unwrap());
    assert_eq!(cache.add(&client, b"n", (1, 5), LIFE).unwrap(), Some(5));
    assert_eq!(cache.add(&client, b"n", (1, -7), LIFE).unwrap(), Some(-2));
    assert_eq!(cache.add(&client, b"a", (1, 1), LIFE).unwrap(), None, "it is no integer");
    assert!(cache.delete(&client, b"a").unwrap() && !cache.delete(&client, b"a").unwrap());
    cache.clear(&client).unwrap();
    assert_eq!(cache.get(&client, b"n").unwrap(), Look::Missing);
}
