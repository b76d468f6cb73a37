//! Table and advice.

use super::measure::Measured;
use super::samples::{Kind, Samples};
use serde::Serialize;
use std::fmt::Write as _;

/// Default of `compression.bytes_min`.
const BYTES_MIN: f64 = 1024.0;

/// Result of a level, per sample.
#[derive(Clone, Debug, Serialize)]
struct Row {
    coding: &'static str,
    level: i32,
    /// Whether a dictionary was used, trained with other samples of the same kind.
    dictionary: bool,
    /// Whether the server compresses responses with this level.
    used_by_server: bool,
    /// Compressed size, relative to the uncompressed one.
    share: f64,
    /// Compressed bytes per sample.
    bytes: f64,
    /// CPU time to compress a sample, in µs.
    compress_us: f64,
    /// CPU time to decompress a sample, in µs.
    decompress_us: f64,
    /// Time to compress a sample and to send it over the link, in µs.
    total_us: f64,
}

/// The report.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    samples: usize,
    left_out: usize,
    /// Mean uncompressed bytes.
    bytes: f64,
    /// Bits per second.
    link: f64,
    /// Time to send an uncompressed sample over the link, in µs.
    send_us: f64,
    levels: Vec<Row>,
    advice: Vec<String>,
}

impl Report {
    #[allow(clippy::cast_precision_loss)] // At most some MiB.
    pub(super) fn new(samples: &Samples, results: Vec<Measured>, link: f64) -> Report {
        let send = |bytes: f64| bytes * 8.0 / link * 1e6;
        let row = |of: Measured| {
            let count = of.samples.max(1) as f64;
            let (bytes, us) = (of.bytes as f64 / count, of.compress.as_secs_f64() * 1e6 / count);
            Row {
                coding: of.level.coding,
                level: of.level.number,
                dictionary: of.level.dictionary.is_some(),
                used_by_server: of.level.is_servers(),
                share: of.bytes as f64 / of.of.max(1) as f64,
                bytes,
                compress_us: us,
                decompress_us: of.decompress.as_secs_f64() * 1e6 / count,
                total_us: us + send(bytes),
            }
        };
        let levels: Vec<Row> = results.into_iter().map(row).collect();
        let bytes = samples.bytes() as f64 / samples.all.len() as f64;
        let send_us = send(bytes);
        let advice = match samples.kind {
            Kind::Pages => for_pages(&levels, bytes, send_us),
            Kind::Files => for_files(&levels),
        };
        let (count, left_out) = (samples.all.len(), samples.left_out);
        Report { samples: count, left_out, bytes, link, send_us, levels, advice }
    }

    pub(super) fn text(&self) -> String {
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "{} samples of {:.0} bytes on average; {} without compression at {:.0} Mbit/s",
            self.samples,
            self.bytes,
            time(self.send_us),
            self.link / 1e6
        );
        if self.left_out > 0 {
            let _ = writeln!(
                out,
                "{} more left out: empty, larger than 1 MiB, unreadable, or beyond 4 MiB together",
                self.left_out
            );
        }
        let _ = writeln!(
            out,
            "\n{:<16} {:>8} {:>8} {:>12} {:>12} {:>14}",
            "CODING", "SIZE", "BYTES", "COMPRESS", "DECOMPRESS", "WITH SENDING"
        );
        for row in &self.levels {
            let _ = writeln!(
                out,
                "{:<16} {:>7.1}% {:>8.0} {:>12} {:>12} {:>14}{}",
                row.name(),
                100.0 * row.share,
                row.bytes,
                time(row.compress_us),
                time(row.decompress_us),
                time(row.total_us),
                if row.used_by_server { "  (server)" } else { "" }
            );
        }
        out.push('\n');
        for line in &self.advice {
            let _ = writeln!(out, "{line}");
        }
        out
    }
}

impl Row {
    fn name(&self) -> String {
        let dictionary = if self.dictionary { " dictionary" } else { "" };
        format!("{} {}{dictionary}", self.coding, self.level)
    }
}

