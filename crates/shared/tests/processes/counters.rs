use crate::children::{child, client, ended_well, number};
use samovar_shared::{Counter, Shared};

/// The counter contains everything that eight processes add.
pub(crate) fn count() {
    let shared = Shared::create(1 << 20).unwrap();
    let each = number("SAMOVAR_SHARED_OPERATIONS", 20_000);
    let children: Vec<_> = (0..8)
        .map(|_| {
            child(&shared, |client| {
                let counter = Counter::open(client, b"visits").unwrap();
                for _ in 0..each {
                    counter.add(client, 3);
                }
            })
        })
        .collect();
    assert!(children.into_iter().all(ended_well));
    let client = client(&shared);
    let counter = Counter::open(&client, b"visits").unwrap();
    assert_eq!(counter.get(&client), 8 * 3 * each.cast_signed());
    assert_eq!(counter.set(&client, i64::MAX), 8 * 3 * each.cast_signed());
    assert_eq!(counter.add(&client, 1), i64::MIN);
    assert!(!counter.compare_and_set(&client, 5, 6));
    assert!(counter.compare_and_set(&client, i64::MIN, 6));
    assert_eq!(Counter::open(&client, b"others").unwrap().get(&client), 0);
}
