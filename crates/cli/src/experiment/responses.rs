//! Compares the responses of both servers. Text that varies without the change may vary with it.

use crate::compare::diff::{Difference, Texts};
use crate::replay::compare::{Mask, masked};
use crate::trial::response::TrialResponse;
use samovar_plan::experiment::{Answers, Side, TargetDifference};
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// Maximum bytes of a body that is compared by its text; a longer one by length and hash.
const BODY_BYTES_MAX: usize = 1 << 20;
/// Maximum bytes of all kept bodies.
const BYTES_MAX: usize = 256 << 20;
/// Number of compared responses of each server for one request.
const RESPONSES_MAX: u32 = 24;
/// Maximum number of reported differences.
const DIFFERENCES_MAX: usize = 500;

/// Responses to one request.
#[derive(Debug, Default)]
struct Page {
    heads: Texts,
    bodies: Texts,
    compared: [u32; 2],
    statuses: [BTreeSet<u16>; 2],
}

/// Responses to all requests.
#[derive(Debug)]
pub(super) struct Responses<'a> {
    masks: &'a [Mask],
    pages: Vec<Page>,
    failed: [u64; 2],
    /// First error of the server with the change.
    error: Option<String>,
    bytes: usize,
}

impl<'a> Responses<'a> {
    pub(super) fn new(requests: usize, masks: &'a [Mask]) -> Responses<'a> {
        let pages = (0..requests).map(|_| Page::default()).collect();
        Responses { masks, pages, failed: [0, 0], error: None, bytes: 0 }
    }

    /// Adds a response, to be compared as a whole.
    pub(super) fn add(&mut self, at: usize, side: Side, mut response: TrialResponse, port: u16) {
        self.add_status(at, side, response.status);
        let page = &mut self.pages[at];
        if page.compared[side as usize] >= RESPONSES_MAX {
            return;
        }
        response.hide_port(port);
        let head = masked(&response.head, self.masks);
        let body = if response.body.len() <= BODY_BYTES_MAX {
            masked(&response.body, self.masks)
        } else {
            let mut hash = DefaultHasher::new();
            response.body.hash(&mut hash);
            format!("{} bytes with hash {:x}", response.body.len(), hash.finish()).into_bytes()
        };
        // Only the first response is kept as a whole.
        let is_first = page.compared == [0, 0];
        if is_first && self.bytes + body.len() > BYTES_MAX {
            return;
        }
        match side {
            Side::Before => {
                self.bytes += if is_first { body.len() } else { 0 };
                page.heads.add_script(head);
                page.bodies.add_script(body);
            }
            Side::After if page.compared[0] > 0 => {
                page.heads.add_booted(&head);
                page.bodies.add_booted(&body);
            }
            Side::After => return,
        }
        page.compared[side as usize] += 1;
    }

    /// Adds the status of a response that is not compared.
    pub(super) fn add_status(&mut self, at: usize, side: Side, status: u16) {
        self.pages[at].statuses[side as usize].insert(status);
    }

    /// Counts a request without a complete response.
    pub(super) fn fail(&mut self, side: Side, error: &anyhow::Error) {
        self.failed[side as usize] += 1;
        if side == Side::After && self.error.is_none() {
            self.error = Some(format!("{error:#}"));
        }
    }

    /// Returns the first error of the server with the change.
    pub(super) fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// Returns the comparison. `name` returns route and request of an index.
    pub(super) fn answers(&self, name: impl Fn(usize) -> (String, String)) -> Answers {
        let mut answers = Answers { failed: self.failed, ..Answers::default() };
        for (at, page) in self.pages.iter().enumerate() {
            answers.compared += u64::from(page.compared.iter().all(|count| *count > 0));
            let found = page.differences();
            answers.different += u64::from(!found.is_empty());
            let (route, target) = name(at);
            for (part, one) in found {
                if answers.differences.len() < DIFFERENCES_MAX {
                    answers.differences.push(TargetDifference {
                        route: route.clone(),
                        target: target.clone(),
                        part: part.to_owned(),
                        before: one.script,
                        after: one.booted,
                        is_constant: one.stands_still,
                    });
                }
            }
        }
        answers
    }
}

impl Page {
    fn differences(&self) -> Vec<(&'static str, Difference)> {
        let heads = self.heads.differences().into_iter().map(|found| ("head", found));
        let bodies = self.bodies.differences().into_iter().map(|found| ("body", found));
        let mut all: Vec<_> = heads.chain(bodies).collect();
        let [before, after] = &self.statuses;
        let new: Vec<String> = after.difference(before).map(u16::to_string).collect();
        // The compared head names the status too.
        if !new.is_empty() && !before.is_empty() && !all.iter().any(|(part, _)| *part == "head") {
            let script = before.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
            let booted = new.join(", ");
            all.push(("status", Difference { stands_still: false, script, booted }));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(status: u16, body: &str) -> TrialResponse {
        let text = format!("HTTP/1.1 {status} X\r\nA: b\r\n\r\n{body}");
        TrialResponse::parse(text.as_bytes(), true).expect("a response")
    }

    fn compared(rounds: &[[(u16, &str); 4]], masks: &[&str]) -> Answers {
        let masks: Vec<Mask> = masks.iter().filter_map(|text| Mask::new(text)).collect();
        let mut all = Responses::new(1, &masks);
        for round in rounds {
            let sides = [Side::Before, Side::After, Side::After, Side::Before];
            for (side, (status, body)) in sides.into_iter().zip(round) {
                all.add(0, side, response(*status, body), 80);
            }
        }
        all.answers(|_| ("route".to_owned(), "GET /".to_owned()))
    }

    #[test]
    fn varying_and_masked_texts_are_equal() {
        let varying = [[(200, "id 1"), (200, "id 2"), (200, "id 3"), (200, "id 4")]];
        assert_eq!(compared(&varying, &[]).different, 0);
        let other = [[(200, "a=1 x"), (200, "a=2 x"), (200, "a=2 x"), (200, "a=1 x")]; 2];
        let found = compared(&other, &[]);
        assert_eq!((found.compared, found.different), (1, 1), "{found:?}");
        assert_eq!((&*found.differences[0].part, &*found.differences[0].route), ("body", "route"));
        assert_eq!(compared(&other, &["a=*"]).different, 0);
    }

    #[test]
    fn status_and_long_body_are_compared() {
        let failing = [[(200, "x"), (500, "x"), (500, "x"), (200, "x")]];
        let found = compared(&failing, &[]);
        assert!(found.differences[0].after.contains("500"), "{found:?}");
        let (one, other) = ("x".repeat(BODY_BYTES_MAX + 1), "y".repeat(BODY_BYTES_MAX + 1));
        let long = [[(200, &*one), (200, &*other), (200, &*other), (200, &*one)]];
        let found = compared(&long, &[]);
        assert_eq!(found.different, 1);
        assert!(found.differences[0].before.len() < 200, "{found:?}");
        // A status that is seen only later.
        let mut all = Responses::new(1, &[]);
        all.add(0, Side::Before, response(200, ""), 80);
        all.add(0, Side::After, response(200, ""), 80);
        all.add_status(0, Side::After, 503);
        all.fail(Side::After, &anyhow::anyhow!("gone"));
        let found = all.answers(|_| <_>::default());
        assert_eq!((found.different, found.failed), (1, [0, 1]));
        assert_eq!(found.differences[0].part, "status");
    }

    #[test]
    fn number_of_compared_responses_is_limited() {
        let all = [[(200, "a"), (200, "a"), (200, "a"), (200, "a")]; 40];
        assert_eq!(compared(&all, &[]).different, 0);
        let mut many = Responses::new(1, &[]);
        many.add(0, Side::After, response(200, "b"), 80);
        assert_eq!(many.answers(|_| <_>::default()).compared, 0, "nothing to compare with");
    }
}
