//! A command's end of the control socket: asks, and says why there is no answer.

use anyhow::{Context, Result, bail};
use samovar_wire::Request;
use serde::de::DeserializeOwned;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// How long `status` and `stop` wait for an answer.
pub(crate) const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// What a server says, without what would steer a terminal: root may ask one that is not its own.
pub(crate) fn printable(text: &str) -> String {
    text.chars().filter(|c| *c == '\n' || !c.is_control()).collect()
}

/// Asks the server at `path`; returns its line, which comes within `limit`.
pub(crate) fn ask(path: &Path, request: &Request, limit: Duration) -> Result<String> {
    let mut server = UnixStream::connect(path).map_err(|error| unreachable(path, &error))?;
    server.set_read_timeout(Some(limit))?;
    writeln!(server, "{request}").map_err(|error| unreachable(path, &error))?;
    let mut line = String::new();
    let read = BufReader::new(server).read_line(&mut line);
    match read {
        Ok(n) if n > 0 => Ok(printable(&line)),
        // It ends, or has let us go.
        Ok(_) => bail!("the server at `{}` did not answer\nhint: ask again", path.display()),
        Err(error) => Err(error).with_context(|| {
            let seconds = limit.as_secs();
            format!("the server at `{}` did not answer within {seconds} s", path.display())
        }),
    }
}

fn unreachable(path: &Path, error: &io::Error) -> anyhow::Error {
    let hint = match error.kind() {
        io::ErrorKind::PermissionDenied => match path.metadata() {
            Ok(socket) => format!(
                "it is the server of user {0}, which that user and root may ask: \
                 `sudo -u '#{0}' samovar …`",
                socket.uid()
            ),
            Err(_) => "its folder is another user's, which that user and root may ask".to_owned(),
        },
        io::ErrorKind::ConnectionRefused => {
            "its server has ended without removing it; is another running?".to_owned()
        }
        _ => "is it running? `--control SOCKET` names another".to_owned(),
    };
    anyhow::anyhow!("cannot reach the server at `{}`: {error}\nhint: {hint}", path.display())
}

/// The answer, of a server of the same version.
pub(crate) fn understand<T: DeserializeOwned>(line: &str) -> Result<T> {
    serde_json::from_str(line).context("the server's answer is not understood")
}
