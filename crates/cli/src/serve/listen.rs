//! Addresses → listeners, or those that a service manager hands over; and where the control socket lies.

use crate::handover::predecessor::Predecessor;
use anyhow::{Result, anyhow};
use samovar_config::{Listen, Place, Settings};
use samovar_front::{Bound, listeners};
use samovar_supervisor::identity::Identity;
use std::net::TcpListener;
use std::path::PathBuf;

/// The preset of `listen_backlog`: a kernel that allows less is no mistake of anybody's.
const BACKLOG_DEFAULT: usize = 4096;

/// The service manager's sockets, if it has opened some, for this server or the one before.
pub(super) fn inherit(predecessor: Option<&Predecessor>) -> Result<Option<Vec<Bound>>> {
    if let Some(predecessor) = predecessor {
        return Ok(predecessor.inherited()?);
    }
    let variable = |name| std::env::var(name).ok();
    let (pid, count) = (variable("LISTEN_PID"), variable("LISTEN_FDS"));
    listeners::inherited(pid.as_deref(), count.as_deref()).map_err(|error| {
        anyhow!(
            "cannot take over the service manager's sockets: {error}\n\
             hint: each `ListenStream=` of the .socket unit must be a TCP address or a path; `Accept=no`"
        )
    })
}

/// The service manager's sockets, else one for each address; those of the server before, where it had the same.
pub(super) fn listen(
    settings: &Settings,
    inherited: Option<Vec<Bound>>,
    identity: Option<&Identity>,
    predecessor: Option<&Predecessor>,
) -> Result<Vec<Bound>> {
    if let Some(listeners) = inherited {
        tracing::info!(
            sockets = listeners.len(),
            "the service manager's sockets hold; of `listen` what is spoken on the same ports and paths"
        );
        return Ok(listeners.into_iter().map(|socket| socket.like(&settings.listen)).collect());
    }
    let backlog = settings.listen_backlog;
    match listeners::backlog_max() {
        Some(most) if most < backlog && backlog != BACKLOG_DEFAULT => tracing::warn!(
            listen_backlog = backlog,
            most,
            hint = "sysctl net.core.somaxconn",
            "the kernel lets fewer connections wait than `listen_backlog` says"
        ),
        Some(most) if most < backlog => tracing::info!(most, "the kernel cuts `listen_backlog`"),
        _ => {}
    }
    let owner = identity.map(|identity| (identity.uid, identity.gid));
    let open = |listener| {
        let handed = predecessor.and_then(|predecessor| predecessor.listener(listener));
        let opened = handed.unwrap_or_else(|| Bound::open(listener, backlog, owner));
        opened.map_err(|error| {
            let hint = match listener.place {
                Place::Tcp(_) => bind_hint(&error),
                Place::Unix(_) => socket_hint(&error),
            };
            anyhow!("cannot bind `{listener}`: {error}\nhint: {hint}")
        })
    };
    let listeners = settings.listen.iter().map(open).collect::<Result<Vec<_>>>()?;
    for listener in listeners.iter().filter(|l| l.believes_strangers()) {
        if settings.trusted_proxies.is_empty() {
            tracing::warn!(
                %listener,
                "whoever reaches this address can pass for any client (hint: name the proxies in `trusted_proxies`, \
                 or listen where only they come)"
            );
        }
    }
    Ok(listeners)
}

/// What to do about a socket's file that cannot be made.
pub(crate) fn socket_hint(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            "another server answers there, or the path is that of something else; choose another"
        }
        _ => "the socket's folder must exist, and be one that this user may write into",
    }
}

pub(super) fn bind(at: &Listen, backlog: usize) -> Result<TcpListener> {
    listeners::bind(&at.host, at.port, backlog)
        .map_err(|error| anyhow!("cannot bind `{at}`: {error}\nhint: {}", bind_hint(&error)))
}

/// What to do about an address that cannot be had.
pub(crate) fn bind_hint(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::PermissionDenied => {
            "ports below 1024 need CAP_NET_BIND_SERVICE; listen on 8080, or grant it"
        }
        std::io::ErrorKind::AddrInUse => {
            "another process listens there; stop it, or choose another --listen"
        }
        _ => "--listen HOST:PORT must be an address of this machine",
    }
}

/// As they are, where port 0 was asked for.
pub(super) fn addresses(listeners: &[TcpListener]) -> Result<Vec<String>> {
    listeners.iter().map(|l| Ok(l.local_addr()?.to_string())).collect()
}

pub(super) fn control_path(settings: &Settings, listeners: &[Bound]) -> Result<PathBuf> {
    if let Some(path) = &settings.control {
        return Ok(path.clone());
    }
    samovar_config::make_control_dir()?;
    // Of several servers without a port each needs a name in `control`.
    let port = listeners.iter().find_map(Bound::port).unwrap_or(0);
    Ok(samovar_config::default_control_path(port))
}
