//! The settings of the Redis that several machines share.

use samovar_config::{RedisEndpoint, Settings};
use samovar_redis::{Address, Endpoint, Options};
use std::time::Duration;

/// Maximum time until a connection is open.
const CONNECT_LIMIT: Duration = Duration::from_secs(1);
/// Maximum wait for a part of a response.
const WAIT_LIMIT: Duration = Duration::from_secs(2);

/// Returns how to reach the Redis of the jobs, if there is one.
pub(crate) fn redis(settings: &Settings) -> Option<Options> {
    let redis = settings.jobs.redis.as_ref()?;
    let endpoint = match redis.endpoint.clone() {
        RedisEndpoint::Tcp(host, port) => Endpoint::Tcp(host, port),
        RedisEndpoint::Tls(host, port) => Endpoint::Tls(host, port),
        RedisEndpoint::Unix(path) => Endpoint::Unix(path),
    };
    let roots = settings.jobs.redis_roots.clone();
    Some(Options {
        address: Address { endpoint, database: redis.database, user: redis.user.clone() },
        password: redis.password.expose().to_owned(),
        roots: Some(roots).filter(|path| !path.as_os_str().is_empty()),
        connect_limit: CONNECT_LIMIT,
        wait_limit: WAIT_LIMIT,
    })
}
