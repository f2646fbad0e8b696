//! The error of this crate: a code for the caller's code, a message for its user.

/// Whose mistake it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum ErrorCode {
    /// An argument of a call is null, too large or does not fit the plan.
    InvalidArgument = 1,
    /// The batch does not fit the plan or contradicts itself; nothing was computed.
    InvalidBatch = 2,
    /// A fault of this crate.
    Internal = 3,
}

/// A failed call: the message names the value, the limit and, where there is one, the remedy.
#[derive(Clone, Debug)]
pub(crate) struct Error {
    pub(crate) code: ErrorCode,
    pub(crate) message: String,
}

impl Error {
    /// An argument that does not fit.
    pub(crate) fn argument(message: impl Into<String>) -> Self {
        Self {
            code: ErrorCode::InvalidArgument,
            message: message.into(),
        }
    }

    /// A batch that does not fit.
    pub(crate) fn batch(message: impl Into<String>) -> Self {
        Self {
            code: ErrorCode::InvalidBatch,
            message: message.into(),
        }
    }

    /// A fault of this crate.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self {
            code: ErrorCode::Internal,
            message: message.into(),
        }
    }
}

/// What the functions of this crate answer.
pub(crate) type Result<T> = std::result::Result<T, Error>;
