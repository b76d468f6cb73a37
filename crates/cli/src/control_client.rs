//! The command's end of the control socket: sends a request, and explains a missing response.

use anyhow::{Context, Result};
use samovar_wire::Request;
use serde::de::DeserializeOwned;
use std::fmt;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Timeout of `status` and `stop` for the response.
pub(crate) const RESPONSE_LIMIT: Duration = Duration::from_secs(5);

/// A request that reached the server, and has no response: whether it was carried out is unknown.
#[derive(Debug)]
pub(crate) struct Unanswered(String);

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unanswered {}

/// Makes a server's text safe for a terminal, because root may query a server of another user.
pub(crate) fn printable(text: &str) -> String {
    samovar_log::printable_lines(text).into_owned()
}

/// Returns the control socket: the given one, or that of the only server of this user.
pub(crate) fn path(given: Option<&PathBuf>) -> Result<PathBuf> {
    given.cloned().map_or_else(|| Ok(samovar_config::discover_control()?), Ok)
}

/// Sends a request to the server at `path`; returns its response line, which must arrive within
/// `limit`.
pub(crate) fn ask(path: &Path, request: &Request, limit: Duration) -> Result<String> {
    let mut server = UnixStream::connect(path).map_err(|error| unreachable(path, &error))?;
    server.set_read_timeout(Some(limit))?;
    writeln!(server, "{request}").map_err(|error| unreachable(path, &error))?;
    let mut line = String::new();
    let read = BufReader::new(server).read_line(&mut line);
    match read {
        Ok(n) if n > 0 => Ok(printable(&line)),
        // The server is ending, or it has closed this connection.
        Ok(_) => Err(Unanswered(format!(
            "the server at `{}` closed the connection without a response\nhint: try again",
            path.display()
        ))
        .into()),
        Err(error) => {
            let seconds = limit.as_secs();
            Err(Unanswered(format!(
                "the server at `{}` did not respond within {seconds} s: {error}",
                path.display()
            ))
            .into())
        }
    }
}

fn unreachable(path: &Path, error: &io::Error) -> anyhow::Error {
    let hint = match error.kind() {
        io::ErrorKind::PermissionDenied => match path.metadata() {
            Ok(socket) => format!(
                "the server belongs to user {0}; only that user and root may send commands: `sudo \
                 -u '#{0}' samovar …`",
                socket.uid()
            ),
            Err(_) => "the folder of the socket belongs to another user; only that user and root \
                       may send commands"
                .to_owned(),
        },
        io::ErrorKind::ConnectionRefused => {
            "the server exited without removing the socket; check whether another one is running"
                .to_owned()
        }
        _ => "check that the server is running; --control SOCKET selects another socket".to_owned(),
    };
    anyhow::anyhow!("cannot reach the server at `{}`: {error}\nhint: {hint}", path.display())
}

/// Parses the response of a server of the same version.
pub(crate) fn understand<T: DeserializeOwned>(line: &str) -> Result<T> {
    serde_json::from_str(line).context("cannot parse the server's response")
}
