//! The thread that waits for messages of a channel.

use crate::address::Options;
use crate::connection::{Connection, append};
use crate::error::Error;
use crate::reply::Reply;
use std::time::{Duration, Instant};

/// Pause after the connection has failed.
const PAUSE: Duration = Duration::from_secs(1);
/// Maximum time without a message; then the thread checks that the connection works.
const SILENCE_MAX: Duration = Duration::from_secs(20);

/// Starts a thread that calls `heard` with each message of the channel, until the process ends.
/// Messages may get lost: the caller looks from time to time.
pub fn listen(
    options: Options,
    channel: Vec<u8>,
    heard: impl Fn(&[u8]) + Send + 'static,
) -> std::io::Result<()> {
    let thread = std::thread::Builder::new().name("redis".into());
    thread.spawn(move || {
        loop {
            // Requests to the same Redis report the error.
            let _ = serve(&options, &channel, &heard);
            // There may have been messages.
            heard(b"");
            std::thread::sleep(PAUSE);
        }
    })?;
    Ok(())
}

/// Returns only when the connection has failed.
fn serve(options: &Options, channel: &[u8], heard: &impl Fn(&[u8])) -> Result<(), Error> {
    let mut connection = Connection::open(options)?;
    let mut request = Vec::new();
    append(&mut request, &[b"SUBSCRIBE", channel]);
    let until = Instant::now() + options.wait_limit;
    for reply in connection.exchange(&request, 1, until)? {
        connection.check(reply)?;
    }
    let mut ping = Vec::new();
    append(&mut ping, &["PING"]);
    loop {
        if let Some(message) = connection.wait_for_message(SILENCE_MAX)? {
            hear(&message, heard);
            continue;
        }
        let until = Instant::now() + options.wait_limit;
        for reply in connection.exchange(&ping, 1, until)? {
            hear(&reply, heard);
        }
    }
}

/// A message is a list: its kind, the channel, its text. The reply to PING has another kind.
fn hear(message: &Reply, heard: &impl Fn(&[u8])) {
    if let Some([Reply::Text(kind), _, Reply::Text(text)]) = message.list()
        && kind == b"message"
    {
        heard(text);
    }
}
