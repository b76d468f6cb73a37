//! The supervisor: a template, its workers, what to do when one of them dies; and how the next template takes over.
//!
//! `workers` and `consoles/places` decide (pure state machines: events in, actions out), `generation` and `consoles` do
//! what they say through the `template`, and `run` waits for all that happens to any of them. Each imports
//! only what stands before it in this list: `settings`, `os`, `end`, `template`, `workers`, `consoles`, `handle` (what other
//! threads see), `news`, `generation`, `run`.
//! `sampler` is a thread beside them, which looks at what busy workers do and tells whoever wants to know.
//! `successor` starts the server that is to take over from this one.
//! `peer` tells PHP's processes, and what they leave behind, from others. `identity` is whose rights all of it has; `sandbox` what of the file system they see; `limits` what else the kernel holds them to; `inquest` looks into what a worker hangs in, `recycle` says who has done enough, `scale` how many workers there should be.
//! Nothing here knows HTTP or PHP; what is said to a template is the grammar of crates/channel.
#![allow(unsafe_code)] // poll, signalfd, kill, waitpid; each block says why it is sound.

mod backoff;
mod consoles;
mod end;
mod generation;
mod handle;
pub mod identity;
mod inquest;
mod limits;
mod news;
mod os;
pub mod peer;
mod recycle;
mod run;
mod sampler;
mod sandbox;
mod scale;
mod settings;
pub mod successor;
mod template;
mod workers;

pub use consoles::{ConsoleLine, ConsoleState, Elsewhere, OUTPUT_TARGET};
pub use end::{Ended, Failed};
pub use handle::{
    Command, Gate, GateDone, Handle, Probe, ProbeDone, Reload, ReloadDone, Report, WorkerLine,
};
pub use limits::ProcessLimits;
pub use news::News;
pub use os::monotonic_us;
pub use recycle::RecycleLimits;
pub use run::{Boot, Hooks, Running, run};
pub use samovar_channel::{Engine, Finding, GraphEnd, Image, Linking};
pub use sampler::{
    Look, Observer, Sampler, SamplerReport, Sampling, Scene, SlowScene, sampled_descriptors,
};
pub use sandbox::Sandbox;
pub use scale::ScaleLine;
pub use settings::{ConsoleSettings, Settings, TemplateCommand, Tracer, WorkerCount};
