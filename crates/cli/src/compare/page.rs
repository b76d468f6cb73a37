//! All that is known of one URL: its answers as scripts and below the checkpoint, and what they cost.

use super::alike::{Difference, Texts};
use super::cost;
use super::servers::Pair;
use crate::trial::answer::Answer;
use crate::trial::server::Server;
use crate::trial::targets::Target;
use crate::trial::visitor::Visitor;
use anyhow::Result;

/// What of a sample is left out at either end before its mean is taken: one in so many.
const TRIMMED: usize = 10;
/// Stands for the port of either server, which an application may print.
const PORT: &[u8] = b"{port}";

/// One URL's record.
pub(super) struct Page {
    pub(super) target: Target,
    heads: Texts,
    bodies: Texts,
    pub(super) script: Side,
    pub(super) booted: Side,
}

/// One way of running it.
#[derive(Debug, Default)]
pub(super) struct Side {
    /// The last one.
    pub(super) status: Option<u16>,
    /// The first.
    pub(super) error: Option<String>,
    pub(super) errors: u32,
    costs_ns: Vec<u64>,
}

impl Page {
    pub(super) fn new(target: &Target) -> Page {
        Page {
            target: target.clone(),
            heads: Texts::default(),
            bodies: Texts::default(),
            script: Side::default(),
            booted: Side::default(),
        }
    }

    pub(super) fn ask_script(&mut self, visitor: &mut Visitor, pair: &Pair, counts: bool) {
        if let Some(answer) = self.script.ask(visitor, &self.target, &pair.script, counts) {
            self.heads.add_script(answer.head);
            self.bodies.add_script(answer.body);
        }
    }

    pub(super) fn ask_booted(&mut self, visitor: &mut Visitor, pair: &Pair, counts: bool) {
        if let Some(answer) = self.booted.ask(visitor, &self.target, &pair.booted, counts) {
            self.heads.add_booted(&answer.head);
            self.bodies.add_booted(&answer.body);
        }
    }

    /// In headers and body, with the name of the part.
    pub(super) fn differences(&self) -> Vec<(&'static str, Difference)> {
        let heads = self.heads.differences().into_iter().map(|found| ("head", found));
        let bodies = self.bodies.differences().into_iter().map(|found| ("body", found));
        heads.chain(bodies).collect()
    }
}

impl Side {
    fn ask(
        &mut self,
        visitor: &mut Visitor,
        target: &Target,
        server: &Server,
        counts: bool,
    ) -> Option<Answer> {
        let before = cost::at_rest_ns(server.pid());
        let asked = visitor.get(server.address(), target);
        let used = cost::at_rest_ns(server.pid()).saturating_sub(before);
        let answer = self.note(asked, server)?;
        if counts {
            self.costs_ns.push(used);
        }
        Some(answer)
    }

    fn note(&mut self, asked: Result<Answer>, server: &Server) -> Option<Answer> {
        match asked {
            Ok(mut answer) => {
                self.status = Some(answer.status);
                let port = server.address().port().to_string();
                answer.head = without(&answer.head, port.as_bytes());
                answer.body = without(&answer.body, port.as_bytes());
                Some(answer)
            }
            Err(error) => {
                self.errors += 1;
                self.error.get_or_insert_with(|| format!("{error:#}"));
                None
            }
        }
    }

    /// The mean of what requests have used, without the greatest and the least.
    pub(super) fn cost_us(&self) -> Option<f64> {
        let mut costs = self.costs_ns.clone();
        costs.sort_unstable();
        let cut = costs.len().div_ceil(TRIMMED);
        let kept = if costs.len() > 2 * cut { &costs[cut..costs.len() - cut] } else { &costs[..] };
        let total: u64 = kept.iter().sum();
        #[allow(clippy::cast_precision_loss)] // Far below 2^52.
        let mean = total as f64 / kept.len() as f64 / 1000.0;
        (total > 0).then_some(mean)
    }
}

/// The port's number, where it stands by itself, as the same word for both servers.
fn without(text: &[u8], port: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let is_start = at == 0 || !text[at - 1].is_ascii_alphanumeric();
        let behind = text.get(at + port.len());
        if is_start
            && text[at..].starts_with(port)
            && !behind.is_some_and(u8::is_ascii_alphanumeric)
        {
            out.extend_from_slice(PORT);
            at += port.len();
        } else {
            out.push(text[at]);
            at += 1;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_a_word_of_its_own() {
        let check = |text: &str, expected: &str| {
            let found = without(text.as_bytes(), b"8080");
            assert_eq!(String::from_utf8_lossy(&found), expected);
        };
        check("http://h:8080/", "http://h:{port}/");
        check("8080", "{port}");
        check("18080 80801 x8080 8080x", "18080 80801 x8080 8080x");
        check("", "");
    }

    #[test]
    fn costs_are_means_without_what_sticks_out() {
        let check = |costs_ns: Vec<u64>, expected: Option<f64>| {
            let side = Side { costs_ns, ..Side::default() };
            assert_eq!(side.cost_us(), expected);
        };
        check(vec![], None);
        check(vec![0, 0, 0], None);
        check(vec![2000], Some(2.0));
        check(vec![1000, 3000], Some(2.0));
        check(vec![1_000_000, 2000, 1000, 3000, 0], Some(2.0));
    }
}
