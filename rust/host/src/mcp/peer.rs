//! A conversation with a server, by lines or by HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::failure::{protocol, unavailable};
use super::group::Group;
use super::line::Line;
use super::outgoing::{Outgoing, WeakOutgoing};
use super::rpc;
use super::waiting::Waiting;
use super::web::WebPeer;
use crate::Error;
use crate::network::running::Running;

/// A server that has said hello.
#[derive(Debug)]
pub(crate) enum Peer {
    Lines(LinePeer),
    Web(Arc<WebPeer>),
}

impl Peer {
    /// What it said.
    pub(crate) fn hello(&self) -> &str {
        match self {
            Self::Lines(peer) => &peer.hello,
            Self::Web(peer) => peer.hello(),
        }
    }

    /// Whether it is of no more use.
    pub(crate) fn is_gone(&self) -> bool {
        match self {
            Self::Lines(peer) => peer.link.waiting.gone().is_some(),
            Self::Web(peer) => peer.is_gone(),
        }
    }

    /// Kills its processes, where those are the engine's.
    pub(crate) fn kill(&self) {
        if let Self::Lines(peer) = self
            && let Some(group) = &peer.link.group
        {
            group.kill();
        }
    }

    /// The result of a call, as it was written, of at most `most` bytes. Dropping this before gives it up at the server
    /// too.
    ///
    /// # Errors
    /// `mcp-unavailable`, `mcp-protocol`, `mcp-error`, `limit-mcp-bytes`.
    pub(crate) async fn call(
        &self,
        method: &str,
        params: &str,
        most: u64,
    ) -> Result<String, Error> {
        match self {
            Self::Lines(peer) => peer.link.call(method, params, most).await,
            Self::Web(peer) => peer.call(method, params, most).await,
        }
    }
}

/// The two ways of lines to a server and back.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) server: Arc<str>,
    pub(crate) outgoing: Outgoing,
    pub(crate) waiting: Arc<Waiting>,
    next: AtomicU64,
    /// What carries the lines; it ends with this.
    _carrier: Running,
    /// Its processes, where those are the engine's.
    group: Option<Group>,
}

/// A server that is spoken to by lines.
#[derive(Debug)]
pub(crate) struct LinePeer {
    link: Link,
    hello: String,
}

impl LinePeer {
    /// Says hello, whose answer may have `most` bytes.
    ///
    /// # Errors
    /// `mcp-unavailable`, `mcp-protocol`, `mcp-error`.
    pub(crate) async fn open(link: Link, most: u64) -> Result<Self, Error> {
        let hello = link.call("initialize", &rpc::hello(), most).await?;
        rpc::version(&hello).map_err(|why| protocol(&link.server, why))?;
        link.send(rpc::initialized()).await?;
        Ok(Self { link, hello })
    }
}

impl Link {
    /// A link whose lines `carrier` carries.
    pub(crate) fn new(
        outgoing: Outgoing,
        (server, waiting): (Arc<str>, Arc<Waiting>),
        carrier: Running,
    ) -> Self {
        Self {
            server,
            outgoing,
            waiting,
            next: AtomicU64::new(0),
            _carrier: carrier,
            group: None,
        }
    }

    /// The same to a server whose processes end with the link.
    pub(crate) fn with_group(self, group: Group) -> Self {
        Self {
            group: Some(group),
            ..self
        }
    }

    async fn call(&self, method: &str, params: &str, most: u64) -> Result<String, Error> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let answer = self.waiting.enter(id, most)?;
        let pending = PendingCall { link: self, id };
        self.send(rpc::request(id, method, params)).await?;
        let answer = answer.await.unwrap_or_else(|_| Err(self.lost()));
        drop(pending);
        answer
    }

    async fn send(&self, line: String) -> Result<(), Error> {
        match self.outgoing.send(line).await {
            true => Ok(()),
            false => Err(self.lost()),
        }
    }

    /// Why nothing is carried any more.
    fn lost(&self) -> Error {
        let gone = self.waiting.gone();
        gone.unwrap_or_else(|| unavailable(&self.server, "it has ended"))
    }
}

/// A call that is under way.
struct PendingCall<'a> {
    link: &'a Link,
    id: u64,
}

impl Drop for PendingCall<'_> {
    fn drop(&mut self) {
        if self.link.waiting.leave(self.id) {
            // A server that does not read is not told; what it answers is dropped all the same.
            self.link.outgoing.try_send(rpc::cancelled(self.id));
        }
    }
}

/// Takes a line of a server, and answers where it asks. What it asks while it does not read is not answered.
pub(crate) fn take(waiting: &Waiting, outgoing: &WeakOutgoing, line: Line) {
    if let Some(reply) = waiting.take(line)
        && let Some(outgoing) = outgoing.upgrade()
    {
        outgoing.try_send(reply);
    }
}
