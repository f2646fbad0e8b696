//! What is sent to one client: answers and pings ahead of events, each write limited in time as long as the client
//! takes nothing of it.
//!
//! Answers that wait are bounded in bytes, those of what they pin among them: whoever wants to add one waits for room
//! first. Pongs have one place, for the newest: older ones need no answer. Behind a pong, one of those that wait is
//! sent.

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
use crate::sync::lock;
use crate::threads::Part;
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
pub(crate) fn start(
    wire: MessageWriter,
    config: &ServerConfig,
    part: &Arc<Part>,
) -> (Outbox, JoinHandle<()>) {
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
    (outbox, tokio::spawn(part.doing(writer.run())))
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

/// What is sent next.
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
        let mut was_pong = false;
        loop {
            // A client that pings without end gets its answers and events all the same.
            let passed_over = if was_pong { self.passed_over() } else { None };
            let next = match passed_over {
                Some(next) => next,
                None => tokio::select! {
                    biased;
                    () = self.pong.due.notified() => Next::Pong,
                    Some((answer, room)) = self.answers.recv() => Next::Answer(answer, room),
                    _ = pings.tick() => Next::Ping,
                    () = self.goodbye.notified() => Next::Goodbye,
                    Some(event) = self.events.recv() => Next::Event(event),
                },
            };
            was_pong = matches!(next, Next::Pong);
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

    /// What waits while a pong is sent.
    fn passed_over(&mut self) -> Option<Next> {
        if let Ok((answer, room)) = self.answers.try_recv() {
            return Some(Next::Answer(answer, room));
        }
        self.events.try_recv().ok().map(Next::Event)
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

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use pie_host::Budget;
    use tokio::io::AsyncReadExt;
    use tokio::net::TcpStream;

    use super::*;
    use crate::threads::Threads;
    use crate::wire::tests::connected;

    /// Pongs that may come before anything else: the buffers of the system hold some of them.
    const MANY: usize = 1_000_000;

    /// Pongs that a client reads before its first text.
    async fn n_pongs(client: &mut TcpStream) -> usize {
        let mut n_pongs = 0;
        loop {
            let mut head = [0; 2];
            client.read_exact(&mut head).await.unwrap();
            let mut payload = vec![0; usize::from(head[1])];
            client.read_exact(&mut payload).await.unwrap();
            match head[0] {
                0x8a => n_pongs += 1,
                0x81 => return n_pongs,
                other => panic!("a frame that begins with {other:x}"),
            }
            assert!(n_pongs < MANY, "only pongs come");
        }
    }

    #[test]
    fn a_client_that_pings_without_end_gets_its_answers_and_events() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let pinging = Arc::new(AtomicBool::new(true));
        runtime.block_on(async {
            let budget = Budget::new(64 << 20, None);
            let (mut client, wire) = connected(&budget, 1, Duration::from_secs(60)).await;
            let mut writer = wire.writer;
            writer.set_patience(Duration::from_secs(60));
            let config = ServerConfig::new(PathBuf::new());
            let (outbox, writing) = start(writer, &config, &Threads::new().part("ada"));
            let (pinger, is_pinging) = (outbox.clone(), pinging.clone());
            let pinger = std::thread::spawn(move || {
                while is_pinging.load(Ordering::Relaxed) {
                    pinger.pong(Vec::new());
                }
            });
            for n in 0..20 {
                if n % 2 == 0 {
                    outbox.notice(outgoing::draining()).await;
                } else {
                    let event = Outgoing {
                        pid: 1,
                        seq: n,
                        event: Arc::new(Event::Stdout("x".to_owned())),
                        wanted: Arc::new(AtomicBool::new(true)),
                    };
                    outbox.event(event).await;
                }
                n_pongs(&mut client).await;
            }
            pinging.store(false, Ordering::Relaxed);
            pinger.join().unwrap();
            outbox.close(CloseCode::Normal, "");
            drop(client);
            finish(writing, Duration::from_secs(10)).await;
        });
    }
}
