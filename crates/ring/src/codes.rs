//! Codes: what lies in shared memory as a number, and is read there by others. Number, text and enum are said once.

/// An enum whose variants are numbers in shared memory: `Variant = number, "text";` each.
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

        #[allow(dead_code)] // Not all codes are asked for all of it.
        impl $name {
            /// All there are, in the order of their numbers.
            $visible const ALL: &[$name] = &[$($name::$variant),+];

            /// Lower-case, as in the JSON of `samovar status`.
            $visible const fn name(self) -> &'static str {
                match self {
                    $($name::$variant => $text,)+
                }
            }

            /// The code in shared memory.
            $visible const fn code(self) -> u32 {
                self as u32
            }

            /// What has that code, if anything has.
            $visible const fn from_code(code: u32) -> Option<$name> {
                match code {
                    $($code => Some($name::$variant),)+
                    _ => None,
                }
            }

            /// The variant's description, for the mirror in C.
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
