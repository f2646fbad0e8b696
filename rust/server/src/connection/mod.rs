//! One client that has said hello: reads its messages, and ends all that it holds when it disconnects.

pub(crate) mod attachments;
pub(crate) mod links;
pub(crate) mod writer;

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use pie_host::{Error, ErrorCode};
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tungstenite::protocol::frame::coding::CloseCode;

use self::writer::{Goodbye, Outbox};
use crate::handshake::{Admitted, close_code};
use crate::processes::ConnectionId;
use crate::protocol::incoming::{self, Incoming};
use crate::protocol::outgoing;
use crate::requests::Session;
use crate::state::{Phase, ServerState};
use crate::wire::{Fault, Message, MessageReader, Taken, Wire};

/// How long it may take to send the events that are left when the server closes.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a client that has lost its place is told so.
const DISPLACED_TIME: Duration = Duration::from_secs(1);

/// Serves a client until it disconnects, breaks the protocol, loses its place, or the server closes.
pub(crate) async fn run(wire: Wire, admitted: Admitted, shared: Arc<ServerState>) {
    let Admitted {
        client,
        place,
        lost,
        charge,
    } = admitted;
    let id = ConnectionId(place.number());
    tracing::info!(
        connection = id.0,
        user = client.identity.user,
        role = client.identity.role.name(),
        key = client.identity.key,
        client = client.name,
        "connected"
    );
    let Wire { reader, writer } = wire;
    let part = place.user().part.clone();
    let taken = writer.taken();
    let (outbox, writing) = writer::start(writer, &shared.config, &part);
    let who = Arc::new(client.identity);
    let authority = shared.clone();
    let mut connection = Connection {
        reader,
        session: Session::new(id, who.clone(), &place, shared.clone(), outbox.clone()),
        outbox,
        taken,
        lost,
        shared,
    };
    let goodbye = tokio::select! {
        biased;
        () = authority.authority.gone(&who) => Goodbye::new(CloseCode::Policy, "the key is no longer good"),
        goodbye = part.doing(connection.read()) => goodbye,
    };
    let Connection {
        reader,
        mut session,
        outbox,
        shared,
        ..
    } = connection;
    session.end().await;
    outbox.close(goodbye.code, goodbye.reason);
    drop((session, outbox));
    // A client that reads what is left byte by byte does not get the rest.
    writer::finish(writing, goodbye.time.unwrap_or(shared.config.idle_timeout)).await;
    reader.linger().await;
    drop((place, charge));
    tracing::info!(connection = id.0, reason = goodbye.reason, "disconnected");
}

struct Connection {
    reader: MessageReader,
    session: Session,
    outbox: Outbox,
    taken: Taken,
    /// The place went to another client, or an operator has ended the connection.
    lost: oneshot::Receiver<()>,
    shared: Arc<ServerState>,
}

/// What the connection heard.
enum Heard {
    Message(Result<Message, Fault>),
    /// Nothing, for as long as a client may be silent.
    Nothing,
    /// The server has come further.
    Phase,
    /// An upload may have stopped.
    Uploads,
    /// The writer has given up.
    Unheard,
    /// The place went to another client.
    Displaced,
    /// An operator has ended the connection.
    Ended,
}

impl Connection {
    /// Reads until the connection is over; tells how to close it.
    async fn read(&mut self) -> Goodbye {
        let mut phase = self.shared.phase.subscribe();
        let mut told_draining = false;
        let idle_timeout = self.shared.config.idle_timeout;
        let mut idle_at = Instant::now() + idle_timeout;
        let mut n_taken = self.taken.count();
        loop {
            if !told_draining && *phase.borrow() >= Phase::Draining {
                told_draining = true;
                self.outbox.notice(outgoing::draining()).await;
            }
            let message = match self.hear(&mut phase, told_draining, idle_at).await {
                Heard::Message(Ok(Message::Close(code))) => return closed(code),
                Heard::Message(Ok(message)) => message,
                Heard::Message(Err(Fault::Refused(error))) => return self.refused(&error).await,
                Heard::Message(Err(Fault::Gone)) => {
                    return Goodbye::new(CloseCode::Normal, "gone");
                }
                // While a long message is sent, no ping is. A client that reads it is alive.
                Heard::Nothing if self.taken.count() != n_taken => {
                    n_taken = self.taken.count();
                    idle_at = Instant::now() + idle_timeout;
                    continue;
                }
                Heard::Nothing => {
                    return Goodbye::new(CloseCode::Normal, "nothing was heard for idle_timeout_s");
                }
                Heard::Phase if *phase.borrow() == Phase::Closing => {
                    // There is a time to read what is left. A client that does not read it in that time does not get
                    // it.
                    drop(timeout(FLUSH_TIMEOUT, self.flush()).await);
                    return Goodbye::new(CloseCode::Away, "the server ends");
                }
                Heard::Phase => continue,
                Heard::Uploads => {
                    if let Err(error) = self.session.end_stopped_uploads().await {
                        return self.refused(&error).await;
                    }
                    continue;
                }
                Heard::Unheard => {
                    return Goodbye::new(CloseCode::Normal, "the client takes nothing");
                }
                Heard::Displaced => return self.displaced().await,
                Heard::Ended => return self.ended().await,
            };
            let taken = tokio::select! {
                biased;
                taken = take(&mut self.session, &self.outbox, message) => taken,
                lost = &mut self.lost => return match lost {
                    Ok(()) => self.ended().await,
                    Err(_) => self.displaced().await,
                },
            };
            idle_at = Instant::now() + idle_timeout;
            if let Err(error) = taken {
                return self.refused(&error).await;
            }
        }
    }

