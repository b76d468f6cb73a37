use crate::children::{Scratch, child, client, ended_well, kill, number, seed};
use samovar_shared::{
    Client, ColumnKind, OpenError, Shared, Table, TableError, TableOpenError, Value,
};
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const COLUMNS: [(&str, ColumnKind); 4] = [
    ("n", ColumnKind::Int),
    ("twice", ColumnKind::Int),
    ("half", ColumnKind::Float),
    ("text", ColumnKind::Text(40)),
];
const PROCESSES: u64 = 8;
/// Few, so that the processes compete for them.
const COMMON_KEYS: u64 = 5;
const OWN_KEYS: u64 = 40;
const ROWS: usize = (PROCESSES * OWN_KEYS + COMMON_KEYS) as usize;

fn open(client: &Client) -> Table {
    Table::open(client, b"things", ROWS, 24, &COLUMNS).unwrap()
}

/// Writes a row whose columns all derive from the same number, so that a torn row shows.
fn put(table: &mut Table, client: &Client, key: &[u8], n: i64) {
    let text = "x".repeat(n.unsigned_abs() as usize % 40) + &(n % 10).to_string();
    let text = &text[text.len() - text.len().min(40)..];
    let values = [
        (0, Value::Int(n)),
        (1, Value::Int(2 * n)),
        (2, Value::Float(half(n))),
        (3, Value::Text(text.as_bytes())),
    ];
    table.set(client, key, &values).unwrap();
}

/// Half of a number that a float represents exactly.
#[allow(clippy::cast_precision_loss)]
fn half(n: i64) -> f64 {
    n as f64 / 2.0
}

/// The number that all columns of the row derive from.
fn whole(row: &[u64]) -> i64 {
    let n = row[0].cast_signed();
    assert_eq!(row[1].cast_signed(), 2 * n, "a torn row: {row:?}");
    assert!((f64::from_bits(row[2]) - half(n)).abs() < f64::EPSILON, "a torn row: {row:?}");
    assert_eq!(row[3], (n % 40 + 1).min(40).cast_unsigned(), "a torn row: {row:?}");
    n
}

fn common_key(random: &mut fastrand::Rng) -> [u8; 8] {
    *format!("common-{}", random.u64(0..COMMON_KEYS)).as_bytes().first_chunk().unwrap()
}

/// One operation on keys that all processes share.
fn disturb(table: &mut Table, client: &Client, random: &mut fastrand::Rng) {
    let key = common_key(random);
    match random.u8(0..4) {
        0 => drop(table.delete(client, &key).unwrap()),
        1 if table.get(client, &key).unwrap() => drop(whole(table.row())),
        _ => put(table, client, &key, random.i64(0..1000)),
    }
}

/// One operation on this process's own keys, which the model tracks completely.
fn compare(
    table: &mut Table,
    client: &Client,
    random: &mut fastrand::Rng,
    model: &mut HashMap<u64, i64>,
    process: u64,
) {
    let own = random.u64(0..OWN_KEYS);
    let key = format!("{process}/{own}");
    let key = key.as_bytes();
    let n = random.i64(0..1000);
    match random.u8(0..5) {
        0 => assert_eq!(table.delete(client, key).unwrap(), model.remove(&own).is_some()),
        1 => {
            put(table, client, key, n);
            model.insert(own, n);
        }
        2 if model.contains_key(&own) => {
            table.add(client, key, 0, Value::Int(n)).unwrap();
            let sum = table.row()[0].cast_signed();
            assert_eq!(sum, model[&own] + n);
            put(table, client, key, sum % 1000);
            model.insert(own, sum % 1000);
        }
        3 => {
            let expected = model.get(&own).copied().unwrap_or(n);
            let (before, after) = (Value::Int(expected), Value::Int(expected));
            let done = table.compare_and_set(client, key, 0, before, after).unwrap();
            assert_eq!(done, model.contains_key(&own));
            let (before, after) = (Value::Int(-1), Value::Int(7));
            assert!(!table.compare_and_set(client, key, 0, before, after).unwrap());
        }
        _ => {
            let found = table.get(client, key).unwrap().then(|| whole(table.row()));
            assert_eq!(found, model.get(&own).copied(), "{process}/{own}");
        }
    }
}

/// All rows of the table whose key has that prefix. Each key must occur once, and no row may be
/// torn.
fn below(prefix: &str, table: &mut Table, client: &Client) -> HashMap<String, i64> {
    let (mut found, mut cursor) = (HashMap::new(), 0);
    while let Some(at) = table.next(client, cursor).unwrap() {
        cursor = at + 1;
        let key = String::from_utf8(table.key().to_vec()).unwrap();
        if key.starts_with(prefix) {
            assert_eq!(found.insert(key, whole(table.row())), None, "a key twice");
        } else if key.starts_with("common") {
            whole(table.row());
        }
    }
    found
}

