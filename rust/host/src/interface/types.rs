//! `pie:core/types`: errors as programs see them.

use wasmtime::component::{HasSelf, Linker};

use super::bindings::pie::core::types;
use super::errors::CallError;
use crate::Error;
use crate::process::handles::HandleTable;
use crate::process::state::ProcessState;

impl HandleTable {
    /// An error as the program gets it.
    pub(crate) fn told(&mut self, error: Error) -> types::Error {
        let error = self.tell(error);
        types::Error {
            code: error.code.as_str().to_owned(),
            message: error.message,
            details: error.details,
        }
    }
}

impl types::Host for HandleTable {
    fn convert_error(&mut self, error: CallError) -> wasmtime::Result<types::Error> {
        match error {
            CallError::Guest(error) => Ok(self.told(error)),
            CallError::Trap(error) => Err(error),
        }
    }
}

/// Adds the interface to the linker; it has no calls.
pub(crate) fn add_to_linker(linker: &mut Linker<ProcessState>) -> wasmtime::Result<()> {
    types::add_to_linker::<_, HasSelf<HandleTable>>(linker, |state| &mut state.table)
}
