//! Handles: what a program reads an output by.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;

/// Tells apart what hands out handles: passes, generators, steps and their samplers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner(u64);

impl Owner {
    pub(crate) fn new() -> Self {
        thread_local! {
            static NEXT: Cell<u64> = const { Cell::new(0) };
        }
        Self(NEXT.replace(NEXT.get() + 1))
    }
}

/// Where the slot of a handle stands: its index among those of the owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub(crate) owner: Owner,
    pub(crate) index: u32,
}

/// What an output is read by: a [`SampleHandle`] or a [`ProbeHandle`].
pub trait Handle: Copy {
    /// Where its slot stands.
    #[doc(hidden)]
    fn place(self) -> Place;
}

/// Names what a sampler drew: [`Output::token`](crate::Output::token) and
/// [`Output::tokens_at`](crate::Output::tokens_at) take it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleHandle(Place);

impl SampleHandle {
    pub(crate) const fn new(owner: Owner, index: u32) -> Self {
        Self(Place { owner, index })
    }
}

impl Handle for SampleHandle {
    fn place(self) -> Place {
        self.0
    }
}

/// Names what a probe of this type read: [`Output::logits`](crate::Output::logits) and the others take it.
pub struct ProbeHandle<P> {
    place: Place,
    probe: PhantomData<fn() -> P>,
}

impl<P> ProbeHandle<P> {
    pub(crate) const fn new(owner: Owner, index: u32) -> Self {
        Self {
            place: Place { owner, index },
            probe: PhantomData,
        }
    }
}

impl<P> Handle for ProbeHandle<P> {
    fn place(self) -> Place {
        self.place
    }
}

// Derived, these would ask the same of the probe.
impl<P> Clone for ProbeHandle<P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for ProbeHandle<P> {}

impl<P> fmt::Debug for ProbeHandle<P> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("ProbeHandle")
            .field(&self.place)
            .finish()
    }
}
