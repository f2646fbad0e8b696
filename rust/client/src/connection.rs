//! One connection to a server: a task that reads, a task that writes, and the requests of callers.
//!
//! The reader never waits for anybody: answers go to their callers, events to the bounded queue of their process. Any
//! call may be dropped at any time; the connection stays as usable as before.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until, timeout};
use tokio_tungstenite::tungstenite;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::error::Error;
use crate::error_codes::ErrorCode;
use crate::frame_gate::TooLong;
use crate::mcp::{McpCommand, McpServers};
use crate::opening::Socket;
use crate::shared::{Answer, Expected, Shared, Unclaimed, Waiting};
use crate::sync::lock;
use crate::wire::{Fields, Hello, decode, encode, encode_binary, fields};

/// Of the requests that may be open at once, these are for taking back what was given up.
const RESERVED_REQUESTS: usize = 8;
/// Frames of callers that wait for the writer.
const QUEUED_FRAMES: usize = 4;
const CHUNK_BYTES: usize = 256 << 10;
const MIN_CHUNK_BYTES: usize = 1 << 10;
const FLUSH: Duration = Duration::from_secs(2);
const CLOSE: Duration = Duration::from_secs(2);
/// How long the end of MCP servers is waited for.
const SERVERS: Duration = Duration::from_secs(5);
/// Acks of a reader that keeps up are gathered for this long: one for many small events.
const ACK_DELAY: Duration = Duration::from_millis(20);
const PING: Duration = Duration::from_secs(20);
const SILENCE: Duration = Duration::from_secs(60);
const KEY_GONE: &str = "the key is no longer good";

/// An open connection. It ends with its last holder.
pub(crate) struct Connection {
    pub(crate) hello: Hello,
    pub(crate) shared: Arc<Shared>,
    frames: mpsc::Sender<Message>,
    places: Arc<Semaphore>,
    reader: Mutex<Option<JoinHandle<()>>>,
}

impl Connection {
    /// Begins to read and to write.
    pub(crate) fn begin(socket: Socket, hello: Hello) -> Arc<Self> {
        let (n_places, max_posts) = shares(hello.limits.open_requests);
        let places = Arc::new(Semaphore::new(n_places));
        let (frames, queued) = mpsc::channel(QUEUED_FRAMES);
        let mcp = McpServers::new(frames.downgrade(), hello.limits.frame_bytes);
        let shared = Arc::new(Shared::new(places.clone(), max_posts, mcp));
        let (sink, source) = socket.split();
        tokio::spawn(write(shared.clone(), sink, queued));
        let reader = tokio::spawn(read(shared.clone(), source));
        Arc::new(Self {
            hello,
            shared,
            frames,
            places,
            reader: Mutex::new(Some(reader)),
        })
    }

    /// Sends a request and waits for its answer.
    pub(crate) async fn request(&self, kind: &str, fields: Fields) -> Result<Fields, Error> {
        match self.ask(kind, fields, Expected::Plain).await? {
            Answer::Plain(ok) => Ok(ok),
            Answer::Attached(_) => Err(Error::protocol("an answer with a process")),
        }
    }

    /// Sends a request whose answer sets up a stream.
    pub(crate) async fn attach(
        &self,
        kind: &str,
        fields: Fields,
        expected: Expected,
    ) -> Result<Unclaimed, Error> {
        match self.ask(kind, fields, expected).await? {
            Answer::Attached(unclaimed) => Ok(unclaimed),
            Answer::Plain(_) => Err(Error::protocol("an answer without a process")),
        }
    }

    /// Registers an MCP server by a name. Where this is dropped once it is sent, the answer still says whether there is
    /// one.
    pub(crate) async fn register(&self, name: &str, command: McpCommand) -> Result<(), Error> {
        let asked = fields(serde_json::json!({ "name": name }));
        let expected = Expected::Register {
            name: name.to_owned(),
            command: Some(command),
        };
        self.ask("register_mcp_server", asked, expected)
            .await
            .map(drop)
    }

