//! What the tasks of a connection share with its callers: requests without an answer, streams, and what is to be sent.
//!
//! A request that was given up stays known until it is answered, so that its answer can be undone.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use serde_json::{Value, json};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot};
use tokio_tungstenite::tungstenite::Message;

use crate::error::Error;
use crate::error_codes::ErrorCode;
use crate::event::event_of;
use crate::mcp::{McpCommand, McpServers};
use crate::stream::{Acknowledged, Stream};
use crate::sync::lock;
use crate::wire::{Fields, encode, error_of, fields, number_of};

/// What an answer sets up before what comes right behind it is read.
#[derive(Clone, Debug)]
pub(crate) enum Expected {
    /// Nothing.
    Plain,
    /// The stream of a process that was launched.
    Launch { window_bytes: u64 },
    /// The stream of a process that was attached to.
    Attach { window_bytes: u64, after_seq: u64 },
    /// The end of the stream of a process.
    Detach { pid: u64 },
    /// An MCP server of that name. Its command is taken up as the request begins, since the server of Pie may start it
    /// before it answers. From then on this is the command that had the name before, for the case that none is
    /// registered.
    Register {
        name: String,
        command: Option<McpCommand>,
    },
}

/// The answer to a request that went well.
pub(crate) enum Answer {
    Plain(Fields),
    Attached(Unclaimed),
}

/// A stream that was set up. Where nobody claims it, it is taken back at the server.
pub(crate) struct Unclaimed {
    shared: Arc<Shared>,
    stream: Arc<Stream>,
    launch_seed: Option<u64>,
    undo: &'static str,
    is_claimed: bool,
}

impl Unclaimed {
    /// The stream and, of a launch, the seed.
    pub(crate) fn claim(mut self) -> (Arc<Stream>, Option<u64>) {
        self.is_claimed = true;
        (self.stream.clone(), self.launch_seed)
    }
}

impl Drop for Unclaimed {
    fn drop(&mut self) {
        if !self.is_claimed {
            self.shared.post(self.undo, self.stream.pid());
        }
    }
}

/// Where the answer to a request goes.
pub(crate) type Waiting = oneshot::Receiver<Result<Answer, Error>>;

struct Request {
    expected: Expected,
    /// None for one whose answer nobody waits for.
    caller: Option<oneshot::Sender<Result<Answer, Error>>>,
    /// Its place among the requests that may be open. None for what takes something back.
    place: Option<OwnedSemaphorePermit>,
}

/// What is shared.
pub(crate) struct Shared {
    /// The MCP servers that this client runs.
    pub(crate) mcp: McpServers,
    state: Mutex<State>,
    /// For the writer: something is to be sent at once.
    pub(crate) wake: Notify,
    /// For the writer: something is to be sent soon.
    pub(crate) soon: Notify,
    /// A request was answered, or the connection has ended.
    changed: Notify,
    places: Arc<Semaphore>,
    max_posts: usize,
    last_id: AtomicU64,
}

