//! A queue with one reader, who is there from the beginning: while it does not read, the writer waits.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use super::line::{Line, Queued};
use super::{Capacity, EventQueue};
use crate::Error;
use crate::event::{Event, EventKind};
use crate::stepped_charge::SteppedCharge;
use crate::sync::lock;

/// The queue between a process and the one reader of its events.
#[derive(Debug)]
pub(crate) struct PipeQueue {
    capacity: Capacity,
    state: Mutex<State>,
    readable: Condvar,
    changed: Notify,
    writable: Notify,
}

#[derive(Debug)]
struct State {
    line: Line,
    /// Nobody will read again.
    abandoned: bool,
}

impl PipeQueue {
    /// An empty one.
    pub(crate) fn new(capacity: Capacity, holding: SteppedCharge) -> Self {
        Self {
            capacity,
            state: Mutex::new(State {
                line: Line::new(holding),
                abandoned: false,
            }),
            readable: Condvar::new(),
            changed: Notify::new(),
            writable: Notify::new(),
        }
    }

    /// Takes the next event, waiting at most `timeout` for it, or for ever when it is none. None: nothing came, or
    /// nothing will come.
    pub(crate) fn next(&self, timeout: Option<Duration>) -> Option<Event> {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut state = lock(&self.state);
        loop {
            if let Some(kept) = state.line.remove_first() {
                state.settle();
                drop(state);
                self.writable.notify_waiters();
                return Some(Arc::unwrap_or_clone(kept.event));
            }
            if state.line.ended || state.abandoned {
                return None;
            }
            state = match deadline {
                None => self
                    .readable
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let left = deadline.checked_duration_since(Instant::now())?;
                    self.readable
                        .wait_timeout(state, left)
                        .unwrap_or_else(PoisonError::into_inner)
                        .0
                }
            };
        }
    }

    /// True when the last event was taken, or when nobody reads.
    pub(crate) fn is_drained(&self) -> bool {
        let state = lock(&self.state);
        state.abandoned || state.line.is_over()
    }

    /// No more reading: what is queued is dropped, and writers stop waiting.
    pub(crate) fn abandon(&self) {
        let mut state = lock(&self.state);
        state.abandoned = true;
        state.line.clear();
        state.settle();
        drop(state);
        self.notify_reader();
        self.writable.notify_waiters();
    }

    /// Becomes ready when something changed after the call for the reader.
    pub(crate) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    fn notify_reader(&self) {
        self.readable.notify_all();
        self.changed.notify_waiters();
    }
}

impl EventQueue for PipeQueue {
    fn has_room(&self, _: EventKind) -> bool {
        let state = lock(&self.state);
        state.line.ended || state.abandoned || state.line.has_room(self.capacity)
    }

    fn room_made(&self) -> Notified<'_> {
        self.writable.notified()
    }

    fn push(&self, event: Event) -> Result<(), Error> {
        let mut state = lock(&self.state);
        if state.abandoned || state.add(event)?.is_none() {
            return Ok(());
        }
        state.settle();
        drop(state);
        self.notify_reader();
        Ok(())
    }

    fn finish(&self, event: Arc<Event>) {
        let mut state = lock(&self.state);
        if state.add_last(event).is_none() {
            return;
        }
        state.settle();
        drop(state);
        self.notify_reader();
        self.writable.notify_waiters();
    }
}

impl Queued for State {
    fn line(&mut self) -> &mut Line {
        &mut self.line
    }

    fn held_bytes(&self) -> usize {
        let last_bytes = self.line.last().map_or(0, |event| event.payload_bytes());
        self.line.kept_bytes() + last_bytes
    }
}
