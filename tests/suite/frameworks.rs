//! Full-stack applications of frameworks: the same pages through nginx + php-fpm and through Samovar, in
//! each execution model, by one visitor and by a crowd.
//!
//! A *walk* is what one visitor does (`samovar_testkit::walk`); a *crowd* are many at once in an order
//! that a seed decides (`crowd.rs`). Both sides have copies of the application of their own.

mod crowd;
mod debug;
mod guide;
mod laravel;
mod reloads;
mod routes;
mod shop;

use samovar_testkit::{masks, visitor, walk};
