//! The supervisor: a template, its workers, what to do when one of them dies; and how the next template takes over.
//!
//! [`state`] decides (a pure state machine: events in, actions out), [`run`](mod@run) does what it says:
//! processes, signals, the ring's repair. Console workers have the same pair: `consoles/places` decides, `consoles` does.
//! Nothing here knows HTTP or PHP.
#![allow(unsafe_code)] // poll, signalfd, kill, waitpid; each block says why it is sound.

mod backoff;
mod consoles;
mod os;
pub mod run;
pub mod state;
mod template;

pub use consoles::{Console, ConsoleLine, ConsoleState, OUTPUT_TARGET};
pub use run::{
    Command, Ended, Failed, Finding, Handle, Hooks, Image, Reload, ReloadDone, Report, Running,
    Settings, TemplateCommand, WorkerLine, run,
};
