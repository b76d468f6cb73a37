//! Results as `JUnit`'s XML: read from the frameworks, and written for the whole run.
//!
//! The reader knows the elements that `PHPUnit` writes. Its input comes from a process that tests
//! have run in, so no text of it is trusted to be well-formed.

use crate::case::{Case, Note, Verdict};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Maximum number of results of one unit.
const CASES_MAX: usize = 1_000_000;
/// Maximum number of characters of an entity such as `&quot;`.
const ENTITY_CHARS_MAX: usize = 12;

/// Reads the results of one unit.
///
/// # Errors
///
/// A description of text that is not an XML document of a framework.
pub(crate) fn read(text: &str) -> Result<Vec<Case>, String> {
    let mut cases: Vec<Case> = Vec::new();
    let mut reader = Reader { rest: text };
    let (mut is_open, mut is_complete) = (false, false);
    // The element whose text is collected.
    let mut fault: Option<(String, String)> = None;
    while let Some(token) = reader.next()? {
        match token {
            Token::Text(more) => {
                if let (Some((_, text)), true) = (&mut fault, is_open) {
                    text.push_str(&more);
                }
            }
            Token::Open { name: "testcase", attributes, is_empty } => {
                if cases.len() == CASES_MAX {
                    return Err(format!("more than {CASES_MAX} results"));
                }
                cases.push(case(&attributes));
                is_open = !is_empty;
            }
            Token::Open { name, attributes, is_empty } => {
                if let ("failure" | "error" | "warning" | "skipped" | "incomplete", true) =
                    (name, is_open)
                {
                    let kind = attributes.get("type").cloned().unwrap_or_default();
                    let message = attributes.get("message").cloned().unwrap_or_default();
                    fault = Some((kind, String::new()));
                    if is_empty {
                        close(&mut cases, name, fault.take(), &message);
                    }
                }
            }
            Token::Close("testcase") => is_open = false,
            Token::Close("testsuites") => is_complete = true,
            Token::Close(name) => {
                if matches!(name, "failure" | "error" | "warning" | "skipped" | "incomplete") {
                    close(&mut cases, name, fault.take(), "");
                }
            }
        }
    }
    // PHPUnit writes an empty element if no test has run.
    let is_empty = cases.is_empty() && text.contains("<testsuites");
    if is_complete || is_empty { Ok(cases) } else { Err("it is not complete".to_owned()) }
}

fn case(attributes: &BTreeMap<&str, String>) -> Case {
    let text = |name| attributes.get(name).cloned().unwrap_or_default();
    let class = attributes.get("class").cloned().unwrap_or_else(|| text("classname"));
    Case {
        file: text("file"),
        line: text("line").parse().unwrap_or(0),
        assertions: text("assertions").parse().unwrap_or(0),
        seconds: text("time").parse().ok().filter(|time: &f64| time.is_finite()).unwrap_or(0.0),
        ..Case::new(&class, &text("name"), Verdict::Passed)
    }
}

fn close(cases: &mut [Case], element: &str, fault: Option<(String, String)>, message: &str) {
    let (Some(case), Some((kind, text))) = (cases.last_mut(), fault) else { return };
    let text = if text.trim().is_empty() { message.to_owned() } else { text };
    let verdict = match element {
        "failure" => Verdict::Failed,
        "error" if kind.contains("RiskyTest") || text.starts_with("Risky Test") => Verdict::Risky,
        "error" => Verdict::Errored,
        "warning" => Verdict::Warned,
        _ => Verdict::Skipped,
    };
    if verdict < case.verdict {
        return;
    }
    case.verdict = verdict;
    case.kind = kind;
    // The framework's text begins with the name of the test.
    let text = text.strip_prefix(&case.id()).unwrap_or(&text);
    text.trim_matches('\n').trim().clone_into(&mut case.text);
}

