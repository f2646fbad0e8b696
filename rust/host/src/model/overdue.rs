//! Notices a driver that hangs.
//!
//! The thread of the driver cannot: it is the one that does not come back. So each model has a thread that sleeps until
//! the batch or the command that runs for the longest is overdue. It looks when that time has come, not when a batch or
//! a command begins or ends, so that a driver that answers costs it nothing. Only where neither ran when it looked last
//! does the next one wake it. Passes that wait for token masks are looked after by the same thread, which is told when
//! the first is overdue.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::Model;
use crate::Error;

/// The stack of the thread, which calls the core and nothing deeper.
const STACK_BYTES: usize = 256 << 10;

/// Starts the thread that watches the driver of `model` until the model is dropped.
///
/// # Errors
/// `internal` when there is no thread to be had.
pub(crate) fn start(model: &Arc<Model>) -> Result<(), Error> {
    let (watch, weak) = (model.watch.clone(), Arc::downgrade(model));
    let work = move || {
        loop {
            watch.look();
            let Some(deadline) = weak.upgrade().map(|model| model.abandon_overdue()) else {
                return;
            };
            if !watch.wait(deadline) {
                return;
            }
        }
    };
    let thread = thread::Builder::new()
        .name("pie-watch".to_owned())
        .stack_size(STACK_BYTES)
        .spawn(work);
    thread.map(drop).map_err(|error| {
        Error::internal(format!(
            "the thread that watches the driver cannot be started: {error}"
        ))
    })
}

impl Model {
    /// Fails the requests of batches and commands that are overdue, and passes whose token masks are. Returns when the
    /// next one is; none where nothing is waited for.
    fn abandon_overdue(&self) -> Option<Instant> {
        let now_ns = self.now_ns();
        let due_ns = self.with_engine(|engine| {
            engine.abandon_overdue(now_ns);
            engine.fail_overdue_masks(now_ns);
            engine.overdue_ns()
        });
        due_ns.map(|ns| self.started + Duration::from_nanos(ns))
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        self.watch.stop();
    }
}
