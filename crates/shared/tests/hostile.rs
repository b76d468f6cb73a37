//! A worker may write any value anywhere into the shared memory. Processes that read it must
//! survive, and no operation of another process may panic or run forever. Its result may be
//! nonsense.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used)]

use samovar_shared::{
    Cache, Client, ColumnKind, Condition, Counter, Life, NamedLock, RateLimiter, Shared, Table,
    Value,
};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// Number of damaged memories; `SAMOVAR_SHARED_ROUNDS` overrides it.
const ROUNDS: u64 = 40;
const BYTES: u64 = 1 << 20;
const COLUMNS: [(&str, ColumnKind); 2] = [("n", ColumnKind::Int), ("t", ColumnKind::Text(20))];

/// Positions of the words in use. Words that are zero are skipped: they show nothing.
fn used_words(file: &File) -> Vec<u64> {
    let mut bytes = vec![0; file.metadata().unwrap().len() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    let words = bytes.chunks_exact(8).enumerate();
    words.filter(|(_, word)| word.iter().any(|byte| *byte != 0)).map(|(at, _)| at as u64).collect()
}

/// A number that is small, huge, one bit, or arbitrary.
fn nonsense(random: &mut fastrand::Rng) -> u64 {
    match random.u8(0..5) {
        0 => random.u64(0..256),
        1 => u64::MAX - random.u64(0..256),
        2 => 1 << random.u32(0..64),
        3 => random.u64(0..1 << 33) << random.u32(0..32),
        _ => random.u64(..),
    }
}

fn operate(client: &Client, random: &mut fastrand::Rng) {
    let key = format!("key {}", random.u8(0..20));
    let key = key.as_bytes();
    if let Ok(mut table) = Table::open(client, b"table", 30, 16, &COLUMNS) {
        let _ = table.set(client, key, &[(0, Value::Int(1)), (1, Value::Text(key))]);
        let _ = table.get(client, key);
        let _ = table.add(client, key, 0, Value::Int(2));
        let _ = table.compare_and_set(client, key, 1, Value::Text(b"a"), Value::Text(b"b"));
        let (mut cursor, mut rows) = (0, 0);
        while let Ok(Some(at)) = table.next(client, cursor) {
            (cursor, rows) = (at + 1, rows + 1);
        }
        assert!(rows <= 30 && table.count(client) <= 64);
        let _ = table.delete(client, key);
    }
    if let Ok(mut cache) = Cache::open(client, b"cache", 64 << 10) {
        let life = Life { fresh: Duration::from_secs(1), stale: Duration::ZERO };
        let value = vec![7; random.usize(0..1500)];
        for _ in 0..20 {
            let _ = cache.set(client, key, (0, &value), life, (Condition::Always, (0, &[])));
            let _ = cache.get(client, key);
            assert!(cache.value().len() <= 64 << 10);
        }
        let _ = cache.add(client, b"n", (1, 1), life);
        let _ = cache.begin_making(client, key);
        cache.end_making(client, cache.hash(client, key));
        let _ = cache.delete(client, key);
    }
    if let Ok(limiter) = RateLimiter::open(client, b"limiter", 10.0, 10, 8) {
        let _ = limiter.take(client, key, 1);
        let _ = limiter.left(client, key);
    }
    if let Ok(lock) = NamedLock::open(client, b"lock") {
        let _ = lock.acquire(client, Duration::ZERO);
        lock.release(client);
    }
    if let Ok(counter) = Counter::open(client, b"counter") {
        counter.add(client, 1);
    }
}

#[test]
fn operations_survive_garbage_in_memory() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let rounds = std::env::var("SAMOVAR_SHARED_ROUNDS").ok().and_then(|text| text.parse().ok());
    for _ in 0..rounds.unwrap_or(ROUNDS) {
        let shared = Shared::create(BYTES).unwrap();
        let file = File::from(shared.file().try_clone_to_owned().unwrap());
        let client = Client::new(shared.clone(), 1);
        client.begin().unwrap();
        (0..3).for_each(|_| operate(&client, &mut random));
        let words = used_words(&file);
        for _ in 0..random.u8(1..20) {
            let near = words[random.usize(0..words.len())] + random.u64(0..8);
            let at = (near * 8).min(file.metadata().unwrap().len() - 8);
            file.write_at(&nonsense(&mut random).to_ne_bytes(), at).unwrap();
            shared.figures();
            operate(&client, &mut random);
        }
        // A process that joins later finds the same memory.
        let late = Client::new(shared.clone(), 2);
        late.begin().unwrap();
        operate(&late, &mut random);
        assert!(shared.figures().objects.len() <= samovar_shared::OBJECTS_MAX);
    }
}
