//! Finds out which libphp this process has loaded (setting `php_engine`), before PHP starts.
//! Rejects a libphp other than the configured one.
//!
//! The server makes the dynamic linker load the chosen libphp first. A linker that cannot load it
//! prints a warning and uses the installed one. So the loaded library is examined in memory.

use crate::boundary;
use samovar_channel::{ENGINE_VARIABLE, EngineFacts};
use std::ffi::{CStr, OsStr, c_int, c_void};
use std::fmt::Write as _;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Text before PHP's version in each libphp: the response header that PHP may send.
const VERSION: &[u8] = b"X-Powered-By: PHP/";
/// Start of the API number. The API number of Zend extensions has a digit before its year.
const API: &[u8] = b"API20";
/// Text that `scripts/php-engine.sh` writes into a libphp that it builds, followed by the source's
/// version and a build id.
const STAMP: &[u8] = b"samovar-php-engine: ";
/// Maximum number of bytes read of such a text.
const TEXT_BYTES_MAX: usize = 200;
/// Maximum length of a build id, in bytes.
const BUILD_ID_BYTES_MAX: usize = 64;
/// Start of the file name of a libphp.
const LIBRARY: &[u8] = b"libphp";

/// Checks that the loaded libphp is the `wanted` one. Removes the variable that selected it, so
/// that PHP and the programs it starts do not see it.
pub(crate) fn settle(wanted: Option<&Path>) -> Result<Option<EngineFacts>, String> {
    let Some(wanted) = wanted else { return Ok(None) };
    let facts = facts();
    facts
        .fits(wanted)
        .map_err(|why| format!("cannot use `{}` as the PHP engine: {why}", wanted.display()))?;
    forget(wanted);
    Ok(Some(facts))
}

/// Removes the variable's entry for this engine: programs that PHP starts are not workers.
fn forget(wanted: &Path) {
    let Some(told) = std::env::var_os(ENGINE_VARIABLE) else { return };
    let Some(rest) = told.as_bytes().strip_prefix(wanted.as_os_str().as_bytes()) else { return };
    let rest = OsStr::from_bytes(rest.strip_prefix(b":").unwrap_or(rest));
    if rest.is_empty() {
        // SAFETY: the process still has only one thread.
        unsafe { std::env::remove_var(ENGINE_VARIABLE) };
    } else {
        // SAFETY: as above.
        unsafe { std::env::set_var(ENGINE_VARIABLE, rest) };
    }
}

/// Reads the facts about the libphp of this process.
pub(crate) fn facts() -> EngineFacts {
    let mut search = Search { code: boundary::php_code() as u64, found: None, other: None };
    // SAFETY: `look` gets the pointer to `search`, which lives through the call; no other code has
    // it.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut search).cast()) };
    EngineFacts {
        built_php: boundary::php_built_for(),
        built_api: boundary::php_api_built_for(),
        other: search.other,
        ..search.found.unwrap_or_default()
    }
}

struct Search {
    /// An address in the library to find.
    code: u64,
    found: Option<EngineFacts>,
    other: Option<String>,
}

unsafe extern "C" fn look(
    told: *mut libc::dl_phdr_info,
    _: libc::size_t,
    search: *mut c_void,
) -> c_int {
    // SAFETY: dl_iterate_phdr passes a struct of its own, which is valid while this function runs.
    let info = unsafe { &*told };
    // SAFETY: the pointer that `facts` has passed.
    let search = unsafe { &mut *search.cast::<Search>() };
    let parts = if info.dlpi_phdr.is_null() {
        &[][..]
    } else {
        // SAFETY: the program headers of a loaded object: `dlpi_phnum` of them, in memory as long
        // as it is loaded.
        unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) }
    };
    let name = if info.dlpi_name.is_null() {
        &b""[..]
    } else {
        // SAFETY: a NUL-terminated string of the dynamic linker.
        unsafe { CStr::from_ptr(info.dlpi_name) }.to_bytes()
    };
    let own = |kind| parts.iter().filter(move |part| part.p_type == kind);
    let range = |part: &libc::Elf64_Phdr| {
        let from = info.dlpi_addr.wrapping_add(part.p_vaddr);
        from..from.saturating_add(part.p_memsz)
    };
    if own(libc::PT_LOAD).any(|part| range(part).contains(&search.code)) {
        let is_constant = |flags: u32| flags & libc::PF_R != 0 && flags & libc::PF_W == 0;
        let constants: Vec<_> =
            own(libc::PT_LOAD).filter(|part| is_constant(part.p_flags)).map(range).collect();
        let notes: Vec<_> = own(libc::PT_NOTE).map(range).collect();
        search.found = Some(read(name, &constants, &notes));
    } else if file_name(name).starts_with(LIBRARY) {
        search.other = Some(String::from_utf8_lossy(name).into_owned());
    }
    0
}

fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}

