//! Notices a driver that hangs.
//!
//! The thread of the driver cannot: it is the one that does not come back. So each model has a thread that sleeps until the batch that runs
//! for the longest is overdue. It looks when that time has come, not when a batch begins or ends, so that a driver that answers costs it
//! nothing; only where no batch ran when it looked last does the next one wake it.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::Model;
use crate::Error;
use crate::sync::lock;

/// The stack of the thread, which calls the core and nothing deeper.
const STACK_BYTES: usize = 256 << 10;

/// What the thread waits for.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// No batch began since the thread looked last.
    idle: bool,
    stopped: bool,
}

impl Watch {
    /// A batch begins.
    pub(crate) fn begin(&self) {
        let mut state = lock(&self.state);
        if std::mem::take(&mut state.idle) {
            drop(state);
            self.changed.notify_one();
        }
    }

    /// Ends the thread.
    pub(crate) fn stop(&self) {
        lock(&self.state).stopped = true;
        self.changed.notify_one();
    }

    /// The thread is about to look: a batch that begins from now on may be missed.
    fn look(&self) {
        lock(&self.state).idle = true;
    }

    /// Waits until `deadline`, or where there is none until a batch begins after the last look. False: the watch was stopped.
    fn wait(&self, deadline: Option<Instant>) -> bool {
        let mut state = lock(&self.state);
        loop {
            if state.stopped {
                return false;
            }
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            state = match left {
                None if state.idle => self
                    .changed
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(left) if !left.is_zero() => {
                    self.changed
                        .wait_timeout(state, left)
                        .unwrap_or_else(PoisonError::into_inner)
                        .0
                }
                _ => return true,
            };
        }
    }
}

/// Starts the thread that watches the driver of `model` until the model goes.
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
    /// Fails the requests of batches that are overdue. Answers when the next one is; none where no batch runs that is waited for.
    fn abandon_overdue(&self) -> Option<Instant> {
        let now_ns = self.now_ns();
        let due_ns = self.with_engine(|engine| {
            engine.abandon_overdue(now_ns);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_that_began_after_the_look_is_not_slept_over() {
        let watch = Watch::default();
        watch.look();
        watch.begin();
        assert!(watch.wait(None));
    }

    #[test]
    fn a_batch_wakes_a_thread_that_sleeps() {
        let watch = Arc::new(Watch::default());
        watch.look();
        let sleeper = thread::spawn({
            let watch = watch.clone();
            move || watch.wait(None)
        });
        watch.begin();
        assert!(sleeper.join().is_ok_and(|goes_on| goes_on));
    }

    #[test]
    fn a_deadline_is_waited_for_while_batches_begin() {
        let watch = Watch::default();
        let deadline = Instant::now() + Duration::from_millis(5);
        watch.look();
        watch.begin();
        assert!(watch.wait(Some(deadline)));
        assert!(Instant::now() >= deadline);
    }

    #[test]
    fn a_watch_that_was_stopped_waits_for_nothing() {
        let watch = Watch::default();
        watch.look();
        watch.stop();
        assert!(!watch.wait(None));
        assert!(!watch.wait(Some(Instant::now() + Duration::from_secs(3600))));
    }
}
