//! front → intake: a batch of finished requests.
//!
//! Most requests consist of numbers that fit 32 bits, and of texts that other requests of the same
//! batch have too. These are packed into 64 bytes each, one after another. The aggregation thread
//! never reads their texts: fetching them from another core's cache took longer than all its other
//! work. Requests with more data are stored whole.

use crate::finished::{End, Finished, Model, Numbers};
use crate::heat_map::{HEAT_ROWS, heat_row};
use crate::histogram::{Counted, Counting};
use crate::report::REPORT_BYTES_MAX;
use foldhash::quality::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::ops::Range;
use std::sync::LazyLock;

/// Number of rows at which a batch is sent.
pub(crate) const BATCH_ROWS_MAX: usize = 256;
/// Number of bytes at which a batch is sent. One more row may exceed it: the longest row has five
/// texts of at most [`TEXT_BYTES_MAX`] and a report.
pub(crate) const BATCH_BYTES_MAX: usize = 64 * 1024;
/// Maximum bytes of a path, a script's name or an id.
pub(crate) const TEXT_BYTES_MAX: usize = 1024;
/// Hash key of this process. Being random, it prevents texts chosen to have equal marks.
static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::default);

/// Maximum number of kinds, the latest ones, that a request is compared with before it gets a new
/// kind.
const KINDS_COMPARED_MAX: usize = 8;
/// Lowest status of a failed request, whose details are kept.
const FAILED_FROM: u16 = 500;

/// Position of a part in a batch's texts or reports.
#[derive(Clone, Copy, Debug)]
struct Part {
    begin: u32,
    end: u32,
}

impl Part {
    fn range(self) -> Range<usize> {
        self.begin as usize..self.end as usize
    }
}

/// A request that is not packed.
#[derive(Clone, Copy, Debug)]
struct Row {
    numbers: Numbers,
    method: Part,
    path: Part,
    script: Part,
    id: Part,
    pool: Part,
    report: Part,
}

/// Returns a number that identifies texts: equal texts have equal marks. Different texts have equal
/// marks with a probability of 1 in 2⁶⁴. It is computed while the texts are in the cache, so that
/// they need not be fetched and compared later.
#[must_use]
pub fn mark(before: u64, texts: &[&[u8]]) -> u64 {
    let mut hasher = KEY.build_hasher();
    hasher.write_u64(before);
    for text in texts {
        hasher.write_usize(text.len());
        hasher.write(text);
    }
    hasher.finish()
}

/// Returns the mark of a request's id.
#[must_use]
pub fn id_mark(id: &[u8]) -> u64 {
    mark(0, &[id])
}

/// Marks that identify a request without its texts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Marks {
    /// Mark of method, path, script and pool together.
    pub texts: u64,
    /// Mark of the id, see [`id_mark`].
    pub id: u64,
}

/// Common data of packed requests.
#[derive(Clone, Copy, Debug)]
struct Kind {
    mark: u64,
    method: Part,
    path: Part,
    script: Part,
    pool: Part,
    status: u16,
    model: Model,
    end: End,
    is_https: bool,
    generation: u32,
    /// First and last request of the kind, as indexes, and their number.
    first: u16,
    last: u16,
    requests: u16,
}

/// Individual data of a packed request. Times in ns, sizes in bytes.
#[derive(Clone, Copy, Debug)]
struct Packed {
    wall_ns: u32,
    queue_ns: u32,
    run_ns: u32,
    cpu_ns: u32,
    rollback_ns: u32,
    rollback_pages: u32,
    faults_minor: u32,
    peak_bytes: u32,
    bytes_in: u32,
    bytes_out: u32,
    id_mark: u64,
    worker: u32,
    switches_voluntary: u16,
    switches_involuntary: u16,
    /// Index of the next request of the same kind.
    next: u16,
}

const _: () = assert!(size_of::<Packed>() <= 64 && BATCH_ROWS_MAX <= u16::MAX as usize);

