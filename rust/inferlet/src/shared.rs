//! What a context and its generators hold together.

use crate::bindings::pie::core::context as raw;
use crate::kept::Keeper;

/// What a context shares with its generators.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) raw: raw::Context,
    pub(crate) keeper: Keeper,
}
