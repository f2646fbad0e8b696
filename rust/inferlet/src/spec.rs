//! Speculators: who proposes tokens that are computed together, and kept while the sampler draws the same.

/// Proposes tokens, step by step. It never changes a token: the engine keeps a draft while it equals what the sampler
/// draws there.
pub trait Speculator: Send {
    /// Tokens behind the newest one and their positions, which are consecutive; empty: nothing is proposed. It is
    /// called once in each step.
    fn draft(&mut self) -> (Vec<u32>, Vec<u32>);

    /// Takes what a step drew: the drafts that were kept, and the token behind them. It comes behind `rollback`.
    fn accept(&mut self, accepted: &[u32]);

    /// Undoes the last `n` drafts of a step, which were not kept. It is called where there were any.
    fn rollback(&mut self, n: u32) {
        let _ = n;
    }

    /// Forgets everything. It is called when a generation begins to use it, and where
    /// [`Generator::accept`](crate::Generator::accept) took tokens back: `accept` then gets all tokens of the
    /// generation anew.
    fn reset(&mut self) {}
}

/// One that is chosen while the program runs.
impl Speculator for Box<dyn Speculator> {
    fn draft(&mut self) -> (Vec<u32>, Vec<u32>) {
        (**self).draft()
    }

    fn accept(&mut self, accepted: &[u32]) {
        (**self).accept(accepted);
    }

    fn rollback(&mut self, n: u32) {
        (**self).rollback(n);
    }

    fn reset(&mut self) {
        (**self).reset();
    }
}
