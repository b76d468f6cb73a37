//! Codes: enums that are stored as numbers in shared memory and read there by other processes.
//! Number, text and variant are defined in one place.

/// Defines an enum whose variants are numbers in shared memory: `Variant = number, "text";` each.
macro_rules! codes {
    (
        $(#[$meta:meta])*
        $visible:vis enum $name:ident {
            $($(#[doc = $doc:literal])+ $variant:ident = $code:literal, $text:literal;)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u32)]
        $visible enum $name {
            $($(#[doc = $doc])+ $variant = $code,)+
        }

        #[allow(dead_code)] // Not every enum uses all of these functions.
        impl $name {
            /// All variants, in the order of their numbers.
            $visible const ALL: &[$name] = &[$($name::$variant),+];

            /// Lower-case name, as in the JSON of `samovar status`.
            $visible const fn name(self) -> &'static str {
                match self {
                    $($name::$variant => $text,)+
                }
            }

            /// The code in shared memory.
            $visible const fn code(self) -> u32 {
                self as u32
            }

            /// The variant with that code, if there is one.
            $visible const fn from_code(code: u32) -> Option<$name> {
                match code {
                    $($code => Some($name::$variant),)+
                    _ => None,
                }
            }

            /// The variant's doc comment, for the mirror in C.
            #[cfg(all(test, not(loom)))]
            pub(crate) fn doc(self) -> String {
                match self {
                    $($name::$variant => [$($doc),+].concat().trim().to_owned(),)+
                }
            }
        }
    };
}
pub(crate) use codes;