    /// The next message, or what happens to the connection meanwhile. As long as its turn lasts, messages that are
    /// there already come first.
    async fn hear(
        &mut self,
        phase: &mut watch::Receiver<Phase>,
        told_draining: bool,
        idle_at: Instant,
    ) -> Heard {
        if let Some(message) = self.reader.next().now_or_never() {
            return Heard::Message(message);
        }
        let uploads_at = self.session.uploads_due();
        tokio::select! {
            biased;
            () = changed(phase, told_draining) => Heard::Phase,
            () = self.outbox.closed() => Heard::Unheard,
            lost = &mut self.lost => lost.map_or(Heard::Displaced, |()| Heard::Ended),
            () = until(uploads_at) => Heard::Uploads,
            message = timeout_at(idle_at, self.reader.next()) => {
                message.map_or(Heard::Nothing, Heard::Message)
            }
        }
    }

    /// Waits until the events of the attached processes are sent. Acknowledgements that come meanwhile move their
    /// windows.
    async fn flush(&mut self) {
        loop {
            tokio::select! {
                biased;
                () = self.session.flushed() => return,
                message = self.reader.next() => match message {
                    Ok(Message::Text(payload)) => {
                        if let Ok(Incoming::Ack(ack)) = payload.text().and_then(incoming::text_message) {
                            self.session.acknowledge(&ack);
                        }
                    }
                    Ok(_) => {}
                    Err(_) => return,
                },
            }
        }
    }

    /// Tells an error that ends the connection.
    async fn refused(&mut self, error: &Error) -> Goodbye {
        tracing::info!(%error, "refused a message");
        self.outbox.notice(outgoing::connection_error(error)).await;
        Goodbye::new(
            close_code(error, CloseCode::Protocol),
            "the protocol was broken",
        )
    }

    /// Tells that the place was given to another client.
    async fn displaced(&mut self) -> Goodbye {
        let message = "your place went to a client of somebody who has fewer; close connections that you do not need, or raise server.max_connections or server.max_address_connections";
        let error = Error::new(ErrorCode::LimitConnections, message);
        let goodbye = Goodbye::new(CloseCode::Again, "limit-connections");
        self.told(&error, goodbye).await
    }

    /// Tells that an operator has ended the connection.
    async fn ended(&mut self) -> Goodbye {
        let message =
            "an operator has ended this connection; ask them why before you connect again";
        let error = Error::new(ErrorCode::Cancelled, message);
        let goodbye = Goodbye::new(CloseCode::Policy, "cancelled");
        self.told(&error, goodbye).await
    }

    async fn told(&mut self, error: &Error, goodbye: Goodbye) -> Goodbye {
        let telling = self.outbox.notice(outgoing::connection_error(error));
        // A client that reads nothing need not be told.
        drop(timeout(DISPLACED_TIME, telling).await);
        Goodbye {
            time: Some(DISPLACED_TIME),
            ..goodbye
        }
    }
}

/// Handles one message.
///
/// # Errors
/// One that ends the connection.
async fn take(session: &mut Session, outbox: &Outbox, message: Message) -> Result<(), Error> {
    match message {
        Message::Text(payload) => match incoming::read_text(payload).await? {
            Incoming::Ack(ack) => session.acknowledge(&ack),
            Incoming::Mcp(said) => session.mcp_said(said).await,
            Incoming::Request(request) => session.request(request).await,
        },
        Message::Binary(payload) => {
            let (request, payload) = incoming::read_binary(payload).await?;
            session.binary_request(request, payload.bytes()).await?;
        }
        Message::Ping(payload) => outbox.pong(payload),
        // A pong says only that a frame came.
        Message::Pong | Message::Close(_) => {}
    }
    Ok(())
}

/// The goodbye to a client that said it: its own code, where that is one that may be sent.
fn closed(code: Option<u16>) -> Goodbye {
    let code = code.map(CloseCode::from).filter(|code| code.is_allowed());
    Goodbye::new(code.unwrap_or(CloseCode::Normal), "closed")
}

/// Waits until the phase is another than the connection knows of.
async fn changed(phase: &mut watch::Receiver<Phase>, told_draining: bool) {
    let known = if told_draining {
        Phase::Draining
    } else {
        Phase::Serving
    };
    if phase.wait_for(|phase| *phase > known).await.is_err() {
        std::future::pending().await
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
