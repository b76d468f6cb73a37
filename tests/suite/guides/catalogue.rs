//! List of the followed pages, each with its application.

use crate::guides::application::{self, Applications};
use crate::guides::page::Page;
use crate::guides::place::GuideMachine;
use crate::guides::walk::walk;
use samovar_testkit::workspace;
use std::collections::BTreeSet;

/// Pages that are followed.
const FOLLOWED: &[(&str, Applications)] = &[
    ("start/quick-start", application::hello),
    ("start/plain-php", application::none),
    ("start/symfony", application::symfony),
    ("start/slim", application::slim),
    ("start/psr15", application::none),
    ("start/wordpress", application::wordpress),
    ("start/laravel", application::laravel),
    ("guide/shared-memory", application::none),
    ("guide/parallel", application::none),
    ("guide/sizing", application::hello),
    ("start/from-php-fpm", application::none),
];
/// Pages that explain, without a sequence of commands. Other tests cover their content.
const EXPLAINING: &[&str] = &[
    "start/convert-configuration",
    "guide/canary",
    "guide/checkpoint-model",
    "guide/compare",
    "guide/compression",
    "guide/console-workers",
    "guide/dashboard",
    "guide/deploy",
    "guide/development",
    "guide/doctor",
    "guide/kubernetes",
    "guide/leaks",
    "guide/limits",
    "guide/lint",
    "guide/locations",
    "guide/logs",
    "guide/mocks",
    "guide/observability",
    "guide/php-engine",
    "guide/php-upgrades",
    "guide/php-versions",
    "guide/planning",
    "guide/pools",
    "guide/preload",
    "guide/privileges",
    "guide/queues",
    "guide/queues-in-frameworks",
    "guide/profiling",
    "guide/record-and-replay",
    "guide/releases",
    "guide/resident-model",
    "guide/schedules",
    "guide/script-model",
    "guide/status-and-health",
    "guide/testing",
    "guide/tls-and-http2",
    "guide/troubleshooting",
    "guide/try",
    "guide/workers",
    "start/docker",
    "start/from-frankenphp",
    "start/from-octane",
    "start/from-roadrunner",
    "start/from-swoole",
    "start/install",
    "start/production-checklist",
];

/// Follows a page of the guide.
pub(crate) fn follow(name: &str) {
    let known = FOLLOWED.iter().find(|(followed, _)| *followed == name);
    let (_, applications) = known.expect("the page is in the list");
    let page = read(name);
    let place = GuideMachine::new();
    // Held until the walk is over: it may contain a database server.
    let _applications = applications(&place);
    if let Err(error) = walk(&page, &place) {
        panic!("docs/{name}.md, {error}");
    }
    println!("{name}: {} steps, {} pictures", page.steps.len(), page.pictures.len());
    page.pictures.iter().for_each(|picture| println!("    {picture}"));
}

fn read(name: &str) -> Page {
    let text = text(&format!("docs/{name}.md"));
    Page::read(&text).unwrap_or_else(|e| panic!("docs/{name}.md, {e}"))
}

fn text(path: &str) -> String {
    let file = workspace().join(path);
    std::fs::read_to_string(file).unwrap_or_else(|e| panic!("`{path}`: {e}"))
}

/// Folders with pages for users.
const FOLDERS: &[&str] = &["guide", "start"];

#[test]
fn each_guide_page_is_followed_or_listed_as_explanation() {
    let names: BTreeSet<String> = FOLDERS.iter().flat_map(|folder| names(folder)).collect();
    let known = FOLLOWED.iter().map(|(name, _)| *name).chain(EXPLAINING.iter().copied());
    let known: BTreeSet<String> = known.map(str::to_owned).collect();
    assert_eq!(names, known, "each page is in one of the two lists");
    let tested: BTreeSet<&str> = crate::guides::TESTED.iter().copied().collect();
    let followed: BTreeSet<&str> = FOLLOWED.iter().map(|(name, _)| *name).collect();
    assert_eq!(tested, followed, "each page that is followed has a test");
}

fn names(folder: &str) -> Vec<String> {
    let pages = std::fs::read_dir(workspace().join("docs").join(folder)).expect("a folder");
    let names = pages.map(|page| page.expect("an entry").file_name().into_string());
    let name = |file: String| format!("{folder}/{}", file.strip_suffix(".md").expect("a page"));
    names.map(|file| name(file.expect("a name of letters"))).collect()
}

#[test]
fn each_guide_page_is_linked() {
    let contents = text("docs/README.md");
    let pages = FOLLOWED.iter().map(|(name, _)| *name).chain(EXPLAINING.iter().copied());
    for name in pages {
        assert!(contents.contains(&format!("({name}.md")), "docs/README.md does not link {name}");
    }
}
