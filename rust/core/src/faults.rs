//! What cannot be, counted where it is.
//!
//! The engine does not stop for a fault of its own: it does nothing where a thing is missing that has to be there, or a
//! pass is in a phase that it cannot be in, and counts. `n_faults` of [`Stats`](crate::Stats) tells the operator. Where
//! assertions are on it stops, and [`Engine::check`](crate::Engine::check) names the first fault.

/// Faults of the engine, or of its pages.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    n: u64,
    first: Option<&'static str>,
}

impl Faults {
    /// None so far.
    pub(crate) const fn new() -> Self {
        Self { n: 0, first: None }
    }

    /// This cannot be.
    pub(crate) fn count(&mut self, what: &'static str) {
        debug_assert!(false, "{what}");
        self.n += 1;
        self.first = self.first.or(Some(what));
    }

    /// This has to hold.
    pub(crate) fn expect(&mut self, holds: bool, what: &'static str) {
        if !holds {
            self.count(what);
        }
    }

    /// How many there were.
    pub(crate) const fn n(&self) -> u64 {
        self.n
    }

    /// How many there were, and the first.
    pub(crate) fn first(&self) -> Option<(u64, &'static str)> {
        Some((self.n, self.first?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_is_no_fault() {
        let mut faults = Faults::default();
        faults.expect(true, "this does not hold");
        assert_eq!((faults.n(), faults.first()), (0, None));
    }

    #[test]
    #[cfg_attr(debug_assertions, should_panic(expected = "this cannot be"))]
    fn faults_are_counted_where_assertions_do_not_stop_them() {
        let mut faults = Faults::default();
        faults.count("this cannot be");
        faults.expect(false, "nor can this");
        assert_eq!(faults.first(), Some((2, "this cannot be")));
    }
}
