//! Whether what runs ahead of a program is of use to it.

/// Steps in a row of which what ran ahead was of no use, after which nothing runs ahead for some.
const MAX_VAIN: u32 = 2;
/// For how many at first, and how often that is doubled at most.
const FIRST_REST: u32 = 8;
const MAX_DOUBLED: u32 = 5;

/// What came of what ran ahead.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AheadHabit {
    /// Steps in a row for which nothing that ran ahead was of use.
    n_vain: u32,
    /// Steps before anything runs ahead again.
    rest: u32,
}

impl AheadHabit {
    /// What ran ahead was of no use. Where that was so twice in a row nothing runs ahead for some steps, and for longer
    /// each time.
    pub(super) fn ran_in_vain(&mut self) {
        self.n_vain += 1;
        if let Some(n_rests) = self.n_vain.checked_sub(MAX_VAIN) {
            self.rest = FIRST_REST << n_rests.min(MAX_DOUBLED);
        }
    }

    /// What ran ahead is what its program asks for.
    pub(super) const fn ran_of_use(&mut self) {
        (self.n_vain, self.rest) = (0, 0);
    }

    /// A step ended.
    pub(super) const fn step(&mut self) {
        self.rest = self.rest.saturating_sub(1);
    }

    /// Whether nothing runs ahead for some steps.
    pub(super) const fn rests(&self) -> bool {
        self.rest > 0
    }
}
