//! What the thread waits for that notices a driver which hangs (see [`super::overdue`]).

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Instant;

use crate::sync::lock;

/// What the thread waits for.
#[derive(Debug, Default)]
pub(crate) struct OverdueSignal {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// No batch and no command began since the thread looked last.
    idle: bool,
    /// Something else is overdue then, as was said since the thread looked last.
    due: Option<Instant>,
    stopped: bool,
}

impl OverdueSignal {
    /// A batch or a command begins.
    pub(crate) fn begin(&self) {
        let mut state = lock(&self.state);
        if std::mem::take(&mut state.idle) {
            drop(state);
            self.changed.notify_one();
        }
    }

    /// Something is overdue at a time that the thread may not know.
    pub(crate) fn hasten(&self, at: Instant) {
        let mut state = lock(&self.state);
        if state.due.is_none_or(|due| at < due) {
            state.due = Some(at);
            drop(state);
            self.changed.notify_one();
        }
    }

    /// Ends the thread.
    pub(crate) fn stop(&self) {
        lock(&self.state).stopped = true;
        self.changed.notify_one();
    }

    /// The thread is about to look: what begins from now on may be missed.
    pub(super) fn look(&self) {
        let mut state = lock(&self.state);
        (state.idle, state.due) = (true, None);
    }

    /// Waits until `deadline`, or until what is overdue sooner; where there is neither, until a batch or a command
    /// begins after the last look. False: the watch was stopped.
    pub(super) fn wait(&self, deadline: Option<Instant>) -> bool {
        let mut state = lock(&self.state);
        loop {
            if state.stopped {
                return false;
            }
            let deadline = deadline.into_iter().chain(state.due).min();
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

#[cfg(test)]
mod tests {
    use std::sync::{Arc, mpsc};
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_batch_that_began_after_the_look_is_not_slept_over() {
        let watch = OverdueSignal::default();
        watch.look();
        watch.begin();
        assert!(watch.wait(None));
    }

    #[test]
    fn a_batch_wakes_a_thread_that_sleeps() {
        let watch = Arc::new(OverdueSignal::default());
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
        let watch = OverdueSignal::default();
        let deadline = Instant::now() + Duration::from_millis(5);
        watch.look();
        watch.begin();
        assert!(watch.wait(Some(deadline)));
        assert!(Instant::now() >= deadline);
    }

    #[test]
    fn what_is_overdue_sooner_is_waited_for() {
        let watch = OverdueSignal::default();
        let (soon, late) = (Duration::from_millis(5), Duration::from_secs(3600));
        let at = Instant::now() + soon;
        watch.look();
        watch.hasten(Instant::now() + late);
        watch.hasten(at);
        watch.hasten(Instant::now() + late);
        assert!(watch.wait(Some(Instant::now() + late)));
        assert!(Instant::now() >= at);
        // It is known from the next look on.
        watch.look();
        watch.hasten(Instant::now() + soon);
        assert!(watch.wait(None));
    }

    #[test]
    fn where_nothing_begins_a_thread_sleeps() {
        let watch = Arc::new(OverdueSignal::default());
        let (woken, wakes) = mpsc::channel();
        watch.look();
        watch.begin();
        let sleeper = thread::spawn({
            let watch = watch.clone();
            move || {
                while watch.wait(None) && woken.send(()).is_ok() {
                    watch.look();
                }
            }
        });
        wakes.recv().unwrap();
        watch.stop();
        sleeper.join().unwrap();
        assert_eq!(wakes.iter().count(), 0);
    }

    #[test]
    fn a_watch_that_was_stopped_waits_for_nothing() {
        let watch = OverdueSignal::default();
        watch.look();
        watch.stop();
        assert!(!watch.wait(None));
        assert!(!watch.wait(Some(Instant::now() + Duration::from_secs(3600))));
    }
}
