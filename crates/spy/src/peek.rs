//! Variables of a running program, by name: local variables of its calls, and global ones.
//!
//! The program continues to run. A value is read twice, with its text: if both differ, the read is
//! repeated.

use crate::error::Error;
use crate::layout::{Layout, SYMBOL_TABLE, execute_data, function, zval};
use crate::memory::{Memory, Piece, half_at, word_at};
use crate::pattern::Pattern;
use crate::stack::Frame;
use crate::tables;
use crate::values::Value;

/// Maximum number of variables that are read with a stack.
pub const PEEKS_MAX: usize = 8;

/// Maximum length of a name or a key.
const NAME_BYTES_MAX: usize = 256;

/// Maximum number of variables of a function that are searched.
const VARIABLES_MAX: u32 = 4096;

/// Maximum number of calls whose variables are searched for one name.
const CALLS_MAX: usize = 64;

/// Maximum number of attempts to read a value that changes.
const LOOKS_MAX: usize = 4;

/// Value of a variable that was another one at each attempt.
const CHANGES: &str = "(changes)";

/// PHP's own global arrays, by their short names.
const SUPERGLOBALS: [(&str, &str); 8] = [
    ("cookie", "_COOKIE"),
    ("env", "_ENV"),
    ("files", "_FILES"),
    ("get", "_GET"),
    ("post", "_POST"),
    ("request", "_REQUEST"),
    ("server", "_SERVER"),
    ("session", "_SESSION"),
];

/// A variable that is read with each stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peek {
    name: String,
    /// Key in the array that the variable has.
    key: Option<String>,
    /// Functions whose variable it is; `None`: a global variable.
    function: Option<Pattern>,
}

/// A call in another process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallAddress {
    /// Address of the call; 0: the frame has none of its own.
    pub(crate) call: u64,
    /// Address of its function.
    pub(crate) func: u64,
}

impl Peek {
    /// Parses `total@App\Shop::total` or `options.limit@import`: a variable, perhaps a key in its
    /// array, and a pattern for functions. `None` if it has another form.
    #[must_use]
    pub fn variable(text: &str) -> Option<Peek> {
        let (variable, function) = text.split_once('@')?;
        let (name, key) = parts(variable)?;
        (!function.is_empty()).then(|| Peek { name, key, function: Some(Pattern::new(function)) })
    }

    /// Parses `tenant`, `config.limit` or `server.REQUEST_URI`: a global variable, or an entry of a
    /// global array. `None` if it has another form.
    #[must_use]
    pub fn global(text: &str) -> Option<Peek> {
        let (name, key) = parts(text)?;
        let is_short = key.is_some() && !text.starts_with('$');
        let known = SUPERGLOBALS.iter().find(|(short, _)| is_short && *short == name);
        let name = known.map_or(name, |(_, whole)| (*whole).to_owned());
        Some(Peek { name, key, function: None })
    }

