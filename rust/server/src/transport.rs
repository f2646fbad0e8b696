//! The bytes of one connection, and whether the client takes them.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// How often the client made room where there was none. What fits into the buffers of the system says nothing about the client.
#[derive(Clone, Debug, Default)]
pub(crate) struct Taken(Arc<AtomicU64>);

impl Taken {
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A TCP connection that tells when its client takes something.
#[derive(Debug)]
pub(crate) struct Transport {
    stream: TcpStream,
    taken: Taken,
    /// The last write found no room.
    is_full: bool,
}

impl Transport {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            taken: Taken::default(),
            is_full: false,
        }
    }

    pub(crate) fn taken(&self) -> Taken {
        self.taken.clone()
    }

    fn note<T>(&mut self, written: Poll<T>) -> Poll<T> {
        let was_full = self.is_full;
        self.is_full = written.is_pending();
        if was_full && !self.is_full {
            self.taken.0.fetch_add(1, Ordering::Relaxed);
        }
        written
    }
}

impl AsyncRead for Transport {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Transport {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.note(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.note(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
