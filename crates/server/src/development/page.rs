//! The error page of development mode: message, source, stack, and the request.
//!
//! All texts come from the application or the client and are escaped. Source is shown only of PHP
//! files.

use super::boot_error::BootError;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use samovar_front::FailedRequest;
use samovar_insight::{ErrorCause, RecordedError};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Maximum size of a file whose source is shown.
const SOURCE_BYTES_MAX: u64 = 1 << 20;
/// Lines before and after the failed one.
const AROUND: usize = 8;
/// Maximum number of frames with source.
const FRAMES_MAX: usize = 32;
/// Headers whose values are credentials.
const SECRET: [&str; 3] = ["authorization", "cookie", "proxy-authorization"];
const STYLE: &str = include_str!("page.css");

/// Builds error pages for one project.
pub(super) struct Pages {
    project: PathBuf,
    /// Links to source lines: `%f` is the file, `%l` the line; empty for none.
    editor: String,
}

/// An error on the page.
struct Shown<'a> {
    class: &'a str,
    message: &'a str,
    file: &'a str,
    line: u32,
    stack: &'a str,
    previous: &'a [ErrorCause],
}

impl Pages {
    pub(super) fn new(project: PathBuf, editor: String) -> Pages {
        Pages { project, editor }
    }

    /// Returns the page for a request that has failed.
    pub(super) fn of_request(&self, request: &FailedRequest, errors: &[RecordedError]) -> String {
        let shown: Vec<_> = errors.iter().map(Shown::of).collect();
        let title = errors.first().map_or("Error", |error| &error.class);
        let note = format!("{} {}", request.method, request.target);
        self.page(title, &note, &shown, &request_section(request))
    }

    /// Returns the page for a version that does not boot.
    pub(super) fn of_boot(&self, why: &str, error: Option<&BootError>) -> String {
        let note = "The new version does not boot. The last good version keeps serving.";
        match error {
            Some(BootError { class, message, file, line, stack }) => {
                let shown = Shown { class, message, file, line: *line, stack, previous: &[] };
                self.page(class, note, &[shown], &PreEscaped(String::new()))
            }
            None => self.page("Failed boot", note, &[], &html! { pre.why { (why) } }),
        }
    }

    fn page(&self, title: &str, note: &str, errors: &[Shown], rest: &Markup) -> String {
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width";
                    title { (title) }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    p.note { (note) }
                    @for error in errors { (self.error(error)) }
                    (rest)
                    footer { "Samovar, development mode" }
                }
            }
        };
        page.into_string()
    }

    fn error(&self, error: &Shown) -> Markup {
        html! {
            section {
                h1 { (error.class) }
                p.message { (error.message) }
                (self.place(error.file, error.line))
                (excerpt(error.file, error.line))
                @for cause in error.previous {
                    h2 { "Caused by " (cause.class) }
                    p.message { (cause.message) }
                    (self.place(&cause.file, cause.line))
                    (excerpt(&cause.file, cause.line))
                }
                @if !error.stack.is_empty() {
                    h2 { "Stack" }
                    ol.stack {
                        @for frame in error.stack.lines().take(FRAMES_MAX) { (self.frame(frame)) }
                    }
                }
            }
        }
    }

    fn frame(&self, text: &str) -> Markup {
        let call = text.split_once(' ').map_or(text, |(_, call)| call);
        let Some((file, line, function)) = frame(call) else {
            return html! { li { code { (call) } } };
        };
        let source = excerpt(file, line);
        html! {
            li {
                details {
                    summary { code { (function) } " " (self.place(file, line)) }
                    (source)
                }
            }
        }
    }

    /// `src/Shop.php:12`, as a link to the editor.
    fn place(&self, file: &str, line: u32) -> Markup {
        if file.is_empty() {
            return PreEscaped(String::new());
        }
        let path = Path::new(file);
        let short = path.strip_prefix(&self.project).unwrap_or(path).display();
        let text = format!("{short}:{line}");
        if self.editor.is_empty() {
            return html! { span.place { (text) } };
        }
        let target = self.editor.replace("%l", &line.to_string()).replace("%f", &in_link(file));
        html! { a.place href=(target) { (text) } }
    }
}

