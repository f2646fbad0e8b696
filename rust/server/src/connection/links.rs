//! The MCP servers that the client of one connection runs: each is a link, by which lines travel both ways.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use pie_host::{Account, Error, ErrorCode, McpIncoming, McpLine, McpRelay};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::writer::Outbox;
use crate::protocol::outgoing;
use crate::sync::lock;
use crate::threads::Part;

/// Links of one connection at once: twice as many as it may register servers, for those that are replaced while
/// programs still use them. Clients carry twice as many, as a link may end here before its process has.
const MAX_LINKS: usize = 512;

/// The links of one connection.
pub(crate) struct McpLinks {
    outbox: Outbox,
    /// Who pays for what servers write until it was read.
    account: Account,
    /// What the user has of the threads.
    part: Arc<Part>,
    runtime: Handle,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// The connection has ended.
    is_over: bool,
    /// The number of the last link.
    last: u64,
    links: HashMap<u64, Link>,
}

struct Link {
    incoming: mpsc::Sender<McpIncoming>,
    carrier: AbortHandle,
}

impl State {
    /// Checks that there may be one more link.
    fn check_room(&self, server: &str) -> Result<(), Error> {
        if self.is_over {
            let message = format!(
                "the client that runs the MCP server {server:?} has gone; launch the program again"
            );
            return Err(Error::new(ErrorCode::McpUnavailable, message));
        }
        if self.links.len() >= MAX_LINKS {
            let message = format!(
                "the client that runs the MCP server {server:?} runs {MAX_LINKS} of them already, the most at once; close sessions that are not used"
            );
            return Err(Error::new(ErrorCode::LimitMcpCalls, message));
        }
        Ok(())
    }
}

impl fmt::Debug for McpLinks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("McpLinks").finish_non_exhaustive()
    }
}

impl McpLinks {
    /// Those of a new connection of a user with this account and this part. It is called where the server runs.
    pub(crate) fn new(outbox: Outbox, account: Account, part: Arc<Part>) -> Arc<Self> {
        Arc::new(Self {
            outbox,
            account,
            part,
            runtime: Handle::current(),
            state: Arc::default(),
        })
    }

    /// Hands on a line that a server of the client has written. One of a link that has ended is dropped.
    pub(crate) async fn line(&self, link: u64, text: String) {
        let incoming = lock(&self.state)
            .links
            .get(&link)
            .map(|link| link.incoming.clone());
        if let Some(incoming) = incoming {
            // Where nobody listens, nobody waits for it.
            let line = McpIncoming::line(text, &self.account);
            drop(incoming.send(line).await);
        }
    }

    /// A server of the client has ended. A link that has ended stays so.
    pub(crate) async fn end(&self, link: u64, why: String) {
        let ended = lock(&self.state).links.remove(&link);
        if let Some(ended) = ended {
            ended.carrier.abort();
            drop(ended.incoming.send(McpIncoming::Ended(why)).await);
        }
    }

    /// The connection has ended, and all links with it.
    pub(crate) fn close(&self) {
        let mut state = lock(&self.state);
        state.is_over = true;
        for (_, link) in state.links.drain() {
            link.carrier.abort();
        }
    }
}

impl McpRelay for McpLinks {
    fn open(
        &self,
        server: &str,
        outgoing: mpsc::Receiver<McpLine>,
        incoming: mpsc::Sender<McpIncoming>,
    ) -> Result<(), Error> {
        let mut state = lock(&self.state);
        state.check_room(server)?;
        state.last += 1;
        let link = state.last;
        let carrying = carry(
            (link, server.to_owned()),
            outgoing,
            self.outbox.clone(),
            self.state.clone(),
        );
        let carrier = self.runtime.spawn(self.part.doing(carrying));
        let carrier = carrier.abort_handle();
        state.links.insert(link, Link { incoming, carrier });
        Ok(())
    }
}

/// Carries what a server is told to the client, until nobody tells it anything any more.
async fn carry(
    (link, server): (u64, String),
    mut lines: mpsc::Receiver<McpLine>,
    outbox: Outbox,
    state: Arc<Mutex<State>>,
) {
    outbox.notice(outgoing::mcp_start(link, &server)).await;
    while let Some(line) = lines.recv().await {
        outbox.notice(outgoing::mcp_line(link, &line)).await;
    }
    lock(&state).links.remove(&link);
    outbox.notice(outgoing::mcp_stop(link)).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_connection_has_its_most_links() {
        let mut state = State::default();
        for number in 0..MAX_LINKS as u64 {
            state.check_room("files").unwrap();
            let link = Link {
                incoming: mpsc::channel(1).0,
                carrier: tokio::spawn(async {}).abort_handle(),
            };
            state.links.insert(number, link);
        }
        let refused = state.check_room("files").unwrap_err();
        assert_eq!(refused.code, ErrorCode::LimitMcpCalls);
        assert!(refused.message.contains("runs 512 of them already"));
        state.links.remove(&0);
        state.check_room("files").unwrap();
        state.is_over = true;
        let refused = state.check_room("files").unwrap_err();
        assert_eq!(refused.code, ErrorCode::McpUnavailable);
    }
}
