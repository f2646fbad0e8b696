//! What goes out to one client: answers and pings ahead of events, each write limited in time as long as the client takes nothing of it.
//!
//! Answers that wait are bounded in bytes, those of what they pin among them: whoever wants to add one waits for room first. Pongs have one
//! place, for the newest: older ones need no answer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use pie_host::{Charge, Event};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};
use tungstenite::protocol::frame::coding::CloseCode;

use crate::ServerConfig;
use crate::protocol::body::Body;
use crate::protocol::outgoing;
use crate::shared::lock;
use crate::wire::MessageWriter;

/// Answers that may wait.
const WAITING_ANSWERS: usize = 128;
/// Bytes of answers that may wait, and a longer one alone.
const ANSWER_BYTES: u32 = 1 << 20;
/// What an answer counts at least.
const LEAST_BYTES: u32 = 256;
/// Events that may wait; those behind them stay in the queues of their processes.
const WAITING_EVENTS: usize = 16;

/// How a connection is closed.
#[derive(Debug)]
pub(crate) struct Goodbye {
    pub(crate) code: CloseCode,
    pub(crate) reason: &'static str,
    /// How long what waits may take to go out; none: as long as the client takes some of it.
    pub(crate) time: Option<Duration>,
}

impl Goodbye {
    pub(crate) fn new(code: CloseCode, reason: &'static str) -> Self {
        Self {
            code,
            reason,
            time: None,
        }
    }
}

/// An event on its way to the client.
pub(crate) struct Outgoing {
    pub(crate) pid: u64,
    pub(crate) seq: u64,
    pub(crate) event: Arc<Event>,
    /// False when the client has detached: the event is not sent.
    pub(crate) wanted: Arc<AtomicBool>,
}

/// Room for an answer among those that wait.
#[derive(Debug)]
pub(crate) struct Room {
    _bytes: OwnedSemaphorePermit,
}

/// An answer on its way to the client.
pub(crate) struct Answer {
    pub(crate) body: Body,
    /// What it holds is charged until it is written.
    pub(crate) charge: Option<Charge>,
    /// Called when only its last piece is not written: its request is over.
    pub(crate) over: Box<dyn FnOnce() + Send>,
}

/// The way to the client.
#[derive(Clone)]
pub(crate) struct Outbox {
    answers: mpsc::Sender<(Answer, Room)>,
    room: Arc<Semaphore>,
    events: mpsc::Sender<Outgoing>,
    pong: Arc<Pong>,
    goodbye: Arc<Notify>,
    /// What the goodbye says.
    said: Arc<OnceLock<(CloseCode, &'static str)>>,
}

/// The pong that waits.
#[derive(Default)]
struct Pong {
    payload: Mutex<Option<Vec<u8>>>,
    due: Notify,
}

impl Outbox {
    /// Waits for room for an answer that holds so many bytes; none when the client has gone.
    pub(crate) async fn room(&self, n_bytes: usize) -> Option<Room> {
        let n_bytes = u32::try_from(n_bytes).unwrap_or(u32::MAX);
        let n_bytes = n_bytes.clamp(LEAST_BYTES, ANSWER_BYTES);
        let room = self.room.clone().acquire_many_owned(n_bytes);
        tokio::select! {
            room = room => Some(Room { _bytes: room.ok()? }),
            () = self.closed() => None,
        }
    }

    /// Sends an answer, ahead of all events. Waits while too many wait; when the client has gone it is dropped.
    pub(crate) async fn answer(&self, answer: Answer, room: Room) {
        drop(self.answers.send((answer, room)).await);
    }

    /// Sends what answers no request.
    pub(crate) async fn notice(&self, body: Body) {
        if let Some(room) = self.room(body.held_bytes()).await {
            let answer = Answer {
                body,
                charge: None,
                over: Box::new(|| ()),
            };
            self.answer(answer, room).await;
        }
    }

    /// Answers a ping, unless a newer one comes before.
    pub(crate) fn pong(&self, payload: Vec<u8>) {
        *lock(&self.pong.payload) = Some(payload);
        self.pong.due.notify_one();
    }

    /// Sends an event; false when the client has gone.
    pub(crate) async fn event(&self, event: Outgoing) -> bool {
        self.events.send(event).await.is_ok()
    }

