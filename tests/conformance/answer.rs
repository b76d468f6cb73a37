//! answer: what is compared of a response, and what is not.

use samovar_testkit::http::Response;
use std::fmt;

/// Headers that are not compared, each with its reason.
const HEADERS_NOT_COMPARED: &[(&str, &str)] = &[
    ("date", "the time of the answer"),
    ("server", "the server's name"),
    ("connection", "how the connection goes on: http.rs looks at it"),
    ("keep-alive", "as above"),
    ("transfer-encoding", "framing; the bodies are equal"),
    ("accept-ranges", "statics: nginx sends it with whole files only"),
    ("x-request-id", "Samovar's own"),
];

/// Variables of `$_SERVER` that are not compared, each with its reason.
const VARIABLES_NOT_COMPARED: &[(&str, &str)] = &[
    ("REMOTE_PORT", "the client's port"),
    ("SERVER_PORT", "each server has its own"),
    ("REQUEST_TIME", "the time of the request"),
    ("REQUEST_TIME_FLOAT", "as above"),
    ("SERVER_SOFTWARE", "the server's name"),
    ("FCGI_ROLE", "FastCGI's own"),
    ("USER", "php-fpm adds the user that its pool runs as"),
    ("HOME", "as above"),
    ("PATH", "Samovar keeps its environment, php-fpm's pool clears it"),
    ("REQUEST_ID", "Samovar's own"),
];

/// Session cookies, whose values are random.
const SESSION_COOKIES: &[&str] = &["PHPSESSID", "OTHER", "OPTS"];

/// The comparable part of a response.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
    pub(crate) is_complete: bool,
}

/// What one of the two servers mentions that the other cannot know.
pub(crate) struct Place {
    pub(crate) address: String,
    pub(crate) folder: String,
}

impl Answer {
    /// Makes a response comparable.
    pub(crate) fn of(response: &Response, place: &Place, is_resident: bool) -> Answer {
        let sessions = session_ids(response);
        let plain = |text: &str| {
            let text = text.replace(&place.folder, "{folder}").replace(&place.address, "{address}");
            sessions.iter().fold(text, |text, id| text.replace(id.as_str(), "{session}"))
        };
        let mut headers: Vec<_> = response
            .headers
            .iter()
            .filter(|(name, _)| HEADERS_NOT_COMPARED.iter().all(|(no, _)| no != name))
            .map(|(name, value)| (name.clone(), plain(value)))
            .collect();
        // Stable: the order of headers with one name is the script's.
        headers.sort_by(|a, b| a.0.cmp(&b.0));
        let body = body_text(&response.body, is_resident);
        let is_complete = response.complete;
        Answer { status: response.status, headers, body: plain(&body), is_complete }
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// Forgets a header.
    pub(crate) fn remove(&mut self, name: &str) {
        self.headers.retain(|(n, _)| n != name);
    }

    /// Whether nginx wrote the page itself.
    fn is_servers_own(&self) -> bool {
        self.body.contains("<hr><center>nginx")
    }

    /// Replaces text wherever it stands.
    pub(crate) fn replace(&mut self, from: &str, to: &str) {
        for (_, value) in &mut self.headers {
            *value = value.replace(from, to);
        }
        self.body = self.body.replace(from, to);
    }

    /// Whether text occurs in a header or the body.
    pub(crate) fn contains(&self, text: &str) -> bool {
        self.to_string().contains(text)
    }
}

/// Takes away from both what depends on who answers: called before they are compared.
pub(crate) fn align(ours: &mut Answer, theirs: &mut Answer) {
    if theirs.is_servers_own() {
        // An error page or a redirect by the server itself: its text is its own business.
        for answer in [&mut *ours, &mut *theirs] {
            "{the server's own page}".clone_into(&mut answer.body);
            answer.headers.retain(|(name, _)| name == "location" || name == "content-range");
            // nginx makes redirects absolute, Samovar does not; RFC 9110 allows both.
            for (_, value) in answer.headers.iter_mut().filter(|(name, _)| name == "location") {
                *value = path_of(value).to_owned();
            }
        }
    }
    if theirs.header("content-length").is_none() {
        // Framing: php-fpm's answers have a length only where the script gave it.
        ours.remove("content-length");
    }
    if theirs.header("last-modified").is_some() && theirs.header("etag") != ours.header("etag") {
        // A static file's: nginx and Samovar write the same validators in their own way.
        let is_file = |a: &Answer| a.header("x-powered-by").is_none();
        if is_file(theirs) && is_file(ours) {
            ours.remove("etag");
            theirs.remove("etag");
        }
    }
}

fn path_of(location: &str) -> &str {
    let rest = location.strip_prefix("https://").or_else(|| location.strip_prefix("http://"));
    let rest = rest.and_then(|rest| Some(&rest[rest.find('/')?..]));
    rest.unwrap_or(location)
}

fn session_ids(response: &Response) -> Vec<String> {
    let cookies = response.all("set-cookie").into_iter();
    let ids = cookies.filter_map(|cookie| {
        let (name, value) = cookie.split(';').next()?.split_once('=')?;
        let is_random = value.len() >= 22 && !value.contains('-');
        (SESSION_COOKIES.contains(&name) && is_random).then(|| value.to_owned())
    });
    ids.collect()
}

fn body_text(body: &[u8], is_resident: bool) -> String {
    let Ok(text) = str::from_utf8(body) else { return body.escape_ascii().to_string() };
    let kept = text.split('\n').filter(|line| {
        let is_trace =
            line.strip_prefix('#').is_some_and(|l| l.starts_with(|c: char| c.is_ascii_digit()));
        !(is_variable_not_compared(line) || is_resident && is_trace)
    });
    kept.collect::<Vec<_>>().join("\n")
}

/// A line of dump.php: `"string NAME": …`.
fn is_variable_not_compared(line: &str) -> bool {
    let Some((name, _)) = line.trim_start().split_once("\": ") else { return false };
    let Some(name) = name.strip_prefix("\"string ") else { return false };
    VARIABLES_NOT_COMPARED.iter().any(|(no, _)| *no == name)
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.status)?;
        for (name, value) in &self.headers {
            writeln!(f, "{name}: {value}")?;
        }
        write!(f, "\n{}", self.body)?;
        if self.is_complete { Ok(()) } else { write!(f, "\n{{the body is cut}}") }
    }
}
