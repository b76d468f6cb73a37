//! The checkpoint model: every answer is, byte for byte, the first answer of a fresh process, whatever
//! others asked before.
//!
//! A *scene* is what one newcomer does, with cookies of their own. Each is played once where processes
//! are fresh by nature (nginx + php-fpm), and then a thousand requests long in random order, by two
//! clients at once, on a server that rolls back. `PRISTINE_SEED` repeats an order, `PRISTINE_REQUESTS`
//! makes it longer.

#[path = "pristine/connection.rs"]
mod connection;
#[path = "applications/copy.rs"]
mod copy;
#[path = "pristine/database.rs"]
mod database;
#[path = "pristine/differential.rs"]
mod differential;
#[path = "pristine/dokuwiki.rs"]
mod dokuwiki;
#[path = "pristine/masks.rs"]
mod masks;
#[path = "pristine/script.rs"]
mod script;
#[path = "pristine/symfony.rs"]
mod symfony;
#[path = "applications/visitor.rs"]
#[allow(dead_code, reason = "the applications' walks use all of it")]
mod visitor;
#[path = "pristine/wordpress.rs"]
mod wordpress;
