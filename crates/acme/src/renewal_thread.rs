//! The thread that manages certificates: it loads them from the disk and orders those that are due.
//!
//! If several servers share one folder, the one that holds its lock places the orders. The others
//! load the certificates that it writes. A server that is replaced by a successor releases the
//! lock. A server that has not begun serving does not request it.

use crate::account::{self, Known, unkept};
use crate::failure::AcmeFailure;
use crate::order;
use crate::plan::Plan;
use crate::stage::Stage;
use crate::store::{Stamp, Store};
use crate::validity::{Validity, pause};
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Interval at which the disk is checked, and the clock, which may jump.
const LOOK: Duration = Duration::from_secs(10);

/// Manages the certificates of a plan. Cheap to clone.
#[derive(Clone)]
pub struct Keeper(Arc<Shared>);

/// Status of the certificate for one name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DomainStatus {
    /// The domain name.
    pub domain: String,
    /// End of the certificate's validity, in seconds of Unix time; `None` if there is no
    /// certificate.
    pub valid_until: Option<u64>,
    /// Time of the renewal, in seconds of Unix time; `None` if there is no certificate.
    pub renewal: Option<u64>,
    /// Number of consecutive failed attempts.
    pub failures: u32,
    /// Error of the last failed attempt, or of the folder.
    pub trouble: Option<String>,
    /// Time of the last failed attempt, in seconds of Unix time; `None` if none failed.
    pub failed_at: Option<u64>,
}

struct Shared {
    stage: Box<dyn Stage>,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    plan: Plan,
    /// Number of plan changes so far.
    version: u64,
    may_order: bool,
    ends: bool,
    has_thread: bool,
    names: Vec<DomainStatus>,
}

impl std::fmt::Debug for Keeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keeper").finish_non_exhaustive()
    }
}

impl Keeper {
    /// Loads the certificates on the disk. Orders nothing before [`Self::begin`].
    pub fn new(plan: Plan, stage: impl Stage) -> Keeper {
        stage.look_after(&plan.domains);
        let begun = State {
            version: 0,
            may_order: false,
            ends: false,
            has_thread: false,
            names: Vec::new(),
            plan,
        };
        let stage = Box::new(stage);
        let keeper =
            Keeper(Arc::new(Shared { stage, state: Mutex::new(begun), changed: Condvar::new() }));
        let mut rounds = Rounds::new(Arc::clone(&keeper.0));
        rounds.look();
        keeper
    }

    /// Starts to order certificates that are due.
    pub fn begin(&self) {
        self.0.state().may_order = true;
        self.wake();
    }

    /// Switches to another plan. Failed orders are retried immediately.
    pub fn change(&self, plan: Plan) {
        let mut state = self.0.state();
        self.0.stage.look_after(&plan.domains);
        state.plan = plan;
        state.version += 1;
        drop(state);
        self.wake();
    }

    /// Stops ordering, because another server takes over. An order in progress ends with the
    /// process.
    pub fn leave(&self) {
        let mut state = self.0.state();
        state.may_order = false;
        state.ends = true;
        drop(state);
        self.0.changed.notify_all();
    }

    /// Returns the status of each name.
    pub fn status(&self) -> Vec<DomainStatus> {
        self.0.state().names.clone()
    }

