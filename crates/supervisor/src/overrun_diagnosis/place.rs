//! The current PHP calls of a process, read from outside by crates/spy.

use samovar_spy::{Files, Names, Reader, Reading};

/// Maximum number of named calls, the innermost first.
const CALLS_MAX: usize = 8;

/// Cached data about PHP's binaries, which take longer to read than a stack.
#[derive(Debug, Default)]
pub(super) struct Places {
    files: Files,
}

impl Places {
    /// Returns `PDO::query() [internal] < App\Shop::basket() /srv/shop/src/Shop.php:31 < …`, or the
    /// reason why the calls are unknown.
    pub(super) fn of(&mut self, pid: i32) -> String {
        let read = Reader::open(pid.unsigned_abs(), &mut self.files)
            .and_then(|mut reader| reader.read_first(&mut Names::default()));
        match read {
            Ok(Reading::Stack(stack)) => {
                let named = stack.frames.iter().take(CALLS_MAX).map(ToString::to_string);
                let mut calls: Vec<String> = named.collect();
                if stack.is_cut || stack.frames.len() > CALLS_MAX {
                    calls.push("…".to_owned());
                }
                calls.join(" < ")
            }
            Ok(Reading::Idle { .. }) => "in no PHP code".to_owned(),
            Ok(Reading::Torn { .. }) => "unknown: the stack changes too fast".to_owned(),
            Err(error) => format!("unknown: {}", error.to_string().replace('\n', "; ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_without_php_has_unknown_calls() {
        let said = Places::default().of(std::process::id().cast_signed());
        assert!(said.starts_with("unknown: ") && !said.contains('\n'), "{said}");
    }
}
