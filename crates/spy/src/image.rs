//! A program or library on disk: whether it contains PHP, which version, and where its globals are.

use crate::error::Error;
use crate::maps::Mapping;
use memchr::memmem;
use object::read::elf::{ElfFile64, ProgramHeader};
use object::{Endianness, Object, ObjectSection, ObjectSymbol, ReadCache, ReadRef, SectionKind};
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};

/// Maximum size of a section with text of the program; PHP's have a few MB.
const SECTION_BYTES_MAX: u64 = 512 << 20;

/// Maximum number of symbols read of one file.
const SYMBOLS_MAX: usize = 4_000_000;

/// Start of `ZEND_BUILD_ID`; the API's number and the kind of build follow: `API20220829,NTS`.
const BUILD: &[u8] = b"API20";

/// Facts about PHP in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Image {
    /// Build of its PHP; `None` for a program that only uses PHP's variables.
    pub(crate) build: Option<Build>,
    pub(crate) symbols: Symbols,
    /// The address for which the first byte of the file is linked.
    pub(crate) base: u64,
    /// GNU's build id in hexadecimal; empty if it has none.
    pub(crate) build_id: String,
}

/// How a PHP was built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Build {
    /// `ZEND_MODULE_API_NO`.
    pub(crate) api: u32,
    /// Built with `--enable-debug`.
    pub(crate) is_debug: bool,
}

/// PHP's variables, at the addresses for which they are linked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Symbols {
    /// The globals themselves.
    pub(crate) executor_globals: Option<u64>,
    pub(crate) sapi_globals: Option<u64>,
    /// Samovar's offset of the request's target in the data at `server_context`.
    pub(crate) request_target: Option<u64>,
    /// Their offsets in a thread's memory, in a PHP built for threads.
    pub(crate) executor_offset: Option<u64>,
    pub(crate) sapi_offset: Option<u64>,
    /// Functions that PHP 8.4 and later call without a call frame.
    pub(crate) frameless: Option<u64>,
    /// A static variable, so few files have its symbol.
    pub(crate) table: Option<u64>,
}

impl Symbols {
    /// Whether the globals can be found.
    pub(crate) fn lead(&self) -> bool {
        self.executor_globals.is_some() || self.executor_offset.is_some()
    }
}

/// Opens the file of a mapping, as the process sees it, and no other file.
pub(crate) fn open(pid: u32, mapping: &Mapping) -> Result<File, Error> {
    let seen = format!("/proc/{pid}/root{}", mapping.path.display());
    // The first path needs a capability, but also finds files that were replaced or deleted since.
    // For the program itself, the last path finds those, too.
    let ways = [
        format!("/proc/{pid}/map_files/{}", mapping.file_name()),
        seen.clone(),
        format!("/proc/{pid}/exe"),
    ];
    if let Some(file) = ways.iter().find_map(|way| open_as(way, mapping).ok().flatten()) {
        return Ok(file);
    }
    let is_gone = |error: &std::io::Error| error.kind() == std::io::ErrorKind::NotFound;
    match open_as(&seen, mapping) {
        Err(error) if !(is_gone(&error) && mapping.is_deleted()) => {
            Err(Error::of_file(pid, &seen, error))
        }
        _ => Err(Error::Unknown {
            pid,
            what: format!("{} was replaced after the process started", mapping.path.display()),
            hint: "run samovar spy as root, which can read the old file; or restart the process"
                .to_owned(),
        }),
    }
}

/// The file of that name, if it is the one that is mapped.
fn open_as(path: &str, mapping: &Mapping) -> std::io::Result<Option<File>> {
    // The owner of the process may have put a pipe there: never wait.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    let meta = file.metadata()?;
    Ok((meta.is_file() && meta.ino() == mapping.inode).then_some(file))
}

/// Reads the facts about PHP in an ELF file; `None` if it has none.
pub(crate) fn read(file: File) -> Option<Image> {
    let cache = ReadCache::new(file);
    let elf = ElfFile64::<Endianness, _>::parse(&cache).ok()?;
    let symbols = symbols(&elf);
    // Samovar's worker has no globals of PHP, but the place of the request.
    if !symbols.lead() && symbols.request_target.is_none() {
        return None;
    }
    let endian = elf.endian();
    let first =
        elf.elf_program_headers().iter().find(|h| h.p_type(endian) == object::elf::PT_LOAD)?;
    let base = first.p_vaddr(endian).wrapping_sub(first.p_offset(endian));
    let id = elf.build_id().ok().flatten().unwrap_or_default();
    let build_id = id.iter().take(32).fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    });
    let build = symbols.lead().then(|| build(&elf)).flatten();
    Some(Image { build, symbols, base, build_id })
}

fn symbols<'a, R: ReadRef<'a>>(elf: &ElfFile64<'a, Endianness, R>) -> Symbols {
    let mut found = Symbols::default();
    for symbol in elf.dynamic_symbols().chain(elf.symbols()).take(SYMBOLS_MAX) {
        if !symbol.is_definition() {
            continue;
        }
        let place = match symbol.name_bytes() {
            Ok(b"executor_globals") => &mut found.executor_globals,
            Ok(b"executor_globals_offset") => &mut found.executor_offset,
            Ok(b"zend_flf_functions") => &mut found.frameless,
            Ok(b"tsrm_tls_table") => &mut found.table,
            Ok(b"sapi_globals") => &mut found.sapi_globals,
            Ok(b"sapi_globals_offset") => &mut found.sapi_offset,
            Ok(b"samovar_request_target_at") => &mut found.request_target,
            _ => continue,
        };
        place.get_or_insert(symbol.address());
    }
    found
}

/// PHP's build, from the text that every module contains.
fn build<'a, R: ReadRef<'a>>(elf: &ElfFile64<'a, Endianness, R>) -> Option<Build> {
    let texts = elf.sections().filter(|section| {
        let is_text =
            matches!(section.kind(), SectionKind::ReadOnlyData | SectionKind::ReadOnlyString);
        is_text && section.size() <= SECTION_BYTES_MAX
    });
    texts.filter_map(|section| section.data().ok()).find_map(build_in)
}

fn build_in(text: &[u8]) -> Option<Build> {
    memmem::find_iter(text, BUILD).find_map(|at| {
        let id = &text[at + 3..text.len().min(at + 64)];
        let id = std::str::from_utf8(id.split(|byte| *byte == 0).next()?).ok()?;
        let (number, how) = id.split_once(',')?;
        Some(Build { api: number.parse().ok()?, is_debug: how.contains("debug") })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn php_build_is_found_among_texts() {
        let check = |text: &[u8], expected: Option<(u32, bool)>| {
            assert_eq!(build_in(text).map(|build| (build.api, build.is_debug)), expected);
        };
        check(b"..API20220829,NTS\0more", Some((20_220_829, false)));
        check(b"API20\0API2024x,TS\0API20240924,TS,debug\0", Some((20_240_924, true)));
        check(b"API20220829 without\0", None);
        check(b"API20", None);
    }

    #[test]
    fn file_without_php_is_none() {
        let own = std::env::current_exe().expect("our own file");
        assert_eq!(read(File::open(own).expect("readable")), None);
        assert_eq!(read(File::open("/etc/passwd").expect("readable")), None);
    }
}
