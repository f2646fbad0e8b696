//! The WIT interfaces that programs import: one file each, of one anatomy.

#![expect(
    unreachable_pub,
    reason = "the generated bindings re-export the types behind handles, which must be public for that"
)]

pub(crate) mod bindings;
pub(crate) mod chat;
pub(crate) mod clocks;
pub(crate) mod context;
pub(crate) mod futures;
pub(crate) mod generation;
pub(crate) mod held;
pub(crate) mod model;
pub(crate) mod poll;
pub(crate) mod runtime;
pub(crate) mod sampling;
pub(crate) mod session;
pub(crate) mod source;
pub(crate) mod text;
pub(crate) mod tokenizer;
pub(crate) mod tokens;

use std::sync::atomic::Ordering;

use pie_core::ErrorCode;
use wasmtime::Engine;
use wasmtime::component::{HasSelf, Linker, ResourceTableError};

use self::bindings::pie::core::types;
use crate::Error;
use crate::process::state::ProcessState;
use crate::process::stated::Told;
use crate::program::store::Linkers;

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

/// An error of the text side as one of the host.
pub(crate) fn text_error(error: pie_text::Error) -> Error {
    let code = ErrorCode::from_name(error.code()).unwrap_or(ErrorCode::Internal);
    Error::new(code, error.to_string())
}

/// The error as programs see it. That the program got one of its code is noted in `told`.
pub(crate) fn guest_error(error: Error, told: &mut Told) -> types::Error {
    told.note(error.code);
    types::Error {
        code: error.code.as_str().to_owned(),
        message: error.message,
        details: error.details,
    }
}

impl types::Host for ProcessState {
    fn convert_error(&mut self, error: CallError) -> wasmtime::Result<types::Error> {
        match error {
            CallError::Guest(error) => Ok(guest_error(error, &mut self.told)),
            CallError::Trap(error) => Err(error),
        }
    }
}

/// The door through which every call of the `pie:*` interfaces comes: counts it.
pub(crate) fn counted(state: &mut ProcessState) -> &mut ProcessState {
    state.record.n_arrivals.fetch_add(1, Ordering::Relaxed);
    state
}

/// The linkers for programs and for language runtimes.
pub(crate) fn linkers(engine: &Engine) -> wasmtime::Result<Linkers> {
    let mut programs = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut programs)?;
    poll::add_to_linker(&mut programs)?;
    clocks::add_to_linker(&mut programs)?;
    types::add_to_linker::<_, HasSelf<_>>(&mut programs, |state| state)?;
    futures::add_to_linker(&mut programs)?;
    runtime::add_to_linker(&mut programs)?;
    model::add_to_linker(&mut programs)?;
    tokenizer::add_to_linker(&mut programs)?;
    context::add_to_linker(&mut programs)?;
    sampling::add_to_linker(&mut programs)?;
    generation::add_to_linker(&mut programs)?;
    session::add_to_linker(&mut programs)?;
    chat::add_to_linker(&mut programs)?;
    let mut runtimes = programs.clone();
    source::add_to_linker(&mut runtimes)?;
    Ok(Linkers { programs, runtimes })
}
