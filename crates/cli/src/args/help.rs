//! Table of settings → clap's arguments, with detailed help.

use clap::{Arg, ArgAction};
use samovar_config::setting::{Preset, Setting};

pub(crate) const SAMOVAR: &str = "\
Examples:
  samovar serve                       serve public/ (or .) on http://127.0.0.1:8080
  samovar serve public/index.php      serve one script for all paths without a file
  samovar serve --listen :80 -w 16    listen on all interfaces, run 16 workers
  samovar check                       check whether a server would start, for scripts and deploys
  samovar routes /uploads/a.php       show the rules that match a path, and the response
  samovar compare --urls / /about     compare the checkpoint with scripts: responses and CPU time
  samovar spy --all                   show the functions that all PHP processes run
  samovar profile                     show which functions take the time of requests
  samovar calls                       show callers and callees in traced requests
  samovar boot                        show the cost of the boot, and the files requests still load
  samovar status --json               show the state of the running server
  samovar reload                      after a deploy: boot again, without losing requests
  samovar upgrade                     replace the server, without losing requests
  samovar stop                        finish pending requests, then stop

samovar serve --help explains every setting.";

pub(crate) const RELOAD: &str = "\
Reads the settings and php.ini again, and resolves links in the path of the application again.
The old generation keeps serving, and the command fails with exit code 1, if:
  - the settings are invalid, or the application does not boot
  - the front controller is gone, or no longer calls Samovar\\checkpoint() or Samovar\\serve()
  - the probe gets a server error that the old generation did not give
--force takes over if the application boots at all. See docs/guide/deploy.md.";

pub(crate) const UPGRADE: &str = "\
The running server starts the new one with its own arguments and passes its listeners to it. It
keeps serving until the new server has booted, then finishes its pending requests and exits.
If the new server does not start, nothing changes, and this command prints the reason and exits
with 1. See docs/guide/deploy.md.";

pub(crate) const TOP: &str = "\
Keys: q quits, Tab or 1 to 3 select the table, left and right select the sort column, r reverses
the order, up and down scroll, p pauses. Rates cover the time between two samples, percentiles the
time since the start. If the output is not a terminal, the table is printed once; --json prints one
line. See docs/guide/observability.md.";

pub(crate) const CHECK: &str = "\
Accepts the flags of samovar serve, and checks files with the rights that the server would have.
Exit codes: 0 a server would start, 1 it would not, 2 wrong flags or settings.";

pub(crate) const ROUTES: &str = "\
Accepts the flags of samovar serve after the URL, and reads the same file. Each `match` line is a
[[location]] that matches, with its line in the file. Each `rule` line is a setting that applies.
See docs/guide/locations.md.";

pub(crate) const SERVE_SHORT: &str =
    "--help explains each setting; `samovar.toml` and SAMOVAR_... variables set them too.";

pub(crate) const SERVE: &str = "\
Each setting can be given on the command line, in the environment or in the file, in this order of
precedence. The file is samovar.toml in the working directory, if it exists; --config or
SAMOVAR_CONFIG selects another one.

Examples:
  samovar serve
      Serves public/ if that folder exists, else the working directory.
  samovar serve public/index.php
      Serves public/; index.php serves all paths without a file.
  samovar serve --listen 127.0.0.1:0
      Listens on a free port; the log line `listening on` shows it.
  samovar serve --php-binary 8.2 -d memory_limit=256M -d opcache.validate_timestamps=0
      Runs samovar-php8.2 with two directives that override php.ini.
  samovar serve --listen :80 --trusted-proxies 10.0.0.0/8 --access-log - --access-log-format json
      Runs behind a load balancer, with a log line for each request on stdout.

SIGTERM and SIGINT, like samovar stop, let requests in flight finish (--drain-timeout). SIGUSR2
reloads, SIGRTMIN upgrades, SIGUSR1 opens the logs again.
Exit codes: 0 stopped by request, 1 failed, 2 wrong flags or settings.";

/// Returns the argument of a setting. clap gets no defaults: they are applied when the sources are
/// merged.
pub(crate) fn argument(setting: &'static Setting) -> Arg {
    let argument = Arg::new(setting.flag)
        .value_name(setting.value)
        .action(if setting.positional { ArgAction::Set } else { ArgAction::Append })
        .help(short_help(setting))
        .long_help(long_help(setting))
        .help_heading((!setting.positional).then(|| setting.group.title()));
    let argument = if setting.bare {
        argument.num_args(0..=1).require_equals(true).default_missing_value("true")
    } else {
        argument
    };
    match setting.short {
        _ if setting.positional => argument,
        Some(short) => argument.long(setting.flag).short(short),
        None => argument.long(setting.flag),
    }
}

fn short_help(setting: &Setting) -> String {
    let default = match setting.default {
        Preset::Text(text) => format!(" [default: {text}]"),
        Preset::Derived(how) if setting.positional => format!(" [default: {}]", plain(how)),
        Preset::Derived(_) => String::new(),
    };
    format!("{}{default}", setting.doc)
}

fn long_help(setting: &Setting) -> String {
    let (Preset::Text(default) | Preset::Derived(default)) = setting.default;
    let sentences = format!("{}. {}", setting.doc, setting.long);
    let takes = setting.kind.allowed();
    let facts = format!("Takes {takes}.\nDefault: {default}");
    let names = format!("Environment: {}. File: {}.", setting.env(), setting.key);
    plain(&format!("{}\n\n{facts}\n{names}", sentences.trim_end()))
}

/// Removes backticks: they are for the manual, and only distract in a terminal.
fn plain(text: &str) -> String {
    text.replace('`', "")
}