pub(crate) fn agree_with_their_models() {
    let shared = Shared::create(8 << 20).unwrap();
    let operations = number("SAMOVAR_SHARED_OPERATIONS", 20_000);
    let seed = seed();
    let lives = (0..PROCESSES).map(|process| {
        child(&shared, move |client| {
            let mut random = fastrand::Rng::with_seed(seed ^ process);
            let (mut table, mut model) = (open(client), HashMap::new());
            for _ in 0..operations {
                disturb(&mut table, client, &mut random);
                compare(&mut table, client, &mut random, &mut model, process);
            }
            let found = below(&format!("{process}/"), &mut table, client);
            let expected = model.iter().map(|(own, n)| (format!("{process}/{own}"), *n));
            assert_eq!(found, expected.collect::<HashMap<_, _>>());
        })
    });
    let lives: Vec<_> = lives.collect();
    assert!(lives.into_iter().all(ended_well));
    let client = client(&shared);
    nothing_is_lost(&mut open(&client), &client);
}

/// Count, walk and lookup must agree, and the remaining rows must be usable.
fn nothing_is_lost(table: &mut Table, client: &Client) {
    let all = below("", table, client);
    assert_eq!(table.count(client), all.len());
    for (key, n) in &all {
        assert!(table.get(client, key.as_bytes()).unwrap());
        assert_eq!(whole(table.row()), *n);
    }
    for extra in all.len()..ROWS {
        put(table, client, format!("extra-{extra}").as_bytes(), 1);
    }
    let full = table.set(client, b"one more", &[]);
    assert!(matches!(full, Err(TableError::Full { rows: ROWS, .. })), "{full:?}");
    assert_eq!(below("", table, client).len(), ROWS);
}

/// Processes are killed at any instruction: rows stay consistent, locks are freed, and no row is
/// lost.
pub(crate) fn survive_kills() {
    let shared = Shared::create(8 << 20).unwrap();
    let kills = number("SAMOVAR_SHARED_KILLS", 300);
    let mut random = fastrand::Rng::with_seed(seed());
    // Of all processes: the additions that were begun, and those known to be done.
    let sums = Scratch::new(2);
    let start = |random: &mut fastrand::Rng| {
        let seed = random.u64(..);
        child(&shared, |client| {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut table = open(client);
            loop {
                disturb(&mut table, client, &mut random);
                sums[0].fetch_add(1, Ordering::SeqCst);
                table.add(client, b"sum", 1, Value::Int(2)).unwrap();
                sums[1].fetch_add(1, Ordering::SeqCst);
            }
        })
    };
    let mut alive: Vec<i32> = (0..4).map(|_| start(&mut random)).collect();
    for _ in 0..kills {
        // Spins instead of sleeping, so that a death can follow any step.
        let until = Instant::now() + Duration::from_micros(random.u64(0..3000));
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        let at = random.usize(0..alive.len());
        kill(alive.swap_remove(at));
        alive.push(start(&mut random));
    }
    alive.into_iter().for_each(kill);
    let client = client(&shared);
    let mut table = open(&client);
    assert!(table.get(&client, b"sum").unwrap());
    let sum = table.row()[1] / 2;
    let (begun, known) = (sums[0].load(Ordering::SeqCst), sums[1].load(Ordering::SeqCst));
    assert!((known..=begun).contains(&sum), "{known} ≤ {sum} ≤ {begun}");
    assert!(table.delete(&client, b"sum").unwrap());
    nothing_is_lost(&mut table, &client);
}

/// Rejected operations and their errors.
pub(crate) fn are_full_and_foreign() {
    let shared = Shared::create(1 << 20).unwrap();
    let client = client(&shared);
    let columns = [("n", ColumnKind::Int), ("t", ColumnKind::Text(4))];
    let open = |rows| Table::open(&client, b"small", rows, 8, &columns);
    let mut table = open(2).unwrap();
    assert_eq!(open(2).unwrap().object(), table.object());
    let other = open(3).unwrap_err().to_string();
    assert!(other.contains("rows=2 key=8") && other.contains("rows=3 key=8"), "{other}");
    let large = Table::open(&client, b"large", 1 << 20, 8, &columns);
    assert!(matches!(large, Err(TableOpenError::Open(OpenError::Memory { .. }))), "{large:?}");
    table.set(&client, b"a", &[(1, Value::Text(b"1234"))]).unwrap();
    let long = table.set(&client, b"a", &[(1, Value::Text(b"12345"))]);
    assert!(matches!(long, Err(TableError::Text { max: 4, found: 5, .. })), "{long:?}");
    assert!(matches!(table.get(&client, b""), Err(TableError::Key { found: 0, .. })));
    assert!(matches!(table.get(&client, b"123456789"), Err(TableError::Key { found: 9, .. })));
    let wrong = table.set(&client, b"a", &[(0, Value::Text(b""))]);
    assert!(matches!(wrong, Err(TableError::Type { .. })), "{wrong:?}");
    table.add(&client, b"a", 0, Value::Int(i64::MAX)).unwrap();
    let over = table.add(&client, b"a", 0, Value::Int(1));
    assert_eq!(over, Err(TableError::Overflow("n".into())));
    assert!(table.get(&client, b"a").unwrap());
    assert_eq!(table.row()[0].cast_signed(), i64::MAX);
    // A later generation may use other columns; the former table does not prevent that.
    let next = samovar_shared::Client::new(shared.clone(), 2);
    next.begin().unwrap();
    let changed = Table::open(&next, b"small", 5, 8, &columns).unwrap();
    assert_ne!(changed.object(), table.object());
    assert_eq!(changed.count(&next), 0);
    assert_eq!(open(2).unwrap().object(), table.object());
}
