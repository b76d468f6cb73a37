//! Every message decodes to the message that was encoded, with any content.

use crate::*;
use proptest::prelude::*;
use samovar_ring::{Incarnation, WORKERS_MAX};
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::time::Duration;

/// Short texts with all characters that may break a parser.
fn text() -> impl Strategy<Value = String> {
    proptest::collection::vec(
        prop_oneof![
            Just('\n'),
            Just('\t'),
            Just('\0'),
            Just('"'),
            Just('\\'),
            Just('\u{85}'),
            Just(' '),
            Just('\u{2028}'),
            Just('{'),
            Just('…'),
            any::<char>()
        ],
        0..60,
    )
    .prop_map(|chars| chars.into_iter().collect())
}

/// Texts of any length, with long runs of few characters.
fn long_text() -> impl Strategy<Value = String> {
    let run = (any::<char>(), 0..200usize).prop_map(|(c, often)| String::from_iter(vec![c; often]));
    proptest::collection::vec(run, 0..8).prop_map(|runs| runs.concat())
}

/// A text as events contain it: one line.
fn clean() -> impl Strategy<Value = String> {
    text().prop_map(|text| text.replace(char::is_control, " "))
}

/// Names that the operating system allows, which need not be text.
fn name() -> impl Strategy<Value = OsString> {
    prop_oneof![
        text().prop_map(OsString::from),
        proptest::collection::vec(any::<u8>(), 0..60).prop_map(OsString::from_vec),
    ]
}

fn path() -> impl Strategy<Value = PathBuf> {
    name().prop_map(PathBuf::from)
}

fn worker() -> impl Strategy<Value = WorkerId> {
    (0..WORKERS_MAX, 1..=Incarnation::MAX).prop_map(|(cell, life)| WorkerId {
        cell,
        life: Incarnation::new(life).expect("within its bounds"),
    })
}

fn order() -> impl Strategy<Value = Order> {
    let role = prop_oneof![Just(Role::Any), Just(Role::Boot), Just(Role::Script)];
    let arguments = proptest::collection::vec(name(), 0..8);
    let console = (any::<u32>(), text(), any::<usize>(), path(), path(), arguments).prop_map(
        |(life, name, number, folder, script, arguments)| {
            Order::Console(ConsoleOrder { life, name, number, folder, script, arguments })
        },
    );
    prop_oneof![
        (worker(), role).prop_map(|(worker, role)| Order::Fork { worker, role }),
        console,
        any::<(u32, u32)>().prop_map(|(looks, boot_looks)| Order::Ping { looks, boot_looks }),
    ]
}

fn linking() -> impl Strategy<Value = Linking> {
    let state = prop_oneof![
        Just(LinkingState::Direct),
        Just(LinkingState::Off),
        Just(LinkingState::Refused)
    ];
    let numbers = (any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>());
    (state, clean(), numbers).prop_map(|(state, why, (libraries, calls, loads, left))| Linking {
        state,
        why,
        libraries,
        calls,
        loads,
        left,
    })
}

fn engine() -> impl Strategy<Value = Option<Engine>> {
    proptest::option::of((clean(), clean()).prop_map(|(file, source)| Engine { file, source }))
}

fn opcache((numbers, is_full): ([u64; 14], bool)) -> Event {
    let [used_bytes, free_bytes, wasted_bytes, strings, strings_used_bytes, ..] = numbers;
    let [.., scripts, keys, keys_max, hits, misses, memory, by_keys, manual] = numbers;
    Event::Opcache(Opcache {
        used_bytes,
        free_bytes,
        wasted_bytes,
        strings,
        strings_used_bytes,
        strings_free_bytes: numbers[5],
        scripts,
        keys,
        keys_max,
        hits,
        misses,
        restarts_memory: memory,
        restarts_keys: by_keys,
        restarts_manual: manual,
        is_full,
    })
}

fn setup() -> impl Strategy<Value = PhpSetup> {
    let pairs = || proptest::collection::btree_map(text(), long_text(), 0..60);
    let extensions = proptest::collection::vec(long_text(), 0..100);
    (text(), long_text(), pairs(), extensions, pairs()).prop_map(
        |(root, script, directives, extensions, environment)| PhpSetup {
            root,
            script,
            directives,
            extensions,
            environment,
        },
    )
}

