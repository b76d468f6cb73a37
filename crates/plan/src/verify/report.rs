//! Result of a verification: the measured ceiling compared with the predicted one, as text and as
//! JSON.

use super::failures::Responses;
use super::judge::{Goal, Measured, Miss, Verdict};
use super::search::{Ceiling, End};
use super::words::ms;
use crate::capacity::Resource;
use crate::plan::Plan;
use crate::text::rate;
use serde::Serialize;
use std::fmt::Write as _;

/// Ceiling that `samovar plan` predicts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Prediction {
    /// Rate at which the first resource ends, requests/s.
    pub rate: f64,
    /// The resource.
    pub resource: Resource,
    /// Value of the resource at this rate.
    pub at: String,
    /// Rate that the plan recommends as the limit, requests/s.
    pub planned: f64,
}

impl Prediction {
    /// Returns the prediction for the only machine of a plan. The plan's limit for CPU has a
    /// reserve, so the ceiling is that of saturated CPUs, or of another resource that ends before.
    pub fn of(plan: &Plan) -> Option<Prediction> {
        let [machine] = &plan.machines[..] else { return None };
        let planned = machine.capacity;
        let cpu = Prediction {
            rate: machine.ceiling,
            resource: Resource::Cpu,
            at: "all CPUs busy".to_owned(),
            planned,
        };
        let others = machine.limits.iter().filter(|limit| limit.resource != Resource::Cpu);
        let others = others.map(|limit| Prediction {
            rate: limit.rate,
            resource: limit.resource,
            at: limit.at.clone(),
            planned,
        });
        others.chain([cpu]).min_by(|a, b| a.rate.total_cmp(&b.rate)).filter(|one| one.rate > 0.0)
    }
}

/// A step with its verdict.
#[derive(Clone, Debug, Serialize)]
pub struct StepLine {
    /// Figures.
    #[serde(flatten)]
    pub measured: Measured,
    /// Verdict.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// Comparison of both ceilings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The measured ceiling agrees with the predicted one.
    Agrees,
    /// It does not.
    Differs,
    /// There is a measured ceiling, but no predicted one.
    NotPredicted,
    /// There is no measured ceiling.
    NotMeasured,
    /// Ctrl-C ended the measurement.
    Interrupted,
}

/// A verification.
#[derive(Clone, Debug, Serialize)]
pub struct Verification {
    /// Address of the measured server.
    pub against: String,
    /// Goal.
    pub goal: Goal,
    /// Source of the requests, in words.
    pub requests: String,
    /// Requests that were left out: number and reason.
    pub left_out: Vec<(u64, String)>,
    /// Steps, in order.
    pub steps: Vec<StepLine>,
    /// Measured ceiling.
    pub measured: Ceiling,
    /// Predicted ceiling.
    pub predicted: Option<Prediction>,
    /// Reason why there is none.
    pub not_predicted: String,
    /// Tolerated relative difference.
    pub tolerance: f64,
    /// Relative difference of the measured ceiling from the predicted one; `None`: unknown.
    pub difference: Option<f64>,
    /// Result.
    pub outcome: Outcome,
    /// Remarks.
    pub notes: Vec<String>,
}

impl Verification {
    /// Compares the ceilings: fills `difference` and `outcome`.
    #[must_use]
    pub fn compared(mut self) -> Verification {
        let relative = |good: f64| {
            self.predicted.as_ref().map(|predicted| (good - predicted.rate) / predicted.rate)
        };
        let difference = self.measured.good().and_then(relative);
        (self.difference, self.outcome) = match (self.measured, difference) {
            (Ceiling::Between { .. }, Some(difference)) => {
                let agrees = difference.abs() <= self.tolerance;
                (Some(difference), if agrees { Outcome::Agrees } else { Outcome::Differs })
            }
            (Ceiling::Between { .. }, None) => (None, Outcome::NotPredicted),
            // The ceiling is above the highest allowed rate: more than predicted, as predicted, or
            // unknown.
            (Ceiling::AtLeast { end: End::RateMax, .. }, Some(difference))
                if difference >= -self.tolerance =>
            {
                let agrees = difference <= self.tolerance;
                (None, if agrees { Outcome::Agrees } else { Outcome::Differs })
            }
            (
                Ceiling::Within { end, .. }
                | Ceiling::AtLeast { end, .. }
                | Ceiling::Unknown { end },
                _,
            ) => {
                let interrupted = end == End::Interrupted;
                (None, if interrupted { Outcome::Interrupted } else { Outcome::NotMeasured })
            }
        };
        if self.steps.iter().any(|step| step.measured.ended.is_none() && step.measured.is_short()) {
            self.notes.push(format!(
                "a step had fewer than 100 responses: raise --step-time for a reliable {}",
                self.goal.percentile()
            ));
        }
        self.notes.extend(self.kinds().remark());
        self
    }

