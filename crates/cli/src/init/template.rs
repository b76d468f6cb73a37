//! The settings file for a project.

use super::project::{Framework, Project};
use std::fmt::Write as _;

/// Returns the text of samovar.toml.
pub(super) fn settings(project: &Project) -> String {
    let mut text = format!(
        "# Settings of Samovar for {}, written by samovar init.\n\
         # The manual page samovar.toml(5) explains all settings. `samovar check` checks this\n\
         # file, and `samovar reload` applies it without losing requests.\n\n",
        project.framework.title()
    );
    let root = toml_string(&project.root.to_string_lossy());
    let about = match project.framework {
        Framework::Scripts => "The public folder. Each path is a file or a script in it.",
        _ => "The public folder. Its index.php handles all paths for which no file exists.",
    };
    // Writing to a string cannot fail.
    let _ = write!(text, "# {about}\nroot = {root}\n\n{LISTEN}\n{WORKERS}\n");
    if !project.private.is_empty() {
        let patterns: Vec<_> = project.private.iter().map(|name| pattern(name)).collect();
        let _ = write!(
            text,
            "# The project's own folder is public: these files do not exist for visitors.\n\
             deny_files = [{}]\n\n",
            patterns.join(", ")
        );
    }
    text.push_str(PHP);
    if project.framework == Framework::WordPress {
        let uploads = toml_string(project.uploads);
        let about = "# Uploaded files are sent, and never run.";
        let _ = write!(text, "\n{about}\n[[location]]\npath = {uploads}\nscripts = false\n");
    }
    text.push_str(match project.framework {
        Framework::Symfony if project.has_messenger => MESSENGER,
        Framework::Laravel => QUEUE,
        _ => "",
    });
    text
}

const LISTEN: &str = "\
# Reachable only from this machine. \":80\" is reachable from everywhere; with
# acme.domains = [\"example.org\"] the server obtains certificates and listens on ports 80 and 443.
listen = [\"127.0.0.1:8080\"]
";

const WORKERS: &str = "\
# One worker per core. A worker runs one request at a time, so requests that wait for databases need
# more; a range follows the load.
#workers = \"2..16\"
";

const PHP: &str = "\
# Directives that override php.ini.
[php]
#memory_limit = \"256M\"
# In production, scripts change only at a deploy, and `samovar reload` reads them again.
#opcache.validate_timestamps = false
";

const MESSENGER: &str = "
# Consumers of messages run next to the server, and get the new code at each reload.
#[[console]]
#command = \"messenger:consume async --time-limit=3600\"
#count = 2
";

const QUEUE: &str = "
# Queue workers and the scheduler run next to the server, and get the new code at each reload.
#[[console]]
#command = \"queue:work --max-time=3600\"
#count = 2
#[[console]]
#name = \"scheduler\"
#command = \"schedule:work\"
";

/// Returns the pattern of `deny_files` for a file or a folder, as a TOML string.
fn pattern(name: &str) -> String {
    if name.contains('.') {
        toml_string(&format!("/{name}"))
    } else {
        toml_string(&format!("/{name}/*"))
    }
}

fn toml_string(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::super::sample::Sample;
    use super::*;
    use samovar_config::Sources;

    /// The written file is valid, and so is the file with all commented settings.
    #[test]
    fn written_settings_are_valid() {
        let wordpress = [("wp-load.php", ""), ("index.php", ""), ("vendor/a.php", "")];
        let json = r#"{"require": {"symfony/framework-bundle": "*", "symfony/messenger": "*"}}"#;
        let symfony = [("composer.json", json), ("public/index.php", ""), ("bin/console", "")];
        let laravel = [("artisan", ""), ("public/index.php", "")];
        for (name, files) in [
            ("wp", &wordpress[..]),
            ("messages", &symfony),
            ("queue", &laravel),
            ("one", &[("index.php", "")]),
        ] {
            let sample = Sample::new(name, files);
            let text = settings(&Project::of(&sample.0).expect("a project"));
            let is_setting = |line: &str| {
                line.strip_prefix('#')
                    .filter(|rest| !rest.is_empty() && !rest.starts_with(' '))
                    .map(str::to_owned)
            };
            let all: Vec<_> = text
                .lines()
                .map(|line| is_setting(line).unwrap_or_else(|| line.to_owned()))
                .collect();
            for text in [&text, &all.join("\n")] {
                let file = sample.0.join("samovar.toml");
                std::fs::write(&file, text).expect("our own folder");
                let resolved = Sources::new(&sample.0).resolve();
                assert!(resolved.is_ok(), "{name}: {resolved:?}\n{text}");
            }
            let long = text.lines().find(|line| line.chars().count() > 100);
            assert_eq!(long, None);
        }
    }
}
