//! supervisor ↔ template ↔ image process: the messages between them, and the start data of a
//! template.
//!
//! A message is one JSON document in one datagram of a `SOCK_SEQPACKET` pair ([`Socket`]), with at
//! most one file descriptor attached. The type of each end defines the messages in each direction:
//!
//! | from | to | message |
//! |---|---|---|
//! | supervisor | template | [`Order`] |
//! | template, and image process | supervisor | [`Event`] |
//! | template | image process | [`ImageOrder`] |
//! | image process | template | [`ImageWord`] |
//! | worker that traces | reader of call graphs | [`GraphNote`] |
//! | image process, and worker | reader that explains boots | [`LoadsNote`] |
//! | worker | server | [`Push`], answered by [`PushReply`] |
//! | `samovar test` | process that has booted the tests | [`TestOrder`] |
//! | process that has booted the tests | `samovar test` | [`TestEvent`] |
//!
//! The end of a channel ends its reader: a template whose supervisor has closed the channel stops
//! its workers and exits. An order to fork carries the pipe that the process prints to, if it has
//! its own.
//!
//! Before all that, the server may query the worker's program for its libphp ([`EngineFacts`]). The
//! supervisor starts the template with a [`Start`] in a sealed memory file: the numbers of the
//! inherited descriptors, and the [`WorkerOptions`]. None of this is on the command line.
//!
//! The format is JSON, because a message may come from a process that PHP has run in, or from a
//! binary of another version. A message that is not understood is an error with an excerpt
//! ([`Garbled`]). Ordinary requests cause no message.

mod asked;
mod encoding;
mod engine;
mod event;
mod exit;
mod jobs;
mod lint;
mod lossless;
mod options;
mod order;
mod php_setup;
mod php_versions;
mod reply_socket;
mod socket;
mod test_run;
#[cfg(test)]
mod tests;

pub use asked::{ASK_FLAG, PhpQuestion, PhpResponse, jit_warning};
pub use encoding::{Garbled, LINE_BYTES_MAX, MESSAGE_BYTES_MAX, TooLong, decode, encode};
pub use engine::{ENGINE_FLAG, ENGINE_VARIABLE, EngineFacts};
pub use event::{
    Engine, Event, Finding, GraphNote, Image, ImageMode, ImageWord, Linking, LinkingState,
    LoadsNote, Opcache,
};
pub use exit::EXIT_REPLACE;
pub use jobs::{
    KEY_BYTES_MAX, NewJob, PAYLOAD_BYTES_MAX, PUSHED_JOBS_MAX, Push, PushError, PushReply,
    QUEUE_BYTES_MAX, Received, TraceContext, push, receive,
};
pub use lint::{
    LINT_FILE_BYTES_MAX, LINT_FINDINGS_MAX, LINT_FLAG, LintClientEnd, LintCompilerEnd, LintEvent,
    LintFinding, LintOrder, LintStart,
};
pub use options::{Boots, NoStart, START_BYTES_MAX, START_FLAG, Start, WorkerOptions};
pub use order::{ConsoleOrder, ImageOrder, Order, Role, WorkerId};
pub use php_setup::{DIRECTIVES, PhpSetup, VARIABLES};
pub use php_versions::{PHP_NEWEST, PHP_OLDEST, php_version_problem};
pub use reply_socket::{Incoming, RequestEnds, incoming, read_sealed, reply, request};
pub use socket::{
    GraphEnd, Heard, ImageEnd, LoadsEnd, Socket, SupervisorEnd, TemplateEnd, TemplateImageEnd, pair,
};
pub use test_run::{
    TEST_FILES_PREFIX, TEST_FLAG, TestEvent, TestImageEnd, TestOrder, TestRunnerEnd, TestStart,
};
