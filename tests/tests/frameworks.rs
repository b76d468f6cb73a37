//! Full-stack applications of frameworks: the same pages through nginx + php-fpm and through Samovar, in
//! each execution model, by one visitor and by a crowd.
//!
//! A *walk* is what one visitor does (`walk.rs`); a *crowd* are many at once in an order that a seed
//! decides (`crowd.rs`). Both sides have copies of the application of their own.

#[path = "applications/copy.rs"]
mod copy;
#[path = "frameworks/crowd.rs"]
mod crowd;
#[path = "frameworks/laravel.rs"]
mod laravel;
#[path = "pristine/masks.rs"]
mod masks;
#[path = "frameworks/postgres.rs"]
mod postgres;
#[path = "frameworks/shop.rs"]
mod shop;
#[path = "applications/visitor.rs"]
#[allow(dead_code, reason = "the applications' walks use all of it")]
mod visitor;
#[path = "frameworks/walk.rs"]
mod walk;
