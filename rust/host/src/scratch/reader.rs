//! A stream from a file: wasmtime's own, with what the engine holds for it.

use std::sync::Arc;

use bytes::Bytes;
use wasmtime_wasi::async_trait;
use wasmtime_wasi::p2::{DynInputStream, InputStream, Pollable, StreamResult};

use super::folder::OpenFile;
use super::held::Place;
use crate::budget::Charge;

/// Reads as `inner` does.
pub(crate) struct Reader {
    inner: DynInputStream,
    /// What the stream holds while it is there.
    _held: (Place, Option<Arc<OpenFile>>, Charge),
}

impl Reader {
    pub(crate) fn new(inner: DynInputStream, held: (Place, Option<Arc<OpenFile>>, Charge)) -> Self {
        Self { inner, _held: held }
    }
}

#[async_trait]
impl Pollable for Reader {
    async fn ready(&mut self) {
        self.inner.ready().await;
    }
}

#[async_trait]
impl InputStream for Reader {
    fn read(&mut self, n_bytes: usize) -> StreamResult<Bytes> {
        self.inner.read(n_bytes)
    }

    async fn blocking_read(&mut self, n_bytes: usize) -> StreamResult<Bytes> {
        self.inner.blocking_read(n_bytes).await
    }

    fn skip(&mut self, n_bytes: usize) -> StreamResult<usize> {
        self.inner.skip(n_bytes)
    }

    async fn blocking_skip(&mut self, n_bytes: usize) -> StreamResult<usize> {
        self.inner.blocking_skip(n_bytes).await
    }

    async fn cancel(&mut self) {
        self.inner.cancel().await;
    }
}
