//! A directive of nginx or Caddy, with its block.

use super::origin::Origin;

/// A directive.
#[derive(Clone, Debug)]
pub(crate) struct Directive {
    pub(crate) name: String,
    pub(crate) args: Vec<String>,
    pub(crate) block: Option<Vec<Directive>>,
    pub(crate) origin: Origin,
}

impl Directive {
    /// Argument at a position, or an empty text.
    pub(crate) fn arg(&self, at: usize) -> &str {
        self.args.get(at).map_or("", String::as_str)
    }

    /// Directives of the block.
    pub(crate) fn inner(&self) -> &[Directive] {
        self.block.as_deref().unwrap_or_default()
    }

    /// Directives of the block with this name.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Directive> {
        self.inner().iter().filter(move |directive| directive.name == name)
    }

    /// First directive of the block with this name.
    pub(crate) fn first<'a>(&'a self, name: &'a str) -> Option<&'a Directive> {
        self.all(name).next()
    }
}
