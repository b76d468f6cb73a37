//! Number of workers, their CPU time, and their memory.

use super::figures::{mean_time, percent, share, size};
use crate::check::{Check, Checked, Group};
use crate::facts::{Facts, Missing, NO_REQUESTS};
use crate::finding::Findings;
use samovar_wire::Status;

pub(super) const CHECKS: &[Check] = &[
    Check {
        code: "queue-time",
        group: Group::Workers,
        finds: "requests that wait long for a worker",
        why: "more workers help while the CPU has room",
        run: queue_time,
    },
    Check {
        code: "workers-idle",
        group: Group::Workers,
        finds: "a fixed number of workers, most of which are always idle",
        why: "a range follows the load and frees memory",
        run: workers_idle,
    },
    Check {
        code: "workers-surplus",
        group: Group::Workers,
        finds: "workers that never get a request",
        why: "there are fewer slots for requests than workers",
        run: workers_surplus,
    },
    Check {
        code: "cpu-delay",
        group: Group::Workers,
        finds: "requests that could run while other processes had the CPU",
        why: "too many processes for the cores",
        run: cpu_delay,
    },
    Check {
        code: "cpu-throttled",
        group: Group::Workers,
        finds: "a CPU quota of the control group that stops the server",
        why: "all requests stop until the next period",
        run: cpu_throttled,
    },
    Check {
        code: "cpu-stolen",
        group: Group::Workers,
        finds: "CPU time that the hypervisor gives to other machines",
        why: "the machine has fewer cores than it shows",
        run: cpu_stolen,
    },
    Check {
        code: "memory-limit-near",
        group: Group::Workers,
        finds: "requests that use most of `memory_limit`",
        why: "a little more data ends the request with a fatal error",
        run: memory_limit_near,
    },
    Check {
        code: "memory-limit-none",
        group: Group::Workers,
        finds: "no `memory_limit`",
        why: "one request can use the memory of the machine",
        run: memory_limit_none,
    },
    Check {
        code: "memory-total",
        group: Group::Workers,
        finds: "workers whose peaks together exceed the machine's memory",
        why: "the kernel then kills processes",
        run: memory_total,
    },
    Check {
        code: "swapping",
        group: Group::Workers,
        finds: "memory of workers that is swapped out",
        why: "requests wait for the disk to read it back",
        run: swapping,
    },
    Check {
        code: "major-faults",
        group: Group::Workers,
        finds: "page faults that read from a disk",
        why: "memory is too small for the files in use",
        run: major_faults,
    },
];

/// Share of the wall time that requests spend in the queue.
const QUEUE_SHARE_MIN: f64 = 0.1;
/// Mean time in the queue, ns.
const QUEUE_NS_MIN: f64 = 1e6;
/// Free cores from which on more workers help.
const CORES_FREE_MIN: f64 = 0.5;
/// Uptime in seconds from which on a mean number of busy workers is meaningful.
const UPTIME_S_MIN: f64 = 3600.0;
/// Number of workers per mean busy worker from which on most are idle.
const IDLE_FACTOR: f64 = 16.0;
/// Number of workers from which on idle ones matter.
const WORKERS_MIN: usize = 16;
/// Share of requests' CPU time that other processes had.
const DELAY_SHARE_MIN: f64 = 0.25;
/// Share of throttled periods.
const THROTTLED_MIN: f64 = 0.05;
/// Share of the cores that the hypervisor took.
const STOLEN_MIN: f64 = 0.05;
/// Share of `memory_limit`.
const LIMIT_SHARE_MIN: f64 = 0.8;
/// Swapped bytes.
const SWAPPED_MIN: u64 = 16 << 20;
/// Page faults with disk access per request.
const FAULTS_MIN: f64 = 0.1;

const NOT_MEASURED: Missing = "the use of the cores is not measured yet";

fn queue_time(facts: &Facts, out: &mut Findings) -> Checked {
    let total = facts.total()?;
    let capacity = &facts.status()?.capacity;
    let part = share(total.queue_ns, total.wall_ns);
    if part < QUEUE_SHARE_MIN || share(total.queue_ns, total.run) < QUEUE_NS_MIN {
        return Ok(());
    }
    let hint = if capacity.seconds <= 0.0 {
        "raise `workers` if `samovar status` shows free cores; otherwise reduce the CPU time of \
         requests"
    } else if capacity.cores_free >= CORES_FREE_MIN {
        "raise `workers`: cores are free"
    } else {
        "reduce the CPU time of requests (`samovar profile`) or add cores: no core is free, so \
         more workers do not help"
    };
    out.warning("requests wait for a worker", hint)
        .value(format!("{} of their time", percent(part)))
        .gain(format!("{} per request", mean_time(total.queue_ns, total.run)));
    Ok(())
}

#[allow(clippy::cast_precision_loss)] // Shown with few digits.
fn workers_idle(facts: &Facts, out: &mut Findings) -> Checked {
    let (total, status) = (facts.total()?, facts.status()?);
    if status.uptime_seconds < UPTIME_S_MIN {
        return Err("the server has run for less than an hour");
    }
    let workers = status.serving_workers().count();
    let busy = total.run_ns as f64 / 1e9 / status.uptime_seconds;
    let is_fixed = status.scaling.iter().all(|one| one.min == one.max);
    if is_fixed && workers >= WORKERS_MIN && workers as f64 > busy.max(1.0) * IDLE_FACTOR {
        let own = status.capacity.worker_bytes;
        let text = format!("on average {busy:.1} of {workers} workers are busy");
        let hint = format!("set a range: `workers = \"2..{workers}\"`");
        let found = out.note(text, hint);
        if own > 0 {
            found.value(format!("{} of own memory per worker", size(own)));
        }
    }
    Ok(())
}

