//! Weights of machines in proportion to their capacity, as configuration of a load balancer.

use crate::plan::{MachinePlan, Plan};
use crate::problem::Problem;
use crate::text::rate;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Weight of the machine with the highest capacity. All three load balancers accept it.
const WEIGHT_MAX: f64 = 100.0;
/// Name of the upstream, backend and cluster.
const NAME: &str = "samovar";

/// A load balancer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balancer {
    /// `upstream` of nginx.
    Nginx,
    /// `backend` of HAProxy.
    Haproxy,
    /// `ClusterLoadAssignment` of Envoy.
    Envoy,
}

impl Balancer {
    /// Names, as flags have them.
    pub const NAMES: [&str; 3] = ["nginx", "haproxy", "envoy"];

    /// Returns the load balancer of a name.
    pub fn named(name: &str) -> Option<Balancer> {
        let all = [Balancer::Nginx, Balancer::Haproxy, Balancer::Envoy];
        all.into_iter().zip(Balancer::NAMES).find(|(_, known)| *known == name).map(|(one, _)| one)
    }
}

/// Returns the machines with their weights, in the language of the load balancer.
///
/// # Errors
///
/// A machine has no address, or no capacity.
pub fn weights(plan: &Plan, balancer: Balancer) -> Result<String, Problem> {
    let highest = plan.machines.iter().map(|one| one.capacity).fold(0.0, f64::max);
    let mut rows = Vec::new();
    for machine in &plan.machines {
        let name = &machine.machine.name;
        let address = machine.machine.address.as_deref().ok_or_else(|| {
            let hint = "add it to the fleet file, such as `address = \"10.0.0.1:8080\"`";
            Problem::new(format!("the machine `{name}` has no address"), hint)
        })?;
        if !(machine.capacity > 0.0 && machine.capacity.is_finite()) {
            let hint = "take it out of the fleet file, or check its history";
            return Err(Problem::new(format!("the machine `{name}` has no capacity"), hint));
        }
        let weight = (WEIGHT_MAX * machine.capacity / highest).round().max(1.0) as u32;
        rows.push(Row { machine, address, weight, name: String::new() });
    }
    let names = rows.iter().map(|row| row.machine.machine.name.as_str()).collect::<Vec<_>>();
    let names = distinct(&names);
    rows.iter_mut().zip(names).for_each(|(row, name)| row.name = name);
    Ok(match balancer {
        Balancer::Nginx => nginx(&rows),
        Balancer::Haproxy => haproxy(&rows),
        Balancer::Envoy => envoy(&rows),
    })
}

struct Row<'a> {
    machine: &'a MachinePlan,
    address: &'a str,
    weight: u32,
    /// Name with the characters that all three languages accept.
    name: String,
}

impl Row<'_> {
    fn comment(&self) -> String {
        format!("{}: {} requests/s", self.name, rate(self.machine.capacity))
    }
}

/// Replaces the characters that not all three languages accept. The names stay distinct: HAProxy
/// refuses two servers of one name.
fn distinct(names: &[&str]) -> Vec<String> {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let plain = |name: &str| name.chars().map(plain).collect::<String>();
    // A name that needs no change keeps its form.
    let mut used: BTreeSet<String> =
        names.iter().filter(|name| plain(name) == **name).map(|name| (*name).to_owned()).collect();
    let own = |name: &&str| {
        let base = plain(name);
        if base == **name {
            return base;
        }
        let numbered = (2..).map(|n| format!("{base}-{n}"));
        let mut candidates = std::iter::once(base.clone()).chain(numbered);
        // There are fewer names than numbers.
        candidates.find(|name| used.insert(name.clone())).unwrap_or(base)
    };
    names.iter().map(own).collect()
}

// Writing to a string cannot fail.
fn nginx(rows: &[Row]) -> String {
    let mut out = format!("upstream {NAME} {{\n");
    for row in rows {
        let Row { address, weight, .. } = row;
        let _ = writeln!(out, "    server {address} weight={weight};  # {}", row.comment());
    }
    out + "}\n"
}

fn haproxy(rows: &[Row]) -> String {
    let mut out = format!("backend {NAME}\n    balance roundrobin\n");
    for row in rows {
        let Row { address, weight, .. } = row;
        let (name, comment) = (&row.name, row.comment());
        let _ = writeln!(out, "    server {name} {address} weight {weight}  # {comment}");
    }
    out
}

fn envoy(rows: &[Row]) -> String {
    let mut out = format!("cluster_name: {NAME}\nendpoints:\n- lb_endpoints:\n");
    for row in rows {
        let (host, port) = row.address.rsplit_once(':').unwrap_or((row.address, "80"));
        let host = host.trim_matches(['[', ']']);
        let _ = writeln!(
            out,
            "  - endpoint:  # {}\n      address:\n        socket_address:\n          \
             address: \"{host}\"\n          port_value: {port}\n    load_balancing_weight: {}",
            row.comment(),
            row.weight
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_distinct() {
        for (names, expected) in [
            (&["a b", "a_b", "a/b"][..], &["a_b-2", "a_b", "a_b-3"][..]),
            (&["a b", "a/b", "a_b-2"], &["a_b", "a_b-3", "a_b-2"]),
            (&["é", "ü", "web1"], &["_", "_-2", "web1"]),
        ] {
            assert_eq!(distinct(names), expected);
        }
    }
}
