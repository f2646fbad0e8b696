//! The events of one process on their way to whoever reads them: a queue that the window of the process bounds.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use crate::error::Error;
use crate::error_codes::ErrorCode;
use crate::event::{Event, Outcome};
use crate::sync::lock;

/// A server that does not keep to the window is cut off after this many times as much.
const WINDOWS_TOLERATED: u64 = 4;
/// The most that `limits.queue_events` of a server may be, and as many again: events without a text count nothing in a
/// window.
const MAX_WAITING: usize = 1 << 21;

/// Told of what was taken.
pub(crate) trait Acknowledged: Send + Sync {
    /// Events of a process up to `seq` were taken; `now` where the server waits for that.
    fn acknowledge(&self, pid: u64, seq: u64, now: bool);
}

/// Events that arrived and were not taken. The connection fills it and never waits; what is acknowledged lets the
/// server send more.
pub(crate) struct Stream {
    pid: u64,
    window_bytes: u64,
    acknowledged: Arc<dyn Acknowledged>,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Event>,
    waiting_bytes: u64,
    taken_bytes: u64,
    seq: u64,
    /// Why nothing more comes.
    end: Option<Error>,
    /// The last event, once it was taken.
    outcome: Option<Outcome>,
    n_readers: usize,
    /// How many readers have begun; a reader's number is this count at its beginning.
    last_reader: u64,
    /// The one that has begun to read, and has not ended: it gets every event.
    reading: Option<u64>,
}

impl Stream {
    /// Events up to `after_seq` are passed over.
    pub(crate) fn new(
        pid: u64,
        window_bytes: u64,
        after_seq: u64,
        acknowledged: Arc<dyn Acknowledged>,
    ) -> Self {
        let state = State {
            seq: after_seq,
            ..State::default()
        };
        Self {
            pid,
            window_bytes,
            acknowledged,
            state: Mutex::new(state),
            changed: Notify::new(),
        }
    }

    pub(crate) fn pid(&self) -> u64 {
        self.pid
    }

    /// Takes an event that arrived.
    ///
    /// # Errors
    /// `protocol-error` from a server that sends far more than was acknowledged.
    pub(crate) fn push(&self, event: Event) -> Result<(), Error> {
        let mut state = lock(&self.state);
        if state.end.is_some() || event.seq() <= state.seq {
            return Ok(());
        }
        state.seq = event.seq();
        let most_bytes = self.window_bytes.saturating_mul(WINDOWS_TOLERATED);
        if state.waiting_bytes > most_bytes || state.waiting.len() >= MAX_WAITING {
            return Err(Error::new(
                ErrorCode::ProtocolError,
                format!(
                    "the server sent {} events of process {} with {} bytes before they were read, beyond its window of {} bytes",
                    state.waiting.len(),
                    self.pid,
                    state.waiting_bytes,
                    self.window_bytes
                ),
            ));
        }
        state.waiting_bytes += bytes(&event);
        state.waiting.push_back(event);
        drop(state);
        self.changed.notify_waiters();
        Ok(())
    }

    /// Ends the stream: a reader gets what has arrived, then the error.
    pub(crate) fn fail(&self, error: Error) {
        lock(&self.state).end.get_or_insert(error);
        self.changed.notify_waiters();
    }

    /// Ends the stream at once: what has arrived and was not read stays with the server.
    pub(crate) fn abandon(&self, error: Error) {
        let mut state = lock(&self.state);
        state.waiting.clear();
        state.waiting_bytes = 0;
        drop(state);
        self.fail(error);
    }

    /// The next event; none after the last. A call that is given up has taken nothing.
    ///
    /// # Errors
    /// `connection-failed` when the connection broke, `session-closed` after `detach`.
    pub(crate) async fn take(&self) -> Result<Option<Event>, Error> {
        loop {
            // It hears of what happens from here on.
            let changed = self.changed.notified();
            if let Some(event) = self.take_now()? {
                return Ok(Some(event));
            }
            if self.outcome().is_some() {
                return Ok(None);
            }
            changed.await;
        }
    }

