//! `samovar dev`: watches the project, boots the application again after a change, and shows its
//! errors in the terminal and in the browser.
//!
//! - `changes` decides which files matter, `watch` waits for them.
//! - `boot_error` reads PHP's message about a failed boot from the log.
//! - `page` builds the error page, `terminal` writes the lines for people.
//! - `tls` keeps the certificate of `samovar dev --tls`.
//!
//! A server in development mode listens on this machine only, because its pages show source code.

mod boot_error;
mod changes;
mod page;
mod terminal;
mod tls;
mod watch;

use crate::reload::Reloader;
use anyhow::{Result, bail};
use boot_error::BootError;
use page::Pages;
use samovar_config::{Endpoint, Settings};
use samovar_front::Development;
use samovar_insight::Sink;
use samovar_ring::Model;
use samovar_supervisor::Handle;
use samovar_wire::{ReloadOptions, ReloadResponse};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use terminal::{RequestLines, Terminal};

pub use changes::{Change, Kind};
pub use tls::LocalTls;
pub use watch::{BATCH_FILES_MAX, Watch};

/// Maximum wait for PHP's message about a failed boot, which takes another way than the failure.
const MESSAGE_LIMIT: Duration = Duration::from_millis(300);
/// Wait before a reload that the server has refused for now is tried again.
const RETRY_PAUSE: Duration = Duration::from_millis(50);
/// Maximum time for which such a reload is tried again.
const RETRY_LIMIT: Duration = Duration::from_secs(10);
/// Time beyond `timeouts.boot` after which a reload counts as lost.
const RELOAD_MARGIN: Duration = Duration::from_secs(10);

/// Options of `samovar dev` that are not settings.
#[derive(Clone, Debug)]
pub struct DevelopmentOptions {
    /// Folder that is watched.
    pub project: PathBuf,
    /// Description of the project, such as `a Symfony application`.
    pub title: Option<String>,
    /// Names of folders that are not watched, in addition to the usual ones.
    pub ignored: Vec<String>,
    /// Links to source lines: `%f` is the file, `%l` the line; empty for none.
    pub editor: String,
    /// The certificate of `--tls`.
    pub tls: Option<LocalTls>,
}

static OPTIONS: OnceLock<DevelopmentOptions> = OnceLock::new();

/// Makes this process's server one for development. Changes the settings to those of a server that
/// only this machine can reach.
pub fn begin(settings: &mut Settings, options: DevelopmentOptions) -> Result<()> {
    for listener in &settings.listen {
        if let Endpoint::Tcp(at) = &listener.place
            && !is_loopback(&at.host)
        {
            bail!(
                "`samovar dev` shows source code, so it does not listen on `{at}`, which other \
                 machines can reach\nhint: use a loopback address such as --listen \
                 127.0.0.1:8080, or samovar serve"
            );
        }
    }
    isolate(settings);
    if options.tls.is_some() {
        require_tls(settings)?;
    }
    let _only_once = OPTIONS.set(options);
    Ok(())
}

/// Clients need no certificate for a site that is being developed.
fn require_tls(settings: &mut Settings) -> Result<()> {
    if !settings.listen.iter().any(samovar_config::Listener::is_tls) {
        bail!(
            "--tls has no effect: no address of `listen` has TLS\n\
             hint: use an address such as --listen https://127.0.0.1:8443, or leave out --listen"
        );
    }
    settings.tls.client_ca = None;
    settings.tls.client_crls.clear();
    Ok(())
}

