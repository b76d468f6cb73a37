//! Errors of shared objects, as PHP throws them.

use samovar_published::SendError;
use samovar_shared::{
    BreakerOpenError, CacheError, CacheOpenError, LimiterError, LimiterOpenError, OpenError,
    RegistryFull, TableError, TableOpenError,
};

/// Class of the exception that PHP throws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(super) enum Thrown {
    /// `Error`: the PHP code is wrong.
    Error = 0,
    /// `ValueError`: an argument is wrong.
    Value = 1,
    /// `RuntimeException`: there is no room, or another process does not make progress.
    Runtime = 2,
}

/// Error as PHP gets it.
pub(super) struct Why(pub(super) Thrown, pub(super) String);

impl From<RegistryFull> for Why {
    fn from(error: RegistryFull) -> Why {
        Why(Thrown::Runtime, error.to_string())
    }
}

impl From<OpenError> for Why {
    fn from(error: OpenError) -> Why {
        let thrown = match error {
            OpenError::Name(_) | OpenError::Definition(_) => Thrown::Value,
            OpenError::Other { .. } => Thrown::Error,
            OpenError::Memory { .. } | OpenError::Objects | OpenError::Io(_) | OpenError::Busy => {
                Thrown::Runtime
            }
        };
        Why(thrown, error.to_string())
    }
}

impl From<TableOpenError> for Why {
    fn from(error: TableOpenError) -> Why {
        match error {
            TableOpenError::Definition(error) => Why(Thrown::Value, error.to_string()),
            TableOpenError::Open(error) => error.into(),
        }
    }
}

impl From<CacheOpenError> for Why {
    fn from(error: CacheOpenError) -> Why {
        match error {
            CacheOpenError::Bytes(_) => Why(Thrown::Value, error.to_string()),
            CacheOpenError::Open(error) => error.into(),
        }
    }
}

impl From<CacheError> for Why {
    fn from(error: CacheError) -> Why {
        let thrown = match error {
            CacheError::Busy => Thrown::Runtime,
            CacheError::Key(_) => Thrown::Value,
        };
        Why(thrown, error.to_string())
    }
}

impl From<BreakerOpenError> for Why {
    fn from(error: BreakerOpenError) -> Why {
        match error {
            BreakerOpenError::Wrong(error) => Why(Thrown::Value, error.to_string()),
            BreakerOpenError::Open(error) => error.into(),
        }
    }
}

impl From<LimiterOpenError> for Why {
    fn from(error: LimiterOpenError) -> Why {
        match error {
            LimiterOpenError::Wrong(error) => Why(Thrown::Value, error.to_string()),
            LimiterOpenError::Open(error) => error.into(),
        }
    }
}

impl From<LimiterError> for Why {
    fn from(error: LimiterError) -> Why {
        let thrown = match error {
            LimiterError::Busy => Thrown::Runtime,
            LimiterError::Cost { .. } => Thrown::Value,
        };
        Why(thrown, error.to_string())
    }
}

impl From<TableError> for Why {
    fn from(error: TableError) -> Why {
        let thrown = match error {
            TableError::Full { .. } | TableError::Busy(_) | TableError::Overflow(_) => {
                Thrown::Runtime
            }
            TableError::Key { .. }
            | TableError::Text { .. }
            | TableError::Column(_)
            | TableError::Type { .. } => Thrown::Value,
        };
        Why(thrown, error.to_string())
    }
}

impl From<SendError> for Why {
    fn from(error: SendError) -> Why {
        let thrown = match error {
            SendError::Name(_) | SendError::Value(_) => Thrown::Value,
            SendError::NoRoom(_) | SendError::Timeout | SendError::Io(_) => Thrown::Runtime,
        };
        Why(thrown, error.to_string())
    }
}