fn read(name: &[u8], constants: &[Range<u64>], notes: &[Range<u64>]) -> EngineFacts {
    let mut facts = EngineFacts { file: OsStr::from_bytes(name).into(), ..EngineFacts::default() };
    for bytes in constants.iter().map(memory) {
        let take = |into: &mut String, start: &[u8], keep: usize| {
            if into.is_empty() {
                *into = text_after(bytes, start, keep).unwrap_or_default();
            }
        };
        take(&mut facts.php, VERSION, 0);
        take(&mut facts.api, API, API.len());
        take(&mut facts.source, STAMP, 0);
    }
    if let Some((source, beside)) = facts.source.clone().split_once(" beside ") {
        (facts.source, facts.beside) = (source.to_owned(), beside.to_owned());
    }
    facts.build_id = notes.iter().map(memory).find_map(build_id).unwrap_or_default();
    facts
}

fn memory(range: &Range<u64>) -> &'static [u8] {
    let len = usize::try_from(range.end - range.start).unwrap_or(0);
    // SAFETY: a segment of a loaded object that is readable and never written; libphp is not
    // unloaded.
    unsafe { std::slice::from_raw_parts(range.start as *const u8, len) }
}

/// Returns the NUL-terminated text that follows `start`. The last `keep` bytes of `start` are part
/// of the result.
fn text_after(bytes: &[u8], start: &[u8], keep: usize) -> Option<String> {
    let at = position(bytes, start)? + start.len() - keep;
    let rest = bytes.get(at..)?;
    let rest = &rest[..rest.len().min(TEXT_BYTES_MAX)];
    let end = rest.iter().position(|byte| *byte == 0)?;
    Some(String::from_utf8_lossy(&rest[..end]).into_owned())
}

/// Uses libc's search, because a libphp has megabytes and is searched at each start.
fn position(bytes: &[u8], what: &[u8]) -> Option<usize> {
    // SAFETY: two memory ranges with their lengths, which are only read.
    let found = unsafe {
        libc::memmem(bytes.as_ptr().cast(), bytes.len(), what.as_ptr().cast(), what.len())
    };
    (!found.is_null()).then(|| found as usize - bytes.as_ptr() as usize)
}

/// Returns the GNU build id from the notes of one segment. A note has the lengths of name and
/// content and a type, then name and content, each padded to four bytes.
fn build_id(mut notes: &[u8]) -> Option<String> {
    const HEAD: usize = 12;
    const NT_GNU_BUILD_ID: u32 = 3;
    while notes.len() >= HEAD {
        let word = |at: usize| {
            u32::from_ne_bytes(notes[at..at + 4].try_into().expect("four bytes of twelve"))
        };
        let (name, content, kind) = (word(0) as usize, word(4) as usize, word(8));
        let from = HEAD + name.checked_next_multiple_of(4)?;
        let to = from.checked_add(content)?;
        let found = notes.get(from..to)?;
        if kind == NT_GNU_BUILD_ID
            && notes.get(HEAD..HEAD + name) == Some(b"GNU\0")
            && content <= BUILD_ID_BYTES_MAX
        {
            return Some(found.iter().fold(String::new(), |mut text, byte| {
                // Writing to a string cannot fail.
                let _ = write!(text, "{byte:02x}");
                text
            }));
        }
        notes = notes.get(from + content.checked_next_multiple_of(4)?..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_search_returns_text_after_its_start() {
        let bytes = b"xx\0API420220829,NTS\0API20220829,NTS\0X-Powered-By: PHP/8.2.36\0";
        assert_eq!(text_after(bytes, API, API.len()).as_deref(), Some("API20220829,NTS"));
        assert_eq!(text_after(bytes, VERSION, 0).as_deref(), Some("8.2.36"));
        assert_eq!(text_after(bytes, STAMP, 0), None);
        assert_eq!(text_after(b"X-Powered-By: PHP/8", VERSION, 0), None, "it has no end");
    }

    #[test]
    fn build_id_is_found_among_other_notes() {
        let note = |kind: u32, name: &[u8], content: &[u8]| {
            let mut bytes = Vec::new();
            for word in [name.len(), content.len(), kind as usize] {
                bytes.extend(u32::try_from(word).expect("short").to_ne_bytes());
            }
            for part in [name, content] {
                bytes.extend(part);
                bytes.resize(bytes.len().next_multiple_of(4), 0);
            }
            bytes
        };
        let mut notes = note(1, b"Linux\0", b"odd");
        notes.extend(note(3, b"GNU\0", &[0xab, 1, 2]));
        assert_eq!(build_id(&notes).as_deref(), Some("ab0102"));
        assert_eq!(build_id(&notes[..notes.len() - 4]), None);
        assert_eq!(build_id(&note(3, b"NOT\0", &[1])), None);
        assert_eq!(build_id(&[255; 64]), None);
    }
}
