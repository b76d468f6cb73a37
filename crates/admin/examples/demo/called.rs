//! Call graphs and boot cost of the demo's shop.

use rustix::fs::{MemfdFlags, SealFlags};
use samovar_channel::{GraphEnd, GraphNote, pair};
use samovar_profile::calls::{Calls, CallsOptions};
use samovar_profile::loads::Explained;
use serde_json::json;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Number of traced requests.
const TRACED: u64 = 40;
/// Functions of one traced request: (name, file, calls, µs with callees, µs without, CPU µs
/// without, KB).
const FUNCTIONS: [(&str, &str, u64, u64, u64, u64, i64); 7] = [
    ("(request)", "", 1, 9_000, 300, 200, 900),
    ("Kernel::handle", "/srv/shop/src/Kernel.php", 1, 8_700, 200, 180, 880),
    ("Shop::show", "/srv/shop/src/Shop.php", 1, 7_900, 400, 380, 700),
    ("PDOStatement::execute", "", 12, 3_600, 3_600, 240, 90),
    ("Prices::discounts", "/srv/shop/src/Prices.php", 4, 2_100, 2_100, 2_050, 30),
    ("Twig::render", "/srv/shop/src/Twig.php", 2, 1_800, 1_500, 1_450, 400),
    ("Twig::escape", "/srv/shop/src/Twig.php", 310, 300, 300, 290, 12),
];
/// Calls between these functions: (caller, callee), as indexes.
const EDGES: [(usize, usize); 6] = [(0, 1), (1, 2), (2, 3), (2, 4), (2, 5), (5, 6)];

/// Returns a graph in the format that workers write.
fn graph(n: u64) -> String {
    let mut text = "samovar-graph \
                    1\nq\tid\tGET\t/p/1042\t/index.php\tshop_show\nc\t40\t42\nc\t36\t40\nr\t0\t0\t0\t0\n".to_owned();
    // Requests differ in their duration.
    let us = |of: u64| of * (900 + n % 20 * 10);
    for (name, file, calls, all, own, cpu, kb) in FUNCTIONS {
        let kind = u8::from(name.starts_with("PDO"));
        let (all, own, cpu, bytes) = (us(all), us(own), us(cpu), kb * 1_024);
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "f\t{kind}\t{calls}\t{all}\t{own}\t{cpu}\t{cpu}\t{bytes}\t{bytes}\t12\t{file}\t{name}"
        );
    }
    for (caller, callee) in EDGES {
        let (_, _, calls, all, _, cpu, kb) = FUNCTIONS[callee];
        let _ = writeln!(
            text,
            "e\t{caller}\t{callee}\t{calls}\t{}\t{}\t{}",
            us(all),
            us(cpu),
            kb * 1_024
        );
    }
    text.push_str("m\t8192\t0\na\t0\t0\t0\t0\n");
    let mut stacks = vec![0; FUNCTIONS.len()];
    // Each function is the callee of one other; its stack is that of its caller and itself.
    for (number, (caller, callee)) in (1..).zip(EDGES) {
        let bytes = FUNCTIONS[callee].6 * 1_024 * 3;
        let _ = writeln!(text, "a\t{}\t{callee}\t{bytes}\t{}", stacks[caller], bytes / 96);
        stacks[callee] = number;
    }
    text + "end\n"
}

fn send(to: &GraphEnd, text: &str) {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let mut file = File::from(rustix::fs::memfd_create("graph", flags).expect("memory"));
    file.write_all(text.as_bytes()).expect("memory");
    let seals = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
    rustix::fs::fcntl_add_seals(&file, seals).expect("a memory file");
    let note = GraphNote { bytes: text.len() as u64 };
    let begin = Instant::now();
    // The socket holds only a few messages.
    while to.send_now(&note, Some(file.as_fd())).is_err() {
        assert!(begin.elapsed() < Duration::from_secs(30), "no reader takes the graphs");
        std::thread::yield_now();
    }
}

