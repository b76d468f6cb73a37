//! Charts as SVG: drawn by the server, without scripts, coloured by the style sheet in light and
//! dark.
//!
//! All charts have the same size and margins, so that their time axes align. Each has a text for
//! screen readers, and each column has a title that appears under the pointer.

mod area;
mod axis;
mod bars;
mod flame;
mod heat;
mod lines;

pub(crate) use area::{empty, event_class};
pub(crate) use bars::{Part, bar, histogram, parts, span_bar};
pub(crate) use flame::{Flames, flames};
pub(crate) use heat::Heat;
pub(crate) use lines::{Layer, Lines};
