//! multipart/form-data bodies, well-formed or not.

use crate::http::Request;

/// The delimiter of [`Multipart::new`].
pub const BOUNDARY: &str = "samovar-test-boundary";

/// A body under construction, byte by byte as a test requires it.
#[derive(Clone, Debug)]
pub struct Multipart {
    boundary: String,
    parts: Vec<(Vec<u8>, Vec<u8>)>,
    is_ended: bool,
}

impl Default for Multipart {
    fn default() -> Multipart {
        Multipart::new()
    }
}

impl Multipart {
    /// Creates a body without parts.
    pub fn new() -> Multipart {
        Multipart { boundary: BOUNDARY.to_owned(), parts: Vec::new(), is_ended: true }
    }

    /// Sets another delimiter.
    #[must_use]
    pub fn boundary(mut self, boundary: &str) -> Multipart {
        boundary.clone_into(&mut self.boundary);
        self
    }

    /// Adds a part with its headers unchanged, lines separated by CRLF.
    #[must_use]
    pub fn part(mut self, headers: impl AsRef<[u8]>, content: impl AsRef<[u8]>) -> Multipart {
        self.parts.push((headers.as_ref().to_vec(), content.as_ref().to_vec()));
        self
    }

    /// Adds a field.
    #[must_use]
    pub fn field(self, name: &str, value: impl AsRef<[u8]>) -> Multipart {
        self.part(format!("Content-Disposition: form-data; name=\"{name}\""), value)
    }

    /// Adds a file of type text/plain.
    #[must_use]
    pub fn file(self, name: &str, filename: &str, content: impl AsRef<[u8]>) -> Multipart {
        let disposition = format!(
            "Content-Disposition: form-data; name=\"{name}\"; filename=\"{filename}\"\r\n\
             Content-Type: text/plain"
        );
        self.part(disposition, content)
    }

    /// Omits the final delimiter.
    #[must_use]
    pub fn without_end(mut self) -> Multipart {
        self.is_ended = false;
        self
    }

    /// The body.
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (headers, content) in &self.parts {
            out.extend_from_slice(format!("--{}\r\n", self.boundary).as_bytes());
            out.extend_from_slice(headers);
            out.extend_from_slice(b"\r\n\r\n");
            out.extend_from_slice(content);
            out.extend_from_slice(b"\r\n");
        }
        if self.is_ended {
            out.extend_from_slice(format!("--{}--\r\n", self.boundary).as_bytes());
        }
        out
    }

    /// POST of this body.
    pub fn post(&self, target: &str) -> Request {
        let kind = format!("multipart/form-data; boundary={}", self.boundary);
        Request::post(target, &kind, self.bytes())
    }
}
