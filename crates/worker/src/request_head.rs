//! The head of a request in its slot, as PHP's calls pass it on. `samovar_ring::request` has its
//! layout.

/// An opaque request head in the slot.
#[repr(C)]
pub(crate) struct Head {
    _opaque: [u8; 0],
}