impl Packed {
    /// Packs numbers. Returns `None` if a number is too large, or if the request needs its details
    /// kept.
    fn of(numbers: &Numbers) -> Option<Packed> {
        let n = numbers;
        let has_more = n.is_sampled || n.retries > 0 || n.faults_major > 0 || n.grown_bytes != 0;
        if has_more || n.status >= FAILED_FROM || n.model == Model::Elsewhere {
            return None;
        }
        let short = |long: u64| u32::try_from(long).ok();
        Some(Packed {
            wall_ns: short(n.wall_ns)?,
            queue_ns: short(n.queue_ns)?,
            run_ns: short(n.run_ns)?,
            cpu_ns: short(n.cpu_ns)?,
            rollback_ns: short(n.rollback_ns)?,
            rollback_pages: n.rollback_pages,
            faults_minor: n.faults_minor,
            peak_bytes: short(n.peak_bytes)?,
            bytes_in: short(n.bytes_in)?,
            bytes_out: short(n.bytes_out)?,
            id_mark: 0,
            worker: n.worker,
            switches_voluntary: u16::try_from(n.switches_voluntary).ok()?,
            switches_involuntary: u16::try_from(n.switches_involuntary).ok()?,
            next: 0,
        })
    }
}

/// A batch: requests in order, their texts in one buffer, their workers' reports in another.
#[derive(Debug, Default)]
pub struct Batch {
    rows: Vec<Row>,
    kinds: Vec<Kind>,
    packed: Vec<Packed>,
    /// Kind of the request that was packed last.
    latest: usize,
    texts: String,
    reports: Vec<u8>,
}

impl Batch {
    /// Adds a whole request. Texts beyond their limits are truncated.
    pub fn put(&mut self, finished: &Finished) {
        let row = Row {
            numbers: finished.numbers,
            method: self.text(finished.method),
            path: self.text(finished.path),
            script: self.text(finished.script),
            id: self.text(finished.id),
            pool: self.text(finished.pool),
            report: self.report(finished.report),
        };
        self.rows.push(row);
    }

    /// Adds a packed request if the batch already has its kind; returns whether it did. The request
    /// must have no data but its numbers.
    pub(crate) fn pack_beside(&mut self, numbers: &Numbers, marks: Marks) -> bool {
        let Some(kind) = self.kind_of(numbers, marks.texts) else { return false };
        let Some(packed) = Packed::of(numbers) else { return false };
        self.put_packed(kind, packed, marks.id);
        true
    }

    /// Adds a request, packed if its numbers allow it. The request must have no data but its
    /// numbers and texts.
    pub fn pack(&mut self, finished: &Finished, marks: Marks) {
        let Some(packed) = Packed::of(&finished.numbers) else { return self.put(finished) };
        let known = self.kind_of(&finished.numbers, marks.texts);
        let kind = known.unwrap_or_else(|| self.begin_kind(finished, marks.texts));
        self.put_packed(kind, packed, marks.id);
    }

    fn put_packed(&mut self, kind: usize, packed: Packed, id_mark: u64) {
        let at = self.packed.len() as u16;
        let of = &mut self.kinds[kind];
        if of.requests == 0 {
            of.first = at;
        } else {
            self.packed[usize::from(of.last)].next = at;
        }
        of.last = at;
        of.requests += 1;
        self.latest = kind;
        self.packed.push(Packed { id_mark, ..packed });
    }

    fn kind_of(&self, n: &Numbers, mark: u64) -> Option<usize> {
        let is = |kind: &Kind| {
            (kind.mark, kind.generation, kind.status) == (mark, n.generation, n.status)
                && (kind.model, kind.end, kind.is_https) == (n.model, n.end, n.is_https)
        };
        if self.kinds.get(self.latest).is_some_and(is) {
            return Some(self.latest);
        }
        let first = self.kinds.len().saturating_sub(KINDS_COMPARED_MAX);
        self.kinds[first..].iter().position(is).map(|place| first + place)
    }

    fn begin_kind(&mut self, finished: &Finished, mark: u64) -> usize {
        let n = &finished.numbers;
        let kind = Kind {
            mark,
            method: self.text(finished.method),
            path: self.text(finished.path),
            script: self.text(finished.script),
            pool: self.text(finished.pool),
            status: n.status,
            model: n.model,
            end: n.end,
            is_https: n.is_https,
            generation: n.generation,
            first: 0,
            last: 0,
            requests: 0,
        };
        self.kinds.push(kind);
        self.kinds.len() - 1
    }