enum Token<'a> {
    Open { name: &'a str, attributes: BTreeMap<&'a str, String>, is_empty: bool },
    Close(&'a str),
    Text(String),
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<Option<Token<'a>>, String> {
        loop {
            let rest = self.rest;
            if rest.is_empty() {
                return Ok(None);
            }
            if let Some(data) = rest.strip_prefix("<![CDATA[") {
                let (text, after) = data.split_once("]]>").ok_or("CDATA has no end")?;
                self.rest = after;
                return Ok(Some(Token::Text(text.to_owned())));
            }
            if rest.starts_with("<?") || rest.starts_with("<!") {
                let end = if rest.starts_with("<!--") { "-->" } else { ">" };
                self.rest = rest.split_once(end).ok_or("a declaration has no end")?.1;
                continue;
            }
            if let Some(tag) = rest.strip_prefix("</") {
                let (name, after) = tag.split_once('>').ok_or("a tag has no end")?;
                self.rest = after;
                return Ok(Some(Token::Close(name.trim())));
            }
            if let Some(tag) = rest.strip_prefix('<') {
                return self.open(tag).map(Some);
            }
            let end = rest.find('<').unwrap_or(rest.len());
            self.rest = &rest[end..];
            return Ok(Some(Token::Text(unescape(&rest[..end]))));
        }
    }

    fn open(&mut self, tag: &'a str) -> Result<Token<'a>, String> {
        let is_end = |c: char| c.is_whitespace() || c == '/' || c == '>';
        let end = tag.find(is_end).ok_or("a tag has no end")?;
        let (name, mut rest) = tag.split_at(end);
        let mut attributes = BTreeMap::new();
        loop {
            rest = rest.trim_start();
            if let Some(after) = rest.strip_prefix("/>") {
                self.rest = after;
                return Ok(Token::Open { name, attributes, is_empty: true });
            }
            if let Some(after) = rest.strip_prefix('>') {
                self.rest = after;
                return Ok(Token::Open { name, attributes, is_empty: false });
            }
            let (key, after) = rest.split_once('=').ok_or("an attribute has no value")?;
            let quote = after.chars().next().filter(|c| matches!(c, '"' | '\''));
            let quote = quote.ok_or("an attribute has no quotes")?;
            let (value, after) = after[1..].split_once(quote).ok_or("a value has no end")?;
            attributes.insert(key.trim(), unescape(value));
            rest = after;
        }
    }
}

fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = rest.char_indices().take(ENTITY_CHARS_MAX).find(|(_, c)| *c == ';');
        let found = end.and_then(|(end, _)| Some((entity(&rest[1..end])?, end + 1)));
        let (c, len) = found.unwrap_or(('&', 1));
        out.push(c);
        rest = &rest[len..];
    }
    out.push_str(rest);
    out
}

fn entity(name: &str) -> Option<char> {
    let number = |text: &str, radix| u32::from_str_radix(text, radix).ok().and_then(char::from_u32);
    match name {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => match name.strip_prefix('#')? {
            hex if hex.starts_with(['x', 'X']) => number(&hex[1..], 16),
            decimal => number(decimal, 10),
        },
    }
}

/// Writes the results of a run, one suite for each class.
#[must_use]
pub fn write(name: &str, cases: &[Case]) -> String {
    let mut classes: BTreeMap<&str, Vec<&Case>> = BTreeMap::new();
    for case in cases {
        classes.entry(&case.class).or_default().push(case);
    }
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    let all: Vec<&Case> = cases.iter().collect();
    suite(&mut out, 2, name, "", &all);
    for (class, cases) in classes {
        let file = cases.iter().map(|case| case.file.as_str()).find(|file| !file.is_empty());
        suite(&mut out, 4, class, file.unwrap_or_default(), &cases);
        for case in cases {
            write_case(&mut out, case);
        }
        out.push_str("    </testsuite>\n");
    }
    out.push_str("  </testsuite>\n</testsuites>\n");
    out
}

fn suite(out: &mut String, indent: usize, name: &str, file: &str, cases: &[&Case]) {
    let count =
        |verdicts: &[Verdict]| cases.iter().filter(|case| verdicts.contains(&shown(case))).count();
    let file = if file.is_empty() { String::new() } else { format!(" file=\"{}\"", escape(file)) };
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "{:indent$}<testsuite name=\"{}\"{file} tests=\"{}\" assertions=\"{}\" errors=\"{}\" \
         warnings=\"{}\" failures=\"{}\" skipped=\"{}\" time=\"{:.6}\">",
        "",
        escape(name),
        cases.len(),
        cases.iter().map(|case| case.assertions).sum::<u64>(),
        count(&[Verdict::Errored, Verdict::Risky]),
        count(&[Verdict::Warned]),
        count(&[Verdict::Failed]),
        count(&[Verdict::Skipped]),
        cases.iter().map(|case| case.seconds).sum::<f64>(),
    );
}

/// The verdict of the file's readers: a failure in the quarantine is skipped, a flaky test passed.
fn shown(case: &Case) -> Verdict {
    match case.note {
        Some(Note::Quarantined { .. }) if case.verdict.is_bad() => Verdict::Skipped,
        Some(Note::Flaky { .. }) => Verdict::Passed,
        _ => case.verdict,
    }
}

