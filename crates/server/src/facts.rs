//! Facts about a server that does not run: settings, machine, and a PHP that is started only to
//! answer. For `samovar doctor`.

use crate::control::facts::machine;
use crate::serve::advice;
use crate::{binary, engine};
use anyhow::Result;
use samovar_channel::{PhpQuestion, PhpResponse};
use samovar_config::Settings;
use samovar_wire::{FactsResponse, PhpFacts};

/// Facts, and the reasons why facts are missing.
#[derive(Debug)]
pub struct Found {
    /// The facts.
    pub facts: FactsResponse,
    /// Reasons why PHP's facts are missing, by pool.
    pub missing: Vec<String>,
}

/// Returns the facts about a server with these settings. Nothing is served or changed.
#[must_use]
pub fn of_settings(settings: &Settings) -> Found {
    let is_one = settings.pools.is_empty();
    let (mut php, mut missing) = (Vec::new(), Vec::new());
    for (name, own) in crate::pools::settings(settings) {
        let pool = if is_one { String::new() } else { name.to_owned() };
        let found = ask(own).unwrap_or_else(|error| {
            missing.push(format!("{error:#}"));
            PhpFacts::default()
        });
        let text = |path: &std::path::Path| path.to_str().map(str::to_owned).unwrap_or_default();
        let script = own.front_controller.as_deref().map(text).unwrap_or_default();
        php.push(PhpFacts { pool, root: text(&own.root), script, ..found });
    }
    let facts = FactsResponse {
        php,
        routes: None,
        machine: machine::facts(std::iter::empty()),
        settings: advice::facts(settings),
    };
    Found { facts, missing }
}

/// Starts PHP with these settings, and queries its directives and extensions.
fn ask(settings: &Settings) -> Result<PhpFacts> {
    let program = samovar_config::locate_php(settings)?;
    let version = binary::version(&program)?;
    let question = PhpQuestion::new(settings.php_ini.as_deref(), &settings.php);
    let environment = engine::environment(settings.php_engine.as_deref());
    let said =
        binary::ask(&program, &question.arguments(), environment.as_ref(), "see its output")?;
    let setup = PhpResponse::of(&said).setup;
    Ok(PhpFacts {
        version,
        directives: setup.directives,
        extensions: setup.extensions,
        ..PhpFacts::default()
    })
}
