//! What a process has loaded as it has written it (`crates/worker/csrc/loads/report.c`). Whatever somebody writes there is a tree
//! within limits, or nothing.

use crate::fields::{self, Fields};
use serde::{Deserialize, Serialize};
use std::ops::{AddAssign, Sub};

const BEGIN: &str = "samovar-loads 1";
/// Lines of one report: more than a process's table has.
const LINES_MAX: usize = 40_000;
/// Longest name that is kept, bytes.
const TEXT_BYTES_MAX: usize = 1_024;

/// Wall and CPU time, ns, and PHP's memory, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cost {
    /// By the clock.
    pub wall_ns: i64,
    /// Of the processor.
    pub cpu_ns: i64,
    /// How far PHP's memory grew.
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

/// What a report is of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Of {
    /// The boot that serves.
    #[default]
    Boot,
    /// The one before it, which fills the caches.
    Rehearsal,
    /// A request.
    Request,
}

/// What was loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Root,
    File,
    /// A class that autoloaders were asked for.
    Class,
    /// `Samovar\warmup()`.
    Warmup,
    /// A warm-up request.
    Request,
    /// The look at what the boot has left open.
    Look,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Load {
    pub(super) kind: Kind,
    /// What it is a part of: one that stands before it. The first has none.
    pub(super) parent: Option<usize>,
    /// opcache did not have it.
    pub(super) was_compiled: bool,
    /// By `include_once` or `require_once`.
    pub(super) is_once: bool,
    /// With all its parts.
    pub(super) all: Cost,
    pub(super) compiling: Cost,
    /// Who asked for it.
    pub(super) place: String,
    pub(super) line: u32,
    pub(super) name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) of: Of,
    /// Of which template.
    pub(super) boot: u64,
    /// Requests that were looked at since the last report, this one among them.
    pub(super) looks: u64,
    /// Classes that the request has declared.
    pub(super) classes: u64,
    /// Loads that there was no room for.
    pub(super) lost: u64,
    pub(super) method: String,
    pub(super) path: String,
    /// As the application has named it.
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
    /// `None`: it is none, or was cut off.
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
                    "boot" => Of::Boot,
                    "rehearsal" => Of::Rehearsal,
                    "request" => Of::Request,
                    _ => return None,
                };
                self.boot = fields.number()?;
                let (looks, classes): (u32, u32) = (fields.number()?, fields.number()?);
                (self.looks, self.classes) = (looks.into(), classes.into());
                self.lost = fields.number::<u32>()?.into();
            }
            "q" => {
                self.method = cut(fields.text()?);
                // What it was asked with is nobody's to keep.
                self.path = cut(fields.text()?.split('?').next()?);
                self.route = cut(fields.text()?);
            }
            "l" => {
                let load = load(&mut fields, self.loads.len())?;
                self.loads.push(load);
            }
            // What later versions may say beside that.
            _ => {}
        }
        Some(())
    }

    /// What each load took without its parts, in their order.
    pub(super) fn own(&self) -> Vec<Cost> {
        let mut own: Vec<Cost> = self.loads.iter().map(|load| load.all).collect();
        for load in &self.loads {
            if let Some(parent) = load.parent {
                own[parent] = own[parent] - load.all;
            }
        }
        own
    }

    /// The class whose autoloading a load is a part of, if no other file stands between.
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
    // One tree: the first is the root, and nothing else.
    if parent.is_none() != (at == 0) || (kind == Kind::Root) != (at == 0) {
        return None;
    }
    let flags: u8 = fields.number()?;
    let (all, compiling) = (cost(fields)?, cost(fields)?);
    let line = fields.number()?;
    let (place, name) = (cut(fields.text()?), cut(fields.text()?));
    let (was_compiled, is_once) = (flags & 1 != 0, flags & 2 != 0);
    Some(Load { kind, parent, was_compiled, is_once, all, compiling, place, line, name })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "samovar-loads 1\nk\trequest\t77\t3\t2\t0\nq\tGET\t/a?b=c\tshop\n\
        l\tb\t-1\t0\t100\t90\t500\t0\t0\t0\t0\t\t\n\
        l\tc\t0\t0\t80\t70\t400\t0\t0\t0\t7\t/i.php\tApp\\A\n\
        l\tf\t1\t3\t60\t50\t300\t20\t20\t100\t9\t/load.php\t/A.php\nend\n";

    #[test]
    fn a_report_is_read() {
        let report = Report::read(TEXT.as_bytes()).expect("a report");
        assert_eq!((report.of, report.boot, report.looks, report.classes), (Of::Request, 77, 3, 2));
        assert_eq!((&*report.path, &*report.route), ("/a", "shop"));
        let file = &report.loads[2];
        assert_eq!((file.kind, file.was_compiled, file.is_once), (Kind::File, true, true));
        assert_eq!(report.own().iter().map(|own| own.wall_ns).collect::<Vec<_>>(), [20, 20, 60]);
        assert_eq!(report.class_of(2), Some("App\\A"));
        assert_eq!(report.class_of(1), None);
    }

    #[test]
    fn what_is_cut_off_or_no_tree_is_none() {
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
    fn absurd_numbers_do_no_harm() {
        let text = TEXT.replace("\t80\t", "\t9223372036854775807\t");
        let text = text.replacen("\t100\t", "\t-9223372036854775808\t", 1);
        let report = Report::read(text.as_bytes()).expect("a report");
        assert_eq!(report.own()[0].wall_ns, i64::MIN);
    }
}
