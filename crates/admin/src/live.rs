//! Repeated updates of a page as server-sent events: `/live?of=` and the page's address.
//!
//! The browser puts the changed parts into the displayed page (`assets/live.js`). A stream ends
//! after a while and the browser opens another one. So a client that disappeared without closing
//! its connection holds a permit only for that long.

use crate::query::Query;
use crate::reader::{Reader, Unread};
use crate::sources::Sources;
use bytes::Bytes;
use hyper::body::{Body, Frame};
use std::convert::Infallible;
use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::{Interval, MissedTickBehavior};

/// Maximum number of streams at a time.
pub(crate) const STREAMS_MAX: usize = 16;
/// Interval between two updates.
const STEP: Duration = Duration::from_secs(2);
/// Number of updates in a stream; the connection's own timeout is a minute.
const STEPS_MAX: u32 = 25;

/// Renders the main part of a page; `None` if there is no page with this path and range.
pub(crate) type Renderer = fn(&str, &Query, &Sources) -> Option<String>;

/// Body of a stream.
pub(crate) struct Live {
    reader: Reader,
    renderer: Renderer,
    /// The page that is being rendered.
    awaited: Option<oneshot::Receiver<Option<String>>>,
    path: String,
    query: Query,
    interval: Interval,
    steps_left: u32,
    _permit: OwnedSemaphorePermit,
}

impl Live {
    /// Creates a stream of a page, rendered by `renderer`.
    pub(crate) fn new(
        (path, query): (&str, Query),
        renderer: Renderer,
        reader: Reader,
        permit: OwnedSemaphorePermit,
    ) -> Live {
        let mut interval = tokio::time::interval(STEP);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Live {
            reader,
            renderer,
            awaited: None,
            path: path.to_owned(),
            query,
            interval,
            steps_left: STEPS_MAX,
            _permit: permit,
        }
    }
}

impl Live {
    /// Requests the page from the reader.
    fn next(&self) -> Result<oneshot::Receiver<Option<String>>, Unread> {
        let (path, query, renderer) = (self.path.clone(), self.query.clone(), self.renderer);
        self.reader.ask(move |sources| {
            let page = renderer(&path, &query, sources);
            page.map(|page| event(&samovar_log::printable_lines(&page)))
        })
    }
}

impl Body for Live {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let mut awaited = match self.awaited.take() {
            Some(awaited) => awaited,
            None if self.steps_left == 0 => return Poll::Ready(None),
            None => {
                ready!(self.interval.poll_tick(context));
                self.steps_left -= 1;
                match self.next() {
                    Ok(awaited) => awaited,
                    // The browser opens another stream.
                    Err(_) => return Poll::Ready(None),
                }
            }
        };
        let Poll::Ready(made) = Pin::new(&mut awaited).poll(context) else {
            self.awaited = Some(awaited);
            return Poll::Pending;
        };
        let event = made.ok().flatten();
        Poll::Ready(event.map(|event| Ok(Frame::data(event.into()))))
    }
}

/// Encodes a page as an event. Line ends in names from outside cannot end the event.
fn event(page: &str) -> String {
    let mut event = String::with_capacity(page.len() + 64);
    event.push_str("retry: 500\nevent: page\n");
    for line in page.split(['\n', '\r']) {
        event.push_str("data: ");
        event.push_str(line);
        event.push('\n');
    }
    event.push('\n');
    event
}

#[cfg(test)]
mod tests {
    use super::event;

    #[test]
    fn line_end_in_name_does_not_end_event() {
        let found = event("<p>a\n\nevent: evil\rdata: x\r\nid: 7</p>");
        let lines = [
            "retry: 500",
            "event: page",
            "data: <p>a",
            "data: ",
            "data: event: evil",
            "data: data: x",
        ];
        assert!(found.starts_with(&lines.join("\n")), "{found}");
        let body =
            found.strip_prefix("retry: 500\nevent: page\n").unwrap().strip_suffix("\n\n").unwrap();
        assert!(body.lines().all(|line| line.starts_with("data: ")), "{found}");
        assert!(!found.contains('\r'));
    }
}
