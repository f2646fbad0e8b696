//! A server that is spoken to by HTTP (the transport "streamable HTTP" of MCP): each message is a request, whose answer
//! is one message or a stream of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, StatusCode, response};
use pie_core::ErrorCode;
use pie_core::settings::Word;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::config::McpServerConfig;
use super::failure::{answer_too_long, protocol, unavailable};
use super::rpc::{self, Incoming};
use super::sse::Events;
use crate::Error;
use crate::network::allowed::Allowed;
use crate::network::config::{HttpLimits, NetworkConfig};
use crate::network::connection::Network;
use crate::network::hop::{Hop, whole};
use crate::network::received::Received;
use crate::network::target::Target;

/// Headers of the protocol.
const SESSION: &str = "mcp-session-id";
const VERSION: &str = "mcp-protocol-version";
/// Bytes that an answer has beside its result.
const ENVELOPE_BYTES: u64 = 64 << 10;
/// Bytes of a head.
const HEADER_BYTES: usize = 64 << 10;
/// Requests at once: calls are bounded where they begin.
const REQUESTS: usize = 1 << 16;
/// In whose name requests are sent.
const NOBODY: &str = "";
/// How long a server is told that a call is given up, and how many are at once.
const CANCELLING: Duration = Duration::from_secs(10);
const CANCELS: usize = 16;
/// Longer than any call.
const LONG: Duration = Duration::from_secs(365 * 86_400);

/// A server that has said hello by HTTP.
#[derive(Debug)]
pub(crate) struct WebPeer {
    server: Arc<str>,
    network: Network,
    target: Target,
    /// What every request has.
    headers: HeaderMap,
    connect: Duration,
    runtime: Handle,
    cancels: Arc<Semaphore>,
    next: AtomicU64,
    hello: String,
    has_session: bool,
    is_gone: AtomicBool,
}

impl WebPeer {
    /// Connects, and says hello, whose answer may have `most` bytes. `ca_file` is that of `runtime.net_ca_file`.
    ///
    /// # Errors
    /// `mcp-unavailable`, `mcp-protocol`, `mcp-error`.
    pub(crate) async fn open(
        server: &Arc<str>,
        config: &McpServerConfig,
        ca_file: &str,
        most: u64,
    ) -> Result<Arc<Self>, Error> {
        let mut peer = Self::new(server, config, ca_file)?;
        let message = rpc::request(0, "initialize", &rpc::hello());
        let (head, body) = peer.send(message, most).await?;
        if let Some(session) = head.headers.get(SESSION) {
            peer.headers.insert(SESSION, session.clone());
            peer.has_session = true;
        }
        peer.hello = peer.answer(0, &head, body, most).await?;
        let version = rpc::version(&peer.hello).map_err(|why| protocol(server, why))?;
        let version = HeaderValue::try_from(version).map_err(Error::internal)?;
        peer.headers.insert(VERSION, version);
        peer.tell(rpc::initialized()).await?;
        Ok(Arc::new(peer))
    }

