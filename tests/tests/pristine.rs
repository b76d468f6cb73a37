//! The checkpoint model: every answer is, byte for byte, the first answer of a fresh process, whatever
//! others asked before.
//!
//! A *scene* is what one newcomer does, with cookies of their own. Each is played once where processes
//! are fresh by nature (nginx + php-fpm), and then a thousand requests long in random order, by two
//! clients at once, on a server that rolls back. `PRISTINE_SEED` repeats an order, `PRISTINE_REQUESTS`
//! makes it longer.

#[path = "pristine/connection.rs"]
mod connection;
#[path = "pristine/differential.rs"]
mod differential;
#[path = "pristine/dokuwiki.rs"]
mod dokuwiki;
#[path = "applications/forms.rs"]
mod forms;
#[path = "pristine/script.rs"]
mod script;
#[path = "pristine/symfony.rs"]
mod symfony;
#[path = "pristine/wordpress.rs"]
mod wordpress;
