//! The steps of `samovar dev trust`: which stores of certificates exist, and the commands that add
//! the authority to them. Runs nothing.

use std::fmt::{self, Display};
use std::path::{Path, PathBuf};

/// Maximum number of databases of browsers.
pub(super) const DATABASES_MAX: usize = 32;

/// Stores of systems: the folder for own authorities, and the command that reads it, with the
/// arguments after a removal. Debian, then Red Hat.
const STORES: [(&str, &str, &[&str]); 2] = [
    ("/usr/local/share/ca-certificates", "update-ca-certificates", &["--fresh"]),
    ("/etc/pki/ca-trust/source/anchors", "update-ca-trust", &[]),
];

/// State of the machine that the steps depend on.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// The authority's certificate.
    pub(super) authority: PathBuf,
    /// Its name in databases.
    pub(super) name: String,
    pub(super) user_id: u32,
    /// Programs of this module that exist.
    pub(super) programs: Vec<&'static str>,
    /// Folders of this module that exist.
    pub(super) folders: Vec<PathBuf>,
    /// Folders with a certificate database (`cert9.db`) of this user.
    pub(super) databases: Vec<PathBuf>,
    /// Whether the authority is to be removed.
    pub(super) removes: bool,
}

/// A command, as its words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) words: Vec<String>,
    /// Whether only root may run it.
    pub(super) needs_root: bool,
    /// Whether a failure means only that there is nothing to remove.
    pub(super) may_fail: bool,
}

impl Display for Step {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, word) in self.words.iter().enumerate() {
            let gap = if i == 0 { "" } else { " " };
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@".contains(c);
            if !word.is_empty() && word.chars().all(is_plain) {
                write!(to, "{gap}{word}")?;
            } else {
                write!(to, "{gap}'{}'", word.replace('\'', "'\\''"))?;
            }
        }
        Ok(())
    }
}

/// The steps, and the stores that need a program which is missing.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TrustPlan {
    pub(super) steps: Vec<Step>,
    pub(super) hints: Vec<String>,
}

pub(super) fn folders() -> impl Iterator<Item = &'static str> {
    STORES.iter().map(|(folder, ..)| *folder)
}

pub(super) fn programs() -> impl Iterator<Item = &'static str> {
    STORES.iter().map(|(_, program, _)| *program).chain(["certutil"])
}

pub(super) fn plan(facts: &Facts) -> TrustPlan {
    let mut plan = TrustPlan::default();
    let has = |program: &str| facts.programs.contains(&program);
    for (folder, program, after_removal) in STORES {
        if facts.folders.iter().any(|known| known == Path::new(folder)) && has(program) {
            // Each user of the machine has an authority of their own.
            let file = format!("{folder}/samovar-dev-{}.crt", facts.user_id);
            plan.steps.push(if facts.removes {
                step(&["rm", "-f", &file], true)
            } else {
                step(&["install", "-m", "644", &text(&facts.authority), &file], true)
            });
            let arguments = if facts.removes { after_removal } else { &[] };
            plan.steps.push(step(&[&[program], arguments].concat(), true));
        }
    }
    if plan.steps.is_empty() {
        plan.hints.push(
            "the system has no store of certificates: install the package ca-certificates"
                .to_owned(),
        );
    }
    for database in &facts.databases {
        if !has("certutil") {
            plan.hints.push(format!(
                "the browser with the database {} has its own list: install libnss3-tools (Debian) \
                 or nss-tools, and run this again",
                database.display()
            ));
            continue;
        }
        let place = format!("sql:{}", database.display());
        // Adding a second certificate with one name fails, so an earlier one is removed first.
        let mut remove = step(&["certutil", "-d", &place, "-D", "-n", &facts.name], false);
        remove.may_fail = true;
        plan.steps.push(remove);
        if !facts.removes {
            let file = text(&facts.authority);
            let add = ["certutil", "-d", &place, "-A", "-t", "C,,", "-n", &facts.name, "-i", &file];
            plan.steps.push(step(&add, false));
        }
    }
    plan
}

fn step(words: &[&str], needs_root: bool) -> Step {
    let words = words.iter().map(|word| (*word).to_owned()).collect();
    Step { words, needs_root, may_fail: false }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        Facts {
            authority: "/home/ann/.local/share/samovar/dev/authority.pem".into(),
            name: "Samovar development authority of ann".to_owned(),
            user_id: 1000,
            programs: vec!["update-ca-certificates", "certutil"],
            folders: vec!["/usr/local/share/ca-certificates".into()],
            databases: vec!["/home/ann/my nss".into()],
            removes: false,
        }
    }

    fn lines(facts: &Facts) -> Vec<String> {
        let plan = plan(facts);
        plan.steps.iter().map(ToString::to_string).chain(plan.hints).collect()
    }

    #[test]
    fn system_and_browsers_get_the_authority() {
        let nss = "certutil -d 'sql:/home/ann/my nss'";
        let name = "-n 'Samovar development authority of ann'";
        let pem = "/home/ann/.local/share/samovar/dev/authority.pem";
        let file = "/usr/local/share/ca-certificates/samovar-dev-1000.crt";
        assert_eq!(
            lines(&facts()),
            [
                format!("install -m 644 {pem} {file}"),
                "update-ca-certificates".to_owned(),
                format!("{nss} -D {name}"),
                format!("{nss} -A -t C,, {name} -i {pem}"),
            ]
        );
        let removal = lines(&Facts { removes: true, ..facts() });
        assert_eq!(
            removal,
            [
                format!("rm -f {file}"),
                "update-ca-certificates --fresh".to_owned(),
                format!("{nss} -D {name}"),
            ]
        );
        let needs_root: Vec<_> = plan(&facts()).steps.iter().map(|step| step.needs_root).collect();
        assert_eq!(needs_root, [true, true, false, false]);
    }

    #[test]
    fn missing_programs_give_hints() {
        let none = Facts { programs: Vec::new(), ..facts() };
        let found = lines(&none);
        assert!(found[0].contains("install the package ca-certificates"), "{found:?}");
        assert!(found[1].contains("/home/ann/my nss") && found[1].contains("libnss3-tools"));
        let red_hat = Facts {
            programs: vec!["update-ca-trust"],
            folders: vec!["/etc/pki/ca-trust/source/anchors".into()],
            databases: Vec::new(),
            ..facts()
        };
        assert_eq!(lines(&red_hat)[1], "update-ca-trust");
    }

    #[test]
    fn words_are_quoted_for_shells() {
        let step = step(&["certutil", "it's; rm", ""], false);
        assert_eq!(step.to_string(), "certutil 'it'\\''s; rm' ''");
    }
}
