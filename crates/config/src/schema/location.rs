//! `[[location]]`: what holds for some paths or hosts besides what holds for all.
//!
//! They are tables of the file alone: a flag or a variable has no room for several of them. What a table does when it
//! fits is the front's business (`front/src/route/locations.rs`).

use crate::schema::console::Field;
use crate::schema::upstream::Upstream;
use std::path::PathBuf;

/// The key of the tables.
pub(crate) const KEY: &str = "location";

/// Most tables in a file.
pub(crate) const TABLES_MAX: usize = 256;
/// Patterns of one table, for paths and for hosts each.
pub(crate) const PATTERNS_MAX: usize = 64;
pub(crate) const PATTERN_BYTES_MAX: usize = 256;
pub(crate) const HEADERS_MAX: usize = 32;
pub(crate) const HEADER_BYTES_MAX: usize = 4096;
pub(crate) const INDEX_MAX: usize = 16;
pub(crate) const UPSTREAMS_MAX: usize = 16;
pub(crate) const VARIABLES_MAX: usize = 64;
pub(crate) const VARIABLE_BYTES_MAX: usize = 4096;
/// As of `limits.body_bytes_max`.
pub(crate) const BODY_BYTES_MAX: u64 = 1 << 40;
/// An error page is kept in memory.
pub(crate) const ERROR_PAGE_BYTES_MAX: u64 = 256 * 1024;

/// What a redirect may say; the first is meant where none is given.
pub(crate) const REDIRECTS: [u16; 5] = [301, 302, 303, 307, 308];

/// Headers that belong to the connection, or say what the server knows better.
pub(crate) const SERVERS_HEADERS: [&str; 14] = [
    "connection",
    "content-encoding",
    "content-length",
    "content-range",
    "date",
    "etag",
    "keep-alive",
    "last-modified",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "x-request-id",
];

/// Statuses that a location may answer with by itself.
pub(crate) const REFUSALS: std::ops::RangeInclusive<u16> = 400..=599;

/// Variables that say what the request is, or steer the server: no location makes them up.
pub(crate) const SERVERS_VARIABLES: [&str; 35] = [
    "AUTH_TYPE",
    "CONTENT_LENGTH",
    "CONTENT_TYPE",
    "DOCUMENT_ROOT",
    "DOCUMENT_URI",
    "FCGI_ROLE",
    "FRANKENPHP_WORKER",
    "GATEWAY_INTERFACE",
    "HTTPS",
    "PATH_INFO",
    "PATH_TRANSLATED",
    "PHP_ADMIN_VALUE",
    "PHP_AUTH_DIGEST",
    "PHP_AUTH_PW",
    "PHP_AUTH_USER",
    "PHP_SELF",
    "PHP_VALUE",
    "QUERY_STRING",
    "REDIRECT_STATUS",
    "REMOTE_ADDR",
    "REMOTE_PORT",
    "REMOTE_USER",
    "REQUEST_ID",
    "REQUEST_METHOD",
    "REQUEST_SCHEME",
    "REQUEST_URI",
    "SCRIPT_FILENAME",
    "SCRIPT_NAME",
    "SERVER_ADDR",
    "SERVER_NAME",
    "SERVER_PORT",
    "SERVER_PROTOCOL",
    "SERVER_SOFTWARE",
    "TRACEPARENT",
    "TRACESTATE",
];

/// One `[[location]]`. What it does not say is as it is without it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Location {
    /// The line of the file that it begins in.
    pub line: usize,
    /// Patterns, one of which has to fit; none: every path. `/a/*`, or a name such as `*.css`.
    pub paths: Vec<String>,
    /// Likewise for hosts: lower case, without port.
    pub hosts: Vec<String>,
    /// Whether what is there is refused.
    pub deny: Option<bool>,
    /// Whether PHP runs there.
    pub scripts: Option<bool>,
    /// Where it is instead.
    pub redirect: Option<Redirect>,
    /// The folder that it lies in, canonical. The patterns end with `/*` and have no other `*`.
    pub alias: Option<PathBuf>,
    /// What answers where there is no file.
    pub fallback: Option<Fallback>,
    /// What answers for a folder, the first that is there.
    pub index: Option<Vec<String>>,
    /// Who runs the scripts instead, each once: they speak FastCGI. None: the workers do.
    pub fastcgi_pass: Vec<Upstream>,
    /// Where the folder of the scripts lies for who runs them, if that is elsewhere.
    pub fastcgi_root: Option<PathBuf>,
    /// Variables that PHP has in `$_SERVER`: names and values.
    pub variables: Vec<(String, String)>,
    /// The status that it is answered with, whatever is there: 400 to 599.
    pub status: Option<u16>,
    /// Most bytes of a request's body, in place of `limits.body_bytes_max`.
    pub body_bytes_max: Option<u64>,
    /// Whether its requests are in the access log.
    pub access_log: Option<bool>,
    /// Headers of answers; one without value is taken out.
    pub headers: Vec<(String, String)>,
    /// Whether answers may be compressed.
    pub compression: Option<bool>,
    /// Pages for failures of the server's own.
    pub error_pages: Vec<ErrorPage>,
    /// Whether they also stand in for what the application answers with these statuses.
    pub intercept: Option<bool>,
}

