//! Names, files and lines of functions, from their addresses.
//!
//! Names in memory that stays are cached by address: those in memory that processes share
//! (opcache's), and those of PHP's own functions. So processes forked from one template share the
//! cache. All other names are read again each time, because PHP may have reused their addresses.

use crate::callees::{Callees, is_called_so};
use crate::engine::Engine;
use crate::error::Error;
use crate::frames::Raw;
use crate::layout::{CLASS_NAME, Layout, function, op, string};
use crate::memory::{Memory, Piece, half_at, word_at};
use crate::stack::{Frame, Function};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum number of cached functions and lines; beyond that the cache is cleared.
const KEPT_MAX: usize = 200_000;

/// Maximum age of the cache: opcache may restart and put other functions at these addresses.
const AGE_MAX: Duration = Duration::from_secs(1);

/// Maximum length of a name or path; longer ones are truncated.
const NAME_BYTES_MAX: usize = 1024;

/// Maximum number of functions that are called without a frame; PHP has some dozens.
const FRAMELESS_MAX: u32 = 4096;

/// Number of innermost calls that are compared with their callers' opcodes: those that may come and
/// go within an attempt.
const CHECKED_MAX: usize = 3;

/// Maximum number of opcodes of a function.
const OPCODES_MAX: u64 = 1 << 26;

/// Names of functions, by address.
#[derive(Debug, Default)]
pub struct Names {
    functions: HashMap<u64, Known>,
    /// Functions by the addresses of their texts, if these stay: PHP's own, and closures and
    /// scripts of opcache.
    texts_of: HashMap<Texts, Arc<Function>>,
    ops: HashMap<u64, Op>,
    callees: Callees,
    since: Option<Instant>,
    headers: Vec<u8>,
    texts: Vec<u8>,
    /// Index of the call of each frame that was named last; `None`: it has no call of its own.
    calls_of: Vec<Option<usize>>,
}

/// A function whose name is known.
#[derive(Clone, Debug)]
struct Known {
    function: Arc<Function>,
    header: Header,
}

/// Addresses of a function's name, class and file, and its line.
type Texts = (u64, u64, u64, u32);

/// Fields of a `zend_op`.
#[derive(Clone, Copy, Debug)]
struct Op {
    line: u32,
    /// Number of the function, if this opcode calls one without a frame.
    frameless: Option<u32>,
}

/// Fields of a `zend_function`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Header {
    kind: u8,
    flags: u32,
    name: u64,
    scope: u64,
    opcodes: u64,
    last: u64,
    file: u64,
    line: u32,
}

impl Header {
    fn of(bytes: &[u8], layout: &Layout) -> Self {
        let kind = bytes.first().copied().unwrap_or(0);
        let flags = half_at(bytes, function::FLAGS);
        let name = word_at(bytes, function::NAME);
        let scope = word_at(bytes, function::SCOPE);
        if kind == function::INTERNAL {
            return Self { kind, flags, name, scope, ..Self::default() };
        }
        Self {
            kind,
            flags,
            name,
            scope,
            opcodes: word_at(bytes, layout.opcodes),
            last: u64::from(half_at(bytes, layout.last)),
            file: word_at(bytes, layout.filename),
            line: half_at(bytes, layout.line_start),
        }
    }

    fn is_user(&self) -> bool {
        matches!(self.kind, function::USER | function::EVAL)
    }

    /// Whether an opcode belongs to this function. If not, the read was torn.
    fn has(&self, opline: u64) -> bool {
        let bytes = self.last.min(OPCODES_MAX) * op::BYTES as u64;
        let offset = opline.wrapping_sub(self.opcodes);
        offset < bytes && offset.is_multiple_of(op::BYTES as u64)
    }

    fn texts(&self) -> Texts {
        (self.name, self.scope, self.file, self.line)
    }

