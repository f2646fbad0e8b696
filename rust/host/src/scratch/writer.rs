//! A stream into a file of `/scratch`.

use std::fs::File;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use tokio::task::JoinHandle;
use wasmtime_wasi::async_trait;
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamError, StreamResult};

use super::change::At;
use super::folder::{Fault, Folder, OpenFile, Outcome};
use super::held::{Place, Refusals};

/// Bytes that one write may carry.
pub(crate) const WRITE_BYTES: usize = 64 << 10;

/// Writes one piece after another. A piece that is under way when the stream is dropped is written.
pub(crate) struct Writer {
    folder: Arc<Folder>,
    file: Arc<File>,
    at: At,
    state: State,
    refusals: Refusals,
    /// What the stream holds while it is there.
    _held: (Place, Option<Arc<OpenFile>>),
}

enum State {
    Ready,
    /// So many bytes are being written.
    Writing(JoinHandle<Outcome<()>>, u64),
    Failed(Fault),
    Closed,
}

impl Writer {
    pub(crate) fn new(
        folder: Arc<Folder>,
        file: Arc<File>,
        at: At,
        refusals: Refusals,
        held: (Place, Option<Arc<OpenFile>>),
    ) -> Self {
        Self {
            folder,
            file,
            at,
            state: State::Ready,
            refusals,
            _held: held,
        }
    }

    /// Fails where the last piece was not written; the stream is closed then.
    fn check(&mut self) -> StreamResult<()> {
        match std::mem::replace(&mut self.state, State::Closed) {
            State::Closed => Err(StreamError::Closed),
            State::Failed(Fault::Io(error)) => {
                // The libraries of most languages have one number for both, and ask whether it was the engine.
                self.refusals.forget();
                Err(StreamError::LastOperationFailed(error.into()))
            }
            State::Failed(Fault::Refused(error)) => {
                self.refusals.note(error.clone());
                Err(StreamError::LastOperationFailed(error.into()))
            }
            state => {
                self.state = state;
                Ok(())
            }
        }
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
            .unwrap_or_else(|panicked| Err(Fault::Io(io::Error::other(panicked))));
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
        if bytes.len() > WRITE_BYTES || !matches!(self.state, State::Ready) {
            return Err(StreamError::trap(
                "a file was written to before it was ready, or more than it permitted; \
                 ask check-write before each write",
            ));
        }
        let n_bytes = bytes.len() as u64;
        let (folder, file, at) = (self.folder.clone(), self.file.clone(), self.at);
        let writing = tokio::spawn(async move {
            folder
                .change(move |change| change.write(&file, &bytes, at))
                .await
        });
        self.state = State::Writing(writing, n_bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.check()
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        self.check()?;
        Ok(match self.state {
            State::Ready => WRITE_BYTES,
            _ => 0,
        })
    }
}