    fn text(&mut self, text: &str) -> Part {
        let begin = self.texts.len() as u32;
        self.texts.push_str(cut(text, TEXT_BYTES_MAX));
        Part { begin, end: self.texts.len() as u32 }
    }

    fn report(&mut self, report: &[u8]) -> Part {
        let begin = self.reports.len() as u32;
        self.reports.extend_from_slice(&report[..report.len().min(REPORT_BYTES_MAX)]);
        Part { begin, end: self.reports.len() as u32 }
    }

    /// Returns whether the batch must be sent.
    pub(crate) fn is_full(&self) -> bool {
        let bytes = self.texts.len() + self.reports.len();
        self.len() >= BATCH_ROWS_MAX || bytes >= BATCH_BYTES_MAX
    }

    /// Returns the number of requests.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len() + self.packed.len()
    }

    /// Returns whether the batch has no requests.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn clear(&mut self) {
        self.rows.clear();
        self.kinds.clear();
        self.packed.clear();
        self.latest = 0;
        self.texts.clear();
        self.reports.clear();
    }

    /// Returns the whole requests, in the order in which they were added.
    pub fn whole(&self) -> impl Iterator<Item = Finished<'_>> {
        self.rows.iter().map(|row| Finished {
            numbers: row.numbers,
            method: &self.texts[row.method.range()],
            path: &self.texts[row.path.range()],
            script: &self.texts[row.script.range()],
            id: &self.texts[row.id.range()],
            pool: &self.texts[row.pool.range()],
            report: &self.reports[row.report.range()],
        })
    }

    /// Returns the packed requests by kind.
    pub(crate) fn alike(&self) -> impl Iterator<Item = Alike<'_>> {
        self.kinds.iter().map(|kind| Alike { batch: self, kind })
    }
}

/// Packed requests of one kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alike<'a> {
    batch: &'a Batch,
    kind: &'a Kind,
}