/// Removes everything that a server in production shares with other systems.
fn isolate(settings: &mut Settings) {
    settings.admin.retain(|at| is_loopback(&at.host));
    settings.acme.domains.clear();
    settings.insight.pinba_listen = None;
    settings.insight.pinba = None;
    settings.insight.otlp.endpoint = None;
    settings.insight.store = None;
    settings.profile.push.endpoint = None;
    // Browsers would apply it to all servers of this machine that people open by the same name.
    settings.tls.hsts = None;
    if !settings.listen.iter().any(samovar_config::Listener::is_tls) {
        settings.tls.certificates.clear();
        settings.tls.keys.clear();
        settings.tls.client_ca = None;
        settings.tls.client_crls.clear();
    }
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// State of development mode, shared by its threads.
pub(crate) struct Developer {
    options: DevelopmentOptions,
    terminal: Terminal,
    pages: Arc<Pages>,
    pub(crate) front: Arc<Development>,
    boot: Arc<BootMessage>,
}

/// PHP's latest message about a failed boot.
#[derive(Default)]
struct BootMessage {
    error: Mutex<Option<BootError>>,
    arrived: Condvar,
}

impl BootMessage {
    fn lock(&self) -> MutexGuard<'_, Option<BootError>> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes lines of the log.
    fn hear(&self, lines: &[u8]) {
        if let Some(error) = BootError::in_lines(&String::from_utf8_lossy(lines)) {
            self.lock().get_or_insert(error);
            self.arrived.notify_all();
        }
    }

    fn wait(&self) -> Option<BootError> {
        let waiting = self.arrived.wait_timeout_while(self.lock(), MESSAGE_LIMIT, |e| e.is_none());
        let (mut error, _) = waiting.unwrap_or_else(PoisonError::into_inner);
        error.take()
    }
}

impl Developer {
    /// Opens development mode; `None` if it is off.
    pub(crate) fn open(output: &samovar_log::Intake) -> Result<Option<Arc<Developer>>> {
        let Some(options) = OPTIONS.get().cloned() else { return Ok(None) };
        let terminal = Terminal::open()?;
        let pages = Arc::new(Pages::new(options.project.clone(), options.editor.clone()));
        let boot = Arc::<BootMessage>::default();
        let heard = Arc::clone(&boot);
        output.tap(Box::new(move |lines| heard.hear(lines)));
        let of_requests = Arc::clone(&pages);
        // Differs from the versions of an earlier server.
        let version = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let front = Development::new(
            version,
            Box::new(move |request, errors| of_requests.of_request(request, errors)),
        );
        Ok(Some(Arc::new(Developer { options, terminal, pages, front, boot })))
    }

    /// Returns the receiver of finished requests, which writes a line for each.
    pub(crate) fn request_lines(&self) -> Box<dyn Sink> {
        Box::new(RequestLines::new(self.terminal.clone(), self.options.project.clone()))
    }

    /// Starts the thread that watches the project.
    pub(crate) fn start(self: Arc<Self>, reloader: Reloader, supervisor: Handle) -> Result<()> {
        let mut watch = Watch::open(&self.options.project, &self.options.ignored)?;
        let folders = watch.folders();
        self.terminal.say(&format!(
            "watching {folders} folders of {} in {}",
            self.options.title.as_deref().unwrap_or("the application"),
            self.options.project.display()
        ));
        if let Some(warning) = watch.warning() {
            self.terminal.warn(&warning);
        }
        if let Some(tls) = self.options.tls.clone() {
            if !tls.is_trusted() {
                self.terminal.say(&tls.note());
            }
            tls.keep(self.terminal.clone())?;
        }
        std::thread::Builder::new().name("watch".to_owned()).spawn(move || {
            let mut has_failed = false;
            loop {
                match watch.wait() {
                    Ok(changed) => {
                        has_failed = self.take(&changed, has_failed, &reloader, &supervisor);
                    }
                    Err(error) => {
                        self.terminal.warn(&format!(
                            "cannot watch the project any more: {error}\n\
                             hint: start samovar dev again"
                        ));
                        return;
                    }
                }
                if let Some(warning) = watch.warning() {
                    self.terminal.warn(&warning);
                }
            }
        })?;
        Ok(())
    }

    /// Handles changed files. Returns whether the latest version fails to boot.
    fn take(
        &self,
        changed: &[Change],
        has_failed: bool,
        reloader: &Reloader,
        supervisor: &Handle,
    ) -> bool {
        let what = changes::summary(changed, &self.options.project);
        let changes_code = changed.iter().any(|change| change.kind == Kind::Code);
        let changes_settings = changed.iter().any(|change| change.kind == Kind::Settings);
        let report = supervisor.report();
        // Scripts that run from their first line read changed files themselves.
        let is_booted = report.boot_failed
            || report.workers.iter().any(|worker| !matches!(worker.model, Model::Script));
        if !(changes_settings || changes_code && (is_booted || has_failed)) {
            self.front.changed();
            self.terminal.changed(&what, None);
            return false;
        }
        let since = Instant::now();
        match self.reload(reloader) {
            Ok(()) => {
                self.front.changed();
                self.terminal.changed(&what, Some(since.elapsed()));
                false
            }
            Err((why, error)) => {
                let page = self.pages.of_boot(&why, error.as_deref());
                self.front.failed(&page);
                self.terminal.failed(&what, &why, error.as_deref());
                true
            }
        }
    }

    fn reload(&self, reloader: &Reloader) -> Result<(), (String, Option<Box<BootError>>)> {
        let begun = Instant::now();
        loop {
            self.boot.lock().take();
            let (done, result) = channel();
            // A change may remove the call that ends the boot.
            let options = ReloadOptions { force: true, ..ReloadOptions::default() };
            reloader.begin(&options, move |response| {
                // The receiver may have stopped waiting.
                let _ = done.send(response);
            });
            let response = result.recv_timeout(reloader.boot_limit() + RELOAD_MARGIN);
            let why = match response {
                Ok(ReloadResponse { error: None, .. }) => return Ok(()),
                Ok(ReloadResponse { error: Some(why), .. }) => why,
                Err(_) => "the reload did not end in time".to_owned(),
            };
            let is_busy = ["in progress", "still busy"].iter().any(|part| why.contains(part));
            if !is_busy || begun.elapsed() > RETRY_LIMIT {
                return Err((why, self.boot.wait().map(Box::new)));
            }
            std::thread::sleep(RETRY_PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_addresses_are_accepted() {
        for (host, expected) in [
            ("127.0.0.1", true),
            ("127.9.9.9", true),
            ("::1", true),
            ("localhost", true),
            ("0.0.0.0", false),
            ("::", false),
            ("10.0.0.1", false),
            ("localhost.example", false),
        ] {
            assert_eq!(is_loopback(host), expected, "{host}");
        }
    }
}
