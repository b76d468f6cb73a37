//! What can be set. Reading order: [`table`], [`setting`] (what a row of it holds, what is allowed), [`settings`]
//! (what comes out; `sheet` is how it is declared), [`address`] and [`listener`] (the entries of `listen`), `compression` (how answers are packed), `console` (the tables `[[console]]`),
//! `location` (the tables `[[location]]`), `log_target` (where logs go), `pool` (the tables `[[pool]]`), [`send_folder`] (a row of `[sendfile]`), `notation` (sizes, times, addresses), `domain` (names of the server, and what follows from them), `finish` (what only
//! the machine knows), [`names`] (what was meant by a mistyped one).

#[macro_use]
pub(crate) mod sheet;

pub mod address;
pub mod binary;
pub mod compression;
pub(crate) mod console;
mod domain;
mod finish;
pub mod listener;
pub(crate) mod location;
pub(crate) mod log_target;
pub mod names;
pub(crate) mod notation;
pub(crate) mod pool;
pub mod send_folder;
pub mod setting;
pub mod settings;
pub mod table;
pub mod upstream;
