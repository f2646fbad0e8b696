//! A look at a program that runs none of it: whether it compiles, fits the host, and has an entry.

use std::time::Duration;

use pie_core::ErrorCode;

use crate::Error;
use crate::errors::stopped;
use crate::event::{Event, Failure};
use crate::process::Process;
use crate::program::fair_turns::FairTurn;

/// Programs that are looked at once; the others wait, users in turns.
pub(super) const PARALLEL_CHECKS: usize = 2;

/// A look at a program. Dropping it gives it up.
#[derive(Debug)]
pub struct Check {
    process: Process,
    /// Held for its end; none where nobody else waits.
    _turn: Option<FairTurn>,
}

impl Check {
    pub(super) fn new(process: Process, turn: Option<FairTurn>) -> Self {
        Self {
            process,
            _turn: turn,
        }
    }

    /// Waits at most `timeout`; None when the work is not done by then. Once it has answered, the work is over.
    ///
    /// # Errors
    /// What is wrong with the program; see [`crate::Host::check`].
    pub fn wait_for(&self, timeout: Duration) -> Result<Option<()>, Error> {
        match self.process.next_event(Some(timeout)) {
            Some(event) if event.is_last() => answer(Some(event)).map(Some),
            None if self.process.is_drained() => answer(None).map(Some),
            Some(_) | None => Ok(None),
        }
    }

    /// Waits until the work is done.
    ///
    /// # Errors
    /// As [`Check::wait_for`].
    pub async fn outcome(self) -> Result<(), Error> {
        answer(self.process.last_event().await)
    }
}

fn answer(last: Option<Event>) -> Result<(), Error> {
    match last {
        Some(Event::Error(failure)) => Err(error(failure)),
        Some(_) => Ok(()),
        None => Err(stopped()),
    }
}

/// The failure of a process in which nothing of the program ran.
fn error(failure: Failure) -> Error {
    let code = failure.code.as_deref().and_then(ErrorCode::from_name);
    Error::new(code.unwrap_or(ErrorCode::InvalidProgram), failure.message)
}
