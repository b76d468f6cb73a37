//! Cost of boots, and files that requests still load: read from reports of the processes, added up
//! and queried.
//!
//! | file | content |
//! |---|---|
//! | `loads/report.rs` | loads of one boot or request, as its process wrote them |
//! | `loads/boot.rs` | cost of a boot by part, folder and file |
//! | `loads/boot_details.rs` | a boot with the loads of its requests and its functions |
//! | `loads/functions.rs` | functions of a boot, from the sampler |
//! | `loads/lazy.rs` | loads of requests, and advice for warming up |
//! | `loads/includes.rs` | files that each route includes |
//! | `loads/inclusion_order.rs` | order of these files, and the start that all routes share |
//! | `loads/warmup_cover.rs` | few requests that include most of them |
//! | `loads/growth.rs` | causes of workers' memory growth, received the same way |
//! | `loads/collector.rs` | thread that receives the reports |

mod boot;
mod boot_details;
mod collector;
mod functions;
mod growth;
mod includes;
mod inclusion_order;
mod lazy;
mod report;
mod warmup_cover;

pub use boot::{Boot, File, Folder, Part, Rehearsal};
pub use boot_details::{BootFunction, Explained};
pub use collector::Loads;
pub use includes::{IncludedFile, Includes, RouteIncludes};
pub use inclusion_order::{Candidate, SharedStart};
pub use lazy::{Advice, Lazy, LazyFile};
pub use report::Cost;
