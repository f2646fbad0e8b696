//! The queue through which passes reach the core, and the bell of the driver that waits for them.

use pie_core::{RequestId, Submission};

use crate::sync::{Condvar, Instant, Mutex, lock, wait_until};

/// Passes that were submitted and that the core has not seen. It is bounded: a submitter that finds it full brings it
/// to the core.
#[derive(Debug)]
pub(crate) struct Inbox {
    capacity: usize,
    state: Mutex<State>,
    rung: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: Vec<(RequestId, Submission)>,
    /// Something happened since the driver looked last.
    bell: bool,
    /// Drivers that wait for the bell.
    n_waiting: usize,
    stopped: bool,
}

impl State {
    /// Rings the bell. True: a driver waits for it and was not told yet. To tell one is a call of the system, and most
    /// who ring find the driver at work.
    #[must_use]
    fn ring(&mut self) -> bool {
        !std::mem::replace(&mut self.bell, true) && self.n_waiting > 0
    }
}

/// Why a wait for the bell ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    /// Something happened.
    Rung,
    /// Nothing happened in time.
    TimedOut,
    /// Nothing will happen any more.
    Stopped,
}

impl Inbox {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            state: Mutex::default(),
            rung: Condvar::new(),
        }
    }

    /// Adds a pass and rings the bell; false when the inbox is full with it, so that the caller should bring it to the
    /// core.
    pub(crate) fn push(&self, request: RequestId, submission: Submission) -> bool {
        let mut state = lock(&self.state);
        state.waiting.push((request, submission));
        let (is_awaited, has_room) = (state.ring(), state.waiting.len() < self.capacity);
        drop(state);
        if is_awaited {
            self.rung.notify_one();
        }
        has_room
    }

    /// What waits, in order.
    pub(crate) fn take(&self) -> Vec<(RequestId, Submission)> {
        std::mem::take(&mut lock(&self.state).waiting)
    }

    /// Wakes the driver.
    pub(crate) fn ring(&self) {
        let is_awaited = lock(&self.state).ring();
        if is_awaited {
            self.rung.notify_one();
        }
    }

    /// No more batches: whoever waits is woken.
    pub(crate) fn stop(&self) {
        lock(&self.state).stopped = true;
        self.rung.notify_all();
    }

    pub(crate) fn is_stopped(&self) -> bool {
        lock(&self.state).stopped
    }

    /// Waits for the bell until `deadline`.
    pub(crate) fn wait(&self, deadline: Instant) -> Woken {
        let mut state = lock(&self.state);
        let mut is_late = false;
        loop {
            if state.stopped {
                return Woken::Stopped;
            }
            // Also of one that is late: no bell stays rung that somebody waits for, or who rings it again would tell
            // nobody.
            if std::mem::take(&mut state.bell) {
                return Woken::Rung;
            }
            if is_late {
                return Woken::TimedOut;
            }
            state.n_waiting += 1;
            let woken = wait_until(&self.rung, state, deadline);
            is_late = woken.is_none();
            state = woken.unwrap_or_else(|| lock(&self.state));
            state.n_waiting -= 1;
        }
    }
}
