//! The supervisor: runs a template and its workers, replaces workers that die, and lets the next
//! template take over.
//!
//! `workers` and `consoles/places` decide (pure state machines: events in, actions out).
//! `generation` and `consoles` execute the actions through the `template`. `run` waits for all
//! events.
//!
//! Each module imports only modules before it in this list: `settings`, `os`, `end`, `template`,
//! `workers`, `consoles`, `handle` (interface for other threads), `news`, `generation`, `run`.
//!
//! Further modules:
//! - `sampler`: a separate thread that samples busy workers and reports to an observer
//! - `successor`: starts the server that takes over from this one
//! - `peer`: distinguishes PHP's processes, and processes that they left running, from others
//! - `identity`: user and group of all processes
//! - `secrets`: removes secrets from environment and command line
//! - `sandbox`: file system access of PHP's processes
//! - `program`: the worker binary, kept open
//! - `limits`: other kernel limits of PHP's processes
//! - `diagnosis`: overrun diagnosis: where an overdue worker waits
//! - `recycle`: workers that must be replaced
//! - `scale`: number of workers
//! - `one_shots`: commands that run once
//!
//! Nothing here depends on HTTP or PHP. crates/channel defines the messages to and from a template.
#![allow(unsafe_code)] // poll, signalfd, kill, waitpid; each block states why it is sound.

mod backoff;
mod consoles;
mod end;
mod generation;
mod handle;
pub mod identity;
mod limits;
mod news;
mod one_shots;
mod os;
mod overrun_diagnosis;
pub mod peer;
mod program;
mod recycle;
mod run;
mod sampler;
mod sandbox;
mod scale;
pub mod secrets;
mod settings;
pub mod successor;
mod template;
mod workers;

pub use consoles::{ConsoleLine, ConsoleState, Elsewhere, OUTPUT_TARGET};
pub use end::{Ended, Failed};
pub use handle::{
    Command, Gate, GateDone, Handle, Probe, ProbeDone, Published, Reload, ReloadDone, Report,
    SpareOrder, SpareReady, WorkerLine,
};
pub use limits::ProcessLimits;
pub use news::News;
pub use one_shots::{OneShot, OneShotEvent, OneShotReport, StopReason};
pub use os::monotonic_us;
pub use program::Program;
pub use recycle::{RecycleLimits, own_memory};
pub use run::{Boot, Hooks, Running, run};
pub use samovar_channel::{
    DIRECTIVES, Engine, Finding, GraphEnd, Image, Linking, Opcache, PhpSetup,
};
pub use sampler::{
    Look, Observer, Sampler, SamplerReport, Sampling, Scene, SlowScene, sampled_descriptors,
};
pub use sandbox::Sandbox;
pub use scale::{ScaleLine, free_memory};
pub use settings::{ConsoleSettings, OwnTemplate, Settings, TemplateCommand, Tracer, WorkerCount};