fn write_case(out: &mut String, case: &Case) {
    let place = match (case.file.as_str(), case.line) {
        ("", _) => String::new(),
        (file, 0) => format!(" file=\"{}\"", escape(file)),
        (file, line) => format!(" file=\"{}\" line=\"{line}\"", escape(file)),
    };
    let _ = write!(
        out,
        "      <testcase name=\"{}\" class=\"{}\" classname=\"{}\"{place} assertions=\"{}\" \
         time=\"{:.6}\"",
        escape(&case.name),
        escape(&case.class),
        escape(&case.class.replace('\\', ".")),
        case.assertions,
        case.seconds,
    );
    let element = match shown(case) {
        Verdict::Passed => {
            match &case.note {
                // Surefire's element, which build servers know.
                Some(Note::Flaky { rerun }) => {
                    let text = escape(&case.text);
                    let _ = writeln!(
                        out,
                        ">\n        <flakyFailure message=\"passed in rerun {rerun}\" \
                         type=\"{}\">{text}</flakyFailure>\n      </testcase>",
                        escape(&case.kind)
                    );
                }
                _ => out.push_str("/>\n"),
            }
            return;
        }
        Verdict::Skipped => {
            let message = match &case.note {
                Some(Note::Quarantined { owner, until }) => {
                    format!(" message=\"in quarantine until {until}, owner {}\"", escape(owner))
                }
                _ => String::new(),
            };
            let _ = writeln!(out, ">\n        <skipped{message}/>\n      </testcase>");
            return;
        }
        Verdict::Warned => "warning",
        Verdict::Failed => "failure",
        Verdict::Risky | Verdict::Errored => "error",
    };
    let _ = writeln!(
        out,
        ">\n        <{element} type=\"{}\">{}</{element}>\n      </testcase>",
        escape(&case.kind),
        escape(&format!("{}\n{}", case.id(), case.text))
    );
}

/// Escapes a text for XML. Characters that XML does not have become `?`.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push('\n'),
            '\t' => out.push('\t'),
            c if c < ' ' || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('?'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites>
  <testsuite name="A\BTest" file="/t/BTest.php" tests="4">
    <testcase name="testGood" class="A\BTest" classname="A.BTest" file="/t/BTest.php" line="9"
      assertions="2" time="0.250"/>
    <testsuite name="A\BTest::testData">
      <testcase name="testData with data set &quot;a &lt; b&quot;" class="A\BTest"
        file="/t/BTest.php" line="12" assertions="1" time="0.1">
        <failure type="PHPUnit\Failed">A\BTest::testData with data set "a &lt; b" (1, 2)
Failed asserting that 1 is 2.&#13;

/t/BTest.php:13
</failure>
      </testcase>
    </testsuite>
    <testcase name="testSkipped" class="A\BTest" assertions="0" time="0"><skipped/></testcase>
    <testcase name="testRisky" class="A\BTest" assertions="0" time="0">
      <error type="PHPUnit\Framework\RiskyTestError">Risky Test
</error>
    </testcase>
    <testcase name="testError" class="A\BTest" assertions="0" time="0">
      <error type="Error"><![CDATA[A\BTest::testError
Error: <b>]]></error>
      <system-out>printed</system-out>
    </testcase>
  </testsuite>
</testsuites>
"#;

    #[test]
    fn log_of_phpunit_is_read() {
        let cases = read(LOG).expect("a good log");
        let verdicts: Vec<_> = cases.iter().map(|case| case.verdict).collect();
        let expected =
            [Verdict::Passed, Verdict::Failed, Verdict::Skipped, Verdict::Risky, Verdict::Errored];
        assert_eq!(verdicts, expected);
        assert_eq!(cases[1].id(), "A\\BTest::testData with data set \"a < b\"");
        assert!(cases[1].text.contains("Failed asserting that 1 is 2."), "{}", cases[1].text);
        assert_eq!((cases[0].assertions, cases[0].line), (2, 9));
        assert_eq!(cases[4].text, "Error: <b>");
    }

    #[test]
    fn incomplete_log_is_rejected_at_each_length() {
        let end = LOG.find("</testsuites>").expect("its end");
        for len in (0..end).filter(|len| LOG.is_char_boundary(*len)) {
            let read = read(&LOG[..len]);
            assert!(read.as_ref().map_or(true, Vec::is_empty), "{len}: {read:?}");
        }
        assert_eq!(read("<?xml version=\"1.0\"?>\n<testsuites/>\n"), Ok(Vec::new()));
    }

    #[test]
    fn written_results_are_read_back() {
        let mut cases = read(LOG).expect("a good log");
        cases[4].text.push_str("\u{1}\u{fffe} ]]> & é");
        let text = write("run & all", &cases);
        let back = read(&text).expect("our own log");
        let ids =
            |cases: &[Case]| cases.iter().map(|case| (case.id(), case.verdict)).collect::<Vec<_>>();
        assert_eq!(ids(&back), ids(&cases));
        assert!(back[4].text.contains("?? ]]> & é"), "{}", back[4].text);
    }

    #[test]
    fn flaky_and_quarantined_tests_do_not_fail_in_the_file() {
        let flaky = Case {
            note: Some(Note::Flaky { rerun: 2 }),
            ..Case::new("A", "testFlaky", Verdict::Failed)
        };
        let known = Case {
            note: Some(Note::Quarantined { owner: "<ann>".into(), until: "2030-01-01".into() }),
            ..Case::new("A", "testKnown", Verdict::Errored)
        };
        let text = write("all", &[flaky, known]);
        assert!(
            text.contains("errors=\"0\" warnings=\"0\" failures=\"0\" skipped=\"1\""),
            "{text}"
        );
        assert!(text.contains("<flakyFailure message=\"passed in rerun 2\""), "{text}");
        assert!(text.contains("owner &lt;ann&gt;\"/>"), "{text}");
    }
}
