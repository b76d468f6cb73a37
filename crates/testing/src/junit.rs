//! Results as `JUnit`'s XML: read from the frameworks, and written for the whole run.
//!
//! The reader knows the elements that `PHPUnit` writes. Its input comes from a process that tests
//! have run in, so no text of it is trusted to be well-formed.

mod reader;

use crate::case::{Case, Note, Verdict};
use reader::{Reader, Token};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Maximum number of results of one unit.
const CASES_MAX: usize = 1_000_000;
/// Maximum length of the output of a test, bytes; the rest is left out.
const OUTPUT_BYTES_MAX: usize = 64 << 10;
/// Elements about the end of a test.
const FAULTS: [&str; 5] = ["failure", "error", "warning", "skipped", "incomplete"];
/// Exceptions of `PHPUnit` about risky tests, which are errors in its log.
const RISKY: [&str; 5] = [
    "RiskyTestError",
    "OutputError",
    "CoveredCodeNotExecutedException",
    "MissingCoversAnnotationException",
    "UnintentionallyCoveredCodeError",
];
/// Element with the output of a test.
const OUTPUT: &str = "system-out";

/// Reads the results of one unit.
///
/// # Errors
///
/// A description of text that is not an XML document of a framework.
pub(crate) fn read(text: &str) -> Result<Vec<Case>, String> {
    // A process that a test has forked may have written its own results into the same file before.
    let text = text.rfind("<?xml ").map_or(text, |at| &text[at..]);
    let mut cases: Vec<Case> = Vec::new();
    let mut reader = Reader::new(text);
    let (mut is_open, mut is_complete) = (false, false);
    // The element whose text is collected.
    let mut fault: Option<(String, String)> = None;
    let mut is_output = false;
    while let Some(token) = reader.next()? {
        match token {
            Token::Text(more) => {
                if let (true, true, Some(case)) = (is_output, is_open, cases.last_mut()) {
                    let left = OUTPUT_BYTES_MAX.saturating_sub(case.output.len());
                    case.output.push_str(&more[..more.floor_char_boundary(left)]);
                } else if let (Some((_, text)), true) = (&mut fault, is_open) {
                    text.push_str(&more);
                }
            }
            Token::Open { name: OUTPUT, is_empty, .. } => is_output = !is_empty,
            Token::Close(OUTPUT) => is_output = false,
            Token::Open { name: "testcase", attributes, is_empty } => {
                if cases.len() == CASES_MAX {
                    return Err(format!("more than {CASES_MAX} results"));
                }
                cases.push(case(&attributes));
                is_open = !is_empty;
            }
            Token::Open { name, attributes, is_empty } => {
                if FAULTS.contains(&name) && is_open {
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
                if FAULTS.contains(&name) {
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

/// Whether an exception of the framework is about a risky test.
fn is_risky(kind: &str) -> bool {
    let name = kind.strip_prefix("PHPUnit\\Framework\\").unwrap_or_default();
    RISKY.contains(&name)
}

fn close(cases: &mut [Case], element: &str, fault: Option<(String, String)>, message: &str) {
    let (Some(case), Some((kind, text))) = (cases.last_mut(), fault) else { return };
    let text = if text.trim().is_empty() { message.to_owned() } else { text };
    let verdict = match element {
        "failure" => Verdict::Failed,
        "error" if is_risky(&kind) || text.starts_with("Risky Test") => Verdict::Risky,
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
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    let is_of_set = first.starts_with(" (") && first.trim_end().ends_with(')');
    let text = if is_of_set { rest } else { text };
    if is_of_set {
        first.trim().clone_into(&mut case.arguments);
    }
    text.trim_matches('\n').trim().clone_into(&mut case.text);
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
    let file =
        if file.is_empty() { String::new() } else { format!(" file=\"{}\"", attribute(file)) };
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "{:indent$}<testsuite name=\"{}\"{file} tests=\"{}\" assertions=\"{}\" errors=\"{}\" \
         warnings=\"{}\" failures=\"{}\" skipped=\"{}\" time=\"{:.6}\">",
        "",
        attribute(name),
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
        (file, 0) => format!(" file=\"{}\"", attribute(file)),
        (file, line) => format!(" file=\"{}\" line=\"{line}\"", attribute(file)),
    };
    let _ = write!(
        out,
        "      <testcase name=\"{}\" class=\"{}\" classname=\"{}\"{place} assertions=\"{}\" \
         time=\"{:.6}\"",
        attribute(&case.name),
        attribute(&case.class),
        attribute(&case.class.replace('\\', ".")),
        case.assertions,
        case.seconds,
    );
    let fault = fault(case);
    if fault.is_empty() && case.output.is_empty() {
        out.push_str("/>\n");
        return;
    }
    out.push_str(">\n");
    if !fault.is_empty() {
        let _ = writeln!(out, "        {fault}");
    }
    if !case.output.is_empty() {
        let _ = writeln!(out, "        <{OUTPUT}>{}</{OUTPUT}>", text(&case.output));
    }
    out.push_str("      </testcase>\n");
}

/// Returns the element about the end of a test; empty for one that passed.
fn fault(case: &Case) -> String {
    let kind = attribute(&case.kind);
    let element = match (shown(case), &case.note) {
        // Surefire's element, which build servers know.
        (Verdict::Passed, Some(Note::Flaky { rerun })) => {
            return format!(
                "<flakyFailure message=\"passed in rerun {rerun}\" \
                 type=\"{kind}\">{}</flakyFailure>",
                text(&case.text)
            );
        }
        (Verdict::Passed, _) => return String::new(),
        (Verdict::Skipped, Some(Note::Quarantined { owner, until })) => {
            let owner = attribute(owner);
            return format!("<skipped message=\"in quarantine until {until}, owner {owner}\"/>");
        }
        (Verdict::Skipped, _) if case.text.is_empty() => return "<skipped/>".to_owned(),
        (Verdict::Skipped, _) => {
            return format!("<skipped message=\"{}\"/>", attribute(&case.text));
        }
        (Verdict::Warned, _) => "warning",
        (Verdict::Failed, _) => "failure",
        (Verdict::Risky | Verdict::Errored, _) => "error",
    };
    let about = text(&format!("{}\n{}", case.title(), case.text));
    format!("<{element} type=\"{kind}\">{about}</{element}>")
}

/// Escapes the value of an attribute: readers take a line feed in it for a space.
fn attribute(value: &str) -> String {
    text(value).replace('\n', "&#10;").replace('\t', "&#9;")
}

/// Escapes a text for XML. Characters that XML does not have become `?`.
fn text(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push('\n'),
            '\t' => out.push('\t'),
            '\r' => out.push_str("&#13;"),
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
      <error type="PHPUnit\Framework\OutputError">printed
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
        let title = "A\\BTest::testData with data set \"a < b\" (1, 2)";
        assert_eq!(cases[1].title(), title);
        assert!(cases[1].text.starts_with("Failed asserting that 1 is 2."), "{}", cases[1].text);
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
    fn last_of_several_documents_counts() {
        let other = "<?xml version=\"1.0\"?>\n<testsuites><testcase name=\"a\"/></testsuites>";
        assert_eq!(read(&format!("{other}\n{LOG}")), read(LOG));
        assert_eq!(read(&format!("{LOG}{other}")).map(|cases| cases.len()), Ok(1));
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
        assert_eq!(back[1].title(), cases[1].title());
        assert_eq!(back[1].text, cases[1].text);
    }

    #[test]
    fn output_and_names_of_many_lines_are_kept() {
        let mut case = Case::new("A", "testX with data set \"a\nb\tc\"", Verdict::Passed);
        case.output = "<1>\r\n\tend\n".into();
        let mut skipped = Case::new("A", "testY", Verdict::Skipped);
        skipped.text = "why\nnot".into();
        let text = write("all", &[case.clone(), skipped.clone()]);
        assert!(text.contains("name=\"testX with data set &quot;a&#10;b&#9;c&quot;\""), "{text}");
        assert!(text.contains("<system-out>&lt;1&gt;&#13;\n\tend\n</system-out>"), "{text}");
        assert!(text.contains("<skipped message=\"why&#10;not\"/>"), "{text}");
        let back = read(&text).expect("our own log");
        assert_eq!((back[0].id(), &back[0].output), (case.id(), &case.output));
        assert_eq!(back[1].text, skipped.text);
        let long = "é".repeat(OUTPUT_BYTES_MAX);
        let text = text.replace("<system-out>", &format!("<system-out>a{long}"));
        assert_eq!(read(&text).expect("our own log")[0].output.len(), OUTPUT_BYTES_MAX - 1);
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