/// Pages are compressed for each request: the time to compress and send counts.
fn for_pages(levels: &[Row], bytes: f64, send_us: f64) -> Vec<String> {
    let by_total = |a: &&Row, b: &&Row| a.total_us.total_cmp(&b.total_us);
    let Some(best) = levels.iter().min_by(by_total) else { return Vec::new() };
    let mut advice = Vec::new();
    if best.total_us >= send_us {
        advice.push(
            "no coding is worth its CPU time at this speed of the link: leave compression off"
                .to_owned(),
        );
        return advice;
    }
    advice.push(format!(
        "{} is best at this speed: {} to compress and send, {} without compression",
        best.name(),
        time(best.total_us),
        time(send_us)
    ));
    let server = levels.iter().filter(|row| row.used_by_server && row.total_us < send_us);
    let mut order: Vec<_> = server.collect();
    order.sort_by(|a, b| a.total_us.total_cmp(&b.total_us));
    let codings: Vec<_> = order.iter().map(|row| format!("\"{}\"", row.coding)).collect();
    if !codings.is_empty() {
        advice.push(format!(
            "for the server: `compression.codings = [{}]`, the quickest first",
            codings.join(", ")
        ));
    }
    if bytes < BYTES_MIN {
        advice.push(
            "the server compresses responses of this size only with a smaller \
             `compression.bytes_min` (default: 1K)"
                .to_owned(),
        );
    }
    if let Some(smallest) = levels.iter().min_by(|a, b| a.bytes.total_cmp(&b.bytes)) {
        advice.push(format!(
            "{} is smallest: for files that are compressed once (`compression.precompressed`)",
            smallest.name()
        ));
    }
    advice
}

/// Files are compressed once and read often: the size, and the time to decompress, count.
fn for_files(levels: &[Row]) -> Vec<String> {
    /// Compression is not worth its time if it saves less than this share of the size. Each read
    /// decompresses, and a dictionary must be kept with the files.
    const SAVES_MIN: f64 = 0.1;
    /// A level is about as small as another one within this share of its size.
    const DIFFERS_MIN: f64 = 0.03;
    let mut cheap: Vec<&Row> = levels.iter().collect();
    cheap.sort_by(|a, b| {
        (a.compress_us + a.decompress_us).total_cmp(&(b.compress_us + b.decompress_us))
    });
    let mut advice = Vec::new();
    if let Some(best) = cheap.iter().find(|row| row.share < 1.0 - SAVES_MIN) {
        let smallest = levels.iter().map(|row| row.share).fold(f64::INFINITY, f64::min);
        advice.push(format!(
            "{} costs the least CPU time: {} % of the size, {} to write and read a value",
            best.name(),
            (100.0 * best.share).round(),
            time(best.compress_us + best.decompress_us)
        ));
        let close = cheap.iter().find(|row| row.share <= smallest * (1.0 + DIFFERS_MIN));
        if let Some(close) = close.filter(|row| row.share < best.share) {
            advice.push(format!(
                "{} is about as small as any: {} % of the size, {} to write and read a value",
                close.name(),
                (100.0 * close.share).round(),
                time(close.compress_us + close.decompress_us)
            ));
        }
    } else {
        advice.push(format!(
            "no coding saves {:.0} % of the size of these files: store them as they are",
            100.0 * SAVES_MIN
        ));
    }
    advice
}

/// Formats µs.
fn time(us: f64) -> String {
    if us >= 1e4 { format!("{:.1} ms", us / 1e3) } else { format!("{us:.0} µs") }
}

#[cfg(test)]
mod tests {
    use super::{Row, for_files, for_pages};

    fn row(coding: &'static str, level: i32, share: f64, us: f64, total_us: f64) -> Row {
        Row {
            coding,
            level,
            dictionary: false,
            used_by_server: level == 3 || level == 4,
            share,
            bytes: 1000.0 * share,
            compress_us: us,
            decompress_us: us / 4.0,
            total_us,
        }
    }

    #[test]
    fn advice_for_pages_follows_time_with_sending() {
        let levels = [
            row("zstd", 3, 0.3, 40.0, 90.0),
            row("br", 4, 0.25, 100.0, 140.0),
            row("gzip", 4, 0.3, 150.0, 200.0),
            row("br", 11, 0.2, 900.0, 940.0),
        ];
        let advice = for_pages(&levels, 5000.0, 160.0);
        assert!(advice[0].starts_with("zstd 3 is best"), "{advice:?}");
        assert!(advice[1].contains("[\"zstd\", \"br\"]"), "gzip does not pay: {advice:?}");
        assert!(advice[2].starts_with("br 11 is smallest"), "{advice:?}");
        let advice = for_pages(&levels, 5000.0, 80.0);
        assert!(advice[0].contains("leave compression off") && advice.len() == 1, "{advice:?}");
    }

    #[test]
    fn advice_for_files_names_the_cheap_and_the_small() {
        let levels = [
            row("zstd", 1, 0.31, 20.0, 0.0),
            row("zstd", 9, 0.25, 90.0, 0.0),
            row("br", 11, 0.245, 900.0, 0.0),
        ];
        let advice = for_files(&levels);
        assert!(advice[0].starts_with("zstd 1 costs the least"), "{advice:?}");
        assert!(advice[1].starts_with("zstd 9 is about as small as any"), "{advice:?}");
        for share in [1.01, 0.985, 0.91] {
            let advice =
                for_files(&[row("zstd", 1, 1.01, 20.0, 0.0), row("zstd", 3, share, 9.0, 0.0)]);
            assert!(advice[0].contains("as they are") && advice.len() == 1, "{advice:?}");
        }
    }
}
