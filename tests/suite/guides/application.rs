//! Applications that the readers of a page already have.

use crate::guides::composer;
use crate::guides::database;
use crate::guides::place::GuideMachine;
use samovar_testkit::MariaDb;
use samovar_testkit::workspace;

/// Installs the application that a page starts with. A returned database server runs until it is
/// dropped.
pub(crate) type Applications = fn(&GuideMachine) -> Option<MariaDb>;

/// Folder of a page's application.
const SHOP: &str = "/srv/shop";

/// The page creates its own application.
pub(crate) fn none(_: &GuideMachine) -> Option<MariaDb> {
    None
}

/// A reader's own application; the example is used for it.
pub(crate) fn hello(place: &GuideMachine) -> Option<MariaDb> {
    place.install(&workspace().join("examples/hello"), SHOP);
    None
}

/// A Symfony application with the front controller of Symfony's recipe, based on the example.
pub(crate) fn symfony(place: &GuideMachine) -> Option<MariaDb> {
    place.install(&workspace().join("examples/symfony"), SHOP);
    for example in ["public/checkpoint.php", "public/resident.php", "README.md"] {
        remove(place, example);
    }
    // Left by an earlier run of the example.
    let _ = std::fs::remove_dir_all(place.path(SHOP).join("var"));
    write(place, "public/index.php", RECIPE);
    write(place, "composer.json", "{\"autoload\": {\"files\": [\"autoload.php\"]}}\n");
    composer::require_in(&place.path(SHOP), "symfony/runtime").expect("Debian's packages");
    None
}

const RECIPE: &str = "<?php

use App\\Kernel;

require_once dirname(__DIR__) . '/vendor/autoload_runtime.php';

return fn (array $context) => new Kernel($context['APP_ENV'], (bool) $context['APP_DEBUG']);
";

/// The example for Slim, with its ordinary front controller.
pub(crate) fn slim(place: &GuideMachine) -> Option<MariaDb> {
    place.install(&workspace().join("examples/slim"), SHOP);
    remove(place, "public/resident.php");
    remove(place, "README.md");
    None
}

/// A database server without a blog database, and a checkout of Samovar. The page itself unpacks
/// the blog's code.
#[allow(clippy::unnecessary_wraps, reason = "one of the `Applications`")]
pub(crate) fn wordpress(place: &GuideMachine) -> Option<MariaDb> {
    place.install(&workspace().join("php/wordpress"), "/home/samovar/php/wordpress");
    Some(database::start(place))
}

/// A small Laravel application with the front controller of Laravel 8 to 10.
pub(crate) fn laravel(place: &GuideMachine) -> Option<MariaDb> {
    place.install(&workspace().join("tests/suite/guides/laravel"), SHOP);
    for empty in ["bootstrap/cache", "storage/framework/sessions", "storage/framework/views"] {
        std::fs::create_dir_all(place.path(SHOP).join(empty)).expect("our own folder");
    }
    composer::require_in(&place.path(SHOP), "laravel/framework").expect("Debian's packages");
    None
}

fn remove(place: &GuideMachine, path: &str) {
    std::fs::remove_file(place.path(SHOP).join(path)).expect("the example has it");
}

fn write(place: &GuideMachine, path: &str, text: &str) {
    std::fs::write(place.path(SHOP).join(path), text).expect("our own file");
}
