//! Values of `--urls` → requests.

use anyhow::{Context, Result, bail};
use clap::{Arg, ArgAction, ArgMatches, value_parser};
use std::io::Read;
use std::path::Path;

const URLS_MAX: usize = 10_000;
const FILE_BYTES_MAX: u64 = 16 << 20;
/// Host of URLs that have none.
const HOST: &str = "localhost";

/// One GET request, as for a URL in a browser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) host: String,
    /// Path and query.
    pub(crate) path: String,
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "http://{}{}", self.host, self.path)
    }
}

impl Target {
    /// Returns whether the URL was given as a path.
    pub(crate) fn is_local(&self) -> bool {
        self.host == HOST
    }

    fn parse(text: &str) -> Result<Target> {
        let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
        let (host, path) = match rest {
            None => (HOST, text),
            Some(rest) => match rest.find(['/', '?', '#']) {
                None => (rest, "/"),
                Some(at) if rest[at..].starts_with('/') => rest.split_at(at),
                Some(_) => bail!("`{text}` has no path: add a `/` between host and query"),
            },
        };
        let path = path.split('#').next().unwrap_or(path);
        must_be_target(path)?;
        let is_host = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
        if host.is_empty() || !host.chars().all(is_host) {
            bail!("`{text}` has no host");
        }
        Ok(Target { host: host.to_owned(), path: path.to_owned() })
    }
}

/// Returns the flag `--urls`.
pub(crate) fn argument() -> Arg {
    Arg::new("urls")
        .long("urls")
        .value_name("URL|FILE")
        .num_args(1..)
        .action(ArgAction::Append)
        .value_parser(value_parser!(String))
        .help(
            "Paths that begin with /, http:// addresses, or files with a list of them [default: /]",
        )
}

/// Returns the targets from the flag's values.
pub(crate) fn typed(matches: &ArgMatches) -> Result<Vec<Target>> {
    let urls: Vec<String> = matches.get_many("urls").into_iter().flatten().cloned().collect();
    read(&urls)
}

fn read(typed: &[String]) -> Result<Vec<Target>> {
    let mut targets = Vec::new();
    for word in typed {
        if word == "-" || Path::new(word).is_file() {
            read_file(word, &mut targets)?;
        } else {
            targets.push(Target::parse(word)?);
        }
    }
    if typed.is_empty() {
        targets.push(Target::parse("/")?);
    }
    if targets.is_empty() {
        bail!(
            "`--urls`: the file contains no URL\nhint: write one URL per line; `#` begins a comment"
        );
    }
    if targets.len() > URLS_MAX {
        bail!("`--urls`: {} URLs are too many; the maximum is {URLS_MAX}", targets.len());
    }
    Ok(targets)
}

/// Reads a file; `-` is standard input.
fn read_file(name: &str, targets: &mut Vec<Target>) -> Result<()> {
    let mut text = String::new();
    let from: Box<dyn Read> = match name {
        "-" => Box::new(std::io::stdin()),
        file => Box::new(
            std::fs::File::open(file).with_context(|| format!("`--urls`: cannot open `{file}`"))?,
        ),
    };
    from.take(FILE_BYTES_MAX)
        .read_to_string(&mut text)
        .with_context(|| format!("`--urls`: cannot read `{name}`"))?;
    for (n, line) in text.lines().map(str::trim).enumerate() {
        if !line.is_empty() && !line.starts_with('#') {
            targets.push(Target::parse(line).with_context(|| format!("`{name}`, line {}", n + 1))?);
        }
    }
    Ok(())
}

/// Rejects characters that a URL cannot contain.
fn must_be_target(text: &str) -> Result<()> {
    if !text.starts_with('/') || text.contains(|c: char| c <= ' ' || c == '\u{7f}') {
        bail!(
            "`{text}` cannot be requested\nhint: pass a path with an optional query, such as `/` \
             or `/search?q=tea`, or an existing file"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_paths_or_addresses() {
        let check = |text: &str, host: &str, path: &str| {
            let expected = Target { host: host.to_owned(), path: path.to_owned() };
            assert_eq!(Target::parse(text).map_err(|e| e.to_string()), Ok(expected), "{text}");
        };
        check("/", "localhost", "/");
        check("/a?b=c#d", "localhost", "/a?b=c");
        check("http://shop.example", "shop.example", "/");
        check("https://shop.example:8443/tea?x", "shop.example:8443", "/tea?x");
        for wrong in ["", "a", "/a b", "/a\r\nHost: x", "http://", "http://h?x", "http://a b/"] {
            assert!(Target::parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn file_has_one_url_per_line() {
        let file = std::env::temp_dir().join(format!("samovar-urls-{}", std::process::id()));
        std::fs::write(&file, "# all\n/a\n\n  /b?c \nhttp://h/d\n").expect("a file of ours");
        let name = file.display().to_string();
        let found = read(&[name.clone(), "/e".to_owned()]).expect("all are well");
        let paths: Vec<_> = found.iter().map(|t| t.path.as_str()).collect();
        assert_eq!(paths, ["/a", "/b?c", "/d", "/e"]);
        std::fs::write(&file, "/a\nb\n").expect("a file of ours");
        let error = format!("{:#}", read(&[name]).expect_err("`b` is no URL"));
        assert!(error.contains("line 2"), "{error}");
        std::fs::remove_file(&file).expect("it is ours");
        assert_eq!(read(&[]).map(|all| all.len()).ok(), Some(1));
    }
}
