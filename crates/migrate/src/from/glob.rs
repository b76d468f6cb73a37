//! Regular expressions → patterns of paths, as a `[[location]]` has them: `/a/*`, `*.css`.
//!
//! Only `*` is available there. A class of characters becomes `*`, an alternative becomes a pattern
//! of its own. Expressions that need more have no counterpart.

/// Any text in an expanded expression.
const ANY: char = '\u{0}';
/// End of the path in an expanded expression.
const END: char = '\u{1}';
/// Start of the path in an expanded expression.
const START: char = '\u{2}';
/// Maximum number of patterns of an expression.
const PATTERNS_MAX: usize = 256;
/// Maximum length of a pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 256;
/// Maximum depth of groups.
const DEPTH_MAX: usize = 16;
/// Maximum number of literal characters of a class that become alternatives.
const CLASS_CHARS_MAX: usize = 4;

/// Returns the patterns of an expression that is matched against a path with its leading slash.
pub(crate) fn patterns(regex: &str) -> Option<Vec<String>> {
    let mut reader = Reader { rest: regex, depth: 0 };
    let expanded = reader.alternatives()?;
    if !reader.rest.is_empty() {
        return None;
    }
    let mut patterns: Vec<String> = Vec::new();
    for text in expanded {
        // A path has no question mark: such an alternative never matches.
        if text.contains('?') {
            continue;
        }
        for pattern in of_text(&text)? {
            if pattern.len() > PATTERN_BYTES_MAX {
                return None;
            }
            if !patterns.contains(&pattern) {
                patterns.push(pattern);
            }
        }
    }
    let all = patterns.clone();
    patterns.retain(|pattern| !all.contains(&format!("{pattern}/*")));
    (!patterns.is_empty() && patterns.len() <= PATTERNS_MAX).then_some(patterns)
}

/// Whether a pattern with `*` matches a path. A pattern without `/` matches the last part.
pub(crate) fn is_match(pattern: &str, path: &str) -> bool {
    let path = if pattern.contains('/') { path } else { path.rsplit('/').next().unwrap_or(path) };
    let (mut parts, mut rest) = (pattern.split('*'), path);
    let first = parts.next().unwrap_or_default();
    match rest.strip_prefix(first) {
        Some(after) => rest = after,
        None => return false,
    }
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Paths that two patterns match both.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Both {
    /// The paths of this pattern.
    Pattern(String),
    /// No path.
    None,
    /// They are no single pattern.
    Unknown,
}

/// Returns the paths that both patterns match.
pub(crate) fn both(outer: &str, inner: &str) -> Both {
    if covers(outer, inner) {
        return Both::Pattern(inner.to_owned());
    }
    if covers(inner, outer) {
        return Both::Pattern(outer.to_owned());
    }
    if !inner.contains('/')
        && inner.starts_with('*')
        && let Some(folder) = outer.strip_suffix("/*").filter(|folder| !folder.contains('*'))
    {
        return Both::Pattern(format!("{folder}/{inner}"));
    }
    let start = |pattern: &str| pattern.split('*').next().unwrap_or_default().to_owned();
    let (outer_start, inner_start) = (start(outer), start(inner));
    let is_rooted = outer.starts_with('/') && inner.starts_with('/');
    let is_apart = !outer_start.starts_with(&inner_start) && !inner_start.starts_with(&outer_start);
    // `/a/*` also matches `/a`.
    let is_folder = |folder: &str, path: &str| folder.strip_suffix("/*") == Some(path);
    if is_rooted && is_apart && !is_folder(outer, inner) && !is_folder(inner, outer) {
        return Both::None;
    }
    Both::Unknown
}

/// Whether a pattern certainly matches all paths of another one.
fn covers(wide: &str, narrow: &str) -> bool {
    if wide == narrow || wide == "/*" {
        return true;
    }
    let Some(star) = wide.find('*').filter(|star| !wide[star + 1..].contains('*')) else {
        return false;
    };
    let (start, end) = (&wide[..star], &wide[star + 1..]);
    let (first, last) = match narrow.split_once('*') {
        Some((first, rest)) => (first, rest.rsplit('*').next().unwrap_or_default()),
        None => (narrow, narrow),
    };
    let is_long = narrow.contains('*') || narrow.len() >= start.len() + end.len();
    if !wide.contains('/') {
        // The name of a file: the end of the path decides.
        return start.is_empty() && last.ends_with(end) && !end.is_empty();
    }
    is_long && first.starts_with(start) && last.ends_with(end)
}

/// Patterns of an expression without alternatives.
fn of_text(text: &str) -> Option<Vec<String>> {
    let (text, is_anchored) = match text.strip_prefix(START) {
        Some(rest) => (rest, true),
        None => (text, false),
    };
    let (body, is_end) = match text.split_once(END) {
        Some((body, "")) => (body, true),
        Some(_) => return None,
        None => (text, false),
    };
    let mut body = body.replace(ANY, "*");
    if !is_end {
        body.push('*');
    }
    while body.contains("**") {
        body = body.replace("**", "*");
    }
    if body.contains("//") {
        return None;
    }
    Some(match (is_anchored, body.strip_prefix('/').is_some()) {
        (true, true) => vec![body],
        (true, false) if body.starts_with('*') => vec![format!("/{body}")],
        (true, false) => return None,
        (false, true) => vec![format!("/*{body}"), body],
        (false, false) => {
            let rest = body.trim_start_matches('*');
            if is_end && !rest.contains('/') {
                vec![format!("*{rest}")]
            } else {
                vec![format!("/*{rest}")]
            }
        }
    })
}

struct Reader<'a> {
    rest: &'a str,
    depth: usize,
}

