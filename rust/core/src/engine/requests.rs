//! What programs wait for: a request has a pass, from when it is entered (`submitting`, `ahead`) until its answer is
//! taken (`folding`) or it is cancelled.

use super::forward::Forward;
use crate::batch::RowOutput;
use crate::command::{Command, PageMove};
use crate::config::EngineConfig;
use crate::context::Context;
use crate::errors::{Error, ErrorCode, Result};
use crate::generation::Output;
use crate::ids::{ContextId, GeneratorId, ProcessId};
use crate::sched::Ticket;

/// What a request asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Submission {
    /// Compute what is pending and buffered, and commit the full pages.
    Flush(ContextId),
    /// Compute and read what the program says.
    Forward(ContextId, Box<Forward>),
    /// One step; the generator must have opened it.
    Step(GeneratorId),
    /// To the end; the engine steps the sequence by itself.
    Run(GeneratorId),
    /// Have the driver carry out a command, at the wish of a process, or of the operator of the engine.
    Command(Option<ProcessId>, Command),
    /// Have the driver write pages to a file, or read them from one, at the wish of the operator of the engine.
    Pages(PageMove),
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
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// To [`Submission::Flush`].
    Flushed,
    /// To [`Submission::Forward`]: its rows, in the order in which they were asked for.
    Forwarded(Vec<RowOutput>),
    /// To [`Submission::Step`] and [`Submission::Run`].
    Generated(Output),
    /// To [`Submission::Command`]: it was carried out.
    Commanded,
    /// To [`Submission::Pages`]: so many of the pages, from the first on, are where they were wanted.
    Moved(u32),
}

/// Tokens that are about to enter a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entering {
    /// So many enter, or stand in place of others.
    pub n_tokens: usize,
    /// Tokens of the context then, the buffer included.
    pub length: usize,
}

/// Where a request is that was entered and not yet taken.
#[derive(Debug)]
pub(super) enum RequestState {
    /// The pass of this context.
    Active(ContextId),
    /// It failed, and its context is gone. `counts` tells whether it is among those of its process.
    Failed {
        process: ProcessId,
        counts: bool,
        error: Error,
    },
    /// It is a command; none: not answered yet.
    Commanded {
        process: Option<ProcessId>,
        answer: Option<Result<Answer>>,
    },
}

/// The place of the pass of a context in the queue; none while its pages are on their way. `served` is the batch that
/// served it last, or the last one that was planned before it was entered: so that what is entered anew time and again
/// does not go before what goes on.
pub(super) fn ticket(id: ContextId, context: &Context, served: u64) -> Option<Ticket> {
    let pass = context.pass.as_ref().filter(|_| !context.awaits_pages())?;
    Some(Ticket {
        context: id,
        process: context.process,
        user: context.lane.owner(),
        wants: pass.wants(),
        n_tokens: context.n_remaining(),
        n_before: context.lane.n_ready(),
        pass: pass.id,
        served,
        n_refused: 0,
        refused_in: 0,
        is_ahead: pass.is_ahead(),
        follows: None,
    })
}

/// A pass that no release of others could make room for.
pub(super) fn never_fits(needed: u32, limit: u32, config: &EngineConfig) -> Error {
    let setting = config.names.n_pages;
    Error::with_values(
        ErrorCode::OutOfPages,
        format!(
            "the context needs {needed} pages and the pool has {limit}; shorten it, or raise {setting}"
        ),
        &[("needed", u64::from(needed)), ("limit", u64::from(limit))],
    )
}
