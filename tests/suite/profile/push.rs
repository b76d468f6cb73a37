//! Profiles are sent to Pyroscope. A receiver that hangs or is killed during a transfer loses
//! profiles only.

use crate::profile::stage::{HERTZ, samples, table, under_load};
use samovar_testkit::collector::{Collector, CollectorReply, Posted};
use samovar_testkit::protoc::{self, PUSH};
use samovar_testkit::{Server, Start, eventually};

const PROGRAM: &str = "<?php
function work() { for ($i = 0; $i < 300000; $i++) { $x = $i * 3; } }
work();
echo 'done';
";

fn pushed(collector: &Collector, more: &str) -> Start {
    let config = format!(
        "admin = '127.0.0.1:0'\n[insight]\nservice = 'shop'\n[profile]\nhertz = {HERTZ}\n\
         push = '{}'\n{more}\n[profile.push_headers]\nx-scope-orgid = 'tenant'\n\
         [profile.push_labels]\nenv = 'prod'\n",
        collector.endpoint
    );
    Server::script(PROGRAM).workers(2).config(&config)
}

fn seen(server: &Server, least: f64) {
    under_load(server, &["/a/1"], "samples", || {
        table(server, &[]).filter(|table| samples(table, "work").0 >= least)
    });
}

fn texts(posted: &[Posted]) -> String {
    posted.iter().map(|posted| protoc::decode(PUSH, &posted.body)).collect()
}

#[test]
fn profile_is_pushed_regularly_and_at_stop() {
    let collector = Collector::start([]);
    let server = pushed(&collector, "").start();
    seen(&server, 20.0);
    server.stop();
    let posted = collector.posted();
    assert!(posted.iter().all(|posted| posted.head.contains("x-scope-orgid: tenant\r\n")));
    let text = texts(&posted);
    for (name, value) in [
        ("__name__", "process_cpu"),
        ("__name__", "wall"),
        ("env", "prod"),
        ("generation", "1"),
        ("model", "script"),
        ("route", "index.php /a/{n}"),
        ("service_name", "shop"),
    ] {
        let pair = format!("name: \"{name}\"\n    value: \"{value}\"");
        assert!(text.contains(&pair), "{pair} in {text}");
    }
}

#[test]
fn hanging_profile_receiver_loses_profiles_only() {
    let collector = Collector::start(vec![CollectorReply::Hang; 100]);
    let server = pushed(&collector, "push_timeout = '1h'").start();
    seen(&server, 20.0);
    // The stop must end within the watchdog's time.
    let log = server.stop();
    assert_eq!(collector.await_posted(1).len(), 1);
    assert!(!log.contains("panicked"), "{log}");
}

#[test]
fn server_killed_during_push_leaves_no_process() {
    let collector = Collector::start(vec![CollectorReply::Hang; 100]);
    let server = pushed(&collector, "push_timeout = '1h'").start();
    seen(&server, 20.0);
    let workers = server.worker_pids();
    server.terminate();
    collector.await_posted(1);
    let _folder = server.perish();
    eventually("its processes have gone", || {
        workers.iter().all(|pid| samovar_testkit::has_ended(*pid)).then_some(())
    });
}

#[test]
fn invalid_push_address_is_refused_at_start() {
    for (settings, expected) in [
        ("[profile]\npush = '127.0.0.1:4040'\n", "profile.push"),
        (
            "[profile]\npush = 'https://127.0.0.1:1'\npush_ca_file = '/dev/null'\n",
            "no trusted certificates",
        ),
        ("[profile]\n[profile.push_labels]\nroute = 'x'\n", "profile.push_labels"),
    ] {
        let (code, said) = Server::script(PROGRAM).config(settings).refuse();
        assert!(code.is_some_and(|code| code != 0) && said.contains(expected), "{said}");
    }
}
