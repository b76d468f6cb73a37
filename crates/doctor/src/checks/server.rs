//! Limits of the kernel, and settings of the server.

use super::figures::{share, size};
use crate::check::{Check, Checked, Group};
use crate::facts::{Facts, Missing};
use crate::finding::Findings;
use samovar_wire::{MachineFacts, SettingsFacts};

pub(super) const CHECKS: &[Check] = &[
    Check {
        code: "exposed",
        group: Group::Server,
        finds: "settings that expose pages, files or addresses",
        why: "an admin listener without a token, the root `/`, or all clients as proxies",
        run: exposed,
    },
    Check {
        code: "backlog",
        group: Group::Server,
        finds: "`listen_backlog` is above net.core.somaxconn",
        why: "bursts of connections are refused earlier than set",
        run: backlog,
    },
    Check {
        code: "open-files",
        group: Group::Server,
        finds: "a limit of open files below `limits.connections_max`, or nearly reached",
        why: "further connections wait or are closed",
        run: open_files,
    },
    Check {
        code: "mappings",
        group: Group::Server,
        finds: "memory mappings close to vm.max_map_count",
        why: "further mappings fail",
        run: mappings,
    },
    Check {
        code: "overcommit",
        group: Group::Server,
        finds: "vm.overcommit_memory = 2",
        why: "forks of a booted application fail although memory is free",
        run: overcommit,
    },
    Check {
        code: "compression-off",
        group: Group::Server,
        finds: "large responses, and no compression",
        why: "text takes a fraction of the bytes",
        run: compression_off,
    },
];

/// Share of a limit that counts as nearly reached.
const USED_MAX: f64 = 0.8;
/// Mean bytes of a response to which compression applies.
const BODY_BYTES_MIN: u64 = 8 << 10;

const NO_SETTINGS: Missing = "the server's settings are unknown";
const NO_MACHINE: Missing = "the machine's limits are unknown";

fn settings(facts: &Facts) -> Result<&SettingsFacts, Missing> {
    facts.settings.as_ref().ok_or(NO_SETTINGS)
}

fn machine(facts: &Facts) -> Result<&MachineFacts, Missing> {
    facts.machine.as_ref().ok_or(NO_MACHINE)
}

fn exposed(facts: &Facts, out: &mut Findings) -> Checked {
    for text in &settings(facts)?.exposures {
        let (text, hint) = text.split_once("\nhint: ").unwrap_or((text, "correct the setting"));
        out.warning(text, hint);
    }
    Ok(())
}

fn backlog(facts: &Facts, out: &mut Findings) -> Checked {
    let limit = machine(facts)?.somaxconn.ok_or(NO_MACHINE)?;
    let wanted = settings(facts)?.listen_backlog;
    if limit < wanted {
        let hint = format!("sysctl net.core.somaxconn={wanted}, or lower `listen_backlog`");
        out.warning("the kernel limits the queue of new connections", hint)
            .value(format!("{limit} instead of {wanted}"))
            .place("listen_backlog");
    }
    Ok(())
}

fn open_files(facts: &Facts, out: &mut Findings) -> Checked {
    let limit = machine(facts)?.files_max.ok_or(NO_MACHINE)?;
    let wanted = settings(facts)?.connections_max;
    let hint = "raise LimitNOFILE= in the unit, or `ulimit -Hn`";
    // Without a server, this is the limit of the command, which a unit may raise.
    let of = &facts.status()?.resources.descriptors;
    if limit < wanted {
        out.warning("the limit of open files allows fewer connections than the settings", hint)
            .value(format!("{limit} files, {wanted} connections"))
            .place("limits.connections_max");
    }
    let open = of.sockets + of.pipes + of.events + of.memory + of.processes + of.files + of.others;
    if share(open, limit) > USED_MAX {
        out.problem("the limit of open files is nearly reached", hint)
            .value(format!("{open} of {limit}"));
    }
    Ok(())
}

fn mappings(facts: &Facts, out: &mut Findings) -> Checked {
    let limit = machine(facts)?.mappings_max.ok_or(NO_MACHINE)?;
    let used = facts.status()?.resources.mappings;
    if share(used, limit) > USED_MAX {
        out.warning(
            "the server's memory mappings are close to the limit",
            "sysctl vm.max_map_count",
        )
        .value(format!("{used} of {limit}"));
    }
    Ok(())
}

fn overcommit(facts: &Facts, out: &mut Findings) -> Checked {
    if machine(facts)?.overcommit.ok_or(NO_MACHINE)? == 2 {
        let hint = "sysctl vm.overcommit_memory=0, or raise vm.overcommit_ratio: each fork counts \
                    the whole image";
        out.warning("the kernel does not overcommit memory", hint)
            .value("vm.overcommit_memory = 2");
    }
    Ok(())
}

fn compression_off(facts: &Facts, out: &mut Findings) -> Checked {
    let settings = settings(facts)?;
    let total = facts.total()?;
    let mean = total.bytes_out / total.requests.max(1);
    if settings.codings.is_empty() && !settings.has_proxy && mean >= BODY_BYTES_MIN {
        let hint = "set `compression.codings`; read about BREACH in the guide before you compress \
                    pages with secrets";
        out.note("responses are not compressed", hint)
            .value(format!("{} per response on average", size(mean)))
            .place("compression.codings");
    }
    Ok(())
}
