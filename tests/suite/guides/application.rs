//! The applications that readers of a page have already.

use crate::guides::composer;
use crate::guides::database;
use crate::guides::place::Place;
use samovar_testkit::MariaDb;
use samovar_testkit::workspace;

/// Puts in place what a page begins with; what runs beside it ends when dropped.
pub(crate) type Applications = fn(&Place) -> Option<MariaDb>;

/// Where a page's application lies.
const SHOP: &str = "/srv/shop";

/// The page makes its own.
pub(crate) fn none(_: &Place) -> Option<MariaDb> {
    None
}

/// Somebody's own application, which is that of the examples.
pub(crate) fn hello(place: &Place) -> Option<MariaDb> {
    place.install(&workspace().join("examples/hello"), SHOP);
    None
}

/// A Symfony application with the front controller of Symfony's recipe: that of the examples.
pub(crate) fn symfony(place: &Place) -> Option<MariaDb> {
    place.install(&workspace().join("examples/symfony"), SHOP);
    for example in ["public/checkpoint.php", "public/resident.php", "README.md"] {
        remove(place, example);
    }
    // Of whoever has tried the example.
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
pub(crate) fn slim(place: &Place) -> Option<MariaDb> {
    place.install(&workspace().join("examples/slim"), SHOP);
    remove(place, "public/resident.php");
    remove(place, "README.md");
    None
}

/// A database server that knows of no blog; the page unpacks the blog's code itself. Samovar's own checkout is there.
#[allow(clippy::unnecessary_wraps, reason = "one of the `Applications`")]
pub(crate) fn wordpress(place: &Place) -> Option<MariaDb> {
    place.install(&workspace().join("php/wordpress"), "/home/samovar/php/wordpress");
    Some(database::start(place))
}

/// A small Laravel application with the front controller that Laravel 8 to 10 come with.
pub(crate) fn laravel(place: &Place) -> Option<MariaDb> {
    place.install(&workspace().join("tests/suite/guides/laravel"), SHOP);
    for empty in ["bootstrap/cache", "storage/framework/sessions", "storage/framework/views"] {
        std::fs::create_dir_all(place.path(SHOP).join(empty)).expect("our own folder");
    }
    composer::require_in(&place.path(SHOP), "laravel/framework").expect("Debian's packages");
    None
}

fn remove(place: &Place, path: &str) {
    std::fs::remove_file(place.path(SHOP).join(path)).expect("the example has it");
}

fn write(place: &Place, path: &str, text: &str) {
    std::fs::write(place.path(SHOP).join(path), text).expect("our own file");
}
