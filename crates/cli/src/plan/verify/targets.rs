//! Requests with their weights, and those that were left out. Reads files of requests.

use crate::plan::text_file::text_of;
use anyhow::{Context, Result, anyhow, bail};
use samovar_load::Target;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// Methods that change no data (RFC 9110, 9.2.1); TRACE is no request of a visitor.
const SAFE: [&str; 3] = ["GET", "HEAD", "OPTIONS"];
/// Headers that belong to a connection or that the client sets itself.
const OWN_HEADERS: [&str; 9] = [
    "connection",
    "content-length",
    "expect",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
/// Headers by which a request has another method for the application.
const METHOD_HEADERS: [&str; 3] = ["x-http-method-override", "x-http-method", "x-method-override"];
/// Maximum weight of a request: the sum of all stays exact.
const WEIGHT_MAX: f64 = 1e9;
/// Placeholder of the client in paths, and its spelling without that meaning.
const NUMBER: (&str, &str) = ("{n}", "%7Bn%7D");
/// Maximum number of requests in a file.
const LINES_MAX: usize = 10_000;

/// A request of the mix.
#[derive(Clone, Debug)]
pub(crate) struct Weighted {
    pub(crate) target: Target,
    /// Name of its route, as the application gives it; `None`: from its path.
    pub(crate) route: Option<String>,
}

/// The requests to send.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    pub(crate) all: Vec<Weighted>,
    /// Number of requests by source, in words.
    pub(crate) words: String,
    pub(crate) notes: Vec<String>,
    left_out: BTreeMap<String, u64>,
}

impl Requests {
    /// Adds a request that can be sent; counts it otherwise.
    pub(crate) fn add(&mut self, mut one: Weighted) {
        let target = &mut one.target;
        target
            .headers
            .retain(|(name, _)| !OWN_HEADERS.iter().any(|own| name.eq_ignore_ascii_case(own)));
        match target.check() {
            Ok(()) => self.all.push(one),
            Err(_) => self.leave_out("path or a header is not valid in HTTP/1.1", 1),
        }
    }

    /// Counts requests that are not sent.
    pub(crate) fn leave_out(&mut self, reason: &str, count: u64) {
        *self.left_out.entry(reason.to_owned()).or_default() += count;
    }

    /// Removes requests of methods that may change data, unless they are allowed.
    pub(crate) fn leave_out_unsafe(&mut self, allowed: &[String]) {
        let is_allowed = |method: &str| {
            SAFE.contains(&method) || allowed.iter().any(|allowed| allowed == method)
        };
        for one in std::mem::take(&mut self.all) {
            let refused = methods(&one.target).find(|method| !is_allowed(method));
            match refused {
                None => self.all.push(one),
                Some(method) => self.leave_out(&may_change_data(&method), 1),
            }
        }
    }

    /// Requests that were left out: number and reason.
    pub(crate) fn left_out(&self) -> Vec<(u64, String)> {
        self.left_out.iter().map(|(reason, count)| (*count, reason.clone())).collect()
    }

    pub(crate) fn must_have_targets(&self) -> Result<()> {
        if self.all.iter().any(|one| one.target.weight > 0.0) {
            return Ok(());
        }
        let reasons: Vec<_> =
            self.left_out.iter().map(|(reason, count)| format!("{count}: {reason}")).collect();
        let reasons =
            if reasons.is_empty() { "the source is empty".to_owned() } else { reasons.join("; ") };
        bail!(
            "there are no requests to send ({reasons})\nhint: record some with `samovar record \
             --count 100`, or name a file with --requests"
        )
    }

    /// The requests for the client.
    pub(crate) fn targets(&self) -> Vec<Target> {
        self.all.iter().map(|one| one.target.clone()).collect()
    }
}

/// The method of a request, and those that its headers give to the application in upper case.
fn methods(target: &Target) -> impl Iterator<Item = String> {
    let is_method = |name: &str| METHOD_HEADERS.iter().any(|own| name.eq_ignore_ascii_case(own));
    let headers = target.headers.iter().filter(move |(name, _)| is_method(name));
    let by_header = headers.map(|(_, value)| value.trim().to_ascii_uppercase());
    std::iter::once(target.method.clone()).chain(by_header)
}

