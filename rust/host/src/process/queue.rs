//! The queue between a process and whoever reads its events.
//!
//! While a reader is attached, a writer without room waits. While none is, nothing waits: the oldest output is dropped and counted,
//! and a message that stands for it comes first when somebody reads. An event stays until it is acknowledged; its sequence number
//! counts from 1.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pie_core::ErrorCode;
use tokio::sync::Notify;

use super::log::{LogRing, LogText};
use super::serving::Observer;
use crate::Error;
use crate::event::Event;
use crate::holding::Holding;
use crate::sync::lock;

/// What an event costs beside its payload, where kept events are bounded by bytes.
const EVENT_BYTES: usize = 64;

/// How much a queue between a program and its client holds before its writer waits or is refused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Capacity {
    /// Events, or messages.
    pub(crate) entries: usize,
    /// Bytes of what the entries carry. One entry may go beyond it, so that whatever a call may carry can be sent.
    pub(crate) bytes: usize,
}

/// How a queue behaves whose reader may come and go.
pub(crate) struct Keeping {
    pub(crate) pid: u64,
    /// Bytes of events kept while nobody is attached.
    pub(crate) kept_bytes: usize,
    /// Bytes of output kept as a log.
    pub(crate) log_bytes: usize,
    pub(crate) observer: Arc<dyn Observer>,
}

/// The queue between a process and the reader of its events.
pub(crate) struct EventQueue {
    capacity: Capacity,
    /// None: there is one reader, for ever.
    keeping: Option<Keeping>,
    state: Mutex<State>,
    readable: Condvar,
    changed: Notify,
    writable: Notify,
}

#[derive(Debug)]
struct State {
    events: VecDeque<Kept>,
    last_seq: u64,
    /// Payload bytes of the events, without the last one, which is outside the bounds.
    bytes: usize,
    reader: Option<Attached>,
    next_reader: u64,
    dropped: Dropped,
    log: LogRing,
    /// The last event, which can be asked for also after it was read; none while there is none, and where there is one reader for ever.
    outcome: Option<Arc<Event>>,
    /// What all of it is charged with.
    holding: Holding,
    /// The last event is in the queue or was read.
    ended: bool,
    /// Nobody will read again.
    abandoned: bool,
    /// What is kept was given up; a last event that comes still is given up too.
    forgotten: bool,
}

#[derive(Debug)]
struct Kept {
    seq: u64,
    event: Arc<Event>,
}

#[derive(Debug, Default)]
struct Dropped {
    n_events: u64,
    n_bytes: u64,
    /// The number of the newest dropped event, under which the message about all of them goes; none when it was acknowledged.
    seq: Option<u64>,
}

#[derive(Debug)]
struct Attached {
    reader: u64,
    window_bytes: usize,
    sent_seq: u64,
    unacknowledged_bytes: usize,
}

impl std::fmt::Debug for EventQueue {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("EventQueue")
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

/// What an attached reader gets next.
#[derive(Debug)]
pub(crate) enum Next {
    Event(u64, Arc<Event>),
    /// Nothing yet, or the window is full.
    Wait,
    /// Every event was sent, or the reader is attached no more.
    Over,
}

/// Why a reader is not attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotAttached {
    /// Another one is.
    Taken,
    /// Every event was taken, the last one among them.
    Over,
}

impl EventQueue {
    /// A queue with one reader, who is there from the beginning and takes with [`EventQueue::next`].
    pub(crate) fn new(capacity: Capacity, holding: Holding) -> Self {
        let queue = Self::with(capacity, holding, None);
        let _first = queue.attach(usize::MAX);
        queue
    }

    /// A queue whose readers come and go.
    pub(crate) fn keeping(capacity: Capacity, holding: Holding, keeping: Keeping) -> Self {
        Self::with(capacity, holding, Some(keeping))
    }