impl<'a> Alike<'a> {
    fn rows(&self) -> impl Iterator<Item = &'a Packed> {
        let packed = &self.batch.packed;
        let first = packed.get(usize::from(self.kind.first));
        std::iter::successors(first, |row| packed.get(usize::from(row.next)))
            .take(usize::from(self.kind.requests))
    }

    /// Returns the common data as a request without an id and individual numbers.
    pub(crate) fn common(&self) -> Finished<'a> {
        let Kind { method, path, script, pool, .. } = *self.kind;
        let Kind { status, model, end, is_https, generation, .. } = *self.kind;
        let texts = &self.batch.texts;
        Finished {
            numbers: Numbers { status, model, end, generation, is_https, ..Numbers::default() },
            method: &texts[method.range()],
            path: &texts[path.range()],
            script: &texts[script.range()],
            id: "",
            pool: &texts[pool.range()],
            report: &[],
        }
    }

    /// Returns the marks of these requests' ids that are in `marks`, which must be sorted in
    /// ascending order.
    pub(crate) fn marked(&self, marks: &[u64]) -> impl Iterator<Item = u64> {
        let all = self.rows().map(|row| row.id_mark);
        all.filter(|mark| marks.binary_search(mark).is_ok())
    }

    /// Counts the requests by worker, without those that had none. The result is in `counts`, which
    /// is cleared first.
    pub(crate) fn by_worker(&self, counts: &mut Vec<(u32, u64)>) {
        counts.clear();
        let mut last = 0;
        for row in self.rows().filter(|row| row.worker != 0) {
            if counts.get(last).is_none_or(|(worker, _)| *worker != row.worker) {
                let known = counts.iter().position(|(worker, _)| *worker == row.worker);
                last = known.unwrap_or(counts.len());
            }
            match counts.get_mut(last) {
                Some((_, requests)) => *requests += 1,
                None => counts.push((row.worker, 1)),
            }
        }
    }

    /// Returns the number of requests.
    pub(crate) fn len(&self) -> usize {
        usize::from(self.kind.requests)
    }

    /// Returns each request with its own numbers, but without its id. Other fields are empty for
    /// packed requests.
    pub(crate) fn each(&self) -> impl Iterator<Item = Finished<'a>> {
        let common = self.common();
        self.rows().map(move |row| {
            let numbers = Numbers {
                wall_ns: row.wall_ns.into(),
                queue_ns: row.queue_ns.into(),
                run_ns: row.run_ns.into(),
                cpu_ns: row.cpu_ns.into(),
                rollback_ns: row.rollback_ns.into(),
                rollback_pages: row.rollback_pages,
                faults_minor: row.faults_minor,
                peak_bytes: row.peak_bytes.into(),
                bytes_in: row.bytes_in.into(),
                bytes_out: row.bytes_out.into(),
                worker: row.worker,
                switches_voluntary: row.switches_voluntary.into(),
                switches_involuntary: row.switches_involuntary.into(),
                ..common.numbers
            };
            Finished { numbers, ..common }
        })
    }

    /// Adds up the requests' figures.
    pub(crate) fn sums(&self, counting: &mut Counting, sums: &mut Sums) {
        sums.begin(self.common().numbers, u64::from(self.kind.requests));
        for row in self.rows() {
            let queue_ns = u64::from(row.queue_ns);
            counting.take(row.wall_ns);
            sums.heat[heat_row(u64::from(row.wall_ns))] += 1;
            sums.queue_ns += queue_ns;
            sums.queue_ns_max = sums.queue_ns_max.max(queue_ns);
            sums.cpu_ns += u64::from(row.cpu_ns);
            sums.run_ns += u64::from(row.run_ns);
            sums.rollback_ns += u64::from(row.rollback_ns);
            sums.rollback_pages += u64::from(row.rollback_pages);
            sums.faults_minor += u64::from(row.faults_minor);
            sums.switches_voluntary += u64::from(row.switches_voluntary);
            sums.switches_involuntary += u64::from(row.switches_involuntary);
            sums.peak_bytes_max = sums.peak_bytes_max.max(u64::from(row.peak_bytes));
            sums.peak_bytes += u64::from(row.peak_bytes);
            sums.bytes_in += u64::from(row.bytes_in);
            sums.bytes_out += u64::from(row.bytes_out);
        }
        counting.end(&mut sums.wall);
        let of_workers = || self.rows().filter(|row| row.worker != 0);
        of_workers().for_each(|row| counting.take(row.queue_ns));
        counting.end(&mut sums.queue);
        of_workers().for_each(|row| counting.take(row.cpu_ns));
        counting.end(&mut sums.cpu);
    }
}

/// Sums over requests of one kind. Times in ns, sizes in bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sums {
    /// Common data; individual numbers are 0.
    pub(crate) common: Numbers,
    pub(crate) requests: u64,
    pub(crate) wall: Counted,
    /// Queue time of requests that a worker took; the same applies to `cpu`.
    pub(crate) queue: Counted,
    pub(crate) cpu: Counted,
    pub(crate) queue_ns: u64,
    pub(crate) queue_ns_max: u64,
    pub(crate) cpu_ns: u64,
    pub(crate) run_ns: u64,
    pub(crate) rollback_ns: u64,
    pub(crate) rollback_pages: u64,
    pub(crate) faults_minor: u64,
    pub(crate) switches_voluntary: u64,
    pub(crate) switches_involuntary: u64,
    pub(crate) peak_bytes_max: u64,
    pub(crate) peak_bytes: u64,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
    /// Requests by row of the latency heat map.
    pub(crate) heat: [u32; HEAT_ROWS],
}

impl Sums {
    /// Resets the sums for this number of requests. The buffers keep their capacity.
    fn begin(&mut self, common: Numbers, requests: u64) {
        let Sums { wall, queue, cpu, .. } = std::mem::take(self);
        *self = Sums { common, requests, wall, queue, cpu, ..Sums::default() };
    }
}

