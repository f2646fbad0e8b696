//! What a program wants of one step of a generator.

/// What is wanted of the step that is open, beside what the generator wants of each.
#[derive(Debug, Default)]
pub(crate) struct StepOptions {
    /// Nothing is drawn: the program says which tokens follow.
    pub(crate) is_cleared: bool,
}
