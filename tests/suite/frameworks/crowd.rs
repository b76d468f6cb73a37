//! Many concurrent visitors, each with a separate session, name and order of requests. Each
//! response must equal that of nginx + php-fpm, and must never contain the name of another visitor.
//!
//! An application provides a [`Plan`]: the first act of each member, a table of acts for any order
//! and any number, and the last act. An act is a function of the visitor and the [`Member`]. It
//! sends one request or a few (a form, then its POST). It receives a number that is equal on both
//! sides and differs for each turn:
//!
//! ```ignore
//! const PLAN: Plan = Plan {
//!     rules: &[Rule { name: "session", before: "set-cookie: PHPSESSID=", after: ";" }],
//!     enter: |visitor, member| login(visitor, &member.name),
//!     acts: &[
//!         ("home", |visitor, _, _| { visitor.get("/"); }),
//!         ("note", |visitor, member, turn| note(visitor, &format!("{} {turn}", member.name))),
//!     ],
//!     leave: |visitor, _| { visitor.get("/logout"); },
//! };
//!
//! crowd(&PLAN, &ours, &theirs);   // Side { address, folder, own } of either
//! ```
//!
//! Any text that an act writes (a note, a flash, a file's name) should contain `member.name`: the
//! crowd looks for other members' names in every response, headers included. Names are `crowd00`,
//! `crowd01` …, and users created by fixtures can have the same names ([`names`]). Pages must not
//! depend on concurrent writes of other members: no IDs from shared sequences, no totals over all
//! members.
//!
//! `CROWD_SEED` repeats an order, `CROWD_REQUESTS` makes it longer.

use samovar_testkit::http::Response;
use samovar_testkit::masks::{Rule, Side};
use samovar_testkit::order::{Order, number_of, seed};
use samovar_testkit::visitor::Visitor;
use samovar_testkit::walk::{differences, responses};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Minimum number of requests that the crowd sends to each side. `CROWD_REQUESTS` overrides it, as
/// in `make nightly`.
const REQUESTS: usize = 200;
/// Number of concurrent members.
pub(crate) const MEMBERS: usize = 16;
/// Prefix of every name. No application prints it on its own.
const NAME: &str = "crowd";
/// Maximum number of reported faults; further ones add no information.
const FAULTS_MAX: usize = 8;

/// One of the crowd.
pub(crate) struct Member {
    /// Counts from 0; selects for example a locale or a size.
    pub(crate) number: usize,
    /// Unique, and no part of another member's name.
    pub(crate) name: String,
}

