//! A headless Chromium that does what it is told, over the pipe of its `DevTools` protocol.
//!
//! Messages are JSON with a NUL behind each: commands on its descriptor 3, answers and events on 4.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Seconds after which the browser is ended, and whoever waits for its answer fails.
const LIFE_S: &str = "170";
/// How long a page may take until something is so.
const LIMIT: Duration = Duration::from_mins(1);

pub(crate) struct Chromium {
    process: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
    session: Option<String>,
    last_id: u64,
    /// What the page has said to its console, and what its policy has forbidden.
    pub(crate) errors: Vec<String>,
    _profile: tempfile::TempDir,
}

impl Chromium {
    /// A browser with one empty page.
    pub(crate) fn start() -> Chromium {
        let profile = tempfile::tempdir().expect("a temporary folder");
        let mut process = Command::new("timeout")
            .args([
                LIFE_S,
                "sh",
                "-c",
                "exec chromium \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1",
                "sh",
            ])
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
            .args(["--no-first-run", "--remote-debugging-pipe"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("`timeout` is there");
        let commands = process.stdin.take().expect("piped");
        let answers = BufReader::new(process.stdout.take().expect("piped"));
        let mut browser = Chromium {
            process,
            commands,
            answers,
            session: None,
            last_id: 0,
            errors: Vec::new(),
            _profile: profile,
        };
        let target = browser.tell("Target.createTarget", &json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let session = browser.tell("Target.attachToTarget", &attach)["sessionId"].clone();
        browser.session = session.as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log"] {
            browser.tell(&format!("{domain}.enable"), &json!({}));
        }
        browser
    }

    /// Gives a command; what it results in, or null where it was refused.
    pub(crate) fn tell(&mut self, method: &str, params: &Value) -> Value {
        self.last_id += 1;
        let mut command = json!({"id": self.last_id, "method": method, "params": params});
        if let Some(session) = &self.session {
            command["sessionId"] = json!(session);
        }
        let text = format!("{command}\0");
        self.commands.write_all(text.as_bytes()).expect("chromium is there, see packages-test.txt");
        loop {
            let message = self.message();
            if message["id"] == self.last_id {
                return message["result"].clone();
            }
            if matches!(
                message["method"].as_str(),
                Some("Log.entryAdded" | "Runtime.exceptionThrown")
            ) {
                self.errors.push(message["params"].to_string());
            }
        }
    }

    fn message(&mut self) -> Value {
        let mut bytes = Vec::new();
        self.answers.read_until(0, &mut bytes).expect("a pipe");
        assert!(!bytes.is_empty(), "chromium has ended: is it installed (scripts/setup.sh test)?");
        bytes.pop();
        serde_json::from_slice(&bytes).expect("JSON")
    }

    /// What an expression comes to in the page.
    pub(crate) fn ask(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        self.tell("Runtime.evaluate", &params)["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    pub(crate) fn wait_for(&mut self, expression: &str) {
        let begin = Instant::now();
        // The page itself waits between two looks; while it is left for another, the answer is null.
        let look = format!("new Promise(r => setTimeout(() => r(Boolean({expression})), 20))");
        while self.ask(&look) != true {
            let page = || "document.body ? document.body.innerText : ''";
            assert!(begin.elapsed() < LIMIT, "{expression} in {}", self.ask(page()));
        }
    }

    /// Goes to a page, which has this text.
    pub(crate) fn go(&mut self, address: &str, text: &str) {
        self.tell("Page.navigate", &json!({"url": address}));
        self.wait_for_text(text);
    }

    pub(crate) fn wait_for_text(&mut self, text: &str) {
        let text = json!(text);
        self.wait_for(&format!(
            "document.readyState === 'complete' && document.body.innerText.includes({text})"
        ));
    }

    /// Clicks on the first element that the selector finds.
    pub(crate) fn click(&mut self, selector: &str) {
        let selector = json!(selector);
        let clicked = self.ask(&format!("(document.querySelector({selector}).click(), true)"));
        assert_eq!(clicked, true, "{selector}");
    }

    /// Clicks on a link to a page that has this text.
    pub(crate) fn follow(&mut self, selector: &str, text: &str) {
        self.ask("window.isLeft = false");
        self.click(selector);
        self.wait_for("window.isLeft === undefined");
        self.wait_for_text(text);
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        self.session = None;
        // It may have ended already.
        let _ = self.commands.write_all(b"{\"id\":0,\"method\":\"Browser.close\"}\0");
        let _ = self.process.wait();
    }
}
