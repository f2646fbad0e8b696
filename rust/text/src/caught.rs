//! Panics of the libraries that evaluate a checkpoint's files.
//!
//! `tokenizers` and minijinja panic on some files that are well-formed but make no sense, and on some templates for
//! some conversations. A model directory, and what a program says, must not bring down the engine: such a panic becomes
//! the error of the call.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// What `work` returns; `None` when it panicked.
///
/// `work` must not leave anything behind that others see: what it borrows mutably is to be thrown away when it
/// panicked.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).ok()
}
