//! The guides are followed literally: every command and file of a page is executed, and must have
//! the described result.
//!
//! A page is followed from its first line to its last on a separate simulated machine (`place.rs`).
//! The info string of each fenced block defines its treatment (`page.rs`):
//!
//! | info string | action |
//! |---|---|
//! | `php public/index.php` | the file is written |
//! | `php in public/index.php` | the file must contain these lines |
//! | `console` | each `$ command` is run; the next lines are its output, `…` matches anything |
//! | `text` | none: an ASCII picture. It is counted, and listed |
//!
//! Any other block, and any indented instead of fenced block, is an error. No block is skipped.
//!
//! A shell runs each command unchanged, with two exceptions: rules for differences between this
//! machine and the reader's (`rules.rs`, each rule with a name), and ports and folders, which are
//! replaced.

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

/// Defines a test for each page, and the list of the tested pages. Both have the same entries.
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
    quick_start: "start/quick-start",
    plain_php: "start/plain-php",
    symfony: "start/symfony",
    slim: "start/slim",
    psr15: "start/psr15",
    wordpress: "start/wordpress",
    laravel: "start/laravel",
    parallel: "guide/parallel",
    shared_memory: "guide/shared-memory",
    sizing: "guide/sizing",
    from_php_fpm: "start/from-php-fpm",
}
