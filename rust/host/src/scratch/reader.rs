//! A stream from a file.
//!
//! | state | what it is | what comes next |
//! |---|---|---|
//! | `Idle` | nobody has asked for bytes | `Reading` when somebody reads or waits |
//! | `Reading` | a piece is being read | `Read`; `Closed` at the end of the file; `Failed` |
//! | `Read` | a piece waits to be taken | `Idle` once it is taken |
//! | `Failed` | it could not be read | `Closed` once the program is told |
//! | `Closed` | there is no more | |
//!
//! A stream that is dropped while it is reading holds its permit and its charge until the piece is read, and whoever
//! drops it waits for that.

use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use bytes::Bytes;
use tokio::task::JoinHandle;
use wasmtime_wasi::async_trait;
use wasmtime_wasi::p2::{InputStream, Pollable, StreamError, StreamResult};

use super::descriptor::OpenDescriptor;
use super::folder::{Fault, Outcome};
use super::process_files::Holding;
use super::refusals::Refusals;
use super::turns::FileTurns;
use crate::limits::STREAM_BYTES;

/// Bytes that are read for a program that waits and has not said how many it wants.
const UNASKED_BYTES: usize = 4096;

/// Reads one piece after another.
pub(crate) struct Reader {
    source: Arc<Source>,
    position: u64,
    state: State,
    refusals: Refusals,
}

/// What is read from, and what is held for that until the last piece is read.
struct Source {
    open: Arc<OpenDescriptor>,
    turns: FileTurns,
    _holding: Holding,
}

enum State {
    Idle,
    Reading(JoinHandle<Outcome<Bytes>>),
    Read(Bytes),
    Failed(Fault),
    Closed,
}

impl Reader {
    /// Reads from `position` on. The holding is that of [`STREAM_BYTES`].
    pub(crate) fn new(
        open: Arc<OpenDescriptor>,
        position: u64,
        (turns, holding): (FileTurns, Holding),
        refusals: Refusals,
    ) -> Self {
        Self {
            source: Arc::new(Source {
                open,
                turns,
                _holding: holding,
            }),
            position,
            state: State::Idle,
            refusals,
        }
    }

    fn begin(&mut self, n_bytes: usize) {
        let (source, position) = (self.source.clone(), self.position);
        self.state = State::Reading(tokio::spawn(source.read(position, n_bytes)));
    }

    /// Waits for the piece that is being read, if any.
    async fn finish(&mut self) {
        if let State::Reading(reading) = &mut self.state {
            let read = reading.await;
            self.ended(read.unwrap_or_else(|failed| Err(io::Error::other(failed).into())));
        }
    }

    fn ended(&mut self, read: Outcome<Bytes>) {
        self.state = match read {
            Ok(bytes) if bytes.is_empty() => State::Closed,
            Ok(bytes) => State::Read(bytes),
            Err(fault) => State::Failed(fault),
        };
    }
}

impl Source {
    async fn read(self: Arc<Self>, position: u64, n_bytes: usize) -> Outcome<Bytes> {
        let source = self.clone();
        let reading = move || source.read_now(position, n_bytes.min(STREAM_BYTES));
        Ok(self.turns.run(reading).await??)
    }

    /// No bytes: the end of the file.
    fn read_now(&self, position: u64, n_bytes: usize) -> io::Result<Bytes> {
        let mut bytes = vec![0; n_bytes];
        loop {
            match self.open.file().read_at(&mut bytes, position) {
                Ok(n_read) => {
                    bytes.truncate(n_read);
                    return Ok(bytes.into());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[async_trait]
impl Pollable for Reader {
    async fn ready(&mut self) {
        if let State::Idle = self.state {
            self.begin(UNASKED_BYTES);
        }
        self.finish().await;
    }
}

#[async_trait]
impl InputStream for Reader {
    fn read(&mut self, n_bytes: usize) -> StreamResult<Bytes> {
        match std::mem::replace(&mut self.state, State::Closed) {
            State::Idle => {
                self.state = State::Idle;
                if n_bytes > 0 {
                    self.begin(n_bytes);
                }
                Ok(Bytes::new())
            }
            State::Reading(reading) => {
                self.state = State::Reading(reading);
                Ok(Bytes::new())
            }
            State::Read(mut bytes) => {
                let part = bytes.split_to(n_bytes.min(bytes.len()));
                self.position += part.len() as u64;
                self.state = match bytes.is_empty() {
                    true => State::Idle,
                    false => State::Read(bytes),
                };
                Ok(part)
            }
            State::Failed(fault) => Err(self.refusals.stream_failed(fault)),
            State::Closed => Err(StreamError::Closed),
        }
    }

    /// The program waits for the piece: no task has to be woken for it.
    async fn blocking_read(&mut self, n_bytes: usize) -> StreamResult<Bytes> {
        self.finish().await;
        if n_bytes > 0
            && let State::Idle = self.state
        {
            let read = self.source.clone().read(self.position, n_bytes).await;
            self.ended(read);
        }
        self.read(n_bytes)
    }

    async fn cancel(&mut self) {
        self.finish().await;
    }
}
