//! What the front wants of the supervisor.

use samovar_front::{FrontEvent, KillReason, SupervisorLink};
use samovar_ring::{Lane, Overrun};
use samovar_supervisor::{Command, Handle};

/// The front's events as the supervisor's commands.
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
        FrontEvent::Overrun { run, overrun, request, id, ran } => {
            supervisor.send(Command::Overrun { run, overrun, request, id, ran });
        }
        FrontEvent::LaneNeeded(Lane::Script) => supervisor.send(Command::ScriptsWait),
        FrontEvent::LaneNeeded(_) => {}
    })
}

fn words(reason: KillReason) -> &'static str {
    match reason {
        KillReason::Overrun(_, Overrun::Answer) => "it gave no answer within timeouts.answer",
        KillReason::Overrun(_, Overrun::Request) => "its request took longer than timeouts.request",
        KillReason::Overrun(_, Overrun::After) => {
            "its script went on for longer than timeouts.after"
        }
        KillReason::Overrun(_, Overrun::Drain) => {
            "its script went on for longer than timeouts.drain while the server stopped"
        }
        KillReason::BrokenRing => "it wrote garbage into the shared memory",
    }
}
