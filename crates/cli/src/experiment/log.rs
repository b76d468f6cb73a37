//! A server's own figures of its requests: the lines of its access log, read while it runs.

use serde::Deserialize;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};
use std::process::ChildStdout;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

/// Maximum number of requests of one server.
const REQUESTS_MAX: usize = 1 << 20;
/// Maximum bytes of a line; the rest of a longer one is an invalid line.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// Figures of one request.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Served {
    pub(super) route: String,
    /// CPU time in the worker, ms; `None`: no worker ran it.
    pub(super) cpu_ms: Option<f64>,
}

/// A line of the log, as far as it is used.
#[derive(Deserialize)]
struct Line {
    request_id: String,
    #[serde(default)]
    route: String,
    cpu_ms: Option<f64>,
}

/// Timeout for the end of the log after that of the server: a process that it left may still have
/// the pipe.
const END_LIMIT: Duration = Duration::from_secs(10);

/// Reads on its own thread, so that the server never waits for this command.
#[derive(Debug)]
pub(super) struct RequestLog(Receiver<HashMap<String, Served>>);

impl RequestLog {
    pub(super) fn follow(output: ChildStdout) -> std::io::Result<RequestLog> {
        let (sender, receiver) = sync_channel(1);
        // The receiver may have been dropped after an error.
        let read = move || drop(sender.send(read(output)));
        std::thread::Builder::new().name("requests".to_owned()).spawn(read)?;
        Ok(RequestLog(receiver))
    }

    /// Returns the requests by id. The server must have ended.
    pub(super) fn finish(self) -> HashMap<String, Served> {
        self.0.recv_timeout(END_LIMIT).unwrap_or_default()
    }
}

fn read(output: impl Read) -> HashMap<String, Served> {
    let mut reader = BufReader::new(output);
    let mut all = HashMap::new();
    let mut line = Vec::new();
    while matches!(reader.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line), Ok(1..)) {
        if let Ok(found) = serde_json::from_slice::<Line>(&line)
            && all.len() < REQUESTS_MAX
        {
            let Line { request_id, route, cpu_ms } = found;
            let cpu_ms = cpu_ms.filter(|ms| ms.is_finite() && *ms >= 0.0);
            all.insert(request_id, Served { route, cpu_ms });
        }
        line.clear();
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_requests_are_read_and_others_ignored() {
        let long = "x".repeat(3 << 20);
        let text = format!(
            "{{\"request_id\":\"a\",\"cpu_ms\":1.5,\"route\":\"shop\"}}\nPHP output\n{{\"\n{long}\n\
             {{\"request_id\":\"b\"}}\n{{\"request_id\":\"c\",\"cpu_ms\":-1}}\n{{\"cpu_ms\":1}}"
        );
        let all = read(text.as_bytes());
        let served = |route: &str, cpu_ms| Served { route: route.to_owned(), cpu_ms };
        assert_eq!(all.get("a"), Some(&served("shop", Some(1.5))));
        assert_eq!(all.get("b"), Some(&served("", None)));
        assert_eq!((all.get("c"), all.len()), (Some(&served("", None)), 3));
    }
}
