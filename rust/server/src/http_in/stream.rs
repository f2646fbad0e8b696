//! The bytes of a connection, as hyper wants them: those that were read ahead first, and with a bound on how long a
//! client may take nothing.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use hyper::rt::{ReadBufCursor, Sleep, Timer};
use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

/// Bytes that are read at once.
const STRIDE_BYTES: usize = 8 << 10;

/// Both ways of a connection.
pub(super) struct ClientStream {
    read: OwnedReadHalf,
    write: OwnedWriteHalf,
    /// What was read already is `ahead[start..]`.
    ahead: Vec<u8>,
    start: usize,
    /// How long the client may take nothing.
    patience: Duration,
    /// When that time is over; none while the client takes what it gets.
    stalled: Option<Pin<Box<tokio::time::Sleep>>>,
}

impl ClientStream {
    pub(super) const fn new(
        read: OwnedReadHalf,
        write: OwnedWriteHalf,
        ahead: Vec<u8>,
        patience: Duration,
    ) -> Self {
        Self {
            read,
            write,
            ahead,
            start: 0,
            patience,
            stalled: None,
        }
    }
}

impl hyper::rt::Read for ClientStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let most = buffer.remaining().min(STRIDE_BYTES);
        if this.start < this.ahead.len() {
            let n_bytes = most.min(this.ahead.len() - this.start);
            buffer.put_slice(&this.ahead[this.start..this.start + n_bytes]);
            this.start += n_bytes;
            if this.start == this.ahead.len() {
                (this.ahead, this.start) = (Vec::new(), 0);
            }
            return Poll::Ready(Ok(()));
        }
        let mut bytes = [0; STRIDE_BYTES];
        let mut read = ReadBuf::new(&mut bytes[..most]);
        ready!(Pin::new(&mut this.read).poll_read(context, &mut read))?;
        buffer.put_slice(read.filled());
        Poll::Ready(Ok(()))
    }
}

impl hyper::rt::Write for ClientStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        if let Poll::Ready(written) = Pin::new(&mut this.write).poll_write(context, bytes) {
            this.stalled = None;
            return Poll::Ready(written);
        }
        let patience = this.patience;
        let stalled = this
            .stalled
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        ready!(stalled.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.write).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.write).poll_shutdown(context)
    }
}

/// The clock of the runtime, for hyper.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock;

impl Timer for Clock {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        Box::pin(Sleeping(Box::pin(tokio::time::sleep(duration))))
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(Sleeping(Box::pin(tokio::time::sleep_until(
            deadline.into(),
        ))))
    }
}

struct Sleeping(Pin<Box<tokio::time::Sleep>>);

impl Future for Sleeping {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(context)
    }
}

impl Sleep for Sleeping {}
