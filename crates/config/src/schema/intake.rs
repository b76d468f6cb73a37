//! `[[intake]]`: requests that the front stores as jobs, without PHP.

use crate::schema::console::Field;

/// Key of the tables.
pub(crate) const KEY: &str = "intake";
/// Maximum number of tables, of patterns per table, and of headers per table.
pub(crate) const TABLES_MAX: usize = 64;
pub(crate) const MATCHES_MAX: usize = 16;
pub(crate) const HEADERS_MAX: usize = 16;
/// A body must fit into the payload of a job, also with escapes.
pub(crate) const BODY_BYTES_MAX: u64 = 40 << 10;
pub(crate) const BODY_BYTES_DEFAULT: u64 = 16 << 10;
/// Methods that can be matched.
pub(crate) const METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];
/// Statuses of a response without a body.
pub(crate) const STATUSES: [u16; 4] = [200, 201, 202, 204];

/// One `[[intake]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intake {
    /// Methods and patterns of paths.
    pub matches: Vec<(String, String)>,
    /// Name of the queue.
    pub queue: String,
    /// Response to a stored request.
    pub response: IntakeResponse,
    /// Headers that are part of the job, in lower case.
    pub headers: Vec<String>,
    /// Maximum length of a body, in bytes.
    pub body_bytes_max: u64,
    /// Treatment of requests that cannot be stored now.
    pub overload: Overload,
}

/// Response to a stored request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntakeResponse {
    /// This status, without a body.
    Status(u16),
    /// A transparent image of one pixel.
    Gif,
}

/// Treatment of requests that cannot be stored now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overload {
    /// Status 503 with `Retry-After`.
    #[default]
    Reject,
    /// The usual response. The request is lost, and counted.
    Drop,
}

pub(crate) const OVERLOADS: [(&str, Overload); 2] =
    [("reject", Overload::Reject), ("drop", Overload::Drop)];

pub(crate) const FIELDS: [Field; 6] = [
    Field {
        key: "match",
        allowed: "a method and a path such as `\"POST /track\"` or `\"GET /pixel/*\"`, or an \
                  array of them",
        default: "none; required",
        doc: "Requests of the intake. Paths have the notation of a `[[location]]`",
    },
    Field {
        key: "queue",
        allowed: "the name of a `[[queue]]`",
        default: "none; required",
        doc: "Queue that gets a job for each request",
    },
    Field {
        key: "response",
        allowed: "`200`, `201`, `202`, `204`, `\"gif\"`",
        default: "`204`",
        doc: "Response: a status without a body, or a transparent image of one pixel",
    },
    Field {
        key: "headers",
        allowed: "an array of up to 16 names",
        default: "`[]`",
        doc: "Headers of the request that are part of the job",
    },
    Field {
        key: "body_bytes_max",
        allowed: "a size from 0 to 40K",
        default: "`16K`",
        doc: "Maximum length of a body; above: 413",
    },
    Field {
        key: "overload",
        allowed: "`reject`, `drop`",
        default: "`reject`",
        doc: "Treatment of requests that cannot be stored now: 503 with `Retry-After`, or the \
              usual response although the request is lost",
    },
];
