//! One client that has said hello: reads its messages, and lets go of everything when it is gone.

pub(crate) mod attachments;
pub(crate) mod writer;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::SplitStream;
use pie_host::Error;
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use self::writer::{Goodbye, Outbox};
use crate::handshake::{Client, Socket, broken};
use crate::processes::ConnectionId;
use crate::protocol::incoming::{self, Incoming};
use crate::protocol::outgoing;
use crate::requests::Session;
use crate::shared::{Phase, Place, Shared};
use crate::transport::Taken;

/// How long the events that are left may take to go out when the server closes.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// Serves a client until it goes, breaks the protocol, or the server closes. `place` is freed at the end.
pub(crate) async fn run(socket: Socket, client: Client, shared: Arc<Shared>, place: Place) {
    let id = ConnectionId(shared.next_connection.fetch_add(1, Ordering::Relaxed));
    tracing::info!(
        connection = id.0,
        user = client.user,
        client = client.name,
        "connected"
    );
    let taken = socket.get_ref().taken();
    let (sink, stream) = socket.split();
    let (outbox, writing) = writer::start(sink, taken.clone(), &shared.config);
    let mut session = Session::new(id, client.user, shared.clone(), outbox.clone());
    let goodbye = read(stream, &mut session, &outbox, &taken, &shared).await;
    session.end().await;
    outbox.close(goodbye.code, goodbye.reason);
    drop(outbox);
    // A client that takes what is left byte by byte goes without the rest.
    let writer = writing.abort_handle();
    if timeout(shared.config.idle_timeout, writing).await.is_err() {
        writer.abort();
    }
    drop(place);
    tracing::info!(connection = id.0, reason = goodbye.reason, "disconnected");
}

/// Reads until the connection is over; tells how to close it.
async fn read(
    mut stream: SplitStream<Socket>,
    session: &mut Session,
    outbox: &Outbox,
    taken: &Taken,
    shared: &Shared,
) -> Goodbye {
    let mut phase = shared.phase.subscribe();
    let mut told_draining = false;
    let idle_timeout = shared.config.idle_timeout;
    let mut idle_at = Instant::now() + idle_timeout;
    let mut n_taken = taken.count();
    loop {
        if !told_draining && *phase.borrow() >= Phase::Draining {
            told_draining = true;
            outbox.control(outgoing::draining()).await;
        }
        let frame = tokio::select! {
            biased;
            () = changed(&mut phase, told_draining) => {
                if *phase.borrow() == Phase::Closing {
                    // What is left has its time; a client that does not read it goes without.
                    drop(timeout(FLUSH_TIMEOUT, flush(&mut stream, session)).await);
                    return Goodbye::new(CloseCode::Away, "the server ends");
                }
                continue;
            }
            () = outbox.closed() => return Goodbye::new(CloseCode::Normal, "the client takes nothing"),
            frame = timeout_at(idle_at, stream.next()) => frame,
        };
        let message = match frame {
            // While a long message goes out no ping does; a client that takes it is there.
            Err(_) if taken.count() != n_taken => {
                n_taken = taken.count();
                idle_at = Instant::now() + idle_timeout;
                continue;
            }
            Err(_) => {
                return Goodbye::new(CloseCode::Normal, "nothing was heard for idle_timeout_s");
            }
            Ok(None) => return Goodbye::new(CloseCode::Normal, "gone"),
            Ok(Some(Ok(Message::Close(_)))) => return Goodbye::new(CloseCode::Normal, "closed"),
            Ok(Some(Ok(message))) => message,
            Ok(Some(Err(error))) => {
                return match broken(error) {
                    Some(error) => refused(outbox, &error).await,
                    None => Goodbye::new(CloseCode::Normal, "gone"),
                };
            }
        };
        idle_at = Instant::now() + idle_timeout;
        if let Err(error) = take(session, message).await {
            return refused(outbox, &error).await;
        }
    }
}

/// Handles one message.
///
/// # Errors
/// One that ends the connection.
async fn take(session: &mut Session, message: Message) -> Result<(), Error> {
    match message {
        Message::Text(text) => match incoming::text_message(&text)? {
            Incoming::Ack(ack) => session.acknowledge(&ack),
            Incoming::Request(request) => session.request(request).await,
        },
        Message::Binary(frame) => {
            let (request, payload) = incoming::binary_message(&frame)?;
            session.binary_request(request, payload).await?;
        }
        // Pings are answered below us; that a frame came is all that a pong tells.
        _ => {}
    }
    Ok(())
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

/// Waits until the events of the attached processes have gone out; acknowledgements that come meanwhile move their windows.
async fn flush(stream: &mut SplitStream<Socket>, session: &Session) {
    loop {
        tokio::select! {
            biased;
            () = session.flushed() => return,
            frame = stream.next() => match frame {
                Some(Ok(Message::Text(text))) => {
                    if let Ok(Incoming::Ack(ack)) = incoming::text_message(&text) {
                        session.acknowledge(&ack);
                    }
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return,
            },
        }
    }
}

/// Tells an error that ends the connection.
async fn refused(outbox: &Outbox, error: &Error) -> Goodbye {
    tracing::info!(%error, "refused a message");
    outbox.control(outgoing::connection_error(error)).await;
    let code = match error.code {
        pie_host::ErrorCode::LimitMessage => CloseCode::Size,
        _ => CloseCode::Protocol,
    };
    Goodbye::new(code, "the protocol was broken")
}