    /// Responses and failures of all steps.
    fn kinds(&self) -> Responses {
        let mut sum = Responses::default();
        self.steps.iter().for_each(|step| sum.add(&step.measured.kinds));
        sum
    }

    /// First line of the output.
    pub fn answer(&self) -> String {
        let against = &self.against;
        let mut text = match self.measured {
            Ceiling::Between { good, .. } => format!("{against} carries {} requests/s", rate(good)),
            Ceiling::Within { good, bad, end } => format!(
                "{against} carries between {} and {} requests/s, not narrowed because {}",
                rate(good),
                rate(bad),
                end.words()
            ),
            Ceiling::AtLeast { good, .. } => {
                format!("{against} carries at least {} requests/s", rate(good))
            }
            Ceiling::Unknown { end } => format!("{against}: no rate is known, {}", end.words()),
        };
        match (&self.predicted, self.difference) {
            (Some(predicted), Some(difference)) => {
                let percent = (100.0 * difference).abs();
                let side = if difference < 0.0 { "below" } else { "above" };
                let _ =
                    write!(text, ", {percent:.0} % {side} the predicted {}", rate(predicted.rate));
            }
            (Some(predicted), None) => {
                let _ = write!(text, "; predicted are {}", rate(predicted.rate));
            }
            (None, _) => text.push_str("; there is no prediction"),
        }
        text + "."
    }