    /// Whether its texts stay where they are: in memory that processes share, or as long as the
    /// process lives. Two kinds of PHP's own functions may not stay. The trampoline of a magic
    /// method has a name that is freed. An enum's function has a class that may be freed.
    fn stays(&self, engine: &Engine) -> bool {
        let is_shared = |at: u64| at == 0 || lies_in(&engine.steady, at);
        if self.flags & function::IS_TRAMPOLINE != 0 {
            return false;
        }
        if self.kind == function::INTERNAL {
            return is_shared(self.scope) || lies_in(&engine.permanent, self.scope);
        }
        is_shared(self.name) && is_shared(self.scope) && is_shared(self.file)
    }

    fn may_be(&self) -> bool {
        self.kind == function::INTERNAL
            || (self.is_user() && self.opcodes != 0 && self.file != 0 && self.last != 0)
    }
}

impl Names {
    /// Creates an empty cache.
    pub fn new() -> Self {
        Self::default()
    }

    /// Names the calls. `None` if they contradict each other, as torn ones do.
    pub(crate) fn name(
        &mut self,
        memory: &impl Memory,
        engine: &Engine,
        executor: u64,
        calls: &[Raw],
    ) -> Result<Option<Vec<Frame>>, Error> {
        self.forget_what_is_old();
        let mut found = HashMap::with_capacity(calls.len().min(256));
        let called: Vec<u64> = calls.iter().map(|call| call.func).collect();
        if !self.functions(memory, engine, &called, &mut found)? {
            return Ok(None);
        }
        let thrown = thrown(memory, engine.layout, executor, calls, &found)?;
        let oplines = oplines(calls, &found, &thrown);
        let Some(oplines) = oplines else { return Ok(None) };
        if !self.agrees(memory, engine, calls, &oplines, &found)? {
            return Ok(None);
        }
        let ops = self.ops(memory, engine, &oplines)?;
        let frameless = self.frameless(memory, engine, &ops, &mut found)?;
        let mut frames = Vec::with_capacity(calls.len());
        self.calls_of.clear();
        for (at, (call, opline)) in calls.iter().zip(&oplines).enumerate() {
            let Some(known) = found.get(&call.func) else { continue };
            if known.header.kind == function::INTERNAL && known.function.name.is_empty() {
                // PHP's own placeholders: the start of a fiber, or a call from an internal
                // function.
                continue;
            }
            let op = opline.and_then(|opline| ops.get(&opline));
            let line = match op {
                _ if !known.header.is_user() => 0,
                Some(op) => op.line,
                None => known.header.line,
            };
            let within = op.and_then(|op| found.get(frameless.get(&op.frameless?)?));
            if let Some(within) = within.filter(|within| !within.header.is_user()) {
                frames.push(Frame { function: Arc::clone(&within.function), line: 0 });
                self.calls_of.push(None);
            }
            frames.push(Frame { function: Arc::clone(&known.function), line });
            self.calls_of.push(Some(at));
        }
        name_codes(&mut frames);
        Ok(Some(frames))
    }

    /// Index of the call of each frame that [`Names::name`] has returned last.
    pub(crate) fn calls_of(&self) -> &[Option<usize>] {
        &self.calls_of
    }

    /// Notes that a stack moved during an attempt.
    pub(crate) fn note_moved(&mut self) {
        self.callees.agree();
    }

    /// Notes that none of `looks` attempts at a stack succeeded.
    pub(crate) fn note_torn(&mut self, looks: u32) {
        self.callees.note_torn(looks);
    }

    fn forget_what_is_old(&mut self) {
        let is_old = self.since.is_some_and(|since| since.elapsed() > AGE_MAX);
        if is_old
            || self.functions.len().max(self.texts_of.len()) > KEPT_MAX
            || self.ops.len().max(self.callees.len()) > KEPT_MAX
        {
            self.functions.clear();
            self.texts_of.clear();
            self.ops.clear();
            self.callees.clear();
            self.since = None;
        }
        self.since.get_or_insert_with(Instant::now);
    }

