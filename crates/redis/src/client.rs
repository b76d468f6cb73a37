//! Scripts on a connection that is opened again after a failure.

use crate::address::Options;
use crate::connection::{Connection, append};
use crate::error::Error;
use crate::reply::Reply;
use std::time::{Duration, Instant};

/// Pause between two attempts within a request.
const RETRY_PAUSE: Duration = Duration::from_millis(50);
/// Major version of Redis that has flags of scripts.
const VERSION_MIN: u32 = 7;

/// Source of a script. Each call is atomic.
#[derive(Clone, Copy, Debug)]
pub struct Script {
    /// Flags of its first line, such as `allow-oom`; empty: none.
    pub flags: &'static str,
    /// Lua code.
    pub code: &'static str,
}

/// A call of a script.
#[derive(Clone, Debug)]
pub struct ScriptCall {
    /// Index of the script.
    pub script: usize,
    /// Its only key.
    pub key: Vec<u8>,
    /// Its arguments.
    pub arguments: Vec<Vec<u8>>,
}

/// Properties of a Redis that affect whether jobs are safe in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// Identifies the run of Redis: it changes with a restart.
    pub run: String,
    /// It has an append-only file.
    pub has_log: bool,
    /// The policy at `maxmemory`, such as `noeviction`; empty if unknown.
    pub eviction: String,
}

struct Open {
    connection: Connection,
    /// Names of the scripts.
    hashes: Vec<Vec<u8>>,
}

type Greeting = Box<dyn Fn(&Terms) -> Option<ScriptCall> + Send>;

/// A client for scripts.
pub struct Client {
    options: Options,
    scripts: Vec<Script>,
    open: Option<Open>,
    /// Called when a connection has been opened, with its terms: a call to make first.
    greeting: Greeting,
}

impl Client {
    /// Creates a client without a connection. `greeting` returns a call that is the first one of
    /// each connection.
    pub fn new(
        options: Options,
        scripts: Vec<Script>,
        greeting: impl Fn(&Terms) -> Option<ScriptCall> + Send + 'static,
    ) -> Client {
        Client { options, scripts, open: None, greeting: Box::new(greeting) }
    }

    /// Opens the connection, unless it is open. It counts against the time of the request.
    fn connect(&mut self, until: Instant) -> Result<&mut Open, Error> {
        let open = match self.open.take() {
            Some(open) => open,
            None => self.begin(until)?,
        };
        Ok(self.open.insert(open))
    }

    fn begin(&self, until: Instant) -> Result<Open, Error> {
        let mut options = self.options.clone();
        let rest = until.saturating_duration_since(Instant::now());
        options.connect_limit = options.connect_limit.min(rest.max(RETRY_PAUSE));
        let mut connection = Connection::open(&options)?;
        let mut request = Vec::new();
        append(&mut request, &["INFO"]);
        for Script { flags, code } in &self.scripts {
            let first =
                if flags.is_empty() { "#!lua".into() } else { format!("#!lua flags={flags}") };
            append(&mut request, &["SCRIPT", "LOAD", &format!("{first}\n{code}")]);
        }
        let replies = connection.exchange(&request, 1 + self.scripts.len(), until)?;
        let mut replies = replies.into_iter();
        let info = connection.check(replies.next().unwrap_or(Reply::Nil))?;
        let info = info.text().unwrap_or_default();
        let field = |name: &str| {
            let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.unwrap_or_default().trim().to_owned()
        };
        let found = field("redis_version");
        let major = found.split('.').next().and_then(|major| major.parse::<u32>().ok());
        if major.is_some_and(|major| major < VERSION_MIN) {
            return Err(Error::Older { address: self.options.address.to_string(), found });
        }
        let mut hashes = Vec::new();
        for reply in replies {
            if let Reply::Text(hash) = connection.check(reply)? {
                hashes.push(hash);
            }
        }
        let mut open = Open { connection, hashes };
        let terms = Terms {
            run: field("run_id"),
            has_log: field("aof_enabled") == "1",
            eviction: field("maxmemory_policy"),
        };
        if let Some(call) = (self.greeting)(&terms) {
            open.run(&[call], until)?.into_iter().next().unwrap_or(Ok(Reply::Nil))?;
        }
        Ok(open)
    }

    /// Calls scripts in one round trip, and returns their replies. If the connection fails and the
    /// calls are repeatable, they are repeated on a new one until `limit` is over. If Redis reads
    /// its files after a start, they wait for it until then.
    pub fn run(
        &mut self,
        calls: &[ScriptCall],
        limit: Duration,
        is_repeatable: bool,
    ) -> Result<Vec<Result<Reply, Error>>, Error> {
        let until = Instant::now() + limit;
        loop {
            let failure = match self.connect(until).and_then(|open| open.run(calls, until)) {
                Ok(replies) => return Ok(replies),
                Err(failure) => failure,
            };
            self.open = None;
            let has_time = Instant::now() + RETRY_PAUSE < until;
            let may_help = is_repeatable && failure.is_connection() || failure.is_loading();
            if !may_help || !has_time {
                return Err(failure);
            }
            std::thread::sleep(RETRY_PAUSE);
        }
    }

    /// Closes the connection: the next request opens a new one.
    pub fn close(&mut self) {
        self.open = None;
    }
}

