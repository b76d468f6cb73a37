//! Gathers the facts: from the control socket of a running server, or from settings.

use super::application;
use crate::control_client::{self, RESPONSE_LIMIT, understand};
use anyhow::Result;
use samovar_config::Sources;
use samovar_doctor::{BootFacts, Facts};
use samovar_profile::loads::Explained;
use samovar_server::{facts, terminal};
use samovar_wire::{BootResponse, FactsResponse, Request, Status};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Timeout for the boot, whose functions the server reads from its disk.
const BOOT_LIMIT: Duration = Duration::from_secs(15);

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Queries a running server.
pub(super) fn from_server(socket: Option<&PathBuf>) -> Result<Facts> {
    let path = control_client::path(socket)?;
    let status: Status =
        understand(&control_client::ask(&path, &Request::Status, RESPONSE_LIMIT)?)?;
    let said = control_client::ask(&path, &Request::Facts, RESPONSE_LIMIT)?;
    let found: FactsResponse = understand(&said)?;
    let pools: Vec<Option<String>> = match &*status.pools {
        [] => vec![None],
        pools => pools.iter().map(|pool| Some(pool.name.clone())).collect(),
    };
    let boots = pools.iter().filter_map(|pool| boot(&path, pool.as_deref())).collect();
    let applications = found.php.iter().filter_map(application::of_php).collect();
    Ok(Facts {
        now: now(),
        status: Some(status),
        routes: found.routes,
        php: found.php,
        settings: Some(found.settings),
        machine: Some(found.machine),
        boots,
        applications,
    })
}

/// Returns the loads after a pool's boot; `None` if it has not booted.
fn boot(path: &Path, pool: Option<&str>) -> Option<BootFacts> {
    let question = Request::Boot { pool: pool.map(str::to_owned) };
    let said = control_client::ask(path, &question, BOOT_LIMIT).ok()?;
    let response: BootResponse = understand(&said).ok()?;
    if response.error.is_some() {
        return None;
    }
    let explained: Explained = serde_json::from_value(response.explained).ok()?;
    let lazy = explained.lazy;
    let dearest = lazy.files.iter().max_by_key(|file| file.cost.cpu_ns);
    Some(BootFacts {
        pool: response.pool,
        requests: lazy.requests,
        loading: lazy.loading,
        cpu_ns: lazy.cost.cpu_ns.max(0).unsigned_abs(),
        file: dearest.map(|file| file.file.clone()).unwrap_or_default(),
        setting: lazy.advice.setting,
    })
}

/// Reads settings, starts PHP to query it, and reads the applications' folders.
pub(super) fn from_settings(sources: &Sources) -> Result<Facts> {
    let settings = sources.resolve()?;
    let found = facts::of_settings(&settings);
    for why in &found.missing {
        terminal::complain(&format!("samovar: PHP's settings are unknown: {why}"));
    }
    let applications = found.facts.php.iter().filter_map(application::of_php).collect();
    Ok(Facts {
        now: now(),
        php: found.facts.php,
        settings: Some(found.facts.settings),
        machine: Some(found.facts.machine),
        applications,
        ..Facts::default()
    })
}
