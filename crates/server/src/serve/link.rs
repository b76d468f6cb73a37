//! Commands of the front to the supervisor.

use samovar_front::{FrontEvent, KillReason, SupervisorLink};
use samovar_ring::{Lane, Overrun};
use samovar_supervisor::{Command, Handle};

/// Converts events of the front to commands of the supervisor.
pub(super) fn link_to(supervisor: Handle) -> SupervisorLink {
    Box::new(move |event| match event {
        FrontEvent::KillWorker { incarnation, reason } => {
            let run = match reason {
                KillReason::Overrun(run, _) => Some(run),
                KillReason::BrokenRing => None,
            };
            let reason = words(reason);
            supervisor.send(Command::Kill { incarnation: incarnation.get(), reason, run });
        }
        FrontEvent::Overrun { run, overrun, request, id, ran, grace } => {
            supervisor.send(Command::Overrun { run, overrun, request, id, ran, grace });
        }
        FrontEvent::LaneNeeded(Lane::Script) => supervisor.send(Command::ScriptsWait),
        FrontEvent::LaneNeeded(_) => {}
    })
}

fn words(reason: KillReason) -> &'static str {
    match reason {
        KillReason::Overrun(_, Overrun::Response) => "no response within timeouts.response",
        KillReason::Overrun(_, Overrun::Request) => "its request exceeded timeouts.request",
        KillReason::Overrun(_, Overrun::After) => "its script exceeded timeouts.post_response",
        KillReason::Overrun(_, Overrun::Drain) => {
            "its script exceeded timeouts.drain while the server stopped"
        }
        KillReason::BrokenRing => "it wrote invalid data to the shared memory",
    }
}
