//! What programs wait for.

use crate::generation::Output;
use crate::ids::{ContextId, GeneratorId};

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Submission {
    /// Compute what is pending and buffered, and commit the full pages.
    Flush(ContextId),
    /// One step; the generator must have opened it.
    Step(GeneratorId),
    /// To the end; the engine steps the sequence by itself.
    Run(GeneratorId),
}

/// Where a request stands after it was entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// There is nothing to compute: the answer can be taken.
    Ready,
    /// A batch has to run first.
    Waiting,
}

/// What a request gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// To [`Submission::Flush`].
    Flushed,
    /// To [`Submission::Step`] and [`Submission::Run`].
    Generated(Output),
}
