//! `[[location]]`: settings for some paths or hosts, in addition to the general ones.
//!
//! These tables exist only in the file: a flag or a variable has no notation for several of them.
//! Does not apply them to requests; the front does (`front/src/route/locations.rs`).

use crate::schema::console::Field;
use crate::schema::upstream::Upstream;
use std::path::PathBuf;

/// Key of the tables.
pub(crate) const KEY: &str = "location";

/// Maximum number of tables in a file.
pub(crate) const TABLES_MAX: usize = 256;
/// Maximum number of path patterns, and of host patterns, per table.
pub(crate) const PATTERNS_MAX: usize = 64;
pub(crate) const PATTERN_BYTES_MAX: usize = 256;
pub(crate) const HEADERS_MAX: usize = 32;
pub(crate) const HEADER_BYTES_MAX: usize = 4096;
pub(crate) const INDEX_MAX: usize = 16;
pub(crate) const UPSTREAMS_MAX: usize = 16;
pub(crate) const VARIABLES_MAX: usize = 64;
pub(crate) const VARIABLE_BYTES_MAX: usize = 4096;
/// The same limit as for `limits.body_bytes_max`.
pub(crate) const BODY_BYTES_MAX: u64 = 1 << 40;
/// Maximum size of an error page, which is kept in memory.
pub(crate) const ERROR_PAGE_BYTES_MAX: u64 = 256 * 1024;

/// Allowed statuses of a redirect; the first is the default.
pub(crate) const REDIRECTS: [u16; 5] = [301, 302, 303, 307, 308];

/// Headers that belong to the connection, or that only the server can set correctly.
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

/// Statuses that a location may respond with directly.
pub(crate) const REFUSALS: std::ops::RangeInclusive<u16> = 400..=599;

/// Variables that describe the request or control the server. A location cannot set them.
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

/// One `[[location]]`. A key that is not set changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Location {
    /// Line of the file at which the table begins.
    pub line: usize,
    /// Path patterns, one of which must match: `/a/*`, or a name such as `*.css`. Empty: every
    /// path.
    pub paths: Vec<String>,
    /// Host patterns, one of which must match: lower case, without port. Empty: every host.
    pub hosts: Vec<String>,
    /// Whether all requests are refused (403).
    pub deny: Option<bool>,
    /// Whether PHP scripts run here.
    pub scripts: Option<bool>,
    /// Redirect to another place.
    pub redirect: Option<Redirect>,
    /// Canonical folder with the files. The patterns end with `/*` and have no other `*`.
    pub alias: Option<PathBuf>,
    /// Response if no file exists for the path.
    pub fallback: Option<Fallback>,
    /// Index files of a folder; the first existing one is used.
    pub index: Option<Vec<String>>,
    /// FastCGI servers that run the scripts in place of the workers, without duplicates. Empty: the
    /// workers run them.
    pub fastcgi_pass: Vec<Upstream>,
    /// Path of the scripts' folder as seen by these servers, if it differs.
    pub fastcgi_root: Option<PathBuf>,
    /// Additional variables in PHP's `$_SERVER`: names and values.
    pub variables: Vec<(String, String)>,
    /// Status of every response, whether or not a file exists: 400 to 599.
    pub status: Option<u16>,
    /// Maximum bytes of a request's body, in place of `limits.body_bytes_max`.
    pub body_bytes_max: Option<u64>,
    /// Whether the requests are written to the access log.
    pub access_log: Option<bool>,
    /// Headers to set in responses; an empty value removes the header.
    pub headers: Vec<(String, String)>,
    /// Whether responses may be compressed.
    pub compression: Option<bool>,
    /// Pages for errors of the server itself.
    pub error_pages: Vec<ErrorPage>,
    /// Whether these pages also replace the application's responses with these statuses.
    pub intercept: Option<bool>,
}

/// A redirect to another place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    /// A path or a URL. A `*` in it is replaced by the text that the pattern's `*` matched.
    pub to: String,
    /// Status: 301, 302, 303, 307 or 308.
    pub status: u16,
}

/// Response if no file exists for the path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// A 404 response.
    Nothing,
    /// The file or script at this path.
    Path(String),
}

/// A page for errors of the server itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorPage {
    /// The first and the last status that use this page.
    pub statuses: (u16, u16),
    /// File to send.
    pub file: PathBuf,
}

