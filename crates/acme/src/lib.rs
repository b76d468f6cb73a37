//! Certificates that an authority issues automatically (ACME, RFC 8555): ordered, stored on disk,
//! renewed.
//!
//! One thread does all of this ([`Keeper`]). It knows neither settings nor listeners: a [`Plan`]
//! lists the wanted certificates, and a [`Stage`] presents proofs and certificates to authorities
//! and clients. A failure here never ends the server and never removes an existing certificate. It
//! is reported with a hint, and the attempt is repeated.
//!
//! Reading order:
//! - `plan`: the wanted certificates
//! - `validity`: times of renewals and retries
//! - `store`: the files
//! - `failure`: errors and hints
//! - `http`: client for the authority
//! - `account`: account at the authority
//! - `order`: one certificate
//! - `renewal_thread`: the thread
//!
//! `local` is an authority of its own, for `samovar dev --tls`; it shares only files and dates with
//! the rest.

mod account;
mod failure;
mod http;
mod local;
mod order;
mod plan;
mod renewal_thread;
mod stage;
mod store;
mod validity;

pub use local::{LocalAuthority, Refreshed};
pub use plan::{External, Plan, Way};
pub use renewal_thread::{DomainStatus, Keeper};
pub use stage::{Proof, Stage};
pub use store::prepare as prepare_folder;
