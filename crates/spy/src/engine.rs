//! A running process's PHP: its version, and the addresses of its threads' globals.

use crate::error::Error;
use crate::image::{self, Build, Image};
use crate::layout::{self, LAYOUTS, Layout};
use crate::maps::{self, Mapping};
use crate::memory::Process;
use crate::threads::{self, Context};
use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Maximum number of cached files. A machine has few PHPs, and other programs are examined about
/// once.
const FILES_MAX: usize = 4096;

/// Maximum number of files examined of one process.
const FILES_OF_PROCESS_MAX: usize = 512;

/// Cache of examined files, so that each is read once: by device, inode and modification time.
#[derive(Debug, Default)]
pub struct Files {
    known: HashMap<(u64, u64, i64, i64), Option<Arc<Image>>>,
}

/// The PHP of a process.
#[derive(Clone, Debug)]
pub struct Engine {
    /// Its struct offsets.
    pub(crate) layout: &'static Layout,
    /// `executor_globals` and `sapi_globals` of each thread that has them.
    pub(crate) contexts: Vec<Context>,
    /// Address of the variable `zend_flf_functions`: functions that are called without a frame, so
    /// that only an opcode shows the call.
    pub(crate) frameless: Option<u64>,
    /// Address of Samovar's variable with the place of the request's target.
    pub(crate) request_target: Option<u64>,
    /// Memory that the process shares with others, including opcache's: its contents stay.
    pub(crate) steady: Vec<Range<u64>>,
    /// Memory of libc, in which PHP keeps data that live as long as the process: its own functions
    /// and classes.
    pub(crate) permanent: Vec<Range<u64>>,
    /// GNU's build id of the file that contains PHP.
    pub build_id: String,
}

impl Engine {
    /// Name of the PHP version, such as `8.2`.
    pub fn version(&self) -> &'static str {
        self.layout.version
    }
}

/// A file that a process has mapped.
struct Mapped {
    image: Arc<Image>,
    first: Mapping,
}

impl Mapped {
    /// Address in the process of something that the file has at `address`.
    fn there(&self, address: u64) -> u64 {
        let start = self.first.range.start.wrapping_sub(self.first.offset);
        start.wrapping_sub(self.image.base).wrapping_add(address)
    }
}

/// Finds PHP in a process.
pub(crate) fn find(pid: u32, files: &mut Files) -> Result<Engine, Error> {
    let maps = maps::of(pid)?;
    if maps.is_empty() {
        // It has ended and its parent has not waited for it yet.
        return Err(Error::Gone { pid });
    }
    let (php, build) = php_of(pid, &maps, files)?;
    let layout = layout_of(pid, build)?;
    // A program that uses a library's variable may have it in its own memory. Then its symbol
    // counts, as for the linker.
    let program = program_of(pid, &maps, files);
    let symbol = |of: fn(&image::Symbols) -> Option<u64>| {
        let there = |mapped: &Mapped| Some(mapped.there(of(&mapped.image.symbols)?));
        program.as_ref().and_then(there).or_else(|| there(&php))
    };
    let contexts = if let Some(executor) = symbol(|symbols| symbols.executor_globals) {
        vec![Context { thread: pid, executor, sapi: symbol(|symbols| symbols.sapi_globals) }]
    } else {
        let place = threads::PhpAddresses {
            executor_offset: symbol(|symbols| symbols.executor_offset).unwrap_or(0),
            sapi_offset: symbol(|symbols| symbols.sapi_offset),
            table: symbol(|symbols| symbols.table),
        };
        threads::find(pid, &Process::new(pid)?, &maps, &php.first, &place)?
    };
    let steady = maps.iter().filter(|m| m.is_shared() && m.is_written()).map(|m| m.range.clone());
    let steady = steady.collect();
    let is_heap = |m: &&Mapping| m.path.as_os_str() == "[heap]";
    let permanent = maps.iter().filter(is_heap).map(|m| m.range.clone()).collect();
    let build_id = php.image.build_id.clone();
    let frameless = symbol(|symbols| symbols.frameless);
    let request_target = symbol(|symbols| symbols.request_target);
    Ok(Engine { layout, contexts, frameless, request_target, steady, permanent, build_id })
}

/// The program itself, if it uses PHP.
fn program_of(pid: u32, maps: &[Mapping], files: &mut Files) -> Option<Mapped> {
    use std::os::unix::fs::MetadataExt;
    let inode = std::fs::metadata(format!("/proc/{pid}/exe")).ok()?.ino();
    let first = maps.iter().find(|m| m.inode == inode && m.offset == 0)?;
    let image = files.look(pid, first).ok().flatten()?;
    Some(Mapped { image, first: first.clone() })
}

fn layout_of(pid: u32, build: Build) -> Result<&'static Layout, Error> {
    if build.is_debug {
        return Err(Error::Unknown {
            pid,
            what: "it was built with --enable-debug, which changes the layout of its data"
                .to_owned(),
            hint: "use a build without --enable-debug".to_owned(),
        });
    }
    layout::of_api(build.api).ok_or_else(|| Error::Unknown {
        pid,
        what: format!("its API {} is not supported", build.api),
        hint: format!("use PHP {} to {}", LAYOUTS[0].version, LAYOUTS[LAYOUTS.len() - 1].version),
    })
}

/// The file that contains PHP, and its first mapping: the program itself, or the library that a web
/// server has loaded.
fn php_of(pid: u32, maps: &[Mapping], files: &mut Files) -> Result<(Mapped, Build), Error> {
    let mut candidates: Vec<&Mapping> = Vec::new();
    for mapping in maps.iter().filter(|m| m.inode != 0 && m.offset == 0) {
        let is_new =
            candidates.iter().all(|c| (c.inode, &c.device) != (mapping.inode, &mapping.device));
        if is_new && candidates.len() < FILES_OF_PROCESS_MAX {
            candidates.push(mapping);
        }
    }
    // Files with `php` in their name come first, so that libraries other than PHP need not be read.
    candidates.sort_by_key(|mapping| !is_called_php(&mapping.path));
    let mut failed = None;
    for mapping in candidates {
        match files.look(pid, mapping) {
            Ok(found) => {
                let php = found.and_then(|image| Some((image.build?, image)));
                if let Some((build, image)) = php {
                    return Ok((Mapped { image, first: mapping.clone() }, build));
                }
            }
            Err(error) if is_called_php(&mapping.path) => failed = Some(error),
            Err(_) => {}
        }
    }
    Err(failed.unwrap_or_else(|| Error::NotPhp { pid, program: program(pid) }))
}

fn is_called_php(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().contains("php"))
}

/// The program that a process runs, for messages.
pub(crate) fn program(pid: u32) -> String {
    let link = std::fs::read_link(format!("/proc/{pid}/exe"));
    link.map_or_else(
        |_| "a program without read permission".to_owned(),
        |path| path.display().to_string(),
    )
}

impl Files {
    fn look(&mut self, pid: u32, mapping: &Mapping) -> Result<Option<Arc<Image>>, Error> {
        use std::os::unix::fs::MetadataExt;
        let file = image::open(pid, mapping)?;
        let meta = file.metadata().map_err(|e| Error::of_file(pid, &mapping.path, e))?;
        let key = (meta.dev(), meta.ino(), meta.ctime(), meta.ctime_nsec());
        if let Some(known) = self.known.get(&key) {
            return Ok(known.clone());
        }
        let found = image::read(file).map(Arc::new);
        if self.known.len() >= FILES_MAX {
            self.known.clear();
        }
        self.known.insert(key, found.clone());
        Ok(found)
    }
}
