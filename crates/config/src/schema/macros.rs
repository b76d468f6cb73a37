//! Macros that declare structs of settings and enums of words.

/// A blank value, to which the table's defaults are applied.
///
/// Not `Default`: a blank value (0 workers, no timeouts) is not a usable default. Code outside this
/// crate must not be able to make one.
pub(crate) trait Blank {
    fn blank() -> Self;
}

impl<T: Default> Blank for T {
    fn blank() -> T {
        T::default()
    }
}

/// Declares a struct of settings that implements [`Blank`].
macro_rules! sheet {
    ($(#[$meta:meta])* pub struct $name:ident {
        $($(#[$field_meta:meta])* pub $field:ident: $type:ty,)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name {
            $($(#[$field_meta])* pub $field: $type,)*
        }

        impl Blank for $name {
            fn blank() -> $name {
                $name { $($field: Blank::blank(),)* }
            }
        }

        impl $name {
            /// Returns the names of the fields that differ.
            pub(crate) fn differing(&self, other: &$name) -> Vec<&'static str> {
                let mut names = Vec::new();
                $(if self.$field != other.$field { names.push(stringify!($field)); })*
                names
            }

            /// Copies the field of that name; returns false if there is none.
            #[allow(dead_code, reason = "some sheets are the server's alone")]
            pub(crate) fn take(&mut self, name: &str, from: &$name) -> bool {
                match name {
                    $(stringify!($field) => self.$field.clone_from(&from.$field),)*
                    _ => return false,
                }
                true
            }
        }
    };
}

/// Declares an enum whose variants are words in flags and files.
macro_rules! words {
    ($(#[$meta:meta])* pub enum $name:ident {
        $($(#[$variant_meta:meta])* $variant:ident = $word:literal,)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub enum $name {
            $($(#[$variant_meta])* $variant,)*
        }

        impl $name {
            pub(crate) const WORDS: &[&str] = &[$($word),*];
            pub(crate) const ALL: &[$name] = &[$($name::$variant),*];

            /// Returns the word for this variant.
            pub fn word(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)*
                }
            }
        }
    };
}
