//! case: named requests and their known differences.

use samovar_testkit::http::Request;
use samovar_testkit::nginx_version;

/// Since this version nginx joins several lines of the same header, or uses the first one. Earlier
/// versions use the last one.
const NGINX_JOINS_SINCE: (u32, u32) = (1, 23);
/// Since this version nginx knows the port that the client specified, and Debian's configuration
/// passes it to PHP.
const NGINX_KNOWS_PORT_SINCE: (u32, u32) = (1, 30);

/// One or more requests of one client. Cookies that the server sets are sent with the following
/// requests.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) steps: Vec<Step>,
    pub(crate) models: Models,
    pub(crate) differences: Vec<Difference>,
}

/// Execution models in which a case runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Models {
    /// Only the script model: the case tests something outside a handler.
    Script,
    /// The script model, a resident handler that includes the same script, and a checkpoint above
    /// the script.
    All,
}

/// A request.
pub(crate) enum Step {
    /// With the client's cookies.
    Send(Request),
    /// Raw bytes, sent unchanged.
    Raw(Vec<u8>),
}

/// A documented difference: the reason, and the response that Samovar returns instead.
pub(crate) struct Difference {
    /// The only model that differs; `None`: all models.
    pub(crate) model: Option<&'static str>,
    pub(crate) why: &'static str,
    pub(crate) is: Is,
}

/// The response of Samovar where it differs from the reference server's.
pub(crate) enum Is {
    /// The reference server's response with the left text replaced by the right one.
    Replaced(&'static [(&'static str, &'static str)]),
    /// The reference server's response with another status.
    Status(u16),
    /// A different response: its status, and texts that occur in headers or body.
    Own(u16, &'static [&'static str]),
}

/// A theme: a group of related cases.
pub(crate) struct Theme {
    pub(crate) name: &'static str,
    pub(crate) cases: Vec<Case>,
}

/// Concatenates `item(0)`, `item(1)`, `item(2)` and so on.
pub(crate) fn numbered(count: usize, item: impl Fn(usize) -> String) -> String {
    (0..count).map(item).collect::<Vec<_>>().concat()
}

impl Case {
    /// A case of several requests.
    pub(crate) fn steps(name: impl Into<String>, steps: impl IntoIterator<Item = Request>) -> Case {
        let steps = steps.into_iter().map(Step::Send).collect();
        Case { name: name.into(), steps, models: Models::All, differences: Vec::new() }
    }

    /// A case of one request.
    pub(crate) fn one(name: impl Into<String>, request: Request) -> Case {
        Case::steps(name, [request])
    }

    /// A case of one GET request.
    pub(crate) fn get(name: impl Into<String>, target: &str) -> Case {
        Case::one(name, Request::get(target))
    }

    /// A case that sends raw bytes.
    pub(crate) fn raw(name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Case {
        Case { steps: vec![Step::Raw(bytes.into())], ..Case::steps(name, []) }
    }

    /// A GET request whose target may contain bytes that are not text.
    pub(crate) fn raw_target(name: &str, target: &[u8]) -> Case {
        Case::raw(name, [b"GET ", target, b" HTTP/1.1\r\nHost: localhost\r\n\r\n"].concat())
    }

    /// Restricts the case to the script model, because it does not apply to a handler.
    pub(crate) fn script_only(self) -> Case {
        Case { models: Models::Script, ..self }
    }

    /// Documents a difference. It explains every response of the case that differs.
    pub(crate) fn differs(mut self, why: &'static str, is: Is) -> Case {
        self.differences.push(Difference { model: None, why, is });
        self
    }

    /// Documents a difference from nginx before 1.23, which handles repeated headers differently.
    pub(crate) fn differs_before_nginx_1_23(self, why: &'static str, is: Is) -> Case {
        if nginx_version() < NGINX_JOINS_SINCE { self.differs(why, is) } else { self }
    }

    /// Documents a difference from nginx 1.23 and later.
    pub(crate) fn differs_since_nginx_1_23(self, why: &'static str, is: Is) -> Case {
        if nginx_version() < NGINX_JOINS_SINCE { self } else { self.differs(why, is) }
    }

    /// Documents a difference from nginx before 1.30, as Debian configures it.
    pub(crate) fn differs_before_nginx_1_30(self, why: &'static str, is: Is) -> Case {
        if nginx_version() < NGINX_KNOWS_PORT_SINCE { self.differs(why, is) } else { self }
    }

    /// Documents a difference of the resident model.
    pub(crate) fn differs_in_resident(mut self, why: &'static str, is: Is) -> Case {
        self.differences.push(Difference { model: Some("resident"), why, is });
        self
    }

    /// Documents that a fatal error ends the request before any output is sent.
    pub(crate) fn fails(self) -> Case {
        let why = "a handler that fails without a status is 500, where php-fpm shows it with 200";
        self.differs_in_resident(why, Is::Status(500))
    }
}

impl Step {
    /// The bytes on the wire, with the client's cookies.
    pub(crate) fn bytes(&self, cookies: &str) -> Vec<u8> {
        match self {
            Step::Raw(bytes) => bytes.clone(),
            Step::Send(request) if cookies.is_empty() => request.bytes(),
            Step::Send(request) => request.clone().header("Cookie", cookies).bytes(),
        }
    }

    pub(crate) fn is_head(&self) -> bool {
        match self {
            Step::Raw(bytes) => bytes.starts_with(b"HEAD "),
            Step::Send(request) => request.method() == "HEAD",
        }
    }
}
