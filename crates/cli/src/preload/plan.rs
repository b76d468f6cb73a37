//! Used files → the files to preload, in the order of their dependencies, and a reason for each
//! other file. Pure.

use samovar_migrate::{Obstacle, ObstacleKind, Outline};
use std::collections::{BTreeMap, HashMap};

/// Names of folders whose files an application rewrites without a restart.
const CACHES: [&str; 2] = ["/cache/", "/storage/framework/"];

/// A file that requests include.
#[derive(Clone, Debug)]
pub(super) struct Used {
    pub(super) file: String,
    /// Fraction of the requests that include it.
    pub(super) share: f64,
    /// Outline, or the reason why the file cannot be read.
    pub(super) outline: Result<Outline, String>,
}

/// A file to preload.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Chosen {
    pub(super) file: String,
    pub(super) share: f64,
}

/// A file that is not preloaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LeftOut {
    pub(super) file: String,
    pub(super) reason: String,
}

/// Files to preload, parents first, and all other used files.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Plan {
    pub(super) files: Vec<Chosen>,
    pub(super) left_out: Vec<LeftOut>,
}

/// Plans over the used files. `share_min` is the smallest fraction of requests of a preloaded file;
/// a file that another one needs may have a smaller one. `refused` has files that a trial has found
/// to be unsuitable, with the reasons.
pub(super) fn plan(used: &[Used], share_min: f64, refused: &BTreeMap<String, String>) -> Plan {
    let mut reasons: Vec<Option<String>> =
        used.iter().map(|one| own_reason(one, refused)).collect();
    let owners = owners(used, &mut reasons);
    leave_out_dependents(used, &owners, &mut reasons);
    let wanted = |at: usize| used[at].share >= share_min && reasons[at].is_none();
    let order = order(used, &owners, wanted);
    let mut is_chosen = vec![false; used.len()];
    for at in &order {
        is_chosen[*at] = true;
    }
    let chosen = |at: usize| Chosen { file: used[at].file.clone(), share: used[at].share };
    let mut left_out = Vec::new();
    for (at, reason) in reasons.into_iter().enumerate().filter(|(at, _)| !is_chosen[*at]) {
        let rare = || format!("{:.0} % of the requests include it", used[at].share * 100.0);
        let reason = reason.unwrap_or_else(rare);
        left_out.push(LeftOut { file: used[at].file.clone(), reason });
    }
    Plan { files: order.into_iter().map(chosen).collect(), left_out }
}

/// Returns the reason of a file that depends on no other file.
fn own_reason(one: &Used, refused: &BTreeMap<String, String>) -> Option<String> {
    if let Some(why) = refused.get(&one.file) {
        return Some(why.clone());
    }
    if !one.file.starts_with('/') {
        return Some("it is no file of the file system".to_owned());
    }
    let outline = match &one.outline {
        Ok(outline) => outline,
        Err(why) => return Some(why.clone()),
    };
    if let Some(obstacle) = &outline.obstacle {
        return Some(obstacle_text(obstacle));
    }
    if outline.classes.is_empty() && outline.functions.is_empty() {
        return Some("it declares nothing".to_owned());
    }
    let is_cache = CACHES.iter().any(|folder| one.file.contains(folder));
    is_cache.then(|| "it is part of a cache, which is rewritten without a restart".to_owned())
}

fn obstacle_text(obstacle: &Obstacle) -> String {
    let Obstacle { kind, line, name } = obstacle;
    match kind {
        ObstacleKind::Syntax => format!("line {line} has a syntax error"),
        ObstacleKind::Conditional => {
            format!(
                "line {line} declares under a condition (`{name}`), so it depends on the \
                     environment"
            )
        }
        ObstacleKind::Output => format!("line {line} prints: {name}"),
        ObstacleKind::Value => format!("line {line} returns a value; opcache keeps it as it is"),
        ObstacleKind::Code => {
            format!("line {line} runs code when the file is included: {name}")
        }
    }
}

/// Returns the file of each class. Several files that declare a class or a function are left out:
/// requests include one or the other, and PHP ends a request that declares a preloaded name again.
fn owners<'a>(used: &'a [Used], reasons: &mut [Option<String>]) -> HashMap<&'a str, usize> {
    let mut owners: HashMap<&str, usize> = HashMap::new();
    let mut functions: HashMap<&str, usize> = HashMap::new();
    for (at, one) in used.iter().enumerate() {
        let Ok(outline) = &one.outline else { continue };
        let classes = outline.classes.iter().map(|class| (&*class.name, true));
        let names = classes.chain(outline.functions.iter().map(|name| (&**name, false)));
        for (name, is_class) in names {
            let known = if is_class { &mut owners } else { &mut functions };
            let first = *known.entry(name).or_insert(at);
            if first == at {
                continue;
            }
            for (of, other) in [(at, first), (first, at)] {
                let reason = || format!("`{name}` is also declared by {}", used[other].file);
                reasons[of].get_or_insert_with(reason);
            }
        }
    }
    owners
}

/// Files that a file needs, with the class.
fn needs<'a>(
    used: &'a [Used],
    owners: &'a HashMap<&str, usize>,
    at: usize,
) -> impl Iterator<Item = (usize, &'a str)> {
    let classes = used[at].outline.iter().flat_map(|outline| &outline.classes);
    let names = classes.flat_map(|class| &class.needs);
    names.filter_map(move |name| {
        let of = *owners.get(name.as_str())?;
        (of != at).then_some((of, name.as_str()))
    })
}

