//! A profile as the last column of a row: packed, written as JSON, compressed.

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use samovar_spy::profile::Profile;
use samovar_spy::profile::packed::{Packed, pack, unpack};
use std::io::{Read, Write};

/// Maximum number of stacks of one row.
const STACKS_MAX: usize = 5_001;
/// Maximum size of an uncompressed row: the file is not trusted.
const BYTES_MAX: u64 = 64 << 20;

pub(super) fn of(profile: &Profile) -> Vec<u8> {
    if profile.is_empty() {
        return Vec::new();
    }
    let text = serde_json::to_vec(&pack(profile, STACKS_MAX)).expect("numbers, texts and lists");
    let mut zipped = ZlibEncoder::new(Vec::new(), Compression::fast());
    // Writing to memory cannot fail.
    let _ = zipped.write_all(&text);
    zipped.finish().unwrap_or_default()
}

pub(super) fn read(bytes: &[u8]) -> Option<Profile> {
    if bytes.is_empty() {
        return Some(Profile::new());
    }
    let mut text = Vec::new();
    ZlibDecoder::new(bytes).take(BYTES_MAX).read_to_end(&mut text).ok()?;
    unpack(serde_json::from_slice::<Packed>(&text).ok()?)
}
