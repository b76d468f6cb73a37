//! Files that each route includes, added up over the recorded requests. Pure.

use super::inclusion_order::{FirstInclusion, Order, SharedStart, shared_start};
use super::lazy::is_askable;
use super::report::{Kind, Report, ReportKind};
use super::warmup_cover;
use crate::fields;
use samovar_insight::Redaction;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::HashMap;

/// Maximum number of routes; requests of further routes are counted as one route.
const ROUTES_MAX: usize = 200;
/// Maximum number of known files; further files are only counted.
const FILES_MAX: usize = 20_000;
/// Maximum number of pairs of a route and a file; further pairs are only counted.
const PAIRS_MAX: usize = 100_000;
/// Maximum bytes of a route's name.
const ROUTE_BYTES_MAX: usize = 256;
/// Part of the paths of files that an application rewrites.
const CACHE: &str = "/cache/";
/// Name of the routes beyond the maximum.
const OTHERS: &str = "(other routes)";
/// Name for the files of a boot.
const BOOT: &str = "(boot)";

/// Files that requests include.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Includes {
    /// Number of recorded requests.
    pub requests: u64,
    /// Number of recorded requests that ran whole scripts.
    pub scripts: u64,
    /// Number of loads that did not fit into a table.
    pub lost: u64,
    /// Routes, most recorded requests first.
    pub routes: Vec<RouteIncludes>,
    /// Route of `files`; empty: all routes.
    pub route: String,
    /// Files, those of most requests first, then in the order of their inclusion.
    pub files: Vec<IncludedFile>,
    /// Paths whose requests include most of the files, by time, the best one first: a list for
    /// `warmup`.
    pub warmup: Vec<String>,
    /// The part that all routes of whole scripts share, if there are several.
    pub shared: Option<SharedStart>,
}

/// A route with recorded requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RouteIncludes {
    /// Name of the route: as the application gave it, otherwise the path.
    pub route: String,
    /// Path of a request of the route.
    pub path: String,
    /// Method of that request.
    pub method: String,
    /// Number of recorded requests.
    pub requests: u64,
    /// Number of files that they include.
    pub files: u64,
    /// Time in these files per request, ns: compiling and own code.
    pub ns: u64,
}

/// A file that requests include.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IncludedFile {
    /// Path of the file.
    pub file: String,
    /// Class whose autoloading included the file, or empty.
    pub class: String,
    /// Source line that included it first: `/srv/a.php:7`.
    pub place: String,
    /// Number of requests that included it.
    pub requests: u64,
    /// Number of inclusions.
    pub loads: u64,
    /// Number of inclusions for which opcache did not have the file.
    pub compiled: u64,
    /// Mean time from the start of the request to the first inclusion, ns.
    pub at_ns: u64,
    /// Mean time of compiling, or of taking the file from opcache, per inclusion, ns.
    pub compiling_ns: u64,
    /// Mean time of the file's own code per inclusion, ns.
    pub own_ns: u64,
}

#[derive(Clone, Debug, Default)]
struct Known {
    file: String,
    class: String,
    place: String,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    requests: u64,
    loads: u64,
    compiled: u64,
    at_ns: u64,
    compiling_ns: u64,
    own_ns: u64,
}

impl Sum {
    fn add(&mut self, other: &Sum) {
        self.requests = self.requests.saturating_add(other.requests);
        self.loads = self.loads.saturating_add(other.loads);
        self.compiled = self.compiled.saturating_add(other.compiled);
        self.at_ns = self.at_ns.saturating_add(other.at_ns);
        self.compiling_ns = self.compiling_ns.saturating_add(other.compiling_ns);
        self.own_ns = self.own_ns.saturating_add(other.own_ns);
    }
}

#[derive(Clone, Debug, Default)]
struct Route {
    requests: u64,
    path: String,
    method: String,
    files: HashMap<u32, Sum>,
    /// Start that all its whole scripts share; `None`: it had none.
    order: Option<Order>,
}

/// Sums over the recorded requests of one template.
#[derive(Clone, Debug, Default)]
pub(super) struct Inclusions {
    requests: u64,
    scripts: u64,
    lost: u64,
    pairs: usize,
    files: Vec<Known>,
    at: HashMap<String, u32>,
    routes: HashMap<String, Route>,
}

/// Returns the name of a file. A URL loses its query and password, and a `data:` URL its content:
/// they may be secret, and differ in each request.
fn without_data(name: &str) -> Cow<'_, str> {
    if name.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:")) {
        return name.split(',').next().unwrap_or_default().into();
    }
    if name.contains("://") { Redaction::default().text(name) } else { name.into() }
}

fn positive(ns: i64) -> u64 {
    u64::try_from(ns).unwrap_or(0)
}

impl Inclusions {
    pub(super) fn is_empty(&self) -> bool {
        self.requests == 0
    }

