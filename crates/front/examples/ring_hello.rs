//! Front and ring without PHP: a hello world whose workers are threads of this process.
//!
//! The difference to `bare_hello` is the cost of front and ring.
//!
//! `cargo run --release -p samovar-front --example ring_hello [ADDR] [WORKERS] [CERTIFICATE.pem]`

use samovar_config::{Settings, Sources, names};
use samovar_front::{Bound, Front, Tls};
use samovar_ring::{Incarnation, Lane, Ring, Take, Usage, WorkerEnd};

const HEAD: &[u8] = b"Content-type: text/html; charset=UTF-8\n";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:0".to_owned());
    let workers = arguments.next().map_or(Ok(2), |n| n.parse())?;
    let root = tempfile::tempdir()?;
    std::fs::write(root.path().join("index.php"), "<?php")?;
    let ring = Ring::create(1024)?;
    for index in 0..workers {
        let ring = ring.clone();
        std::thread::spawn(move || work(ring, index));
    }
    let mut sources = Sources::new(root.path());
    let mut listen = address;
    if let Some(certificate) = arguments.next() {
        listen.insert_str(0, "https://");
        sources = sources.flag(names::by_flag("tls-certificates"), certificate);
    }
    let folder = root.path().to_string_lossy();
    sources = sources.flag(names::by_flag("listen"), listen).flag(names::by_flag("root"), folder);
    let settings: Settings = sources.resolve()?;
    let listener = Bound::open(&settings.listen[0], settings.listen_backlog, None)?;
    eprintln!("listening on {listener}");
    let tls = Tls::load(&settings)?;
    let (front, _handle) = Front::new(vec![listener], tls, ring, settings, Box::new(|_| {}), None)?;
    Ok(front.run()?)
}

fn work(ring: Ring, index: usize) {
    let life = Incarnation::new(index as u32 + 1).expect("few workers");
    let mut worker = WorkerEnd::new(ring, index, life);
    while let Take::Request(slot, _) = worker.take(&[Lane::App, Lane::Script], || true) {
        if worker.put_head(slot, 200, HEAD) {
            let _ = worker.write_body(slot, b"Hello, World!");
        }
        // The time PHP takes for it. The pace of the workers determines how many are woken.
        worker.finish(slot, &Usage { run_ns: 1_000, ..Usage::default() });
    }
}
