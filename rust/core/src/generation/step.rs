//! What a program wants of one step of a generator.

use super::template::RowProbe;

/// What is wanted of the step that is open, beside what the generator wants of each.
#[derive(Debug, Default)]
pub(crate) struct StepOptions {
    /// Nothing is drawn: the program says which tokens follow.
    pub(crate) is_cleared: bool,
    /// Tokens that the program proposes.
    pub(crate) drafts: Vec<u32>,
    pub(crate) probes: Vec<RowProbe>,
}

impl StepOptions {
    /// Whether it is as every step.
    pub(crate) fn is_plain(&self) -> bool {
        !self.is_cleared && self.drafts.is_empty() && self.probes.is_empty()
    }
}