fn event() -> impl Strategy<Value = Event> {
    let mode = prop_oneof![
        Just(ImageMode::Shared),
        Just(ImageMode::Resident),
        Just(ImageMode::Worker),
        Just(ImageMode::Script)
    ];
    let image = (mode, any::<u64>(), any::<u64>(), any::<u64>(), 0..1_000_000_000u32).prop_map(
        |(mode, bytes, regions, seconds, ns)| {
            Event::Image(Image { mode, bytes, regions, boot: Duration::new(seconds, ns) })
        },
    );
    let finding = (clean(), clean(), clean(), clean(), clean()).prop_map(
        |(kind, action, what, place, advice)| {
            Event::Finding(Finding { kind, action, what, place, advice })
        },
    );
    let (pid, status) = (any::<i32>(), any::<i32>());
    prop_oneof![
        pid.prop_map(|pid| Event::Booting { pid }),
        (clean(), any::<bool>(), linking(), engine()).prop_map(
            |(php, resident, linking, engine)| Event::Ready { php, resident, linking, engine }
        ),
        (worker(), pid).prop_map(|(worker, pid)| Event::Forked { worker, pid }),
        (worker(), pid, status).prop_map(|(worker, pid, status)| Event::Died {
            worker,
            pid,
            status
        }),
        (worker(), clean()).prop_map(|(worker, why)| Event::Failed { worker, why }),
        Just(Event::BootFailed),
        Just(Event::Pong),
        (any::<[u64; 14]>(), any::<bool>()).prop_map(opcache),
        setup().prop_map(|setup| Event::Php(setup.bounded())),
        image,
        finding,
        (any::<u32>(), pid).prop_map(|(life, pid)| Event::ConsoleForked { life, pid }),
        (any::<u32>(), clean()).prop_map(|(life, why)| Event::ConsoleFailed { life, why }),
        (pid, status).prop_map(|(pid, status)| Event::ConsoleDied { pid, status }),
    ]
}

fn options() -> impl Strategy<Value = WorkerOptions> {
    let paths = (path(), proptest::option::of(path()), proptest::option::of(path()));
    let more = (proptest::option::of(path()), proptest::option::of(path()), text(), text(), text());
    let lists = (
        proptest::collection::vec(text(), 0..4),
        proptest::collection::btree_map(text(), text(), 0..4),
    );
    let numbers = (any::<u64>(), any::<usize>(), any::<usize>(), any::<u64>());
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (paths, more, lists, numbers, flags).prop_map(|(paths, more, lists, numbers, flags)| {
        WorkerOptions {
            app: paths.1,
            checkpoint_after: paths.2,
            checkpoint_resume: more.0,
            php_ini: more.1.clone(),
            engine: more.1,
            sapi_name: more.2,
            server_software: more.3,
            pool: more.4,
            warmup: lists.0.clone(),
            boot_reads: lists.0,
            define: lists.1,
            growth_bytes_max: numbers.0,
            rollback_every: numbers.1,
            tasks_max: numbers.2,
            task_stack_bytes: numbers.3,
            boots: if flags.0 { Boots::Once } else { Boots::Never },
            frankenphp: flags.1,
            mocks: flags.1.then_some(flags.0),
            json_log: flags.2,
            debug_log: flags.3,
            ..WorkerOptions::bare(paths.0)
        }
    })
}

proptest! {
    #[test]
    fn encoded_order_decodes_to_same_order(order in order()) {
        // Names of raw bytes take four times their length.
        if let Ok(bytes) = encode(&order) {
            prop_assert_eq!(decode::<Order>(&bytes), Ok(order));
        }
    }

    #[test]
    fn encoded_event_decodes_to_same_event(event in event()) {
        let bytes = encode(&event).expect("every event fits");
        prop_assert_eq!(decode::<Event>(&bytes), Ok(event));
    }

    #[test]
    fn event_with_any_texts_fits_and_is_one_line(
        texts in proptest::array::uniform5(long_text())
    ) {
        let [kind, action, what, place, advice] = texts;
        let finding = Finding { kind, action, what, place, advice };
        let bytes = encode(&Event::Finding(finding)).expect("every event fits");
        let Ok(Event::Finding(heard)) = decode(&bytes) else { panic!("{bytes:?}") };
        for text in [heard.kind, heard.action, heard.what, heard.place, heard.advice] {
            prop_assert!(text.len() <= LINE_BYTES_MAX && !text.contains(char::is_control));
        }
    }

    #[test]
    fn garbage_is_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(decode::<Order>(&bytes).is_err());
        prop_assert!(decode::<Event>(&bytes).is_err());
        prop_assert!(decode::<ImageOrder>(&bytes).is_err());
        prop_assert!(decode::<ImageWord>(&bytes).is_err());
    }
}