impl Open {
    fn run(
        &mut self,
        calls: &[ScriptCall],
        until: Instant,
    ) -> Result<Vec<Result<Reply, Error>>, Error> {
        let mut request = Vec::new();
        for ScriptCall { script, key, arguments } in calls {
            let hash = self.hashes.get(*script).map_or(&b""[..], |hash| hash);
            let mut words: Vec<&[u8]> = vec![b"EVALSHA", hash, b"1", key];
            words.extend(arguments.iter().map(Vec::as_slice));
            append(&mut request, &words);
        }
        let replies = self.connection.exchange(&request, calls.len(), until)?;
        let mut all = Vec::with_capacity(replies.len());
        for reply in replies {
            match reply {
                // The scripts were removed: a new connection loads them again.
                Reply::Error(text) if text.starts_with("NOSCRIPT") => {
                    let source = std::io::Error::other("its scripts were removed");
                    let address = String::new();
                    return Err(Error::Connection { address, source });
                }
                reply => all.push(self.connection.check(reply)),
            }
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::{Address, Endpoint};
    use samovar_testkit::Redis;
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    const LIMIT: Duration = Duration::from_secs(20);

    fn client(endpoint: Endpoint, password: &str) -> Client {
        let limit = Duration::from_millis(200);
        let options = Options {
            address: Address { endpoint, database: 3, user: String::new() },
            password: password.to_owned(),
            roots: None,
            connect_limit: limit,
            wait_limit: limit,
        };
        let counts = "redis.call('INCR', KEYS[1]); return redis.call('GET', KEYS[1])";
        Client::new(options, vec![Script { flags: "", code: counts }], |_| None)
    }

    fn count(client: &mut Client) -> Result<Option<i64>, Error> {
        let call = ScriptCall { script: 0, key: b"n".to_vec(), arguments: Vec::new() };
        let reply = client.run(&[call], LIMIT, true)?.pop().expect("one reply")?;
        Ok(reply.number())
    }

    #[test]
    fn calls_continue_after_a_restart_and_a_flush_of_scripts() {
        let mut redis = Redis::durable();
        let mut client = client(Endpoint::Unix(redis.socket()), "");
        assert_eq!(count(&mut client).expect("open"), Some(1));
        redis.crash();
        redis.start_again();
        assert_eq!(count(&mut client).expect("opened again"), Some(2));
        redis.ask(&["script", "flush"]);
        assert_eq!(count(&mut client).expect("loaded again"), Some(3));
        assert_eq!(redis.ask(&["-n", "3", "get", "n"]).trim(), "3", "of its database");
    }

    #[test]
    fn wrong_password_and_other_servers_are_reported() {
        let redis = Redis::with(&["--requirepass", "secret"]);
        let mut wrong = client(Endpoint::Unix(redis.socket()), "other");
        let error = count(&mut wrong).expect_err("refused").to_string();
        assert!(error.contains("WRONGPASS") && error.contains("hint:"), "{error}");
        assert_eq!(
            count(&mut client(Endpoint::Unix(redis.socket()), "secret")).expect("ok"),
            Some(1)
        );

        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.expect("a connection");
                let _ = stream.read(&mut [0; 100]);
                let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
            }
        });
        let mut other = client(Endpoint::Tcp("127.0.0.1".to_owned(), port), "");
        let error = count(&mut other).expect_err("no Redis");
        assert!(matches!(error, Error::Invalid { .. }), "{error}");
    }

    #[test]
    fn silent_server_is_given_up() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let mut client = client(Endpoint::Tcp("127.0.0.1".to_owned(), port), "");
        let call = ScriptCall { script: 0, key: Vec::new(), arguments: Vec::new() };
        let error = client.run(&[call], Duration::from_millis(500), true).expect_err("silent");
        assert!(error.to_string().contains("did not respond in time"), "{error}");
    }

    #[test]
    fn tls_trusts_only_the_roots() {
        use samovar_testkit::{Certificate, port};
        let folder = tempfile::tempdir().expect("a folder");
        let own = Certificate::own(folder.path(), "ca", "DNS:ca.example");
        let served = Certificate::signed(folder.path(), "redis", "IP:127.0.0.1", &own);
        let other = Certificate::own(folder.path(), "other", "IP:127.0.0.1");
        let port = port().port();
        let text = |path: &std::path::Path| path.to_string_lossy().into_owned();
        let _redis = Redis::with(&[
            "--tls-port",
            &port.to_string(),
            "--tls-cert-file",
            &text(&served.chain),
            "--tls-key-file",
            &text(&served.key),
            "--tls-auth-clients",
            "no",
        ]);
        let trusting = |roots: &Certificate| {
            let mut client = client(Endpoint::Tls("127.0.0.1".to_owned(), port), "");
            client.options.roots = Some(roots.chain.clone());
            let call = ScriptCall { script: 0, key: b"n".to_vec(), arguments: Vec::new() };
            client.run(&[call], Duration::from_secs(2), true)
        };
        assert!(trusting(&own).is_ok_and(|replies| replies[0].is_ok()));
        let error = trusting(&other).map(drop).expect_err("not trusted").to_string();
        assert!(error.contains("certificate"), "{error}");
    }
}
