//! Manual pages: samovar(1) from the definition of the commands, samovar.toml(5) from the page of
//! all settings.

use super::roff::Roff;
use clap::{Arg, Command};
use samovar_config::table::SETTINGS;

/// The pages.
pub(super) const PAGES: [&str; 2] = ["samovar", "samovar.toml"];

/// Returns one of [`PAGES`].
pub(super) fn page(name: &str, all: &Command) -> String {
    if name == PAGES[1] { settings() } else { commands(all) }
}

/// Paragraphs of samovar(1) before the commands.
const DESCRIPTION: &str = "\
Samovar serves PHP applications over HTTP. A front, written in Rust, accepts the requests; worker \
processes with an embedded PHP run the scripts. It replaces nginx and php-fpm.

Settings are flags, SAMOVAR_... variables, or keys of samovar.toml. They are described in \
samovar.toml(5).";

const FILES: [(&str, &str); 4] = [
    ("samovar.toml", "Settings of the server, in the working directory, or named by --config."),
    ("/etc/samovar/samovar.toml", "Settings of the service samovar."),
    ("/etc/samovar/NAME.toml", "Settings of the service samovar@NAME."),
    ("/usr/libexec/samovar/samovar-php8.2", "Worker for PHP 8.2, from the package samovar-php8.2."),
];

const ENVIRONMENT: [(&str, &str); 2] = [
    ("SAMOVAR_CONFIG", "Name of the settings file."),
    ("SAMOVAR_...", "Each setting has a variable, such as SAMOVAR_WORKERS for workers."),
];

const EXIT: [(&str, &str); 3] = [
    ("0", "Success. The server was stopped by request."),
    ("1", "Failure, with a message and a hint."),
    ("2", "Wrong flags or settings."),
];

fn commands(all: &Command) -> String {
    let mut page = Roff::new("samovar", 1, "application server for PHP");
    page.section("SYNOPSIS");
    page.literal("samovar COMMAND [OPTIONS]\nsamovar serve [PATH] [OPTIONS]\nsamovar --version");
    page.section("DESCRIPTION");
    page.paragraphs(DESCRIPTION);
    page.section("COMMANDS");
    for command in all.get_subcommands().filter(|command| !command.is_hide_set()) {
        document(&mut page, "samovar", command);
    }
    for (title, entries) in
        [("FILES", &FILES[..]), ("ENVIRONMENT", &ENVIRONMENT), ("EXIT STATUS", &EXIT)]
    {
        page.section(title);
        for (term, text) in entries {
            page.entry(term, text);
        }
    }
    page.section("SEE ALSO");
    page.paragraphs("samovar.toml(5), systemd.service(5)");
    page.finish()
}

/// Adds a command and its subcommands. `parent` is the command line before its name. The depth is
/// that of the definition.
fn document(page: &mut Roff, parent: &str, command: &Command) {
    let values = command.get_positionals().map(|argument| {
        let name = value(argument);
        if argument.is_required_set() { format!(" {name}") } else { format!(" [{name}]") }
    });
    let values: String = values.collect();
    let name = format!("{parent} {}", command.get_name());
    page.subsection(&format!("{name}{values}"));
    if let Some(about) = command.get_about() {
        page.paragraphs(&format!("{about}."));
    }
    let is_setting =
        |argument: &&Arg| SETTINGS.iter().any(|setting| argument.get_id() == setting.flag);
    let shown = command.get_arguments().filter(|argument| !argument.is_hide_set());
    let (settings, own): (Vec<_>, Vec<_>) =
        shown.partition(|argument| is_setting(argument) && argument.get_help_heading().is_some());
    for argument in own {
        let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
        page.entry(&term(argument), &format!("{help}."));
    }
    if !settings.is_empty() {
        page.entry("--SETTING VALUE", "Each setting is a flag: see samovar.toml(5).");
    }
    let after = command.get_after_long_help().or_else(|| command.get_after_help());
    if let Some(after) = after {
        page.help_text(&after.to_string());
    }
    for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        document(page, &name, command);
    }
}

fn value(argument: &Arg) -> String {
    let names = argument.get_value_names().unwrap_or_default();
    names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

/// Returns the flags with their value, such as `-c, --config FILE`.
fn term(argument: &Arg) -> String {
    let short = argument.get_short().map(|short| format!("-{short}"));
    let long = argument.get_long().map(|long| format!("--{long}"));
    let flags = short.into_iter().chain(long).collect::<Vec<_>>().join(", ");
    let takes_value = argument.get_action().takes_values();
    match (flags.is_empty(), takes_value) {
        (true, _) => value(argument),
        (false, true) => format!("{flags} {}", value(argument)),
        (false, false) => flags,
    }
}

fn settings() -> String {
    let mut page = Roff::new("samovar.toml", 5, "settings of samovar");
    page.section("DESCRIPTION");
    page.markdown(&samovar_config::docs::settings_md());
    page.section("SEE ALSO");
    page.paragraphs("samovar(1)");
    page.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_page_has_every_subcommand() {
        let verify = Command::new("verify").arg(Arg::new("against").long("against"));
        let plan = Command::new("plan").subcommand(verify).subcommand(Command::new("x").hide(true));
        let page = page("samovar", &Command::new("samovar").subcommand(plan));
        for expected in ["samovar plan", "samovar plan verify", "against"] {
            assert!(page.contains(expected), "{expected}: {page}");
        }
        assert!(!page.contains("plan x"), "{page}");
    }

    #[test]
    fn settings_page_has_every_setting() {
        let page = page("samovar.toml", &Command::new("samovar"));
        for setting in SETTINGS {
            let key = setting.key.replace('-', "\\-");
            assert!(page.contains(&key), "{key}");
            let doc = setting.doc.split(['`', '\\', '\'', '-']).next().unwrap_or_default();
            assert!(page.contains(doc.trim()), "{doc}");
        }
    }
}