    fn with(capacity: Capacity, holding: Holding, keeping: Option<Keeping>) -> Self {
        let log_bytes = keeping.as_ref().map_or(0, |keeping| keeping.log_bytes);
        Self {
            capacity,
            keeping,
            state: Mutex::new(State {
                events: VecDeque::new(),
                last_seq: 0,
                bytes: 0,
                reader: None,
                next_reader: 0,
                dropped: Dropped::default(),
                log: LogRing::new(log_bytes),
                outcome: None,
                holding,
                ended: false,
                abandoned: false,
                forgotten: false,
            }),
            readable: Condvar::new(),
            changed: Notify::new(),
            writable: Notify::new(),
        }
    }

    /// Adds an event that is not the last and waits for room first. Where nobody will ever read it is dropped.
    ///
    /// # Errors
    /// Those of [`EventQueue::push`].
    pub(crate) async fn send(&self, event: Event) -> Result<(), Error> {
        self.writable().await;
        self.push(event)
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
            || state.reader.is_none()
            || (state.events.len() < self.capacity.entries && state.bytes < self.capacity.bytes)
    }

    /// Adds an event that is not the last without waiting; the caller has made sure of room.
    ///
    /// # Errors
    /// `limit-engine-memory` where the user of the process has no room for it.
    pub(crate) fn push(&self, event: Event) -> Result<(), Error> {
        if let (Event::Stderr(text), Some(keeping)) = (&event, &self.keeping) {
            keeping.observer.stderr(keeping.pid, text);
        }
        let mut state = lock(&self.state);
        if state.ended || state.abandoned {
            return Ok(());
        }
        // Its text stands in the log too.
        let more = EVENT_BYTES + 2 * event.payload_bytes();
        let held_bytes = state.held_bytes() + more;
        state.holding.set(held_bytes)?;
        if let Event::Stdout(text) | Event::Stderr(text) = &event {
            state.log.push(text);
        }
        state.bytes += event.payload_bytes();
        state.add(Arc::new(event));
        self.drop_oldest(&mut state);
        state.settle();
        drop(state);
        self.notify_readers();
        Ok(())
    }

    /// Adds the last event, whatever the queue holds; where the user of the process has no room for it, an error that says so. Later events are dropped.
    pub(crate) fn finish(&self, event: Event) {
        let mut state = lock(&self.state);
        if state.ended {
            return;
        }
        state.ended = true;
        let held_bytes = state.held_bytes() + event.payload_bytes();
        let event = match state.holding.set(held_bytes) {
            Ok(()) => event,
            Err(error) => Event::Error(error.into()),
        };
        let event = Arc::new(event);
        state.outcome = self.keeping.as_ref().map(|_| event.clone());
        state.add(event);
        if state.forgotten {
            state.forget();
        }
        state.settle();
        drop(state);
        self.notify_readers();
        self.writable.notify_waiters();
    }

    /// What is kept of a process that has ended, or is about to, is given up. A reader that is attached and was not sent all gets an
    /// error in the place of what is missing.
    pub(crate) fn forget(&self) {
        let mut state = lock(&self.state);
        state.forgotten = true;
        state.forget();
        state.settle();
        drop(state);
        self.notify_readers();
        self.writable.notify_waiters();
    }

    /// No more reading: what is queued is dropped, and writers stop waiting.
    pub(crate) fn abandon(&self) {
        let mut state = lock(&self.state);
        state.abandoned = true;
        state.events = VecDeque::new();
        state.bytes = 0;
        state.settle();
        drop(state);
        self.notify_readers();
        self.writable.notify_waiters();
    }

