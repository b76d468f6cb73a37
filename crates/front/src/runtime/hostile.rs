//! Reasons for which a web server's FastCGI connection is closed immediately, with their texts for
//! the log and the counters.

/// Reason why a FastCGI connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hostile {
    /// The bytes are not FastCGI 1.
    Version,
    /// A record of this kind is not allowed at this point.
    Order,
    /// A record is shorter than its kind requires.
    Short,
    /// The parameters are not valid names and values.
    Params,
    /// Too many records without effect.
    Flood,
    /// The parameters did not arrive in time.
    Slow,
    /// The address is not trusted.
    Stranger,
}

impl Hostile {
    /// All variants, in the order of their numbers.
    pub const ALL: [Hostile; 7] = [
        Hostile::Version,
        Hostile::Order,
        Hostile::Short,
        Hostile::Params,
        Hostile::Flood,
        Hostile::Slow,
        Hostile::Stranger,
    ];

    /// Name in lower case, as in the JSON of `samovar status`.
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

    /// Description of the reason, and a hint.
    pub(crate) fn words(self) -> (&'static str, &'static str) {
        const OTHER: &str = "check which client connects; only the web server should have access";
        match self {
            Hostile::Version => (
                "not FastCGI",
                "use an address without `fcgi://` for browsers and for proxies that speak HTTP",
            ),
            Hostile::Order => ("records in an order that FastCGI does not allow", OTHER),
            Hostile::Short => ("record too short", OTHER),
            Hostile::Params => ("parameters are not valid names and values", OTHER),
            Hostile::Flood => ("too many records that belong to no request", OTHER),
            Hostile::Slow => (
                "parameters did not arrive within timeouts.header",
                "check the load of the web server's machine",
            ),
            Hostile::Stranger => (
                "address not in trusted_proxies",
                "if this is the web server, add it to trusted_proxies; its information about \
                 clients is then trusted",
            ),
        }
    }
}
