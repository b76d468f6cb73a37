//! Tests of a generation. The test plays the template, over the same channel as the real one.

use super::*;
use crate::limits::AS_IT_IS;
use crate::news::{Kills, Lines};
use crate::sandbox::Sandbox;
use crate::settings::Settings;
use crate::settings::{ConsoleSettings, TemplateCommand};
use crate::workers::Lives;
use samovar_channel::Image;
use samovar_channel::{
    ConsoleOrder, ImageMode, LINE_BYTES_MAX, MESSAGE_BYTES_MAX, Order, TemplateEnd, WorkerOptions,
};
use samovar_log::Intake;
use samovar_log::{Log, Notice, Target};
use samovar_published::{Limits, Publishing};
use samovar_ring::{Ring, Supervision};
use samovar_shared::Shared;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

/// Above all real process ids, in case a test kills one.
const PID: i32 = 1 << 30;

struct Bench {
    generation: Generation,
    ground: Ground,
    template: TemplateEnd,
}

fn console(argument: String) -> ConsoleSettings {
    ConsoleSettings {
        name: "mail".into(),
        script: "/app/bin/console".into(),
        arguments: vec![argument.into()],
        folder: "/app".into(),
        count: 1,
        memory_max: 1 << 30,
        time_max: Duration::ZERO,
        stop_timeout: Duration::from_secs(1),
    }
}

impl Bench {
    fn new(workers: usize, consoles: Vec<ConsoleSettings>) -> Bench {
        let notice = Notice::Elsewhere(Box::new(|_| ()));
        let log = Log::start("test-log", Target::File("/dev/null".into()), notice).unwrap();
        let ring = Ring::create(16).unwrap();
        let ground = Ground {
            ring: ring.clone(),
            published: nothing_published(),
            shared: Shared::create(0).unwrap(),
            intake: Intake::start(log).unwrap(),
            supervision: Supervision::new(ring),
            lives: Lives::default(),
            is_stopping: false,
            refork_reasons: BTreeMap::new(),
            news: RefCell::default(),
            kills: Kills::default(),
            lines: Lines::default(),
        };
        let settings = Settings {
            recycle: crate::recycle::RecycleLimits::default(),
            command: TemplateCommand {
                program: crate::program::Program::open("/nonexistent".into()),
                options: WorkerOptions::bare("/".into()),
                graphs: None,
                loads: None,
                jobs: None,
                limits: AS_IT_IS,
                no_new_privileges: false,
                sandbox: Sandbox::default(),
                environment: Vec::new(),
            },
            workers: crate::settings::WorkerCount::fixed(workers),
            boot_limit: Duration::from_mins(1),
            drain_limit: Duration::from_mins(1),
            after_limit: Duration::ZERO,
            watchdog_limit: Duration::ZERO,
            image_errors: vec!["tls".into()],
            consoles,
            tracer: None,
        };
        let lives = ground.lives.clone();
        let mut generation =
            Generation::new(1, settings, 0, DesiredState::Serve, lives, &ground.intake);
        // The state after the first tick started the template.
        generation.events.clear();
        assert_eq!(generation.workers.step(&Event::Tick, Instant::now()), [Action::StartTemplate]);
        let (template, end) = Template::fake(PID);
        generation.template = Some(template);
        Bench { generation, ground, template: end }
    }

    /// Creates a generation whose template has started PHP.
    fn ready(workers: usize, consoles: Vec<ConsoleSettings>) -> Bench {
        let mut bench = Bench::new(workers, consoles);
        bench.say(channel::Event::Ready {
            php: "8.2.29".into(),
            resident: false,
            linking: channel::Linking::default(),
            engine: None,
        });
        bench.generation.tell(Event::Room { cells: (0..workers).collect() });
        bench.step();
        bench
    }

    #[allow(clippy::needless_pass_by_value)] // By value, for readability of the tests.
    fn say(&mut self, event: channel::Event) {
        self.template.send(&event).unwrap();
        self.generation.read_template(&mut self.ground).unwrap();
    }

    fn step(&mut self) {
        self.generation.step(&self.ground).unwrap();
        self.generation.settle_consoles(&|_, _| false);
    }

    /// Returns the next order, and whether a pipe came with it.
    fn order(&self) -> Option<(Order, bool)> {
        match self.template.hear_now().unwrap()? {
            Heard::Message(order, passed) => Some((order, passed.is_some())),
            other => panic!("{other:?}"),
        }
    }

    fn worker_order(&self) -> WorkerId {
        match self.order() {
            Some((Order::Fork { worker, role: Role::Any }, true)) => worker,
            other => panic!("{other:?}"),
        }
    }

    fn pids(&self) -> Vec<i32> {
        self.generation.processes().map(|(_, pid, _)| pid).collect()
    }
}

