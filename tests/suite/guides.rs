//! The guides are followed to the letter: a reader who types what they say gets what they say.
//!
//! A page is followed from its first line to its last in a place of its own (`place.rs`). What each
//! fenced block is stands in its info string (`page.rs`):
//!
//! | info string | what is done |
//! |---|---|
//! | `php public/index.php` | the file is written |
//! | `php in public/index.php` | these lines must stand in the file |
//! | `console` | each `$ command` is run; what follows must be its output, `…` standing for anything |
//! | `text` | nothing: a picture made of letters. It is counted, and listed |
//!
//! Any other block, and one that is indented instead of fenced, is an error: none is passed over.
//!
//! A command is run by a shell, as it stands, except where this machine is not the reader's
//! (`rules.rs`, each rule with a name), and except that ports and folders are the place's own.

mod application;
mod background;
mod catalogue;
mod composer;
mod database;
mod harness;
mod page;
mod pattern;
mod place;
mod rules;
mod walk;

use catalogue::follow;

/// A test for each page, and their list: none can be in one and not in the other.
macro_rules! pages {
    ($($test:ident: $page:literal,)+) => {
        const TESTED: &[&str] = &[$($page),+];

        $(
            #[test]
            fn $test() {
                follow($page);
            }
        )+
    };
}

pages! {
    getting_started: "getting-started",
    plain_php: "plain-php",
    symfony: "symfony",
    slim: "slim",
    psr15: "psr15",
    wordpress: "wordpress",
    laravel: "laravel",
    parallel: "parallel",
    shared_memory: "shared-memory",
    fastcgi: "fastcgi",
}