    /// Lets go of a process. What was read of it is acknowledged before.
    pub(crate) async fn detach(&self, fields: Fields, pid: u64) -> Result<(), Error> {
        self.shared.wake.notify_one();
        self.ask("detach", fields, Expected::Detach { pid })
            .await
            .map(drop)
    }

    /// Sends a request in one binary frame, and waits for its answer.
    pub(crate) async fn transfer(&self, mut header: Fields, payload: &[u8]) -> Result<(), Error> {
        let id = self.shared.next_id();
        header.insert("id".to_owned(), id.into());
        let frame = encode_binary(&header, payload);
        self.check_size(frame.len())?;
        self.exchange(id, std::iter::once(frame), None, Expected::Plain)
            .await
            .map(drop)
    }

    /// Sends what may be larger than a frame, in chunks. One that is dropped or refused is ended early.
    pub(crate) async fn upload(
        &self,
        data: &[u8],
        digest: &str,
        name: Option<&str>,
    ) -> Result<(), Error> {
        let id = self.shared.next_id();
        let most = (self.hello.limits.frame_bytes / 2).min(CHUNK_BYTES);
        let chunk_bytes = most.max(MIN_CHUNK_BYTES);
        let frame = |offset: usize, is_last: bool, chunk: &[u8]| {
            let mut header = serde_json::json!({
                "id": id, "type": "upload", "digest": digest, "bytes": data.len(), "offset": offset, "last": is_last,
            });
            if let Some(name) = name {
                header["name"] = name.into();
            }
            let header = fields(header);
            encode_binary(&header, chunk)
        };
        let cut = frame(data.len(), true, &[]);
        let chunks = (0..data.len().max(1)).step_by(chunk_bytes).map(|offset| {
            let end = data.len().min(offset + chunk_bytes);
            frame(offset, end == data.len(), &data[offset..end])
        });
        self.exchange(id, chunks, Some(cut), Expected::Plain)
            .await
            .map(drop)
    }

    /// Ends the connection. What an unanswered request may have done at the server is taken back first, if its answer
    /// comes soon; a call beside another one waits for that, too.
    pub(crate) async fn close(&self) {
        if self.shared.begin_closing() {
            let _ = timeout(FLUSH, self.shared.settled()).await;
        }
        drop(timeout(CLOSE, self.frames.send(Message::Close(None))).await);
        let reader = lock(&self.reader).take();
        if let Some(mut reader) = reader
            && timeout(CLOSE, &mut reader).await.is_err()
        {
            reader.abort();
        }
        let _ = timeout(SERVERS, self.shared.mcp.close()).await;
    }

    async fn ask(&self, kind: &str, fields: Fields, expected: Expected) -> Result<Answer, Error> {
        let id = self.shared.next_id();
        let mut message = Fields::new();
        message.insert("id".to_owned(), id.into());
        message.insert("type".to_owned(), kind.into());
        message.extend(fields);
        let frame = encode(&message);
        self.check_size(frame.len())?;
        self.exchange(id, std::iter::once(frame), None, expected)
            .await
    }

    /// Refuses here what the server would close the connection for.
    fn check_size(&self, n_bytes: usize) -> Result<(), Error> {
        let limit = self.hello.limits.frame_bytes;
        if n_bytes <= limit {
            return Ok(());
        }
        let message = format!(
            "a message of {n_bytes} bytes is larger than the server takes ({limit}); send it in parts"
        );
        Err(Error::new(ErrorCode::LimitMessage, message))
    }