    /// Whether the innermost calls match the names in their callers' opcodes, as far as these have
    /// names.
    fn agrees(
        &mut self,
        memory: &impl Memory,
        engine: &Engine,
        calls: &[Raw],
        oplines: &[Option<u64>],
        found: &HashMap<u64, Known>,
    ) -> Result<bool, Error> {
        for (inner, outer) in (1..calls.len().min(1 + CHECKED_MAX)).enumerate() {
            let call = &calls[inner];
            let (Some(known), Some(from)) = (found.get(&call.func), found.get(&calls[outer].func))
            else {
                continue;
            };
            let Some(opline) = oplines[outer] else { continue };
            let name = &known.function.name;
            if call.is_outermost || !known.header.is_user() || name.is_empty() {
                continue;
            }
            let stays = lies_in(&engine.steady, opline);
            let written = self.callees.called(memory, from.header.opcodes, opline, stays)?;
            let is_so = written.is_none_or(|written| is_called_so(name, &written));
            if !is_so && self.callees.contradicts(opline, call.func) {
                return Ok(false);
            }
        }
        self.callees.agree();
        Ok(true)
    }

    /// Finds these functions, by their addresses. Returns false if one of them is not a function.
    fn functions(
        &mut self,
        memory: &impl Memory,
        engine: &Engine,
        called: &[u64],
        found: &mut HashMap<u64, Known>,
    ) -> Result<bool, Error> {
        let mut unknown = Vec::new();
        for func in called {
            if found.contains_key(func) {
                continue;
            }
            let known = self.functions.get(func).cloned();
            if known.is_none() {
                unknown.push(*func);
            }
            found.insert(*func, known.unwrap_or_else(Known::nobody));
        }
        if unknown.is_empty() {
            return Ok(true);
        }
        let Some(headers) = self.headers(memory, engine.layout, &unknown)? else {
            return Ok(false);
        };
        let mut nameless = Vec::new();
        for (address, header) in unknown.into_iter().zip(headers) {
            match self.texts_of.get(&header.texts()) {
                Some(function) if header.stays(engine) => {
                    let function = Arc::clone(function);
                    found.insert(address, Known { function, header });
                }
                _ => nameless.push((address, header)),
            }
        }
        let Some(functions) = self.describe(memory, &nameless)? else { return Ok(false) };
        for ((address, header), function) in nameless.into_iter().zip(functions) {
            let known = Known { function: Arc::new(function), header };
            self.keep(address, &known, engine);
            found.insert(address, known);
        }
        Ok(true)
    }

    /// Caches a function whose memory stays.
    fn keep(&mut self, address: u64, known: &Known, engine: &Engine) {
        let header = &known.header;
        if header.stays(engine) {
            self.texts_of.insert(header.texts(), Arc::clone(&known.function));
        }
        let is_shared = lies_in(&engine.steady, address) && lies_in(&engine.steady, header.opcodes);
        if header.is_user() && header.stays(engine) && is_shared {
            self.functions.insert(address, known.clone());
        }
    }

    fn headers(
        &mut self,
        memory: &impl Memory,
        layout: &Layout,
        addresses: &[u64],
    ) -> Result<Option<Vec<Header>>, Error> {
        let whole = |address: &u64| Piece { address: *address, bytes: function::BYTES };
        let pieces: Vec<_> = addresses.iter().map(whole).collect();
        let came = memory.copy_each(&pieces, &mut self.headers)?;
        let mut headers = Vec::with_capacity(addresses.len());
        for ((bytes, came), address) in
            self.headers.chunks_exact(function::BYTES).zip(came).zip(addresses)
        {
            let mut short = [0; function::INTERNAL_BYTES];
            let header = if came {
                Header::of(bytes, layout)
            } else if memory.fill(*address, &mut short)?
                && short[function::TYPE] == function::INTERNAL
            {
                Header::of(&short, layout)
            } else {
                return Ok(None);
            };
            if !header.may_be() {
                return Ok(None);
            }
            headers.push(header);
        }
        Ok(Some(headers))
    }