impl Reader<'_> {
    fn take(&mut self, prefix: &str) -> bool {
        let found = self.rest.strip_prefix(prefix);
        self.rest = found.unwrap_or(self.rest);
        found.is_some()
    }

    fn next(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let next = chars.next();
        self.rest = chars.as_str();
        next
    }

    /// Reads up to the end, or up to the parenthesis that closes the group.
    fn alternatives(&mut self) -> Option<Vec<String>> {
        let mut all = self.sequence()?;
        while self.take("|") {
            all.extend(self.sequence()?);
        }
        (all.len() <= PATTERNS_MAX).then_some(all)
    }

    fn sequence(&mut self) -> Option<Vec<String>> {
        // Each alternative of the whole expression has its own start.
        let is_anchored = self.depth == 0 && self.take("^");
        let mut all = vec![if is_anchored { START.to_string() } else { String::new() }];
        while !self.rest.is_empty() && !self.rest.starts_with(['|', ')']) {
            let options = self.atom()?;
            let options = self.quantified(options)?;
            if all.len() * options.len() > PATTERNS_MAX {
                return None;
            }
            all = all.iter().flat_map(|a| options.iter().map(move |b| format!("{a}{b}"))).collect();
            if all.iter().any(|text| text.len() > 4 * PATTERN_BYTES_MAX) {
                return None;
            }
        }
        Some(all)
    }

    fn atom(&mut self) -> Option<Vec<String>> {
        let one = |c: char| Some(vec![c.to_string()]);
        match self.next()? {
            '(' => self.group(),
            '[' => self.class(),
            '$' => one(END),
            // A dot without a quantifier nearly always means a dot.
            '.' if self.rest.starts_with(['*', '+', '{']) => one(ANY),
            '.' => one('.'),
            '\\' => match self.next()? {
                'd' | 'w' | 's' | 'D' | 'W' | 'S' => one(ANY),
                'b' => Some(vec![String::new()]),
                'z' | 'Z' => one(END),
                c if c.is_ascii_alphanumeric() || c == '*' => None,
                c => one(c),
            },
            '^' | '*' | '+' | '?' | '{' => None,
            c if c.is_control() => None,
            c => one(c),
        }
    }

    fn group(&mut self) -> Option<Vec<String>> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return None;
        }
        if self.take("?") {
            if self.rest.starts_with(['=', '!', '#', '>', '|']) || self.rest.starts_with("<!") {
                return None;
            }
            let at = self.rest.find([':', '>', ')'])?;
            let is_flags = self.rest[at..].starts_with(')');
            self.rest = &self.rest[at + usize::from(!is_flags)..];
        }
        let all = self.alternatives()?;
        self.depth -= 1;
        self.take(")").then_some(all)
    }

    fn class(&mut self) -> Option<Vec<String>> {
        let is_negated = self.take("^");
        let mut members = Vec::new();
        let mut is_plain = !is_negated;
        loop {
            match self.next()? {
                ']' if !members.is_empty() => break,
                '\\' => match self.next()? {
                    c if c.is_ascii_alphanumeric() => {
                        is_plain = false;
                        members.push(c);
                    }
                    c => members.push(c),
                },
                '-' if !members.is_empty() && !self.rest.starts_with(']') => is_plain = false,
                c => members.push(c),
            }
        }
        if is_plain && members.len() <= CLASS_CHARS_MAX && !members.contains(&'*') {
            return Some(members.iter().map(char::to_string).collect());
        }
        Some(vec![ANY.to_string()])
    }

    fn quantified(&mut self, mut options: Vec<String>) -> Option<Vec<String>> {
        if self.take("?") {
            options.push(String::new());
        } else if self.take("*") || self.take("+") {
            options = vec![ANY.to_string()];
        } else if self.take("{") {
            let end = self.rest.find('}')?;
            self.rest = &self.rest[end + 1..];
            options = vec![ANY.to_string()];
        } else {
            return Some(options);
        }
        // A lazy or possessive quantifier matches the same paths.
        let _ = self.take("?") || self.take("+");
        Some(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_become_patterns() {
        for (regex, expected) in [
            (r"\.php$", "*.php"),
            (r"\.(css|js)$", "*.css *.js"),
            (r"\.(?:jpe?g|gif)$", "*.jpeg *.jpg *.gif"),
            (r"^/index\.php(/|$)", "/index.php/*"),
            (r"[^/]\.php(/|$)", "/*.php/* *.php"),
            (r"^(.+\.php)(.*)$", "/*.php*"),
            (r"^/(app|config)/", "/app/* /config/*"),
            (r"^/old/(.*)$", "/old/*"),
            (
                r"/(?:uploads|files)/.*\.php$",
                "/*/uploads/*.php /uploads/*.php \
             /*/files/*.php /files/*.php",
            ),
            (r"^/~([a-z]+)$", "/~*"),
            (r"^/a(?<rest>.*)$", "/a*"),
            (r"\.js(\?.*)?$", "*.js"),
            (r"^/sites/[^/]+/private/", "/sites/*/private/*"),
            (r"^/doc/.{3,5}?x$", "/doc/*x"),
            (r"\.php$|^/update.php", "*.php /update.php*"),
        ] {
            let found = patterns(regex).unwrap_or_else(|| panic!("{regex}"));
            assert_eq!(found.join(" "), expected, "{regex}");
        }
    }

    #[test]
    fn paths_of_two_patterns_are_those_that_both_match() {
        let pattern = |text: &str| Both::Pattern(text.to_owned());
        for (outer, inner, expected) in [
            ("/*", "/a/*", pattern("/a/*")),
            ("/a/*", "/*", pattern("/a/*")),
            ("/a/*", "/a/b/*", pattern("/a/b/*")),
            ("/a/*", "/a/*.php", pattern("/a/*.php")),
            ("/a/*", "*.php", pattern("/a/*.php")),
            ("/a*", "*.php", Both::Unknown),
            ("*.php", "/a/x.php", pattern("/a/x.php")),
            ("/a/*", "/b/*", Both::None),
            ("/a/*", "/b", Both::None),
            ("/a/*", "/a", Both::Unknown),
            ("/a/*", "/*/secret", Both::Unknown),
            ("/a*a", "/a", Both::Unknown),
            ("*.php", "*.css", Both::Unknown),
        ] {
            assert_eq!(both(outer, inner), expected, "{outer} {inner}");
        }
    }

    #[test]
    fn expressions_without_counterpart_are_refused() {
        let deep = "(".repeat(100_000);
        let wide = "(a|b|c|d)".repeat(20);
        let long = "a".repeat(5000);
        for regex in [
            "", "^", "(", ")", "[", "[]", "(?", "(?!a)", "(?=a)b", "*", "a\\", "a{", "$a", "^a",
            "\\p{L}", "(?<!x)y", "\\1", "a\0", &deep, &wide, &long,
        ] {
            let found = patterns(regex);
            let is_refused = found.is_none() || regex.is_empty() || regex == "^";
            assert!(is_refused, "{regex:?}: {found:?}");
        }
    }
}
