//! Requests to send: the lines of --targets, and the selection of the next one.
//!
//! The class of each request is drawn by weight. Within a class the lines are used in turn, so that
//! all visitors are equally frequent.

use crate::options::Options;
use crate::request::{Parts, Request};
use anyhow::{Context, anyhow, ensure};
use fastrand::Rng;
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

const CLASS_DEFAULT: &str = "all";
const LINES_MAX: usize = 100_000;
const CLASSES_MAX: usize = 100; // Each has a histogram of a third of a megabyte.
const BODY_BYTES_MAX: u64 = 1 << 30;

/// One line of the file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    class: Option<String>,
    weight: Option<f64>,
    method: Option<String>,
    path: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    body: Option<String>,
    body_file: Option<PathBuf>,
}

/// Data that all lines share.
#[derive(Debug)]
struct Frame<'a> {
    authority: &'a str,
    path: &'a str,
    close: bool,
    /// Base folder of relative files: that of the file which names them.
    folder: &'a Path,
}

/// The targets, and the state of the selection.
#[derive(Debug)]
pub(crate) struct Targets {
    classes: Vec<Class>,
    weight: f64,
    random: Rng,
}

/// Requests that are counted together.
#[derive(Debug)]
struct Class {
    name: String,
    weight: f64,
    requests: Vec<Rc<Request>>,
    next: usize,
}

/// A request, and the index of its class in `Targets::class_names`.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    pub(crate) class: usize,
    pub(crate) request: Rc<Request>,
}

impl Targets {
    /// Reads the file from the options. Without a file, the URL is the only target.
    pub(crate) fn load(options: &Options) -> anyhow::Result<Targets> {
        let url = &options.url;
        let file = options.targets.as_deref();
        let folder = file.and_then(Path::parent).unwrap_or(Path::new(""));
        let close = options.new_connections;
        let frame = Frame { authority: &url.authority, path: &url.path, close, folder };
        let Some(file) = file else {
            return Targets::from_lines(&[(1, Line::default())], &frame, options.seed);
        };
        let name = file.display();
        let text = fs::read_to_string(file).with_context(|| format!("cannot read `{name}`"))?;
        parse(&text)
            .and_then(|lines| Targets::from_lines(&lines, &frame, options.seed))
            .with_context(|| format!("invalid targets in `{name}`"))
    }

    fn from_lines(lines: &[(usize, Line)], frame: &Frame, seed: u64) -> anyhow::Result<Targets> {
        ensure!(!lines.is_empty(), "no targets");
        ensure!(lines.len() <= LINES_MAX, "more than {LINES_MAX} lines");
        let mut targets =
            Targets { classes: Vec::new(), weight: 0.0, random: Rng::with_seed(seed) };
        let mut files = HashMap::new();
        for (number, line) in lines {
            targets.add(line, frame, &mut files).with_context(|| format!("line {number}"))?;
        }
        ensure!(targets.weight > 0.0, "all weights are 0");
        ensure!(targets.classes.len() <= CLASSES_MAX, "more than {CLASSES_MAX} classes");
        Ok(targets)
    }

    fn add(&mut self, line: &Line, frame: &Frame, files: &mut Files) -> anyhow::Result<()> {
        let weight = line.weight.unwrap_or(1.0);
        ensure!(weight.is_finite() && weight >= 0.0, "negative weight {weight}");
        let headers: Vec<_> = line.headers.clone().into_iter().collect();
        let request = Request::new(&Parts {
            method: line.method.as_deref().unwrap_or("GET"),
            path: line.path.as_deref().unwrap_or(frame.path),
            authority: frame.authority,
            headers: &headers,
            body: body(line, frame.folder, files)?,
            close: frame.close,
        })
        .map_err(|message| anyhow!(message))?;
        let class = self.class(line.class.as_deref().unwrap_or(CLASS_DEFAULT));
        class.weight += weight;
        class.requests.push(Rc::new(request));
        self.weight += weight;
        Ok(())
    }

    /// The class of that name, added if it is new.
    fn class(&mut self, name: &str) -> &mut Class {
        let found = self.classes.iter().position(|class| class.name == name);
        let place = found.unwrap_or_else(|| {
            let name = name.to_owned();
            self.classes.push(Class { name, weight: 0.0, requests: Vec::new(), next: 0 });
            self.classes.len() - 1
        });
        &mut self.classes[place]
    }

    pub(crate) fn class_names(&self) -> impl Iterator<Item = &str> {
        self.classes.iter().map(|class| class.name.as_str())
    }

    /// The request of the first line.
    pub(crate) fn first(&self) -> &Request {
        &self.classes[0].requests[0]
    }

    /// The next request.
    pub(crate) fn choose(&mut self) -> Choice {
        let class = if self.classes.len() == 1 { 0 } else { self.draw() };
        let chosen = &mut self.classes[class];
        let request = Rc::clone(&chosen.requests[chosen.next]);
        chosen.next = (chosen.next + 1) % chosen.requests.len();
        Choice { class, request }
    }

    fn draw(&mut self) -> usize {
        let mut left = self.random.f64() * self.weight;
        let found = self.classes.iter().position(|class| {
            left -= class.weight;
            left < 0.0
        });
        // Rounding may leave a small rest: then the last class that can be drawn is used.
        found
            .or_else(|| self.classes.iter().rposition(|class| class.weight > 0.0))
            .expect("from_lines saw a weight above zero")
    }
}