    /// Texts of functions: names, their classes' names, files.
    fn describe(
        &mut self,
        memory: &impl Memory,
        headers: &[(u64, Header)],
    ) -> Result<Option<Vec<Function>>, Error> {
        if headers.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let classes: Vec<_> = headers
            .iter()
            .filter(|(_, header)| header.scope != 0)
            .map(|(_, header)| Piece {
                address: header.scope.wrapping_add(CLASS_NAME as u64),
                bytes: 8,
            })
            .collect();
        if !memory.copy_each(&classes, &mut self.texts)?.iter().all(|came| *came) {
            return Ok(None);
        }
        let mut class_names = self.texts.chunks_exact(8).map(|word| word_at(word, 0));
        let mut wanted = Vec::with_capacity(headers.len() * 3);
        for (_, header) in headers {
            let class = if header.scope == 0 { 0 } else { class_names.next().unwrap_or(0) };
            wanted.extend([header.name, class, header.file]);
        }
        let Some(mut texts) = self.texts(memory, &wanted)? else { return Ok(None) };
        let functions =
            headers.iter().zip(texts.chunks_exact_mut(3)).map(|((_, header), texts)| {
                let mut take = |place: usize| std::mem::take(&mut texts[place]);
                Function { name: take(0), class: take(1), file: take(2), line: header.line }
            });
        Ok(Some(functions.collect()))
    }

    /// PHP's strings at these addresses; 0 means an empty string. `None` if one is not a string.
    fn texts(
        &mut self,
        memory: &impl Memory,
        addresses: &[u64],
    ) -> Result<Option<Vec<String>>, Error> {
        let there = addresses.iter().filter(|address| **address != 0);
        let lengths: Vec<_> = there
            .clone()
            .map(|address| Piece { address: address.wrapping_add(string::LEN as u64), bytes: 8 })
            .collect();
        if !memory.copy_each(&lengths, &mut self.texts)?.iter().all(|came| *came) {
            return Ok(None);
        }
        let lengths = self.texts.chunks_exact(8).map(|word| word_at(word, 0));
        let pieces: Vec<_> = there
            .zip(lengths)
            .map(|(address, length)| Piece {
                address: address.wrapping_add(string::VAL as u64),
                bytes: usize::try_from(length).unwrap_or(usize::MAX).min(NAME_BYTES_MAX),
            })
            .collect();
        if !memory.copy_each(&pieces, &mut self.texts)?.iter().all(|came| *came) {
            return Ok(None);
        }
        let (mut offset, mut next) = (0, pieces.iter());
        let text = |address: &u64| {
            let bytes = if *address == 0 { 0 } else { next.next().map_or(0, |piece| piece.bytes) };
            offset += bytes;
            printable(&self.texts[offset - bytes..offset])
        };
        Ok(Some(addresses.iter().map(text).collect()))
    }

    /// Opcodes, from the cache or read. Opcodes that cannot be read, or have no line, are left out.
    fn ops(
        &mut self,
        memory: &impl Memory,
        engine: &Engine,
        oplines: &[Option<u64>],
    ) -> Result<HashMap<u64, Op>, Error> {
        let mut ops = HashMap::new();
        let mut unknown = Vec::new();
        for opline in oplines.iter().flatten() {
            if let Some(op) = self.ops.get(opline) {
                ops.insert(*opline, *op);
            } else if ops.insert(*opline, Op { line: 0, frameless: None }).is_none() {
                let address = opline.wrapping_add(op::EXTENDED_VALUE as u64);
                unknown.push(Piece { address, bytes: op::COPIED });
            }
        }
        if unknown.is_empty() {
            return Ok(ops);
        }
        let came = memory.copy_each(&unknown, &mut self.texts)?;
        for ((bytes, piece), came) in self.texts.chunks_exact(op::COPIED).zip(&unknown).zip(came) {
            let opline = piece.address.wrapping_sub(op::EXTENDED_VALUE as u64);
            let is_frameless = op::FRAMELESS.contains(&bytes[8]);
            let op =
                Op { line: half_at(bytes, 4), frameless: is_frameless.then(|| half_at(bytes, 0)) };
            if came && op.line != 0 {
                ops.insert(opline, op);
                if lies_in(&engine.steady, opline) {
                    self.ops.insert(opline, op);
                }
            } else {
                ops.remove(&opline);
            }
        }
        Ok(ops)
    }

