//! Checks that docs/internals/decisions/dependencies.md gives a reason for each crate that we use,
//! and lists no others.

use crate::licences;
use crate::tree::{none, only, read};
use samovar_testkit::workspace;
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Command;

#[test]
fn dependency_document_lists_exactly_the_used_crates() {
    let used = direct();
    let listed: BTreeSet<_> = listed(&read("docs/internals/decisions/dependencies.md"));
    none("without a line in docs/internals/decisions/dependencies.md", &only(&used, &listed));
    none("in docs/internals/decisions/dependencies.md, and not used", &only(&listed, &used));
}

#[test]
fn workspace_dependencies_are_all_used() {
    let unused = only(&declared(&read("Cargo.toml")), &direct());
    none("in Cargo.toml, and used by no crate", &unused);
}

/// The checks that cargo-deny performs where it is installed, for every crate that is linked or
/// used in the build.
#[test]
fn dependencies_have_allowed_licences_and_sources() {
    let deny = read("deny.toml");
    let allowed = licences::allowed(&deny);
    let whole = metadata(&["--filter-platform", "x86_64-unknown-linux-gnu"]);
    let mut wrong = Vec::new();
    for package in external(&whole) {
        let name = format!("{} {}", text(package, "name"), text(package, "version"));
        let licence = text(package, "license");
        if !licences::is_allowed(licence, &allowed) {
            wrong.push(format!("{name}: licence `{licence}`"));
        }
        if text(package, "source") != CRATES_IO {
            wrong.push(format!("{name}: from {}", text(package, "source")));
        }
    }
    none("dependencies that deny.toml does not allow", &wrong);
}

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

fn metadata(arguments: &[&str]) -> Value {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let told = Command::new(cargo)
        .current_dir(workspace())
        .args(["metadata", "--format-version", "1", "--locked"])
        .args(arguments)
        .output()
        .expect("cargo runs");
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    serde_json::from_slice(&told.stdout).expect("cargo's JSON")
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn external(metadata: &Value) -> impl Iterator<Item = &Value> {
    let all = metadata["packages"].as_array().expect("packages");
    all.iter().filter(|package| !package["source"].is_null())
}

/// Crates that the workspace's crates depend on directly.
fn direct() -> BTreeSet<String> {
    let ours = metadata(&["--no-deps"]);
    let packages = ours["packages"].as_array().expect("packages");
    let named = packages.iter().flat_map(|p| p["dependencies"].as_array().expect("dependencies"));
    named.filter(|d| !d["source"].is_null()).map(|d| text(d, "name").to_owned()).collect()
}

/// The keys of `[workspace.dependencies]` that are not our own crates.
fn declared(manifest: &str) -> BTreeSet<String> {
    let (_, rest) = manifest.split_once("[workspace.dependencies]").expect("the table");
    let table = rest.lines().skip(1).take_while(|line| !line.starts_with('['));
    let keys =
        table.filter(|line| !line.contains("path = ")).filter_map(|line| line.split_once(" = "));
    keys.map(|(key, _)| key.to_owned()).collect()
}

/// The first column of the table. A remark in parentheses may follow a name.
fn listed(page: &str) -> BTreeSet<String> {
    let rows = page.lines().filter_map(|line| line.strip_prefix("| ")).skip(1);
    rows.filter_map(|row| row.split_once(" |"))
        .flat_map(|(names, _)| names.split(", "))
        .filter_map(|name| name.split(" (").next())
        .map(str::to_owned)
        .collect()
}
