//! SNMP version 3 encrypts with a counter that a library keeps in its memory. Below a checkpoint,
//! messages of two visitors would be encrypted with the same number.

use crate::isolation::outside::script;
use samovar_testkit::eventually;
use std::net::UdpSocket;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const ENGINE: &[u8] = b"\x80\x00\x1f\x88\x80tea";
/// `usmStatsUnknownEngineIDs`: the client does not know the agent's ID yet.
const UNKNOWN: &[u8] = &[0x2b, 6, 1, 6, 3, 15, 1, 1, 4, 0];

/// Timeout for a message that has been sent.
const AGENT_WAIT: Duration = Duration::from_millis(200);

const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 2;
const BYTES: u8 = 4;
const OBJECT: u8 = 6;
const COUNTER: u8 = 0x41;
const REPORT: u8 = 0xa8;

/// Encodes one value in BER; all values here are short.
fn put(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let value = parts.concat();
    let len = u8::try_from(value.len()).expect("a short value");
    [if len < 0x80 { vec![tag, len] } else { vec![tag, 0x81, len] }, value].concat()
}

/// Splits `bytes` into the first value and the rest.
fn take(bytes: &[u8]) -> (&[u8], &[u8]) {
    let (len, rest) = match bytes[1] {
        0x81 => (usize::from(bytes[2]), &bytes[3..]),
        len => (usize::from(len), &bytes[2..]),
    };
    rest.split_at(len)
}

fn nth(mut bytes: &[u8], n: usize) -> &[u8] {
    for _ in 0..n {
        bytes = take(bytes).1;
    }
    take(bytes).0
}

/// Starts an agent that sends its ID, and returns the numbers with which messages were encrypted.
/// RFC 3412, 6; RFC 3414, 2.4.
fn agent() -> (u16, Receiver<Vec<u8>>) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let port = socket.local_addr().expect("it is bound").port();
    let (tell, told) = channel();
    std::thread::spawn(move || {
        let mut bytes = [0; 2048];
        while let Ok((len, from)) = socket.recv_from(&mut bytes) {
            let message = take(&bytes[..len]).0;
            let (header, security) = (nth(message, 1), take(nth(message, 2)).0);
            if !nth(security, 0).is_empty() {
                let _ = tell.send(nth(security, 5).to_vec());
                continue;
            }
            let request = nth(nth(message, 3), 2);
            let found = put(SEQUENCE, &[&put(OBJECT, &[UNKNOWN]), &put(COUNTER, &[&[1]])]);
            let zero = put(INTEGER, &[&[0]]);
            let id = put(INTEGER, &[nth(request, 0)]);
            let report = put(REPORT, &[&id, &zero, &zero, &put(SEQUENCE, &[&found])]);
            let scope = put(SEQUENCE, &[&put(BYTES, &[ENGINE]), &put(BYTES, &[]), &report]);
            let none = put(BYTES, &[]);
            let one = put(INTEGER, &[&[1]]);
            let engine = put(BYTES, &[ENGINE]);
            let security = put(SEQUENCE, &[&engine, &one, &one, &none, &none, &none]);
            let header = put(
                SEQUENCE,
                &[
                    &put(INTEGER, &[nth(header, 0)]),
                    &put(INTEGER, &[&[0, 0xff, 0xe3]]),
                    &put(BYTES, &[&[0]]),
                    &put(INTEGER, &[&[3]]),
                ],
            );
            let version = put(INTEGER, &[&[3]]);
            let response = put(SEQUENCE, &[&version, &header, &put(BYTES, &[&security]), &scope]);
            let _ = socket.send_to(&response, from);
        }
    });
    (port, told)
}

#[test]
fn snmp_messages_have_unique_encryption_numbers() {
    let (port, told) = agent();
    let php = format!(
        "Samovar\\checkpoint();
         $s = new SNMP(SNMP::VERSION_3, '127.0.0.1:{port}', 'ann', 200000, 0);
         $s->setSecurity('authPriv', 'SHA', 'secretsecret', 'AES', 'secretsecret');
         @$s->get('1.3.6.1.2.1.1.1.0'); echo 'asked';"
    );
    let server = script(&php).extensions(&["snmp"]).start();
    let mut numbers = Vec::new();
    for _ in 0..4 {
        // On a busy machine the client may time out before it knows the agent's ID.
        let number = eventually("an encrypted message", || {
            assert_eq!(server.get("/").text(), "asked", "{}", server.log());
            told.recv_timeout(AGENT_WAIT).ok()
        });
        assert_eq!(number.len(), 8, "encrypted");
        assert!(!numbers.contains(&number), "{number:02x?} again: {numbers:02x?}");
        numbers.push(number);
    }
    server.stop();
}
