//! Codings, levels and dictionaries.

use brotli::enc::BrotliEncoderParams;
use samovar_front::COMPRESSION_LEVELS;
use std::io::{self, Read, Write};

/// Window of brotli as a power of two: that of the server.
const WINDOW_LOG: i32 = 18;
/// Maximum size of a dictionary.
const DICTIONARY_BYTES_MAX: usize = 16 << 10;
/// Minimum number of samples to train one, and to measure it.
const TRAINED_MIN: usize = 16;

/// A coding with its level.
#[derive(Clone, Debug)]
pub(super) struct Level {
    pub(super) coding: &'static str,
    pub(super) number: i32,
    /// Bytes that are common to the samples.
    pub(super) dictionary: Option<Vec<u8>>,
}

/// Levels that are measured, in the order of the table.
const LEVELS: [(&str, &[i32]); 3] =
    [("zstd", &[1, 3, 6, 9, 15, 19]), ("br", &[1, 4, 5, 6, 9, 11]), ("gzip", &[1, 4, 6, 9])];
/// Levels of zstd that are measured with a dictionary.
const WITH_DICTIONARY: [i32; 3] = [1, 3, 9];

/// Returns all levels without a dictionary.
pub(super) fn levels() -> impl Iterator<Item = Level> {
    LEVELS.into_iter().flat_map(|(coding, levels)| {
        levels.iter().map(move |level| Level { coding, number: *level, dictionary: None })
    })
}

/// Trains a dictionary with every second sample. Returns the levels that use it; none if there are
/// too few samples, or if they have too little in common.
pub(super) fn with_dictionary(samples: &[Vec<u8>]) -> Vec<Level> {
    if samples.len() < TRAINED_MIN {
        return Vec::new();
    }
    let trained: Vec<_> = samples.iter().step_by(2).collect();
    let Ok(dictionary) = zstd::dict::from_samples(&trained, DICTIONARY_BYTES_MAX) else {
        return Vec::new();
    };
    let level = |number| Level { coding: "zstd", number, dictionary: Some(dictionary.clone()) };
    WITH_DICTIONARY.into_iter().map(level).collect()
}

impl Level {
    /// Whether the server compresses responses with it.
    pub(super) fn is_servers(&self) -> bool {
        self.dictionary.is_none() && COMPRESSION_LEVELS.contains(&(self.coding, self.number))
    }

    pub(super) fn compress(&self, sample: &[u8]) -> io::Result<Vec<u8>> {
        match (self.coding, &self.dictionary) {
            ("zstd", Some(dictionary)) => {
                zstd::bulk::Compressor::with_dictionary(self.number, dictionary)?.compress(sample)
            }
            ("zstd", None) => zstd::bulk::compress(sample, self.number),
            ("br", _) => {
                let params = BrotliEncoderParams {
                    quality: self.number,
                    lgwin: WINDOW_LOG,
                    ..BrotliEncoderParams::default()
                };
                let mut writer = brotli::CompressorWriter::with_params(Vec::new(), 4096, &params);
                writer.write_all(sample)?;
                Ok(writer.into_inner())
            }
            _ => {
                let level = flate2::Compression::new(self.number.unsigned_abs());
                let mut writer = flate2::write::GzEncoder::new(Vec::new(), level);
                writer.write_all(sample)?;
                writer.finish()
            }
        }
    }

    /// Decompresses to `size` bytes.
    pub(super) fn decompress(&self, bytes: &[u8], size: usize) -> io::Result<Vec<u8>> {
        let mut out = Vec::with_capacity(size);
        match (self.coding, &self.dictionary) {
            ("zstd", Some(dictionary)) => {
                return zstd::bulk::Decompressor::with_dictionary(dictionary)?
                    .decompress(bytes, size);
            }
            ("zstd", None) => return zstd::bulk::decompress(bytes, size),
            ("br", _) => brotli::Decompressor::new(bytes, 4096).read_to_end(&mut out)?,
            _ => flate2::read::GzDecoder::new(bytes).read_to_end(&mut out)?,
        };
        Ok(out)
    }
}