/// Returns the beginning of a text, at most this number of bytes, cut at a character boundary.
pub(crate) fn cut(text: &str, bytes_max: usize) -> &str {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::{BATCH_BYTES_MAX, Batch, Finished, Marks, Numbers, TEXT_BYTES_MAX, id_mark, mark};

    #[test]
    fn batch_returns_requests_as_added() {
        let mut batch = Batch::default();
        let long = "ä".repeat(TEXT_BYTES_MAX);
        for n in 0..3 {
            let path = format!("/page/{n}");
            batch.put(&Finished {
                numbers: Numbers { status: 200 + n, ..Numbers::default() },
                method: "GET",
                path: &path,
                script: &long,
                id: "",
                pool: "api",
                report: b"\x01",
            });
        }
        let all: Vec<_> = batch.whole().collect();
        assert_eq!(all.len(), 3);
        for (n, one) in all.iter().enumerate() {
            assert_eq!((one.method, one.id, one.report), ("GET", "", &b"\x01"[..]));
            assert_eq!((one.path, one.pool), (&*format!("/page/{n}"), "api"));
            assert_eq!(usize::from(one.numbers.status), 200 + n);
            assert_eq!(one.script, "ä".repeat(TEXT_BYTES_MAX / 2));
        }
        batch.clear();
        assert!(batch.is_empty());
    }

    #[test]
    fn long_rows_fill_batch_by_bytes() {
        let mut batch = Batch::default();
        let text = "x".repeat(TEXT_BYTES_MAX);
        let finished = Finished { path: &text, script: &text, ..Finished::default() };
        while !batch.is_full() {
            batch.put(&finished);
        }
        assert_eq!(batch.len(), BATCH_BYTES_MAX / (2 * TEXT_BYTES_MAX));
    }

    fn marks(finished: &Finished) -> Marks {
        Marks { texts: mark(0, &[finished.path.as_bytes()]), id: id_mark(finished.id.as_bytes()) }
    }

    #[test]
    fn requests_of_one_kind_share_their_texts() {
        let mut batch = Batch::default();
        for n in 0..6 {
            let (id, path) = (format!("request-{n}"), ["/a", "/b", "/a"][n % 3]);
            let numbers = Numbers { worker: 7 + n as u32 % 2, wall_ns: 10, ..Numbers::default() };
            let one = Finished { numbers, path, id: &id, ..Finished::default() };
            let is_known = batch.pack_beside(&numbers, marks(&one));
            assert_eq!(is_known, n > 1, "{n}");
            if !is_known {
                batch.pack(&one, marks(&one));
            }
            // These requests failed, are traced, ran again, left memory, or are too large.
            for numbers in [
                Numbers { status: 500, ..numbers },
                Numbers { is_sampled: true, ..numbers },
                Numbers { retries: 1, ..numbers },
                Numbers { grown_bytes: -1, ..numbers },
                Numbers { bytes_out: 1 << 32, ..numbers },
            ] {
                assert!(!batch.pack_beside(&numbers, marks(&one)));
                batch.pack(&Finished { numbers, ..one }, marks(&one));
            }
        }
        let kinds: Vec<_> = batch.alike().map(|a| (a.common().path, a.rows().count())).collect();
        assert_eq!(kinds, [("/a", 4), ("/b", 2)]);
        assert_eq!((batch.whole().count(), batch.len()), (30, 36));
        let mut counts = Vec::new();
        batch.alike().next().unwrap().by_worker(&mut counts);
        assert_eq!(counts, [(7, 2), (8, 2)]);
        let mut wanted = ["request-3", "request-4", "request-9"].map(|id| id_mark(id.as_bytes()));
        wanted.sort_unstable();
        let found: Vec<_> = batch.alike().map(|a| a.marked(&wanted).count()).collect();
        assert_eq!(found, [1, 1]);
    }

    #[test]
    fn batch_accepts_more_kinds_than_are_compared() {
        let mut batch = Batch::default();
        while !batch.is_full() {
            let path = format!("/{}", batch.len() % 20);
            let one = Finished { path: &path, ..Finished::default() };
            batch.pack(&one, marks(&one));
        }
        let requests: usize = batch.alike().map(|alike| alike.rows().count()).sum();
        assert_eq!((requests, batch.whole().count()), (batch.len(), 0));
        batch.clear();
        assert!(batch.is_empty() && batch.alike().next().is_none());
    }

    #[test]
    fn mark_depends_on_boundaries_of_texts() {
        assert_ne!(mark(0, &[b"a", b"bc"]), mark(0, &[b"ab", b"c"]));
        assert_ne!(mark(1, &[b"a"]), mark(2, &[b"a"]));
        assert_eq!(mark(1, &[b"a"]), mark(1, &[b"a"]));
    }
}
