//! Lines of a server that a client runs: they travel over the connection of the client.

use std::fmt;
use std::sync::{Arc, Weak};

use tokio::sync::mpsc;

use super::failure::{shortened, unavailable};
use super::line::{Line, id_of};
use super::outgoing::{McpLine, Outgoing, WeakOutgoing};
use super::peer::{Link, take};
use super::waiting::Waiting;
use crate::Error;
use crate::budget::{Account, Charge, Purpose};
use crate::network::running::Running;

/// Lines of a server that are taken and not read yet. Each may be as long as a message of its client.
const INCOMING_LINES: usize = 4;
/// How many times its bytes a line takes while it is read: itself, and the result in it.
const COPIES: u64 = 2;
/// What a line takes beside its bytes.
const LINE_BYTES: u64 = 256;

/// Who carries lines to the servers of a client, and back.
pub trait McpRelay: Send + Sync + fmt::Debug {
    /// Asks the client to start a server, and takes the lines that are for it. What the server writes, and its end, is
    /// given to `incoming`. The server ends when `outgoing` does.
    ///
    /// # Errors
    /// Where the client is gone.
    fn open(
        &self,
        server: &str,
        outgoing: mpsc::Receiver<McpLine>,
        incoming: mpsc::Sender<McpIncoming>,
    ) -> Result<(), Error>;
}

/// What comes of a server that a client runs.
#[derive(Debug)]
pub enum McpIncoming {
    /// A line that it has written, without its end, and what it is charged until it was read.
    Line(String, Charge),
    /// A line that is not kept: the value of its member `id`, as it was written, and why.
    Unread(Option<String>, Error),
    /// It has ended, for that reason.
    Ended(String),
}

impl McpIncoming {
    /// A line of a server, which is charged to the user of its client before anything is read of it. One for which the
    /// user has no memory is not kept: the call that it answers fails.
    pub fn line(text: String, account: &Account) -> Self {
        let n_bytes = COPIES * text.len() as u64 + LINE_BYTES;
        match account.charge(Purpose::Queue, n_bytes) {
            Ok(charge) => Self::Line(text, charge),
            Err(error) => Self::Unread(id_of(text.as_bytes()), error),
        }
    }
}

/// Begins to speak to a server of a client, by lines of at most `most` bytes.
///
/// # Errors
/// `mcp-unavailable`.
pub(crate) fn start(
    server: &Arc<str>,
    relay: &Weak<dyn McpRelay>,
    most: usize,
) -> Result<Link, Error> {
    let gone = || unavailable(server, "the client that runs it has gone");
    let relay = relay.upgrade().ok_or_else(gone)?;
    let (outgoing, lines) = Outgoing::new();
    let (incoming, from_client) = mpsc::channel(INCOMING_LINES);
    relay.open(server, lines, incoming)?;
    let waiting = Waiting::new(server);
    let listening = listen(
        (server.clone(), waiting.clone()),
        outgoing.downgrade(),
        from_client,
        most,
    );
    let carrier = Running::from(tokio::spawn(listening));
    Ok(Link::new(outgoing, (server.clone(), waiting), carrier))
}

/// Takes what a server writes, until it ends.
async fn listen(
    (server, waiting): (Arc<str>, Arc<Waiting>),
    outgoing: WeakOutgoing,
    mut incoming: mpsc::Receiver<McpIncoming>,
    most: usize,
) {
    let why = loop {
        match incoming.recv().await {
            Some(McpIncoming::Line(line, charge)) => {
                let line = match line.len() > most {
                    true => Line::too_long(line.as_bytes()),
                    false => Line::Whole(line.into_bytes()),
                };
                take(&waiting, &outgoing, line);
                drop(charge);
            }
            Some(McpIncoming::Unread(id, error)) => waiting.refuse(id.as_deref(), error),
            Some(McpIncoming::Ended(why)) => {
                break shortened(&why);
            }
            None => break "the client that runs it has gone".to_owned(),
        }
    };
    waiting.end(unavailable(&server, why));
}