/// Bodies by file: lines that name the same file share its memory.
type Files = HashMap<PathBuf, Rc<[u8]>>;

/// The lines with their numbers, without empty ones.
fn parse(text: &str) -> anyhow::Result<Vec<(usize, Line)>> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(index, line)| {
            let line = serde_json::from_str(line).with_context(|| format!("line {}", index + 1))?;
            Ok((index + 1, line))
        })
        .collect()
}

fn body(line: &Line, folder: &Path, files: &mut Files) -> anyhow::Result<Option<Rc<[u8]>>> {
    match (&line.body, &line.body_file) {
        (Some(_), Some(_)) => Err(anyhow!("body and body_file are mutually exclusive")),
        (Some(text), None) => Ok(Some(text.as_bytes().into())),
        (None, Some(file)) => read(folder.join(file), files).map(Some),
        (None, None) => Ok(None),
    }
}

fn read(file: PathBuf, files: &mut Files) -> anyhow::Result<Rc<[u8]>> {
    if let Some(known) = files.get(&file) {
        return Ok(Rc::clone(known));
    }
    let failed = || format!("cannot read `{}`", file.display());
    let length = fs::metadata(&file).with_context(failed)?.len();
    ensure!(length <= BODY_BYTES_MAX, "`{}` is larger than 1 GiB", file.display());
    let content: Rc<[u8]> = fs::read(&file).with_context(failed)?.into();
    files.insert(file, Rc::clone(&content));
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::{Frame, Targets, parse};
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::Path;

    fn targets_in(folder: &Path, text: &str, seed: u64) -> anyhow::Result<Targets> {
        let frame = Frame { authority: "a.test", path: "/url", close: false, folder };
        Targets::from_lines(&parse(text)?, &frame, seed)
    }

    fn targets(text: &str) -> anyhow::Result<Targets> {
        targets_in(Path::new(""), text, 1)
    }

    /// Class and first line of the next requests.
    fn next(targets: &mut Targets, count: usize) -> Vec<String> {
        let names: Vec<String> = targets.class_names().map(str::to_owned).collect();
        let mut line = |_| {
            let choice = targets.choose();
            let mut out = Vec::new();
            choice.request.copy_out(7, &mut out);
            let text = String::from_utf8(out).unwrap();
            format!("{} {}", names[choice.class], text.split(" HTTP").next().unwrap())
        };
        (0..count).map(&mut line).collect()
    }

    const VISITORS: &str = r#"
        {"class":"short","weight":47.5,"path":"/1"}
        {"class":"long","weight":5,"method":"POST","path":"/long"}
        {"class":"short","weight":47.5,"path":"/2"}
    "#;

    #[test]
    fn empty_target_is_get_of_url_path() {
        assert_eq!(next(&mut targets("{}").unwrap(), 2), ["all GET /url"; 2]);
    }

    #[test]
    fn class_is_drawn_by_sum_of_its_weights() {
        let mut count = BTreeMap::<String, u32>::new();
        for line in next(&mut targets(VISITORS).unwrap(), 10_000) {
            *count.entry(line).or_default() += 1;
        }
        assert_eq!(count.len(), 3);
        assert!((400..600).contains(&count["long POST /long"]), "{count:?}");
        // The two visitors alternate.
        assert!(count["short GET /1"].abs_diff(count["short GET /2"]) <= 1, "{count:?}");
    }

    #[test]
    fn same_seed_gives_same_requests() {
        let draw = |seed| next(&mut targets_in(Path::new(""), VISITORS, seed).unwrap(), 200);
        assert_eq!(draw(4), draw(4));
        assert_ne!(draw(4), draw(5));
    }

    #[test]
    fn target_with_weight_zero_is_never_drawn() {
        let text = r#"{"class":"a","weight":0}
                      {"class":"b","weight":1}
                      {"class":"c","weight":0}"#;
        assert_eq!(next(&mut targets(text).unwrap(), 100), vec!["b GET /url"; 100]);
    }

    #[test]
    fn body_file_is_relative_to_targets_file() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("body.json"), "{}").unwrap();
        let line = r#"{"method":"POST","body_file":"body.json"}"#;
        let targets = targets_in(folder.path(), line, 1).unwrap();
        let mut out = Vec::new();
        targets.first().copy_out(1, &mut out);
        assert!(out.ends_with(b"Content-Length: 2\r\n\r\n{}"));
    }

    #[test]
    fn invalid_targets_are_rejected() {
        for (text, why) in [
            ("", "no targets"),
            ("{}\n{\"paht\":\"/\"}", "line 2: unknown field `paht`"),
            ("{\"weight\":-1}", "line 1: negative weight -1"),
            ("{\"weight\":0}", "all weights are 0"),
            (
                "{\"body\":\"a\",\"body_file\":\"b\"}",
                "line 1: body and body_file are mutually exclusive",
            ),
            ("{\"body_file\":\"/no/such\"}", "line 1: cannot read `/no/such`"),
            ("{}\n\n{\"path\":\"x\"}", "line 3: invalid path `x`"),
        ] {
            let message = format!("{:#}", targets(text).unwrap_err());
            assert!(message.contains(why), "{text}: {message}");
        }
    }
}
