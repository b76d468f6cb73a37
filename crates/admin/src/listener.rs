//! The thread: connections, their limits, the end.

use crate::access::Access;
use crate::answer::{self, Answer};
use crate::live::{Live, STREAMS_MAX};
use crate::query::Query;
use crate::reader::{Reader, Unread};
use crate::{Host, Sources, pages};
use http::{Method, Request, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use samovar_insight::Insight;
use std::convert::Infallible;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::{LocalSet, spawn_local};

/// Connections at once; more wait in the listener's queue.
const CONNECTIONS_MAX: usize = 64;
/// How long a client may take for a request's head.
const HEAD_LIMIT: Duration = Duration::from_secs(10);
/// How long an answer may take to be read.
const ANSWER_LIMIT: Duration = Duration::from_mins(1);
/// How long those may take who have come before another server answers in this one's place: a page that is live begins again there.
const LEAVE_LIMIT: Duration = Duration::from_secs(2);
/// How often somebody who waits for the end of the listeners looks whether it has come.
const LOOK: Duration = Duration::from_millis(1);
/// How long to wait after an error of accept, so that no loop of them takes the core.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Why there is no listener.
#[derive(Debug, thiserror::Error)]
#[error("cannot start the admin listener: {0}")]
pub struct AdminError(#[from] std::io::Error);

/// A running listener. Ends when dropped.
#[derive(Debug)]
pub struct Admin {
    phase: watch::Sender<Phase>,
    /// Its listeners are closed.
    is_closed: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// How far a listener is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Another server answers on its sockets.
    Held,
    Serving,
    /// Another one does so again. Those are answered yet who have come before.
    Left,
    Ended,
}

impl Admin {
    /// Answers on bound sockets, in a thread of its own.
    pub fn start(
        listeners: Vec<TcpListener>,
        access: Access,
        host: Box<dyn Host>,
        insight: Option<Arc<Insight>>,
    ) -> Result<Admin, AdminError> {
        let admin = Admin::hold(listeners, access, host, insight)?;
        admin.begin();
        Ok(admin)
    }

    /// As [`Self::start`], but answers nobody until [`Self::begin`].
    pub fn hold(
        listeners: Vec<TcpListener>,
        access: Access,
        host: Box<dyn Host>,
        insight: Option<Arc<Insight>>,
    ) -> Result<Admin, AdminError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (phase, changes) = watch::channel(Phase::Held);
        let is_closed = Arc::new(AtomicBool::new(false));
        let closed = Arc::clone(&is_closed);
        for listener in &listeners {
            listener.set_nonblocking(true)?;
        }
        let sources = Arc::new(Sources::new(host, insight));
        let service = Arc::new(Service {
            access,
            reader: Reader::start(Arc::clone(&sources))?,
            sources,
            streams: Arc::new(Semaphore::new(STREAMS_MAX)),
        });
        let thread = std::thread::Builder::new()
            .name("admin".to_owned())
            .spawn(move || runtime.block_on(serve_until(changes, listeners, service, &closed)))?;
        Ok(Admin { phase, is_closed, thread: Some(thread) })
    }

    /// Answers from now on.
    pub fn begin(&self) {
        self.phase.send_replace(Phase::Serving);
    }

    /// Answers nobody who comes from now on: another server does. Returns at once.
    pub fn leave(&self) {
        self.phase.send_replace(Phase::Left);
    }

    /// Waits until that is so, for at most `limit`; false: somebody may be answered yet.
    pub fn wait_until_closed(&self, limit: Duration) -> bool {
        let since = Instant::now();
        while !self.is_closed.load(Ordering::Acquire) {
            if since.elapsed() > limit {
                return false;
            }
            std::thread::sleep(LOOK);
        }
        true
    }

    /// Answers nobody any more.
    pub fn end(&self) {
        self.phase.send_replace(Phase::Ended);
    }
}

impl Drop for Admin {
    fn drop(&mut self) {
        self.end();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been told by the panic hook.
            let _ = thread.join();
        }
    }
}

