//! Tests of the harness: wrong pages must be detected. It runs on small pages of its own.

use crate::guides::page::Page;
use crate::guides::pattern::{begins, matches};
use crate::guides::place::GuideMachine;
use crate::guides::walk::walk;

/// Follows a page given as text.
fn follow(markdown: &str) -> Result<(), String> {
    walk(&Page::read(markdown)?, &GuideMachine::new())
}

#[test]
fn correct_page_passes() {
    let page = "# Page\n\n```php index.php\n<?php echo 'at :8080';\n```\n\n\
        ```php in index.php\n<?php echo 'at :8080';\n```\n\n```text\na → b\n```\n\n\
        ```console\n$ mkdir -p a/b && cd a\n$ pwd && ls\n/home/a\nb\n$ cd ..\n\
        $ samovar serve index.php\nsamovar: listening on http://127.0.0.1:8080 …\n\
        $ curl -s \\\n    http://127.0.0.1:8080/\nat :8080\n$ samovar status\n\
        …\n… idle script …\n…\n\
        $ samovar stop\n```\n";
    assert_eq!(follow(page), Ok(()));
    assert_eq!(Page::read(page).map(|page| page.pictures), Ok(vec!["line 11: a → b".to_owned()]));
}

#[test]
fn wrong_page_fails_with_line_number() {
    for (page, error) in [
        ("\n\n```console\n$ echo a\nb\n```\n", "line 4: `echo a`\nexpected:\nb\ngot:\na\n"),
        ("```console\n$ false\n```\n", "line 2: `false` failed"),
        (
            "```console\n$ samovar status --control no.sock\n```\n",
            "line 2: `samovar status --control no.sock` failed",
        ),
        ("```php a.php\na\n```\n```php in a.php\nb\n```\n", "line 4: `a.php` has no such lines"),
        ("```php no/a.php\n```\n", "there is no folder `/home/no`"),
        ("```console\n$ sudo apt-get install no-such-package\n```\n", "is not installed"),
        ("```console\n$ composer require no/such\n```\n", "does not know `no/such`"),
        ("```console\n$ samovar serve nothing\n```\n", "it ended"),
    ] {
        let told = follow(page).expect_err(page);
        assert!(told.contains(error), "{page}\n{told}");
    }
}

#[test]
fn unknown_block_is_rejected() {
    for page in [
        "```\na\n```\n",
        "```php\na\n```\n",
        "```php a.php b.php\na\n```\n",
        "```console twice\n$ a\n```\n",
        "```console\n```\n",
        "```console\na\n```\n",
        "text\n\n    indented\n",
        "- a list\n  ```text\n  a\n  ```\n",
    ] {
        assert!(Page::read(page).is_err(), "{page}");
    }
}

#[test]
fn ellipsis_matches_any_text() {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    for (expected, actual, is_match) in [
        ("a", "a\n", true),
        ("a", "a\nb", false),
        ("a\nb", "a", false),
        ("a … b", "a 1 2 b", true),
        ("a … b", "a 1 2 c", false),
        ("a …", "b", false),
        ("…\nb\n…", "a\nb\nc", true),
        ("…\nb", "a\nb\nc", false),
        ("…b…b", "ab b", true),
        ("a  b", "  a b ", true),
        ("", "", true),
    ] {
        assert_eq!(matches(&lines(expected), actual), is_match, "{expected:?} {actual:?}");
    }
    assert!(begins(&lines("a"), "a\nb") && !begins(&lines("b"), "a\nb"));
}
