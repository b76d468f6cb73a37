//! A secret value, which no message and no dump shows.

use std::fmt;

/// Text that replaces a secret in messages.
pub const MASK: &str = "***";

/// A secret text. `Debug` shows [`MASK`]; there is no `Display`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Returns the text, for its only use.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Secret {
        Secret(text.to_owned())
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Secret {
        Secret(text)
    }
}

/// Token of the admin listener.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AdminToken {
    /// The server generates a token and stores it in a file.
    #[default]
    Generated,
    /// No token is required.
    Open,
    /// A token from the settings.
    Given(Secret),
}

impl fmt::Debug for Secret {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(MASK)
    }
}