/// An act and its name. The number is unique to this turn.
pub(crate) type Act = (&'static str, fn(&mut Visitor, &Member, usize));

/// Acts of a crowd for one application.
pub(crate) struct Plan {
    /// Masks for text that differs between two runs.
    pub(crate) rules: &'static [Rule],
    /// First act of each member.
    pub(crate) enter: fn(&mut Visitor, &Member),
    /// Acts in any order.
    pub(crate) acts: &'static [Act],
    /// Last act of each member.
    pub(crate) leave: fn(&mut Visitor, &Member),
}

/// The names of all members, for fixtures.
#[allow(dead_code, reason = "an application whose members register themselves needs none")]
pub(crate) fn names() -> Vec<String> {
    (0..MEMBERS).map(name_of).collect()
}

/// Sends the crowd to both sides, in the same order for each member. Returns the number of equal
/// responses. Panics with a list of the differences and of foreign names that members received.
pub(crate) fn crowd(plan: &Plan, ours: &Side, theirs: &Side) -> usize {
    let seed = seed("CROWD_SEED");
    let requests = number_of("CROWD_REQUESTS").map_or(REQUESTS, |n| n as usize);
    let [ours, theirs] =
        [ours, theirs].map(|side| visit(plan, side, seed, requests.div_ceil(MEMBERS)));
    let mut faults: Vec<String> = Vec::new();
    for (who, side) in [("Samovar", &ours), ("nginx + php-fpm", &theirs)] {
        faults.extend(strangers(side).into_iter().map(|fault| format!("{who}: {fault}")));
        faults.extend(shared_cookies(side).into_iter().map(|fault| format!("{who}: {fault}")));
    }
    for (our, their) in ours.iter().zip(&theirs) {
        let report = differences(&our.responses, &their.responses);
        if !report.is_empty() {
            faults.push(format!("{}, after {}\n{report}", our.name, our.acts.join(" | ")));
        }
    }
    faults.truncate(FAULTS_MAX);
    assert!(
        faults.is_empty(),
        "CROWD_SEED={seed}; `-` is nginx + php-fpm, `+` is Samovar\n{}",
        faults.join("\n")
    );
    ours.iter().map(|visit| visit.responses.len()).sum()
}

/// Acts and responses of one member.
struct Visit {
    name: String,
    acts: Vec<&'static str>,
    responses: Vec<(String, String)>,
    raw: Vec<(String, Response)>,
}

/// Runs all members concurrently, on one side.
fn visit(plan: &Plan, side: &Side, seed: u64, requests_each: usize) -> Vec<Visit> {
    std::thread::scope(|scope| {
        let start = |number| {
            scope.spawn(move || {
                visit_as(plan, side, Order::new(seed, number), number, requests_each)
            })
        };
        let members: Vec<_> = (0..MEMBERS).map(start).collect();
        members.into_iter().map(|m| m.join().expect("the member's message is above")).collect()
    })
}

fn visit_as(plan: &Plan, side: &Side, mut order: Order, number: usize, requests: usize) -> Visit {
    let member = Member { number, name: name_of(number) };
    let mut visitor = Visitor::new(side.address);
    let mut acts = Vec::new();
    (plan.enter)(&mut visitor, &member);
    while visitor.steps.len() < requests {
        let (name, act) = plan.acts[order.next(plan.acts.len())];
        let before = visitor.steps.len();
        act(&mut visitor, &member, acts.len());
        assert!(visitor.steps.len() > before, "the act `{name}` sends nothing");
        acts.push(name);
    }
    (plan.leave)(&mut visitor, &member);
    let responses = responses(&visitor, plan.rules, side);
    Visit { name: member.name, acts, responses, raw: visitor.steps }
}

fn name_of(number: usize) -> String {
    format!("{NAME}{number:02}")
}

/// Responses that contain the name of another member.
fn strangers(visits: &[Visit]) -> Vec<String> {
    let mut found = Vec::new();
    for visit in visits {
        for (step, response) in &visit.raw {
            let seen = names_in(response);
            let others: Vec<&String> = seen.iter().filter(|name| **name != visit.name).collect();
            if !others.is_empty() {
                found.push(format!("{} sees {others:?} in `{step}`", visit.name));
            }
        }
    }
    found
}

/// Members' names in a response, body and headers.
fn names_in(response: &Response) -> BTreeSet<String> {
    let mut text = response.text();
    for (_, value) in &response.headers {
        let _ = write!(text, "\n{value}");
    }
    let digits = |rest: &str| rest.chars().take_while(char::is_ascii_digit).collect::<String>();
    let named = text.split(NAME).skip(1).map(digits).filter(|digits| digits.len() >= 2);
    named.map(|digits| format!("{NAME}{}", &digits[..2])).collect()
}

/// Cookies with long values that two members received: a shared session.
fn shared_cookies(visits: &[Visit]) -> Vec<String> {
    // Shorter values are preferences, such as a language.
    const ID_CHARS_MIN: usize = 20;
    let mut owners = std::collections::BTreeMap::new();
    let mut found = Vec::new();
    for visit in visits {
        for cookie in visit.raw.iter().flat_map(|(_, response)| response.all("set-cookie")) {
            let pair = cookie.split(';').next().unwrap_or_default();
            let value = pair.split_once('=').map_or("", |(_, value)| value);
            if value.len() < ID_CHARS_MIN {
                continue;
            }
            let owner = owners.entry(pair.to_owned()).or_insert(&visit.name);
            if *owner != &visit.name {
                found.push(format!("{} was given `{pair}`, which is {owner}'s", visit.name));
            }
        }
    }
    found
}
