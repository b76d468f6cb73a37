//! tests/apps/symfony-shop in development mode: debug mode, toolbar and profiler, `dd()`, error
//! pages with explanations, changed files, Xdebug.

mod toolbar;
mod xdebug;

use crate::frameworks::masks::Side;
use crate::frameworks::shop::{Model, RULES, Shop};
use crate::frameworks::visitor::{Visitor, between};
use crate::frameworks::walk::{differences, responses};
use samovar_testkit::{Oracle, Server};

/// Makes changed files take effect immediately, in opcache too.
const FRESH: (&str, &str) = ("opcache.revalidate_freq", "0");

#[test]
fn debug_pages_in_script_model_match_php_fpm() {
    pages(Model::Script);
}

#[test]
fn debug_pages_in_resident_model_match_php_fpm() {
    pages(Model::Resident);
}

#[test]
fn debug_pages_in_checkpoint_model_match_php_fpm() {
    pages(Model::Checkpoint);
}

#[test]
fn changed_files_take_effect_in_script_model() {
    changes(Model::Script, true, true);
}

/// Files loaded by the boot belong to the image. Files loaded by a request are read for each
/// request.
#[test]
fn changed_files_take_effect_in_checkpoint_model_unless_booted() {
    changes(Model::Checkpoint, false, true);
}

#[test]
fn changed_files_take_effect_in_resident_model_after_restart() {
    changes(Model::Resident, false, false);
}

fn changes(model: Model, template: bool, controller: bool) {
    let bench = Bench::start(model);
    sees(&bench.server, false, false);
    change(&bench.shop);
    sees(&bench.server, template, controller);
    sees(&bench.restart(model).server, true, true);
}

/// A shop in development mode in one worker, so that each request meets the state left by the
/// previous one.
struct Bench {
    server: Server,
    shop: Shop,
}

impl Bench {
    fn start(model: Model) -> Bench {
        Bench::of(developed(), model, &[FRESH])
    }

    fn of(shop: Shop, model: Model, define: &[(&str, &str)]) -> Bench {
        let start = Server::at(shop.public()).workers(1);
        let server = model.start(define.iter().fold(start, |s, (key, value)| s.define(key, value)));
        Bench { server, shop }
    }

    fn restart(self, model: Model) -> Bench {
        self.server.stop();
        Bench::of(self.shop, model, &[FRESH])
    }

    fn visitor(&self) -> Visitor {
        Visitor::new(self.server.address())
    }
}

/// A shop in debug mode with a compiled container.
fn developed() -> Shop {
    Shop::with("APP_ENV=dev\nAPP_DEBUG=1\n")
}

/// Requests all pages at least twice from one worker, and compares them with php-fpm.
fn pages(model: Model) {
    let (bench, theirs) = (Bench::start(model), developed());
    let oracle = Oracle::with(&theirs.public(), &[FRESH]);
    let ours = Side {
        address: bench.server.address(),
        folder: bench.shop.path(),
        own: bench.server.folder(),
    };
    let their_side =
        Side { address: oracle.address(), folder: theirs.path(), own: oracle.folder() };
    let [ours, theirs] = [ours, their_side].map(|side| {
        let mut visitor = Visitor::new(side.address);
        walk(&mut visitor);
        let walked = responses(&visitor, RULES, &side).into_iter();
        walked.map(|(step, text)| (step, without_token(&text))).collect::<Vec<_>>()
    });
    let report = differences(&ours, &theirs);
    assert!(report.is_empty(), "`-` is nginx + php-fpm, `+` is Samovar\n{report}");
    println!("{} pages equal", ours.len());
    let status = bench.server.status();
    assert_eq!(status["worker_restarts_total"], 0, "{status}\n{}", bench.server.log());
}

/// A worker's first responses are those of `dd()`.
fn walk(visitor: &mut Visitor) {
    for name in ["first", "second", "third"] {
        let dump = visitor.get(&format!("/ways/dd?name={name}"));
        assert_eq!(dump.status, 500);
        let text = dump.text();
        assert!(text.contains(&format!(">{name}</span>")), "{name} is not dumped: {text}");
        // The comparison with php-fpm checks the number of style sheets: later Symfony versions
        // send one with each value.
        assert!(text.contains("Sfdump = window.Sfdump"), "{name} has no style sheet: {text}");
    }
    for target in ["/", "/", "/products/1", "/ways/exit?name=ann", "/ways/json", "/"] {
        visitor.get(target);
    }
    for _ in 0..2 {
        let page = visitor.look("/ways/boom");
        assert_eq!(page.status, 500);
        explains(&page.text(), "This page always fails.", "src/Controller/WaysController.php");
        let page = visitor.look("/no/such/page");
        assert_eq!(page.status, 404);
        explains(&page.text(), "No route found for", "RouterListener.php");
    }
    visitor.get("/ways/dd?name=last");
    visitor.get("/ways/exit?name=bob");
    visitor.get("/");
}

/// Checks that the page is the development error page: message, place of the throw, and its source
/// code.
fn explains(page: &str, message: &str, file: &str) {
    let title = between(page, "<title>", "</title>");
    assert!(title.contains(message), "{title}");
    let (_, trace) = page.split_once("id=\"trace-box-1\"").expect("a trace");
    let thrown = between(trace, "data-clipboard-text=\"", "\"");
    assert!(thrown.contains(&format!("{file}:")), "{thrown}");
    assert!(trace.contains("class=\"trace-code"), "no source in {trace}");
}

/// Replaces the profiler's token, which differs for each request. The page contains it next to the
/// toolbar.
fn without_token(text: &str) -> String {
    let token = text.split("\nx-debug-token: ").nth(1).and_then(|rest| rest.split('\n').next());
    token.map_or_else(|| text.to_owned(), |token| text.replace(token, "<token>"))
}

/// A template that the boot loads, and a controller that it does not: file, text to replace, and
/// replacement.
const CHANGES: [(&str, &str, &str); 2] = [
    ("templates/base.html.twig", "<main>", "<main id=\"changed\">"),
    ("src/Controller/WaysController.php", "'left by '", "'changed by '"),
];

fn change(shop: &Shop) {
    for (file, old, new) in CHANGES {
        let file = shop.path().join(file);
        let text = std::fs::read_to_string(&file).expect("a file of the application");
        assert!(text.contains(old), "{}", file.display());
        std::fs::write(&file, text.replace(old, new)).expect("our own file");
    }
}

/// Checks whether each of the changes is visible, in more than one request.
fn sees(server: &Server, template: bool, controller: bool) {
    let pages =
        [("/", "<main id=\"changed\">", template), ("/ways/exit", "changed by ", controller)];
    for (target, new, seen) in pages {
        for _ in 0..2 {
            let page = server.get(target).text();
            assert_eq!(page.contains(new), seen, "{target}: {page}\n{}", server.log());
        }
    }
}
