//! The command line, and the limits of its values.

use crate::url::Url;
use anyhow::{Context, ensure};
use clap::Parser;
use rustix::process::{Resource, getrlimit, setrlimit};
use std::path::PathBuf;
use std::time::Duration;

/// Below the number of local ports that Linux provides for one address (28,232).
const CONNECTIONS_MAX: i64 = 20_000;
const SECONDS_MAX: f64 = 24.0 * 3600.0;
const RATE_MAX: f64 = 1e6;
/// Open files other than connections: standard streams, epoll, eventfd, timer.
const FILES_BESIDE: u64 = 32;

/// Sends HTTP/1.1 requests to one server and prints figures about its responses as JSON.
///
/// Without --rate each connection sends its next request when it has the response to the last one.
/// With --rate requests are due at that constant rate, whether the server keeps up or not, and
/// latency counts from the instant at which a request was due.
#[derive(Clone, Debug, Parser)]
#[command(version)]
pub(crate) struct Options {
    /// Number of concurrent connections
    #[arg(long, value_name = "N", default_value_t = 64,
          value_parser = clap::value_parser!(u32).range(1..=CONNECTIONS_MAX))]
    pub(crate) connections: u32,

    /// Time in which requests are begun
    #[arg(long, value_name = "SECONDS", default_value = "3", value_parser = positive_seconds)]
    pub(crate) seconds: Duration,

    /// Requests per second that become due, evenly spaced [default: as many as get a response]
    #[arg(long, value_name = "N", value_parser = rate)]
    pub(crate) rate: Option<f64>,

    /// Use a new connection for each request, with Connection: close
    #[arg(long)]
    pub(crate) new_connections: bool,

    /// A request whose response is later than this is an error, and its connection is closed
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = positive_seconds)]
    pub(crate) timeout_seconds: Duration,

    /// Maximum wait at the end for requests in flight; requests without a response are then hung
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    pub(crate) grace_seconds: Duration,

    /// Requests to select from, one JSON object per line:
    /// `{"class":"short","weight":95,"method":"GET","path":"/?n={n}","headers":{"Cookie":"a=b"},
    /// "body":"text" or "body_file":"path"}`. {n} in a path is a running number
    #[arg(long, value_name = "FILE")]
    pub(crate) targets: Option<PathBuf>,

    /// Seed for the random selection of classes
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Send one request before the measurement and print its response to stderr
    #[arg(long)]
    pub(crate) show: bool,

    /// URL of the server; its path is the default for targets without a path
    #[arg(value_name = "URL", value_parser = Url::parse)]
    pub(crate) url: Url,
}

fn number(text: &str, max: f64) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.0..=max).contains(&number) {
        Ok(number)
    } else {
        Err(format!("not a number from 0 to {max}"))
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    number(text, SECONDS_MAX).map(Duration::from_secs_f64)
}

fn positive_seconds(text: &str) -> Result<Duration, String> {
    seconds(text)
        .and_then(|length| if length.is_zero() { Err("must not be 0".into()) } else { Ok(length) })
}

fn rate(text: &str) -> Result<f64, String> {
    number(text, RATE_MAX)
        .and_then(|rate| if rate > 0.0 { Ok(rate) } else { Err("must not be 0".into()) })
}

/// Raises the limit of open files if the connections need it.
pub(crate) fn allow_connections(connections: u32) -> anyhow::Result<()> {
    let needed = u64::from(connections) + FILES_BESIDE;
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    ensure!(
        limit.maximum.is_none_or(|maximum| maximum >= needed),
        "{connections} connections need {needed} open files\nhint: run ulimit -Hn {needed}"
    );
    limit.current = Some(needed);
    setrlimit(Resource::Nofile, limit)
        .with_context(|| format!("cannot raise the limit to {needed} open files"))
}

#[cfg(test)]
mod tests {
    use super::Options;
    use clap::Parser;
    use std::time::Duration;

    fn parse(words: &str) -> Result<Options, clap::Error> {
        Options::try_parse_from(["samovar-load"].into_iter().chain(words.split_whitespace()))
    }

    #[test]
    fn missing_options_have_defaults() {
        let options = parse("http://127.0.0.1:1/").unwrap();
        assert_eq!(options.connections, 64);
        assert_eq!(options.seconds, Duration::from_secs(3));
        assert_eq!(options.timeout_seconds, Duration::from_secs(10));
        assert_eq!(options.grace_seconds, Duration::from_secs(2));
        assert_eq!(options.rate, None);
    }

    #[test]
    fn fractional_values_are_accepted() {
        let options = parse("--seconds 0.5 --rate 0.25 --grace-seconds 0 http://127.0.0.1:1/");
        let options = options.unwrap();
        assert_eq!(options.seconds, Duration::from_millis(500));
        assert_eq!(options.rate, Some(0.25));
        assert!(options.grace_seconds.is_zero());
    }

    #[test]
    fn values_out_of_bounds_are_rejected() {
        for words in [
            "--connections 0",
            "--connections 20001",
            "--seconds 0",
            "--seconds -1",
            "--seconds NaN",
            "--rate 0",
            "--rate inf",
            "--timeout-seconds 0",
        ] {
            assert!(parse(&format!("{words} http://127.0.0.1:1/")).is_err(), "{words}");
        }
        assert_eq!(parse("ftp://127.0.0.1/").unwrap_err().exit_code(), 2);
    }
}
