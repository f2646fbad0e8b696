//! What a context and its generators hold together.

use std::cell::Cell;

use crate::bindings::pie::core::context as raw;
use crate::kept::Keeper;
use crate::{ErrorCode, Result, errors};

/// What a context shares with its generators.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) raw: raw::Context,
    pub(crate) keeper: Keeper,
    /// How many collectors run in which the program has a part: of their steps the engine sees one at a time.
    n_collectors: Cell<u32>,
}

/// While it lives, its context cannot be filled.
#[derive(Debug)]
pub(crate) struct Collecting<'a>(&'a Cell<u32>);

impl Drop for Collecting<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl Shared {
    pub(crate) fn new(raw: raw::Context) -> Self {
        Self {
            raw,
            keeper: Keeper::new(),
            n_collectors: Cell::new(0),
        }
    }

    /// A collector begins that runs step by step.
    pub(crate) fn begin_collecting(&self) -> Collecting<'_> {
        self.n_collectors.set(self.n_collectors.get() + 1);
        Collecting(&self.n_collectors)
    }

    /// Whether the context can be filled now.
    ///
    /// # Errors
    /// `context-busy`, `context-released`.
    pub(crate) fn check_filling(&self) -> Result<()> {
        if self.n_collectors.get() == 0 {
            return Ok(());
        }
        // A context that was released is told so.
        self.raw.seq_len()?;
        Err(errors::text(
            ErrorCode::ContextBusy,
            "the context cannot be appended to while a collector runs that asks the program; go step by step to \
             append between steps, or wait for its end",
        ))
    }
}