async fn serve_until(
    mut phase: watch::Receiver<Phase>,
    listeners: Vec<TcpListener>,
    service: Arc<Service>,
    is_closed: &AtomicBool,
) {
    // The sender's end is an end too.
    if phase.wait_for(|phase| *phase != Phase::Held).await.is_err() {
        return;
    }
    let local = LocalSet::new();
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut accepting = Vec::new();
    for listener in listeners {
        let (service, room) = (Arc::clone(&service), Arc::clone(&room));
        accepting.push(local.spawn_local(async move {
            match tokio::net::TcpListener::from_std(listener) {
                Ok(listener) => accept(listener, service, room).await,
                Err(error) => tracing::error!(%error, "the admin listener cannot be used"),
            }
        }));
    }
    let whole = async {
        // The sender's end is an end too.
        let _ = phase.wait_for(|phase| *phase != Phase::Serving).await;
        for task in accepting {
            task.abort();
            // Waits until the listener is closed; "aborted" is what it says.
            let _ = task.await;
        }
        is_closed.store(true, Ordering::Release);
        let rest = room.acquire_many(CONNECTIONS_MAX as u32);
        tokio::select! {
            _ = phase.wait_for(|phase| *phase == Phase::Ended) => {}
            // All of them have been answered, or that has taken them too long.
            _ = tokio::time::timeout(LEAVE_LIMIT, rest) => {}
        }
    };
    local.run_until(whole).await;
}

struct Service {
    access: Access,
    sources: Arc<Sources>,
    reader: Reader,
    /// Places for pages that are sent again and again.
    streams: Arc<Semaphore>,
}

async fn accept(listener: tokio::net::TcpListener, service: Arc<Service>, room: Arc<Semaphore>) {
    loop {
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                spawn_local(converse(stream, Arc::clone(&service), permit));
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

async fn converse(stream: TcpStream, service: Arc<Service>, _permit: OwnedSemaphorePermit) {
    let answer = service_fn(move |request| {
        let service = Arc::clone(&service);
        async move { Ok::<_, Infallible>(service.answer(&request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_LIMIT)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), answer);
    // Neither who is too slow nor who left is anybody's trouble but his own.
    let _ = tokio::time::timeout(ANSWER_LIMIT, connection).await;
}

impl Service {
    async fn answer(&self, request: &Request<Incoming>) -> Answer {
        let path = request.uri().path();
        if let Err(denied) = self.access.check(request.headers(), pages::needs_token(path)) {
            return denied.answer();
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return answer::text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n");
        }
        let query = Query::new(request.uri().query().unwrap_or_default());
        if path == "/live" {
            return self.live(&query);
        }
        if let Some(answer) = pages::at_once(request.headers(), (path, &query), &self.sources) {
            return answer;
        }
        let path = path.to_owned();
        let asked = self.reader.ask(move |sources| pages::made(&path, &query, sources));
        let made = match asked {
            Ok(told) => told.await.map_err(|_| Unread::Broken),
            Err(why) => Err(why),
        };
        made.unwrap_or_else(unread)
    }

    fn live(&self, query: &Query) -> Answer {
        let Ok(permit) = Arc::clone(&self.streams).try_acquire_owned() else {
            return answer::text(StatusCode::SERVICE_UNAVAILABLE, "too many pages are live\n");
        };
        let of = query.get("of").unwrap_or_default();
        Live::new(&of, self.reader.clone(), permit).map_or_else(answer::not_found, answer::live)
    }
}

fn unread(why: Unread) -> Answer {
    match why {
        Unread::Busy => {
            answer::text(StatusCode::SERVICE_UNAVAILABLE, "too many pages are asked for\n")
        }
        Unread::Broken => {
            let said = "the page could not be made: the server's log says why\n";
            answer::text(StatusCode::INTERNAL_SERVER_ERROR, said)
        }
    }
}

#[cfg(test)]
mod tests;
