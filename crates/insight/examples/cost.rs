//! Benchmark of the aggregation: batches in, ns per request out (`cargo run --release -p
//! samovar-insight --example cost`).

use samovar_insight::{Aggregate, Batch, Finished, Limits, Marks, Model, Numbers};
use std::time::Instant;

const ROUNDS: u32 = 5;
const BATCHES: u64 = 4_000;
const BATCH: u64 = 256;
const SLOW_NS: u64 = 1_000_000_000;

fn main() {
    let mut batches = [Batch::default(), Batch::default(), Batch::default(), Batch::default()];
    for n in 0..BATCH {
        let numbers = Numbers {
            status: 200,
            worker: 77,
            model: Model::Resident,
            wall_ns: 300_000 + n * 977,
            queue_ns: 90_000 + n * 331,
            run_ns: 9_000,
            cpu_ns: 4_000 + n * 13,
            ..Numbers::default()
        };
        let id = "0123456789abcdef0123456789abcdef";
        let finished = Finished { numbers, method: "GET", path: "/", ..Finished::default() };
        let finished = Finished { script: "/index.php", id, ..finished };
        batches[0].put(&finished);
        batches[1].pack(&finished, Marks::default());
        let path = format!("/users/{n}/page");
        let other = Finished { path: &path, ..finished };
        batches[2].put(&other);
        batches[3].pack(&other, Marks { texts: n, id: 0 });
    }
    let ways = ["whole", "packed", "whole, one path per request", "packed, one path per request"];
    for (how, batch) in ways.iter().zip(&batches) {
        let mut figures = Aggregate::new(Limits { routes_max: 1_000, slow_ns: SLOW_NS });
        for round in 1..=ROUNDS {
            let begin = Instant::now();
            for n in 0..BATCHES {
                figures.take(batch, 1_000_000 + n / 500);
            }
            let ns = begin.elapsed().as_nanos() / u128::from(BATCHES * BATCH);
            println!("{how}, round {round}: {ns} ns per request");
        }
        println!("{} requests aggregated", figures.total().requests);
    }
}
