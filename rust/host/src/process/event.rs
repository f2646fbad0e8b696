//! What a process tells its client: a bounded, ordered queue of events.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::sync::lock;

/// One thing that a process told its client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Text that the program sent or printed, verbatim.
    Stdout(String),
    /// Text that the program wrote to its standard error, verbatim.
    Stderr(String),
    /// Bytes that the program sent as one file.
    File(Vec<u8>),
    /// The last event of a program that succeeded: its return value, a JSON text.
    Return(String),
    /// The last event of a program that did not.
    Error(Failure),
}

/// Why a process ended without a return value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The type of the exception in the program's language; the error code where the host ended the program.
    pub kind: String,
    /// The stable code, where there is one.
    pub code: Option<String>,
    /// For people: names the value, the limit and the remedy.
    pub message: String,
    /// The program's own files and lines; empty where there are none.
    pub traceback: String,
}

impl From<crate::Error> for Failure {
    fn from(error: crate::Error) -> Self {
        let code = error.code.as_str().to_owned();
        Self {
            kind: code.clone(),
            code: Some(code),
            message: error.message,
            traceback: String::new(),
        }
    }
}

/// How much a queue between a program and its client holds before its writer waits or is refused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Capacity {
    /// Events, or messages.
    pub(crate) entries: usize,
    /// Bytes of what the entries carry. One entry may go beyond it, so that whatever a call may carry can be sent.
    pub(crate) bytes: usize,
}

/// The queue between a process and the reader of its events.
#[derive(Debug)]
pub(crate) struct EventQueue {
    capacity: Capacity,
    state: Mutex<State>,
    readable: Condvar,
    writable: Notify,
}

#[derive(Debug, Default)]
struct State {
    events: VecDeque<Event>,
    bytes: usize,
    /// The last event is in the queue or was read.
    ended: bool,
    /// Nobody will read again.
    abandoned: bool,
}

impl EventQueue {
    pub(crate) fn new(capacity: Capacity) -> Self {
        Self {
            capacity,
            state: Mutex::default(),
            readable: Condvar::new(),
            writable: Notify::new(),
        }
    }

    /// Adds an event that is not the last and waits for room first. With no reader it is dropped.
    pub(crate) async fn send(&self, event: Event) {
        self.writable().await;
        self.push(event);
    }

    /// Waits until there is room.
    pub(crate) async fn writable(&self) {
        loop {
            let room = self.writable.notified();
            if self.has_room() {
                return;
            }
            room.await;
        }
    }

    /// True when an event may be added without waiting.
    pub(crate) fn has_room(&self) -> bool {
        let state = lock(&self.state);
        state.ended
            || state.abandoned
            || (state.events.len() < self.capacity.entries && state.bytes < self.capacity.bytes)
    }

    /// Adds an event that is not the last without waiting; the caller has made sure of room.
    pub(crate) fn push(&self, event: Event) {
        let mut state = lock(&self.state);
        if state.ended || state.abandoned {
            return;
        }
        state.bytes += payload_bytes(&event);
        state.events.push_back(event);
        drop(state);
        self.readable.notify_all();
    }

    /// Adds the last event, whatever the queue holds. Later events are dropped.
    pub(crate) fn finish(&self, event: Event) {
        let mut state = lock(&self.state);
        if state.ended {
            return;
        }
        state.ended = true;
        state.events.push_back(event);
        drop(state);
        self.readable.notify_all();
        self.writable.notify_waiters();
    }

    /// No more reading: what is queued is dropped, and writers stop waiting.
    pub(crate) fn abandon(&self) {
        let mut state = lock(&self.state);
        state.abandoned = true;
        state.events.clear();
        state.bytes = 0;
        drop(state);
        self.readable.notify_all();
        self.writable.notify_waiters();
    }

    /// The next event, waiting at most `timeout` for it, or for ever when it is none. None: nothing came, or nothing will come.
    pub(crate) fn next(&self, timeout: Option<Duration>) -> Option<Event> {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut state = lock(&self.state);
        loop {
            if let Some(event) = state.events.pop_front() {
                state.bytes -= payload_bytes(&event);
                drop(state);
                self.writable.notify_waiters();
                return Some(event);
            }
            if state.ended || state.abandoned {
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

    /// True when the last event was read, or when nobody reads.
    pub(crate) fn is_drained(&self) -> bool {
        let state = lock(&self.state);
        state.abandoned || (state.ended && state.events.is_empty())
    }
}

/// Bytes that an event counts for; the last event is outside the bound.
fn payload_bytes(event: &Event) -> usize {
    match event {
        Event::Stdout(text) | Event::Stderr(text) => text.len(),
        Event::File(data) => data.len(),
        Event::Return(_) | Event::Error(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Event {
        Event::Stdout(text.to_owned())
    }

    #[tokio::test]
    async fn a_full_queue_suspends_its_writer_until_something_is_read() {
        let queue = EventQueue::new(Capacity {
            entries: 2,
            bytes: 100,
        });
        queue.send(text("a")).await;
        queue.send(text("b")).await;
        let third = queue.send(text("c"));
        tokio::pin!(third);
        assert!(futures_pending(&mut third).await);
        assert_eq!(queue.next(None), Some(text("a")));
        third.await;
        queue.finish(Event::Return("1".to_owned()));
        let rest: Vec<_> = std::iter::from_fn(|| queue.next(None)).collect();
        assert_eq!(rest, [text("b"), text("c"), Event::Return("1".to_owned())]);
        assert!(queue.is_drained());
    }

    #[tokio::test]
    async fn bytes_are_bounded_with_one_event_beyond() {
        let queue = EventQueue::new(Capacity {
            entries: 10,
            bytes: 4,
        });
        queue.send(text("abcdef")).await;
        assert!(!queue.has_room());
        assert_eq!(queue.next(None), Some(text("abcdef")));
        assert!(queue.has_room());
        let file = Event::File(vec![0xff; 5]);
        queue.send(file.clone()).await;
        assert!(!queue.has_room());
        assert_eq!(queue.next(None), Some(file));
        assert!(queue.has_room());
    }

    #[test]
    fn the_last_event_always_fits_and_is_the_last() {
        let queue = EventQueue::new(Capacity {
            entries: 1,
            bytes: 1,
        });
        queue.push(text("x"));
        queue.finish(Event::Return("null".to_owned()));
        queue.push(text("late"));
        queue.finish(Event::Return("2".to_owned()));
        assert_eq!(queue.next(None), Some(text("x")));
        assert_eq!(queue.next(None), Some(Event::Return("null".to_owned())));
        assert_eq!(queue.next(None), None);
    }

    #[test]
    fn nothing_in_time_is_none() {
        let queue = EventQueue::new(Capacity {
            entries: 1,
            bytes: 1,
        });
        assert_eq!(queue.next(Some(Duration::from_millis(1))), None);
        assert!(!queue.is_drained());
    }

    /// Polls a future once and tells whether it waits.
    async fn futures_pending<F: Future + Unpin>(future: &mut F) -> bool {
        std::future::poll_fn(|context| {
            std::task::Poll::Ready(std::pin::Pin::new(&mut *future).poll(context).is_pending())
        })
        .await
    }
}