    /// The whole output.
    pub fn text(&self) -> String {
        let mut text = self.answer() + "\n\n";
        let mut line = |name: &str, value: &str| {
            let _ = writeln!(text, "{name:<11}{value}");
        };
        line("goal", &self.goal.words());
        match &self.predicted {
            Some(one) => {
                let (limit, at) = (one.resource.name(), &one.at);
                line(
                    "predicted",
                    &format!("{} requests/s: {limit} is the limit, {at}", rate(one.rate)),
                );
                line("planned", &format!("{} requests/s, with a reserve", rate(one.planned)));
            }
            None => line("predicted", &format!("unknown: {}", first_line(&self.not_predicted))),
        }
        match self.measured {
            Ceiling::Between { good, bad } => line(
                "measured",
                &format!("goal met at {} requests/s, missed at {}", rate(good), rate(bad)),
            ),
            Ceiling::Within { good, bad, end } => line(
                "measured",
                &format!(
                    "goal met at {} requests/s, missed at {}; not narrowed: {}",
                    rate(good),
                    rate(bad),
                    end.words()
                ),
            ),
            Ceiling::AtLeast { end, .. } | Ceiling::Unknown { end } => {
                line("measured", &format!("no ceiling: {}", end.words()));
            }
        }
        line("requests", &self.requests);
        for (count, reason) in &self.left_out {
            line("left out", &format!("{count}: {reason}"));
        }
        let kinds = self.kinds();
        for (name, words) in
            [("responses", kinds.statuses_in_words()), ("failures", kinds.failures_in_words())]
        {
            if !words.is_empty() {
                line(name, &words);
            }
        }
        for note in &self.notes {
            line("note", note);
        }
        if !self.steps.is_empty() {
            text.push('\n');
            text.push_str(&header(&self.goal));
            self.steps.iter().for_each(|step| text.push_str(&step.line()));
        }
        text
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Header of the steps.
fn header(goal: &Goal) -> String {
    format!(
        "{:>11} {:>10} {:>10} {:>8} {:>9} {:>10}  {}\n",
        "requests/s",
        "p50",
        goal.percentile(),
        "errors",
        "CPU",
        "in flight",
        "verdict"
    )
}

impl StepLine {
    /// One line of the table.
    pub fn line(&self) -> String {
        let one = &self.measured;
        let time = |seconds: Option<f64>| seconds.map_or_else(|| "–".to_owned(), ms);
        let cores = one.server_cores.map_or_else(|| "unknown".to_owned(), |c| format!("{c:.2}"));
        format!(
            "{:>11} {:>10} {:>10} {:>6.2} % {cores:>9} {:>10}  {}\n",
            rate(one.rate),
            time(one.p50),
            time(one.latency),
            100.0 * one.errors,
            one.client.in_flight,
            self.words()
        )
    }

    /// The verdict, with the most frequent kind of failure.
    fn words(&self) -> String {
        let words = self.verdict.words();
        match self.measured.kinds.most_frequent() {
            Some(kind) if self.verdict == Verdict::Missed(Miss::Errors) => {
                format!("{words}, most {}", kind.words())
            }
            _ => words.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::failures::FailureKind;
    use super::super::judge::ClientLimit;
    use super::*;

    fn verification(measured: Ceiling, predicted: Option<f64>) -> Verification {
        let prediction = |rate| Prediction {
            rate,
            resource: Resource::Cpu,
            at: "all CPUs busy".to_owned(),
            planned: rate * 0.8,
        };
        Verification {
            against: "http://127.0.0.1:9000".to_owned(),
            goal: Goal { quantile: 0.99, latency: 0.25, errors: 0.001 },
            requests: "3 recorded requests".to_owned(),
            left_out: vec![(2, "the method POST is not safe".to_owned())],
            steps: Vec::new(),
            measured,
            predicted: predicted.map(prediction),
            not_predicted: "the history is empty\nhint: wait".to_owned(),
            tolerance: 0.1,
            difference: None,
            outcome: Outcome::NotMeasured,
            notes: Vec::new(),
        }
        .compared()
    }

    #[test]
    fn ceilings_are_compared() {
        let between = |good| Ceiling::Between { good, bad: good * 1.05 };
        let at_least = |end| Ceiling::AtLeast { good: 400.0, end };
        let late = End::Client(ClientLimit::Late);
        let within = |end| Ceiling::Within { good: 400.0, bad: 500.0, end };
        for (measured, predicted, outcome) in [
            (between(400.0), Some(420.0), Outcome::Agrees),
            (between(400.0), Some(500.0), Outcome::Differs),
            (between(600.0), Some(500.0), Outcome::Differs),
            (between(400.0), None, Outcome::NotPredicted),
            (at_least(End::RateMax), Some(300.0), Outcome::Differs),
            (at_least(End::RateMax), Some(410.0), Outcome::Agrees),
            (at_least(End::RateMax), Some(800.0), Outcome::NotMeasured),
            // A saturated client is no ceiling of the server, wherever the prediction is.
            (at_least(late), Some(400.0), Outcome::NotMeasured),
            (at_least(End::Interrupted), Some(400.0), Outcome::Interrupted),
            (Ceiling::Unknown { end: End::Dead }, None, Outcome::NotMeasured),
            (within(End::Interrupted), Some(400.0), Outcome::Interrupted),
            (within(End::Dead), Some(400.0), Outcome::NotMeasured),
            (within(End::Time), Some(900.0), Outcome::NotMeasured),
            (within(late), None, Outcome::NotMeasured),
        ] {
            let found = verification(measured, predicted);
            assert_eq!(found.outcome, outcome, "{measured:?} {predicted:?}");
        }
    }

    #[test]
    fn steps_have_percentile_statuses_and_failures() {
        let failures = [(FailureKind::Timeout, 7), (FailureKind::Refused, 2)].into();
        let kinds = Responses { statuses: [(404, 90), (502, 2)].into(), failures, unusual: 90 };
        let measured = Measured { kinds, responses: 92, ..Measured::default() };
        let step = StepLine { measured, verdict: Verdict::Missed(Miss::Errors) };
        let mut found = verification(Ceiling::Unknown { end: End::RateMin }, None);
        found.goal.quantile = 0.999;
        found.steps.push(step);
        let text = found.compared().text();
        for part in [
            "p50      p99.9",
            "for a reliable p99.9",
            "responses  90 with 404, 2 with 502",
            "failures   7 without a response in time, 2 with status 429 or 5xx",
            "missed: errors, most without a response in time",
            "98 % of the responses are redirects or client errors",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn text_has_both_ceilings_and_omissions() {
        let found = verification(Ceiling::Between { good: 400.0, bad: 420.0 }, Some(500.0));
        let text = found.text();
        assert!(
            text.starts_with(
                "http://127.0.0.1:9000 carries 400 requests/s, 20 % below the predicted 500."
            ),
            "{text}"
        );
        assert!(text.contains("p99 at most 250 ms, errors at most 0.1 %"), "{text}");
        assert!(text.contains("500 requests/s: CPU is the limit"), "{text}");
        assert!(text.contains("left out   2: the method POST is not safe"), "{text}");
        let within = Ceiling::Within { good: 400.0, bad: 500.0, end: End::Dead };
        let text = verification(within, Some(420.0)).text();
        let answer = "http://127.0.0.1:9000 carries between 400 and 500 requests/s, not narrowed \
                      because the server accepts no connections; predicted are 420.";
        assert!(text.starts_with(answer), "{text}");
        let text = verification(Ceiling::Unknown { end: End::Dead }, None).text();
        assert!(text.contains("no connections; there is no prediction"), "{text}");
        assert!(text.contains("unknown: the history is empty\n"), "{text}");
    }
}