    /// Name of the variable, and the key if there is one: the words that may name a secret.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.name.as_str()).chain(self.key.as_deref())
    }

    /// The variable as in PHP: `$total`, `$_SERVER[REQUEST_URI]`.
    #[must_use]
    pub fn title(&self) -> String {
        let key = self.key.as_ref().map(|key| format!("[{key}]")).unwrap_or_default();
        format!("${}{key}", self.name)
    }

    /// Scope of the variable: the pattern of its functions, or `globals`.
    #[must_use]
    pub fn scope(&self) -> &str {
        self.function.as_ref().map_or("globals", Pattern::text)
    }

    /// Reads the variable of the innermost call that has it, or the global one. `places` has the
    /// calls of the frames. `None` if there is no such variable, or if it has no value.
    pub(crate) fn look(
        &self,
        memory: &impl Memory,
        layout: &Layout,
        executor: u64,
        (frames, places): (&[Frame], &[CallAddress]),
    ) -> Result<Option<String>, Error> {
        let Some(pattern) = &self.function else {
            let table = executor.wrapping_add(SYMBOL_TABLE as u64);
            return self.settled(memory, layout, || tables::find(memory, table, &self.name));
        };
        let calls = frames.iter().zip(places);
        let wanted =
            calls.filter(|(frame, place)| place.call != 0 && pattern.matches(&frame.function));
        for (_, place) in wanted.take(CALLS_MAX) {
            let Some(at) = self.address(memory, layout, *place)? else { continue };
            let func = place.call.wrapping_add(execute_data::FUNC as u64);
            let value = || match memory.word(func)? {
                Some(func) if func == place.func => Value::read(memory, at),
                _ => Ok(None),
            };
            let found = self.settled(memory, layout, value)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Looks until two successive looks find the same value and the same text. The place alone
    /// proves nothing: PHP gives freed memory to the next text, and references, globals and entries
    /// have places of their own.
    fn settled(
        &self,
        memory: &impl Memory,
        layout: &Layout,
        read: impl Fn() -> Result<Option<Value>, Error>,
    ) -> Result<Option<String>, Error> {
        let mut before = self.seen(memory, layout, &read)?;
        for _ in 0..LOOKS_MAX {
            let later = self.seen(memory, layout, &read)?;
            match (before, &later) {
                (None, None) => return Ok(None),
                (Some((value, text)), Some((now, again)))
                    if value.is_confirmed_by(*now) && (!value.has_text() || text == *again) =>
                {
                    return Ok(Some(text));
                }
                _ => {}
            }
            before = later;
        }
        Ok(Some(CHANGES.to_owned()))
    }

    /// The value at the end of references and keys, and its text.
    fn seen(
        &self,
        memory: &impl Memory,
        layout: &Layout,
        read: &impl Fn() -> Result<Option<Value>, Error>,
    ) -> Result<Option<(Value, String)>, Error> {
        let Some(value) = read()? else { return Ok(None) };
        let Some(mut value) = value.resolved(memory)? else { return Ok(None) };
        if let Some(key) = &self.key {
            if value.kind != zval::ARRAY {
                return Ok(None);
            }
            let entry = tables::entry(memory, layout, value.content, key)?;
            let Some(entry) = entry else { return Ok(None) };
            let Some(entry) = entry.resolved(memory)? else { return Ok(None) };
            value = entry;
        }
        Ok(value.shown(memory)?.map(|text| (value, text)))
    }

    /// Address of the variable of a call.
    fn address(
        &self,
        memory: &impl Memory,
        layout: &Layout,
        place: CallAddress,
    ) -> Result<Option<u64>, Error> {
        if self.name == "this" {
            return Ok(Some(place.call.wrapping_add(execute_data::THIS as u64)));
        }
        let mut head = [0; function::BYTES];
        if !memory.fill(place.func, &mut head)?
            || !matches!(head[function::TYPE], function::USER | function::EVAL)
        {
            return Ok(None);
        }
        let count = half_at(&head, layout.last_var()).min(VARIABLES_MAX);
        let names = word_at(&head, layout.vars());
        let mut addresses = vec![0; count as usize * 8];
        if !memory.fill(names, &mut addresses)? {
            return Ok(None);
        }
        let length = |name: &[u8]| Piece { address: word_at(name, 0).wrapping_add(16), bytes: 8 };
        let pieces: Vec<_> = addresses.chunks_exact(8).map(length).collect();
        let mut lengths = Vec::new();
        let came = memory.copy_each(&pieces, &mut lengths)?;
        let all = addresses.chunks_exact(8).zip(lengths.chunks_exact(8)).zip(came);
        for (number, ((name, length), came)) in all.enumerate() {
            let is_long_enough = came && word_at(length, 0) == self.name.len() as u64;
            if is_long_enough && tables::is_text(memory, word_at(name, 0), &self.name)? {
                let offset = execute_data::BYTES + number * zval::BYTES;
                return Ok(Some(place.call.wrapping_add(offset as u64)));
            }
        }
        Ok(None)
    }
}

/// Name and key of `name`, `$name` or `name.key`.
fn parts(text: &str) -> Option<(String, Option<String>)> {
    let (name, key) = match text.split_once('.') {
        Some((name, key)) => (name, Some(key)),
        None => (text, None),
    };
    let name = name.strip_prefix('$').unwrap_or(name);
    let is_letter = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b >= 0x80;
    let is_name = !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.bytes().all(is_letter);
    let is_key = key.is_none_or(|key| (1..=NAME_BYTES_MAX).contains(&key.len()));
    (is_name && is_key).then(|| (name.to_owned(), key.map(str::to_owned)))
}

#[cfg(test)]
mod tests {
    use super::Peek;

    #[test]
    fn variables_are_parsed() {
        for (text, title) in [
            ("total@Shop::total", Some("$total")),
            ("$total@*", Some("$total")),
            ("options.limit@import", Some("$options[limit]")),
            ("a.b.c@f", Some("$a[b.c]")),
            ("this@f", Some("$this")),
            ("total", None),
            ("@f", None),
            ("a@", None),
            ("a b@f", None),
            ("a.@f", None),
        ] {
            assert_eq!(Peek::variable(text).map(|peek| peek.title()).as_deref(), title, "{text}");
        }
        for (text, title) in [
            ("server.REQUEST_URI", Some("$_SERVER[REQUEST_URI]")),
            ("$server.x", Some("$server[x]")),
            ("_GET.page", Some("$_GET[page]")),
            ("servers.x", Some("$servers[x]")),
            ("request", Some("$request")),
            ("", None),
            ("a-b", None),
        ] {
            assert_eq!(Peek::global(text).map(|peek| peek.title()).as_deref(), title, "{text}");
        }
        let peek = Peek::global("server.HTTP_COOKIE").expect("a name");
        assert_eq!(peek.words().collect::<Vec<_>>(), ["_SERVER", "HTTP_COOKIE"]);
        assert_eq!(Peek::global(&"a".repeat(257)), None);
    }
}
