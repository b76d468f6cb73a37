//! Many visitors at once, each with a session, a name and an order of requests of their own: everybody's
//! answers must be those of nginx + php-fpm, and nobody may ever see another one's name.
//!
//! An application brings a [`Plan`]: what each does first, a table of things to do in any order and any
//! number, and what each does last. An act is a function of the visitor and the [`Member`]; it sends one
//! request or a few (a form, then its POST), and gets a number that is the same on both sides and
//! another one for each turn:
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
//! Whatever an act writes (a note, a flash, a file's name) should hold `member.name`: the crowd looks for
//! other members' names in every answer, headers and all. Names are `crowd00`, `crowd01` …, and so may
//! be those of users that fixtures have made ([`names`]). What one reads must not depend on what others
//! write at the same time: no ids from sequences that all share, no totals of all.
//!
//! `CROWD_SEED` repeats an order, `CROWD_REQUESTS` makes it longer.

use samovar_testkit::http::Response;
use samovar_testkit::masks::{Rule, Side};
use samovar_testkit::order::{Order, number_of, seed};
use samovar_testkit::visitor::Visitor;
use samovar_testkit::walk::{answers, differences};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// How many requests the crowd sends to each side at least, unless `CROWD_REQUESTS` says another number, as `make nightly` does.
const REQUESTS: usize = 200;
/// How many there are, all at once.
pub(crate) const MEMBERS: usize = 16;
/// Every name begins with it; no application says it by itself.
const NAME: &str = "crowd";
/// After so many faults there is nothing new to learn.
const FAULTS_MAX: usize = 8;

/// One of the crowd.
pub(crate) struct Member {
    /// From 0, for what is chosen by number: a locale, a size.
    pub(crate) number: usize,
    /// Theirs alone, and no part of another one's name.
    pub(crate) name: String,
}

/// One thing to do, by name; the number is of this turn alone.
pub(crate) type Act = (&'static str, fn(&mut Visitor, &Member, usize));

/// What a crowd does with an application.
pub(crate) struct Plan {
    /// What differs between two runs.
    pub(crate) rules: &'static [Rule],
    /// What each does first.
    pub(crate) enter: fn(&mut Visitor, &Member),
    /// What each does in any order.
    pub(crate) acts: &'static [Act],
    /// What each does last.
    pub(crate) leave: fn(&mut Visitor, &Member),
}

/// The names of all members, for fixtures.
#[allow(dead_code, reason = "an application whose members register themselves needs none")]
pub(crate) fn names() -> Vec<String> {
    (0..MEMBERS).map(name_of).collect()
}

/// Sends the crowd to both sides, in the same order for each member, and returns how many answers of
/// ours were equal to theirs; panics with what differs and what was seen of others.
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
        let report = differences(&our.answers, &their.answers);
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
    ours.iter().map(|visit| visit.answers.len()).sum()
}

/// What one member did and saw.
struct Visit {
    name: String,
    acts: Vec<&'static str>,
    answers: Vec<(String, String)>,
    raw: Vec<(String, Response)>,
}

/// All members at once, on one side.
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
    let answers = answers(&visitor, plan.rules, side);
    Visit { name: member.name, acts, answers, raw: visitor.steps }
}

fn name_of(number: usize) -> String {
    format!("{NAME}{number:02}")
}

/// Where somebody has seen another one's name.
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

/// The members' names in an answer, body and headers.
fn names_in(response: &Response) -> BTreeSet<String> {
    let mut text = response.text();
    for (_, value) in &response.headers {
        let _ = write!(text, "\n{value}");
    }
    let digits = |rest: &str| rest.chars().take_while(char::is_ascii_digit).collect::<String>();
    let named = text.split(NAME).skip(1).map(digits).filter(|digits| digits.len() >= 2);
    named.map(|digits| format!("{NAME}{}", &digits[..2])).collect()
}

/// Cookies with long values that two members were given: a session that is shared.
fn shared_cookies(visits: &[Visit]) -> Vec<String> {
    // Shorter ones are choices, such as a language.
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
