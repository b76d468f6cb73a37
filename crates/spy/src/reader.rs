//! A process under observation: tries to read its stacks until one holds still.

use crate::engine::{self, Engine, Files};
use crate::error::Error;
use crate::frames::{Look, Walker};
use crate::heap::{self, HeapUse};
use crate::layout::request_info;
use crate::memory::{Memory, Process};
use crate::names::Names;
use crate::peek::{CallAddress, Peek};
use crate::stack::{Frame, Stack};
use crate::threads::Context;

/// Maximum number of attempts until a stack holds still. Each costs a few microseconds.
const LOOKS_MAX: u32 = 16;

/// Maximum bytes read of a request's target.
const TARGET_BYTES_MAX: usize = 512;

/// A process whose PHP is known.
#[derive(Debug)]
pub struct Reader {
    pid: u32,
    memory: Process,
    engine: Engine,
    walker: Walker,
    peeks: Vec<Peek>,
    /// Values of these variables at the last read, by thread.
    peeked: Vec<(u32, Vec<Option<String>>)>,
}

/// Result of a read.
#[derive(Debug, PartialEq, Eq)]
pub enum Reading {
    /// Calls that were all running at one moment.
    Stack(Stack),
    /// No PHP code runs in the thread.
    Idle {
        /// The thread.
        thread: u32,
    },
    /// The stack changed at each attempt: nothing is shown, and samplers count it.
    Torn {
        /// The thread.
        thread: u32,
    },
}

/// Reads the stack of a process: of the first of its threads that runs PHP code. It has no frames
/// if no thread does.
///
/// ```no_run
/// match samovar_spy::read_stack(4711) {
///     Ok(stack) => print!("{stack}"),
///     Err(error) => eprintln!("{error}"),
/// }
/// ```
pub fn read_stack(pid: u32) -> Result<Stack, Error> {
    let mut reader = Reader::open(pid, &mut Files::default())?;
    let mut is_torn = false;
    for reading in reader.read(&mut Names::new())? {
        match reading {
            Reading::Stack(stack) => return Ok(stack),
            Reading::Torn { .. } => is_torn = true,
            Reading::Idle { .. } => {}
        }
    }
    if is_torn {
        return Err(Error::Torn { pid, attempts: LOOKS_MAX });
    }
    Ok(Stack { thread: pid, ..Stack::default() })
}

impl Reader {
    /// Finds the PHP in a process. `files` caches the files examined for other processes.
    pub fn open(pid: u32, files: &mut Files) -> Result<Self, Error> {
        let engine = engine::find(pid, files)?;
        Self::new(pid, engine)
    }

    fn new(pid: u32, engine: Engine) -> Result<Self, Error> {
        let (walker, peeks, peeked) = (Walker::default(), Vec::new(), Vec::new());
        Ok(Self { pid, memory: Process::new(pid)?, engine, walker, peeks, peeked })
    }

    /// Creates a reader for a process that was forked from the same parent and has not started
    /// another program since: the facts about its sibling hold, and nothing is searched.
    pub fn sibling(&self, pid: u32) -> Result<Self, Error> {
        let mut engine = self.engine.clone();
        for context in engine.contexts.iter_mut().filter(|context| context.thread == self.pid) {
            context.thread = pid;
        }
        Self::new(pid, engine)
    }

    /// Process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Its PHP.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Whether the process has PHP threads of its own, which come and go. Such a process must be
    /// opened again from time to time.
    pub fn has_threads(&self) -> bool {
        self.engine.contexts.iter().any(|context| context.thread != self.pid)
            || self.engine.contexts.len() != 1
    }

    /// Reads these variables with each stack; at most [`PEEKS_MAX`](crate::PEEKS_MAX).
    pub fn peek(&mut self, peeks: &[Peek]) {
        self.peeks = peeks.iter().take(crate::peek::PEEKS_MAX).cloned().collect();
    }

    /// Values of the variables at the last read of a thread that returned a stack, in the order of
    /// [`Reader::peek`]. `None`: there is no such variable, or it has no value.
    pub fn peeked(&mut self, thread: u32) -> Vec<Option<String>> {
        let at = self.peeked.iter().position(|(of, _)| *of == thread);
        at.map(|at| self.peeked.swap_remove(at).1).unwrap_or_default()
    }

    /// Size of a thread's PHP heap at this moment. `None` if it cannot be read.
    pub fn heap(&self, thread: u32) -> Option<HeapUse> {
        let context = self.engine.contexts.iter().find(|context| context.thread == thread)?;
        heap::look(&self.memory, self.engine.layout, context.executor).ok()?
    }

    /// Reads each thread once.
    pub fn read(&mut self, names: &mut Names) -> Result<Vec<Reading>, Error> {
        self.peeked.clear();
        let contexts = self.engine.contexts.clone();
        contexts.into_iter().map(|context| self.read_thread(context, names)).collect()
    }

