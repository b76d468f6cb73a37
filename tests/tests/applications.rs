//! Real applications: the same pages through nginx + php-fpm and through Samovar.
//!
//! A walk is what one visitor does, a sequence of named steps with cookies kept; it is made on each
//! side, on copies of the application of their own, and the answers must be equal after the named
//! rules.

#[path = "applications/dokuwiki.rs"]
mod dokuwiki;
#[path = "applications/example.rs"]
mod example;
#[path = "applications/forms.rs"]
mod forms;
#[path = "applications/sessions.rs"]
mod sessions;
#[path = "applications/slim.rs"]
mod slim;
#[path = "applications/symfony.rs"]
mod symfony;