proptest! {
    // Each case has many texts.
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn sealed_start_is_read_back_unchanged(options in options(), parent in any::<i32>()) {
        let start = Start {
            parent,
            channel: 3,
            ring: 4,
            notifiers: vec![5; 1 + usize::from(parent % 5 == 0)],
            shared: 6,
            published: 7,
            publishing: 8,
            traces: (parent % 2 == 0).then_some(9),
            loads: (parent % 3 == 0).then_some(10),
            jobs: (parent % 5 == 0).then_some(11),
            options,
        };
        let file = start.seal().expect("a memory file");
        prop_assert_eq!(Start::read(file).expect("it was just written"), start);
    }
}

fn finding(what: &str) -> Event {
    Event::Finding(Finding { what: what.to_owned(), ..Finding::default() })
}

fn heard(event: &Event) -> Event {
    decode(&encode(event).expect("every event fits")).expect("it was just encoded")
}

#[test]
fn overlong_text_is_truncated_and_marked() {
    let longest = "x".repeat(LINE_BYTES_MAX);
    assert_eq!(heard(&finding(&longest)), finding(&longest), "nothing is cut that fits");
    let cut = format!("{}…", "x".repeat(LINE_BYTES_MAX - 3));
    assert_eq!(heard(&finding(&format!("{longest}x"))), finding(&cut));
    // Never within a character.
    let cut = format!("{}…", "é".repeat(198));
    assert_eq!(heard(&finding(&"é".repeat(201))), finding(&cut));
    assert_eq!(heard(&finding("a\tb\nc\0d")), finding("a b c d"));
}

#[test]
fn longest_event_fits_into_message() {
    let text = "\\\"".repeat(LINE_BYTES_MAX);
    let event = Event::Finding(Finding {
        kind: text.clone(),
        action: text.clone(),
        what: text.clone(),
        place: text.clone(),
        advice: text,
    });
    assert!(encode(&event).is_ok());
}

fn console(argument: &str) -> Order {
    Order::Console(ConsoleOrder {
        life: 7,
        name: "mail".into(),
        number: 2,
        folder: "/app".into(),
        script: "/app/bin/console".into(),
        arguments: vec![argument.into()],
    })
}

#[test]
fn overlong_order_is_rejected() {
    let frame = encode(&console("")).expect("a short order").len();
    let longest = console(&"x".repeat(MESSAGE_BYTES_MAX - frame));
    let bytes = encode(&longest).expect("it just fits");
    assert_eq!(decode(&bytes), Ok(longest));
    let error = encode(&console(&"x".repeat(MESSAGE_BYTES_MAX - frame + 1)));
    assert_eq!(error, Err(TooLong { bytes: MESSAGE_BYTES_MAX + 1 }));
}

