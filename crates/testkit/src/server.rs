//! A Samovar under test.

mod defaults;
mod heir;
mod running;
mod start;
mod status;
mod upgrade;

pub use defaults::{front_threads, ini};
pub use running::Server;
pub use start::Start;
pub use status::Held;
