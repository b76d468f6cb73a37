//! Call graphs of traced requests: the socket between the workers of each pool that take them down and crates/profile, which
//! keeps them.

use crate::{descriptors, pools};
use anyhow::{Context, Result};
use samovar_channel::GraphEnd;
use samovar_config::{DEFAULT_POOL, Settings};
use samovar_insight::Turn;
use samovar_profile::calls::{Calls, CallsOptions, Selected};
use samovar_supervisor::Tracer;
use std::path::PathBuf;
use std::sync::Arc;

/// What is appended to the name of the history's file.
const SUFFIX: &str = ".calls";
/// Of notes on their way, each with a graph behind it: some twenty. More is lost, and nobody waits.
const WAITING_BYTES: usize = 16 * 1_024;

/// Both ends.
#[derive(Clone, Debug)]
pub(crate) struct Graphs {
    pub(crate) calls: Arc<Calls>,
    /// Of each pool, the default one first; `None`: none of its requests is traced.
    pub(crate) tracers: Vec<Option<Tracer>>,
    /// What the pools are called, in the same order.
    names: Vec<String>,
    key: Option<String>,
}

impl Graphs {
    /// Opens what is kept, when its turn has come; `None`: nothing is traced.
    pub(crate) fn open(settings: &Settings, turn: Turn) -> Result<Option<Graphs>> {
        let (mut ends, mut tracers) = (Vec::new(), Vec::new());
        for (name, own) in pools::settings(settings) {
            if !own.profile.traces() {
                tracers.push(None);
                continue;
            }
            let (graphs, ours): (GraphEnd, GraphEnd) =
                samovar_channel::pair().context("cannot make the socket of call graphs")?;
            rustix::net::sockopt::set_socket_send_buffer_size(&graphs, WAITING_BYTES)
                .context("cannot limit the socket of call graphs")?;
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
            turn,
        });
        let calls = Arc::new(calls.context("cannot start to keep call graphs")?);
        Ok(Some(Graphs {
            calls,
            tracers,
            names: pools::settings(settings).map(|(name, _)| name.to_owned()).collect(),
            key: settings.profile.trace_key.clone(),
        }))
    }

    /// What requests of a pool's route have called on a day. Who names no pool may have a route by its name among those of all pools, as
    /// `export: /a`; otherwise he means the default one.
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
                "no request of pool `{pool}` is traced\nhint: set profile.trace there, or profile.trace_key, and start the server anew"
            ));
        }
        let mut selected = self.calls.select(key_of(pool), day, route)?;
        selected.pool = if are_several { pool.to_owned() } else { String::new() };
        Ok(selected)
    }

    /// A signature that holds for so many seconds; `None`: there is no key.
    pub(crate) fn sign(&self, span_s: u64) -> Option<String> {
        let key = self.key.as_deref()?;
        Some(samovar_front::trace_signature(key, samovar_profile::now().saturating_add(span_s)))
    }
}

/// By which crates/profile keeps a pool's graphs: the same whether there are others or not.
fn key_of(pool: &str) -> &str {
    if pool == DEFAULT_POOL { "" } else { pool }
}
