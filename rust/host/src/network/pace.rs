//! How long the parts of a request may take.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use pie_core::ErrorCode;
use tokio::time::{Instant, sleep_until};

use crate::Error;
use crate::sync::lock;

/// The error of a request that took too long, by a limit or by a lower time of its own.
pub(crate) fn too_long(at: &str, what: &str, limit: &str, most: Duration) -> Error {
    let most = most.as_secs_f64();
    Error::new(
        ErrorCode::LimitHttpTime,
        format!(
            "the request to {at} was given up: {what} took longer than {most} s, by {limit} or a timeout of the request's own; ask a faster server, or raise it"
        ),
    )
}

/// How far the body of a request has come.
#[derive(Clone, Debug)]
pub(crate) struct Progress(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    moved: Instant,
    /// The program has not given what comes next: it is not the server that lets wait.
    is_program_due: bool,
}

impl Progress {
    /// That of a request which begins.
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(State {
            moved: Instant::now(),
            is_program_due: false,
        })))
    }

    /// Something was sent, or waits for the program.
    pub(crate) fn moved(&self, is_program_due: bool) {
        *lock(&self.0) = State {
            moved: Instant::now(),
            is_program_due,
        };
    }

    /// Returns once the server has been waited for as long as `most`.
    pub(crate) async fn stalled(&self, most: Duration) {
        loop {
            let (moved, is_program_due) = {
                let state = lock(&self.0);
                (state.moved, state.is_program_due)
            };
            let now = Instant::now();
            let from = if is_program_due { now } else { moved };
            let until = from + most;
            if until <= now {
                return;
            }
            sleep_until(until).await;
        }
    }
}
