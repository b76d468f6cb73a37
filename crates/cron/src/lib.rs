//! Cron expressions, time zones, and the times that they name. Pure: the caller passes the time.
//!
//! | file | role |
//! |---|---|
//! | `expression.rs` | the five fields of an expression, and its local times |
//! | `zone.rs` | a time zone |
//! | `times.rs` | times at which something runs |
//! | `next.rs` | the next time of an expression in a zone, across changes of the clock |

mod expression;
mod next;
mod times;
mod zone;

pub use expression::{Cron, CronError};
pub use times::Times;
pub use zone::Zone;
