//! The last bytes that a run printed.

use crate::record::OUTPUT_BYTES_MAX;
use crate::run::RunEvent;
use samovar_log::Voice;
use std::sync::{Arc, Mutex, PoisonError};

/// Begins an output that was cut.
const CUT: &str = "[…]\n";

/// Bytes of a run, shared with the thread that reads them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Output(Arc<Mutex<Tail>>);

#[derive(Debug, Default)]
struct Tail {
    bytes: Vec<u8>,
    is_cut: bool,
}

impl Tail {
    fn add(&mut self, bytes: &[u8]) {
        let bytes = if bytes.len() > OUTPUT_BYTES_MAX {
            self.is_cut = true;
            &bytes[bytes.len() - OUTPUT_BYTES_MAX..]
        } else {
            bytes
        };
        let surplus = (self.bytes.len() + bytes.len()).saturating_sub(OUTPUT_BYTES_MAX);
        self.is_cut |= surplus > 0;
        self.bytes.drain(..surplus);
        self.bytes.extend_from_slice(bytes);
    }
}

impl Output {
    fn add(&self, bytes: &[u8]) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).add(bytes);
    }

    /// Returns the text. Invalid UTF-8 and control characters are escaped, as in the log.
    pub(crate) fn text(&self) -> String {
        let tail = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&tail.bytes);
        let text = samovar_log::printable_lines(text.trim_end()).into_owned();
        if tail.is_cut { format!("{CUT}{text}") } else { text }
    }
}

/// Adds the output of a run, and reports its end.
pub(crate) struct OutputVoice {
    pub(crate) output: Output,
    pub(crate) run: u64,
    pub(crate) send: Box<dyn Fn(u64, RunEvent) + Send>,
}

impl Voice for OutputVoice {
    fn hear(&mut self, bytes: &[u8]) -> bool {
        self.output.add(bytes);
        true
    }

    fn end_line(&mut self) {}
}

impl Drop for OutputVoice {
    fn drop(&mut self) {
        (self.send)(self.run, RunEvent::OutputEnded);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_keeps_its_end_within_the_limit() {
        let output = Output::default();
        output.add(b"one\n");
        assert_eq!(output.text(), "one");
        for _ in 0..1_000 {
            output.add(&[b'x'; 1_000]);
        }
        output.add(&vec![b'y'; OUTPUT_BYTES_MAX * 2]);
        output.add(b"\nlast \xff\x1b[31m\r\n");
        let text = output.text();
        assert!(text.starts_with("[…]\nyyy"), "{}", &text[..20]);
        assert!(text.contains("\nlast \u{fffd}"), "{text}");
        assert!(!text.contains('\x1b'), "{text}");
        assert!(text.len() < OUTPUT_BYTES_MAX + 100);
    }
}
