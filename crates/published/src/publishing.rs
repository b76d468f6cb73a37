//! Published values in the server: the publisher, the thread that serves requests, and the
//! descriptors that PHP processes inherit.

use crate::publisher::{Limits, Publisher};
use crate::region::RegionError;
use crate::service::Service;
use samovar_channel::RequestEnds;
use samovar_shared::Shared;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// The publisher and its socket.
#[derive(Clone, Debug)]
pub struct Publishing {
    publisher: Arc<Publisher>,
    server: Arc<OwnedFd>,
    others: Arc<OwnedFd>,
}

impl Publishing {
    /// Creates a publisher without values. Requests are served only after [`Self::start`]. `shared`
    /// holds the pins of the readers.
    pub fn new(shared: Shared, limits: Limits) -> Result<Publishing, RegionError> {
        let RequestEnds { server, others } = RequestEnds::new()?;
        let publisher = Arc::new(Publisher::new(shared, limits)?);
        Ok(Publishing { publisher, server: Arc::new(server), others: Arc::new(others) })
    }

    /// Starts the thread that serves requests. It ends with the process.
    pub fn start(&self) -> std::io::Result<()> {
        let (publisher, service) = (self.publisher.clone(), Service::new(self.server.try_clone()?));
        let run = move || service.run(&publisher);
        std::thread::Builder::new().name("publisher".into()).spawn(run).map(|_| ())
    }

    /// The publisher.
    pub fn publisher(&self) -> &Publisher {
        &self.publisher
    }

    /// The region's memory file, which all processes inherit.
    pub fn region(&self) -> BorrowedFd<'_> {
        self.publisher.file()
    }

    /// The socket to which PHP processes send their requests.
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.others.as_fd()
    }
}
