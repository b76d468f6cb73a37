//! Real applications: the same pages through nginx + php-fpm and through Samovar.
//!
//! A walk is what one visitor does, a sequence of named steps with cookies kept; it is made on each
//! side, on copies of the application of their own, and the answers must be equal after the named
//! rules.

mod dokuwiki;
mod example;
pub(crate) mod forms;
mod sessions;
mod slim;
mod symfony;
