//! How structs of settings, and enums of words, are declared.

/// The sheet onto which the table's defaults are laid.
///
/// Not `Default`: a blank sheet (0 workers, no time-outs) is no set of defaults, and nobody outside
/// this crate should get hold of one.
pub(crate) trait Blank {
    fn blank() -> Self;
}

impl<T: Default> Blank for T {
    fn blank() -> T {
        T::default()
    }
}

/// Declares a struct of settings that can be [`Blank`].
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
            /// The fields in which the two differ.
            pub(crate) fn differing(&self, other: &$name) -> Vec<&'static str> {
                let mut names = Vec::new();
                $(if self.$field != other.$field { names.push(stringify!($field)); })*
                names
            }

            /// Takes over the field of that name; false: there is none.
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

            /// The word that is typed for it.
            pub fn word(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)*
                }
            }
        }
    };
}
