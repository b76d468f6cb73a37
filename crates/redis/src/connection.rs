//! A connection: commands in a pipeline, and their replies.

use crate::address::Options;
use crate::error::Error;
use crate::reply::{self, Malformed, Reply};
use crate::stream::Stream;
use std::io::{self, BufReader, Write as _};
use std::time::{Duration, Instant};

/// Length of the buffer for replies.
const BUFFER_BYTES: usize = 64 << 10;
/// Length of a part of a request; each part has a wait of its own.
const PART_BYTES: usize = 1 << 20;

/// A connection that is authenticated and has its database.
pub(crate) struct Connection {
    stream: BufReader<Stream>,
    address: String,
    wait_limit: Duration,
}

impl Connection {
    pub(crate) fn open(options: &Options) -> Result<Connection, Error> {
        let address = options.address.to_string();
        let failed = |source| Error::Connection { address: address.clone(), source };
        let stream = Stream::open(options).map_err(failed)?;
        let stream = BufReader::with_capacity(BUFFER_BYTES, stream);
        let wait_limit = options.wait_limit;
        let mut connection = Connection { stream, address, wait_limit };
        let mut request = Vec::new();
        let mut count = 0;
        let (user, password) = (&options.address.user, &options.password);
        if !password.is_empty() {
            count += 1;
            match &**user {
                "" => append(&mut request, &["AUTH", password]),
                user => append(&mut request, &["AUTH", user, password]),
            }
        }
        if options.address.database > 0 {
            count += 1;
            append(&mut request, &["SELECT", &options.address.database.to_string()]);
        }
        for reply in connection.exchange(&request, count, Instant::now() + wait_limit)? {
            connection.check(reply)?;
        }
        Ok(connection)
    }

    /// Returns the reply, unless it is an error.
    pub(crate) fn check(&self, reply: Reply) -> Result<Reply, Error> {
        match reply {
            Reply::Error(text) => {
                Err(Error::Refused { address: self.address.clone(), text: printable(&text) })
            }
            reply => Ok(reply),
        }
    }

    /// Sends encoded commands, and reads their replies. Waits until `until` at most.
    pub(crate) fn exchange(
        &mut self,
        request: &[u8],
        replies: usize,
        until: Instant,
    ) -> Result<Vec<Reply>, Error> {
        let mut exchange = || -> io::Result<Vec<Reply>> {
            for part in request.chunks(PART_BYTES) {
                self.stream.get_ref().limit_waits(rest(until, self.wait_limit)?)?;
                self.stream.get_mut().write_all(part)?;
            }
            self.stream.get_mut().flush()?;
            let mut all = Vec::with_capacity(replies);
            for _ in 0..replies {
                self.stream.get_ref().limit_waits(rest(until, self.wait_limit)?)?;
                all.push(reply::read(&mut self.stream)?);
            }
            Ok(all)
        };
        exchange().map_err(|source| self.failed(source))
    }

    /// Waits for a message for at most this time. `None`: there was none.
    pub(crate) fn wait_for_message(&mut self, limit: Duration) -> Result<Option<Reply>, Error> {
        let wait = |stream: &mut BufReader<Stream>| -> io::Result<Reply> {
            stream.get_ref().limit_waits(limit)?;
            reply::read(stream)
        };
        // If a part of a message was read, the next one is invalid, and the connection ends.
        match wait(&mut self.stream) {
            Ok(reply) => Ok(Some(reply)),
            Err(error)
                if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) =>
            {
                Ok(None)
            }
            Err(error) => Err(self.failed(error)),
        }
    }

    fn failed(&self, source: io::Error) -> Error {
        let address = self.address.clone();
        let malformed = source.get_ref().and_then(|inner| inner.downcast_ref::<Malformed>());
        if let Some(Malformed(why)) = malformed {
            return Error::Invalid { address, why };
        }
        Error::Connection { address, source }
    }
}

/// Returns the time for the next step.
fn rest(until: Instant, step: Duration) -> io::Result<Duration> {
    let rest = until.saturating_duration_since(Instant::now());
    if rest.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(rest.min(step)) }
}

/// Removes control characters, which must not reach a log.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(300).collect()
}

/// Appends a command.
pub(crate) fn append(to: &mut Vec<u8>, words: &[impl AsRef<[u8]>]) {
    // Writing to memory cannot fail.
    let _ = write!(to, "*{}\r\n", words.len());
    for word in words {
        let word = word.as_ref();
        let _ = write!(to, "${}\r\n", word.len());
        to.extend_from_slice(word);
        to.extend_from_slice(b"\r\n");
    }
}
