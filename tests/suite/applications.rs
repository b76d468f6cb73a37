//! Real applications: the same pages through nginx + php-fpm and through Samovar.
//!
//! A walk is the visit of one client: a sequence of named steps with cookies. It runs on each
//! server, on separate copies of the application. The responses must be equal after the named
//! masking rules.

mod dokuwiki;
mod example;
pub(crate) mod forms;
mod sessions;
mod slim;
mod symfony;