    /// Adds a request or a boot.
    pub(super) fn add(&mut self, report: &Report) {
        let is_boot = report.of == ReportKind::Boot;
        let count = if is_boot { 0 } else { report.looks.max(1) };
        self.requests = self.requests.saturating_add(count);
        self.lost = self.lost.saturating_add(report.lost);
        let numbers: Vec<Option<u32>> =
            (0..report.loads.len()).map(|at| self.number(report, at)).collect();
        let own = report.own();
        let mut sums: HashMap<u32, Sum> = HashMap::new();
        for (at, load) in report.loads.iter().enumerate() {
            let Some(number) = numbers[at] else { continue };
            let sum = sums
                .entry(number)
                .or_insert_with(|| Sum { at_ns: positive(load.at_ns), ..Sum::default() });
            sum.requests = 1;
            sum.loads += 1;
            sum.compiled += u64::from(load.was_compiled);
            let own = positive((own[at] - load.compiling).wall_ns);
            sum.own_ns = sum.own_ns.saturating_add(own);
            sum.compiling_ns = sum.compiling_ns.saturating_add(positive(load.compiling.wall_ns));
        }
        let name = self.route_name(report, is_boot);
        let room = PAIRS_MAX - self.pairs;
        let route = self.routes.entry(name).or_default();
        route.requests = route.requests.saturating_add(count.max(u64::from(is_boot)));
        if route.path.is_empty() {
            (route.path, route.method) = (report.path.clone(), report.method.clone());
        }
        let before = route.files.len();
        for (number, sum) in sums {
            if route.files.len() - before < room || route.files.contains_key(&number) {
                route.files.entry(number).or_default().add(&sum);
            } else {
                self.lost = self.lost.saturating_add(1);
            }
        }
        self.pairs += route.files.len() - before;
        if report.of == ReportKind::Script {
            self.scripts = self.scripts.saturating_add(1);
            let order = Order::of(report, &numbers);
            match &mut route.order {
                Some(known) => known.keep_shared(&order),
                none => *none = Some(order),
            }
        }
    }

    /// Returns the number of the file of a load; `None`: it is no file, or there is no room.
    fn number(&mut self, report: &Report, at: usize) -> Option<u32> {
        let load = &report.loads[at];
        if load.kind != Kind::File || load.name.is_empty() {
            return None;
        }
        let class = report.class_of(at).unwrap_or_default();
        let name = without_data(&load.name);
        if let Some(number) = self.at.get(&*name) {
            let known = &mut self.files[*number as usize];
            if known.class.is_empty() {
                class.clone_into(&mut known.class);
            }
            return Some(*number);
        }
        if self.files.len() == FILES_MAX {
            self.lost = self.lost.saturating_add(1);
            return None;
        }
        let number = u32::try_from(self.files.len()).ok()?;
        let place = if load.place.is_empty() {
            String::new()
        } else {
            format!("{}:{}", load.place, load.line)
        };
        self.files.push(Known { file: name.to_string(), class: class.to_owned(), place });
        self.at.insert(name.into_owned(), number);
        Some(number)
    }

    fn route_name(&self, report: &Report, is_boot: bool) -> String {
        let name = match &*report.route {
            _ if is_boot => BOOT,
            "" => &*report.path,
            route => route,
        };
        let name = fields::cut(name, ROUTE_BYTES_MAX);
        let is_full = self.routes.len() >= ROUTES_MAX && !self.routes.contains_key(&name);
        if is_full { OTHERS.to_owned() } else { name }
    }

    /// Returns the sums. `route` selects the route of the files; `None`: of all routes.
    pub(super) fn told(&self, route: Option<&str>) -> Includes {
        let mut sums: HashMap<u32, Sum> = HashMap::new();
        for (name, of) in &self.routes {
            if route.is_none_or(|wanted| wanted == name) {
                for (number, sum) in &of.files {
                    sums.entry(*number).or_default().add(sum);
                }
            }
        }
        let mut files: Vec<IncludedFile> =
            sums.iter().map(|(number, sum)| self.file(*number, sum)).collect();
        files.sort_by(|a, b| {
            let key = |it: &IncludedFile| (u64::MAX - it.requests, it.at_ns);
            key(a).cmp(&key(b)).then_with(|| a.file.cmp(&b.file))
        });
        let mut routes: Vec<RouteIncludes> =
            self.routes.iter().map(|(name, route)| route.told(name)).collect();
        routes.sort_by(|a, b| b.requests.cmp(&a.requests).then_with(|| a.route.cmp(&b.route)));
        Includes {
            requests: self.requests,
            scripts: self.scripts,
            lost: self.lost,
            routes,
            route: route.unwrap_or_default().to_owned(),
            files,
            warmup: self.warmup(),
            shared: self.shared(),
        }
    }

