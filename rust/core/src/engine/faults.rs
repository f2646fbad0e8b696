//! What cannot be, counted where it is.
//!
//! The engine does not stop for a fault of its own: it does nothing where a thing is missing that has to be there, or a
//! pass is in a phase that it cannot be in, and counts. Where assertions are on it stops, and
//! [`Engine::check`](super::Engine::check) names the first fault.

/// Faults of the engine.
#[derive(Debug, Default)]
pub(super) struct Faults {
    n: u64,
    first: Option<&'static str>,
}

impl Faults {
    /// This cannot be.
    pub(super) fn count(&mut self, what: &'static str) {
        debug_assert!(false, "{what}");
        self.n += 1;
        self.first = self.first.or(Some(what));
    }

    /// This has to hold.
    pub(super) fn expect(&mut self, holds: bool, what: &'static str) {
        if !holds {
            self.count(what);
        }
    }

    /// How many there were, and the first.
    pub(super) fn first(&self) -> Option<(u64, &'static str)> {
        Some((self.n, self.first?))
    }
}
