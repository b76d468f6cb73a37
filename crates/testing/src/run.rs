//! A run: units in parallel forks, with time limits; crashes, reruns, and the results of all.

use crate::case::{Case, Note, Verdict};
use crate::ending::{CRASH, Ending, crashed};
use crate::image::Image;
use crate::junit;
use crate::options::Options;
use crate::order::{Merge, Order};
use crate::results::{Results, Step};
use crate::scratch::{self, Scratch};
use crate::suite::{List, Suite};
use crate::unit::Unit;
use anyhow::{Context, Result, bail};
use samovar_channel::{TestEvent, TestOrder};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Interval of looks at the output of running units.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum output of a unit, bytes: one that writes more is killed.
const OUTPUT_BYTES_MAX: u64 = 64 << 20;
/// End of the output that is shown of a unit without results, bytes.
const TAIL_BYTES_MAX: u64 = 2048;
/// Maximum time between the order to kill a unit and the report of its end.
const END_LIMIT: Duration = Duration::from_secs(30);
/// Maximum output of all tests that is kept for the results, bytes.
const OUTPUTS_BYTES_MAX: usize = 64 << 20;
/// The framework's text about a unit without tests, such as one that a filter excludes.
const EMPTY: &str = "No tests executed!";
/// Number of the process that lists the tests.
const LIST: u32 = 0;

/// Purpose of a fork.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Attempt {
    First,
    /// In the order of the source code, after failures in a random one.
    Ordered,
    Rerun(u32),
}

struct Job {
    unit: Unit,
    attempt: Attempt,
}

struct Running {
    job: Job,
    /// Number among the units that run at the same time, from 1.
    place: usize,
    deadline: Instant,
    /// The reason for which it was killed, and the time.
    killed: Option<(String, Instant)>,
    began: Instant,
}

/// Runs the tests. `on` observes the run.
///
/// # Errors
///
/// PHP or the framework does not start, or there are no tests.
pub fn run(options: &Options, on: &mut dyn FnMut(Step<'_>)) -> Result<Results> {
    let began = Instant::now();
    let scratch = Scratch::new()?;
    let image = Image::boot(options, &scratch)?;
    let results = Results { php: image.php.clone(), seed: options.shuffle, ..Results::default() };
    let mut run = Run {
        options,
        image,
        scratch,
        queue: VecDeque::new(),
        running: BTreeMap::new(),
        number: LIST,
        has_learned: false,
        again: VecDeque::new(),
        covered: Vec::new(),
        results,
        by_id: BTreeMap::new(),
        suite: Suite::default(),
        needs: Vec::new(),
        output_bytes: 0,
        faulty: BTreeSet::new(),
    };
    run.suite = run.list()?;
    let mut all = run.suite.units(options.by)?;
    if let Some(seed) = options.shuffle {
        fastrand::Rng::with_seed(seed).shuffle(&mut all);
    }
    run.results.boot = began.elapsed();
    on(Step::Listed {
        php: &run.image.php,
        tests: run.suite.tests(),
        units: all.len(),
        output: &run.image.output(),
    });
    run.queue.extend(all.into_iter().map(|unit| Job { unit, attempt: Attempt::First }));
    run.drain(on)?;
    if !run.again.is_empty() && !run.results.is_stopped {
        on(Step::Reruns(run.again.len()));
    }
    while !run.again.is_empty() && !run.results.is_stopped {
        run.queue.append(&mut run.again);
        run.drain(&mut |_| {})?;
    }
    run.skip_after_crashes();
    if run.results.cases.is_empty() && run.results.problems.is_empty() {
        bail!("no test has run\nhint: check the filter and the other options that select tests");
    }
    if options.framework.coverage.is_wanted()
        && let Err(error) = run.merge()
    {
        run.results.problems.push(format!("{error:#}"));
        run.results.status = 2;
    }
    let today = jiff::Zoned::now().date();
    let mut results = run.results;
    results.expired = options.quarantine.apply(&mut results.cases, today);
    results.healed = options.quarantine.healed(&results.cases);
    results.wall = began.elapsed();
    Ok(results)
}

struct Run<'a> {
    options: &'a Options,
    /// Dropped before `scratch`, into which its forks write.
    image: Image,
    scratch: Scratch,
    queue: VecDeque<Job>,
    running: BTreeMap<u32, Running>,
    /// The latest number of a fork.
    number: u32,
    /// Whether a unit's classes were loaded for all others.
    has_learned: bool,
    /// Jobs for the time after the first attempts.
    again: VecDeque<Job>,
    /// Coverage of the units that have run.
    covered: Vec<PathBuf>,
    results: Results,
    /// Index of a test in the results.
    by_id: BTreeMap<String, usize>,
    suite: Suite,
    /// Crashed tests that had run after tests which they depend on: their indexes in the results.
    needs: Vec<(usize, Vec<usize>)>,
    /// Output of tests in the results, bytes.
    output_bytes: usize,
    /// Classes without results whose fault is reported.
    faulty: BTreeSet<String>,
}

