//! Rules for differences between this machine and the reader's, by name. All other commands run
//! unchanged.
//!
//! | rule | commands that begin with | action |
//! |---|---|---|
//! | packages | `sudo apt-get install` | checks that all are installed, with the PHP under test |
//! | checkout | `git clone` | creates a folder `samovar` with the examples and the built programs |
//! | make | `make run` | runs the command of the Makefile's target; everything is built already |
//! | composer | `composer require` | uses the libraries of Debian's packages (`composer.rs`) |
//! | nginx | `sudo systemctl reload nginx` | starts a separate nginx with the sites of the page |
//! | unit | `sudo systemctl enable --now` | starts the command of the unit file in the background |
//!
//! Of `mariadb-server` only the programs are required: the package would start a service.

use crate::guides::background::Background;
use crate::guides::composer;
use crate::guides::walk::{Outcome, Walk};
use samovar_testkit::{php, workspace};
use std::fmt::Write as _;
use std::process::Command;

/// The pages name PHP of Debian 12; packages of other versions have the same names.
const PAGES_PHP: &str = "8.2";

type Rule = fn(&mut Walk, &str) -> Result<Outcome, String>;

const RULES: &[(&str, Rule)] = &[
    ("sudo apt-get install", packages),
    ("git clone", checkout),
    ("make run", make_run),
    ("make build", |_, _| Ok(Outcome::good(""))),
    ("composer require", composer::require),
    ("sudo systemctl reload nginx", nginx),
    ("sudo systemctl enable --now", unit),
];

/// Applies the rule for `command`. Returns `None` if there is no rule; the command is then run.
pub(crate) fn apply(walk: &mut Walk, command: &str) -> Option<Result<Outcome, String>> {
    let (prefix, rule) = RULES.iter().find(|(prefix, _)| command.starts_with(prefix))?;
    let arguments = command[prefix.len()..].replace("\\\n", " ");
    Some(rule(walk, arguments.trim()))
}

fn packages(_: &mut Walk, names: &str) -> Result<Outcome, String> {
    for name in names.split_whitespace().filter(|name| !name.starts_with('-')) {
        let name = if name == "mariadb-server" { "mariadb-server-core" } else { name };
        let name = name.replace(PAGES_PHP, php::version());
        let query = Command::new("dpkg-query").args(["-W", "-f", "${Status}", &name]).output();
        let query = query.map_err(|e| format!("dpkg-query: {e}"))?;
        if !query.stdout.ends_with(b"ok installed") {
            return Err(format!(
                "the package `{name}` is not installed: scripts/packages-test.txt"
            ));
        }
    }
    Ok(Outcome::good(""))
}

fn checkout(walk: &mut Walk, _: &str) -> Result<Outcome, String> {
    let to = "/home/samovar";
    for profile in ["quick", "release"] {
        let built = walk.place.path(to).join("target").join(profile);
        std::fs::create_dir_all(&built).map_err(|e| format!("`{}`: {e}", built.display()))?;
        let server = format!("{to}/target/{profile}/samovar");
        walk.place.link(&server, &samovar_testkit::binary());
    }
    walk.place.install(&workspace().join("examples/hello"), &format!("{to}/examples/hello"));
    walk.folder = walk.place.path(to);
    Ok(Outcome::good(""))
}

fn make_run(walk: &mut Walk, _: &str) -> Result<Outcome, String> {
    let makefile = std::fs::read_to_string(workspace().join("Makefile"));
    let makefile = makefile.map_err(|e| format!("Makefile: {e}"))?;
    let recipe = makefile.lines().skip_while(|line| !line.starts_with("run:"));
    let command = recipe.skip(1).find(|line| line.contains("/samovar serve "));
    let command = command.ok_or("the Makefile's target `run` starts no server")?.trim();
    walk.serve(command, &[])?;
    Ok(Outcome::good(walk.background.last().map(Background::log).unwrap_or_default()))
}

fn nginx(walk: &mut Walk, _: &str) -> Result<Outcome, String> {
    let place = walk.place;
    let file = |path: &str| place.path(path).display().to_string();
    let mut config = format!(
        "daemon off; master_process off; pid {}; error_log stderr notice;\nevents {{}}\nhttp {{\n",
        file("/tmp/nginx.pid")
    );
    let _ = writeln!(config, "access_log off; include /etc/nginx/mime.types;");
    for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"] {
        let _ = writeln!(config, "{kind}_temp_path {};", file(&format!("/tmp/nginx-{kind}")));
    }
    let _ = writeln!(config, "include {}/*;\n}}", file("/etc/nginx/sites-enabled"));
    let path = file("/tmp/nginx.conf");
    std::fs::write(&path, config).map_err(|e| format!("`{path}`: {e}"))?;
    let command = format!("exec /usr/sbin/nginx -e stderr -c {path}");
    walk.start(&command, |log| log.contains("start worker") || log.contains("using the"))?;
    Ok(Outcome::good(""))
}

fn unit(walk: &mut Walk, name: &str) -> Result<Outcome, String> {
    let path = walk.place.path(&format!("/etc/systemd/system/{name}.service"));
    let text = std::fs::read_to_string(&path).map_err(|e| format!("`{}`: {e}", path.display()))?;
    let values = |key: &str| -> Vec<String> {
        let pairs = text.lines().filter_map(|line| line.split_once('='));
        pairs.filter(|(name, _)| *name == key).map(|(_, value)| value.to_owned()).collect()
    };
    let mut command = String::new();
    for folder in values("WorkingDirectory") {
        let _ = writeln!(command, "cd '{folder}'");
    }
    for variable in values("Environment") {
        let _ = writeln!(command, "export {variable}");
    }
    match &values("ExecStart")[..] {
        [start] => {
            let _ = write!(command, "exec {start}");
        }
        _ => return Err(format!("`{}` has not one ExecStart", path.display())),
    }
    walk.start(&command, |log| log.contains("listening on http://"))?;
    Ok(Outcome::good(""))
}
