//! Certificates that an authority issues by itself (ACME, RFC 8555): fetched, kept on a disk, renewed.
//!
//! A thread of its own does all of it ([`Keeper`]); it knows neither settings nor listeners: a [`Plan`] says what is
//! wanted, a [`Stage`] puts proofs and certificates where clients and authorities find them. Nothing that goes wrong
//! here ends anything, or takes a certificate away that there is: it is told, with what to do, and tried again.
//!
//! Reading order: `plan` what is wanted, `validity` when something is due, `store` the files, `trouble` what goes wrong,
//! `http` how an authority is asked, `account` who asks, `order` one certificate, `keeper` the thread.

mod account;
mod http;
mod keeper;
mod order;
mod plan;
mod stage;
mod store;
mod trouble;
mod validity;

pub use keeper::{DomainStatus, Keeper};
pub use plan::{External, Plan, Way};
pub use stage::{Proof, Stage};
pub use store::prepare as prepare_folder;
