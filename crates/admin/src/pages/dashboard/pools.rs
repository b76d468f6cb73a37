//! Selection of one of several pools on a page: the control, and the page for an unknown name.

use super::view::{Shown, View};
use maud::{Markup, html};
use samovar_wire::Status;

/// Query key of the selected pool.
pub(super) const KEY: &str = "pool";

/// Query key of the pool whose routes were listed in the same form.
const LISTED: &str = "of";

/// All pools, and the selected one.
pub(super) struct Pools {
    names: Vec<String>,
    chosen: Option<String>,
    /// Pool whose routes were listed when the form was submitted; `None`: no form was submitted.
    listed: Option<String>,
}

impl Pools {
    /// Reads the selection from the page's address. For an unknown name, returns a page with the
    /// existing pools.
    pub(super) fn of(view: &View, status: &Status, title: &str) -> Result<Pools, Shown> {
        let names: Vec<String> = status.pools.iter().map(|pool| pool.name.clone()).collect();
        let chosen = view.query.get(KEY).filter(|name| !name.is_empty());
        let listed = view.query.get(LISTED);
        let Some(unknown) = chosen.as_ref().filter(|name| !names.contains(name)) else {
            return Ok(Pools { names, chosen, listed });
        };
        let why = match &names[..] {
            [] => format!("Unknown pool {unknown}: this server has only the default pool."),
            names => format!("Unknown pool {unknown}: this server has {}.", names.join(", ")),
        };
        Err(Shown::not_found(title, &why))
    }

    /// Returns the selected pool; `None`: none was selected.
    pub(super) fn chosen(&self) -> Option<&str> {
        self.chosen.as_deref()
    }

    /// Returns whether the form changed the pool. The route that was submitted with it belongs to
    /// the previous pool and must be ignored.
    pub(super) fn has_changed(&self, all: bool) -> bool {
        let now = if all { self.chosen().unwrap_or_default() } else { self.shown() };
        self.listed.as_ref().is_some_and(|listed| listed != now)
    }

    /// Returns the same selection with this pool instead; an empty name keeps it.
    pub(super) fn showing(self, name: &str) -> Pools {
        let chosen = Some(name.to_owned()).filter(|name| !name.is_empty());
        Pools { chosen: chosen.or(self.chosen), ..self }
    }

    /// Returns the name of the displayed pool; the first one by default, empty if the server has
    /// one pool.
    pub(super) fn shown(&self) -> &str {
        let first = self.names.first().map_or("", String::as_str);
        self.chosen.as_deref().unwrap_or(first)
    }

    /// Returns ` of pool export`, for a title; nothing if the server has one pool.
    pub(super) fn title(&self) -> Markup {
        html! { @if !self.shown().is_empty() { " of pool " span.name { (self.shown()) } } }
    }

    /// Returns the control, for use within a form; nothing if the server has one pool. `all` is the
    /// label of an entry for all pools, if the page can show them.
    pub(super) fn control(&self, all: Option<&str>) -> Markup {
        let is_chosen = |name: &str| match all {
            Some(_) => self.chosen.as_deref() == Some(name),
            None => self.shown() == name,
        };
        html! {
            @if !self.names.is_empty() {
                @let value =
                    if all.is_some() { self.chosen().unwrap_or_default() } else { self.shown() };
                input type="hidden" name=(LISTED) value=(value);
                label { "Pool " select name=(KEY) {
                    @if let Some(all) = all {
                        option value="" selected[self.chosen.is_none()] { (all) }
                    }
                    @for name in &self.names {
                        option value=(name) selected[is_chosen(name)] { (name) }
                    }
                } }
            }
        }
    }

    /// Returns the control in a form of its own, for a page without other inputs.
    pub(super) fn form(&self, path: &str) -> Markup {
        html! {
            @if !self.names.is_empty() {
                form.ask action=(path) { (self.control(None)) button { "Show" } }
            }
        }
    }
}