    /// Takes the next event, waiting at most `timeout` for it, or for ever when it is none. None: nothing came, or nothing will come.
    pub(crate) fn next(&self, timeout: Option<Duration>) -> Option<Event> {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut state = lock(&self.state);
        loop {
            if let Some(kept) = state.remove_first() {
                state.settle();
                drop(state);
                self.writable.notify_waiters();
                return Some(Arc::unwrap_or_clone(kept.event));
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

    /// True when the last event was taken, or when nobody reads.
    pub(crate) fn is_drained(&self) -> bool {
        let state = lock(&self.state);
        state.abandoned || (state.ended && state.events.is_empty())
    }

    /// Attaches a reader that gets at most `window_bytes` of payload (one event may go beyond) ahead of what it acknowledged. Answers
    /// its number and that of the first event that it will get.
    ///
    /// # Errors
    /// When another reader is attached, and when there is nothing to read and never will be.
    pub(crate) fn attach(&self, window_bytes: usize) -> Result<(u64, u64), NotAttached> {
        let mut state = lock(&self.state);
        if state.reader.is_some() {
            return Err(NotAttached::Taken);
        }
        if state.ended && state.events.is_empty() {
            return Err(NotAttached::Over);
        }
        let reader = state.next_reader;
        state.next_reader += 1;
        let first_seq = state
            .dropped
            .seq
            .or_else(|| state.events.front().map(|kept| kept.seq))
            .unwrap_or(state.last_seq + 1);
        state.reader = Some(Attached {
            reader,
            window_bytes,
            sent_seq: first_seq - 1,
            unacknowledged_bytes: 0,
        });
        Ok((reader, first_seq))
    }

    /// The reader goes; what it did not acknowledge stays for the next one, within the bounds of what is kept.
    pub(crate) fn detach(&self, reader: u64) {
        let mut state = lock(&self.state);
        if state.attached(reader).is_none() {
            return;
        }
        state.reader = None;
        self.drop_oldest(&mut state);
        state.settle();
        drop(state);
        self.notify_readers();
        self.writable.notify_waiters();
    }

    /// True while a reader is attached.
    pub(crate) fn is_attached(&self) -> bool {
        lock(&self.state).reader.is_some()
    }

    /// True while a reader is attached that has not acknowledged the last event.
    pub(crate) fn is_being_read(&self) -> bool {
        let state = lock(&self.state);
        state.reader.is_some() && !(state.ended && state.events.is_empty())
    }

    /// What the reader gets next; it stays kept until it is acknowledged.
    pub(crate) fn read(&self, reader: u64) -> Next {
        let mut state = lock(&self.state);
        let state = &mut *state;
        let Some(attached) = state
            .reader
            .as_mut()
            .filter(|attached| attached.reader == reader)
        else {
            return Next::Over;
        };
        if let Some(seq) = state.dropped.seq.filter(|seq| *seq > attached.sent_seq) {
            attached.sent_seq = seq;
            return Next::Event(seq, Arc::new(state.dropped.message()));
        }
        let at = state
            .events
            .partition_point(|kept| kept.seq <= attached.sent_seq);
        match state.events.get(at) {
            Some(_) if attached.unacknowledged_bytes >= attached.window_bytes => Next::Wait,
            Some(kept) => {
                attached.sent_seq = kept.seq;
                attached.unacknowledged_bytes += kept.event.payload_bytes();
                Next::Event(kept.seq, kept.event.clone())
            }
            None if state.ended || state.abandoned => Next::Over,
            None => Next::Wait,
        }
    }

    /// The reader has taken everything up to `seq`: it is forgotten.
    pub(crate) fn acknowledge(&self, reader: u64, seq: u64) {
        let mut state = lock(&self.state);
        let Some(mut attached) = state.attached(reader) else {
            return;
        };
        while state.events.front().is_some_and(|kept| kept.seq <= seq) {
            let Some(kept) = state.remove_first() else {
                break;
            };
            if kept.seq <= attached.sent_seq {
                let bytes = kept.event.payload_bytes();
                attached.unacknowledged_bytes = attached.unacknowledged_bytes.saturating_sub(bytes);
            }
        }
        if state.dropped.seq.is_some_and(|dropped| dropped <= seq) {
            state.dropped.seq = None;
        }
        attached.sent_seq = attached.sent_seq.max(seq.min(state.last_seq));
        state.reader = Some(attached);
        state.settle();
        drop(state);
        self.notify_readers();
        self.writable.notify_waiters();
    }

    /// True when the reader has acknowledged the last event, or is attached no more.
    pub(crate) fn is_over(&self, reader: u64) -> bool {
        let state = lock(&self.state);
        let attached = state.reader.as_ref();
        attached.is_none_or(|attached| attached.reader != reader)
            || (state.ended && state.events.is_empty())
    }

    /// Becomes ready when something changed after the call for a reader or for the log.
    pub(crate) fn changed(&self) -> tokio::sync::futures::Notified<'_> {
        self.changed.notified()
    }

    /// The log from position `after` on, at most its last `tail_bytes`.
    pub(crate) fn log(&self, after: u64, tail_bytes: usize) -> LogText {
        let state = lock(&self.state);
        LogText {
            ended: state.ended,
            ..state.log.read(after, tail_bytes)
        }
    }

    /// The last event of a process that has ended, whether it was read or not.
    pub(crate) fn outcome(&self) -> Option<Arc<Event>> {
        lock(&self.state).outcome.clone()
    }

    /// Events dropped so far.
    pub(crate) fn n_dropped(&self) -> u64 {
        lock(&self.state).dropped.n_events
    }

    /// Bytes that the queue, its log and the last event hold.
    pub(crate) fn held_bytes(&self) -> usize {
        lock(&self.state).held_bytes()
    }

    /// Drops the oldest output while nobody is attached and more is kept than may be.
    fn drop_oldest(&self, state: &mut State) {
        let Some(keeping) = &self.keeping else {
            return;
        };
        while state.reader.is_none() && state.kept_bytes() > keeping.kept_bytes {
            if state.events.front().is_none_or(|kept| kept.event.is_last()) {
                return;
            }
            let Some(kept) = state.remove_first() else {
                return;
            };
            state.dropped.n_events += 1;
            state.dropped.n_bytes += kept.event.payload_bytes() as u64;
            state.dropped.seq = Some(kept.seq);
        }
    }

    fn notify_readers(&self) {
        self.readable.notify_all();
        self.changed.notify_waiters();
    }
}

impl State {
    fn add(&mut self, event: Arc<Event>) {
        self.last_seq += 1;
        self.events.push_back(Kept {
            seq: self.last_seq,
            event,
        });
    }

    fn remove_first(&mut self) -> Option<Kept> {
        let kept = self.events.pop_front()?;
        if !kept.event.is_last() {
            self.bytes -= kept.event.payload_bytes();
        }
        Some(kept)
    }

    /// Takes the attachment out, where it is that of `reader`; to be put back or dropped.
    fn attached(&mut self, reader: u64) -> Option<Attached> {
        self.reader.take_if(|attached| attached.reader == reader)
    }

    /// Gives up what is kept. To a reader that waits for more an error stands for it, under the number of the last event.
    fn forget(&mut self) {
        self.events = VecDeque::new();
        self.bytes = 0;
        self.dropped.seq = None;
        self.log.clear();
        self.outcome = None;
        let last_seq = self.last_seq;
        let Some(reader) = self.reader.as_mut() else {
            return;
        };
        if self.ended && reader.sent_seq < last_seq {
            reader.unacknowledged_bytes = 0;
            let error = Error::new(
                ErrorCode::UnknownProcess,
                "the process has ended, and what was left of its events was given up for those of others; take and acknowledge events faster",
            );
            self.events.push_back(Kept {
                seq: last_seq,
                event: Arc::new(Event::Error(error.into())),
            });
        }
    }

    /// Bytes of the events, the log and the last event.
    fn held_bytes(&self) -> usize {
        let queued = self.events.back().map(|kept| &kept.event);
        let last = self
            .outcome
            .as_ref()
            .or(queued.filter(|event| event.is_last()));
        self.kept_bytes() + self.log.len() + last.map_or(0, |event| event.payload_bytes())
    }

    /// Gives back what is held no more.
    fn settle(&mut self) {
        let held_bytes = self.held_bytes();
        self.holding.shrink(held_bytes);
    }

    fn kept_bytes(&self) -> usize {
        self.bytes + EVENT_BYTES * self.events.len()
    }
}

impl Dropped {
    fn message(&self) -> Event {
        Event::Message(format!(
            "{} events ({} bytes) were dropped while nobody was attached",
            self.n_events, self.n_bytes
        ))
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
