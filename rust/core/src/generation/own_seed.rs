//! The seed by which one generator draws: given, or derived when its first pass succeeds.

/// The seed of a generator.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OwnSeed {
    /// Given, or derived at the first step that succeeded.
    seed: Option<u64>,
    /// It is one of the sampler, which no other replaces.
    is_of_sampler: bool,
    /// That of the pass under way.
    drawing: Option<u64>,
    /// The first step was counted among the generators of its origin.
    is_settled: bool,
}

impl OwnSeed {
    /// One that the sampler has or that is given; none: one that is derived.
    pub(crate) fn new(of_sampler: Option<u64>, given: Option<u64>) -> Self {
        Self {
            seed: of_sampler.or(given),
            is_of_sampler: of_sampler.is_some(),
            ..Self::default()
        }
    }

    /// Gives one, unless the sampler has one.
    pub(super) const fn give(&mut self, seed: u64) {
        if !self.is_of_sampler {
            self.seed = Some(seed);
        }
    }

    /// The seed, where there is one already.
    pub(super) const fn known(&self) -> Option<u64> {
        self.seed
    }

    /// A pass draws by this seed; none: by that of the pass before.
    pub(crate) fn draw_by(&mut self, seed: Option<u64>) {
        self.drawing = seed.or(self.drawing);
    }

    /// The first pass that drew succeeded: whatever is drawn later, it is by the same seed.
    pub(super) fn settle(&mut self) {
        self.is_settled = true;
        self.seed = self.drawing.or(self.seed);
    }

    /// Whether a pass that drew has succeeded.
    pub(crate) const fn is_settled(&self) -> bool {
        self.is_settled
    }
}