fn workers_surplus(facts: &Facts, out: &mut Findings) -> Checked {
    let settings = facts.settings.as_ref().ok_or("the server's settings are unknown")?;
    for text in &settings.surplus {
        let (text, hint) = text.split_once("\nhint: ").unwrap_or((text, "lower `workers`"));
        out.warning(text, hint);
    }
    Ok(())
}

fn cpu_delay(facts: &Facts, out: &mut Findings) -> Checked {
    let total = facts.total()?;
    let part = share(total.cpu_delay_ns, total.cpu_delay_ns.saturating_add(total.cpu_ns));
    if part >= DELAY_SHARE_MIN {
        let hint = "look for other processes on the machine (`samovar status` shows the cores they \
                    use), lower `workers`, or add cores";
        out.warning("requests wait for a core that other processes use", hint)
            .value(format!("{} of their time on the CPU", percent(part)))
            .gain(format!("{} per request", mean_time(total.cpu_delay_ns, total.run)));
    }
    Ok(())
}

/// Returns the status if the use of the cores has been measured.
fn measured(facts: &Facts) -> Result<&Status, Missing> {
    let status = facts.status()?;
    if status.capacity.seconds > 0.0 { Ok(status) } else { Err(NOT_MEASURED) }
}

fn cpu_throttled(facts: &Facts, out: &mut Findings) -> Checked {
    let part = measured(facts)?.capacity.throttled;
    if part >= THROTTLED_MIN {
        let hint = "raise the quota (`CPUQuota=`, `limits.cpu`), or run fewer workers";
        out.warning("the CPU quota of the control group stops the server", hint)
            .value(format!("in {} of the periods", percent(part)));
    }
    Ok(())
}

fn cpu_stolen(facts: &Facts, out: &mut Findings) -> Checked {
    let capacity = &measured(facts)?.capacity;
    let part = capacity.cores_stolen / capacity.cores.max(0.01);
    if part >= STOLEN_MIN {
        let hint = "move to a machine with dedicated cores, or plan with fewer";
        out.warning("the hypervisor takes CPU time of this machine", hint)
            .value(format!("{:.2} of {:.1} cores", capacity.cores_stolen, capacity.cores));
    }
    Ok(())
}

fn memory_limit_near(facts: &Facts, out: &mut Findings) -> Checked {
    facts.total()?;
    let routes = facts.routes.as_deref().unwrap_or_default();
    facts.each_php(|php| {
        let Some(limit) = php.bytes("memory_limit")? else { return Ok(()) };
        let prefix = format!("{}: ", php.pool());
        let is_own = |name: &str| php.pool().is_empty() || name.starts_with(&prefix);
        for route in routes.iter().filter(|route| is_own(&route.route)) {
            let peak = route.peak_bytes_max;
            // A higher peak means that the application sets its own limit.
            if peak > limit || share(peak, limit) < LIMIT_SHARE_MIN {
                continue;
            }
            let text = format!("a request of {} used most of `memory_limit`", route.route);
            let hint = "read data in parts, or raise `memory_limit` for this pool";
            out.warning(text, hint)
                .value(format!("{} of {}", size(peak), size(limit)))
                .place(&*route.route)
                .pool(php.pool());
        }
        Ok(())
    })
}

fn memory_limit_none(facts: &Facts, out: &mut Findings) -> Checked {
    facts.each_php(|php| {
        if php.bytes("memory_limit")?.is_none() {
            let hint = "set `memory_limit` in `[php]`, above the peaks of the dashboard's page \
                        Routes";
            out.warning("requests have no memory limit", hint)
                .place("memory_limit")
                .pool(php.pool());
        }
        Ok(())
    })
}

fn memory_total(facts: &Facts, out: &mut Findings) -> Checked {
    facts.total()?;
    let status = facts.status()?;
    let machine = facts.machine.as_ref().and_then(|machine| machine.memory_bytes);
    let memory = machine.ok_or("the machine's memory is unknown")?;
    let peak = facts.routes.iter().flatten().map(|route| route.peak_bytes_max).max();
    let peak = peak.filter(|peak| *peak > 0).ok_or(NO_REQUESTS)?;
    let most: u64 = status.scaling.iter().map(|one| one.max).sum();
    let workers = most.max(status.serving_workers().count() as u64);
    let all = peak.saturating_mul(workers);
    if all > memory {
        let hint = "lower `workers`, or limit them with `workers.memory_max`";
        out.note("workers can use more memory than the machine has", hint).value(format!(
            "{workers} workers with a peak of {}, {} of memory",
            size(peak),
            size(memory)
        ));
    }
    Ok(())
}

fn swapping(facts: &Facts, out: &mut Findings) -> Checked {
    let machine = facts.machine.as_ref().and_then(|machine| machine.swapped_bytes);
    let swapped = machine.ok_or("no worker runs, or /proc is not readable")?;
    if swapped >= SWAPPED_MIN {
        let hint = "add memory, lower `workers`, or set vm.swappiness to a low value";
        out.warning("memory of workers is swapped out", hint).value(size(swapped));
    }
    Ok(())
}

fn major_faults(facts: &Facts, out: &mut Findings) -> Checked {
    let total = facts.total()?;
    let each = share(total.faults_major, total.run);
    if each >= FAULTS_MIN {
        let hint = "add memory, or lower `workers`";
        out.warning("requests wait for pages that the kernel reads from a disk", hint)
            .value(format!("{each:.1} page faults per request"));
    }
    Ok(())
}
