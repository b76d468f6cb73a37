//! The corpus without a proxy.

use super::corpus::{Shape, shapes};
use super::{END, Noted};
use samovar_testkit::http::Client;

/// Sends the shape and a request after it, and reads to the end of the connection. Returns the
/// received statuses.
fn statuses(noted: &Noted, shape: &Shape, cut: usize) -> Vec<u16> {
    let mut client = noted.server.client();
    let bytes = [&shape.bytes[..], END.as_bytes()].concat();
    for piece in bytes.chunks(cut) {
        // The server may have closed the connection.
        if client.try_send(piece).is_err() {
            break;
        }
    }
    read(&mut client)
}

pub(super) fn read(client: &mut Client) -> Vec<u16> {
    let mut statuses = Vec::new();
    while let Ok(response) = client.try_read(false) {
        statuses.push(response.status);
    }
    statuses
}

#[test]
fn each_http1_shape_is_rejected_or_seen_as_intended() {
    let noted = Noted::start(|start| start);
    let mut wrong = Vec::new();
    for shape in shapes() {
        // In one packet, and in small ones: the result does not depend on the segmentation.
        for cut in [usize::MAX, 7] {
            let statuses = statuses(&noted, &shape, cut);
            let seen = noted.take();
            let is_right = match &shape.seen {
                None => seen.is_empty() && statuses.last().is_none_or(|s| (400..600).contains(s)),
                Some(expected) => {
                    let expected: Vec<String> = expected.iter().map(ToString::to_string).collect();
                    let behind = seen.strip_prefix(&expected[..]);
                    behind.is_some_and(|rest| rest.is_empty() || rest == ["GET /end"])
                        && statuses.iter().all(|status| matches!(status, 200 | 405))
                }
            };
            if !is_right {
                wrong.push(format!("{} (by {cut}): {statuses:?}, seen {seen:?}", shape.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{} shapes:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(noted.server.get("/after").text(), "seen");
}
