//! Receiver of the requests of an `[[intake]]`. The server stores them as jobs.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

/// A request to be stored as a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntakeRequest {
    /// Name of the queue.
    pub queue: String,
    /// Method.
    pub method: String,
    /// Path, decoded and normalized.
    pub path: Vec<u8>,
    /// Query as received, without `?`.
    pub query: Vec<u8>,
    /// The headers that the intake selects, with their names in lower case.
    pub headers: Vec<(String, Vec<u8>)>,
    /// Body.
    pub body: Vec<u8>,
    /// Address of the client.
    pub client: IpAddr,
    /// `traceparent` of the request's span, or that of a trusted client; empty: none.
    pub traceparent: String,
}

/// Why a request is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntakeError {
    /// Too many requests wait for the store, or the store has no room.
    Busy,
    /// It is too large for a job.
    TooLarge,
    /// The server has no such queue.
    NoQueue,
}

/// Called once, on any thread, when the job is durable or refused.
pub type IntakeDone = Box<dyn FnOnce(Result<(), IntakeError>) + Send>;

/// Stores requests. Must not wait.
pub type JobIntake = Box<dyn Fn(IntakeRequest, IntakeDone) + Send + Sync>;

/// Place of the receiver, which is set before the first request. Cheap to clone.
#[derive(Clone, Default)]
pub struct IntakeCell(Arc<OnceLock<JobIntake>>);

impl std::fmt::Debug for IntakeCell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IntakeCell").field("is_set", &self.0.get().is_some()).finish()
    }
}

impl IntakeCell {
    /// Sets the receiver. Only the first call has an effect.
    pub fn set(&self, intake: JobIntake) {
        let _only_once = self.0.set(intake);
    }

    pub(crate) fn get(&self) -> Option<&JobIntake> {
        self.0.get()
    }
}