fn may_change_data(method: &str) -> String {
    let shown = samovar_log::printable(method);
    if method.bytes().any(|byte| byte.is_ascii_lowercase()) {
        return format!("the method {shown} is unknown: methods have capital letters");
    }
    format!("the method {shown} may change data; --allow {shown} sends them")
}

/// Returns a path in which the client replaces nothing.
pub(crate) fn literal(path: &str) -> String {
    path.replace(NUMBER.0, NUMBER.1)
}

/// A line of a file as JSON.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    path: String,
    #[serde(default = "get")]
    method: String,
    #[serde(default = "one")]
    weight: f64,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    body: String,
    route: Option<String>,
}

fn get() -> String {
    "GET".to_owned()
}

fn one() -> f64 {
    1.0
}

/// Reads a file with one request in each line.
pub(crate) fn read(path: &Path) -> Result<Requests> {
    let name = path.display();
    let mut requests = parse(&text_of(path)?).with_context(|| format!("`{name}`"))?;
    requests.words = format!("{} of {name}", requests.all.len());
    Ok(requests)
}

fn parse(text: &str) -> Result<Requests> {
    let mut requests = Requests::default();
    let lines = text.lines().map(str::trim).enumerate();
    for (n, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        let parsed = parse_line(line).with_context(|| format!("line {}", n + 1))?;
        requests.all.push(parsed);
        if requests.all.len() > LINES_MAX {
            bail!("more than {LINES_MAX} requests\nhint: give the frequent ones a `weight`");
        }
    }
    Ok(requests)
}

