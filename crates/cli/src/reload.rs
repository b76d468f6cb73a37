//! `samovar reload`, both sides of it: the command, and what the server does about it.
//!
//! All settings are read again. The supervisor boots the application by them in new workers; when these are up, the
//! front is given its part, and they take over.

use crate::control::{self, ReloadAnswer};
use crate::serve::{front_options, supervisor_settings};
use anyhow::{Context, Result, anyhow, bail};
use samovar_config::{Settings, Sources, needs_restart};
use samovar_front::{FrontHandle, ValidOptions};
use samovar_supervisor::{Command, Handle, Reload};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long the command waits: the server's own limit is `timeouts.boot`, which is not known here.
const RELOAD_LIMIT: Duration = Duration::from_mins(15);

/// A person who waits for longer is told for what.
const SILENCE: Duration = Duration::from_secs(1);

/// Returns when the new generation serves.
pub(crate) fn run(control: Option<PathBuf>) -> Result<()> {
    let path = control.map_or_else(samovar_config::discover_control, Ok)?;
    if std::io::stderr().is_terminal() {
        std::thread::spawn(|| {
            std::thread::sleep(SILENCE);
            eprintln!("samovar: the application boots; the old generation answers meanwhile …");
        });
    }
    let line = control::ask(&path, "reload", RELOAD_LIMIT)?;
    let answer: ReloadAnswer =
        serde_json::from_str(&line).context("the server's answer is not understood")?;
    if let Some(why) = answer.error {
        bail!("the old generation goes on: {why}");
    }
    for key in answer.needs_restart {
        println!("`{key}` has changed; that takes effect when the server is restarted");
    }
    let seconds = Duration::from_millis(answer.milliseconds).as_secs_f64();
    println!("generation {} serves, after {seconds:.2} s", answer.generation);
    Ok(())
}

/// What the server needs for its part.
#[derive(Clone)]
pub(crate) struct Reloader {
    sources: Sources,
    /// By which the server was started: some of them hold until it ends.
    first: Settings,
    front: FrontHandle,
    supervisor: Handle,
}

impl Reloader {
    pub(crate) fn new(
        sources: Sources,
        first: Settings,
        front: FrontHandle,
        supervisor: Handle,
    ) -> Reloader {
        Reloader { sources, first, front, supervisor }
    }

    /// Begins a reload. `done` is called once, on some thread, and must not block; the answer's `error` says whether it
    /// came to nothing.
    pub(crate) fn begin(&self, done: impl FnOnce(ReloadAnswer) + Send + 'static) {
        let since = Instant::now();
        match self.prepare() {
            Err(error) => done(ReloadAnswer::refused(format!("{error:#}"))),
            Ok((settings, next, needs_restart)) => {
                let front = self.front.clone();
                let tell = move |outcome: Result<u64, String>| match outcome {
                    Err(why) => done(ReloadAnswer::refused(why)),
                    Ok(generation) => {
                        front.switch(next);
                        let milliseconds = since.elapsed().as_millis().try_into().unwrap_or(0);
                        done(ReloadAnswer { generation, milliseconds, needs_restart, error: None });
                    }
                };
                let reload = Reload { settings: Box::new(settings), done: Box::new(tell) };
                self.supervisor.send(Command::Reload(reload));
            }
        }
    }

    /// Everything that can be wrong before a process is started.
    fn prepare(&self) -> Result<(samovar_supervisor::Settings, ValidOptions, Vec<String>)> {
        let mut settings = self.sources.resolve().map_err(|problems| anyhow!("{problems}"))?;
        let restart = needs_restart(&self.first, &settings);
        settings.limits.queue_max = self.first.limits.queue_max;
        let program = samovar_config::locate_php(&settings)?;
        let next = ValidOptions::new(front_options(&settings))?;
        let restart = restart.into_iter().map(str::to_owned).collect();
        Ok((supervisor_settings(&settings, program), next, restart))
    }
}
