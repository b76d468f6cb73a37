//! Scenes, their first responses, and the same scenes in random order on a server that rolls back.

use samovar_testkit::http::Request;
use samovar_testkit::masks::{Rule, Side};
use samovar_testkit::order::{Order, number_of, seed};
use samovar_testkit::visitor::Visitor;
use samovar_testkit::walk::{differences, responses};
use samovar_testkit::{Server, eventually};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Minimum number of requests of a trial; `PRISTINE_REQUESTS` overrides it.
pub(crate) const REQUESTS: usize = 500;
/// Number of concurrent clients: one for each worker.
const CLIENTS: usize = 2;
/// Maximum number of reported wrong responses; further ones add no information.
const WRONG_MAX: usize = 5;
/// Number of scenes before a wrong response that are reported.
const FORMER_MAX: usize = 6;

/// The visit of one new client.
pub(crate) struct Scene {
    name: String,
    play: Box<dyn Fn(&mut Visitor) + Send + Sync>,
}

impl Scene {
    /// A scene of any number of requests, each named by its step.
    pub(crate) fn new(name: &str, play: impl Fn(&mut Visitor) + Send + Sync + 'static) -> Scene {
        Scene { name: name.to_owned(), play: Box::new(play) }
    }

    /// A scene of one request.
    pub(crate) fn one(name: &str, request: Request) -> Scene {
        Scene::new(name, move |visitor| {
            visitor.send("it", request.clone());
        })
    }

    /// A scene of one GET, named after its target.
    pub(crate) fn get(target: &str) -> Scene {
        Scene::one(&format!("GET {target}"), Request::get(target))
    }
}

/// Scenes, and the responses of a fresh process.
pub(crate) struct Trial<'a> {
    scenes: &'a [Scene],
    rules: &'a [Rule],
    expected: BTreeMap<&'a str, Vec<(String, String)>>,
}

impl<'a> Trial<'a> {
    /// Records the responses of a server with a fresh process for each request, or an equivalent
    /// one.
    pub(crate) fn learn(scenes: &'a [Scene], rules: &'a [Rule], fresh: &Side) -> Trial<'a> {
        let mut expected = BTreeMap::new();
        for scene in scenes {
            let responses = play(scene, rules, fresh).masked;
            let former = expected.insert(scene.name.as_str(), responses);
            assert!(former.is_none(), "two scenes have the name {}", scene.name);
        }
        Trial { scenes, rules, expected }
    }

    /// Records each scene's responses from a new server that has served no request before.
    pub(crate) fn learn_anew(
        scenes: &'a [Scene],
        rules: &'a [Rule],
        start: impl Fn() -> Server,
        folder: &std::path::Path,
    ) -> Trial<'a> {
        let learn = |scene: &'a Scene| {
            let server = start();
            let side = Side { address: server.address(), folder, own: server.folder() };
            let responses = play(scene, rules, &side).masked;
            server.stop();
            (scene.name.as_str(), responses)
        };
        Trial { scenes, rules, expected: scenes.iter().map(learn).collect() }
    }

    /// Plays each scene once, in order, by one client. Every response must equal the recorded one.
    /// Afterwards the application has written its caches, which some applications let others read
    /// half written.
    pub(crate) fn run_in_order(&self, server: &Server, folder: &std::path::Path) {
        let stage = Stage::new(&[self], server, folder, usize::MAX);
        (0..self.scenes.len()).for_each(|at| stage.play(at));
        stage.end(server, "in order");
    }

    /// Plays the scenes of all trials in random order until `requests` requests were sent. Every
    /// response must equal the recorded one.
    pub(crate) fn run(
        trials: &[&Trial],
        server: &Server,
        folder: &std::path::Path,
        requests: usize,
    ) {
        let seed = seed("PRISTINE_SEED");
        let requests = number_of("PRISTINE_REQUESTS").map_or(requests, |n| n as usize);
        let stage = Stage::new(trials, server, folder, requests);
        std::thread::scope(|scope| {
            for client in 0..CLIENTS {
                let stage = &stage;
                scope.spawn(move || stage.client(Order::new(seed, client)));
            }
        });
        stage.end(server, &format!("PRISTINE_SEED={seed}"));
    }
}

/// A scene's responses after masking, and its cookies.
struct Played {
    masked: Vec<(String, String)>,
    cookies: Vec<String>,
}

fn play(scene: &Scene, rules: &[Rule], side: &Side) -> Played {
    let mut visitor = Visitor::new(side.address);
    (scene.play)(&mut visitor);
    let cookies = visitor.steps.iter().flat_map(|(_, r)| r.all("set-cookie"));
    let cookies = cookies.map(|c| c.split(';').next().unwrap_or_default().to_owned()).collect();
    Played { masked: responses(&visitor, rules, side), cookies }
}

