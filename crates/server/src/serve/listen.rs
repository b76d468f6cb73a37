//! Addresses → listeners, or the sockets of a service manager; and the path of the control socket.

use crate::handover::predecessor::Predecessor;
use anyhow::{Result, anyhow};
use samovar_config::{Endpoint, Listen, Settings};
use samovar_front::{Bound, listeners};
use samovar_supervisor::identity::Identity;
use std::net::TcpListener;
use std::path::PathBuf;

/// Default of `listen_backlog`: if the kernel's limit is lower, no warning is logged.
const BACKLOG_DEFAULT: usize = 4096;

/// Returns the service manager's sockets for this server or its predecessor, if there are any.
pub(super) fn inherit(predecessor: Option<&Predecessor>) -> Result<Option<Vec<Bound>>> {
    if let Some(predecessor) = predecessor {
        return Ok(predecessor.inherited()?);
    }
    let variable = |name| std::env::var(name).ok();
    let (pid, count) = (variable("LISTEN_PID"), variable("LISTEN_FDS"));
    listeners::inherited(pid.as_deref(), count.as_deref()).map_err(|error| {
        anyhow!(
            "cannot take over the sockets of the service manager: {error}\nhint: each \
             `ListenStream=` of the .socket unit must be a TCP address or a path; `Accept=no`"
        )
    })
}

/// Returns the service manager's sockets, otherwise one socket for each address; an address that
/// the predecessor has, too, gets its socket.
pub(super) fn listen(
    settings: &Settings,
    inherited: Option<Vec<Bound>>,
    identity: Option<&Identity>,
    predecessor: Option<&Predecessor>,
) -> Result<Vec<Bound>> {
    if let Some(listeners) = inherited {
        tracing::info!(
            sockets = listeners.len(),
            "using the sockets of the service manager; `listen` only sets the protocols of the \
             same ports and paths"
        );
        return Ok(listeners.into_iter().map(|socket| socket.like(&settings.listen)).collect());
    }
    let backlog = settings.listen_backlog;
    match listeners::backlog_max() {
        Some(most) if most < backlog && backlog != BACKLOG_DEFAULT => tracing::warn!(
            listen_backlog = backlog,
            most,
            hint = "sysctl net.core.somaxconn",
            "`listen_backlog` is capped by net.core.somaxconn"
        ),
        Some(most) if most < backlog => {
            tracing::info!(most, "`listen_backlog` is capped by net.core.somaxconn");
        }
        _ => {}
    }
    let owner = identity.map(|identity| (identity.uid, identity.gid));
    let open = |listener| {
        let handed = predecessor.and_then(|predecessor| predecessor.listener(listener));
        let opened = handed.unwrap_or_else(|| Bound::open(listener, backlog, owner));
        opened.map_err(|error| {
            let hint = match listener.place {
                Endpoint::Tcp(_) => bind_hint("listen", &error),
                Endpoint::Unix(_) => socket_hint(&error).to_owned(),
            };
            anyhow!("cannot bind `{listener}`: {error}\nhint: {hint}")
        })
    };
    let listeners = settings.listen.iter().map(open).collect::<Result<Vec<_>>>()?;
    for listener in listeners.iter().filter(|l| l.believes_strangers()) {
        if settings.trusted_proxies.is_empty() {
            tracing::warn!(
                %listener,
                "every client of this address can forge its own address (hint: name the proxies \
                 in `trusted_proxies`, or use an address that only they can reach)"
            );
        }
    }
    Ok(listeners)
}

/// Returns a hint for a socket's file that cannot be created.
pub(crate) fn socket_hint(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            "another server listens there, or the path belongs to something else; choose another"
        }
        _ => "create the socket's folder, and make it writable for this user",
    }
}

pub(super) fn bind(setting: &str, at: &Listen, backlog: usize) -> Result<TcpListener> {
    listeners::bind(&at.host, at.port, backlog).map_err(|error| {
        let hint = bind_hint(setting, &error);
        anyhow!("cannot bind `{at}` of `{setting}`: {error}\nhint: {hint}")
    })
}

/// Returns a hint for an address of a setting that cannot be bound.
pub(crate) fn bind_hint(setting: &str, error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::PermissionDenied => {
            "ports below 1024 need CAP_NET_BIND_SERVICE; use port 8080, or grant it".to_owned()
        }
        std::io::ErrorKind::AddrInUse => format!(
            "another process listens there; stop it, or choose another address: --{setting} \
             HOST:PORT"
        ),
        _ => format!("use an address of this machine: --{setting} HOST:PORT"),
    }
}

/// Returns the bound addresses, with the real port for port 0.
pub(super) fn addresses(listeners: &[TcpListener]) -> Result<Vec<String>> {
    listeners.iter().map(|l| Ok(l.local_addr()?.to_string())).collect()
}

pub(super) fn control_path(settings: &Settings, listeners: &[Bound]) -> Result<PathBuf> {
    if let Some(path) = &settings.control {
        return Ok(path.clone());
    }
    let folder = samovar_config::make_control_dir()?;
    // Several servers without a port need different names in `control`.
    let port = listeners.iter().find_map(Bound::port).unwrap_or(0);
    Ok(samovar_config::control_path(&folder, port))
}
