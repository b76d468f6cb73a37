//! Requests of `OpenLoop`, drawn at random by weight.

use crate::request::{Parts, Request};
use fastrand::Rng;
use std::rc::Rc;

/// Maximum number of requests in a mix.
const TARGETS_MAX: usize = 10_000;

/// One request of a mix.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Target {
    /// Its share of the requests, relative to the other targets.
    pub weight: f64,
    /// Method.
    pub method: String,
    /// Path and query. `{n}` becomes a running number.
    pub path: String,
    /// Names and values. Without `Host`, that of the URL is sent.
    pub headers: Vec<(String, String)>,
    /// Body; empty: none.
    pub body: Vec<u8>,
    /// Status of the recorded response; `None`: unknown.
    pub expected: Option<u16>,
}

/// Requests with their weights.
#[derive(Debug)]
pub struct Mix {
    targets: Vec<Rc<Sendable>>,
    /// Sum of the weights up to each target.
    sums: Vec<f64>,
    random: Rng,
}

/// A request that can be sent.
#[derive(Debug)]
pub(crate) struct Sendable {
    pub(crate) request: Request,
    pub(crate) expected: Option<u16>,
}

impl Mix {
    /// Creates a mix of targets for a server with this name. The same seed draws the same requests.
    ///
    /// # Errors
    ///
    /// A target cannot be sent, all weights are 0, or there are too many.
    pub fn new(targets: &[Target], authority: &str, seed: u64) -> Result<Mix, String> {
        if targets.len() > TARGETS_MAX {
            return Err(format!("{} requests; the maximum is {TARGETS_MAX}", targets.len()));
        }
        let mut mix = Mix { targets: Vec::new(), sums: Vec::new(), random: Rng::with_seed(seed) };
        for target in targets.iter().filter(|target| target.weight > 0.0) {
            let request = target.request(authority, false)?;
            mix.sums.push(mix.sums.last().unwrap_or(&0.0) + target.weight);
            mix.targets.push(Rc::new(Sendable { request, expected: target.expected }));
        }
        let sum = mix.sums.last().copied().unwrap_or(0.0);
        if !sum.is_finite() {
            return Err("the sum of the weights is too large\nhint: lower them".to_owned());
        }
        if sum > 0.0 { Ok(mix) } else { Err("no requests to send".to_owned()) }
    }

    /// Draws the next request.
    pub(crate) fn draw(&mut self) -> Rc<Sendable> {
        let last = self.targets.len() - 1;
        let drawn = self.random.f64() * self.sums[last];
        let index = self.sums.partition_point(|sum| *sum <= drawn);
        Rc::clone(&self.targets[index.min(last)])
    }
}

impl Target {
    fn request(&self, authority: &str, close: bool) -> Result<Request, String> {
        let body = (!self.body.is_empty()).then(|| self.body.as_slice().into());
        Request::new(&Parts {
            method: &self.method,
            path: &self.path,
            authority,
            headers: &self.headers,
            body,
            close,
        })
    }

    /// Checks that the request can be sent.
    ///
    /// # Errors
    ///
    /// A part is not valid in HTTP/1.1, or reserved for the client.
    pub fn check(&self) -> Result<(), String> {
        self.request("localhost", false).map(drop)
    }

    /// Returns the request for a server with this name, after whose response the connection is
    /// closed. `{n}` becomes 0.
    ///
    /// # Errors
    ///
    /// As for [`Target::check`].
    pub fn bytes(&self, authority: &str) -> Result<Vec<u8>, String> {
        let request = self.request(authority, true)?;
        let mut bytes = Vec::new();
        let rest = request.copy_out(0, &mut bytes).to_vec();
        bytes.extend_from_slice(&rest);
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::{Mix, Target};

    fn target(path: &str, weight: f64) -> Target {
        let (method, path) = ("GET".to_owned(), path.to_owned());
        Target { weight, method, path, ..Target::default() }
    }

    #[test]
    fn requests_are_drawn_by_weight() {
        let targets = [target("/a", 3.0), target("/never", 0.0), target("/b", 1.0)];
        let mut mix = Mix::new(&targets, "h", 1).unwrap();
        let mut of_a = 0;
        for _ in 0..10_000 {
            let mut out = Vec::new();
            mix.draw().request.copy_out(0, &mut out);
            assert!(!out.starts_with(b"GET /never"));
            of_a += u32::from(out.starts_with(b"GET /a "));
        }
        assert!((7300..7700).contains(&of_a), "{of_a}");
    }

    #[test]
    fn empty_and_invalid_mixes_are_rejected() {
        for targets in [vec![], vec![target("/", 0.0)], vec![target("no slash", 1.0)]] {
            assert!(Mix::new(&targets, "h", 1).is_err(), "{targets:?}");
        }
        let sum = [target("/a", f64::MAX), target("/b", f64::MAX)];
        assert!(Mix::new(&sum, "h", 1).is_err_and(|error| error.contains("sum of the weights")));
        assert!(target("/a b", 1.0).check().is_err());
        assert!(target("/a", 1.0).check().is_ok());
    }

    #[test]
    fn bytes_are_a_whole_request() {
        let body = vec![b'x'; 40_000];
        let bytes = Target { method: "POST".into(), body, ..target("/a", 1.0) }.bytes("h").unwrap();
        let head =
            "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 40000\r\nConnection: close\r\n\r\n";
        assert!(bytes.starts_with(head.as_bytes()));
        assert_eq!(bytes.len(), head.len() + 40_000);
        assert!(target("a", 1.0).bytes("h").is_err());
    }
}
