//! Why a web server's FastCGI connection is closed at once: what the log and the counters say of it.

/// What was wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hostile {
    /// The bytes are no FastCGI 1.
    Version,
    /// A record has come where none of its kind may.
    Order,
    /// A record is shorter than its kind.
    Short,
    /// The parameters are no names and values.
    Params,
    /// Records for nothing.
    Flood,
    /// The parameters did not come in time.
    Slow,
    /// It is from an address that is not trusted.
    Stranger,
}

impl Hostile {
    /// All there are, in the order of their numbers.
    pub const ALL: [Hostile; 7] = [
        Hostile::Version,
        Hostile::Order,
        Hostile::Short,
        Hostile::Params,
        Hostile::Flood,
        Hostile::Slow,
        Hostile::Stranger,
    ];

    /// Lower-case, as in the JSON of `samovar status`.
    pub fn name(self) -> &'static str {
        match self {
            Hostile::Version => "version",
            Hostile::Order => "order",
            Hostile::Short => "short",
            Hostile::Params => "params",
            Hostile::Flood => "flood",
            Hostile::Slow => "slow",
            Hostile::Stranger => "stranger",
        }
    }

    /// What happened, and what to do about it.
    pub(crate) fn words(self) -> (&'static str, &'static str) {
        const OTHER: &str = "who connects there? it should be nobody but the web server";
        match self {
            Hostile::Version => (
                "it does not speak FastCGI",
                "a browser or a proxy that speaks HTTP belongs to an address without `fcgi://`",
            ),
            Hostile::Order => ("its records have come in no order that FastCGI knows", OTHER),
            Hostile::Short => ("a record of it was too short", OTHER),
            Hostile::Params => ("its parameters are no names and values", OTHER),
            Hostile::Flood => ("it sent records that belong to no request", OTHER),
            Hostile::Slow => (
                "its parameters did not come within timeouts.header",
                "is the web server's machine overloaded?",
            ),
            Hostile::Stranger => (
                "its address is not in trusted_proxies",
                "name the web server there, if this is one: what it says of its clients is believed",
            ),
        }
    }
}
