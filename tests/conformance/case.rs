//! case: requests by name, and what is known to differ.

use samovar_testkit::http::Request;
use samovar_testkit::nginx_version;

/// Since this version several lines of one header are joined, or the first counts; before, the last.
const NGINX_JOINS_SINCE: (u32, u32) = (1, 23);
/// Since this version it knows the port that a client has named, and Debian's configuration hands it over.
const NGINX_KNOWS_PORT_SINCE: (u32, u32) = (1, 30);

/// One or more requests of one client; a cookie that the server sets goes with those that follow.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) steps: Vec<Step>,
    pub(crate) models: Models,
    pub(crate) differences: Vec<Difference>,
}

/// Where a case runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Models {
    /// The script model alone: what the case asks about lies outside a handler.
    Script,
    /// The script model, a resident handler that includes the same script, and a checkpoint above it.
    All,
}

/// A request.
pub(crate) enum Step {
    /// With the client's cookies.
    Send(Request),
    /// Bytes as they are.
    Raw(Vec<u8>),
}

/// Why Samovar's answer is another one, and what it is.
pub(crate) struct Difference {
    /// The model that it is one of alone.
    pub(crate) model: Option<&'static str>,
    pub(crate) why: &'static str,
    pub(crate) is: Is,
}

/// What an answer is instead of the oracle's.
pub(crate) enum Is {
    /// The oracle's, with this text (left) being that one (right).
    Replaced(&'static [(&'static str, &'static str)]),
    /// The oracle's, with another status.
    Status(u16),
    /// One of its own: a status, and texts that occur in headers or body.
    Own(u16, &'static [&'static str]),
}

/// A theme: cases that belong together.
pub(crate) struct Theme {
    pub(crate) name: &'static str,
    pub(crate) cases: Vec<Case>,
}

/// `item` of 0, 1, 2 … one behind the other.
pub(crate) fn numbered(count: usize, item: impl Fn(usize) -> String) -> String {
    (0..count).map(item).collect::<Vec<_>>().concat()
}

impl Case {
    /// Several requests.
    pub(crate) fn steps(name: impl Into<String>, steps: impl IntoIterator<Item = Request>) -> Case {
        let steps = steps.into_iter().map(Step::Send).collect();
        Case { name: name.into(), steps, models: Models::All, differences: Vec::new() }
    }

    /// One request.
    pub(crate) fn one(name: impl Into<String>, request: Request) -> Case {
        Case::steps(name, [request])
    }

    /// GET.
    pub(crate) fn get(name: impl Into<String>, target: &str) -> Case {
        Case::one(name, Request::get(target))
    }

    /// Bytes as they are.
    pub(crate) fn raw(name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Case {
        Case { steps: vec![Step::Raw(bytes.into())], ..Case::steps(name, []) }
    }

    /// GET, with a target that need not be text.
    pub(crate) fn raw_target(name: &str, target: &[u8]) -> Case {
        Case::raw(name, [b"GET ", target, b" HTTP/1.1\r\nHost: localhost\r\n\r\n"].concat())
    }

    /// Says that it is no case for a handler.
    pub(crate) fn script_only(self) -> Case {
        Case { models: Models::Script, ..self }
    }

    /// Documents a difference. It explains each answer of the case that differs.
    pub(crate) fn differs(mut self, why: &'static str, is: Is) -> Case {
        self.differences.push(Difference { model: None, why, is });
        self
    }

    /// Documents a difference from nginx before 1.23, which takes lines of one header another way.
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

    /// Says that a fatal error ends the request with nothing sent.
    pub(crate) fn fails(self) -> Case {
        let why = "a handler that fails is 500, where php-fpm leaves the status that was set";
        self.differs_in_resident(why, Is::Status(500))
    }
}

impl Step {
    /// As it goes over the wire, with the client's cookies.
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