/// Where something is instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    /// A path or a URL; a `*` in it is what that of the pattern stands for.
    pub to: String,
    /// 301, 302, 303, 307 or 308.
    pub status: u16,
}

/// What answers where there is no file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// 404.
    Nothing,
    /// The file or script of this path.
    Path(String),
}

/// A page for failures of the server's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorPage {
    /// The first and the last status that it is for.
    pub statuses: (u16, u16),
    /// The file that is sent.
    pub file: PathBuf,
}

pub(crate) const FIELDS: [Field; 18] = [
    Field {
        key: "path",
        allowed: "a path such as `/uploads/*`, a file's name such as `*.css`, or an array of them; `*` is any text, \
                  `/` included",
        default: "every path",
        doc: "Which paths it is for, as they read without percent-encoding; `/uploads/*` is also `/uploads`",
    },
    Field {
        key: "host",
        allowed: "a name without port such as `example.com` or `*.example.com`, or an array of them",
        default: "every host",
        doc: "Which hosts it is for",
    },
    Field {
        key: "deny",
        allowed: "`true` or `false`",
        default: "`false`",
        doc: "Answer 403, whatever is there",
    },
    Field {
        key: "scripts",
        allowed: "`true` or `false`",
        default: "`true`",
        doc: "Whether PHP runs there; a path that names a script is answered with 403 where not",
    },
    Field {
        key: "redirect",
        allowed: "a path such as `/new/*` or a URL such as `https://example.com/*`; its one `*` is what the `*` of \
                  `path` stands for, so `path` needs exactly one",
        default: "none",
        doc: "Where it is instead; the query is kept unless there is one in it",
    },
    Field {
        key: "status",
        allowed: "301, 302, 303, 307 or 308 beside `redirect`; 400 to 599 without one",
        default: "`301` beside `redirect`, else what is there answers",
        doc: "How the redirect is told; or what every path is answered with, such as 410",
    },
    Field {
        key: "alias",
        allowed: "a folder that exists, with a `path` such as `/phpmyadmin/*` that has its one `*` at the end",
        default: "the document root",
        doc: "The folder that the part behind `path` lies in",
    },
    Field {
        key: "fallback",
        allowed: "a path such as `/app.html`, without query, or `none`",
        default: "the front controller; `none` beside `alias`",
        doc: "What answers where there is no file; `none`: 404",
    },
    Field {
        key: "index",
        allowed: "an array of up to 16 file names",
        default: "`[\"index.php\", \"index.html\"]`",
        doc: "What answers for a folder: the first that is there",
    },
    Field {
        key: "fastcgi_pass",
        allowed: "`unix:/run/php/php-fpm.sock`, an IP address or a name and a port such as `127.0.0.1:9000` or \
                  `php.example:9000`, or an array of up to 16 different ones",
        default: "none: the workers run them",
        doc: "The php-fpm that runs the scripts there; of several the one that has the least to do",
    },
    Field {
        key: "fastcgi_root",
        allowed: "an absolute path, beside `fastcgi_pass`",
        default: "the folder itself",
        doc: "Where the document root (or the folder of `alias`) lies for that php-fpm, if it sees other paths",
    },
    Field {
        key: "variables",
        allowed: "a table of up to 64 names and values, such as `{ MAGE_RUN_CODE = \"shop\" }`; a name has letters, digits and `_`, \
                  and is neither `HTTP_…` nor one that says what the request is",
        default: "none",
        doc: "What PHP has in `$_SERVER` besides, whoever runs it",
    },
    Field {
        key: "body_bytes_max",
        allowed: "a number of bytes, or one with `K`, `M` or `G`, such as `\"512M\"`",
        default: "that of `[limits]`",
        doc: "Longest body of a request to a script there: 413 beyond. PHP has limits of its own, `post_max_size` and \
              `upload_max_filesize`",
    },
    Field {
        key: "access_log",
        allowed: "`true` or `false`",
        default: "`true`: where there is an access log",
        doc: "Whether requests have a line in the access log",
    },
    Field {
        key: "headers",
        allowed: "a table of names and values in printable ASCII, such as `{ Cache-Control = \"max-age=3600\" }`, but for \
                  those that the server sets itself",
        default: "none",
        doc: "Headers of answers, in place of those of the same name; an empty value takes one out",
    },
    Field {
        key: "compression",
        allowed: "`true` or `false`",
        default: "`true`: as the settings of `[compression]` say",
        doc: "Whether answers may be compressed",
    },
    Field {
        key: "error_pages",
        allowed: "a table of statuses and files of up to 256K, such as `{ 404 = \"404.html\", 5xx = \"sorry.html\" }`",
        default: "none",
        doc: "Files that are sent where the server itself refuses or fails",
    },
    Field {
        key: "intercept",
        allowed: "`true` or `false`",
        default: "`false`",
        doc: "Whether `error_pages` take the place of what the application answers with these statuses, too",
    },
];