    /// Sends the frames of one request and waits for the answer. `cut` ends it early at the server, if not all were
    /// sent.
    async fn exchange(
        &self,
        id: u64,
        frames: impl Iterator<Item = Message>,
        cut: Option<Message>,
        expected: Expected,
    ) -> Result<Answer, Error> {
        let Ok(place) = self.places.clone().acquire_owned().await else {
            return Err(self.shared.failure());
        };
        let mut waiting = self.shared.open(id, expected, place)?;
        let mut sending = Sending {
            shared: &self.shared,
            id,
            cut,
            state: Sent::Nothing,
        };
        let mut frames = frames.peekable();
        while let Some(frame) = frames.next() {
            let room = tokio::select! {
                biased;
                early = &mut waiting => return self.told(early),
                room = self.frames.reserve() => room,
            };
            // Without a writer the connection has ended, and the answer says why.
            let Ok(room) = room else { break };
            sending.state = if frames.peek().is_some() {
                Sent::Part
            } else {
                Sent::All
            };
            room.send(frame);
        }
        self.told(waiting.await)
    }

    fn told(&self, answer: <Waiting as Future>::Output) -> Result<Answer, Error> {
        answer.unwrap_or_else(|_| Err(self.shared.failure()))
    }
}

/// How much of a request was sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sent {
    Nothing,
    Part,
    All,
}

/// A request that is being sent. Where that ends before all was sent, the server and the connection learn of it.
struct Sending<'a> {
    shared: &'a Shared,
    id: u64,
    cut: Option<Message>,
    state: Sent,
}

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        match self.state {
            Sent::Nothing => self.shared.forget(self.id),
            Sent::Part => {
                if let Some(cut) = self.cut.take() {
                    self.shared.cut(cut);
                }
            }
            Sent::All => {}
        }
    }
}

/// Sends the frames of callers, and what is to be sent beside, until the connection ends.
async fn write(
    shared: Arc<Shared>,
    mut sink: SplitSink<Socket, Message>,
    mut frames: mpsc::Receiver<Message>,
) {
    if write_all(&shared, &mut sink, &mut frames).await.is_err() {
        // The reader knows what the server said before it closed.
        let _ = timeout(FLUSH, shared.ended()).await;
        shared.fail(closed(None));
    }
}

async fn write_all(
    shared: &Shared,
    sink: &mut SplitSink<Socket, Message>,
    frames: &mut mpsc::Receiver<Message>,
) -> Result<(), tungstenite::Error> {
    let mut due: Option<Instant> = None;
    let mut pings = interval_at(Instant::now() + PING, PING);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            () = shared.wake.notified() => due = None,
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => due = None,
            () = shared.soon.notified(), if due.is_none() => {
                due = Some(Instant::now() + ACK_DELAY);
                continue;
            }
            _ = pings.tick() => {
                sink.send(Message::Ping(Vec::new().into())).await?;
                continue;
            }
            frame = frames.recv() => {
                // Nobody holds the connection any more.
                let frame = frame.unwrap_or(Message::Close(None));
                let is_last = frame.is_close();
                sink.send(frame).await?;
                if is_last {
                    return Ok(());
                }
                continue;
            }
        }
        while let Some(frame) = shared.next_frame() {
            sink.send(frame).await?;
        }
        if let Some(failure) = shared.broken() {
            return sink.send(Message::Close(Some(farewell(&failure)))).await;
        }
    }
}

/// Reads until the connection ends, and tells everybody why.
async fn read(shared: Arc<Shared>, mut source: SplitStream<Socket>) {
    let failure = loop {
        let message = match timeout(SILENCE, source.next()).await {
            Err(_) => break silent(),
            Ok(None) => break closed(None),
            Ok(Some(Err(error))) => break broken(&error),
            Ok(Some(Ok(message))) => message,
        };
        let received = match &message {
            Message::Close(frame) => break closed(frame.as_ref()),
            Message::Text(_) | Message::Binary(_) => {
                decode(&message).and_then(|(fields, payload)| shared.receive(fields, payload))
            }
            Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => Ok(()),
        };
        if let Err(error) = received {
            break error;
        }
    };
    shared.fail(failure);
    // The other half of the closing handshake is written by reading on.
    let rest = async { while let Some(Ok(_)) = source.next().await {} };
    let _ = timeout(CLOSE, rest).await;
}