impl<'a> Shown<'a> {
    fn of(error: &'a RecordedError) -> Shown<'a> {
        Shown {
            class: &error.class,
            message: &error.message,
            file: &error.file,
            line: error.line,
            stack: &error.stack,
            previous: &error.previous,
        }
    }
}

/// Returns the lines around one.
fn excerpt(file: &str, line: u32) -> Markup {
    let Some(text) = source(Path::new(file)) else { return PreEscaped(String::new()) };
    let number = line as usize;
    let first = number.saturating_sub(AROUND).max(1);
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line));
    let lines = lines.skip(first - 1).take(number + AROUND + 1 - first);
    html! {
        pre.source {
            @for (at, line) in lines {
                span.failed[at == number] { b { (at) } (line) "\n" }
            }
        }
    }
}

fn request_section(request: &FailedRequest) -> Markup {
    let value = |name: &str, value: &str| {
        if SECRET.contains(&name) { "(not shown)".to_owned() } else { value.to_owned() }
    };
    html! {
        section {
            h2 { "Request" }
            table {
                tr { th { "target" } td { (request.method) " " (request.target) } }
                tr { th { "request id" } td { (request.id) } }
                @for (name, text) in &request.headers {
                    tr { th { (name) } td { (value(name, text)) } }
                }
            }
        }
    }
}

/// Splits `/srv/a.php(12): App\f()`.
fn frame(call: &str) -> Option<(&str, u32, &str)> {
    let (place, function) = call.split_once("): ")?;
    let (file, line) = place.rsplit_once('(')?;
    Some((file, line.parse().ok()?, function))
}

/// Returns the text of a PHP file that is not too long.
fn source(file: &Path) -> Option<String> {
    let is_php = file.extension().is_some_and(|ending| {
        ["php", "phtml", "inc", "module", "theme"].iter().any(|known| ending == *known)
    });
    let is_file = file.symlink_metadata().is_ok_and(|found| found.is_file());
    if !file.is_absolute() || !is_php || !is_file {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(file).ok()?.take(SOURCE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Encodes a path for a link. Slashes stay.
fn in_link(path: &str) -> String {
    let encode = |byte: u8| {
        if byte.is_ascii_alphanumeric() || b"/-_.~:".contains(&byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    };
    path.bytes().map(encode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use samovar_insight::ErrorKind;

    fn error(file: &str, message: &str) -> RecordedError {
        RecordedError {
            kind: ErrorKind::Uncaught,
            class: "App\\Lost".into(),
            message: message.into(),
            file: file.into(),
            line: 3,
            stack: format!("#0 {file}(5): App\\Shop->buy()\n#1 {{main}}").into(),
            previous: Vec::new(),
        }
    }

    #[test]
    fn page_shows_source_stack_request_and_links() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("a b.php");
        let lines: Vec<_> = (1..30).map(|n| format!("line({n}); // <i>")).collect();
        std::fs::write(&file, lines.join("\n")).expect("our folder");
        let editor = "vscode://file/%f:%l".to_owned();
        let pages = Pages::new(folder.path().to_owned(), editor);
        let request = FailedRequest {
            method: "GET".to_owned(),
            target: "/shop?a=<b>".to_owned(),
            id: "7".to_owned(),
            headers: vec![
                ("cookie".to_owned(), "secret=1".to_owned()),
                ("accept".to_owned(), "text/html".to_owned()),
            ],
        };
        let error = error(&file.to_string_lossy(), "no <stock>");
        let page = pages.of_request(&request, &[error]);
        for part in [
            "<h1>App\\Lost</h1>",
            "no &lt;stock&gt;",
            "<span class=\"failed\"><b>3</b>line(3); // &lt;i&gt;",
            "<b>11</b>line(11)",
            "a%20b.php:3\">a b.php:3</a>",
            "App\\Shop-&gt;buy()",
            "/shop?a=&lt;b&gt;",
            "(not shown)",
            "text/html",
        ] {
            assert!(page.contains(part), "{part} is not in {page}");
        }
        assert!(!page.contains("secret=1") && !page.contains("<b>14</b>line(14)"), "{page}");
    }

    #[test]
    fn only_php_files_are_shown() {
        for file in ["/etc/passwd", "relative.php", "/missing.php", "/tmp"] {
            assert_eq!(source(Path::new(file)), None, "{file}");
        }
        let pages = Pages::new("/srv".into(), String::new());
        let page = pages.of_request(&FailedRequest::default(), &[error("/etc/passwd", "x")]);
        assert!(!page.contains("root:") && !page.contains("<a "), "{page}");
        let page = pages.of_boot("it <failed>\nhint: try", None);
        assert!(page.contains("it &lt;failed&gt;"), "{page}");
    }
}
