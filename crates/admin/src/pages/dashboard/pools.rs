//! Which of several pools a page is about: the control by which it is chosen, and what is said of a name that there is not.

use super::{Shown, View};
use maud::{Markup, html};
use samovar_wire::Status;

/// The key in a page's address.
pub(super) const KEY: &str = "pool";

/// The key of the pool whose routes the form beside it has listed.
const LISTED: &str = "of";

/// The pools, and the one that was asked for.
pub(super) struct Pools {
    names: Vec<String>,
    chosen: Option<String>,
    /// The pool whose routes are listed where somebody has chosen another one; `None`: nobody has.
    listed: Option<String>,
}

impl Pools {
    /// What the page's address says. A name that no pool has is answered with those that there are.
    pub(super) fn of(view: &View, status: &Status, title: &str) -> Result<Pools, Shown> {
        let names: Vec<String> = status.pools.iter().map(|pool| pool.name.clone()).collect();
        let chosen = view.query.get(KEY).filter(|name| !name.is_empty());
        let listed = view.query.get(LISTED);
        let Some(unknown) = chosen.as_ref().filter(|name| !names.contains(name)) else {
            return Ok(Pools { names, chosen, listed });
        };
        let why = match &names[..] {
            [] => format!("There is no pool {unknown}: this server has one pool, the default one."),
            names => format!("There is no pool {unknown}: this server has {}.", names.join(", ")),
        };
        Err(Shown::not_found(title, &why))
    }

    /// The name that was asked for; `None`: none was.
    pub(super) fn chosen(&self) -> Option<&str> {
        self.chosen.as_deref()
    }

    /// Whether another pool was chosen than the one whose routes were there to be chosen from: what was chosen of them is not meant.
    pub(super) fn has_changed(&self, all: bool) -> bool {
        let now = if all { self.chosen().unwrap_or_default() } else { self.shown() };
        self.listed.as_ref().is_some_and(|listed| listed != now)
    }

    /// Likewise of that pool, whatever was asked for; empty: there is one.
    pub(super) fn showing(self, name: &str) -> Pools {
        let chosen = Some(name.to_owned()).filter(|name| !name.is_empty());
        Pools { chosen: chosen.or(self.chosen), ..self }
    }

    /// The name of the pool that is shown where nobody says; empty where there is one pool.
    pub(super) fn shown(&self) -> &str {
        let first = self.names.first().map_or("", String::as_str);
        self.chosen.as_deref().unwrap_or(first)
    }

    /// ` of pool export`, for a title; nothing where there is one pool.
    pub(super) fn title(&self) -> Markup {
        html! { @if !self.shown().is_empty() { " of pool " span.name { (self.shown()) } } }
    }

    /// The control, within a form; nothing where there is one pool. `all`: what stands for all of them, if a page can show that.
    pub(super) fn control(&self, all: Option<&str>) -> Markup {
        let is_chosen = |name: &str| match all {
            Some(_) => self.chosen.as_deref() == Some(name),
            None => self.shown() == name,
        };
        html! {
            @if !self.names.is_empty() {
                @let value = if all.is_some() { self.chosen().unwrap_or_default() } else { self.shown() };
                input type="hidden" name=(LISTED) value=(value);
                label { "Pool " select name=(KEY) {
                    @if let Some(all) = all { option value="" selected[self.chosen.is_none()] { (all) } }
                    @for name in &self.names { option value=(name) selected[is_chosen(name)] { (name) } }
                } }
            }
        }
    }

    /// The control in a form of its own, for a page that asks for nothing else.
    pub(super) fn form(&self, path: &str) -> Markup {
        html! {
            @if !self.names.is_empty() {
                form.ask action=(path) { (self.control(None)) button { "Show" } }
            }
        }
    }
}