/// What the server is told of the reason why this side ends the connection.
fn farewell(failure: &Error) -> CloseFrame {
    CloseFrame {
        code: if failure.code() == "protocol-error" {
            CloseCode::Protocol
        } else {
            CloseCode::Normal
        },
        reason: failure.code().to_owned().into(),
    }
}

const REMEDY: &str = "check that `pie serve` runs, connect again and attach to your processes";

fn silent() -> Error {
    let message = format!(
        "nothing was heard from the server for {} s; {REMEDY}",
        SILENCE.as_secs()
    );
    Error::new(ErrorCode::ConnectionFailed, message)
}

fn broken(error: &tungstenite::Error) -> Error {
    match error {
        tungstenite::Error::Io(error) if TooLong::is(error) => Error::new(
            ErrorCode::ProtocolError,
            "the server sent a message that is larger than this client takes; send less at once",
        ),
        _ => closed(None),
    }
}

/// How many requests may wait for an answer, and how many posts, of those that the server leaves open at once.
fn shares(open_requests: usize) -> (usize, usize) {
    let max_posts = RESERVED_REQUESTS.min(open_requests / 2);
    let n_places = (open_requests - max_posts).clamp(1, Semaphore::MAX_PERMITS);
    (n_places, max_posts)
}

/// Why the connection ended.
fn closed(frame: Option<&CloseFrame>) -> Error {
    let Some(CloseFrame { code, reason }) = frame else {
        return Error::new(
            ErrorCode::ConnectionFailed,
            format!("the connection to the server broke; {REMEDY}"),
        );
    };
    let (code, reason) = (u16::from(*code), reason.as_str());
    if code == u16::from(CloseCode::Policy) && reason == KEY_GONE {
        let message = "the server closed the connection: the key was revoked or has expired; ask the operator of the server for another one";
        return Error::new(ErrorCode::AuthenticationFailed, message);
    }
    let said = if reason.is_empty() {
        code.to_string()
    } else {
        format!("{code}: {reason}")
    };
    Error::new(
        ErrorCode::ConnectionFailed,
        format!("the server closed the connection ({said}); {REMEDY}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_posts_share_what_the_server_leaves_open() {
        for (open_requests, shared) in [
            (0, (1, 0)),
            (1, (1, 0)),
            (2, (1, 1)),
            (64, (64 - RESERVED_REQUESTS, RESERVED_REQUESTS)),
            (usize::MAX, (Semaphore::MAX_PERMITS, RESERVED_REQUESTS)),
        ] {
            assert_eq!(shares(open_requests), shared, "{open_requests}");
        }
    }

    #[test]
    fn the_end_of_a_connection_says_what_the_server_said() {
        for (code, reason, said) in [
            (1011, "", "the server closed the connection (1011); "),
            (
                1001,
                "it stops",
                "the server closed the connection (1001: it stops); ",
            ),
            // Another reason of the same code is no revoked key.
            (
                1008,
                "slow",
                "the server closed the connection (1008: slow); ",
            ),
        ] {
            let error = closed(Some(&CloseFrame {
                code: code.into(),
                reason: reason.into(),
            }));
            assert_eq!(error.code(), ErrorCode::ConnectionFailed.as_str());
            assert_eq!(error.message(), format!("{said}{REMEDY}"));
        }
        let gone = closed(Some(&CloseFrame {
            code: CloseCode::Policy,
            reason: KEY_GONE.into(),
        }));
        assert_eq!(gone.code(), ErrorCode::AuthenticationFailed.as_str());
        let broken = closed(None);
        assert_eq!(broken.code(), ErrorCode::ConnectionFailed.as_str());
        assert!(broken.message().contains("broke"), "{}", broken.message());
    }
}
