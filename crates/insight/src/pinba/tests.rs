use super::message::Request;
use super::packet::{PACKET_BYTES_MAX, Packet, Refused, Sender, TIMERS_MAX, encode};
use crate::finished::{Finished, Model, Numbers};
use crate::report::Entry;
use proptest::prelude::*;
use prost::Message as _;

const MS: u64 = 1_000_000;

fn sender() -> Sender {
    Sender { host: "web1".into(), server: "shop.example".into() }
}

fn timer<'a>(hits: u32, tags: &[(&'a str, &'a str)]) -> Entry<'a> {
    Entry::Timer { hits, wall_ns: 250 * MS, user_ns: 125 * MS, system_ns: 0, tags: tags.to_vec() }
}

fn finished() -> Finished<'static> {
    let numbers = Numbers {
        status: 404,
        wall_ns: 500 * MS,
        cpu_ns: 62_500_000,
        bytes_out: 1_234,
        peak_bytes: 2 << 20,
        ..Numbers::default()
    };
    Finished { numbers, ..Finished::default() }
}

#[test]
fn packet_round_trip_keeps_request() {
    let entries = [
        timer(3, &[("group", "mysql"), ("server", "db1")]),
        timer(1, &[("group", "redis")]),
        timer(1, &[]),
        Entry::Tag("country", "de"),
    ];
    let packet = Packet::decode(&encode(&sender(), &finished(), "/shop.php", &entries)).unwrap();
    assert_eq!((packet.sender(), packet.script()), (sender(), "/shop.php"));
    assert_eq!(packet.entries(), entries);
    let expected =
        Numbers { model: Model::Elsewhere, worker: 1, run_ns: 500 * MS, ..finished().numbers };
    assert_eq!(packet.numbers(), expected);
}

#[test]
fn packet_contains_each_word_once() {
    let entries = [timer(1, &[("group", "mysql")]), timer(1, &[("group", "group")])];
    let bytes = encode(&sender(), &finished(), "/", &entries);
    let request = Request::decode(&bytes[..]).unwrap();
    assert_eq!(request.dictionary, ["group", "mysql"]);
    assert_eq!((request.timer_tag_name, request.timer_tag_value), (vec![0, 0], vec![1, 0]));
}

#[test]
fn packet_too_long_is_sent_without_timers() {
    let value = "x".repeat(255);
    let values: Vec<String> = (0..400).map(|n| format!("{n}{}", &value[4..])).collect();
    let entries: Vec<_> = values.iter().map(|value| timer(1, &[("group", value)])).collect();
    let bytes = encode(&sender(), &finished(), "/", &entries);
    assert!(bytes.len() < PACKET_BYTES_MAX);
    assert_eq!(Packet::decode(&bytes).unwrap().entries(), []);
}

#[test]
fn inner_packets_are_read_one_level_deep() {
    let inner = Request { hostname: "a".into(), script_name: "/a".into(), ..Request::default() };
    let nested = Request { requests: vec![inner.clone()], ..Request::default() };
    let outer = Request { requests: vec![inner.clone(), nested, inner], ..Request::default() };
    let packet = Packet::decode(&outer.encode_to_vec()).unwrap();
    let scripts: Vec<_> = packet.requests().iter().map(|p| p.script().to_owned()).collect();
    assert_eq!(scripts, ["/a", "/a"]);
}

#[test]
fn contradictory_packet_is_rejected() {
    let whole = Request {
        timer_hit_count: vec![1],
        timer_value: vec![0.5],
        timer_tag_count: vec![1],
        timer_tag_name: vec![0],
        timer_tag_value: vec![0],
        dictionary: vec!["a".into()],
        ..Request::default()
    };
    let check = |change: fn(&mut Request), broken: &'static str| {
        let mut request = whole.clone();
        change(&mut request);
        let found = Packet::decode(&request.encode_to_vec()).map(|_| ());
        assert_eq!(found, Err(Refused::Contradictory(broken)), "{broken}");
    };
    assert!(Packet::decode(&whole.encode_to_vec()).is_ok());
    check(|r| r.timer_value.clear(), "timers without a value");
    check(|r| r.timer_tag_count.clear(), "timers without a number of tags");
    check(|r| r.timer_tag_count[0] = u32::MAX, "too many tags");
    check(|r| r.timer_tag_count[0] = 2, "timer tags without a name");
    check(|r| r.timer_tag_value.clear(), "timer tags without a value");
    check(|r| r.timer_tag_name[0] = 1, "tag name not in the dictionary");
    check(|r| r.timer_ru_utime = vec![0.1, 0.2], "timers without CPU time");
    check(|r| r.tag_name.push(0), "tags without a value");
    check(|r| r.timer_hit_count = vec![1; TIMERS_MAX + 1], "too many timers");
    assert!(matches!(Packet::decode(b"\xff\xff\xff"), Err(Refused::Garbled(_))));
}

#[test]
fn invalid_times_are_zero() {
    let times = Request {
        request_time: f32::NAN,
        ru_utime: -1.0,
        ru_stime: f32::INFINITY,
        ..Request::default()
    };
    let numbers = Packet::decode(&times.encode_to_vec()).unwrap().numbers();
    assert_eq!((numbers.wall_ns, numbers.cpu_ns, numbers.status), (0, 0, 200));
}

proptest! {
    #[test]
    fn decode_of_random_bytes_does_not_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
    ) {
        if let Ok(packet) = Packet::decode(&bytes) {
            let _ = (packet.entries(), packet.numbers(), packet.requests());
        }
    }
}
