//! Objects loaded into this process, as the dynamic linker reports them, and the tables of each
//! object.
//!
//! Everything is read from memory: a library that was upgraded since is another file on disk.

use std::collections::HashMap;
use std::ffi::{CStr, c_int, c_void};
use std::ops::Range;

const PAGE: u64 = 4096;
/// Maximum length of a symbol name that is read.
const NAME_BYTES_MAX: usize = 256;
/// Maximum number of relocations of one object; libphp has 32,000.
const RELOCATIONS_MAX: u64 = 1 << 21;

/// Maximum length of code outside an object's main segment of code, which stays as built.
const STUBS_BYTES_MAX: u64 = 4096;

/// A segment of an object, at its address in memory.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) range: Range<u64>,
    pub(crate) flags: u32,
}

/// A loaded program or library.
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) name: String,
    base: u64,
    segments: Vec<Segment>,
    dynamic: Option<Range<u64>>,
    /// `PT_GNU_EH_FRAME`: the unwinder's table.
    pub(crate) frames: Option<Range<u64>>,
    /// `PT_GNU_RELRO`: written by the dynamic linker, and read-only afterwards.
    fixed: Option<Range<u64>>,
}

/// An entry of an object's table of addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The symbol whose address it holds.
    pub(crate) symbol: String,
    /// The address.
    pub(crate) target: u64,
}

/// All loaded objects, the program first.
pub(crate) fn loaded() -> Vec<Object> {
    let mut objects: Vec<Object> = Vec::new();
    // SAFETY: `note` gets the pointer to `objects`, which lives through the call and has no other
    // reference.
    unsafe { libc::dl_iterate_phdr(Some(note), (&raw mut objects).cast()) };
    objects
}

unsafe extern "C" fn note(
    told: *mut libc::dl_phdr_info,
    _: libc::size_t,
    objects: *mut c_void,
) -> c_int {
    // SAFETY: dl_iterate_phdr passes a struct of its own, which is valid while this function runs.
    let info = unsafe { &*told };
    // SAFETY: the vector that `loaded` has passed.
    let objects = unsafe { &mut *objects.cast::<Vec<Object>>() };
    let parts = if info.dlpi_phdr.is_null() {
        &[][..]
    } else {
        // SAFETY: the program headers of a loaded object: `dlpi_phnum` of them, in memory as long
        // as the object is loaded.
        unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) }
    };
    let name = if info.dlpi_name.is_null() {
        String::new()
    } else {
        // SAFETY: the dynamic linker's own string, with a NUL at its end.
        unsafe { CStr::from_ptr(info.dlpi_name) }.to_string_lossy().into_owned()
    };
    objects.push(Object::of(name, info.dlpi_addr, parts));
    0
}

impl Object {
    fn of(name: String, base: u64, headers: &[libc::Elf64_Phdr]) -> Object {
        let range = |h: &libc::Elf64_Phdr| {
            let from = base.wrapping_add(h.p_vaddr);
            from..from.saturating_add(h.p_memsz)
        };
        let only = |kind| headers.iter().find(|h| h.p_type == kind).map(range);
        let segments = headers.iter().filter(|h| h.p_type == libc::PT_LOAD);
        Object {
            name,
            base,
            segments: segments.map(|h| Segment { range: range(h), flags: h.p_flags }).collect(),
            dynamic: only(libc::PT_DYNAMIC),
            frames: only(libc::PT_GNU_EH_FRAME),
            fixed: only(libc::PT_GNU_RELRO),
        }
    }

    pub(crate) fn has(&self, address: u64) -> bool {
        self.segments.iter().any(|segment| segment.range.contains(&address))
    }

