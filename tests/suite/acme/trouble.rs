//! Failures around an authority: it does not respond, the clock runs ahead, the disk is full, the
//! server was started by root.

use super::*;
use samovar_testkit::http::Client;
use samovar_testkit::{is_root, may_mount};
use std::os::unix::fs::MetadataExt;

/// Debian's user for web servers.
const USER: &str = "www-data";
const UID: u32 = 33;

fn metrics(server: &Server) -> String {
    let admin = server.status()["admin"][0].as_str().and_then(|text| text.parse().ok());
    Client::connect(admin.expect("an address")).get("/metrics").text()
}

/// Value of the sample `name` for the test's domain.
fn sample(metrics: &str, name: &str) -> Option<f64> {
    let begin = format!("{name}{{domain=\"{NAME}\"}} ");
    metrics.lines().find_map(|line| line.strip_prefix(&begin)?.parse().ok())
}

#[test]
fn silent_authority_delays_neither_pages_nor_reload_nor_stop() {
    let bench = Bench::new();
    bench.authority.be(AuthorityBehaviour::Silent);
    let start = bench.start(NAME).args(["--admin", "127.0.0.1:0"]);
    let server = start.start();
    bench.shown(&server);
    server.wait_for_log("ordering a certificate for www.shop.example");
    assert_eq!(server.get("/").text(), "a page");
    server.reload().expect("it reloads while the authority is asked");
    assert_eq!(sample(&metrics(&server), "samovar_certificate_failures"), Some(0.0));
    // The authority closes the connection without a response.
    bench.authority.be(AuthorityBehaviour::Mad);
    eventually("a failure", || {
        (certificate_of(&server, 0)["failures"].as_u64() > Some(0)).then_some(())
    });
    let told = metrics(&server);
    assert!(sample(&told, "samovar_certificate_failures") > Some(0.0), "{told}");
    let failed = sample(&told, "samovar_certificate_failed_timestamp_seconds");
    assert!(failed > Some(1.7e9), "{told}");
    assert_eq!(sample(&told, "samovar_certificate_days"), None, "{told}");
    let said = Command::new(samovar_testkit::binary())
        .args(["status", "--control"])
        .arg(server.control())
        .output()
        .expect("the binary runs");
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let line = said.lines().find(|line| line.starts_with("certificate of ")).unwrap_or_default();
    assert!(line.contains("attempts failed, the last ") && line.contains(" ago: "), "{said}");
    bench.authority.be(AuthorityBehaviour::Good);
    server.reload().expect("it reloads");
    wait_for_certificate(&server, NAME);
    let days = eventually("its days", || sample(&metrics(&server), "samovar_certificate_days"));
    assert!(days > 89.0 && days <= 90.0, "{days}");
    assert_eq!(sample(&metrics(&server), "samovar_certificate_failures"), Some(0.0));
    // The server stops immediately while a request to the authority is in flight.
    bench.authority.be(AuthorityBehaviour::Silent);
    std::fs::remove_file(kept_file(&bench)).expect("it was kept");
    server.reload().expect("it reloads");
    server.stop();
}

fn kept_file(bench: &Bench) -> PathBuf {
    let place = format!("at-127.0.0.1-{}-directory", bench.authority.port());
    bench.kept().join(place).join(format!("{NAME}.pem"))
}

#[test]
fn wrong_clock_causes_one_order_only() {
    let bench = Bench::new();
    bench.authority.issue_for(90 * DAY);
    bench.authority.issue_aged(80 * DAY);
    let server = bench.start(NAME).start();
    bench.shown(&server);
    wait_for_certificate(&server, NAME);
    server.wait_for_log("is already due for renewal (hint: check this machine's clock)");
    for _ in 0..3 {
        server.reload().expect("it reloads");
    }
    // Removing the file forces a second order. Its number shows that the reloads caused none.
    let file = kept_file(&bench);
    std::fs::remove_file(&file).expect("it was kept");
    server.reload().expect("it reloads");
    eventually("the second order", || file.exists().then_some(()));
    assert_eq!(bench.authority.orders(), 2);
    server.reload().expect("it reloads");
    assert!(shown_for(&server, NAME).is_some_and(|told| told.contains(NAME)));
    server.stop();
    assert_eq!(bench.authority.orders(), 2);
}

#[test]
fn full_disk_is_reported_before_order_is_placed() {
    if let Err(why) = may_mount() {
        eprintln!("skipped: {why}");
        return;
    }
    let bench = Bench::new();
    let start = bench.start(NAME).disk("small", 1 << 20);
    let folder = start.folder().join("small");
    let start = start.args(["--acme-folder", &folder.join("acme").display().to_string()]);
    let server = start.start();
    bench.shown(&server);
    let first = wait_for_certificate(&server, NAME);
    let disk = server.disk("small");
    let place = format!("acme/at-127.0.0.1-{}-directory/{NAME}.pem", bench.authority.port());
    let kept = disk.path(&place);
    eventually("it is kept", || kept.exists().then_some(()));
    std::fs::remove_file(&kept).expect("it was kept");
    disk.fill();
    server.reload().expect("it reloads");
    server.wait_for_log("no certificate: cannot store certificates");
    assert_eq!(bench.authority.orders(), 1);
    assert_eq!(shown_for(&server, NAME), Some(first.clone()), "the one of before holds");
    assert!(certificate_of(&server, 0)["trouble"].is_string());
    disk.give_back(512 * 1024);
    server.reload().expect("it reloads");
    eventually("another one is kept", || kept.exists().then_some(()));
    assert_eq!(bench.authority.orders(), 2);
    let is_new = |told: &String| told.contains(NAME) && *told != first;
    eventually("another one is shown", || shown_for(&server, NAME).filter(is_new));
}

#[test]
fn server_started_by_root_stores_certificates_as_its_user() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    let start = bench.start(NAME).without_root();
    // The user needs access to these files, and to no others.
    let open = || std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(bench.folder.path(), open()).expect("our own folder");
    let folder = start.folder();
    let mut own = vec![folder.to_owned()];
    own.extend(["sessions", "uploads"].map(|below| folder.join(below)));
    for path in own {
        std::os::unix::fs::chown(path, Some(UID), Some(UID)).expect("root may");
    }
    let worker = folder.join("samovar-php");
    let built = samovar_testkit::binary().with_file_name("samovar-php");
    std::fs::copy(built, &worker).expect("a copy");
    let worker = worker.display().to_string();
    let server = start.args(["--user", USER, "--php-binary", &worker]).start();
    bench.shown(&server);
    wait_for_certificate(&server, NAME);
    let file = kept_file(&bench);
    eventually("it is kept", || file.exists().then_some(()));
    for path in [&file, file.parent().expect("a folder"), &bench.kept()] as [&Path; 3] {
        let found = std::fs::metadata(path).expect("it is there");
        assert_eq!(found.uid(), UID, "{}", path.display());
        assert_eq!(found.permissions().mode() & 0o077, 0, "{}", path.display());
    }
    // The server can also store the renewed certificate.
    std::fs::remove_file(&file).expect("it was kept");
    server.reload().expect("it reloads");
    eventually("another one is kept", || file.exists().then_some(()));
    server.stop();
}