pub(crate) fn calls() -> Arc<Calls> {
    let (ours, graphs): (GraphEnd, GraphEnd) = pair().expect("a socket");
    let trouble = Box::new(|trouble: &str| panic!("{trouble}"));
    let handover_gate = samovar_insight::HandoverGate::now();
    let options = CallsOptions {
        graphs: vec![(String::new(), graphs)],
        path: None,
        bytes_max: 1 << 20,
        trouble,
        handover_gate,
    };
    let calls = Calls::start(options).expect("a thread");
    for n in 0..TRACED {
        send(&ours, &graph(n));
    }
    let begin = Instant::now();
    while calls.report().graphs < TRACED {
        assert!(begin.elapsed() < Duration::from_secs(30), "the graphs are read");
        std::thread::yield_now();
    }
    // A receiver slows down when its socket is closed, so this end stays open.
    std::mem::forget(ours);
    Arc::new(calls)
}

pub(crate) fn boot() -> Explained {
    let cost =
        |us: i64, kb: i64| json!({"wall_ns": us * 1_000, "cpu_ns": us * 900, "bytes": kb * 1_024});
    let part = |name: &str, count: u64, us: i64, kb: i64| {
        json!({
            "name": name, "count": count, "cost": cost(us, kb),
        })
    };
    let folder = |name: &str, files: u64, us: i64, kb: i64| {
        json!({
            "folder": name, "files": files, "cost": cost(us, kb),
        })
    };
    let file = |name: &str, class: &str, own: i64, total: i64, kb: i64, cold: i64| {
        json!({"file": name, "loads": 1, "class": class, "place": "/srv/shop/public/index.php:9",
            "own": cost(own, kb), "total": cost(total, kb * 2), "compiling": cost(4, 1),
            "cold_ns": cold * 1_000})
    };
    let lazy = |name: &str, class: &str, requests: u64, us: i64, path: &str| {
        json!({"file": name, "class": class, "requests": requests, "loads": requests,
            "compiled": 1, "is_once": true, "cost": cost(us * requests.cast_signed(), 4),
            "path": path})
    };
    let container = "/srv/shop/var/cache/prod/ContainerQx7/App_KernelProdContainer.php";
    let explained = json!({
        "boot": {
            "at_s": samovar_insight::now(), "all": cost(184_200, 9_400), "files_all": 642,
            "rehearsal": {
                "all": cost(1_912_000, 21_000), "compiled": 642,
                "compiling": cost(1_310_000, 9_000),
            },
            "parts": [
                part("files from opcache", 642, 9_100, 1_900),
                part("the files' own code", 642, 121_300, 6_100),
                part("autoloaders", 590, 6_400, 40), part("warm-up requests", 2, 41_900, 1_300),
                part("preflight", 1, 2_200, 4), part("the rest", 1, 3_300, 56),
            ],
            "folders": [
                folder("/srv/shop/var/cache/prod/ContainerQx7", 61, 48_000, 2_900),
                folder("/srv/shop/vendor/doctrine/orm", 118, 21_000, 1_200),
                folder("/srv/shop/vendor/symfony/http-kernel", 52, 9_900, 610),
                folder("/srv/shop/src", 71, 8_100, 300),
            ],
            "files": [
                file(container, "ContainerQx7\\App_KernelProdContainer",
                    31_000, 44_000, 2_400, 12_400),
                file("/srv/shop/config/countries.php", "", 18_200, 18_200, 1_900, 3_100),
                file("/srv/shop/vendor/doctrine/orm/src/EntityManager.php",
                    "Doctrine\\ORM\\EntityManager", 210, 8_100, 20, 2_050),
            ],
            "warmup": ["/"],
        },
        "lazy": {
            "requests": 480, "loading": 171, "classes": 1_204, "cost": cost(171_000, 900),
            "files": [
                lazy("/srv/shop/src/Cart/Cart.php", "App\\Cart\\Cart", 96, 640, "/cart"),
                lazy("/srv/shop/vendor/twig/intl/src/Extra.php", "Twig\\Intl\\Extra",
                    75, 410, "/c/kettles"),
            ],
            "advice": {
                "setting": "warmup = [\"/\", \"/cart\", \"/c/kettles\"]",
                "classes": "Samovar\\warmup(fn () => array_map('class_exists', \
                            [\\App\\Cart\\Cart::class, \\Twig\\Intl\\Extra::class]));",
            },
        },
    });
    serde_json::from_value(explained).expect("the expected form")
}
