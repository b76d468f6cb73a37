//! The checkpoint model: every answer is, byte for byte, the first answer of a fresh process, whatever
//! others asked before.
//!
//! A *scene* is what one newcomer does, with cookies of their own. Each is played once where processes
//! are fresh by nature (nginx + php-fpm), and then a thousand requests long in random order, by two
//! clients at once, on a server that rolls back. `PRISTINE_SEED` repeats an order, `PRISTINE_REQUESTS`
//! makes it longer.

mod connection;
mod differential;
mod dokuwiki;
mod script;
mod symfony;
mod wordpress;
