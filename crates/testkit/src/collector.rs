//! A collector with scripted responses: sends the next response from its list for each request,
//! then success.

use crate::wait::eventually;
use flate2::read::GzDecoder;
use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Reaction to a request.
#[derive(Clone, Debug)]
pub enum CollectorReply {
    /// Status, further header lines, body.
    With(u16, &'static str, Vec<u8>),
    /// Bytes that are not HTTP.
    Garbage,
    /// No response, forever.
    Hang,
    /// Closes the connection.
    Close,
}

/// A received request.
#[derive(Clone, Debug)]
pub struct Posted {
    /// Head in lower case.
    pub head: String,
    /// Body, decompressed.
    pub body: Vec<u8>,
    /// Time of arrival.
    pub at: Instant,
}

#[derive(Debug, Default)]
struct Story {
    responses: VecDeque<CollectorReply>,
    posted: Vec<Posted>,
}

/// A collector that listens on loopback.
#[derive(Debug)]
pub struct Collector {
    /// `http://127.0.0.1:PORT`.
    pub endpoint: String,
    story: Arc<Mutex<Story>>,
}

impl Collector {
    /// Starts a collector with these responses.
    pub fn start(responses: impl IntoIterator<Item = CollectorReply>) -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
        let responses = responses.into_iter().collect();
        let story = Arc::new(Mutex::new(Story { responses, posted: Vec::new() }));
        let own = Arc::clone(&story);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let own = Arc::clone(&own);
                std::thread::spawn(move || serve(stream, &own));
            }
        });
        Collector { endpoint, story }
    }

    /// Requests received so far.
    pub fn posted(&self) -> Vec<Posted> {
        self.story.lock().expect("nobody panicked").posted.clone()
    }

    /// Waits for at least `count` requests and returns them.
    pub fn await_posted(&self, count: usize) -> Vec<Posted> {
        eventually("the collector is sent requests", || {
            Some(self.posted()).filter(|posted| posted.len() >= count)
        })
    }
}

fn serve(mut stream: TcpStream, story: &Mutex<Story>) {
    let mut reader = BufReader::new(stream.try_clone().expect("a socket"));
    while let Some(posted) = read(&mut reader) {
        let response = {
            let mut story = story.lock().expect("nobody panicked");
            story.posted.push(posted);
            story.responses.pop_front()
        };
        let bytes = match response.unwrap_or(CollectorReply::With(200, "", Vec::new())) {
            CollectorReply::With(status, lines, body) => {
                let length = body.len();
                let head =
                    format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\n{lines}\r\n");
                [head.into_bytes(), body].concat()
            }
            CollectorReply::Garbage => b"\x16\x03\x01 garbage\r\n\r\n".to_vec(),
            CollectorReply::Hang => {
                // Until the client gives up.
                let _ = reader.read_to_end(&mut Vec::new());
                return;
            }
            CollectorReply::Close => return,
        };
        if stream.write_all(&bytes).is_err() {
            return;
        }
    }
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Posted> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let head = head.to_ascii_lowercase();
    let length = head.split("content-length: ").nth(1)?.split("\r\n").next()?.parse().ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    if head.contains("content-encoding: gzip") {
        let mut whole = Vec::new();
        GzDecoder::new(&body[..]).read_to_end(&mut whole).expect("gzip");
        body = whole;
    }
    Some(Posted { head, body, at: Instant::now() })
}