    /// Functions that opcodes call without a frame: their addresses by number. Adds them to
    /// `found`.
    fn frameless(
        &mut self,
        memory: &impl Memory,
        engine: &Engine,
        ops: &HashMap<u64, Op>,
        found: &mut HashMap<u64, Known>,
    ) -> Result<HashMap<u32, u64>, Error> {
        let mut all = HashMap::new();
        let numbers = ops.values().filter_map(|op| op.frameless).filter(|n| *n < FRAMELESS_MAX);
        let numbers: Vec<_> = numbers.collect();
        let (Some(variable), false) = (engine.frameless, numbers.is_empty()) else {
            return Ok(all);
        };
        let Some(table) = memory.word(variable)? else { return Ok(all) };
        for number in numbers {
            let place = table.wrapping_add(u64::from(number) * 8);
            let Some(func) = memory.word(place)? else { continue };
            let mut known = HashMap::new();
            if self.functions(memory, engine, &[func], &mut known)? {
                found.extend(known);
                all.insert(number, func);
            }
        }
        Ok(all)
    }
}

impl Known {
    fn nobody() -> Self {
        Self { function: Arc::default(), header: Header::default() }
    }
}

fn lies_in(ranges: &[Range<u64>], address: u64) -> bool {
    ranges.iter().any(|range| range.contains(&address))
}

/// The opcode at which an exception was thrown, if the current call handles one: PHP then points to
/// opcodes of its own.
fn thrown(
    memory: &impl Memory,
    layout: &Layout,
    executor: u64,
    calls: &[Raw],
    found: &HashMap<u64, Known>,
) -> Result<HashMap<u64, u64>, Error> {
    let mut thrown = HashMap::new();
    let before = executor.wrapping_add(layout.opline_before_exception as u64);
    let own = before.wrapping_add(8)..before.wrapping_add(8 + 3 * op::BYTES as u64);
    for call in calls.iter().filter(|call| own.contains(&call.opline)) {
        let opline = memory.word(before)?.unwrap_or(0);
        let is_of_it = found.get(&call.func).is_some_and(|known| known.header.has(opline));
        thrown.insert(call.opline, if is_of_it { opline } else { 0 });
    }
    Ok(thrown)
}

/// The present opcode of each call, if it is known. `None` if one belongs to another function.
fn oplines(
    calls: &[Raw],
    found: &HashMap<u64, Known>,
    thrown: &HashMap<u64, u64>,
) -> Option<Vec<Option<u64>>> {
    let opline = |(depth, call): (usize, &Raw)| {
        let header = &found.get(&call.func)?.header;
        if !header.is_user() {
            return Some(None);
        }
        let opline = thrown.get(&call.opline).copied().unwrap_or(call.opline);
        if header.has(opline) {
            return Some(Some(opline));
        }
        // The JIT does not store the opcode of the current call, but does store those of its
        // callers.
        (depth == 0 || opline == 0).then_some(None)
    };
    calls.iter().enumerate().map(opline).collect()
}

/// Names code outside functions: the outermost is the script, the others are included or evaluated.
fn name_codes(frames: &mut [Frame]) {
    let outermost = frames.len();
    for (depth, frame) in frames.iter_mut().enumerate() {
        if !frame.function.name.is_empty() {
            continue;
        }
        let name = match &frame.function.file {
            file if file.ends_with(": eval()'d code") => "{eval}",
            _ if depth + 1 == outermost => "{main}",
            _ => "{include}",
        };
        frame.function = Arc::new(Function { name: name.to_owned(), ..(*frame.function).clone() });
    }
}

/// A text that is safe for a terminal and a log. The name of an anonymous class continues with a
/// zero byte and a file.
fn printable(bytes: &[u8]) -> String {
    let bytes = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    samovar_log::printable(&String::from_utf8_lossy(bytes)).into_owned()
}
