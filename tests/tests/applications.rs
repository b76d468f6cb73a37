//! Real applications: the same pages through nginx + php-fpm and through Samovar.
//!
//! A walk is what one visitor does, a sequence of named steps with cookies kept; it is made on each
//! side, on copies of the application of their own, and the answers must be equal after the named
//! rules in `compare.rs`.

#[path = "applications/compare.rs"]
mod compare;
#[path = "applications/copy.rs"]
mod copy;
#[path = "applications/dokuwiki.rs"]
mod dokuwiki;
#[path = "applications/sessions.rs"]
mod sessions;
#[path = "applications/slim.rs"]
mod slim;
#[path = "applications/symfony.rs"]
mod symfony;
#[path = "applications/visitor.rs"]
mod visitor;