    /// Its code, if it is readable and in one piece. Small segments next to it stay as built: since
    /// PHP 8.5, libphp has one for opcache's move of code to huge pages.
    pub(crate) fn text(&self) -> Option<Range<u64>> {
        let code = self.segments.iter().filter(|s| s.flags & libc::PF_X != 0);
        let is_plain = |s: &Segment| s.flags & libc::PF_R != 0 && s.flags & libc::PF_W == 0;
        let len = |s: &Segment| s.range.end - s.range.start;
        let largest = code.clone().max_by_key(|s| len(s))?;
        let others = code.clone().map(len).sum::<u64>() - len(largest);
        (others <= STUBS_BYTES_MAX && code.clone().all(is_plain)).then(|| largest.range.clone())
    }

    /// End of the segment that contains this address.
    pub(crate) fn end_of_segment(&self, address: u64) -> Option<u64> {
        let segment = self.segments.iter().find(|segment| segment.range.contains(&address))?;
        Some(segment.range.end)
    }

    /// Copy of its memory there; `None` if the range is not in this object.
    pub(crate) fn read(&self, range: Range<u64>) -> Option<Vec<u8>> {
        let within = |s: &&Segment| s.range.start <= range.start && range.end <= s.range.end;
        let segment = self.segments.iter().find(within)?;
        let len = usize::try_from(range.end.checked_sub(range.start)?).ok()?;
        if segment.flags & libc::PF_R == 0 {
            return None;
        }
        let mut bytes = vec![0; len];
        // SAFETY: within a readable segment of a loaded object. Copied, because it may be written
        // later.
        unsafe { std::ptr::copy_nonoverlapping(range.start as *const u8, bytes.as_mut_ptr(), len) };
        Some(bytes)
    }

    /// The entries of its table that the dynamic linker has filled in for good, by their addresses.
    /// `None` if they may change, or if its tables are not understood.
    pub(crate) fn entries(&self) -> Option<HashMap<u64, Entry>> {
        let dynamic = Dynamic::of(&self.read(self.dynamic.clone()?)?);
        if !dynamic.binds_now() {
            return None;
        }
        let symbols = self.address(dynamic.one(DT_SYMTAB)?);
        let strings = self.address(dynamic.one(DT_STRTAB)?);
        let strings = strings..strings.checked_add(dynamic.one(DT_STRSZ)?)?;
        let mut found = HashMap::new();
        for (table, bytes) in [(DT_RELA, DT_RELASZ), (DT_JMPREL, DT_PLTRELSZ)] {
            let (Some(table), Some(bytes)) = (dynamic.one(table), dynamic.one(bytes)) else {
                continue;
            };
            if bytes / RELA_BYTES as u64 > RELOCATIONS_MAX {
                return None;
            }
            let table = self.address(table);
            for relocation in self.read(table..table.checked_add(bytes)?)?.chunks_exact(RELA_BYTES)
            {
                if let Some((at, symbol)) = self.relocated(relocation) {
                    let name = self.name_of(symbols.checked_add(symbol * SYM_BYTES)?, &strings)?;
                    let target = word(&self.read(at..at + 8)?, 0);
                    found.insert(at, Entry { symbol: name, target });
                }
            }
        }
        Some(found)
    }

    /// The address where a relocation has put the address of a symbol, and the symbol's number.
    /// Only for memory that is no longer written.
    fn relocated(&self, relocation: &[u8]) -> Option<(u64, u64)> {
        let info = word(relocation, 8);
        let at = self.base.wrapping_add(word(relocation, 0));
        let kind = info & 0xffff_ffff;
        let fixed = self.fixed.as_ref()?;
        // The linker protects the last page only if it is full.
        let fixed = fixed.start..fixed.end / PAGE * PAGE;
        let is_fixed = fixed.contains(&at) && fixed.end - at >= 8;
        (is_fixed && (kind == R_X86_64_GLOB_DAT || kind == R_X86_64_JUMP_SLOT))
            .then_some((at, info >> 32))
    }

