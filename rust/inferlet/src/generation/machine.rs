//! A generator of the engine, as its values in the program share it.

use std::rc::Rc;

use crate::Result;
use crate::bindings::pie::core::generation as raw;
use crate::bindings::pie::core::types::Error;
use crate::kept::Keeper;
use crate::shared::Shared;

/// A generator of the engine with the context that it works on, which lives as long. Dropped in this order.
#[derive(Debug)]
pub(super) struct Machine {
    /// The generator, or why the engine refused to make it: then every use of it returns that.
    pub(super) made: Result<raw::Generator>,
    pub(super) context: Rc<Shared>,
    pub(super) keeper: Keeper,
}

impl Machine {
    /// The generator in the engine, unless an error waits to be met.
    pub(super) fn generator(&self) -> Result<&raw::Generator> {
        self.context.keeper.meet()?;
        self.keeper.meet()?;
        self.made.as_ref().map_err(Clone::clone)
    }

    /// The answer of a call that has no `Result`; the default where it fails, with the error kept.
    pub(super) fn ask<T: Default>(
        &self,
        call: impl FnOnce(&raw::Generator) -> std::result::Result<T, Error>,
    ) -> T {
        let made = self.made.as_ref().map_err(Clone::clone);
        self.keeper.value_of(made.and_then(|made| Ok(call(made)?)))
    }
}
