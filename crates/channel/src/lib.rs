//! supervisor ↔ template ↔ image process: what they say to each other, and how a template is told what it is for.
//!
//! A message is one JSON document in one datagram of a `SOCK_SEQPACKET` pair ([`Socket`]), with at most one descriptor
//! beside it. Each end has a type that says which messages go which way:
//!
//! | from | to | says |
//! |---|---|---|
//! | supervisor | template | [`Order`] |
//! | template, and image process | supervisor | [`Event`] |
//! | template | image process | [`ImageOrder`] |
//! | image process | template | [`ImageWord`] |
//! | worker that traces | who reads call graphs | [`GraphNote`] |
//! | image process, and worker | who explains boots | [`LoadsNote`] |
//!
//! The end of a channel is the end of who reads it: a template whose supervisor has closed stops its workers and
//! leaves. With an order to fork comes the pipe that the process prints to, if it has one of its own.
//!
//! Before all that the server may ask the worker's program which libphp it has ([`EngineFacts`]), and the supervisor starts the template with a [`Start`] in a sealed memory file: the numbers of the
//! descriptors that it inherits, and the [`WorkerOptions`]. Nothing of it stands on the command line.
//!
//! JSON, because a message may come from a process that PHP has run in, or from another version's binary: what is not
//! understood is an error that names it ([`Garbled`]). Nothing here is said per request.

mod asked;
mod encoding;
mod engine;
mod event;
mod exit;
mod options;
mod order;
mod socket;
#[cfg(test)]
mod tests;

pub use asked::{ASK_FLAG, PhpAnswer, PhpQuestion, jit_warning};
pub use encoding::{Garbled, LINE_BYTES_MAX, MESSAGE_BYTES_MAX, TooLong, decode, encode};
pub use engine::{ENGINE_FLAG, ENGINE_VARIABLE, EngineFacts};
pub use event::{
    Engine, Event, Finding, GraphNote, Image, ImageMode, ImageWord, Linking, LinkingState,
    LoadsNote,
};
pub use exit::EXIT_REPLACE;
pub use options::{Boots, NoStart, START_BYTES_MAX, START_FLAG, Start, WorkerOptions};
pub use order::{ConsoleOrder, ImageOrder, Order, Role, WorkerId};
pub use socket::{
    GraphEnd, Heard, ImageEnd, LoadsEnd, Socket, SupervisorEnd, TemplateEnd, TemplateImageEnd, pair,
};
