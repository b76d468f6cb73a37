//! Loads of one boot or request, as its process wrote them (`crates/worker/csrc/loads/report.c`).
//! The input is not trusted: the result is a tree within limits, or none.

use crate::fields::{self, Fields};
use serde::{Deserialize, Serialize};
use std::ops::{AddAssign, Sub};

const BEGIN: &str = "samovar-loads 1";
/// Maximum number of lines of one report: more than a process's table holds.
const LINES_MAX: usize = 40_000;
/// Maximum bytes of a stored name.
const TEXT_BYTES_MAX: usize = 1_024;

/// Wall and CPU time in ns, and PHP memory in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cost {
    /// Wall time.
    pub wall_ns: i64,
    /// CPU time.
    pub cpu_ns: i64,
    /// Growth of PHP's memory.
    pub bytes: i64,
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Cost) {
        self.wall_ns = self.wall_ns.saturating_add(other.wall_ns);
        self.cpu_ns = self.cpu_ns.saturating_add(other.cpu_ns);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

impl Sub for Cost {
    type Output = Cost;

    fn sub(self, other: Cost) -> Cost {
        Cost {
            wall_ns: self.wall_ns.saturating_sub(other.wall_ns),
            cpu_ns: self.cpu_ns.saturating_sub(other.cpu_ns),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }
}

/// Subject of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ReportKind {
    /// The boot that serves.
    #[default]
    Boot,
    /// The prewarm boot before it, which fills the caches.
    Rehearsal,
    /// A request below a checkpoint.
    Request,
    /// A request that ran a whole script.
    Script,
}

/// Kind of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Root,
    File,
    /// A class that autoloaders were called for.
    Class,
    /// A call of `Samovar\warmup()`.
    Warmup,
    /// A warm-up request.
    Request,
    /// The preflight, which searches for objects that the boot left open.
    Look,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Load {
    pub(super) kind: Kind,
    /// Index of the load that this one is a part of; smaller than its own index. `None` for the
    /// first load only.
    pub(super) parent: Option<usize>,
    /// Whether it was compiled because opcache did not have it.
    pub(super) was_compiled: bool,
    /// Whether it was loaded by `include_once` or `require_once`.
    pub(super) is_once: bool,
    /// Cost with all parts.
    pub(super) all: Cost,
    pub(super) compiling: Cost,
    /// File that caused the load.
    pub(super) place: String,
    pub(super) line: u32,
    pub(super) name: String,
    /// Time from the start of the first load, ns.
    pub(super) at_ns: i64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) of: ReportKind,
    /// Id of the template.
    pub(super) boot: u64,
    /// Number of requests sampled since the last report, this one included.
    pub(super) looks: u64,
    /// Number of classes that the request declared.
    pub(super) classes: u64,
    /// Number of loads that did not fit into the process's table.
    pub(super) lost: u64,
    pub(super) method: String,
    pub(super) path: String,
    /// Name that the application gave.
    pub(super) route: String,
    pub(super) loads: Vec<Load>,
}

fn cut(text: &str) -> String {
    fields::cut(text, TEXT_BYTES_MAX)
}

fn cost(fields: &mut Fields<'_>) -> Option<Cost> {
    Some(Cost { wall_ns: fields.number()?, cpu_ns: fields.number()?, bytes: fields.number()? })
}

impl Report {
    /// Parses a report. Returns `None` if it is invalid or truncated.
    pub(super) fn read(bytes: &[u8]) -> Option<Report> {
        let text = String::from_utf8_lossy(bytes);
        let mut lines = text.lines().take(LINES_MAX);
        if lines.next()? != BEGIN {
            return None;
        }
        let mut report = Report::default();
        for line in lines {
            if line == "end" {
                return (!report.loads.is_empty()).then_some(report);
            }
            report.take(line)?;
        }
        None
    }

    fn take(&mut self, line: &str) -> Option<()> {
        let mut fields = Fields::of(line);
        match fields.text()? {
            "k" => {
                self.of = match fields.text()? {
                    "boot" => ReportKind::Boot,
                    "rehearsal" => ReportKind::Rehearsal,
                    "request" => ReportKind::Request,
                    "script" => ReportKind::Script,
                    _ => return None,
                };
                self.boot = fields.number()?;
                let (looks, classes): (u32, u32) = (fields.number()?, fields.number()?);
                (self.looks, self.classes) = (looks.into(), classes.into());
                self.lost = fields.number::<u32>()?.into();
            }
            "q" => {
                self.method = cut(fields.text()?);
                // The query string may contain private data, so it is not stored.
                self.path = cut(fields.text()?.split('?').next()?);
                self.route = cut(fields.text()?);
            }
            "l" => {
                let load = load(&mut fields, self.loads.len())?;
                self.loads.push(load);
            }
            // Lines of later versions are ignored.
            _ => {}
        }
        Some(())
    }

    /// Returns the cost of each load without its parts, in the order of the loads.
    pub(super) fn own(&self) -> Vec<Cost> {
        let mut own: Vec<Cost> = self.loads.iter().map(|load| load.all).collect();
        for load in &self.loads {
            if let Some(parent) = load.parent {
                own[parent] = own[parent] - load.all;
            }
        }
        own
    }

