//! admin: pages for operators, on a separate listener that the site's clients do not reach.
//!
//! It has a thread with its own runtime, and a thread that renders pages, so that its requests take
//! no time from the site's requests. It reads figures from crates/insight and queries the server
//! through [`Host`]. Does not change any state of the server. In reading order:
//!
//! | file | content |
//! |---|---|
//! | `listener.rs` | thread of the listener: connections, their limits, the end |
//! | `arrivals.rs` | connections without a complete request |
//! | `access.rs` | access control: the token, and the accepted host names |
//! | `response.rs` | responses, and the headers that all have |
//! | `pages.rs` | path → page |
//! | `pages/…` | `/metrics`, `/health`, `/ready`, `/api/…`; the dashboard, a file for each page |
//! | `reader.rs` | thread that renders pages |
//! | `memory.rs` | memory of the processes |
//! | `live.rs` | stream of page updates |
//! | `frame.rs` | frame around every page of the dashboard |
//! | `query.rs` | names from outside in links |
//! | `figures.rs` | data of the pages: time series (the status is defined in crates/wire) |
//! | `host.rs`, `sources.rs` | interface to the server; all data sources of the pages |
//! | `known_releases.rs` | releases that a range can refer to |
//! | `range.rs`, `range_links.rs` | time range of a page and its comparison; links that keep them |
//! | `periods.rs`, `period_cache.rs` | data of the pages: figures of a period; their cache |
//! | `planner.rs` | the capacity plan, computed in the background |
//! | `comparisons.rs` | data of the pages: changes between two periods |
//! | `health.rs` | health check |
//! | `chart.rs` | charts as SVG |
//! | `format.rs` | figures formatted for people |
//! | `assets/` | style sheet, scripts and icon |

// Displayed values are floats and never negative. No server counts beyond 2⁵³.
#![allow(clippy::cast_precision_loss, clippy::cast_sign_loss)]

mod access;
mod arrivals;
mod chart;
mod comparisons;
mod figures;
mod format;
mod frame;
mod health;
mod host;
mod known_releases;
mod listener;
mod live;
mod memory;
mod pages;
mod period_cache;
mod periods;
mod planner;
mod query;
mod queue_periods;
mod range;
mod range_links;
mod reader;
mod response;
mod sources;

pub use access::Access;
pub use host::Host;
pub use listener::{Admin, AdminError, CONNECTIONS_MAX};
