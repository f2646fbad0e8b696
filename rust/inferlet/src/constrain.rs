//! Constraints: who says in each step which tokens may be drawn.

use crate::{Model, Result};

/// Restricts what a generator draws, step by step.
pub trait Constrain: Send {
    /// Takes what the step before accepted, nothing at first, and returns the mask of the tokens that may be drawn
    /// next, as run lengths ([`brle`](crate::brle)). An empty mask restricts nothing. It is called once in each step.
    fn step(&mut self, accepted: &[u32]) -> &[u32];
}

/// What makes a constraint for a model, once for each generation.
pub trait Schema {
    /// A fresh constraint.
    ///
    /// # Errors
    /// Whatever keeps it from being made.
    fn build_constraint(&self, model: &Model) -> Result<Box<dyn Constrain>>;
}

/// One that is chosen while the program runs.
impl Constrain for Box<dyn Constrain> {
    fn step(&mut self, accepted: &[u32]) -> &[u32] {
        (**self).step(accepted)
    }
}

/// One that is chosen while the program runs.
impl Schema for Box<dyn Schema> {
    fn build_constraint(&self, model: &Model) -> Result<Box<dyn Constrain>> {
        (**self).build_constraint(model)
    }
}
