//! Bytes in, packed bytes out.
//!
//! Windows and levels are chosen for answers that are made anew each time, by measurement (docs/decisions/compression.md).

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
/// How far back a coder looks, as a power of two: 256 KiB. It bounds the memory at both ends.
const WINDOW_LOG: u32 = 18;
/// brotli's own buffer for its output.
const BROTLI_BUFFER_BYTES: usize = 4096;

/// One answer's way from bytes to packed bytes.
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

    /// From here on a client can unpack all that was written.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match self {
            Coder::Zstd(encoder) => encoder.flush(),
            Coder::Brotli(writer) => writer.flush(),
            Coder::Gzip(encoder) => encoder.flush(),
        }
    }

    /// What there is to send.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        std::mem::take(match self {
            Coder::Zstd(encoder) => encoder.get_mut(),
            Coder::Brotli(writer) => writer.get_mut(),
            Coder::Gzip(encoder) => encoder.get_mut(),
        })
    }

    /// What there is to send, and the end.
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
