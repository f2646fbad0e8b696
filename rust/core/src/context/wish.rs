//! Pages of a context that lie elsewhere, and that its first pass waits for.

use crate::ids::ContextId;

/// That a context, or the one that it was forked from, has pages elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageWish {
    /// The one that they were kept for; it may be gone.
    pub(crate) context: ContextId,
    /// A pass waits for them.
    pub(super) is_asked: bool,
}

impl PageWish {
    /// Nobody has asked for the pages of a context.
    pub(crate) const fn of(context: ContextId) -> Self {
        Self {
            context,
            is_asked: false,
        }
    }

    /// That of a fork.
    pub(super) const fn of_fork(self) -> Self {
        Self::of(self.context)
    }
}