    fn new(server: &Arc<str>, config: &McpServerConfig, ca_file: &str) -> Result<Self, Error> {
        let target = Target::parse(&config.url)?;
        // The operator names this server, whatever its name leads to.
        let allow = [target.place(), "0.0.0.0/0".to_owned(), "::/0".to_owned()];
        let network = Network::new(NetworkConfig {
            allow: allow
                .iter()
                .filter_map(|text| Allowed::parse(text))
                .collect(),
            user_requests: REQUESTS,
            requests: REQUESTS,
            ca_file: ca_file.to_owned(),
        })?;
        let mut headers = HeaderMap::new();
        for header in &config.headers {
            headers.append(header.name.clone(), header.value.clone());
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let accepted = HeaderValue::from_static("application/json, text/event-stream");
        headers.insert(ACCEPT, accepted);
        Ok(Self {
            server: server.clone(),
            network,
            target,
            headers,
            connect: config.start,
            runtime: Handle::current(),
            cancels: Arc::new(Semaphore::new(CANCELS)),
            next: AtomicU64::new(1),
            hello: String::new(),
            has_session: false,
            is_gone: AtomicBool::new(false),
        })
    }

    /// What it said.
    pub(crate) fn hello(&self) -> &str {
        &self.hello
    }

    /// Whether its session has ended.
    pub(crate) fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Relaxed)
    }

    /// The result of a call, as it was written, of at most `most` bytes. Dropping this before gives it up at the server
    /// too.
    ///
    /// # Errors
    /// `mcp-unavailable`, `mcp-protocol`, `mcp-error`, `limit-mcp-bytes`.
    pub(crate) async fn call(
        self: &Arc<Self>,
        method: &str,
        params: &str,
        most: u64,
    ) -> Result<String, Error> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let mut pending = PendingCall {
            peer: self.clone(),
            id,
            is_over: false,
        };
        let answer = match self.send(rpc::request(id, method, params), most).await {
            Ok((head, body)) => self.answer(id, &head, body, most).await,
            Err(error) => Err(error),
        };
        pending.is_over = true;
        answer
    }

    /// Tells the server what it does not answer.
    async fn tell(&self, message: String) -> Result<(), Error> {
        let (head, _) = self.send(message, ENVELOPE_BYTES).await?;
        self.check(&head)
    }

    async fn send(&self, message: String, most: u64) -> Result<(response::Parts, Received), Error> {
        let limits = HttpLimits {
            sent_bytes: u64::MAX,
            received_bytes: most.saturating_add(ENVELOPE_BYTES),
            header_bytes: HEADER_BYTES,
            connect: self.connect,
            first_byte: LONG,
            idle: LONG,
            whole: LONG,
        };
        let place = self.network.places.take(NOBODY)?;
        let hop = Hop {
            network: &self.network,
            place: &place,
            limits: &limits,
            target: &self.target,
            method: Method::POST,
            headers: self.headers.clone(),
        };
        let sent = hop.send(whole(Bytes::from(message))).await;
        sent.map_err(|error| self.of_network(error, most))
    }

    /// The result in the answer to a call.
    async fn answer(
        &self,
        id: u64,
        head: &response::Parts,
        mut body: Received,
        most: u64,
    ) -> Result<String, Error> {
        self.check(head)?;
        let kind = head.headers.get(CONTENT_TYPE);
        let kind = kind.map_or(&b""[..], HeaderValue::as_bytes);
        let (mut events, mut messages, mut text) = (Events::default(), Vec::new(), Vec::new());
        let is_stream = kind.starts_with(b"text/event-stream");
        while let Some(bytes) = body
            .next()
            .await
            .map_err(|error| self.of_network(error, most))?
        {
            if !is_stream {
                text.extend_from_slice(&bytes);
                continue;
            }
            events.feed(&bytes, |data| messages.push(data));
            for message in messages.drain(..) {
                if let Some(result) = self.result(id, &message, most) {
                    return result;
                }
            }
        }
        self.result(id, &text, most).unwrap_or_else(|| {
            let why = "what it answered to a call does not hold the answer";
            Err(protocol(&self.server, why))
        })
    }

    /// The result in a message; none where it is not the answer to the call.
    fn result(&self, id: u64, message: &[u8], most: u64) -> Option<Result<String, Error>> {
        match Incoming::parse(message)? {
            Incoming::Answer { id: of, result } if of == id => Some(match result {
                Ok(result) if result.len() as u64 > most => {
                    Err(answer_too_long(&self.server, most))
                }
                Ok(result) => Ok(result),
                Err(fault) => Err(fault.error(&self.server)),
            }),
            _ => None,
        }
    }

    /// Checks the status of an answer.
    fn check(&self, head: &response::Parts) -> Result<(), Error> {
        if head.status.is_success() {
            return Ok(());
        }
        if head.status == StatusCode::NOT_FOUND && self.has_session {
            self.is_gone.store(true, Ordering::Relaxed);
            return Err(unavailable(&self.server, "it has ended the session"));
        }
        let why = format!("it answered with the status {}", head.status);
        Err(unavailable(&self.server, why))
    }

    /// What went wrong on the way, as an error of MCP.
    fn of_network(&self, error: Error, most: u64) -> Error {
        match error.code {
            ErrorCode::LimitHttpBytes => answer_too_long(&self.server, most),
            ErrorCode::HttpProtocol | ErrorCode::LimitHttpHeaders => {
                protocol(&self.server, error.message)
            }
            ErrorCode::NetUnreachable | ErrorCode::NetDenied | ErrorCode::LimitHttpTime => {
                unavailable(&self.server, error.message)
            }
            _ => error,
        }
    }
}

/// A call that is under way.
struct PendingCall {
    peer: Arc<WebPeer>,
    id: u64,
    is_over: bool,
}

impl Drop for PendingCall {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        // Where many are given up at once, a server is told of some: it is of no use to it, but for the work it saves.
        let Ok(turn) = self.peer.cancels.clone().try_acquire_owned() else {
            return;
        };
        let (peer, id) = (self.peer.clone(), self.id);
        self.peer.runtime.spawn(async move {
            // Whoever gave the call up wants to hear nothing of it.
            drop(timeout(CANCELLING, peer.tell(rpc::cancelled(id))).await);
            drop(turn);
        });
    }
}