    fn name_of(&self, symbol: u64, strings: &Range<u64>) -> Option<String> {
        let bytes = self.read(symbol..symbol.checked_add(SYM_BYTES)?)?;
        let offset = u64::from(u32::from_le_bytes(bytes[..4].try_into().ok()?));
        let from = strings.start.checked_add(offset).filter(|from| *from < strings.end)?;
        let bytes = self.read(from..strings.end.min(from + NAME_BYTES_MAX as u64))?;
        let end = bytes.iter().position(|byte| *byte == 0)?;
        Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }

    /// glibc replaces the addresses in this table by those in memory; other dynamic linkers leave
    /// them.
    fn address(&self, value: u64) -> u64 {
        if value < self.base { self.base.wrapping_add(value) } else { value }
    }
}

const DT_PLTRELSZ: u64 = 2;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_RELA: u64 = 7;
const DT_RELASZ: u64 = 8;
const DT_STRSZ: u64 = 10;
const DT_JMPREL: u64 = 23;
const DT_BIND_NOW: u64 = 24;
const DT_FLAGS: u64 = 30;
const DT_FLAGS_1: u64 = 0x6fff_fffb;
const DF_BIND_NOW: u64 = 8;
const DF_1_NOW: u64 = 1;
const R_X86_64_GLOB_DAT: u64 = 6;
const R_X86_64_JUMP_SLOT: u64 = 7;
const RELA_BYTES: usize = 24;
const SYM_BYTES: u64 = 24;

/// Its dynamic section: pairs of tag and value.
struct Dynamic(Vec<(u64, u64)>);

impl Dynamic {
    fn of(bytes: &[u8]) -> Dynamic {
        let pairs = bytes.chunks_exact(16).map(|pair| (word(pair, 0), word(pair, 8)));
        Dynamic(pairs.take_while(|(tag, _)| *tag != 0).collect())
    }

    fn one(&self, tag: u64) -> Option<u64> {
        self.0.iter().find(|(found, _)| *found == tag).map(|(_, value)| *value)
    }

    /// Whether all names were looked up when it was loaded.
    fn binds_now(&self) -> bool {
        self.one(DT_BIND_NOW).is_some()
            || self.one(DT_FLAGS).unwrap_or(0) & DF_BIND_NOW != 0
            || self.one(DT_FLAGS_1).unwrap_or(0) & DF_1_NOW != 0
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).map_or(0, |b| u64::from_le_bytes(b.try_into().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_the_one_large_segment_of_code() {
        const CODE: u32 = libc::PF_R | libc::PF_X;
        let header = |(from, len, flags): (u64, u64, u32)| libc::Elf64_Phdr {
            p_type: libc::PT_LOAD,
            p_flags: flags,
            p_offset: 0,
            p_vaddr: from,
            p_paddr: from,
            p_filesz: len,
            p_memsz: len,
            p_align: PAGE,
        };
        for (segments, expected) in [
            (vec![(0x1000, 0x5000, CODE), (0x6000, 0x900, libc::PF_R)], Some(0x1000..0x6000)),
            // libphp 8.5.
            (vec![(0x1000, 0x5000, CODE), (0x80_0000, 0x175, CODE)], Some(0x1000..0x6000)),
            (vec![(0x1000, 0x175, CODE), (0x80_0000, 0x5000, CODE)], Some(0x80_0000..0x80_5000)),
            (vec![(0x1000, 0x5000, CODE), (0x80_0000, 0x1001, CODE)], None),
            (vec![(0x1000, 0x5000, CODE), (0x80_0000, 0x175, CODE | libc::PF_W)], None),
            (vec![(0x1000, 0x5000, libc::PF_X)], None),
            (vec![(0x1000, 0x5000, CODE | libc::PF_W)], None),
            (vec![(0x1000, 0x5000, libc::PF_R)], None),
            (Vec::new(), None),
        ] {
            let headers: Vec<_> = segments.iter().copied().map(header).collect();
            let object = Object::of("libphp.so".to_owned(), 0, &headers);
            assert_eq!(object.text(), expected, "{segments:x?}");
        }
    }
}
