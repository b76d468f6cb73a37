//! table of settings → clap's arguments, with help worth reading.

use clap::{Arg, ArgAction};
use samovar_config::setting::{Preset, Setting};

pub(crate) const SAMOVAR: &str = "\
Examples:
  samovar serve                       public/ (or .) on http://127.0.0.1:8080
  samovar serve public/index.php      one script answers what no file answers
  samovar serve --listen :80 -w 16    all interfaces, 16 workers
  samovar check                       would it start? for scripts and deploys
  samovar routes /uploads/a.php       which rules does a path meet, what is answered?
  samovar compare --urls / /about     does the checkpoint answer as scripts do, at what CPU?
  samovar spy --all                   what do the PHP processes of this machine do?
  samovar profile                     where does the time of its requests go?
  samovar calls                       who calls what in traced requests, how often?
  samovar boot                        what does its boot take, what do requests still load?
  samovar status --json               what the running server does
  samovar reload                      after a deploy: boot anew, lose no request
  samovar upgrade                     a new samovar takes over, and no request is lost
  samovar stop                        let it finish what it has begun, then end it

samovar serve --help explains every setting.";

pub(crate) const RELOAD: &str = "\
Settings and php.ini are read again, and a link in the path of the application is followed again.
If something is wrong with them, or the application does not boot, or has lost its front controller
or the call that had it booted, or answers the probe with a server error where the old one does not,
the old one goes on as it was, and this command says why and ends with 1. --force lets any take
over that boots. See docs/guide/operations.md.";

pub(crate) const UPGRADE: &str = "\
The running server starts the new one with the arguments that it was started with, hands it its
listeners, and goes on until that has booted; then it finishes what it has begun and ends. What goes
wrong before changes nothing: this command says why, and ends with 1. See docs/guide/operations.md.";

pub(crate) const TOP: &str = "\
Keys: q ends, Tab or 1 to 3 choose the table, left and right the column to sort by, r reverses,
up and down scroll, p pauses. Rates are of the time between two looks, percentiles since the start.
Where the output is no terminal, it is printed once; --json prints one line. See
docs/guide/observability.md.";

pub(crate) const CHECK: &str = "\
Takes what samovar serve takes, and looks at files with the rights that the server would have.
Exit codes: 0 a server would start, 1 it would not, 2 wrong flags or settings.";

pub(crate) const ROUTES: &str = "\
Takes what samovar serve takes, behind the URL, and reads the same file. Each line that begins with
`fits` names a [[location]] by its line of the file, each `rule` what counts of them. See
docs/guide/locations.md.";

pub(crate) const SERVE_SHORT: &str = "\
--help says more about each setting; `samovar.toml` and SAMOVAR_... variables set them too.";

pub(crate) const SERVE: &str = "\
Each setting can be given on the command line, in the environment or in the file; the first of
these that names it holds. The file is samovar.toml in the working directory, if it is there, or
what --config or SAMOVAR_CONFIG names.

Examples:
  samovar serve
      Serves public/ if that folder exists, else the working directory.
  samovar serve public/index.php
      Serves public/; index.php answers what no file answers.
  samovar serve --listen 127.0.0.1:0
      Any free port; the line that says the server is ready names it.
  samovar serve --php-binary 8.2 -d memory_limit=256M -d opcache.validate_timestamps=0
      Runs on samovar-php8.2 with two directives over its php.ini.
  samovar serve --listen :80 --trusted-proxies 10.0.0.0/8 --access-log - --access-log-format json
      Behind a load balancer, with a log line for each request on stdout.

SIGTERM and SIGINT, like samovar stop, let requests in flight finish (--drain-timeout). SIGUSR2 is
samovar reload, SIGRTMIN is samovar upgrade, SIGUSR1 opens the logs again.
Exit codes: 0 stopped as asked, 1 failed, 2 wrong flags or settings.";

/// The argument of a setting. Defaults are not clap's: they come in where the sources meet.
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

/// Without the quotes, which are for the manual: here they would only catch the eye.
fn plain(text: &str) -> String {
    text.replace('`', "")
}