#[test]
fn decode_error_contains_excerpt() {
    for (text, why) in [
        ("", "EOF"),
        ("fork 3 7 any", "expected value"),
        (r#"{"dance":{}}"#, "unknown variant `dance`"),
        (r#"{"fork":{"worker":{"cell":4096,"life":1},"role":"any"}}"#, "4096 cells, not 4096"),
        (r#"{"fork":{"worker":{"cell":1,"life":0},"role":"any"}}"#, "0 is not a worker number"),
        (
            r#"{"fork":{"worker":{"cell":1,"life":99999999},"role":"any"}}"#,
            "is not a worker number",
        ),
        (r#"{"fork":{"worker":{"cell":1,"life":1},"role":"dance"}}"#, "unknown variant `dance`"),
        (r#"{"fork":{"worker":{"cell":-1,"life":1},"role":"any"}}"#, "invalid value"),
        (r#"{"ping":{"looks":1,"boot_looks":1}}{"ping":{}}"#, "trailing characters"),
        (r#"{"console":{"life":1,"name":"a","number":1,"folder":"/"}}"#, "missing field `script`"),
    ] {
        let error = decode::<Order>(text.as_bytes()).expect_err(text).to_string();
        assert!(error.contains(why) && error.ends_with(&format!("`{text}`")), "{text}: {error}");
    }
}

#[test]
fn mode_names_round_trip_and_unknown_mode_is_not_shared() {
    for word in ["shared", "resident", "worker", "script"] {
        assert_eq!(ImageMode::of(word).word(), word);
        assert_eq!(ImageMode::of(word).is_shared(), ["shared", "resident"].contains(&word));
    }
    assert_eq!(ImageMode::of("dance"), ImageMode::Script);
}

#[test]
fn descriptor_is_passed_with_message() {
    let (supervisor, template): (SupervisorEnd, TemplateEnd) = pair().expect("sockets");
    let (mut pipe, output) = std::io::pipe().expect("a pipe");
    supervisor.send_now(&console("x"), Some(output.as_fd())).expect("room");
    drop(output);
    let Ok(Heard::Message(order, Some(passed))) = template.hear() else { panic!("no descriptor") };
    assert_eq!(order, console("x"));
    File::from(passed).write_all(b"through").expect("the other end is there");
    let mut text = String::new();
    pipe.read_to_string(&mut text).expect("its end");
    assert_eq!(text, "through");
}

#[test]
fn closed_end_differs_from_missing_message() {
    let (supervisor, template): (SupervisorEnd, TemplateEnd) = pair().expect("sockets");
    assert!(matches!(supervisor.hear_now(), Ok(None)));
    template.send(&Event::Pong).expect("room");
    assert!(matches!(supervisor.hear_now(), Ok(Some(Heard::Message(Event::Pong, None)))));
    drop(template);
    assert!(matches!(supervisor.hear_now(), Ok(Some(Heard::End))));
    let (supervisor, template): (SupervisorEnd, TemplateEnd) = pair().expect("sockets");
    supervisor.send_now(&Order::Ping { looks: 1, boot_looks: 1 }, None).expect("room");
    drop(template);
    assert!(matches!(supervisor.hear(), Ok(Heard::End)), "closed with something unread");
}

/// As a faulty process may send it.
#[test]
fn invalid_message_is_reported_as_garbled() {
    let (supervisor, template): (SupervisorEnd, TemplateEnd) = pair().expect("sockets");
    let say = |bytes: &[u8]| {
        rustix::net::send(&template, bytes, rustix::net::SendFlags::empty()).expect("room");
    };
    say(b"\xff\x00forked");
    say(&vec![b' '; MESSAGE_BYTES_MAX + 1]);
    template.send(&Event::Pong).expect("room");
    let Ok(Heard::Garbled(garbled)) = supervisor.hear() else { panic!("it is none") };
    assert!(garbled.to_string().contains("forked"), "{garbled}");
    let Ok(Heard::Garbled(garbled)) = supervisor.hear() else { panic!("it is none") };
    assert!(garbled.to_string().contains("longer than 8192 bytes"), "{garbled}");
    assert!(matches!(supervisor.hear(), Ok(Heard::Message(Event::Pong, None))), "it goes on");
}

#[test]
fn send_now_does_not_wait_for_stopped_reader() {
    let (supervisor, _template): (SupervisorEnd, TemplateEnd) = pair().expect("sockets");
    let full = (0..100_000)
        .find_map(|_| supervisor.send_now(&Order::Ping { looks: 1, boot_looks: 1 }, None).err());
    assert_eq!(full.map(|error| error.kind()), Some(std::io::ErrorKind::WouldBlock));
}

#[test]
fn sealed_start_cannot_be_written() {
    let options = WorkerOptions::bare("/srv".into());
    let mut start = Start {
        parent: 1,
        channel: 3,
        ring: 4,
        notifiers: vec![5],
        shared: 6,
        published: 7,
        publishing: 8,
        traces: None,
        loads: None,
        jobs: None,
        options,
    };
    let file = start.seal().expect("a memory file");
    assert!(start.arguments(&file).contains(&"/srv".into()));
    assert!(File::from(file).write_all(b"x").is_err());
    start.options.warmup = vec!["x".repeat(1 << 20); 3];
    assert!(start.seal().expect_err("too long").to_string().contains("the maximum is 2097152"));
}

#[test]
fn start_of_other_version_is_an_error() {
    let flags = rustix::fs::MemfdFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::memfd_create("test", flags).expect("a memory file"));
    file.write_all(br#"{"parent":1,"channel":3,"ring":4,"bells":[5],"options":{}}"#).expect("room");
    let error = Start::read(file.into()).expect_err("it says nothing").to_string();
    assert!(error.contains("missing field"), "{error}");
}
