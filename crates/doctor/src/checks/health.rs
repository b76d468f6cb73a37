//! Health: the server's own judgment, the same as in `samovar status`, a check per subject.

use crate::check::{Check, Checked, Group};
use crate::facts::Facts;
use crate::finding::{Findings, Severity};
use samovar_wire::{About, judged};

macro_rules! checks {
    ($($about:ident, $code:literal, $finds:literal, $why:literal;)*) => {
        pub(super) const CHECKS: &[Check] = &[$(Check {
            code: $code,
            group: Group::Health,
            finds: $finds,
            why: $why,
            run: |facts, out| of(About::$about, facts, out),
        },)*];
        #[cfg(test)]
        const SUBJECTS: &[(&str, About)] = &[$(($code, About::$about),)*];
    };
}

checks! {
    Readiness, "readiness", "the server accepts no requests", "all requests wait or fail";
    Errors, "errors", "requests of the last minute failed",
        "responses with a status of 500 or above";
    Crashes, "crashes", "workers crashed or were killed",
        "a request of the worker failed or ran twice";
    Queue, "queue", "requests wait for a worker now", "response times grow with the queue";
    Memory, "memory", "no memory for workers, or a value that grows in resident workers",
        "a leak ends in a killed worker";
    Image, "image", "the booted application is not shared, or costs more than scripts",
        "the boot then gains little or nothing";
    Boot, "boot", "the application does not boot, or a reload failed",
        "the former generation keeps serving";
    Certificates, "certificates", "a certificate has expired or soon will",
        "clients refuse the connection";
    Disk, "disk", "a disk is nearly full, or the history cannot be written",
        "logs, uploads and the history are lost";
    Logs, "logs", "log lines were dropped", "they are missing in an investigation";
    Routes, "routes", "the table of routes is full", "further routes have no figures of their own";
    Schedules, "schedules", "the last run of a schedule failed", "its work is missing";
    Jobs, "jobs", "jobs wait too long in a queue", "their results are late";
}

fn of(about: About, facts: &Facts, out: &mut Findings) -> Checked {
    let health = judged(facts.status()?);
    for found in health.findings.iter().filter(|found| found.about == about) {
        let severity = match found.severity {
            samovar_wire::Severity::Problem => Severity::Problem,
            samovar_wire::Severity::Warning => Severity::Warning,
        };
        let value = match (&*found.value, &*found.limit) {
            ("", _) => String::new(),
            (value, "") => value.to_owned(),
            (value, limit) => format!("{value} (limit {limit})"),
        };
        out.add(severity, &*found.text, &*found.hint).value(value);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::SUBJECTS;
    use samovar_wire::About;

    #[test]
    fn each_subject_of_health_is_a_check_of_its_name() {
        let subjects: Vec<_> = About::ALL.into_iter().map(|about| (about.name(), about)).collect();
        assert_eq!(SUBJECTS, subjects);
    }
}
