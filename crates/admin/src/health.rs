//! Health check of the dashboard: one line with a verdict, and the problems.

use crate::query::link;
use crate::sources::Sources;
use samovar_wire::{About, Health, HealthProblem, Severity};

/// A health problem, and a link to details.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LinkedProblem {
    pub(crate) text: String,
    pub(crate) link: String,
    /// Action for the operator; may be empty.
    pub(crate) hint: String,
    /// Whether the server is unhealthy because of it.
    pub(crate) is_problem: bool,
}

/// Returns all findings; the first is the worst. `Host::ready` reports readiness in its own words.
pub(crate) fn troubles(sources: &Sources, health: Health) -> Vec<LinkedProblem> {
    let mut troubles = Vec::new();
    if let Err(why) = sources.host.ready(None) {
        // With several pools, the text has a line for each pool after a line for all.
        let said = why.lines().filter(|line| !line.ends_with("ready"));
        let why = said.collect::<Vec<_>>().join("; ");
        let (text, link) = (format!("Not ready for requests: {why}"), "/workers".into());
        troubles.push(LinkedProblem { text, link, hint: String::new(), is_problem: true });
    }
    let is_readiness = |found: &HealthProblem| found.about == About::Readiness;
    for found in health.findings {
        if is_readiness(&found) && !troubles.is_empty() {
            continue;
        }
        troubles.push(LinkedProblem {
            text: capitalised(&found.text),
            link: page_of(found.about),
            hint: found.hint,
            is_problem: found.severity == Severity::Problem,
        });
    }
    troubles
}

/// Returns the page with details.
fn page_of(about: About) -> String {
    match about {
        About::Errors => link("/routes", &[("sort", "errors")]),
        About::Routes => "/routes".into(),
        About::Schedules => "/schedules".into(),
        About::Jobs => "/queues".into(),
        About::Readiness | About::Queue | About::Memory | About::Certificates => "/workers".into(),
        About::Image | About::Boot => "/image".into(),
        About::Crashes | About::Disk | About::Logs => "/history".into(),
    }
}

pub(crate) fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
