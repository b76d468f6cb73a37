//! tests/apps/symfony-shop as its developer has it: debug mode, toolbar and profiler, `dd()`, pages that
//! explain an error, files that change, Xdebug.

mod toolbar;
mod xdebug;

use crate::frameworks::masks::Side;
use crate::frameworks::shop::{Model, RULES, Shop};
use crate::frameworks::visitor::{Visitor, between};
use crate::frameworks::walk::{answers, differences};
use samovar_testkit::{Oracle, Server};

/// A changed file is seen at once, by opcache too.
const FRESH: (&str, &str) = ("opcache.revalidate_freq", "0");

#[test]
fn debug_script_is_the_oracles() {
    pages(Model::Script);
}

#[test]
fn debug_resident_is_the_oracles() {
    pages(Model::Resident);
}

#[test]
fn debug_checkpoint_is_the_oracles() {
    pages(Model::Checkpoint);
}

#[test]
fn debug_script_sees_changed_files() {
    changes(Model::Script, true, true);
}

/// What the boot has loaded is the image's, what a request loads is read for each.
#[test]
fn debug_checkpoint_sees_changed_files_that_the_boot_has_not_loaded() {
    changes(Model::Checkpoint, false, true);
}

#[test]
fn debug_resident_sees_changed_files_after_a_restart() {
    changes(Model::Resident, false, false);
}

fn changes(model: Model, template: bool, controller: bool) {
    let bench = Bench::start(model);
    sees(&bench.server, false, false);
    change(&bench.shop);
    sees(&bench.server, template, controller);
    sees(&bench.restart(model).server, true, true);
}

/// A developer's shop in one worker: each request meets what the former has left.
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

/// A shop in debug mode, its container compiled.
fn developed() -> Shop {
    Shop::with("APP_ENV=dev\nAPP_DEBUG=1\n")
}

/// All pages twice and more by one worker, beside php-fpm.
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
        let walked = answers(&visitor, RULES, &side).into_iter();
        walked.map(|(step, text)| (step, without_token(&text))).collect::<Vec<_>>()
    });
    let report = differences(&ours, &theirs);
    assert!(report.is_empty(), "`-` is nginx + php-fpm, `+` is Samovar\n{report}");
    println!("{} pages equal", ours.len());
    let status = bench.server.status();
    assert_eq!(status["worker_restarts_total"], 0, "{status}\n{}", bench.server.log());
}

/// A worker's first answer is `dd()`'s, and so are its next.
fn walk(visitor: &mut Visitor) {
    for name in ["first", "second", "third"] {
        let dump = visitor.get(&format!("/ways/dd?name={name}"));
        assert_eq!(dump.status, 500);
        let text = dump.text();
        assert!(text.contains(&format!(">{name}</span>")), "{name} is not dumped: {text}");
        // How often is compared with php-fpm: later Symfonys send it with each value.
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

/// The page is the development's: message, where it was thrown, and the source of that.
fn explains(page: &str, message: &str, file: &str) {
    let title = between(page, "<title>", "</title>");
    assert!(title.contains(message), "{title}");
    let (_, trace) = page.split_once("id=\"trace-box-1\"").expect("a trace");
    let thrown = between(trace, "data-clipboard-text=\"", "\"");
    assert!(thrown.contains(&format!("{file}:")), "{thrown}");
    assert!(trace.contains("class=\"trace-code"), "no source in {trace}");
}

/// The profiler names each request anew; the page says the name where its toolbar is.
fn without_token(text: &str) -> String {
    let token = text.split("\nx-debug-token: ").nth(1).and_then(|rest| rest.split('\n').next());
    token.map_or_else(|| text.to_owned(), |token| text.replace(token, "<token>"))
}

/// A template that the boot loads, and a controller that it does not: file, what is to be changed, and into what.
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

/// Whether each of the changes is seen, by more than one request.
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
