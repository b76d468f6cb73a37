//! Thread of the listener: connections, their limits, the end.

use crate::access::Access;
use crate::arrivals::{ARRIVALS_MAX, Arrivals, Arriving};
use crate::host::Host;
use crate::live::STREAMS_MAX;
use crate::pages;
use crate::query::Query;
use crate::reader::{Reader, Unread};
use crate::response::{self, AdminResponse};
use crate::sources::Sources;
use http::{Method, Request, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use samovar_insight::Insight;
use std::cell::RefCell;
use std::convert::Infallible;
use std::net::TcpListener;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::{LocalSet, spawn_local};

/// Maximum number of requests for pages at a time. Further ones get 503. Health checks are not
/// counted.
const PAGES_MAX: usize = 64;
/// Number of descriptors that the listener uses for connections.
pub const CONNECTIONS_MAX: usize = PAGES_MAX + ARRIVALS_MAX;
/// Timeout for the head of a request.
const HEAD_LIMIT: Duration = Duration::from_secs(3);
/// Timeout for the connection of a health check, from the accept to its end.
const HEALTH_LIMIT: Duration = Duration::from_secs(6);
/// Timeout for a whole connection: its request, its response, and the sending.
const RESPONSE_LIMIT: Duration = Duration::from_mins(1);
/// Maximum time for connections that were accepted before another server takes over the sockets. A
/// live page then reconnects to that server.
const LEAVE_LIMIT: Duration = Duration::from_secs(2);
/// Interval at which [`Admin::wait_until_closed`] checks whether the listeners are closed.
const LOOK: Duration = Duration::from_millis(1);
/// Pause after an error of accept, so that repeated errors do not use a whole core.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Error at the start of the listener.
#[derive(Debug, thiserror::Error)]
#[error("cannot start the admin listener: {0}")]
pub struct AdminError(#[from] std::io::Error);

/// A running listener. Dropping it ends the listener.
#[derive(Debug)]
pub struct Admin {
    phase: watch::Sender<Phase>,
    /// Whether its listening sockets are closed.
    is_closed: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Phase of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Another server accepts on its sockets.
    Held,
    Serving,
    /// Another server accepts on its sockets again. Connections that were accepted before are still
    /// served.
    Left,
    Ended,
}

impl Admin {
    /// Starts serving on bound sockets, in a thread of its own.
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

    /// Like [`Self::start`], but accepts no connection until [`Self::begin`].
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

    /// Accepts connections from now on.
    pub fn begin(&self) {
        self.phase.send_replace(Phase::Serving);
    }

    /// Accepts no connections from now on: another server does. Returns at once.
    pub fn leave(&self) {
        self.phase.send_replace(Phase::Left);
    }

    /// Waits until the listening sockets are closed, for at most `limit`. Returns false if they are
    /// not closed by then.
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

    /// Ends the listener and all connections.
    pub fn end(&self) {
        self.phase.send_replace(Phase::Ended);
    }
}

impl Drop for Admin {
    fn drop(&mut self) {
        self.end();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was already reported by the panic hook.
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
    // A dropped sender also ends the listener.
    if phase.wait_for(|phase| *phase != Phase::Held).await.is_err() {
        return;
    }
    let local = LocalSet::new();
    let room = Room { pages: Arc::new(Semaphore::new(PAGES_MAX)), arrivals: Rc::default() };
    let mut accepting = Vec::new();
    for listener in listeners {
        let (service, room) = (Arc::clone(&service), room.clone());
        accepting.push(local.spawn_local(async move {
            match tokio::net::TcpListener::from_std(listener) {
                Ok(listener) => accept(listener, service, room).await,
                Err(error) => tracing::error!(%error, "admin listener failed"),
            }
        }));
    }
    let whole = async {
        // A dropped sender also ends the listener.
        let _ = phase.wait_for(|phase| *phase != Phase::Serving).await;
        for task in accepting {
            task.abort();
            // Waits until the listener is closed. The result is always an "aborted" error.
            let _ = task.await;
        }
        is_closed.store(true, Ordering::Release);
        let rest = room.wait_until_empty();
        tokio::select! {
            _ = phase.wait_for(|phase| *phase == Phase::Ended) => {}
            // All connections are finished, or the timeout has passed.
            _ = tokio::time::timeout(LEAVE_LIMIT, rest) => {}
        }
    };
    local.run_until(whole).await;
}

struct Service {
    access: Access,
    sources: Arc<Sources>,
    reader: Reader,
    /// Permits for streams of page updates.
    streams: Arc<Semaphore>,
}

/// Budgets of connections.
#[derive(Clone)]
struct Room {
    /// Connections that request pages.
    pages: Arc<Semaphore>,
    /// All other connections.
    arrivals: Rc<Arrivals>,
}

impl Room {
    /// Waits until no connection is left.
    async fn wait_until_empty(&self) {
        while !self.arrivals.is_empty() {
            tokio::time::sleep(LOOK).await;
        }
        // The semaphore is never closed.
        let _ = self.pages.acquire_many(PAGES_MAX as u32).await;
    }
}

/// Budget that a connection uses.
enum Budget {
    Arriving { _until_dropped: Arriving },
    Page { _permit: OwnedSemaphorePermit },
}

/// Accepts connections at once, so that none waits for others that send nothing.
async fn accept(listener: tokio::net::TcpListener, service: Arc<Service>, room: Room) {
    loop {
        match listener.accept().await {
            Ok((stream, client)) => {
                // Counted here, so that a burst of connections is limited, too.
                let arriving = room.arrivals.enter(client.ip());
                let (service, pages) = (Arc::clone(&service), Arc::clone(&room.pages));
                spawn_local(converse(stream, service, arriving, pages));
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// Serves one connection, which has one request. The request decides which budget it uses.
async fn converse(
    stream: TcpStream,
    service: Arc<Service>,
    arriving: Arriving,
    pages: Arc<Semaphore>,
) {
    let eviction = arriving.eviction();
    let budget = Rc::new(RefCell::new(Budget::Arriving { _until_dropped: arriving }));
    let for_request = Rc::clone(&budget);
    let response = service_fn(move |request: Request<Incoming>| {
        let has_room = pages::is_health(request.uri().path()) || enter_page(&for_request, &pages);
        let service = Arc::clone(&service);
        async move {
            let busy = || unread(Unread::Busy);
            Ok::<_, Infallible>(if has_room { service.respond(&request).await } else { busy() })
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_LIMIT)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), response);
    let not_page_in_time = async {
        tokio::time::sleep(HEALTH_LIMIT).await;
        if matches!(*budget.borrow(), Budget::Page { .. }) {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        // Errors and timeouts of one client are of no interest.
        _ = tokio::time::timeout(RESPONSE_LIMIT, connection) => {}
        () = not_page_in_time => {}
        () = eviction.wait() => {}
    }
}

/// Moves a connection to the budget of pages. Returns false if it is used up.
fn enter_page(budget: &RefCell<Budget>, pages: &Arc<Semaphore>) -> bool {
    let Ok(permit) = Arc::clone(pages).try_acquire_owned() else { return false };
    budget.replace(Budget::Page { _permit: permit });
    true
}

impl Service {
    async fn respond(&self, request: &Request<Incoming>) -> AdminResponse {
        let path = request.uri().path();
        if let Err(denied) = self.access.check(request.headers(), pages::needs_token(path)) {
            return denied.respond();
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return response::text(
                StatusCode::METHOD_NOT_ALLOWED,
                "method not allowed: use GET or HEAD\n",
            );
        }
        let query = Query::new(request.uri().query().unwrap_or_default());
        if path == "/live" {
            return self.live(&query);
        }
        if let Some(response) = pages::at_once(request.headers(), (path, &query), &self.sources) {
            return response;
        }
        let path = path.to_owned();
        let asked = self.reader.ask(move |sources| pages::made(&path, &query, sources));
        let made = match asked {
            Ok(told) => told.await.map_err(|_| Unread::Broken),
            Err(why) => Err(why),
        };
        made.unwrap_or_else(unread)
    }

    fn live(&self, query: &Query) -> AdminResponse {
        let Ok(permit) = Arc::clone(&self.streams).try_acquire_owned() else {
            return response::text(StatusCode::SERVICE_UNAVAILABLE, "too many live pages\n");
        };
        let of = query.get("of").unwrap_or_default();
        pages::live(&of, self.reader.clone(), permit)
    }
}

fn unread(why: Unread) -> AdminResponse {
    match why {
        Unread::Busy => {
            response::text(StatusCode::SERVICE_UNAVAILABLE, "too many concurrent requests\n")
        }
        Unread::Broken => {
            let said = "cannot create the page: see the server's log\n";
            response::text(StatusCode::INTERNAL_SERVER_ERROR, said)
        }
    }
}

#[cfg(test)]
mod tests;
