//! What goes out to one client: answers and pings ahead of events, each write limited in time as long as
//! the client takes nothing of it, everything bounded.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::SinkExt;
use futures_util::stream::SplitSink;
use pie_host::Event;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Bytes, Message};

use crate::ServerConfig;
use crate::handshake::{Socket, close_frame};
use crate::protocol::outgoing;
use crate::transport::Taken;

/// Control messages that may wait.
const CONTROL_MESSAGES: usize = 128;
/// Events that may wait; those behind them stay in the queues of their processes.
const WAITING_EVENTS: usize = 16;

/// How a connection is closed.
#[derive(Debug)]
pub(crate) struct Goodbye {
    pub(crate) code: CloseCode,
    pub(crate) reason: &'static str,
}

impl Goodbye {
    pub(crate) fn new(code: CloseCode, reason: &'static str) -> Self {
        Self { code, reason }
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

/// The way to the client.
#[derive(Clone)]
pub(crate) struct Outbox {
    control: mpsc::Sender<Message>,
    events: mpsc::Sender<Outgoing>,
    goodbye: Arc<Notify>,
    /// What the goodbye says.
    said: Arc<OnceLock<(CloseCode, &'static str)>>,
}

impl Outbox {
    /// Sends an answer, ahead of all events. Waits while too many wait; when the client has gone it is dropped.
    pub(crate) async fn control(&self, message: Message) {
        drop(self.control.send(message).await);
    }

    /// Waits for the place of one message ahead of all events; none when the client has gone.
    pub(crate) async fn place(&self) -> Option<mpsc::Permit<'_, Message>> {
        self.control.reserve().await.ok()
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
        self.control.closed().await;
    }

    /// Ends the writing: control messages that wait go out, then the goodbye.
    pub(crate) fn close(&self, code: CloseCode, reason: &'static str) {
        // The first reason stands.
        self.said.get_or_init(|| (code, reason));
        self.goodbye.notify_one();
    }
}

/// Starts the writer of a connection.
pub(crate) fn start(
    sink: SplitSink<Socket, Message>,
    taken: Taken,
    config: &ServerConfig,
) -> (Outbox, JoinHandle<()>) {
    let (control, control_receiver) = mpsc::channel(CONTROL_MESSAGES);
    let (events, events_receiver) = mpsc::channel(WAITING_EVENTS);
    let outbox = Outbox {
        control,
        events,
        goodbye: Arc::default(),
        said: Arc::default(),
    };
    let writer = Writer {
        sink,
        taken,
        control: control_receiver,
        events: events_receiver,
        goodbye: outbox.goodbye.clone(),
        said: outbox.said.clone(),
        ping_interval: config.ping_interval,
        write_timeout: config.idle_timeout,
    };
    (outbox, tokio::spawn(writer.run()))
}

struct Writer {
    sink: SplitSink<Socket, Message>,
    taken: Taken,
    control: mpsc::Receiver<Message>,
    events: mpsc::Receiver<Outgoing>,
    goodbye: Arc<Notify>,
    /// What the goodbye says.
    said: Arc<OnceLock<(CloseCode, &'static str)>>,
    ping_interval: Duration,
    write_timeout: Duration,
}

impl Writer {
    async fn run(mut self) {
        let mut pings = interval_at(Instant::now() + self.ping_interval, self.ping_interval);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let message = tokio::select! {
                biased;
                Some(message) = self.control.recv() => message,
                _ = pings.tick() => Message::Ping(Bytes::new()),
                () = self.goodbye.notified() => break,
                Some(event) = self.events.recv() => {
                    if !event.wanted.load(Ordering::Acquire) {
                        continue;
                    }
                    outgoing::event(event.pid, event.seq, &event.event)
                }
            };
            if !self.write(message).await {
                return;
            }
        }
        self.control.close();
        while let Some(message) = self.control.recv().await {
            if !self.write(message).await {
                return;
            }
        }
        if let Some((code, reason)) = self.said.get().copied() {
            self.write(Message::Close(Some(close_frame(code, reason))))
                .await;
        }
        // The close frame of a client that is gone need not arrive.
        drop(timeout(self.write_timeout, self.sink.close()).await);
    }

    /// Writes a message; false when the client is gone, or took nothing of it for as long as it may be silent.
    async fn write(&mut self, message: Message) -> bool {
        let mut sending = self.sink.send(message);
        loop {
            let n_taken = self.taken.count();
            match timeout(self.write_timeout, &mut sending).await {
                Ok(sent) => return sent.is_ok(),
                Err(_) if self.taken.count() != n_taken => {}
                Err(_) => return false,
            }
        }
    }
}