pub(crate) const FIELDS: [Field; 18] = [
    Field {
        key: "path",
        allowed: "a path such as `/uploads/*`, a file name such as `*.css`, or an array of them; \
                  `*` matches any text, including `/`",
        default: "every path",
        doc: "Paths of requests, without percent-encoding; `/uploads/*` also matches `/uploads`",
    },
    Field {
        key: "host",
        allowed: "a name without port such as `example.com` or `*.example.com`, or an array of \
                  them",
        default: "every host",
        doc: "Hosts of requests",
    },
    Field {
        key: "deny",
        allowed: "`true` or `false`",
        default: "`false`",
        doc: "Whether all requests get a 403 response",
    },
    Field {
        key: "scripts",
        allowed: "`true` or `false`",
        default: "`true`",
        doc: "Whether PHP runs there; if not, paths of scripts get a 403 response",
    },
    Field {
        key: "redirect",
        allowed: "a path such as `/new/*` or a URL such as `https://example.com/*`; its only `*` \
                  is replaced by the text that the `*` of `path` matches, so `path` needs exactly \
                  one",
        default: "none",
        doc: "Target of a redirect; the query is kept unless the target has one",
    },
    Field {
        key: "status",
        allowed: "301, 302, 303, 307 or 308 with `redirect`; 400 to 599 without it",
        default: "`301` with `redirect`, else none",
        doc: "Status of the redirect; without one, status of every response, such as 410",
    },
    Field {
        key: "alias",
        allowed: "a folder that exists, with a `path` such as `/phpmyadmin/*` that has its only \
                  `*` at the end",
        default: "the document root",
        doc: "Folder with the files; the text that the `*` of `path` matches is the path in it",
    },
    Field {
        key: "fallback",
        allowed: "a path such as `/app.html`, without query, or `none`",
        default: "the front controller; `none` with `alias`",
        doc: "File or script for paths without a file; `none`: 404",
    },
    Field {
        key: "index",
        allowed: "an array of up to 16 file names",
        default: "`[\"index.php\", \"index.html\"]`",
        doc: "Index files of a folder; the first that exists is used",
    },
    Field {
        key: "fastcgi_pass",
        allowed: "`unix:/run/php/php-fpm.sock`, an IP address or a name and a port such as \
                  `127.0.0.1:9000` or `php.example:9000`, or an array of up to 16 different ones",
        default: "none: the workers run them",
        doc: "php-fpm that runs the scripts; of several, the least loaded one",
    },
    Field {
        key: "fastcgi_root",
        allowed: "an absolute path, with `fastcgi_pass`",
        default: "the folder itself",
        doc: "Path of the document root (or of `alias`) as that php-fpm sees it, if it differs",
    },
    Field {
        key: "variables",
        allowed: "a table of up to 64 names and values, such as `{ MAGE_RUN_CODE = \"shop\" }`; a \
                  name has letters, digits and `_`, and is neither `HTTP_…` nor a variable of the \
                  request",
        default: "none",
        doc: "Additional variables in `$_SERVER`, in workers and in php-fpm",
    },
    Field {
        key: "body_bytes_max",
        allowed: "a number of bytes, or one with `K`, `M` or `G`, such as `\"512M\"`",
        default: "`limits.body_bytes_max`",
        doc: "Maximum size of the body of a request to a script; above: 413. PHP has its own \
              limits, `post_max_size` and `upload_max_filesize`",
    },
    Field {
        key: "access_log",
        allowed: "`true` or `false`",
        default: "`true`, if there is an access log",
        doc: "Whether requests are written to the access log",
    },
    Field {
        key: "headers",
        allowed: "a table of names and values in printable ASCII, such as `{ Cache-Control = \
                  \"max-age=3600\" }`, except headers that the server sets itself",
        default: "none",
        doc: "Headers of responses, which replace headers of the same name; an empty value removes \
              the header",
    },
    Field {
        key: "compression",
        allowed: "`true` or `false`",
        default: "`true`, with the settings of `[compression]`",
        doc: "Whether responses may be compressed",
    },
    Field {
        key: "error_pages",
        allowed: "a table of statuses and files of up to 256K, such as \
                  `{ 404 = \"404.html\", 5xx = \"sorry.html\" }`",
        default: "none",
        doc: "Files that are sent for errors of the server itself",
    },
    Field {
        key: "intercept",
        allowed: "`true` or `false`",
        default: "`false`",
        doc: "Whether `error_pages` also replace responses of the application with these statuses",
    },
];
