//! A headless Chromium, controlled over the pipe of its `DevTools` protocol.
//!
//! Messages are JSON followed by a NUL byte: commands on its descriptor 3, responses and events on
//! descriptor 4.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Lifetime of the browser in seconds. After it, a test that waits for a response fails.
const LIFE_S: &str = "170";
/// Timeout for a condition in a page.
const LIMIT: Duration = Duration::from_mins(1);

pub(crate) struct Chromium {
    process: Child,
    commands: ChildStdin,
    responses: BufReader<ChildStdout>,
    session: Option<String>,
    last_id: u64,
    /// Messages on the page's console, and violations of its content security policy.
    pub(crate) errors: Vec<String>,
    _profile: tempfile::TempDir,
}

impl Chromium {
    /// Starts a browser with one empty page.
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
        let responses = BufReader::new(process.stdout.take().expect("piped"));
        let mut browser = Chromium {
            process,
            commands,
            responses,
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

    /// Sends a command. Returns its result, or null if the browser rejected it.
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
        self.responses.read_until(0, &mut bytes).expect("a pipe");
        assert!(!bytes.is_empty(), "chromium has ended: is it installed (scripts/setup.sh test)?");
        bytes.pop();
        serde_json::from_slice(&bytes).expect("JSON")
    }

    /// Evaluates an expression in the page.
    pub(crate) fn ask(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        self.tell("Runtime.evaluate", &params)["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    pub(crate) fn wait_for(&mut self, expression: &str) {
        let begin = Instant::now();
        // The page itself waits between two checks. While another page loads, the result is null.
        let look = format!("new Promise(r => setTimeout(() => r(Boolean({expression})), 20))");
        while self.ask(&look) != true {
            let page = || "document.body ? document.body.innerText : ''";
            assert!(begin.elapsed() < LIMIT, "{expression} in {}", self.ask(page()));
        }
    }

    /// Opens a page and waits for this text.
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

    /// Clicks the first element that matches the selector.
    pub(crate) fn click(&mut self, selector: &str) {
        let selector = json!(selector);
        let clicked = self.ask(&format!("(document.querySelector({selector}).click(), true)"));
        assert_eq!(clicked, true, "{selector}");
    }

    /// Clicks a link and waits for this text on its page.
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
        // The browser may have ended already.
        let _ = self.commands.write_all(b"{\"id\":0,\"method\":\"Browser.close\"}\0");
        let _ = self.process.wait();
    }
}
