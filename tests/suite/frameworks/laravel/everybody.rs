//! Acts of a crowd for this application: notes, languages, flashes and errors, each with an
//! account.

use super::{RULES, steps};
use crate::frameworks::crowd::Plan;
use samovar_testkit::http::Request;

pub(super) const PLAN: Plan = Plan {
    rules: RULES,
    enter: |visitor, member| {
        visitor.get(["/locale/en", "/locale/de", "/"][member.number % 3]);
        steps::register(visitor, &member.name);
    },
    acts: &[
        ("home", |visitor, _, turn| {
            visitor.get(&format!("/?turn={turn}"));
        }),
        ("who", |visitor, member, turn| {
            visitor.get(&format!("/whoami?is={}&turn={turn}", member.name));
        }),
        ("store", |visitor, member, turn| {
            let text = format!("{} wrote it in turn {turn}", member.name);
            let name = format!("{}.txt", member.name);
            let file = (turn % 2 == 0).then_some((name.as_str(), "text/plain", text.as_bytes()));
            steps::store(visitor, &format!("{} {turn}", member.name), &text, file);
        }),
        ("list", |visitor, _, turn| {
            visitor.get(&format!("/notes?page={}", turn % 3));
        }),
        ("note", |visitor, _, turn| {
            visitor.get(&format!("/notes/{}", turn % 5));
        }),
        ("attachment", |visitor, _, turn| {
            visitor.get(&format!("/notes/{}/attachment", turn % 5));
        }),
        ("wrong form", |visitor, member, _| {
            steps::store(visitor, &format!("{} forgets the text", member.name), "", None);
            visitor.get("/notes");
        }),
        ("language", |visitor, member, turn| {
            visitor.get(["/locale/en", "/locale/de"][(member.number + turn) % 2]);
        }),
        ("again", |visitor, member, _| {
            steps::log_out(visitor);
            steps::log_in(visitor, &member.name, "secret");
        }),
        ("api", |visitor, member, turn| {
            let body = format!("{{\"name\": \"{}\", \"turn\": {turn}}}", member.name);
            visitor.send("api", Request::post("/api/echo", "application/json", body));
        }),
        ("ends", |visitor, _, turn| {
            visitor.get(["/exit", "/boom", "/dd", "/tea", "/exit-in-transaction"][turn % 5]);
        }),
        ("soil", |visitor, _, _| {
            visitor.look("/state/soil");
            visitor.get("/state");
        }),
        ("stream", |visitor, _, _| {
            visitor.get("/stream");
        }),
    ],
    leave: |visitor, _| {
        steps::log_out(visitor);
        visitor.get("/whoami");
    },
};