    /// Reads the first thread: the only one if PHP has no threads.
    pub fn read_first(&mut self, names: &mut Names) -> Result<Reading, Error> {
        match self.engine.contexts.first() {
            Some(context) => self.read_thread(*context, names),
            None => Ok(Reading::Idle { thread: self.pid }),
        }
    }

    fn read_thread(&mut self, context: Context, names: &mut Names) -> Result<Reading, Error> {
        let thread = context.thread;
        for _ in 0..LOOKS_MAX {
            match self.walker.look(&self.memory, self.engine.layout, context.executor)? {
                Look::Idle => return Ok(Reading::Idle { thread }),
                Look::Torn => names.note_moved(),
                Look::Calls => {
                    let calls = &self.walker.calls;
                    let told = names.name(&self.memory, &self.engine, context.executor, calls)?;
                    if let Some(frames) = told {
                        if !self.peeks.is_empty() {
                            let values = self.values(context, &frames, names)?;
                            self.peeked.push((thread, values));
                        }
                        let is_cut = self.walker.is_cut;
                        return Ok(Reading::Stack(Stack { thread, frames, is_cut }));
                    }
                }
            }
        }
        names.note_torn(LOOKS_MAX);
        Ok(Reading::Torn { thread })
    }

    fn values(
        &self,
        context: Context,
        frames: &[Frame],
        names: &Names,
    ) -> Result<Vec<Option<String>>, Error> {
        let Walker { calls, places, .. } = &self.walker;
        let place = |at: &Option<usize>| {
            let known = at.and_then(|at| Some((*places.get(at)?, calls.get(at)?.func)));
            let (call, func) = known.unwrap_or_default();
            CallAddress { call, func }
        };
        let places: Vec<_> = names.calls_of().iter().map(place).collect();
        let (layout, executor) = (self.engine.layout, context.executor);
        let value = |peek: &Peek| peek.look(&self.memory, layout, executor, (frames, &places));
        self.peeks.iter().map(value).collect()
    }

    /// The request that a thread serves, such as `GET /basket`, if a web server has set one.
    pub fn request(&self, thread: u32) -> Option<String> {
        let context = self.engine.contexts.iter().find(|context| context.thread == thread)?;
        let sapi = context.sapi?;
        let method = self.memory.word(sapi.wrapping_add(request_info::METHOD as u64)).ok()??;
        let uri = || {
            let uri = self.memory.word(sapi.wrapping_add(request_info::URI as u64)).ok()??;
            self.text(uri)
        };
        let target = self.target_of_samovar(sapi).or_else(uri)?;
        let method = self.text(method)?;
        (!target.is_empty()).then(|| format!("{method} {target}").trim_start().to_owned())
    }

    /// The path as Samovar received it, without its query, which is the visitor's. PHP's own field
    /// has the name of the script.
    fn target_of_samovar(&self, sapi: u64) -> Option<String> {
        let mut at = [0; 4];
        let place = self.engine.request_target?;
        self.memory.fill(place, &mut at).ok()?.then_some(())?;
        let context = sapi.wrapping_add(request_info::SERVER_CONTEXT as u64);
        let head = self.memory.word(context).ok()??;
        if head == 0 {
            return None;
        }
        // A `samovar_str`: offset from the head, and length.
        let mut text = [0; 8];
        let there = head.wrapping_add(u32::from_ne_bytes(at).into());
        self.memory.fill(there, &mut text).ok()?.then_some(())?;
        let offset = u32::from_ne_bytes(text[..4].try_into().ok()?);
        let length = u32::from_ne_bytes(text[4..].try_into().ok()?) as usize;
        let target = self.text(head.wrapping_add(offset.into()))?;
        let target: String = target.chars().take(length).collect();
        Some(target.split('?').next().unwrap_or_default().to_owned())
    }

    /// A C string, as far as it is printable.
    fn text(&self, address: u64) -> Option<String> {
        if address == 0 {
            return Some(String::new());
        }
        let mut bytes = [0; TARGET_BYTES_MAX];
        // Up to the end of its page, and then the next page, which may not exist.
        let first = (4096 - address % 4096).min(TARGET_BYTES_MAX as u64) as usize;
        let mut there = usize::from(self.memory.fill(address, &mut bytes[..first]).ok()?) * first;
        if there == first && first < bytes.len() && !bytes[..first].contains(&0) {
            let rest = self.memory.fill(address + first as u64, &mut bytes[first..]).ok()?;
            there = if rest { bytes.len() } else { first };
        }
        let text = bytes[..there].split(|byte| *byte == 0).next()?;
        Some(samovar_log::printable(&String::from_utf8_lossy(text)).into_owned())
    }
}
