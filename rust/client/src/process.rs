//! A process of a server, as the client that is attached to it sees it.

use std::sync::Arc;

use serde_json::json;

use crate::connection::Connection;
use crate::error::Error;
use crate::event::{Event, Returned};
use crate::shared::Unclaimed;
use crate::stream::Stream;
use crate::wire::{Fields, fields};

/// A launched program. One client at a time is attached to it and reads its events; each event is read once.
///
/// Every method fails with `connection-failed` when the connection broke: the process may go on, so attach to it again.
#[derive(Clone)]
pub struct Process {
    connection: Arc<Connection>,
    stream: Arc<Stream>,
    launch_seed: Option<u64>,
}

impl Process {
    pub(crate) fn new(connection: Arc<Connection>, unclaimed: Unclaimed) -> Self {
        let (stream, launch_seed) = unclaimed.claim();
        Self {
            connection,
            stream,
            launch_seed,
        }
    }

    /// Its number, which its server gives to no other process, also after it has started again.
    pub fn pid(&self) -> u64 {
        self.stream.pid()
    }

    /// The seed from which every unseeded draw derives; launching with it again repeats the run. None where another
    /// launched it.
    pub fn launch_seed(&self) -> Option<u64> {
        self.launch_seed
    }

    /// The events that were not read yet, in order; what is not read in time holds the program up, and nobody else.
    /// They are read in one place: of two [`Events`] the first that reads gets all of them, until it is dropped.
    pub fn events(&self) -> Events {
        Events {
            reader: self.stream.begin_reading(),
            stream: self.stream.clone(),
        }
    }

    /// Waits for the end and gives what the program returned. Events that nobody reads are passed over; while there are
    /// [`Events`] of the process, they are left to these.
    ///
    /// # Errors
    /// An error of the program, with its code; `details` have its parts: `kind`, `message`, `traceback` and the `pid`.
    /// `session-closed` after [`Process::detach`].
    pub async fn result(&self) -> Result<Returned, Error> {
        self.stream.ended().await?.into_result(self.pid())
    }

    /// Sends a message, which the program receives with `session.receive`.
    ///
    /// # Errors
    /// `limit-queue` when its queue is full (send again after it has received some), `limit-message` for a text that is
    /// too long, `session-closed` when the program has ended or the input was closed.
    pub async fn send(&self, text: &str) -> Result<(), Error> {
        self.tell("send", json!({ "pid": self.pid(), "text": text }))
            .await
    }

    /// Sends a signal: a message that the program receives with the others, in order.
    ///
    /// # Errors
    /// Those of [`Process::send`].
    pub async fn signal(&self, text: &str) -> Result<(), Error> {
        self.tell("signal", json!({ "pid": self.pid(), "text": text }))
            .await
    }

    /// Sends a file, which the program receives with `session.receive_file`.
    ///
    /// # Errors
    /// Those of [`Process::send`].
    pub async fn transfer_file(&self, data: &[u8]) -> Result<(), Error> {
        let header = fields(json!({ "type": "file", "pid": self.pid() }));
        self.connection.transfer(header, data).await
    }

    /// Says that no message and no file will follow: when the program has received what waits, its `receive` fails.
    ///
    /// # Errors
    /// Those of the connection.
    pub async fn close_input(&self) -> Result<(), Error> {
        self.tell("close_input", json!({ "pid": self.pid() })).await
    }

    /// Ends the program; its last event is the error `cancelled`, unless it has ended before.
    ///
    /// # Errors
    /// Those of the connection.
    pub async fn terminate(&self) -> Result<(), Error> {
        self.tell("terminate", json!({ "pid": self.pid() })).await
    }

    /// Leaves the process running for whoever attaches next. Events that were not read here are kept for them.
    ///
    /// # Errors
    /// Those of the connection.
    pub async fn detach(&self) -> Result<(), Error> {
        let pid = self.pid();
        self.connection
            .detach(fields(json!({ "pid": pid })), pid)
            .await
    }

    async fn tell(&self, kind: &str, message: serde_json::Value) -> Result<(), Error> {
        let message: Fields = fields(message);
        self.connection.request(kind, message).await.map(drop)
    }
}

/// A reader of the events of a process. Dropping it loses no event that it has not given.
pub struct Events {
    reader: u64,
    stream: Arc<Stream>,
}

impl Events {
    /// The next event; none after the last, [`Event::Return`] or [`Event::Error`]. A call that is dropped has taken
    /// nothing.
    ///
    /// # Errors
    /// `connection-failed` when the connection breaks, `session-closed` after [`Process::detach`], `future-taken` while
    /// there are other [`Events`] of the process that have begun to read.
    pub async fn next(&mut self) -> Result<Option<Event>, Error> {
        self.stream.read(self.reader).await
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.stream.end_reading(self.reader);
    }
}
