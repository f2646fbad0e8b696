//! How calls of programs fail.

use wasmtime::component::ResourceTableError;

use crate::Error;

/// How a call of a program fails: by a mistake that the program gets as an error, or by a fault that ends it.
#[derive(Debug)]
pub(crate) enum CallError {
    /// The program gets it.
    Guest(Error),
    /// The program is ended.
    Trap(wasmtime::Error),
}

impl From<Error> for CallError {
    fn from(error: Error) -> Self {
        Self::Guest(error)
    }
}

impl From<ResourceTableError> for CallError {
    fn from(error: ResourceTableError) -> Self {
        Self::Trap(error.into())
    }
}

/// The result of a call that a program may get wrong.
pub(crate) type CallResult<T> = Result<T, CallError>;