    /// Waits until the writer has taken every event that waits; at once when the client has gone.
    pub(crate) async fn events_taken(&self) {
        drop(self.events.reserve_many(WAITING_EVENTS).await);
    }

    /// Waits until the writer has given up on the client.
    pub(crate) async fn closed(&self) {
        self.answers.closed().await;
    }

    /// Ends the writing: answers that wait go out, then the goodbye.
    pub(crate) fn close(&self, code: CloseCode, reason: &'static str) {
        // The first reason stands.
        self.said.get_or_init(|| (code, reason));
        self.goodbye.notify_one();
    }
}

/// Starts the writer of a connection.
pub(crate) fn start(wire: MessageWriter, config: &ServerConfig) -> (Outbox, JoinHandle<()>) {
    let (answers, answers_receiver) = mpsc::channel(WAITING_ANSWERS);
    let (events, events_receiver) = mpsc::channel(WAITING_EVENTS);
    let outbox = Outbox {
        answers,
        room: Arc::new(Semaphore::new(ANSWER_BYTES as usize)),
        events,
        pong: Arc::default(),
        goodbye: Arc::default(),
        said: Arc::default(),
    };
    let writer = Writer {
        wire,
        answers: answers_receiver,
        events: events_receiver,
        pong: outbox.pong.clone(),
        goodbye: outbox.goodbye.clone(),
        said: outbox.said.clone(),
        ping_interval: config.ping_interval,
    };
    (outbox, tokio::spawn(writer.run()))
}

struct Writer {
    wire: MessageWriter,
    answers: mpsc::Receiver<(Answer, Room)>,
    events: mpsc::Receiver<Outgoing>,
    pong: Arc<Pong>,
    goodbye: Arc<Notify>,
    /// What the goodbye says.
    said: Arc<OnceLock<(CloseCode, &'static str)>>,
    ping_interval: Duration,
}

/// What goes out next.
enum Next {
    Answer(Answer, Room),
    Event(Outgoing),
    Ping,
    Pong,
    Goodbye,
}

impl Writer {
    async fn run(mut self) {
        let mut pings = interval_at(Instant::now() + self.ping_interval, self.ping_interval);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let next = tokio::select! {
                biased;
                () = self.pong.due.notified() => Next::Pong,
                Some((answer, room)) = self.answers.recv() => Next::Answer(answer, room),
                _ = pings.tick() => Next::Ping,
                () = self.goodbye.notified() => Next::Goodbye,
                Some(event) = self.events.recv() => Next::Event(event),
            };
            let written = match next {
                Next::Answer(answer, room) => self.answer(answer, room).await,
                Next::Event(event) if !event.wanted.load(Ordering::Acquire) => true,
                Next::Event(Outgoing {
                    pid, seq, event, ..
                }) => {
                    let body = outgoing::event(pid, seq, &event);
                    self.wire.send(&body, || ()).await.is_ok()
                }
                Next::Ping => self.wire.ping().await.is_ok(),
                Next::Pong => {
                    let payload = lock(&self.pong.payload).take().unwrap_or_default();
                    self.wire.pong(&payload).await.is_ok()
                }
                Next::Goodbye => break,
            };
            if !written {
                return;
            }
        }
        self.answers.close();
        while let Some((answer, room)) = self.answers.recv().await {
            if !self.answer(answer, room).await {
                return;
            }
        }
        if let Some((code, reason)) = self.said.get().copied() {
            // The close frame of a client that is gone need not arrive.
            drop(self.wire.close(code, reason).await);
        }
    }

    /// Writes an answer; false when the client is gone, or took nothing of it for as long as it may be silent.
    async fn answer(&mut self, answer: Answer, room: Room) -> bool {
        let Answer { body, charge, over } = answer;
        let written = self.wire.send(&body, over).await;
        drop((body, charge, room));
        written.is_ok()
    }
}

/// Waits for the end of a writer, which is cut off where it takes longer than `time`.
pub(crate) async fn finish(writing: JoinHandle<()>, time: Duration) {
    let writer = writing.abort_handle();
    if timeout(time, writing).await.is_err() {
        writer.abort();
    }
}