/// State shared by the clients of a run.
struct Stage<'a> {
    parts: Vec<(&'a Trial<'a>, &'a Scene)>,
    side: Side<'a>,
    sent: AtomicUsize,
    requests: usize,
    report: Mutex<Report>,
}

#[derive(Default)]
struct Report {
    wrong: Vec<String>,
    former: VecDeque<String>,
    sessions: BTreeSet<String>,
}

impl<'a> Stage<'a> {
    fn new(
        trials: &[&'a Trial],
        server: &'a Server,
        folder: &'a std::path::Path,
        requests: usize,
    ) -> Stage<'a> {
        Stage {
            parts: trials.iter().flat_map(|t| t.scenes.iter().map(move |s| (*t, s))).collect(),
            side: Side { address: server.address(), folder, own: server.folder() },
            sent: AtomicUsize::new(0),
            requests,
            report: Mutex::default(),
        }
    }

    fn client(&self, mut order: Order) {
        while self.sent.load(Ordering::Relaxed) < self.requests && self.wrong_count() < WRONG_MAX {
            self.play(order.next(self.parts.len()));
        }
    }

    /// Plays the scene at that index.
    fn play(&self, at: usize) {
        let (trial, scene) = self.parts[at];
        let played = play(scene, trial.rules, &self.side);
        self.sent.fetch_add(played.masked.len(), Ordering::Relaxed);
        self.judge(&trial.expected[scene.name.as_str()], scene, &played);
    }

    /// Fails if a response was wrong. `order`: how to repeat the order of the scenes.
    fn end(self, server: &Server, order: &str) {
        let report = self.report.into_inner().expect("no client has panicked");
        println!("{} requests, {} scenes", self.sent.into_inner(), self.parts.len());
        assert!(
            report.wrong.is_empty(),
            "{order}; `-` is a fresh process, `+` is Samovar\n{}\nlog:\n{}",
            report.wrong.join("\n"),
            tail(&server.log())
        );
    }

    fn wrong_count(&self) -> usize {
        self.report.lock().expect("no client has panicked").wrong.len()
    }

    fn judge(&self, expected: &[(String, String)], scene: &Scene, played: &Played) {
        let mut report = self.report.lock().expect("no client has panicked");
        let mut text = differences(&played.masked, expected);
        if !text.is_empty() {
            text = format!("== {}\n{text}", scene.name);
        }
        // Values hidden by the masks must differ: a session shared by two clients is the worst
        // leak.
        for cookie in played.cookies.iter().filter(|c| is_session(c)).collect::<BTreeSet<_>>() {
            if !report.sessions.insert(cookie.clone()) {
                let _ = writeln!(text, "== {}: the session {cookie} is another's", scene.name);
            }
        }
        if !text.is_empty() {
            let former: Vec<&str> = report.former.iter().map(String::as_str).collect();
            let _ = writeln!(text, "after: {}", former.join(" | "));
            report.wrong.push(text);
        }
        report.former.push_back(scene.name.clone());
        if report.former.len() > FORMER_MAX {
            report.former.pop_front();
        }
    }
}

fn is_session(cookie: &str) -> bool {
    const IDS: &[&str] = &["PHPSESSID=", "TEASESSION=", "DokuWiki="];
    const DELETED: &str = "deleted";
    IDS.iter().any(|name| cookie.strip_prefix(name).is_some_and(|id| id != DELETED))
}

/// Checks that the server runs in the checkpoint model, and that both workers have rolled back.
pub(crate) fn assert_rolled_back(server: &Server, mode: &str) {
    let status = eventually("workers that wait", || {
        let status = server.status();
        let is_idle = |w: &serde_json::Value| w["state"] == "idle";
        status["workers"].as_array()?.iter().all(is_idle).then_some(status)
    });
    let image = &status["image"];
    println!("image: {image}");
    assert_eq!(image["mode"], mode, "{status}\n{}", tail(&server.log()));
    let workers = status["workers"].as_array().expect("a list of workers");
    let rolling: Vec<_> = workers.iter().filter(|w| w["model"] == "checkpoint").collect();
    assert_eq!(rolling.len(), 2, "{status}");
    assert!(image["rollbacks_total"].as_u64().is_some_and(|n| n > 0), "{status}");
    assert_eq!(status["worker_restarts_total"], 0, "{status}\n{}", tail(&server.log()));
}

/// The last lines of a log.
pub(crate) fn tail(log: &str) -> String {
    const LINES_MAX: usize = 30;
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(LINES_MAX)..].join("\n")
}