    /// Returns the class whose autoloading contains the load, if no other file is in between.
    pub(super) fn class_of(&self, at: usize) -> Option<&str> {
        let mut parent = self.loads[at].parent;
        while let Some(of) = parent {
            match self.loads[of].kind {
                Kind::Class => return Some(&self.loads[of].name),
                Kind::File => return None,
                _ => parent = self.loads[of].parent,
            }
        }
        None
    }
}

fn load(fields: &mut Fields<'_>, at: usize) -> Option<Load> {
    let kind = match fields.text()? {
        "b" => Kind::Root,
        "f" => Kind::File,
        "c" => Kind::Class,
        "w" => Kind::Warmup,
        "r" => Kind::Request,
        "p" => Kind::Look,
        _ => return None,
    };
    let parent = match fields.number::<i64>()? {
        -1 => None,
        parent => Some(usize::try_from(parent).ok().filter(|parent| *parent < at)?),
    };
    // There is one tree: the first load, and only that one, is the root.
    if parent.is_none() != (at == 0) || (kind == Kind::Root) != (at == 0) {
        return None;
    }
    let flags: u8 = fields.number()?;
    let (all, compiling) = (cost(fields)?, cost(fields)?);
    let line = fields.number()?;
    let (place, name) = (cut(fields.text()?), cut(fields.text()?));
    let (was_compiled, is_once) = (flags & 1 != 0, flags & 2 != 0);
    let at_ns = fields.number().unwrap_or(0);
    Some(Load { kind, parent, was_compiled, is_once, all, compiling, place, line, name, at_ns })
}

#[cfg(test)]
impl Report {
    /// A request that ran a whole script: files, each with the number of the load that includes it
    /// (0: the request itself). Load n begins after n × 100 ns.
    pub(super) fn of_script(path: &str, files: &[(&str, usize)]) -> Report {
        use std::fmt::Write as _;
        let mut text = format!(
            "samovar-loads 1\nk\tscript\t7\t1\t0\t0\nq\tGET\t{path}\t\n\
             l\tb\t-1\t0\t900\t0\t0\t0\t0\t0\t0\t\t\t0\n"
        );
        for (at, (file, parent)) in files.iter().enumerate() {
            let at = (at + 1) * 100;
            let _ = writeln!(text, "l\tf\t{parent}\t2\t10\t0\t0\t4\t0\t0\t3\t/p.php\t{file}\t{at}");
        }
        Report::read(format!("{text}end\n").as_bytes()).expect("a report")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "samovar-loads 1\nk\trequest\t77\t3\t2\t0\nq\tGET\t/a?b=c\tshop\n\
        l\tb\t-1\t0\t100\t90\t500\t0\t0\t0\t0\t\t\n\
        l\tc\t0\t0\t80\t70\t400\t0\t0\t0\t7\t/i.php\tApp\\A\n\
        l\tf\t1\t3\t60\t50\t300\t20\t20\t100\t9\t/load.php\t/A.php\nend\n";

    #[test]
    fn report_with_valid_lines_is_parsed() {
        let report = Report::read(TEXT.as_bytes()).expect("a report");
        assert_eq!(
            (report.of, report.boot, report.looks, report.classes),
            (ReportKind::Request, 77, 3, 2)
        );
        assert_eq!((&*report.path, &*report.route), ("/a", "shop"));
        let file = &report.loads[2];
        assert_eq!((file.kind, file.was_compiled, file.is_once), (Kind::File, true, true));
        assert_eq!(report.own().iter().map(|own| own.wall_ns).collect::<Vec<_>>(), [20, 20, 60]);
        assert_eq!(report.class_of(2), Some("App\\A"));
        assert_eq!(report.class_of(1), None);
    }

    #[test]
    fn report_truncated_or_not_a_tree_is_rejected() {
        for len in 0..TEXT.len() - 1 {
            assert_eq!(Report::read(&TEXT.as_bytes()[..len]), None, "{len}");
        }
        for (from, to) in [
            ("l\tc\t0", "l\tc\t1"),
            ("l\tc\t0", "l\tc\t-1"),
            ("l\tc\t0", "l\tb\t0"),
            ("l\tb\t-1", "l\tf\t-1"),
            ("l\tc\t0", "l\tc\t9999999999999999999"),
            ("k\trequest", "k\tparty"),
            ("\t80\t", "\tmany\t"),
        ] {
            assert_eq!(Report::read(TEXT.replacen(from, to, 1).as_bytes()), None, "{from} {to}");
        }
    }

    #[test]
    fn report_with_extreme_numbers_does_not_overflow() {
        let text = TEXT.replace("\t80\t", "\t9223372036854775807\t");
        let text = text.replacen("\t100\t", "\t-9223372036854775808\t", 1);
        let report = Report::read(text.as_bytes()).expect("a report");
        assert_eq!(report.own()[0].wall_ns, i64::MIN);
    }
}
