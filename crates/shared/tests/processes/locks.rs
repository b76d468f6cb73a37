use crate::children::{Scratch, child, client, ended_well, is_over, kill, number, seed};
use samovar_shared::{Acquired, Client, NamedLock, RateLimiter, Shared};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Limits only how long a broken test hangs.
const LONG: Duration = Duration::from_mins(2);

/// There is one holder at a time, and no waiter is forgotten. A process that dies with the lock
/// leaves it to the next.
pub(crate) fn have_one_holder() {
    let shared = Shared::create(1 << 20).unwrap();
    let kills = number("SAMOVAR_SHARED_KILLS", 300);
    let mut random = fastrand::Rng::with_seed(seed());
    // The process inside (its id), and the number of times that a process was inside.
    let inside = Scratch::new(2);
    let live = |client: &Client| {
        let lock = NamedLock::open(client, b"one").unwrap();
        let me = u64::from(std::process::id());
        loop {
            assert_eq!(lock.acquire(client, LONG), Acquired::Yes);
            assert_eq!(lock.acquire(client, LONG), Acquired::Already);
            let before = inside[0].swap(me, Ordering::SeqCst);
            // A dead process may have left its id; a live one has removed it.
            assert!(before == 0 || is_over(before), "{before} and {me} at once");
            inside[1].fetch_add(1, Ordering::SeqCst);
            inside[0].store(0, Ordering::SeqCst);
            assert!(lock.release(client));
        }
    };
    let mut alive: Vec<i32> = (0..4).map(|_| child(&shared, live)).collect();
    for _ in 0..kills {
        // Other processes continue after each death.
        let (before, since) = (inside[1].load(Ordering::SeqCst), Instant::now());
        while inside[1].load(Ordering::SeqCst) < before + 2 {
            assert!(since.elapsed() < LONG, "all wait for a dead process");
            std::hint::spin_loop();
        }
        kill(alive.swap_remove(random.usize(0..alive.len())));
        alive.push(child(&shared, live));
    }
    alive.into_iter().for_each(kill);
    let client = client(&shared);
    let lock = NamedLock::open(&client, b"one").unwrap();
    assert!(!lock.release(&client), "it is not ours");
    assert_eq!(lock.acquire(&client, Duration::ZERO), Acquired::Yes);
    let waits = child(&shared, |client| {
        let lock = NamedLock::open(client, b"one").unwrap();
        assert_eq!(lock.acquire(client, Duration::from_millis(30)), Acquired::No);
        assert!(!lock.release(client));
    });
    assert!(ended_well(waits));
    assert!(lock.is_mine(&client) && lock.release(&client) && !lock.is_mine(&client));
}

/// Eight processes take no more tokens from a bucket than it has, even if processes are killed.
pub(crate) fn limit() {
    let shared = Shared::create(4 << 20).unwrap();
    let allowed = Scratch::new(2);
    let open = |client: &Client| RateLimiter::open(client, b"few", 1.0, 1000, 64).unwrap();
    let since = Instant::now();
    let take = |client: &Client, key: &[u8]| open(client).take(client, key, 1).unwrap() == 0;
    let mut alive: Vec<i32> = (0..8)
        .map(|_| {
            child(&shared, |client| {
                for round in 0_u64.. {
                    allowed[0].fetch_add(1, Ordering::SeqCst);
                    let got = take(client, b"common");
                    allowed[1].fetch_add(u64::from(got), Ordering::SeqCst);
                    // Other keys come and go in the meantime; there is room for few of them.
                    take(client, format!("other {}", round % 30).as_bytes());
                }
            })
        })
        .collect();
    while allowed[0].load(Ordering::SeqCst) < 20_000 {
        kill(alive.swap_remove(0));
        alive.push(child(&shared, |client| {
            for round in 0_u64.. {
                allowed[0].fetch_add(1, Ordering::SeqCst);
                take(client, format!("other {}", round % 30).as_bytes());
            }
        }));
        std::hint::spin_loop();
    }
    alive.into_iter().for_each(kill);
    let got = allowed[1].load(Ordering::SeqCst);
    // One token is added each second.
    let most = 1000 + since.elapsed().as_secs() + 1;
    assert!(got <= most, "{got} of {most}");
    let client = client(&shared);
    let limiter = open(&client);
    assert_eq!(limiter.left(&client, b"nobody").unwrap(), 1000);
    assert!(limiter.look(&client, b"nobody", 1000).unwrap() == 0);
    // More keys than rows: the limiter forgets some keys and rejects none.
    for key in 0..1000 {
        assert_eq!(limiter.take(&client, format!("key {key}").as_bytes(), 1).unwrap(), 0);
    }
}