impl Run<'_> {
    /// Lets the framework list its tests, in a fork.
    fn list(&mut self) -> Result<Suite> {
        let (list, found) = (self.scratch.file("list.xml"), self.scratch.file("units.json"));
        let order = Order {
            arguments: self.options.framework.list(&list).words(),
            learned: Some(self.learned(LIST)),
            list: Some(list),
            filter: self.options.framework.filter.clone(),
            units: Some(found.clone()),
            ..Order::default()
        };
        self.fork(LIST, &order)?;
        let status = self.wait(LIST, "list the tests")?;
        let output = scratch::tail(&self.output(LIST), TAIL_BYTES_MAX);
        let Ok(text) = scratch::read(&found) else {
            bail!(
                "the test framework did not list its tests ({}); its output:\n{output}\nhint: run \
                 its command alone; without a phpunit.xml, name the tests: samovar test -- phpunit \
                 tests",
                Ending::of(status)
            );
        };
        let list: List = serde_json::from_str(&text).context("the list of tests is garbled")?;
        if list.units.is_empty() {
            bail!("no tests found; the test framework's output:\n{output}");
        }
        let ending = Ending::of(status);
        if !matches!(ending, Ending::Exit(0)) {
            self.results.status = 2;
            self.results.problems.push(format!(
                "the test framework did not list all tests ({ending}); its output:\n{output}"
            ));
        }
        self.load(LIST)?;
        Ok(Suite::new(list.units))
    }

    /// Waits for the end of the only fork, which has the time of a unit. Returns its status.
    fn wait(&mut self, number: u32, purpose: &str) -> Result<i32> {
        let deadline = Instant::now() + self.options.time_limit;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.image.next(Some(left))? {
                Some(TestEvent::Died { unit, status }) if unit == number => return Ok(status),
                Some(TestEvent::Failed { why, .. }) => bail!("cannot fork PHP: {why}"),
                Some(_) => {}
                None => {
                    let limit = self.options.time_limit.as_secs_f64();
                    let output = scratch::tail(&self.output(number), TAIL_BYTES_MAX);
                    bail!(
                        "PHP took more than {limit} s to {purpose}, and was killed; its output:\n\
                         {output}\nhint: mend the data provider or the file that hangs, or raise \
                         --time-limit"
                    );
                }
            }
        }
    }

    /// Writes the reports of the coverage of all units, in a fork.
    fn merge(&mut self) -> Result<()> {
        let files: Vec<_> = std::mem::take(&mut self.covered);
        if files.is_empty() {
            bail!("no coverage was measured\nhint: load the extension pcov or xdebug");
        }
        self.number += 1;
        let number = self.number;
        let reports = self.options.framework.coverage.clone();
        let merge = Some(Merge { files, reports });
        let order = Order { merge, ..Order::default() };
        self.fork(number, &order)?;
        match Ending::of(self.wait(number, "write the coverage")?) {
            Ending::Exit(0) => Ok(()),
            ending => {
                let output = scratch::tail(&self.output(number), TAIL_BYTES_MAX);
                bail!("cannot write the coverage: the process {ending}; its output:\n{output}")
            }
        }
    }

    fn learned(&self, number: u32) -> PathBuf {
        self.scratch.file(&format!("{number}.classes"))
    }

    fn output(&self, number: u32) -> PathBuf {
        self.scratch.file(&format!("{number}.out"))
    }

    fn coverage(&self, number: u32) -> PathBuf {
        self.scratch.file(&format!("{number}.cov"))
    }

    fn junit(&self, number: u32) -> PathBuf {
        self.scratch.file(&format!("{number}.xml"))
    }

    fn fork(&self, unit: u32, order: &Order) -> Result<()> {
        let text = serde_json::to_vec(order)?;
        let order = self.scratch.write(&format!("{unit}.json"), &text)?;
        self.image.send(&TestOrder::Fork { unit, order, output: self.output(unit) })
    }

    /// Makes the image load the classes of the framework and of libraries that a fork has loaded.
    fn load(&self, number: u32) -> Result<()> {
        let order = self.learned(number);
        if order.is_file() { self.image.send(&TestOrder::Load { order }) } else { Ok(()) }
    }

    /// Runs all jobs of the queue.
    fn drain(&mut self, on: &mut dyn FnMut(Step<'_>)) -> Result<()> {
        loop {
            while self.running.len() < self.options.jobs
                && let Some(job) = self.queue.pop_front()
            {
                self.start(job)?;
            }
            if self.running.is_empty() {
                return Ok(());
            }
            let now = Instant::now();
            let next = self.running.values().map(|unit| unit.deadline).min().unwrap_or(now);
            let wait = next.saturating_duration_since(now).min(LOOK_INTERVAL);
            match self.image.next(Some(wait))? {
                Some(TestEvent::Died { unit, status }) => {
                    self.end(unit, &Ending::of(status), on)?;
                }
                Some(TestEvent::Failed { unit, why }) => {
                    self.end(unit, &Ending::NoFork(why), on)?;
                }
                Some(TestEvent::Forked { .. } | TestEvent::Ready { .. }) => {}
                None => self.look()?,
            }
        }
    }

    fn start(&mut self, job: Job) -> Result<()> {
        self.number += 1;
        self.results.forks += 1;
        let number = self.number;
        let used: BTreeSet<_> = self.running.values().map(|unit| unit.place).collect();
        let place = (1..=self.options.jobs).find(|place| !used.contains(place)).unwrap_or(1);
        let own = self.scratch.file(&format!("{number}-phpunit.xml"));
        let framework = &self.options.framework;
        let (mut arguments, configuration) = job.unit.arguments(framework, own, !self.has_learned);
        arguments.option("--log-junit", &self.junit(number).to_string_lossy());
        if framework.coverage.is_wanted() {
            arguments.option("--coverage-php", &self.coverage(number).to_string_lossy());
        }
        if let (Some(seed), true) = (self.options.shuffle, job.attempt != Attempt::Ordered) {
            // PHPUnit takes seeds of 31 bits.
            let seed = (seed & 0x7fff_ffff).to_string();
            arguments.options.push("--order-by=random".to_owned());
            arguments.options.push(format!("--random-order-seed={seed}"));
        }
        let order = Order {
            is_unit: true,
            arguments: arguments.words(),
            environment: BTreeMap::from([
                ("SAMOVAR_TEST_WORKER", place.to_string()),
                ("SAMOVAR_TEST_UNIT", number.to_string()),
            ]),
            configuration,
            learned: (!self.has_learned).then(|| self.learned(number)),
            ..Order::default()
        };
        self.fork(number, &order)?;
        let began = Instant::now();
        let deadline = began + self.options.time_limit;
        self.running.insert(number, Running { job, place, deadline, killed: None, began });
        Ok(())
    }

    /// Kills units that have run or written for too long.
    fn look(&mut self) -> Result<()> {
        let now = Instant::now();
        let files: Vec<_> =
            self.running.keys().map(|number| (*number, self.output(*number))).collect();
        for (number, file) in files {
            let Some(unit) = self.running.get_mut(&number) else { continue };
            if let Some((_, at)) = &unit.killed {
                if now.saturating_duration_since(*at) > END_LIMIT {
                    bail!(
                        "the process that forks the tests does not react\nhint: if it hangs in a \
                         class of vendor/, use --no-preload"
                    );
                }
                unit.deadline = now + LOOK_INTERVAL;
                continue;
            }
            let bytes = file.metadata().map_or(0, |file| file.len());
            let why = if now >= unit.deadline {
                let limit = self.options.time_limit.as_secs_f64();
                format!("it ran for more than {limit} s, and was killed")
            } else if bytes > OUTPUT_BYTES_MAX {
                let limit = OUTPUT_BYTES_MAX >> 20;
                format!("it printed more than {limit} MiB, and was killed")
            } else {
                continue;
            };
            unit.killed = Some((why, now));
            unit.deadline = now + LOOK_INTERVAL;
            self.image.send(&TestOrder::Kill { unit: number })?;
        }
        Ok(())
    }

    fn end(&mut self, number: u32, ending: &Ending, on: &mut dyn FnMut(Step<'_>)) -> Result<()> {
        let Some(mut unit) = self.running.remove(&number) else { return Ok(()) };
        let output = scratch::tail(&self.output(number), TAIL_BYTES_MAX);
        let cases = match unit.killed.take() {
            Some((why, _)) => Err(why),
            None => self.cases(number, ending),
        };
        let has_run = cases.is_ok();
        let cases = match cases {
            Ok(mut cases) => {
                if let Ending::Exit(status) = ending {
                    self.note_status(&unit.job, *status, &cases, &output);
                }
                cases.retain(|case| !self.suite.is_of_other(&unit.job.unit, case));
                cases
            }
            Err(_) if unit.job.attempt == Attempt::First && unit.job.unit.tests.len() > 1 => {
                // Only the test at fault shall fail, so each runs in a process of its own.
                for unit in self.suite.split(unit.job.unit).into_iter().rev() {
                    self.queue.push_front(Job { unit, attempt: Attempt::First });
                }
                return Ok(());
            }
            Err(why) => {
                let is_first = unit.job.attempt == Attempt::First;
                if is_first && !unit.job.unit.producers.is_empty() {
                    let producers = unit.job.unit.producers.clone();
                    self.needs.push((self.results.cases.len(), producers));
                }
                vec![crashed(&unit.job.unit, &why, &output, unit.began.elapsed())]
            }
        };
        if has_run && !self.has_learned {
            self.has_learned = true;
            self.load(number)?;
        }
        let coverage = self.coverage(number);
        if coverage.is_file() {
            self.covered.push(coverage);
        }
        for suffix in ["json", "out", "xml"] {
            let _ = std::fs::remove_file(self.scratch.file(&format!("{number}.{suffix}")));
        }
        on(Step::Cases(&cases));
        let is_bad = cases.iter().any(|case| case.verdict.is_bad());
        self.record(unit.job, cases);
        if is_bad && self.options.framework.stops_early {
            self.results.is_stopped = true;
            self.queue.clear();
        }
        Ok(())
    }

    /// Returns the results of a unit, or the reason why there are none.
    fn cases(&self, number: u32, ending: &Ending) -> Result<Vec<Case>, String> {
        if let Ending::Signal(_) | Ending::NoFork(_) = ending {
            return Err(format!("its process {ending}"));
        }
        match scratch::read(&self.junit(number)) {
            Ok(text) => junit::read(&text)
                .map_err(|why| format!("its process {ending}, and left a garbled log: {why}")),
            Err(_) => Err(format!("its process {ending} before its tests did")),
        }
    }

    /// A test that crashed because a test which it depends on crashes did not run.
    fn skip_after_crashes(&mut self) {
        for (at, producers) in std::mem::take(&mut self.needs) {
            let mut names = producers.iter().map(|test| self.suite.name(*test));
            let is_crash = |name: &String| {
                let found = self.by_id.get(name).map(|at| &self.results.cases[*at]);
                found.is_some_and(|case| case.kind == CRASH)
            };
            let crashed = names.find(is_crash);
            let case = self.results.cases.get_mut(at).filter(|case| case.kind == CRASH);
            if let (Some(producer), Some(case)) = (crashed, case) {
                case.verdict = Verdict::Skipped;
                case.text = format!("This test depends on \"{producer}\", which has no result.");
            }
        }
    }

    /// Keeps an exit status that no failed test explains: that of `failOnWarning`, or of a data
    /// provider or `setUpBeforeClass` that failed, which `PHPUnit` 10 and later do not log.
    fn note_status(&mut self, job: &Job, status: i32, cases: &[Case], output: &str) {
        let explained = cases.iter().map(|case| match case.verdict {
            Verdict::Errored => 2,
            Verdict::Failed => 1,
            _ => 0,
        });
        let is_explained = status <= explained.max().unwrap_or(0);
        // Each unit of a class with a filter may be empty, and reports the class's own fault.
        let is_no_fault = cases.is_empty() && status == 1 && output.contains(EMPTY);
        let class = job.unit.class.as_ref().unwrap_or(&job.unit.name);
        if is_explained || is_no_fault || job.attempt != Attempt::First {
            return;
        }
        self.results.status = self.results.status.max(if status == 1 { 1 } else { 2 });
        if !cases.is_empty() || self.faulty.insert(class.clone()) {
            self.results.problems.push(format!(
                "{}: the test framework ended with status {status}; its output:\n{output}",
                job.unit.name
            ));
        }
    }

    fn record(&mut self, job: Job, cases: Vec<Case>) {
        let attempt = job.attempt;
        let mut is_bad = false;
        let before = self.results.cases.len();
        for mut case in cases {
            if case.class.is_empty() && job.unit.class.is_some() {
                // A warning about the class as a whole, such as the lack of tests.
                case.class = job.unit.class.clone().unwrap_or_else(|| job.unit.name.clone());
            }
            if self.output_bytes + case.output.len() > OUTPUTS_BYTES_MAX {
                case.output.clear();
            }
            self.output_bytes += case.output.len();
            let known = self.by_id.get(&case.id()).copied();
            match (attempt, known) {
                // Each part of a class reports a test that the filter excludes, if the class as a
                // whole fails.
                (Attempt::First, Some(at))
                    if at < before && !self.suite.is_own(&job.unit, &case) => {}
                (Attempt::First, _) | (_, None) => {
                    is_bad |= case.verdict.is_bad();
                    self.by_id.insert(case.id(), self.results.cases.len());
                    self.results.cases.push(case);
                }
                (_, Some(at)) => {
                    let first = &mut self.results.cases[at];
                    if !first.verdict.is_bad() || matches!(first.note, Some(Note::Flaky { .. })) {
                        continue;
                    }
                    is_bad |= case.verdict.is_bad();
                    if !case.verdict.is_bad() {
                        first.note = Some(match attempt {
                            Attempt::Rerun(rerun) => Note::Flaky { rerun },
                            _ => Note::OrderDependent,
                        });
                    }
                }
            }
        }
        let next = match attempt {
            _ if !is_bad => None,
            Attempt::First if self.options.shuffle.is_some() => Some(Attempt::Ordered),
            Attempt::First | Attempt::Ordered => Some(Attempt::Rerun(1)),
            Attempt::Rerun(n) => Some(Attempt::Rerun(n + 1)),
        };
        let next = next.filter(|next| match next {
            Attempt::Rerun(n) => *n <= self.options.reruns,
            _ => true,
        });
        if let Some(attempt) = next {
            self.again.push_back(Job { unit: job.unit, attempt });
        }
    }
}
