//! Many processes on one memory: compares the results of each with a model, and checks the state
//! that killed processes leave.
//!
//! `SAMOVAR_SHARED_OPERATIONS` (per process) and `SAMOVAR_SHARED_KILLS` make it longer;
//! `SAMOVAR_SHARED_SEED` repeats a run.
#![allow(unsafe_code)] // fork, kill and memory of the test's own.
#![allow(clippy::unwrap_used, missing_docs)]

#[cfg(not(loom))]
#[path = "processes/caches.rs"]
mod caches;
#[cfg(not(loom))]
#[path = "processes/children.rs"]
mod children;
#[cfg(not(loom))]
#[path = "processes/counters.rs"]
mod counters;
#[cfg(not(loom))]
#[path = "processes/locks.rs"]
mod locks;
#[cfg(not(loom))]
#[path = "processes/tables.rs"]
mod tables;

#[cfg(loom)]
fn main() {}

#[cfg(not(loom))]
fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let tests: [(&str, fn()); 9] = [
        ("tables_agree_with_their_models", tables::agree_with_their_models),
        ("tables_survive_kills", tables::survive_kills),
        ("tables_full_and_foreign", tables::are_full_and_foreign),
        ("counters_count", counters::count),
        ("caches_give_what_was_put_in", caches::give_what_was_put_in),
        ("caches_have_one_maker", caches::have_one_maker),
        ("caches_keep_to_their_room", caches::keep_to_their_room),
        ("locks_have_one_holder", locks::have_one_holder),
        ("limiters_limit", locks::limit),
    ];
    for (name, test) in tests {
        if wanted.is_empty() || wanted.iter().any(|word| name.contains(word.as_str())) {
            println!("test {name} ...");
            test();
            println!("test {name} ... ok");
        }
    }
}
