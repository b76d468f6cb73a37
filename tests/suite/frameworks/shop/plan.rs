//! Acts of each member of a crowd in the shop.

use super::RULES;
use super::pages::{LOCALES, add, login, note, remove_first};
use crate::frameworks::crowd::{Act, Member, Plan};
use samovar_testkit::http::Request;
use samovar_testkit::visitor::{PNG, Visitor, form};

pub(crate) const PLAN: Plan = Plan { rules: RULES, enter, acts: ACTS, leave };

/// Pages that need no state are listed by their targets.
const ACTS: &[Act] = &[
    ("home", |visitor, _, _| get(visitor, "/")),
    ("json", |visitor, _, _| get(visitor, "/ways/json")),
    ("language", |visitor, _, turn| get(visitor, &format!("/language/{}", locale(turn)))),
    ("cart", |visitor, _, _| get(visitor, "/cart")),
    ("add", |visitor, _, turn| drop(add(visitor, "add", turn % 4 + 1, &format!("{turn}")))),
    ("empty", |visitor, _, _| drop(visitor.send("empty", form("/cart/empty", &[])))),
    ("note", |visitor, member, turn| note(visitor, "note", &text(member, turn), None)),
    ("picture", picture),
    ("wrong note", |visitor, _, _| note(visitor, "wrong note", "x", None)),
    ("remove", |visitor, _, _| remove_first(visitor, "remove")),
    ("notes", |visitor, _, _| get(visitor, "/notes.json")),
    ("exit", |visitor, member, _| get(visitor, &format!("/ways/exit?name={}", member.name))),
    ("dd", |visitor, member, turn| get(visitor, &format!("/ways/dd?{}={turn}", member.name))),
    ("boom", |visitor, _, _| get(visitor, "/ways/boom")),
    ("closed", |visitor, _, _| get(visitor, "/ways/closed")),
    ("stream", |visitor, _, turn| get(visitor, &format!("/ways/stream/{}", turn % 20))),
    ("early", |visitor, _, _| get(visitor, "/ways/early")),
    ("products", products),
    ("again", |visitor, member, turn| {
        leave(visitor, member);
        get(visitor, "/");
        login(visitor, &member.name);
        get(visitor, &format!("/language/{}", locale(turn)));
    }),
];

fn enter(visitor: &mut Visitor, member: &Member) {
    get(visitor, &format!("/language/{}", locale(member.number)));
    login(visitor, &member.name);
    get(visitor, "/");
}

fn leave(visitor: &mut Visitor, _: &Member) {
    get(visitor, "/logout");
}

fn picture(visitor: &mut Visitor, member: &Member, turn: usize) {
    let name = format!("{}-{turn}.png", member.name);
    let file = ("note[picture]", name.as_str(), "image/png", PNG);
    note(visitor, "picture", &text(member, turn), Some(file));
}

fn products(visitor: &mut Visitor, _: &Member, _: usize) {
    let etag = visitor.get("/products").header("etag").unwrap_or_default().to_owned();
    visitor.send("products again", Request::get("/products").header("If-None-Match", &etag));
}

fn text(member: &Member, turn: usize) -> String {
    format!("What {} thinks, {turn}", member.name)
}

fn locale(number: usize) -> &'static str {
    LOCALES[number % LOCALES.len()]
}

fn get(visitor: &mut Visitor, target: &str) {
    visitor.get(target);
}
