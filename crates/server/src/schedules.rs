//! Schedules: the work of each `[[schedule]]`, and the thread of crates/schedule that runs it.

use crate::convert::{console_command, redis};
use crate::pools::Pools;
use anyhow::{Context, Result};
use samovar_channel::{NewJob, Push, PushReply};
use samovar_config as config;
use samovar_config::Settings;
use samovar_front::FrontHandle;
use samovar_jobs::Jobs;
use samovar_schedule::{
    Command, Launch, Overlap, RunEnd, RunPlace, RunResult, Schedule, ScheduleOptions, Schedules,
    SharedRuns, Work,
};
use samovar_supervisor::{
    Command as Order, ConsoleSettings, Handle, OneShot, OneShotEvent, StopReason,
};
use samovar_wire::{ScheduleAction, ScheduleQuestion, ScheduleResponse, ScheduleStatus};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The schedules of the server, and their needs. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Scheduling(Arc<Parts>);

struct Parts {
    /// Set with the first schedule, at the start or by a reload.
    running: OnceLock<Schedules>,
    front: FrontHandle,
    supervisor: Handle,
    pools: Pools,
    jobs: Option<Jobs>,
    store: PathBuf,
    shared: Option<SharedRuns>,
}

impl Scheduling {
    /// Starts the schedules, if there are any.
    pub(crate) fn start(
        settings: &Settings,
        (front, supervisor, pools): (&FrontHandle, &Handle, &Pools),
        jobs: Option<Jobs>,
    ) -> Result<Scheduling> {
        let parts = Parts {
            running: OnceLock::new(),
            front: front.clone(),
            supervisor: supervisor.clone(),
            pools: pools.clone(),
            jobs,
            store: store(settings),
            shared: redis(settings).map(|redis| SharedRuns {
                redis,
                prefix: settings.jobs.redis_prefix.clone(),
                lease: settings.jobs.lease,
            }),
        };
        let scheduling = Scheduling(Arc::new(parts));
        scheduling.apply(settings)?;
        Ok(scheduling)
    }

    /// Applies the settings of a start or of a reload. Runs continue.
    pub(crate) fn apply(&self, settings: &Settings) -> Result<()> {
        let schedules =
            || settings.schedules.iter().map(|of| self.schedule(of, settings)).collect();
        if let Some(running) = self.0.running.get() {
            running.set(schedules());
            return Ok(());
        }
        if settings.schedules.is_empty() {
            return Ok(());
        }
        let place = match &self.0.shared {
            Some(shared) => RunPlace::Shared(shared.clone()),
            None => RunPlace::File(self.file()?),
        };
        let front = self.0.front.clone();
        let is_stopping = Box::new(move || front.drains());
        let options = ScheduleOptions { place, schedules: schedules(), is_stopping };
        let started = Schedules::start(options)?;
        // Only one reload runs at a time.
        let _ = self.0.running.set(started);
        Ok(())
    }

    /// Returns the file of the last runs. Creates its folder.
    fn file(&self) -> Result<PathBuf> {
        let path = self.0.store.clone();
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).with_context(|| {
                let hint = "create it, or set `jobs.store` to a file in another folder";
                format!("cannot create the folder `{}`\nhint: {hint}", folder.display())
            })?;
        }
        Ok(path)
    }

    /// Returns the state of all schedules.
    pub(crate) fn status(&self) -> Vec<ScheduleStatus> {
        self.0.running.get().map(Schedules::status).unwrap_or_default()
    }

    /// Executes a command of the control socket. `done` must not wait.
    pub(crate) fn command(
        &self,
        question: ScheduleQuestion,
        done: impl FnOnce(ScheduleResponse) + Send + 'static,
    ) {
        let Some(running) = self.0.running.get() else {
            let why = "this server has no schedule\nhint: add a table [[schedule]] to the settings";
            return done(ScheduleResponse::refused(why.to_owned()));
        };
        let ScheduleQuestion { action, schedule } = question;
        let command = match action {
            ScheduleAction::List => Command::List,
            ScheduleAction::Show => Command::Show(schedule),
            ScheduleAction::Run => Command::Run(schedule),
        };
        running.command(command, |result| {
            done(match result {
                Ok((schedules, output)) => ScheduleResponse { error: None, schedules, output },
                Err(why) => ScheduleResponse::refused(why),
            });
        });
    }

    /// Waits until the ends of all runs are stored.
    pub(crate) fn finish(&self) {
        if let Some(running) = self.0.running.get() {
            running.finish();
        }
    }

    fn schedule(&self, of: &config::Schedule, settings: &Settings) -> Schedule {
        let work: Box<dyn Work> = match &of.work {
            config::Work::Command { pool, command } => Box::new(CommandWork {
                supervisor: self.0.pools.supervisor(pool.as_deref(), &self.0.supervisor),
                command: console_command(command),
                timeout: of.timeout,
                drain: settings.timeouts.drain,
            }),
            config::Work::Push { queue, payload } => Box::new(PushWork {
                jobs: self.0.jobs.clone(),
                queue: queue.clone(),
                payload: payload.clone(),
            }),
        };
        Schedule {
            name: of.name.clone(),
            times: of.times.clone(),
            overlap: match of.overlap {
                config::Overlap::Skip => Overlap::Skip,
                config::Overlap::Queue => Overlap::Queue,
                config::Overlap::Kill => Overlap::Kill,
            },
            jitter: of.jitter,
            catches_up: of.catches_up,
            work,
        }
    }
}

