//! Completion scripts. clap's generator writes them; this file adds the values of settings.

use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, ValueHint};
use clap_complete::{Shell, generate};
use samovar_config::setting::Kind;
use samovar_config::table::SETTINGS;

/// Shells with a completion script.
pub(super) const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];

/// Placeholders of values that are paths.
const PATHS: [&str; 5] = ["FILE", "PATH", "DIR", "FOLDER", "SOCKET"];
/// Values of a switch.
const SWITCH: [&str; 2] = ["true", "false"];

/// Returns the script for one of [`SHELLS`].
pub(super) fn script(shell: &str, all: Command) -> String {
    let shell = match shell {
        "zsh" => Shell::Zsh,
        "fish" => Shell::Fish,
        _ => Shell::Bash,
    };
    let mut all = all.mut_subcommands(|command| visible(&command).mut_args(with_values));
    let mut script = Vec::new();
    generate(shell, &mut all, "samovar", &mut script);
    String::from_utf8(script).unwrap_or_default()
}

/// Removes hidden flags, which the generator does not skip.
fn visible(command: &Command) -> Command {
    let mut visible = Command::new(command.get_name().to_owned())
        .args(command.get_arguments().filter(|argument| !argument.is_hide_set()).cloned());
    if let Some(about) = command.get_about() {
        visible = visible.about(about.clone());
    }
    visible.hide(command.is_hide_set())
}

fn with_values(argument: Arg) -> Arg {
    let setting = SETTINGS.iter().find(|setting| setting.flag == argument.get_id().as_str());
    match setting.map(|setting| setting.kind) {
        Some(Kind::Switch(_)) => argument.value_parser(PossibleValuesParser::new(SWITCH)),
        Some(Kind::Word { words, .. }) => argument.value_parser(PossibleValuesParser::new(words)),
        _ if is_path(&argument) => argument.value_hint(ValueHint::AnyPath),
        _ => argument,
    }
}

fn is_path(argument: &Arg) -> bool {
    let names = argument.get_value_names().unwrap_or_default();
    names.iter().any(|name| name.split('|').any(|name| PATHS.contains(&name)))
}
