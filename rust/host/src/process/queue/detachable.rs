//! A queue whose readers come and go, one at a time.
//!
//! While a reader is attached, a writer without room waits. While none is, nothing waits: the oldest output is dropped
//! and counted, and a message that stands for it comes first when somebody reads. An event stays until it is
//! acknowledged.

use std::sync::{Arc, Mutex};

use pie_core::ErrorCode;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use super::super::log::{LogRing, LogText};
use super::super::serving::Observer;
use super::line::{Line, Numbered, Queued};
use super::{Capacity, EventQueue};
use crate::Error;
use crate::event::{Event, EventKind};
use crate::stepped_charge::SteppedCharge;
use crate::sync::lock;

/// How a queue behaves whose reader may come and go.
pub(crate) struct Retention {
    pub(crate) pid: u64,
    /// Bytes of events kept while nobody is attached.
    pub(crate) kept_bytes: usize,
    /// Bytes of output kept as a log.
    pub(crate) log_bytes: usize,
    pub(crate) observer: Arc<dyn Observer>,
}

/// The queue between a process and the readers of its events.
pub(crate) struct DetachableQueue {
    capacity: Capacity,
    retention: Retention,
    state: Mutex<State>,
    changed: Notify,
    writable: Notify,
}

#[derive(Debug)]
struct State {
    line: Line,
    reader: Option<Attached>,
    next_reader: u64,
    dropped: Dropped,
    log: LogRing,
    /// The last event, which can be asked for also after it was read; none while there is none.
    outcome: Option<Arc<Event>>,
    /// What was kept has been given up. A last event that still comes is given up too.
    forgotten: bool,
}

#[derive(Debug, Default)]
struct Dropped {
    n_events: u64,
    n_bytes: u64,
    /// The number of the newest dropped event. The message about all of them has this number. None: that was
    /// acknowledged.
    seq: Option<u64>,
}

#[derive(Debug)]
struct Attached {
    reader: u64,
    window_bytes: usize,
    sent_seq: u64,
    unacknowledged_bytes: usize,
}

impl std::fmt::Debug for DetachableQueue {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("DetachableQueue")
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

/// What an attached reader gets next.
#[derive(Debug)]
pub(crate) enum Next {
    Event(u64, Arc<Event>),
    /// Nothing so far, or the window is full.
    Wait,
    /// Every event was sent, or the reader is no longer attached.
    Over,
}

/// Why a reader is not attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotAttached {
    /// Another one is.
    Taken,
    /// Every event was taken, the last one among them.
    Over,
    /// The reader has, as it says, an event that there is not yet.
    Beyond {
        /// The number of the last event.
        last_seq: u64,
    },
}

impl DetachableQueue {
    /// An empty one, to which nobody is attached.
    pub(crate) fn new(capacity: Capacity, holding: SteppedCharge, retention: Retention) -> Self {
        Self {
            capacity,
            state: Mutex::new(State {
                line: Line::new(holding),
                reader: None,
                next_reader: 0,
                dropped: Dropped::default(),
                log: LogRing::new(retention.log_bytes),
                outcome: None,
                forgotten: false,
            }),
            retention,
            changed: Notify::new(),
            writable: Notify::new(),
        }
    }

    /// What is kept of a process that has ended, or is about to, is given up. A reader that is attached and was not
    /// sent all gets an error in the place of what is missing.
    pub(crate) fn forget(&self) {
        let mut state = lock(&self.state);
        state.forgotten = true;
        state.forget();
        state.settle();
        drop(state);
        self.changed.notify_waiters();
        self.writable.notify_waiters();
    }

    /// Attaches a reader that gets at most `window_bytes` of payload (one event may go beyond) ahead of what it
    /// acknowledged. It has the events up to `after_seq` already. Returns its number and that of the first event that
    /// waits, which it may have too.
    ///
    /// # Errors
    /// When another reader is attached, when there is nothing to read and never will be, and when `after_seq` is beyond
    /// the last event: such a reader would pass over whatever comes.
    pub(crate) fn attach(
        &self,
        window_bytes: usize,
        after_seq: u64,
    ) -> Result<(u64, u64), NotAttached> {
        let mut state = lock(&self.state);
        if state.reader.is_some() {
            return Err(NotAttached::Taken);
        }
        if state.line.is_over() {
            return Err(NotAttached::Over);
        }
        let last_seq = state.line.last_seq;
        if after_seq > last_seq {
            return Err(NotAttached::Beyond { last_seq });
        }
        if state.line.ended && after_seq == last_seq && after_seq > 0 {
            return Err(NotAttached::Over);
        }
        let reader = state.next_reader;
        state.next_reader += 1;
        let first_seq = state
            .dropped
            .seq
            .or_else(|| state.line.events.front().map(|kept| kept.seq))
            .unwrap_or(state.line.last_seq + 1);
        state.reader = Some(Attached {
            reader,
            window_bytes,
            sent_seq: first_seq - 1,
            unacknowledged_bytes: 0,
        });
        Ok((reader, first_seq))
    }

    /// Detaches the reader. What it did not acknowledge stays for the next one, within the bounds of what is kept.
    pub(crate) fn detach(&self, reader: u64) {
        let mut state = lock(&self.state);
        if state.attached(reader).is_none() {
            return;
        }
        state.reader = None;
        self.drop_oldest(&mut state);
        state.settle();
        drop(state);
        self.changed.notify_waiters();
        self.writable.notify_waiters();
    }

