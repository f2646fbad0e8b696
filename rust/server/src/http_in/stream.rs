//! The bytes of a connection, as hyper wants them: checked ([`super::input`]), and with a bound on how long a client
//! may take nothing. At its end what the client still sends is thrown away for a moment: closing with bytes unread
//! would take the last answer back.

use std::any::Any;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use hyper::rt::{ReadBufCursor, Sleep, Timer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use super::input::{CheckedInput, Next};

/// Bytes that are read at once.
const STRIDE_BYTES: usize = 8 << 10;
/// How long, and how much of, what a client still sends is thrown away.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 32 << 20;

/// Both ways of a connection.
pub(super) struct ClientStream {
    /// None once it has ended.
    halves: Option<(OwnedReadHalf, OwnedWriteHalf)>,
    input: CheckedInput,
    /// How long the client may take nothing.
    patience: Duration,
    /// When that time is over; none while the client takes what it gets.
    stalled: Option<Pin<Box<tokio::time::Sleep>>>,
    /// What is held as long as the connection is open.
    kept: Option<Box<dyn Any + Send>>,
}

impl ClientStream {
    /// A connection that keeps something as long as it is open.
    pub(super) fn new(
        halves: (OwnedReadHalf, OwnedWriteHalf),
        input: CheckedInput,
        patience: Duration,
        kept: impl Any + Send,
    ) -> Self {
        Self {
            halves: Some(halves),
            input,
            patience,
            stalled: None,
            kept: Some(Box::new(kept)),
        }
    }
}

impl Drop for ClientStream {
    fn drop(&mut self) {
        // Without a runtime nobody is left who could read.
        if let Some(halves) = self.halves.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let kept = self.kept.take();
            runtime.spawn(async move {
                // A client that does not end in time is cut off.
                drop(tokio::time::timeout(LINGER, linger(halves)).await);
                drop(kept);
            });
        }
    }
}

/// Says that nothing more comes, and reads what still does.
async fn linger((mut read, mut write): (OwnedReadHalf, OwnedWriteHalf)) {
    if write.shutdown().await.is_err() {
        return;
    }
    let mut bytes = vec![0; STRIDE_BYTES];
    let mut n_bytes = 0;
    while n_bytes < LINGER_BYTES {
        match read.read(&mut bytes).await {
            Ok(more @ 1..) => n_bytes += more,
            Ok(0) | Err(_) => return,
        }
    }
}

/// The error of a connection that has ended.
fn ended() -> io::Error {
    io::ErrorKind::NotConnected.into()
}

impl hyper::rt::Read for ClientStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let most = buffer.remaining().min(STRIDE_BYTES);
        loop {
            match this.input.next(most) {
                Ok(Next::Bytes(bytes)) => {
                    buffer.put_slice(bytes);
                    return Poll::Ready(Ok(()));
                }
                // Nobody has to be woken: the connection ends with the answer that says why.
                Ok(Next::Over) => return Poll::Pending,
                Ok(Next::More) => {}
                Err(error) => {
                    let invalid = io::ErrorKind::InvalidData;
                    return Poll::Ready(Err(io::Error::new(invalid, error.message)));
                }
            }
            let mut bytes = [0; STRIDE_BYTES];
            let mut read = ReadBuf::new(&mut bytes);
            let Some((half, _)) = &mut this.halves else {
                return Poll::Ready(Err(ended()));
            };
            ready!(Pin::new(half).poll_read(context, &mut read))?;
            if read.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            this.input.add(read.filled());
        }
    }
}

impl hyper::rt::Write for ClientStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        let Some((_, half)) = &mut this.halves else {
            return Poll::Ready(Err(ended()));
        };
        if let Poll::Ready(written) = Pin::new(half).poll_write(context, bytes) {
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
        match &mut self.halves {
            Some((_, half)) => Pin::new(half).poll_flush(context),
            None => Poll::Ready(Err(ended())),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.halves {
            Some((_, half)) => Pin::new(half).poll_shutdown(context),
            None => Poll::Ready(Err(ended())),
        }
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
