//! Call graphs of traced requests: the sockets between each pool's tracing workers and
//! crates/profile, which stores the graphs.

use crate::{descriptors, pools};
use anyhow::{Context, Result};
use samovar_channel::GraphEnd;
use samovar_config::{DEFAULT_POOL, Settings};
use samovar_insight::HandoverGate;
use samovar_profile::calls::{Calls, CallsOptions, Selected};
use samovar_supervisor::Tracer;
use std::path::PathBuf;
use std::sync::Arc;

/// Suffix appended to the path of the history's file.
const SUFFIX: &str = ".calls";
/// Send buffer of the socket: enough for about twenty messages, each with a graph attached. Further
/// graphs are lost; the sender never blocks.
const WAITING_BYTES: usize = 16 * 1_024;

/// Both ends.
#[derive(Clone, Debug)]
pub(crate) struct Graphs {
    pub(crate) calls: Arc<Calls>,
    /// Tracer of each pool, the default pool first; `None`: the pool's requests are not traced.
    pub(crate) tracers: Vec<Option<Tracer>>,
    /// Names of the pools, in the same order.
    names: Vec<String>,
    key: Option<String>,
}

impl Graphs {
    /// Opens the store as soon as its turn comes. Returns `None` if no requests are traced.
    pub(crate) fn open(settings: &Settings, handover_gate: HandoverGate) -> Result<Option<Graphs>> {
        let (mut ends, mut tracers) = (Vec::new(), Vec::new());
        for (name, own) in pools::settings(settings) {
            if !own.profile.traces() {
                tracers.push(None);
                continue;
            }
            let (graphs, ours): (GraphEnd, GraphEnd) =
                samovar_channel::pair().context("cannot create the socket for call graphs")?;
            rustix::net::sockopt::set_socket_send_buffer_size(&graphs, WAITING_BYTES)
                .context("cannot limit the socket for call graphs")?;
            ends.push((key_of(name).to_owned(), descriptors::put_high(ours)));
            let workers = own.profile.trace_workers;
            tracers.push(Some(Tracer { workers, graphs: Arc::new(graphs) }));
        }
        if ends.is_empty() {
            return Ok(None);
        }
        let path = settings.insight.store.clone().map(|path| {
            let mut name = path.into_os_string();
            name.push(SUFFIX);
            PathBuf::from(name)
        });
        let calls = Calls::start(CallsOptions {
            graphs: ends,
            path,
            bytes_max: settings.profile.bytes_max,
            trouble: Box::new(|trouble| tracing::warn!("{trouble}")),
            handover_gate,
        });
        let calls = Arc::new(calls.context("cannot start the store of call graphs")?);
        Ok(Some(Graphs {
            calls,
            tracers,
            names: pools::settings(settings).map(|(name, _)| name.to_owned()).collect(),
            key: settings.profile.trace_key.as_ref().map(|key| key.expose().to_owned()),
        }))
    }

    /// Returns the call graph of a pool's route on a day. Without a pool, the route may contain the
    /// pool's name, as in `export: /a`; otherwise the default pool is meant.
    pub(crate) fn select(
        &self,
        pool: Option<&str>,
        day: Option<u64>,
        route: Option<&str>,
    ) -> Result<Selected, String> {
        let are_several = self.names.len() > 1;
        let of_whole = route.filter(|_| are_several).and_then(|route| route.split_once(": "));
        let of_whole = of_whole.filter(|(name, _)| self.names.iter().any(|known| known == name));
        let (pool, route) = match (pool, of_whole) {
            (None, Some((name, rest))) => (name, Some(rest)),
            (Some(pool), Some((name, rest))) if name == pool => (name, Some(rest)),
            (named, _) => (named.unwrap_or(DEFAULT_POOL), route),
        };
        let Some(at) = self.names.iter().position(|known| known == pool) else {
            let known: Vec<&str> = self.names.iter().map(String::as_str).collect();
            return Err(pools::unknown(pool, &known));
        };
        if self.tracers[at].is_none() {
            return Err(format!(
                "no request of pool `{pool}` is traced\nhint: set profile.trace or \
                 profile.trace_key there, and restart the server"
            ));
        }
        let mut selected = self.calls.select(key_of(pool), day, route)?;
        selected.pool = if are_several { pool.to_owned() } else { String::new() };
        Ok(selected)
    }

    /// Returns a signature that is valid for this number of seconds; `None`: there is no key.
    pub(crate) fn sign(&self, span_s: u64) -> Option<String> {
        let key = self.key.as_deref()?;
        Some(samovar_front::trace_signature(key, samovar_profile::now().saturating_add(span_s)))
    }
}

/// Returns the name under which crates/profile stores a pool's graphs; it is the same with and
/// without other pools.
fn key_of(pool: &str) -> &str {
    if pool == DEFAULT_POOL { "" } else { pool }
}