#[derive(Default)]
struct State {
    requests: HashMap<u64, Request>,
    streams: HashMap<u64, Weak<Stream>>,
    acks: BTreeMap<u64, u64>,
    cuts: VecDeque<Message>,
    posts: VecDeque<(&'static str, u64)>,
    n_open_posts: usize,
    failure: Option<Error>,
    /// Whether this side ends the connection: what nobody waits for any more is still answered.
    is_closing: bool,
    is_draining: bool,
}

impl Shared {
    /// Of the requests that may be open at the server, `max_posts` are for taking back what was given up, and `places`
    /// has the others.
    pub(crate) fn new(places: Arc<Semaphore>, max_posts: usize, mcp: McpServers) -> Self {
        Self {
            mcp,
            state: Mutex::default(),
            wake: Notify::new(),
            soon: Notify::new(),
            changed: Notify::new(),
            places,
            max_posts,
            last_id: AtomicU64::new(0),
        }
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.last_id.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn is_draining(&self) -> bool {
        lock(&self.state).is_draining
    }

    /// Why the connection has ended, as far as anybody knows.
    pub(crate) fn failure(&self) -> Error {
        let failure = lock(&self.state).failure.clone();
        failure.unwrap_or_else(|| {
            Error::new(
                ErrorCode::ConnectionFailed,
                "the connection to the server broke; connect again",
            )
        })
    }

    /// Why it has ended, where it was not this side that ends it.
    pub(crate) fn broken(&self) -> Option<Error> {
        let state = lock(&self.state);
        if state.is_closing {
            None
        } else {
            state.failure.clone()
        }
    }

    /// A request begins.
    ///
    /// # Errors
    /// Why the connection has ended.
    pub(crate) fn open(
        &self,
        id: u64,
        mut expected: Expected,
        place: OwnedSemaphorePermit,
    ) -> Result<Waiting, Error> {
        let mut state = lock(&self.state);
        if let Some(failure) = &state.failure {
            return Err(failure.clone());
        }
        if let Expected::Register { name, command } = &mut expected {
            *command = self.mcp.set(name, command.take());
        }
        let (caller, waiting) = oneshot::channel();
        let request = Request {
            expected,
            caller: Some(caller),
            place: Some(place),
        };
        state.requests.insert(id, request);
        Ok(waiting)
    }

    /// Forgets a request that was not sent.
    pub(crate) fn forget(&self, id: u64) {
        let request = lock(&self.state).requests.remove(&id);
        if let Some(request) = request {
            self.not_made(request.expected);
        }
        self.changed.notify_waiters();
    }

    /// Ends a request early whose frames were not all sent.
    pub(crate) fn cut(&self, frame: Message) {
        lock(&self.state).cuts.push_back(frame);
        self.wake.notify_one();
    }

    /// Sends a request about a process whose answer nobody waits for, soon.
    pub(crate) fn post(&self, kind: &'static str, pid: u64) {
        lock(&self.state).posts.push_back((kind, pid));
        self.wake.notify_one();
    }

    /// The next frame that is to be sent beside those of callers.
    pub(crate) fn next_frame(&self) -> Option<Message> {
        let mut state = lock(&self.state);
        if let Some(cut) = state.cuts.pop_front() {
            return Some(cut);
        }
        if state.n_open_posts < self.max_posts
            && let Some((kind, pid)) = state.posts.pop_front()
        {
            let id = self.next_id();
            state.n_open_posts += 1;
            let request = Request {
                expected: Expected::Plain,
                caller: None,
                place: None,
            };
            state.requests.insert(id, request);
            return Some(encode(&fields(
                json!({ "id": id, "type": kind, "pid": pid }),
            )));
        }
        let (pid, seq) = state.acks.pop_first()?;
        Some(encode(&fields(
            json!({ "type": "ack", "pid": pid, "seq": seq }),
        )))
    }

    /// Deals with a message of the server.
    ///
    /// # Errors
    /// The error with which the server ends the connection, or `protocol-error`.
    pub(crate) fn receive(self: &Arc<Self>, fields: Fields, payload: Vec<u8>) -> Result<(), Error> {
        let error = error_of(&fields)?;
        let kind = fields.get("type").and_then(Value::as_str);
        let (is_event, is_draining) = (kind == Some("event"), kind == Some("draining"));
        let of_mcp = kind.filter(|kind| kind.starts_with("mcp_"));
        if let Some(kind) = of_mcp {
            return self.mcp.take(kind, &fields);
        }
        let (has_kind, has_id) = (kind.is_some(), fields.contains_key("id"));
        if is_event {
            self.event(fields, payload)
        } else if is_draining {
            lock(&self.state).is_draining = true;
            Ok(())
        } else if has_id {
            let id = number_of(&fields, "id")?;
            self.answered(id, error, fields)
        } else if let Some(error) = error {
            Err(error)
        } else if has_kind {
            Ok(())
        } else {
            Err(Error::protocol(
                "a message that has neither a type nor an id",
            ))
        }
    }

    fn event(&self, fields: Fields, payload: Vec<u8>) -> Result<(), Error> {
        let pid = number_of(&fields, "pid")?;
        let stream = lock(&self.state).streams.get(&pid).cloned();
        match stream.as_ref().map(Weak::upgrade) {
            Some(Some(stream)) => stream.push(event_of(Value::Object(fields), payload)?),
            // Whoever read it has gone.
            Some(None) => {
                lock(&self.state).streams.remove(&pid);
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn answered(
        self: &Arc<Self>,
        id: u64,
        error: Option<Error>,
        mut fields: Fields,
    ) -> Result<(), Error> {
        let Some(request) = self.close_request(id)? else {
            return Ok(());
        };
        let made = match (error, fields.remove("ok")) {
            (Some(error), _) => {
                self.not_made(request.expected);
                Ok(Err(error))
            }
            (None, Some(Value::Object(ok))) => self.made(request.expected, ok).map(Ok),
            _ => Err(Error::protocol(format_args!(
                "an answer to the request {id} with neither a result nor an error"
            ))),
        };
        let (told, outcome) = match made {
            Ok(answer) => (answer, Ok(())),
            Err(error) => (Err(error.clone()), Err(error)),
        };
        // Where the caller has gone, this takes back what was set up.
        match request.caller {
            Some(caller) => drop(caller.send(told)),
            None => drop(told),
        }
        self.changed.notify_waiters();
        outcome
    }

    /// Takes a request that is answered out; none for one that nobody knows while this side closes.
    fn close_request(&self, id: u64) -> Result<Option<Request>, Error> {
        let mut state = lock(&self.state);
        let Some(request) = state.requests.remove(&id) else {
            if state.is_closing {
                return Ok(None);
            }
            return Err(Error::protocol(format_args!(
                "an answer to the request {id}, which is not open"
            )));
        };
        if request.place.is_none() {
            state.n_open_posts -= 1;
            self.wake.notify_one();
        }
        Ok(Some(request))
    }

    /// What was set up with a request that comes to nothing is taken back.
    fn not_made(&self, expected: Expected) {
        if let Expected::Register { name, command } = expected {
            self.mcp.set(&name, command);
        }
    }

    /// What an answer sets up.
    fn made(self: &Arc<Self>, expected: Expected, ok: Fields) -> Result<Answer, Error> {
        let (window_bytes, after_seq, launch_seed, undo) = match expected {
            Expected::Plain | Expected::Register { .. } => return Ok(Answer::Plain(ok)),
            Expected::Detach { pid } => {
                self.detached(pid);
                return Ok(Answer::Plain(ok));
            }
            Expected::Launch { window_bytes } => {
                let seed = number_of(&ok, "launch_seed")?;
                (window_bytes, 0, Some(seed), "terminate")
            }
            Expected::Attach {
                window_bytes,
                after_seq,
            } => (window_bytes, after_seq, None, "detach"),
        };
        let pid = number_of(&ok, "pid")?;
        let stream = Arc::new(Stream::new(pid, window_bytes, after_seq, self.clone()));
        lock(&self.state)
            .streams
            .insert(pid, Arc::downgrade(&stream));
        if after_seq > 0 {
            self.acknowledge(pid, after_seq, true);
        }
        Ok(Answer::Attached(Unclaimed {
            shared: self.clone(),
            stream,
            launch_seed,
            undo,
            is_claimed: false,
        }))
    }

    /// The server sends no more events of a process to this client, also where the caller has given up.
    fn detached(&self, pid: u64) {
        let stream = lock(&self.state).streams.remove(&pid);
        if let Some(stream) = stream.as_ref().and_then(Weak::upgrade) {
            let message =
                format!("this client has detached from process {pid}; attach to it again");
            stream.abandon(Error::new(ErrorCode::SessionClosed, message));
        }
    }

    /// Ends every request and every stream. Only the first reason counts.
    pub(crate) fn fail(&self, error: Error) {
        self.end(error, false);
    }

    /// This side ends the connection: what answers undo stays known. False where the other side has ended it before.
    pub(crate) fn begin_closing(&self) -> bool {
        let message = "this client has closed the connection; connect again";
        self.end(Error::new(ErrorCode::ConnectionFailed, message), true);
        lock(&self.state).is_closing
    }

    fn end(&self, error: Error, is_closing: bool) {
        let mut state = lock(&self.state);
        let is_first = state.failure.is_none();
        if !is_first && !state.is_closing {
            return;
        }
        let mut callers = Vec::new();
        if is_first {
            state.failure = Some(error.clone());
            state.is_closing = is_closing;
        }
        state.requests.retain(|_, request| {
            callers.extend(request.caller.take());
            let undoes = matches!(
                request.expected,
                Expected::Launch { .. } | Expected::Attach { .. }
            );
            is_closing && undoes
        });
        if !is_closing {
            state.posts.clear();
        }
        let streams: Vec<_> = state.streams.drain().collect();
        drop(state);
        self.mcp.stop();
        self.places.close();
        for caller in callers {
            drop(caller.send(Err(error.clone())));
        }
        for stream in streams.iter().filter_map(|(_, stream)| stream.upgrade()) {
            stream.fail(error.clone());
        }
        self.wake.notify_one();
        self.changed.notify_waiters();
    }

    /// Waits until nothing is to be taken back any more.
    pub(crate) async fn settled(&self) {
        loop {
            let changed = self.changed.notified();
            {
                let state = lock(&self.state);
                if state.requests.is_empty() && state.posts.is_empty() {
                    return;
                }
            }
            changed.await;
        }
    }

    /// Waits for the end of the connection.
    pub(crate) async fn ended(&self) {
        loop {
            let changed = self.changed.notified();
            if lock(&self.state).failure.is_some() {
                return;
            }
            changed.await;
        }
    }
}

impl Acknowledged for Shared {
    fn acknowledge(&self, pid: u64, seq: u64, now: bool) {
        lock(&self.state).acks.insert(pid, seq);
        if now {
            self.wake.notify_one();
        } else {
            self.soon.notify_one();
        }
    }
}
