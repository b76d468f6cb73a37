//! Full-stack applications of frameworks: the same pages through nginx + php-fpm and through
//! Samovar, in each execution model, by one visitor and by a crowd.
//!
//! A *walk* is the visit of one client (`samovar_testkit::walk`). A *crowd* is a group of
//! concurrent visitors whose order of requests is set by a seed (`crowd.rs`). Each side has its own
//! copy of the application.

mod crowd;
mod debug;
mod guide;
mod kept;
pub(crate) mod laravel;
mod reloads;
mod routes;
pub(crate) mod shop;

use samovar_testkit::{masks, visitor, walk};
