//! Which pages are followed, and with which application in place.

use crate::guides::application::{self, Applications};
use crate::guides::page::Page;
use crate::guides::place::Place;
use crate::guides::walk::walk;
use samovar_testkit::workspace;
use std::collections::BTreeSet;

/// The pages that are followed.
const FOLLOWED: &[(&str, Applications)] = &[
    ("getting-started", application::hello),
    ("plain-php", application::none),
    ("symfony", application::symfony),
    ("slim", application::slim),
    ("psr15", application::none),
    ("wordpress", application::wordpress),
    ("laravel", application::laravel),
    ("shared-memory", application::none),
    ("parallel", application::none),
    ("fastcgi", application::none),
];
/// Pages that explain and ask for nothing in an order: what they show is in tests of its own.
const EXPLAINING: &[&str] = &[
    "checkpoint-model",
    "compare",
    "compression",
    "consumers",
    "dashboard",
    "edge",
    "engine",
    "frankenphp",
    "leaks",
    "locations",
    "observability",
    "operations",
    "pools",
    "profiling",
    "resident-model",
    "script-model",
    "workers",
];

/// Follows a page of the guide.
pub(crate) fn follow(name: &str) {
    let known = FOLLOWED.iter().find(|(followed, _)| *followed == name);
    let (_, applications) = known.expect("the page is in the list");
    let page = read(name);
    let place = Place::new();
    // Held until the walk is over: a database is among it.
    let _applications = applications(&place);
    if let Err(error) = walk(&page, &place) {
        panic!("docs/guide/{name}.md, {error}");
    }
    println!("{name}: {} steps, {} pictures", page.steps.len(), page.pictures.len());
    page.pictures.iter().for_each(|picture| println!("    {picture}"));
}

fn read(name: &str) -> Page {
    let text = text(&format!("docs/guide/{name}.md"));
    Page::read(&text).unwrap_or_else(|e| panic!("docs/guide/{name}.md, {e}"))
}

fn text(path: &str) -> String {
    let file = workspace().join(path);
    std::fs::read_to_string(file).unwrap_or_else(|e| panic!("`{path}`: {e}"))
}

#[test]
fn each_page_is_followed_or_explains() {
    let pages = std::fs::read_dir(workspace().join("docs/guide")).expect("a folder");
    let names = pages.map(|page| page.expect("an entry").file_name().into_string());
    let names: BTreeSet<String> = names.map(|name| name.expect("a name of letters")).collect();
    let known = FOLLOWED.iter().map(|(name, _)| *name).chain(EXPLAINING.iter().copied());
    let known: BTreeSet<String> = known.map(|name| format!("{name}.md")).collect();
    assert_eq!(names, known, "each page is in one of the two lists");
    let tested: BTreeSet<&str> = crate::guides::TESTED.iter().copied().collect();
    let followed: BTreeSet<&str> = FOLLOWED.iter().map(|(name, _)| *name).collect();
    assert_eq!(tested, followed, "each page that is followed has a test");
}

#[test]
fn each_page_is_linked() {
    let (contents, readme) = (text("docs/README.md"), text("README.md"));
    for (name, _) in FOLLOWED {
        let link = format!("guide/{name}.md)");
        assert!(contents.contains(&format!("({link}")), "docs/README.md does not link {name}");
        assert!(readme.contains(&format!("(docs/{link}")), "README.md does not link {name}");
    }
}
