//! Compresses a stream of bytes.
//!
//! Windows and levels were chosen by measurement for dynamic responses
//! (docs/internals/decisions/compression.md).

use brotli::CompressorWriter;
use brotli::enc::BrotliEncoderParams;
use flate2::write::GzEncoder;
use samovar_config::Coding;
use std::fmt;
use std::io::{self, Write};
use zstd::stream::write::Encoder;
use zstd::zstd_safe::CParameter;

const ZSTD_LEVEL: i32 = 3;
const BROTLI_QUALITY: i32 = 4;
const GZIP_LEVEL: u32 = 4;
/// Name and level of each coding.
pub const LEVELS: [(&str, i32); 3] =
    [("zstd", ZSTD_LEVEL), ("br", BROTLI_QUALITY), ("gzip", GZIP_LEVEL.cast_signed())];
/// Window size of a coder as a power of two: 256 KiB. It limits the memory on both sides.
const WINDOW_LOG: u32 = 18;
/// Size of brotli's internal output buffer.
const BROTLI_BUFFER_BYTES: usize = 4096;

/// The coder of one response.
pub(crate) enum Coder {
    Zstd(Encoder<'static, Vec<u8>>),
    Brotli(Box<CompressorWriter<Vec<u8>>>),
    Gzip(GzEncoder<Vec<u8>>),
}

impl Coder {
    pub(crate) fn new(coding: Coding) -> io::Result<Coder> {
        Ok(match coding {
            Coding::Zstd => {
                let mut encoder = Encoder::new(Vec::new(), ZSTD_LEVEL)?;
                encoder.set_parameter(CParameter::WindowLog(WINDOW_LOG))?;
                Coder::Zstd(encoder)
            }
            Coding::Brotli => {
                let params = BrotliEncoderParams {
                    quality: BROTLI_QUALITY,
                    lgwin: WINDOW_LOG.cast_signed(),
                    ..BrotliEncoderParams::default()
                };
                let writer =
                    CompressorWriter::with_params(Vec::new(), BROTLI_BUFFER_BYTES, &params);
                Coder::Brotli(Box::new(writer))
            }
            Coding::Gzip => {
                Coder::Gzip(GzEncoder::new(Vec::new(), flate2::Compression::new(GZIP_LEVEL)))
            }
        })
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Coder::Zstd(encoder) => encoder.write_all(bytes),
            Coder::Brotli(writer) => writer.write_all(bytes),
            Coder::Gzip(encoder) => encoder.write_all(bytes),
        }
    }

    /// Flushes the coder: the client can then decompress everything written so far.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match self {
            Coder::Zstd(encoder) => encoder.flush(),
            Coder::Brotli(writer) => writer.flush(),
            Coder::Gzip(encoder) => encoder.flush(),
        }
    }

    /// Takes the compressed bytes that are ready.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        std::mem::take(match self {
            Coder::Zstd(encoder) => encoder.get_mut(),
            Coder::Brotli(writer) => writer.get_mut(),
            Coder::Gzip(encoder) => encoder.get_mut(),
        })
    }

    /// Ends the stream and returns the remaining compressed bytes.
    pub(crate) fn finish(self) -> io::Result<Vec<u8>> {
        match self {
            Coder::Zstd(encoder) => encoder.finish(),
            Coder::Brotli(writer) => Ok(writer.into_inner()),
            Coder::Gzip(encoder) => encoder.finish(),
        }
    }
}

impl fmt::Debug for Coder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Coder::Zstd(_) => "Zstd",
            Coder::Brotli(_) => "Brotli",
            Coder::Gzip(_) => "Gzip",
        })
    }
}