    /// True while a reader is attached.
    pub(crate) fn is_attached(&self) -> bool {
        lock(&self.state).reader.is_some()
    }

    /// True while a reader is attached that has not acknowledged the last event.
    pub(crate) fn is_being_read(&self) -> bool {
        let state = lock(&self.state);
        state.reader.is_some() && !(state.line.is_over())
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
            return Next::Event(seq, Arc::new(state.dropped.notice()));
        }
        let at = state
            .line
            .events
            .partition_point(|kept| kept.seq <= attached.sent_seq);
        match state.line.events.get(at) {
            Some(_) if attached.unacknowledged_bytes >= attached.window_bytes => Next::Wait,
            Some(kept) => {
                attached.sent_seq = kept.seq;
                attached.unacknowledged_bytes += kept.event.payload_bytes();
                Next::Event(kept.seq, kept.event.clone())
            }
            None if state.line.ended => Next::Over,
            None => Next::Wait,
        }
    }

    /// The reader has taken everything up to `seq`: those events are forgotten.
    pub(crate) fn acknowledge(&self, reader: u64, seq: u64) {
        let mut state = lock(&self.state);
        let Some(mut attached) = state.attached(reader) else {
            return;
        };
        while state
            .line
            .events
            .front()
            .is_some_and(|kept| kept.seq <= seq)
        {
            let Some(kept) = state.line.remove_first() else {
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
        attached.sent_seq = attached.sent_seq.max(seq.min(state.line.last_seq));
        state.reader = Some(attached);
        state.settle();
        drop(state);
        self.changed.notify_waiters();
        self.writable.notify_waiters();
    }

    /// True when the reader has acknowledged the last event, or is no longer attached.
    pub(crate) fn is_over(&self, reader: u64) -> bool {
        let state = lock(&self.state);
        let attached = state.reader.as_ref();
        attached.is_none_or(|attached| attached.reader != reader) || (state.line.is_over())
    }

    /// Becomes ready when something changed after the call for a reader or for the log.
    pub(crate) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    /// The log from position `after` on, at most its last `tail_bytes`.
    pub(crate) fn log(&self, after: u64, tail_bytes: usize) -> LogText {
        let state = lock(&self.state);
        LogText {
            ended: state.line.ended,
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
        while state.reader.is_none() && state.line.kept_bytes() > self.retention.kept_bytes {
            if state
                .line
                .events
                .front()
                .is_none_or(|kept| kept.event.is_last())
            {
                return;
            }
            let Some(kept) = state.line.remove_first() else {
                return;
            };
            state.dropped.n_events += 1;
            state.dropped.n_bytes += kept.event.payload_bytes() as u64;
            state.dropped.seq = Some(kept.seq);
        }
    }
}

impl EventQueue for DetachableQueue {
    fn has_room(&self, _: EventKind) -> bool {
        let state = lock(&self.state);
        state.line.ended || state.reader.is_none() || state.line.has_room(self.capacity)
    }

    fn room_made(&self) -> Notified<'_> {
        self.writable.notified()
    }

    fn push(&self, event: Event) -> Result<(), Error> {
        if let Event::Stderr(text) = &event {
            self.retention.observer.stderr(self.retention.pid, text);
        }
        let mut state = lock(&self.state);
        let Some(event) = state.add(event)? else {
            return Ok(());
        };
        if let Event::Stdout(text) | Event::Sent(text, _) | Event::Stderr(text) = &*event {
            state.log.push(text);
        }
        self.drop_oldest(&mut state);
        state.settle();
        drop(state);
        self.changed.notify_waiters();
        Ok(())
    }

    fn finish(&self, event: Arc<Event>) {
        let mut state = lock(&self.state);
        let Some(event) = state.add_last(event) else {
            return;
        };
        state.outcome = Some(event);
        if state.forgotten {
            state.forget();
        }
        state.settle();
        drop(state);
        self.changed.notify_waiters();
        self.writable.notify_waiters();
    }
}

impl State {
    /// Takes the attachment out, where it is that of `reader`; to be put back or dropped.
    fn attached(&mut self, reader: u64) -> Option<Attached> {
        self.reader.take_if(|attached| attached.reader == reader)
    }

    /// Gives up what is kept. A reader that waits for more gets an error in its place, under the number of the last
    /// event.
    fn forget(&mut self) {
        self.line.clear();
        self.dropped.seq = None;
        self.log.clear();
        self.outcome = None;
        let last_seq = self.line.last_seq;
        let Some(reader) = self.reader.as_mut() else {
            return;
        };
        if self.line.ended && reader.sent_seq < last_seq {
            reader.unacknowledged_bytes = 0;
            let error = Error::new(
                ErrorCode::UnknownProcess,
                "the process has ended, and what was left of its events was given up for those of others; take and acknowledge events faster",
            );
            self.line.events.push_back(Numbered {
                seq: last_seq,
                event: Arc::new(Event::Error(error.into())),
            });
        }
    }
}

impl Queued for State {
    fn line(&mut self) -> &mut Line {
        &mut self.line
    }

    /// Bytes of the events, the log and the last event.
    fn held_bytes(&self) -> usize {
        let last = self.outcome.as_ref().or(self.line.last());
        let last_bytes = last.map_or(0, |event| event.payload_bytes());
        self.line.kept_bytes() + self.log.len() + last_bytes
    }
}

impl Dropped {
    fn notice(&self) -> Event {
        Event::Notice(format!(
            "{} events ({} bytes) were dropped while nobody was attached",
            self.n_events, self.n_bytes
        ))
    }
}
