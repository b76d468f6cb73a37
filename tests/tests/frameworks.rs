//! Full-stack applications of frameworks: the same pages through nginx + php-fpm and through Samovar, in
//! each execution model, by one visitor and by a crowd.
//!
//! A *walk* is what one visitor does (`samovar_testkit::walk`); a *crowd* are many at once in an order
//! that a seed decides (`crowd.rs`). Both sides have copies of the application of their own.

#[path = "frameworks/crowd.rs"]
mod crowd;
#[path = "frameworks/debug.rs"]
mod debug;
#[path = "frameworks/guide.rs"]
mod guide;
#[path = "frameworks/laravel.rs"]
mod laravel;
#[path = "frameworks/reloads.rs"]
mod reloads;
#[path = "frameworks/routes.rs"]
mod routes;
#[path = "frameworks/shop.rs"]
mod shop;

use samovar_testkit::{masks, visitor, walk};
