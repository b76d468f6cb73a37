//! Boots explained, and what requests still load: read from what processes send, added up, asked for.
//!
//! | file | |
//! |---|---|
//! | `loads/report.rs` | what one boot or request has loaded, as its process has written it |
//! | `loads/boot.rs` | a boot by part, folder and file |
//! | `loads/functions.rs` | its functions, by the sampler |
//! | `loads/lazy.rs` | what requests load, and what would warm it up |
//! | `loads/growth.rs` | what makes workers grow, which comes the same way |
//! | `loads/keeper.rs` | the thread that takes reports in |

mod boot;
mod functions;
mod growth;
mod keeper;
mod lazy;
mod report;

pub use boot::{Boot, File, Folder, Part, Rehearsal};
pub use functions::BootFunction;
pub use keeper::{Explained, Loads};
pub use lazy::{Advice, Lazy, LazyFile};
pub use report::Cost;