/// Returns the file of the last runs: next to that of the jobs.
fn store(settings: &Settings) -> PathBuf {
    let jobs = &settings.jobs.store;
    let mut name = jobs.file_stem().unwrap_or_default().to_owned();
    name.push("-schedules.sqlite");
    jobs.with_file_name(name)
}

/// A console command.
struct CommandWork {
    /// The pool's supervisor, or why there is none.
    supervisor: Result<(String, Handle), String>,
    command: ConsoleSettings,
    timeout: Duration,
    drain: Duration,
}

impl Work for CommandWork {
    fn start(&self, launch: Launch) {
        let Launch { run, output, reporter } = launch;
        let supervisor = match &self.supervisor {
            Ok((_, supervisor)) => supervisor,
            // A reload added the pool, which needs a restart.
            Err(why) => return reporter.ended(RunEnd::new(RunResult::NotStarted, why.clone())),
        };
        let mut reporter = Some(reporter);
        let report = move |event| match event {
            OneShotEvent::Began(pid) => {
                if let Some(reporter) = &reporter {
                    reporter.began(pid);
                }
            }
            ended => {
                if let Some(reporter) = reporter.take() {
                    reporter.ended(end_of(ended));
                }
            }
        };
        supervisor.send(Order::RunOnce(Box::new(OneShot {
            id: run,
            command: self.command.clone(),
            timeout: self.timeout,
            drain: self.drain,
            output,
            report: Box::new(report),
        })));
    }

    fn stop(&self, run: u64) {
        if let Ok((_, supervisor)) = &self.supervisor {
            supervisor.send(Order::StopRun(run, StopReason::Replaced));
        }
    }

    fn text(&self) -> String {
        let script = self.command.script.file_name().unwrap_or_default().to_string_lossy();
        let words = self.command.arguments.iter().map(|word| word.to_string_lossy());
        std::iter::once(script).chain(words).collect::<Vec<_>>().join(" ")
    }
}

fn end_of(event: OneShotEvent) -> RunEnd {
    match event {
        OneShotEvent::NotStarted(why) => RunEnd::new(RunResult::NotStarted, why),
        // The caller has handled it.
        OneShotEvent::Began(_) => RunEnd::new(RunResult::NotStarted, ""),
        OneShotEvent::Ended { code, signal, stopped } => match (stopped, code, signal) {
            (Some(StopReason::Timeout), ..) => {
                RunEnd::new(RunResult::TimedOut, "its timeout is over")
            }
            (Some(StopReason::Replaced), ..) => {
                RunEnd::new(RunResult::Stopped, "its next run was due")
            }
            (Some(StopReason::Shutdown), ..) => {
                RunEnd::new(RunResult::Stopped, "the server stopped")
            }
            (None, Some(0), _) => RunEnd::new(RunResult::Succeeded, ""),
            (None, Some(code), _) => RunEnd::new(RunResult::Failed, format!("exit code {code}")),
            (None, None, Some(signal)) => {
                RunEnd::new(RunResult::Failed, format!("killed by signal {signal}"))
            }
            (None, None, None) => RunEnd::new(RunResult::Failed, "unknown exit status"),
        },
    }
}

/// A job for a queue.
struct PushWork {
    jobs: Option<Jobs>,
    queue: String,
    payload: String,
}

impl Work for PushWork {
    fn start(&self, launch: Launch) {
        let reporter = launch.reporter;
        let Some(jobs) = &self.jobs else {
            let why = "the queue is new: restart the server";
            return reporter.ended(RunEnd::new(RunResult::NotStarted, why));
        };
        let job = NewJob { payload: self.payload.clone(), ..NewJob::default() };
        let push = Push { queue: self.queue.clone(), jobs: vec![job] };
        jobs.push(push, move |reply| {
            reporter.ended(match reply {
                PushReply::Stored(ids) => {
                    let id = ids.first().copied().unwrap_or(0);
                    RunEnd::new(RunResult::Succeeded, format!("job {id}"))
                }
                PushReply::Wrong(why) | PushReply::Refused(why) => {
                    RunEnd::new(RunResult::Failed, why)
                }
                PushReply::Depth(_) => RunEnd::new(RunResult::Failed, "no job was pushed"),
            });
        });
    }

    fn stop(&self, _: u64) {}

    fn text(&self) -> String {
        format!("queue {}", self.queue)
    }
}
