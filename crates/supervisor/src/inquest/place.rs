//! Where PHP stands in a process: its calls, read from outside by crates/spy.

use samovar_spy::{Files, Names, Reader, Reading};

/// Calls that are named, the innermost first.
const CALLS_MAX: usize = 8;

/// What is known of PHP's binaries, which takes longer to read than a stack.
#[derive(Debug, Default)]
pub(super) struct Places {
    files: Files,
}

impl Places {
    /// `PDO::query() [internal] < App\Shop::basket() /srv/shop/src/Shop.php:31 < …`, or why that is not known.
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
            Ok(Reading::Torn { .. }) => "it moves too fast to be read".to_owned(),
            Err(error) => format!("unknown: {}", error.to_string().replace('\n', "; ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_without_php_is_said_to_be_one() {
        let said = Places::default().of(std::process::id().cast_signed());
        assert!(said.starts_with("unknown: ") && !said.contains('\n'), "{said}");
    }
}
