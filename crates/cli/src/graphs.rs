//! Call graphs of traced requests: the socket between the workers that take them down and crates/profile, which keeps them.

use anyhow::{Context, Result};
use samovar_channel::GraphEnd;
use samovar_config::Settings;
use samovar_insight::Turn;
use samovar_profile::calls::{Calls, CallsOptions};
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
    pub(crate) tracer: Tracer,
    key: Option<String>,
}

impl Graphs {
    /// Opens what is kept, when its turn has come; `None`: nothing is traced.
    pub(crate) fn open(settings: &Settings, turn: Turn) -> Result<Option<Graphs>> {
        if !settings.profile.traces() {
            return Ok(None);
        }
        let (graphs, ours): (GraphEnd, GraphEnd) =
            samovar_channel::pair().context("cannot make the socket of call graphs")?;
        rustix::net::sockopt::set_socket_send_buffer_size(&graphs, WAITING_BYTES)
            .context("cannot limit the socket of call graphs")?;
        let path = settings.insight.store.clone().map(|path| {
            let mut name = path.into_os_string();
            name.push(SUFFIX);
            PathBuf::from(name)
        });
        let calls = Calls::start(CallsOptions {
            graphs: ours,
            path,
            bytes_max: settings.profile.bytes_max,
            trouble: Box::new(|trouble| tracing::warn!("{trouble}")),
            turn,
        });
        let calls = Arc::new(calls.context("cannot start to keep call graphs")?);
        let workers = settings.profile.trace_workers;
        Ok(Some(Graphs {
            calls,
            tracer: Tracer { workers, graphs: Arc::new(graphs) },
            key: settings.profile.trace_key.clone(),
        }))
    }

    /// A signature that holds for so many seconds; `None`: there is no key.
    pub(crate) fn sign(&self, span_s: u64) -> Option<String> {
        let key = self.key.as_deref()?;
        Some(samovar_front::trace_signature(key, samovar_profile::now().saturating_add(span_s)))
    }
}