fn parse_line(line: &str) -> Result<Weighted> {
    const HINT: &str =
        "hint: write `/path`, `HEAD /path`, or {\"path\":\"/\",\"method\":\"GET\",\"weight\":2}";
    let parsed = if line.starts_with('{') {
        serde_json::from_str(line).map_err(|error| anyhow!("{error}\n{HINT}"))?
    } else {
        let (method, path) = line.split_once([' ', '\t']).unwrap_or(("GET", line));
        let (method, path) = (method.to_owned(), path.trim().to_owned());
        let (headers, body) = (BTreeMap::new(), String::new());
        Line { path, method, weight: 1.0, headers, body, route: None }
    };
    let Line { path, method, weight, headers, body, route } = parsed;
    if !(0.0..=WEIGHT_MAX).contains(&weight) {
        bail!("the weight {weight} is not from 0 to {WEIGHT_MAX}\n{HINT}");
    }
    let target = Target {
        weight,
        method,
        path,
        headers: headers.into_iter().collect(),
        body: body.into_bytes(),
        expected: None,
    };
    target.check().map_err(|error| anyhow!("{}\n{HINT}", first_line(&error)))?;
    let (method, capitals) = (&target.method, target.method.to_ascii_uppercase());
    if *method != capitals {
        bail!("the method `{method}` is unknown\nhint: did you mean {capitals}? Case matters");
    }
    Ok(Weighted { target, route })
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_has_a_request_in_each_line() {
        let text = "# shop\n/\n\nHEAD /a?b=1\n{\"path\":\"/buy\",\"method\":\"POST\",\"weight\":0.5\
                    ,\"route\":\"shop\",\"body\":\"x\"}\n";
        let mut requests = parse(text).expect("valid");
        let shown: Vec<_> = requests
            .all
            .iter()
            .map(|one| format!("{} {} {}", one.target.method, one.target.path, one.target.weight))
            .collect();
        assert_eq!(shown, ["GET / 1", "HEAD /a?b=1 1", "POST /buy 0.5"]);
        assert_eq!(requests.all[2].route.as_deref(), Some("shop"));
        requests.leave_out_unsafe(&[]);
        assert_eq!(requests.all.len(), 2);
        let left_out = requests.left_out();
        assert!(left_out[0].0 == 1 && left_out[0].1.contains("--allow POST"), "{left_out:?}");
        let mut allowed = parse(text).expect("valid");
        allowed.leave_out_unsafe(&["POST".to_owned()]);
        assert_eq!((allowed.all.len(), allowed.left_out().len()), (3, 0));
    }

    #[test]
    fn invalid_lines_are_errors_with_their_number() {
        for line in [
            "no-path",
            "GET",
            "GE T /",
            "get /path",
            "{\"path\":\"/\",\"method\":\"Post\"}",
            "{\"path\":\"/\",\"weight\":1e308}",
            "{\"path\":\"/\",\"headers\":{\"Host\":\"a\",\"host\":\"b\"}}",
            "/a b c",
            "/a\u{7f}",
            "{\"pfad\":\"/\"}",
            "{\"path\":\"/\",\"weight\":-1}",
            "{\"path\":\"/\",\"headers\":{\"a b\":\"c\"}}",
            "{\"path\":\"/\",\"headers\":{\"a\":\"b\\r\\nc: d\"}}",
        ] {
            let error = format!("{:#}", parse(&format!("/\n{line}")).expect_err(line));
            assert!(error.starts_with("line 2: ") && error.contains("hint: "), "{error}");
        }
    }

    #[test]
    fn small_letters_have_a_proposal() {
        for (line, proposal) in [("get /", "GET"), ("m-Search /", "M-SEARCH")] {
            let error = format!("{:#}", parse(line).expect_err(line));
            assert!(error.contains(&format!("hint: did you mean {proposal}?")), "{error}");
        }
    }

    /// Many frameworks take the method of a header, so a GET can delete.
    #[test]
    fn methods_of_headers_count() {
        let file = |name: &str, method: &str| {
            let line = format!("{{\"path\":\"/\",\"headers\":{{\"{name}\":\"{method}\"}}}}");
            parse(&line).expect("valid")
        };
        for (name, method, allowed, kept) in [
            ("X-HTTP-Method-Override", "DELETE", &[][..], 0),
            ("x-http-method-override", " delete ", &[], 0),
            ("X-HTTP-Method", "PUT", &[], 0),
            ("X-Method-Override", "PATCH", &["DELETE"], 0),
            ("X-Method-Override", "PATCH", &["PATCH"], 1),
            ("X-HTTP-Method-Override", "HEAD", &[], 1),
            ("X-Other", "DELETE", &[], 1),
        ] {
            let mut requests = file(name, method);
            let allowed: Vec<_> = allowed.iter().map(|one| (*one).to_owned()).collect();
            requests.leave_out_unsafe(&allowed);
            assert_eq!(requests.all.len(), kept, "{name}: {method} {allowed:?}");
        }
    }

    #[test]
    fn recorded_method_in_small_letters_is_no_dead_end() {
        let (method, path) = ("get".to_owned(), "/".to_owned());
        let target = Target { method, path, weight: 1.0, ..Target::default() };
        let mut requests = Requests::default();
        requests.add(Weighted { target, route: None });
        requests.leave_out_unsafe(&[]);
        let left_out = requests.left_out();
        assert!(left_out[0].1.ends_with("methods have capital letters"), "{left_out:?}");
    }

    #[test]
    fn headers_of_the_connection_are_not_sent() {
        let mut requests = Requests::default();
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let target = Target {
            weight: 1.0,
            method: get(),
            path: literal("/{n}"),
            headers: vec![header("Content-Length", "3"), header("Upgrade", "x"), header("a", "b")],
            ..Target::default()
        };
        requests.add(Weighted { target: target.clone(), route: None });
        assert_eq!(requests.all[0].target.headers, [header("a", "b")]);
        assert_eq!(requests.all[0].target.path, "/%7Bn%7D");
        requests.add(Weighted { target: Target { path: "/ä".to_owned(), ..target }, route: None });
        assert_eq!(requests.left_out().len(), 1);
        assert!(Requests::default().must_have_targets().is_err());
    }
}
