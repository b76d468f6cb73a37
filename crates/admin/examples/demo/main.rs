//! Runs the dashboard over invented figures: `cargo run -p samovar-admin --example demo [ADDRESS]`.
//!
//! The program first invents a day of a small shop, then adds a few requests each second until it
//! is stopped.

mod called;
mod invented;

use samovar_admin::{Access, Admin};
use std::net::TcpListener;
use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:9090".to_owned());
    let listener = TcpListener::bind(&address)?;
    let folder = tempfile::tempdir()?;
    println!("generating one day of data …");
    let shop = invented::Shop::open(&folder.path().join("history.sqlite"), invented::MINUTES)?;
    let host = Box::new(invented::Server);
    let _admin = Admin::start(vec![listener], Access::default(), host, Some(shop.insight()))?;
    println!("http://{address}/");
    loop {
        shop.second(samovar_insight::now());
        std::thread::sleep(Duration::from_secs(1));
    }
}
