//! What one rendering may use.
//!
//! minijinja counts instructions, but one instruction can double a text or walk a value for ever. So everything that
//! makes or walks a value is charged here before it does, with what it makes in bytes and with the time that it takes
//! as bytes. The sum over a rendering is bounded, so what it holds at any moment is too. A template that doubles a text
//! sixty times ends after a few megabytes, and so does one that compares values which share their parts.
//!
//! The budget is one of the thread, since filters and operators have no place for it. A rendering never waits and never
//! renders another.

use std::cell::Cell;

use minijinja::{Error, ErrorKind};

thread_local! {
    static LEFT: Cell<usize> = const { Cell::new(0) };
}

/// The budget of the rendering under way; at its end nothing is left.
pub(super) struct Budget(());

impl Budget {
    /// Lets this thread use `bytes` from here to the drop of the budget.
    pub(super) fn of(bytes: usize) -> Self {
        LEFT.set(bytes);
        Self(())
    }
}

impl Drop for Budget {
    fn drop(&mut self) {
        LEFT.set(0);
    }
}

/// What a template is told that wants more than its budget.
#[derive(Debug, thiserror::Error)]
#[error("the budget of the rendering is used up")]
pub(super) struct Exhausted;

/// Takes `bytes` from the budget.
///
/// # Errors
/// Where less is left; then nothing is left for what follows either.
pub(super) fn charge(bytes: usize) -> Result<(), Error> {
    match LEFT.get().checked_sub(bytes) {
        Some(left) => {
            LEFT.set(left);
            Ok(())
        }
        None => {
            LEFT.set(0);
            Err(
                Error::new(ErrorKind::OutOfFuel, "the rendering is too large")
                    .with_source(Exhausted),
            )
        }
    }
}
