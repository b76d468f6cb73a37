//! Hard cases: a full disk, a store of a newer version, an upgrade, dead templates.

use super::{Site, figures, one, push, queue_workers, scripts, wait_for_figure};
use samovar_testkit::{eventually, may_mount};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::process::Command;

fn ids_that_ran(site: &Site) -> BTreeSet<i64> {
    site.ran().iter().filter_map(|job| job[0].as_i64()).collect()
}

#[test]
fn full_disk_refuses_pushes_and_loses_no_job() {
    if let Err(why) = may_mount() {
        eprintln!("skipped: {why}");
        return;
    }
    let site = scripts();
    let server = site.prepare("workers = 1").disk_at(&site.at("state"), 8 << 20).start();
    let running = one(&server, &json!({ "do": "wait" }));
    let waiting = one(&server, &json!("waits"));
    site.wait_for(1);
    let disk = server.disk_at(&site.at("state"));
    disk.fill();
    let refused = push(&server, "/", &json!({ "payload": "x".repeat(40_000) }));
    assert_eq!(refused[0], "RuntimeException", "{refused}");
    let why = refused[1].as_str().unwrap_or_default();
    assert!(why.contains("cannot use the store of jobs") && why.contains("full"), "{why}");
    server.wait_for_log("check the disk, and the owner of the file");
    let findings = eventually("a problem of the disk", || {
        let findings = server.status()["health"]["findings"].to_string();
        findings.contains("jobs.store").then_some(findings)
    });
    assert!(findings.contains("\"disk\""), "{findings}");
    // The result of the running job cannot be stored. It is kept until there is space.
    site.go();
    disk.give_back(4 << 20);
    wait_for_figure(&server, "done_total", 2);
    let after = one(&server, &json!("after"));
    wait_for_figure(&server, "done_total", 3);
    let ran: Vec<_> = site.ran().iter().map(|job| job[0].as_i64()).collect();
    assert_eq!(ran, [Some(running), Some(waiting), Some(after)], "each job ran once");
    server.stop();
}

#[test]
fn store_of_a_newer_version_is_refused() {
    let site = scripts();
    let store = site.at("state/jobs.sqlite");
    std::fs::create_dir(site.at("state")).expect("a folder");
    std::fs::write(&store, newer_store()).expect("a file");
    let before = std::fs::read(&store).expect("a file");
    let (code, log) = site.prepare("").refuse();
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains("has version 99") && log.contains("hint: start the newer"), "{log}");
    assert_eq!(std::fs::read(&store).expect("a file"), before, "the file is unchanged");
}

/// An empty database of one page, whose tables have version 99.
fn newer_store() -> Vec<u8> {
    let mut page = vec![0_u8; 4_096];
    page[..16].copy_from_slice(b"SQLite format 3\0");
    page[16..18].copy_from_slice(&4_096_u16.to_be_bytes());
    // File format 1, and the fractions of the payload, which are fixed.
    page[18..24].copy_from_slice(&[1, 1, 0, 64, 32, 32]);
    page[28..32].copy_from_slice(&1_u32.to_be_bytes()); // Number of pages.
    page[44..48].copy_from_slice(&4_u32.to_be_bytes()); // Format of the schema.
    page[56..60].copy_from_slice(&1_u32.to_be_bytes()); // UTF-8.
    page[60..64].copy_from_slice(&99_u32.to_be_bytes()); // `user_version`.
    // The page is an empty leaf of the table of all tables.
    page[100] = 13;
    page[105..107].copy_from_slice(&4_096_u16.to_be_bytes());
    page
}

#[test]
fn upgrade_during_jobs_loses_none() {
    let site = scripts();
    let server = site.start("workers = 2\nbatch = 5");
    let mut expected = BTreeSet::new();
    let mut push_some = |from: usize| {
        let payloads: Vec<usize> = (from..from + 200).collect();
        let ids = push(&server, "/?many=1", &json!(payloads));
        expected.extend(ids.as_array().expect("ids").iter().filter_map(Value::as_i64));
    };
    for round in 0..3 {
        push_some(round * 1_000);
        server.upgrade([]).unwrap_or_else(|why| panic!("round {round}: {why}"));
        push_some(round * 1_000 + 500);
        server.wait_for_predecessor();
    }
    eventually("all jobs", || (ids_that_ran(&site) == expected).then_some(()));
    wait_for_figure(&server, "ready", 0);
    assert_eq!(site.ran().len(), expected.len(), "each job ran once: no death explains a second");
    assert_eq!(figures(&server)["dead"], 0);
    server.stop();
}

#[test]
fn upgrade_waits_for_a_running_job() {
    let site = scripts();
    let server = site.start("");
    one(&server, &json!({ "do": "wait" }));
    site.wait_for(1);
    server.upgrade([]).expect("upgraded");
    let second = one(&server, &json!("new"));
    site.go();
    server.wait_for_predecessor();
    let ran = site.wait_for(2);
    assert_eq!((ran.len(), &ran[1][0]), (2, &json!(second)));
    server.stop();
}

#[test]
fn killed_template_loses_no_job() {
    let site = scripts();
    let server = site.start("workers = 2\nattempts = 100");
    let mut expected = BTreeSet::new();
    for round in 0..3 {
        let payloads: Vec<usize> = (round * 100..round * 100 + 100).collect();
        let ids = push(&server, "/?many=1", &json!(payloads));
        expected.extend(ids.as_array().expect("ids").iter().filter_map(Value::as_i64));
        // The workers of a killed template are children of the server until they end.
        let template = eventually("a worker of a template", || {
            let mut parents = queue_workers(&server).into_iter().filter_map(parent_of);
            parents.find(|parent| *parent != server.pid())
        });
        let killed = Command::new("kill").args(["-9", &template.to_string()]).status();
        assert!(killed.is_ok());
    }
    eventually("all jobs", || expected.is_subset(&ids_that_ran(&site)).then_some(()));
    wait_for_figure(&server, "ready", 0);
    assert_eq!(figures(&server)["dead"], 0);
    server.stop();
}

fn parent_of(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}