#[test]
fn workers_are_forked_and_replaced() {
    let mut bench = Bench::ready(2, Vec::new());
    assert_eq!(bench.generation.ready, Readiness::TemplateReady);
    let [first, second] = [bench.worker_order(), bench.worker_order()];
    assert_eq!((first.cell, second.cell), (0, 1));
    assert!(bench.order().is_none());
    bench.say(channel::Event::Forked { worker: first, pid: PID + 1 });
    bench.say(channel::Event::Failed { worker: second, why: "no memory".into() });
    bench.step();
    assert_eq!(bench.pids(), [PID + 1]);
    let again = bench.worker_order();
    assert!(again.cell == 1 && again.life != second.life, "a failed fork is tried again");

    let status = EXIT_REPLACE << 8;
    bench.say(channel::Event::Died { worker: first, pid: PID + 1, status });
    bench.step();
    let successor = bench.worker_order();
    assert!(successor.cell == 0 && successor.life != first.life);
    assert_eq!((bench.generation.workers.reforks(), bench.generation.workers.restarts()), (1, 0));
    bench.say(channel::Event::Forked { worker: successor, pid: PID + 2 });
    bench.step();
    bench.say(channel::Event::Died { worker: successor, pid: PID + 2, status: 9 });
    bench.step();
    assert_eq!((bench.generation.workers.reforks(), bench.generation.workers.restarts()), (1, 1));
}

#[test]
fn boot_result_and_findings_are_stored() {
    let mut bench = Bench::ready(1, Vec::new());
    let long = "x".repeat(2 * LINE_BYTES_MAX);
    let finding = Finding { kind: "pipe".into(), what: long, ..Finding::default() };
    bench.say(channel::Event::Finding(finding));
    bench.say(channel::Event::BootFailed);
    assert!(bench.generation.boot_failed && bench.generation.image.is_none());
    let image = Image { mode: ImageMode::Shared, bytes: 7, ..Image::default() };
    bench.say(channel::Event::Image(image));
    assert!(!bench.generation.boot_failed);
    assert_eq!(bench.generation.image, Some(image));
    let what = &bench.generation.findings[0].what;
    assert!(what.len() <= LINE_BYTES_MAX && what.ends_with('…'), "{what}");
}

#[test]
fn forbidden_finding_ends_the_start() {
    let mut bench = Bench::ready(1, Vec::new());
    let finding = Finding { kind: "tls".into(), action: "script".into(), ..Finding::default() };
    bench.template.send(&channel::Event::Finding(finding.clone())).unwrap();
    match bench.generation.read_template(&mut bench.ground) {
        Err(Failed::Finding(found)) => assert_eq!(found, finding),
        other => panic!("{other:?}"),
    }
}

#[test]
fn console_worker_starts_and_ends() {
    let mut bench = Bench::ready(1, vec![console("a\nb".into())]);
    bench.worker_order();
    let Some((Order::Console(order), true)) = bench.order() else { panic!("no order") };
    let life = order.life;
    let expected = ConsoleOrder {
        life,
        name: "mail".into(),
        number: 1,
        folder: "/app".into(),
        script: "/app/bin/console".into(),
        arguments: vec!["a\nb".into()],
    };
    assert_eq!(order, expected);
    bench.say(channel::Event::ConsoleForked { life, pid: PID + 1 });
    assert!(bench.generation.consoles.entries().all(|entry| entry.has_process()));
    bench.say(channel::Event::ConsoleDied { pid: PID + 1, status: 0 });
    bench.step();
    let Some((Order::Console(order), true)) = bench.order() else { panic!("no successor") };
    bench.say(channel::Event::ConsoleFailed { life: order.life, why: "no memory".into() });
    assert!(bench.generation.consoles.are_gone());
}

#[test]
fn console_command_that_is_too_long_is_not_started() {
    let long = console("x".repeat(MESSAGE_BYTES_MAX));
    let bench = Bench::ready(1, vec![long.clone()]);
    bench.worker_order();
    assert!(bench.order().is_none());
    assert!(bench.generation.consoles.are_gone());
    let (_reader, output) = std::io::pipe().unwrap();
    let template = bench.generation.template.as_ref().unwrap();
    let error = template.start_console(1, 1, &long, &output.into()).unwrap_err().to_string();
    assert!(
        error.contains("exceed the size of a message") && error.contains("the maximum is 8192"),
        "{error}"
    );
}

#[test]
fn unknown_message_of_template_is_ignored() {
    let mut bench = Bench::ready(1, Vec::new());
    let worker = bench.worker_order();
    for text in [&b"dance"[..], b"\xff\x00", &[b'x'; MESSAGE_BYTES_MAX + 1]] {
        rustix::net::send(&bench.template, text, rustix::net::SendFlags::empty()).unwrap();
    }
    bench.say(channel::Event::Forked { worker, pid: PID + 1 });
    bench.step();
    assert_eq!(bench.pids(), [PID + 1]);
}

#[test]
fn ping_sends_limits_to_template() {
    let bench = Bench::new(1, Vec::new());
    bench.generation.template.as_ref().unwrap().ping(5, 25).unwrap();
    assert_eq!(bench.order(), Some((Order::Ping { looks: 5, boot_looks: 25 }, false)));
}

#[test]
fn channel_is_closed_at_end_of_template() {
    let mut bench = Bench::new(1, Vec::new());
    assert!(bench.generation.fd().is_some());
    let (_, other) = Template::fake(PID);
    drop(std::mem::replace(&mut bench.template, other));
    bench.generation.read_template(&mut bench.ground).unwrap();
    assert!(bench.generation.fd().is_none());
    assert!(matches!(
        bench.generation.reaped(PID, 9, &mut bench.ground),
        Err(Failed::Template { status: 9 })
    ));
}

fn nothing_published() -> Publishing {
    let limits = Limits { bytes_max: 0, value_bytes_max: 0, names_max: 0 };
    Publishing::new(Shared::create(0).unwrap(), limits).unwrap()
}
