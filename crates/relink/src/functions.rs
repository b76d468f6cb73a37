//! Start and end of an object's functions, from the table that exceptions are unwound by,
//! `.eh_frame`.

use crate::object::Object;
use gimli::{BaseAddresses, EhFrame, EhFrameHdr, EndianSlice, LittleEndian, UnwindSection};
use std::ops::Range;

/// Maximum number of functions of one object; libphp has 9,400.
const FUNCTIONS_MAX: usize = 1 << 20;

/// The functions in order, none of them empty. `None` if the table is not understood, or if two
/// functions overlap.
pub(crate) fn of(object: &Object) -> Option<Vec<Range<u64>>> {
    let header = object.frames.clone()?;
    let text = object.text()?;
    let bases = BaseAddresses::default().set_eh_frame_hdr(header.start).set_text(text.start);
    let bytes = object.read(header.clone())?;
    let parsed = EhFrameHdr::from(EndianSlice::new(&bytes, LittleEndian)).parse(&bases, 8).ok()?;
    let gimli::Pointer::Direct(frames) = parsed.eh_frame_ptr() else { return None };
    // It ends with an entry of length 0. The end of its segment is the limit.
    let bytes = object.read(frames..object.end_of_segment(frames)?)?;
    let section = EhFrame::from(EndianSlice::new(&bytes, LittleEndian));
    let bases = bases.set_eh_frame(frames);
    let mut found = Vec::new();
    let mut entries = section.entries(&bases);
    while let Some(entry) = entries.next().ok()? {
        if let gimli::CieOrFde::Fde(partial) = entry {
            let fde = partial.parse(EhFrame::cie_from_offset).ok()?;
            let from = fde.initial_address();
            let range = from..from.checked_add(fde.len())?;
            if found.len() == FUNCTIONS_MAX {
                return None;
            }
            if !range.is_empty() && text.start <= range.start && range.end <= text.end {
                found.push(range);
            }
        }
    }
    found.sort_by_key(|range| range.start);
    let overlap = found.windows(2).any(|pair| pair[0].end > pair[1].start);
    (!overlap).then_some(found)
}
