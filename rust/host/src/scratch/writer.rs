//! A stream into a file of `/scratch`.
//!
//! | state | what it is | what comes next |
//! |---|---|---|
//! | `Ready` | a piece may be written | `Writing` |
//! | `Writing` | a piece is being written, and no other may be | `Ready`, `Failed` |
//! | `Failed` | the piece was not written | `Closed` once the program is told |
//! | `Closed` | nothing more is written | |
//!
//! Dropped while writing, it has the piece written, and holds the file, its permit and its charge until then; whoever
//! drops it waits for that. So a program that opens one stream after another has no more bytes waiting than it may have
//! streams. What was charged for a file that has no name any more is given back when the file is closed, behind the
//! write.

use std::fs::File;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use tokio::task::JoinHandle;
use wasmtime_wasi::async_trait;
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamError, StreamResult};

use super::change::{At, Change};
use super::descriptor::InScratch;
use super::folder::{Fault, Outcome};
use super::process_files::Holding;
use super::refusals::Refusals;
use super::turns::FileTurns;
use crate::limits::STREAM_BYTES;

/// Writes one piece after another.
pub(crate) struct Writer {
    target: Arc<Target>,
    at: At,
    state: State,
    refusals: Refusals,
}

/// What is written to, and what is held for that until the last piece is written.
struct Target {
    file: InScratch,
    turns: FileTurns,
    _holding: Holding,
}

enum State {
    Ready,
    /// So many bytes are being written.
    Writing(JoinHandle<Outcome<()>>, u64),
    Failed(Fault),
    Closed,
}

impl Writer {
    /// Writes from `at` on. The holding is that of [`STREAM_BYTES`].
    pub(crate) fn new(
        file: InScratch,
        at: At,
        (turns, holding): (FileTurns, Holding),
        refusals: Refusals,
    ) -> Self {
        Self {
            target: Arc::new(Target {
                file,
                turns,
                _holding: holding,
            }),
            at,
            state: State::Ready,
            refusals,
        }
    }

    /// Fails where the last piece was not written; the stream is closed then.
    fn check(&mut self) -> StreamResult<()> {
        match std::mem::replace(&mut self.state, State::Closed) {
            State::Closed => Err(StreamError::Closed),
            State::Failed(fault) => Err(self.refusals.stream_failed(fault)),
            state => {
                self.state = state;
                Ok(())
            }
        }
    }
}

impl Target {
    async fn write(self: Arc<Self>, bytes: Bytes, at: At) -> Outcome<()> {
        let work = move |change: &mut Change<'_>, file: &File| change.write(file, &bytes, at);
        self.file.change(&self.turns, work).await
    }
}

#[async_trait]
impl Pollable for Writer {
    async fn ready(&mut self) {
        let State::Writing(writing, n_bytes) = &mut self.state else {
            return;
        };
        let written = writing
            .await
            .unwrap_or_else(|failed| Err(Fault::Io(io::Error::other(failed))));
        if let At::Position(position) = &mut self.at {
            *position = position.saturating_add(*n_bytes);
        }
        self.state = match written {
            Ok(()) => State::Ready,
            Err(fault) => State::Failed(fault),
        };
    }
}

#[async_trait]
impl OutputStream for Writer {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.check()?;
        if bytes.len() > STREAM_BYTES || !matches!(self.state, State::Ready) {
            return Err(StreamError::trap(
                "a file was written to before it was ready, or more than it permitted; \
                 ask check-write before each write",
            ));
        }
        let n_bytes = bytes.len() as u64;
        let writing = tokio::spawn(self.target.clone().write(bytes, self.at));
        self.state = State::Writing(writing, n_bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.check()
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        self.check()?;
        Ok(match self.state {
            State::Ready => STREAM_BYTES,
            _ => 0,
        })
    }

    async fn cancel(&mut self) {
        self.ready().await;
    }
}