/// Leaves out the files whose parents are left out. Each pass leaves out at least one file.
fn leave_out_dependents(
    used: &[Used],
    owners: &HashMap<&str, usize>,
    reasons: &mut [Option<String>],
) {
    let mut dependents: Vec<Vec<(usize, &str)>> = vec![Vec::new(); used.len()];
    for at in 0..used.len() {
        for (of, class) in needs(used, owners, at) {
            dependents[of].push((at, class));
        }
    }
    let mut waiting: Vec<usize> = (0..used.len()).filter(|at| reasons[*at].is_some()).collect();
    while let Some(of) = waiting.pop() {
        for (at, class) in &dependents[of] {
            if reasons[*at].is_none() {
                reasons[*at] =
                    Some(format!("it needs `{class}` of {}, which is left out", used[of].file));
                waiting.push(*at);
            }
        }
    }
}

/// Returns the wanted files and those that they need, after the files that each of them needs.
fn order(
    used: &[Used],
    owners: &HashMap<&str, usize>,
    wanted: impl Fn(usize) -> bool,
) -> Vec<usize> {
    let (mut order, mut has_begun) = (Vec::new(), vec![false; used.len()]);
    for start in (0..used.len()).filter(|at| wanted(*at)) {
        // True: all files that it needs are in the order.
        let mut stack = vec![(start, false)];
        while let Some((at, is_ready)) = stack.pop() {
            if is_ready {
                order.push(at);
                continue;
            }
            if std::mem::replace(&mut has_begun[at], true) {
                continue;
            }
            stack.push((at, true));
            stack.extend(needs(used, owners, at).map(|(of, _)| (of, false)));
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(file: &str, share: f64, php: &str) -> Used {
        let outline = Ok(samovar_migrate::outline(format!("<?php\n{php}").as_bytes()));
        Used { file: file.to_owned(), share, outline }
    }

    fn files(plan: &Plan) -> Vec<&str> {
        plan.files.iter().map(|chosen| &*chosen.file).collect()
    }

    #[test]
    fn parents_come_first() {
        let all = [
            used("/D.php", 1.0, "class D extends C implements \\Countable { use T; }"),
            used("/T.php", 0.2, "trait T {}"),
            used("/C.php", 1.0, "namespace X; abstract class Y {} class_alias('a', 'b');"),
            used("/c.php", 1.0, "class C implements I {} class Other extends C {}"),
            used("/I.php", 1.0, "interface I {}"),
            used("/rare.php", 0.2, "class Rare {}"),
        ];
        let plan = plan(&all, 0.5, &BTreeMap::new());
        assert_eq!(files(&plan), ["/T.php", "/I.php", "/c.php", "/D.php"]);
        let reasons: Vec<_> = plan.left_out.iter().map(|out| (&*out.file, &*out.reason)).collect();
        assert_eq!(
            reasons,
            [
                ("/C.php", "line 2 runs code when the file is included: class_alias()"),
                ("/rare.php", "20 % of the requests include it"),
            ]
        );
    }

    #[test]
    fn circle_of_needs_ends() {
        let all = [
            used("/A.php", 1.0, "class A extends B {}"),
            used("/B.php", 1.0, "class B extends A {}"),
            used("/C.php", 1.0, "class C extends C {}"),
        ];
        assert_eq!(plan(&all, 0.5, &BTreeMap::new()).files.len(), 3);
    }

    #[test]
    fn file_left_out_takes_its_children_with_it() {
        let all = [
            used("/A.php", 1.0, "class A extends B {}"),
            used("/B.php", 1.0, "class B extends C {}"),
            used("/C.php", 1.0, "class C {}"),
            used("/D.php", 1.0, "class D {}"),
            used("/d.php", 1.0, "class d {}"),
            used("/var/cache/prod/E.php", 1.0, "class E {}"),
            used("/E.php", 1.0, "class e2 {} function f() {}"),
            used("/g.php", 0.1, "namespace N; function g() {}"),
            used("/G.php", 0.1, "namespace N; function G() {} class_alias('A', 'B');"),
            used("phar:///x.phar/F.php", 1.0, "class F {}"),
            used("/empty.php", 1.0, ""),
        ];
        let refused = BTreeMap::from([("/C.php".to_owned(), "a warning".to_owned())]);
        let plan = plan(&all, 0.5, &refused);
        assert_eq!(files(&plan), ["/E.php"]);
        let reason = |file: &str| {
            let found = plan.left_out.iter().find(|out| out.file == file);
            found.map(|out| &*out.reason).unwrap_or_default()
        };
        assert_eq!(reason("/A.php"), "it needs `b` of /B.php, which is left out");
        assert_eq!(reason("/B.php"), "it needs `c` of /C.php, which is left out");
        assert_eq!(reason("/C.php"), "a warning");
        assert_eq!(reason("/d.php"), "`d` is also declared by /D.php");
        assert_eq!(reason("/D.php"), "`d` is also declared by /d.php");
        assert_eq!(reason("/g.php"), "`n\\g` is also declared by /G.php");
        assert!(reason("/var/cache/prod/E.php").contains("part of a cache"));
        assert!(reason("phar:///x.phar/F.php").contains("no file"));
        assert_eq!(reason("/empty.php"), "it declares nothing");
    }

    #[test]
    fn unreadable_file_is_left_out_with_its_error() {
        let one = Used { file: "/a.php".into(), share: 1.0, outline: Err("not found".into()) };
        assert_eq!(plan(&[one], 0.5, &BTreeMap::new()).left_out[0].reason, "not found");
    }
}