    fn wake(&self) {
        let mut state = self.0.state();
        if !state.has_thread && !state.plan.domains.is_empty() && state.may_order {
            let shared = Arc::clone(&self.0);
            let thread = std::thread::Builder::new().name("certificates".into());
            match thread.spawn(move || Rounds::new(shared).run()) {
                Ok(_) => state.has_thread = true,
                Err(error) => {
                    tracing::error!(
                        %error,
                        "cannot start the certificate thread; no certificate is ordered"
                    );
                }
            }
        }
        drop(state);
        self.0.changed.notify_all();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread's state for one name.
struct Name {
    domain: String,
    stamp: Stamp,
    /// The file was read at least once.
    is_read: bool,
    valid: Option<Valid>,
    failures: u32,
    trouble: Option<String>,
    failed_at: Option<SystemTime>,
    /// The file existed at some time.
    was_kept: bool,
    /// The file was removed from outside: a new certificate is needed.
    is_gone: bool,
    /// Nothing is ordered before this time.
    next: Instant,
    /// Certificate that was issued but could not be written to the disk.
    unsaved: Option<Vec<u8>>,
}

#[derive(Clone, Copy)]
struct Valid {
    dates: Validity,
    renewal: SystemTime,
}

impl Name {
    fn new(domain: &str) -> Name {
        Name {
            domain: domain.to_owned(),
            stamp: None,
            is_read: false,
            valid: None,
            failures: 0,
            trouble: None,
            failed_at: None,
            was_kept: false,
            is_gone: false,
            next: Instant::now(),
            unsaved: None,
        }
    }

    fn is_due(&self) -> bool {
        let is_time = self.valid.is_none_or(|valid| SystemTime::now() >= valid.renewal);
        (is_time || self.is_gone) && Instant::now() >= self.next
    }

    fn status(&self) -> DomainStatus {
        let seconds = |at: SystemTime| at.duration_since(UNIX_EPOCH).map_or(0, |at| at.as_secs());
        DomainStatus {
            domain: self.domain.clone(),
            valid_until: self.valid.map(|valid| seconds(valid.dates.until)),
            renewal: self.valid.map(|valid| seconds(valid.renewal)),
            failures: self.failures,
            trouble: self.trouble.clone(),
            failed_at: self.failed_at.map(seconds),
        }
    }
}

/// State of the thread.
struct Rounds {
    shared: Arc<Shared>,
    plan: Plan,
    version: u64,
    store: Store,
    names: Vec<Name>,
    lock: Option<File>,
    known: Option<Known>,
    /// Last reported problem of the folder; a problem is logged when it changes.
    folder_trouble: Option<String>,
}

impl Rounds {
    fn new(shared: Arc<Shared>) -> Rounds {
        let state = shared.state();
        let (plan, version) = (state.plan.clone(), state.version);
        drop(state);
        Rounds {
            store: Store::new(&plan.folder, &plan.directory),
            names: plan.domains.iter().map(|domain| Name::new(domain)).collect(),
            shared,
            plan,
            version,
            lock: None,
            known: None,
            folder_trouble: None,
        }
    }

    fn run(&mut self) {
        loop {
            let state = self.shared.state();
            if state.ends {
                return;
            }
            let changed = (state.version != self.version).then(|| state.plan.clone());
            let version = state.version;
            let may_order = state.may_order;
            drop(state);
            self.version = version;
            if let Some(plan) = changed {
                self.follow(plan);
            }
            self.look();
            if !may_order || self.names.is_empty() {
                self.lock = None;
            } else if self.lock.is_none() {
                self.take_lock();
            }
            let due = self.names.iter().position(Name::is_due).filter(|_| self.lock.is_some());
            match due {
                Some(index) => self.attempt(index),
                None => self.wait(),
            }
        }
    }

    /// Switches to another plan, and keeps the state of names that stay. Failed orders are retried
    /// immediately, and certificates whose files were removed are ordered again. Names with an
    /// issued certificate keep their earliest order time, even if the clock is wrong: reloads may
    /// be frequent.
    fn follow(&mut self, plan: Plan) {
        let store = Store::new(&plan.folder, &plan.directory);
        let is_same_place = store.folder() == self.store.folder();
        let old = std::mem::take(&mut self.names);
        let mut old: Vec<Name> = if is_same_place { old } else { Vec::new() };
        let names = plan.domains.iter().map(|domain| {
            let place = old.iter().position(|name| name.domain == *domain);
            let mut name = place.map_or_else(|| Name::new(domain), |at| old.swap_remove(at));
            // Read the file again: a name that was removed and added again has no certificate in
            // use.
            name.is_read = false;
            name.is_gone |= name.was_kept && store.stamp(domain).is_none();
            if name.failures > 0 || name.is_gone {
                name.next = Instant::now();
            }
            name
        });
        self.names = names.collect();
        if !is_same_place {
            self.lock = None;
        }
        self.known = None;
        self.store = store;
        self.plan = plan;
    }

    /// Loads files that have changed on the disk, and retries certificates that could not be saved.
    fn look(&mut self) {
        for name in &mut self.names {
            if let Some(pem) = &name.unsaved
                && self.store.keep_certificate(&name.domain, pem).is_ok()
            {
                tracing::info!(domain = name.domain, "certificate stored");
                name.unsaved = None;
            }
            let stamp = self.store.stamp(&name.domain);
            name.was_kept |= stamp.is_some();
            if name.unsaved.is_some() || (name.is_read && stamp == name.stamp) {
                continue;
            }
            (name.is_read, name.stamp) = (true, stamp);
            let read = match self.store.certificate(&name.domain) {
                Ok(None) => continue,
                Ok(Some(pem)) => take(&*self.shared.stage, name, &pem),
                Err(error) => Err(error.to_string()),
            };
            if let Err(error) = read {
                tracing::warn!(
                    domain = name.domain,
                    folder = %self.store.folder().display(),
                    error,
                    "stored certificate cannot be used; a new one is ordered if none is in use"
                );
            }
        }
        self.publish();
    }

    fn take_lock(&mut self) {
        let taken = self.store.lock();
        let trouble = match taken {
            Ok(lock) => {
                self.lock = lock;
                None
            }
            Err(error) => Some(unkept("cannot use the certificate folder", &self.store, &error)),
        };
        if let Some(AcmeFailure { message, hint, .. }) = &trouble
            && self.folder_trouble.as_ref() != Some(message)
        {
            tracing::error!(hint, "no certificate is ordered: {message}");
        }
        self.folder_trouble = trouble.map(|trouble| trouble.message);
    }

    fn publish(&self) {
        let names: Vec<DomainStatus> = self
            .names
            .iter()
            .map(|name| {
                let status = name.status();
                let trouble = status.trouble.clone().or_else(|| self.folder_trouble.clone());
                DomainStatus { trouble, ..status }
            })
            .collect();
        self.shared.state().names = names;
    }

    /// Waits until something may be due.
    fn wait(&self) {
        self.publish();
        let next = self.names.iter().map(|name| name.next).filter(|next| *next > Instant::now());
        let next = next.min().map_or(LOOK, |next| next.duration_since(Instant::now()));
        let to_renewal = self
            .names
            .iter()
            .filter_map(|name| name.valid?.renewal.duration_since(SystemTime::now()).ok());
        let limit = to_renewal.min().unwrap_or(LOOK).min(next).min(LOOK);
        let state = self.shared.state();
        if state.version == self.version && !state.ends {
            // A spurious wake-up only causes one additional check.
            drop(self.shared.changed.wait_timeout(state, limit));
        }
    }

    fn attempt(&mut self, index: usize) {
        let domain = self.names[index].domain.clone();
        if self.names[index].valid.is_none() && self.names[index].failures == 0 {
            self.shared.stage.say(&format!(
                "ordering a certificate for {domain}; until it is issued, TLS handshakes for that \
                 name fail"
            ));
        }
        let fetched = self.fetch(&domain, self.names[index].failures);
        let (plan, store) = (&self.plan, &self.store);
        let name = &mut self.names[index];
        let used = fetched.and_then(|pem| {
            take(&*self.shared.stage, name, &pem).map_err(|error| {
                let message = format!("the issued certificate cannot be used: {error}");
                let hint = "wait for the next attempt, or use another `acme.directory`";
                AcmeFailure::new(message, hint)
            })?;
            Ok(pem)
        });
        match used {
            Ok(pem) => {
                let life = name.valid.map_or(Duration::ZERO, |valid| valid.dates.life());
                // Limits the order rate even if the clock is wrong.
                name.next = Instant::now() + life / 2;
                (name.failures, name.trouble, name.is_gone) = (0, None, false);
                if let Err(error) = store.keep_certificate(&domain, &pem) {
                    let AcmeFailure { message, hint, .. } =
                        unkept("cannot store the certificate", store, &error);
                    tracing::error!(
                        domain,
                        hint,
                        "certificate is in use only until the server ends: {message}"
                    );
                    name.unsaved = Some(pem);
                }
                name.stamp = store.stamp(&domain);
                if name.valid.is_some_and(|valid| SystemTime::now() >= valid.renewal) {
                    tracing::warn!(
                        domain,
                        "new certificate is already due for renewal (hint: check this machine's \
                         clock)"
                    );
                }
                self.shared.stage.say(&format!("a certificate for {domain} is in use"));
            }
            Err(AcmeFailure { message, hint, asked, is_stranger }) => {
                self.known = None;
                name.failures = name.failures.saturating_add(1);
                name.failed_at = Some(SystemTime::now());
                let wait = pause(name.failures, asked, fastrand::f64());
                name.next = Instant::now() + wait;
                tracing::error!(
                    domain,
                    attempts = name.failures,
                    directory = plan.directory,
                    "no certificate: {message} (hint: {hint}); next attempt in {} s, or with a \
                     reload",
                    wait.as_secs()
                );
                name.trouble = Some(message);
                if is_stranger {
                    let put_aside = store.put_account_aside();
                    tracing::warn!(
                        ?put_aside,
                        "the authority does not know this account; a new one is created"
                    );
                }
            }
        }
        self.publish();
    }

    /// Orders a certificate. A panic caused by a malformed response must not end this thread.
    fn fetch(&mut self, domain: &str, failures: u32) -> Result<Vec<u8>, AcmeFailure> {
        // Check storage first: a certificate that cannot be stored would be ordered again at every
        // start.
        self.store
            .try_out()
            .map_err(|error| unkept("cannot store certificates", &self.store, &error))?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let runtime = runtime.map_err(|error| {
            AcmeFailure::new(
                format!("cannot create a runtime for the order: {error}"),
                "wait for the next attempt",
            )
        })?;
        let ways = &self.plan.ways;
        let Some(way) = ways.get(failures as usize % ways.len().max(1)).copied() else {
            return Err(AcmeFailure::new(
                "no listener can respond to a challenge of the authority",
                "add `:80?redirect` or `https://:443` to `listen`",
            ));
        };
        let (plan, store, stage) = (&self.plan, &self.store, &*self.shared.stage);
        let known = self.known.take();
        let asked = catch_unwind(AssertUnwindSafe(|| {
            runtime.block_on(async {
                let known = match known {
                    Some(known) => known,
                    None => account::open(plan, store).await?,
                };
                let pem = order::obtain(&known, domain, way, stage).await?;
                Ok((known, pem))
            })
        }));
        let (known, pem) = asked.unwrap_or_else(|_| {
            Err(AcmeFailure::new(
                "the response of the authority caused a panic",
                "check that `acme.directory` is the URL of an ACME directory",
            ))
        })?;
        self.known = Some(known);
        Ok(pem)
    }
}

/// Puts a certificate into use, if it is usable.
fn take(stage: &dyn Stage, name: &mut Name, pem: &[u8]) -> Result<(), String> {
    let dates = Validity::read(pem)?;
    stage.install(&name.domain, pem)?;
    name.valid = Some(Valid { dates, renewal: dates.renewal(fastrand::f64()) });
    Ok(())
}