    /// Waits for the end, and passes over events as long as nobody reads them.
    ///
    /// # Errors
    /// Those of [`Stream::take`].
    pub(crate) async fn ended(&self) -> Result<Outcome, Error> {
        loop {
            let changed = self.changed.notified();
            if let Some(outcome) = self.outcome() {
                return Ok(outcome);
            }
            if self.is_left_to_readers() || self.take_now()?.is_none() {
                changed.await;
            }
        }
    }

    /// Whether somebody reads what has arrived, and will arrive.
    fn is_left_to_readers(&self) -> bool {
        let state = lock(&self.state);
        let is_over = state.waiting.is_empty() && state.end.is_some();
        state.n_readers > 0 && !is_over
    }

    /// Somebody is about to read, by the number that is returned.
    pub(crate) fn begin_reading(&self) -> u64 {
        let mut state = lock(&self.state);
        state.n_readers += 1;
        state.last_reader += 1;
        state.last_reader
    }

    /// Somebody reads no more.
    pub(crate) fn end_reading(&self, reader: u64) {
        let mut state = lock(&self.state);
        state.n_readers -= 1;
        if state.reading == Some(reader) {
            state.reading = None;
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// The next event for a reader; none after the last. Of several the first gets all of them, until it has ended. A
    /// call that is given up has taken nothing.
    ///
    /// # Errors
    /// Those of [`Stream::take`], and `future-taken` while another reader has begun.
    pub(crate) async fn read(&self, reader: u64) -> Result<Option<Event>, Error> {
        self.claim(reader)?;
        self.take().await
    }

    /// Makes a reader the one that gets the events. After the last event every reader may ask.
    fn claim(&self, reader: u64) -> Result<(), Error> {
        let mut state = lock(&self.state);
        let is_over = state.waiting.is_empty() && state.end.is_some();
        if state.outcome.is_some() || is_over {
            return Ok(());
        }
        if *state.reading.get_or_insert(reader) == reader {
            return Ok(());
        }
        let message = format!(
            "the events of process {} are read already, by another loop, which gets all of them; read them in one place",
            self.pid
        );
        Err(Error::new(ErrorCode::FutureTaken, message))
    }

    fn outcome(&self) -> Option<Outcome> {
        lock(&self.state).outcome.clone()
    }

    fn take_now(&self) -> Result<Option<Event>, Error> {
        let mut state = lock(&self.state);
        let Some(event) = state.waiting.pop_front() else {
            return match &state.end {
                Some(error) if state.outcome.is_none() => Err(error.clone()),
                _ => Ok(None),
            };
        };
        state.waiting_bytes -= bytes(&event);
        state.taken_bytes += bytes(&event);
        if let Some(outcome) = event.outcome() {
            state.outcome = Some(outcome);
            self.changed.notify_waiters();
        }
        let is_urgent = state.outcome.is_some() || state.taken_bytes >= self.window_bytes / 4;
        if is_urgent {
            state.taken_bytes = 0;
        }
        drop(state);
        self.acknowledged
            .acknowledge(self.pid, event.seq(), is_urgent);
        Ok(Some(event))
    }
}

fn bytes(event: &Event) -> u64 {
    event.payload_bytes() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Returned;

    #[derive(Default)]
    struct Acks(Mutex<Vec<(u64, bool)>>);

    impl Acknowledged for Acks {
        fn acknowledge(&self, _: u64, seq: u64, now: bool) {
            lock(&self.0).push((seq, now));
        }
    }

    fn stream(window_bytes: u64, after_seq: u64) -> (Stream, Arc<Acks>) {
        let acks = Arc::new(Acks::default());
        (Stream::new(7, window_bytes, after_seq, acks.clone()), acks)
    }

    fn stdout(seq: u64, n_bytes: usize) -> Event {
        Event::Stdout {
            text: "x".repeat(n_bytes),
            form: None,
            seq,
        }
    }

    fn end(seq: u64) -> Event {
        Event::Return(Returned {
            text: "1".to_owned(),
            seq,
        })
    }

    #[tokio::test]
    async fn events_come_once_and_in_order_and_none_after_the_last() {
        let (stream, acks) = stream(100, 1);
        for event in [stdout(1, 1), stdout(2, 1), stdout(2, 1), end(3)] {
            stream.push(event).unwrap();
        }
        stream.fail(Error::new(ErrorCode::ConnectionFailed, "broken"));
        assert_eq!(stream.take().await.unwrap(), Some(stdout(2, 1)));
        assert_eq!(stream.take().await.unwrap(), Some(end(3)));
        assert_eq!(stream.take().await.unwrap(), None);
        assert_eq!(*lock(&acks.0), [(2, false), (3, true)]);
        assert_eq!(stream.ended().await.unwrap(), end(3).outcome().unwrap());
    }

    #[tokio::test]
    async fn a_quarter_of_the_window_is_told_at_once() {
        let (stream, acks) = stream(100, 0);
        for seq in 1..=3 {
            stream.push(stdout(seq, 13)).unwrap();
            stream.take().await.unwrap();
        }
        assert_eq!(*lock(&acks.0), [(1, false), (2, true), (3, false)]);
    }

    #[tokio::test]
    async fn what_arrived_before_an_end_is_read_and_what_is_abandoned_is_not() {
        for (is_abandoned, n_read) in [(false, 1), (true, 0)] {
            let (stream, _) = stream(100, 0);
            stream.push(stdout(1, 1)).unwrap();
            let error = Error::new(ErrorCode::SessionClosed, "detached");
            if is_abandoned {
                stream.abandon(error.clone());
            } else {
                stream.fail(error.clone());
            }
            for _ in 0..n_read {
                assert!(stream.take().await.unwrap().is_some());
            }
            assert_eq!(stream.take().await.unwrap_err(), error);
            assert_eq!(stream.ended().await.unwrap_err(), error);
        }
    }

    #[test]
    fn a_server_far_beyond_the_window_is_an_error() {
        let (stream, _) = stream(10, 0);
        for seq in 1..=5 {
            stream.push(stdout(seq, 10)).unwrap();
        }
        assert_eq!(
            stream.push(stdout(6, 1)).unwrap_err().code(),
            "protocol-error"
        );
    }

    #[tokio::test]
    async fn an_end_passes_over_what_nobody_reads_and_leaves_the_rest_to_readers() {
        let (stream, acks) = stream(1000, 0);
        let stream = Arc::new(stream);
        stream.push(stdout(1, 1)).unwrap();
        let reader = stream.begin_reading();
        let waiting = tokio::spawn({
            let stream = stream.clone();
            async move { stream.ended().await }
        });
        tokio::task::yield_now().await;
        assert!(lock(&acks.0).is_empty());
        assert_eq!(stream.read(reader).await.unwrap(), Some(stdout(1, 1)));
        stream.end_reading(reader);
        stream.push(stdout(2, 1)).unwrap();
        stream.push(end(3)).unwrap();
        assert!(waiting.await.unwrap().is_ok());
        assert_eq!(lock(&acks.0).len(), 3);
    }

    #[tokio::test]
    async fn the_first_reader_gets_every_event_until_it_ends() {
        let (stream, _) = stream(1000, 0);
        for event in [stdout(1, 1), stdout(2, 1), stdout(3, 1), end(4)] {
            stream.push(event).unwrap();
        }
        let (older, first, last) = (
            stream.begin_reading(),
            stream.begin_reading(),
            stream.begin_reading(),
        );
        assert_eq!(stream.read(first).await.unwrap(), Some(stdout(1, 1)));
        let refused = stream.read(older).await.unwrap_err();
        assert_eq!(refused.code(), "future-taken");
        stream.end_reading(older);
        assert_eq!(stream.read(first).await.unwrap(), Some(stdout(2, 1)));
        stream.end_reading(first);
        assert_eq!(stream.read(last).await.unwrap(), Some(stdout(3, 1)));
        assert_eq!(stream.read(last).await.unwrap(), Some(end(4)));
        let after = stream.begin_reading();
        assert_eq!(stream.read(after).await.unwrap(), None);
    }
}