    fn warmup(&self) -> Vec<String> {
        let is_askable = |(name, route): &(&String, &Route)| {
            *name != BOOT && route.method == "GET" && is_askable(&route.path)
        };
        let mut routes: Vec<_> = self.routes.iter().filter(is_askable).collect();
        routes.sort_by_key(|(name, _)| *name);
        let mut time: HashMap<u32, u64> = HashMap::new();
        for (number, sum) in routes.iter().flat_map(|(_, route)| &route.files) {
            let time = time.entry(*number).or_default();
            *time = time.saturating_add(sum.own_ns).saturating_add(sum.compiling_ns);
        }
        let routes: Vec<_> = (routes.iter())
            .map(|(_, of)| warmup_cover::Route {
                path: &of.path,
                files: of.files.keys().copied().collect(),
            })
            .collect();
        warmup_cover::cover(&routes, &time)
    }

    fn file(&self, number: u32, sum: &Sum) -> IncludedFile {
        let Known { file, class, place } = self.files[number as usize].clone();
        let Sum { requests, loads, compiled, at_ns, compiling_ns, own_ns } = *sum;
        IncludedFile {
            file,
            class,
            place,
            requests,
            loads,
            compiled,
            at_ns: at_ns / requests.max(1),
            compiling_ns: compiling_ns / loads.max(1),
            own_ns: own_ns / loads.max(1),
        }
    }

    fn shared(&self) -> Option<SharedStart> {
        let mut orders: Vec<(&String, &Order)> = (self.routes.iter())
            .filter_map(|(name, route)| Some((name, route.order.as_ref()?)))
            .collect();
        orders.sort_by_key(|(name, _)| *name);
        let orders: Vec<&Order> = orders.into_iter().map(|(_, order)| order).collect();
        shared_start(&orders, |number| {
            let known = &self.files[number as usize];
            FirstInclusion {
                path: known.file.clone(),
                place: known.place.clone(),
                is_volatile: !known.class.is_empty() || known.file.contains(CACHE),
            }
        })
    }
}

impl Route {
    fn told(&self, name: &str) -> RouteIncludes {
        let ns: u64 = self
            .files
            .values()
            .fold(0, |sum, of| sum.saturating_add(of.own_ns).saturating_add(of.compiling_ns));
        RouteIncludes {
            route: name.to_owned(),
            path: self.path.clone(),
            method: self.method.clone(),
            requests: self.requests,
            files: self.files.len() as u64,
            ns: ns / self.requests.max(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_counted_per_route() {
        let mut all = Inclusions::default();
        assert!(all.is_empty());
        all.add(&Report::of_script("/a", &[("/i.php", 0), ("/boot.php", 1), ("/A.php", 1)]));
        all.add(&Report::of_script("/a", &[("/i.php", 0), ("/boot.php", 1), ("/A.php", 1)]));
        all.add(&Report::of_script("/b", &[("/i.php", 0), ("/boot.php", 1), ("/B.php", 1)]));
        let told = all.told(None);
        assert_eq!((told.requests, told.scripts, told.lost), (3, 3, 0));
        let names: Vec<_> = told.files.iter().map(|f| (&*f.file, f.requests)).collect();
        assert_eq!(names, [("/i.php", 3), ("/boot.php", 3), ("/A.php", 2), ("/B.php", 1)]);
        assert_eq!(told.files[1].at_ns, 200, "means of equal requests are equal");
        let routes: Vec<_> = told.routes.iter().map(|r| (&*r.route, r.requests, r.files)).collect();
        assert_eq!(routes, [("/a", 2, 3), ("/b", 1, 3)]);
        let told = all.told(Some("/b"));
        let names: Vec<_> = told.files.iter().map(|f| &*f.file).collect();
        assert_eq!(names, ["/i.php", "/boot.php", "/B.php"]);
        let shared = told.shared.expect("two routes");
        assert_eq!((&*shared.candidates[0].file, shared.candidates[0].files), ("/boot.php", 2));
    }

    #[test]
    fn names_of_urls_have_no_secrets() {
        for (name, expected) in [
            ("/srv/a?token=1.php", "/srv/a?token=1.php"),
            ("phar:///srv/a.phar/b.php", "phar:///srv/a.phar/b.php"),
            ("data:text/plain,<?php $a = 't0ps';", "data:text/plain"),
            ("DATA:text/plain;base64,dDBwcw==", "DATA:text/plain;base64"),
            (
                "https://kim:t0ps@a.example/b.php?token=t0ps",
                "https://(redacted)@a.example/b.php?(redacted)",
            ),
        ] {
            assert_eq!(without_data(name), expected);
        }
    }

    #[test]
    fn routes_beyond_maximum_are_one_route() {
        let mut all = Inclusions::default();
        for at in 0..ROUTES_MAX + 5 {
            all.add(&Report::of_script(&format!("/{at}"), &[("/i.php", 0)]));
        }
        let told = all.told(None);
        assert_eq!(told.routes.len(), ROUTES_MAX + 1);
        assert_eq!((&*told.routes[0].route, told.routes[0].requests), (OTHERS, 5));
    }
}
