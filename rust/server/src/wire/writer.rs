//! Writing messages through one small buffer, and whether the client takes them.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::net::tcp::OwnedWriteHalf;
use tokio::time::timeout;
use tungstenite::protocol::frame::FrameHeader;
use tungstenite::protocol::frame::coding::{CloseCode, Control, Data, OpCode};

use crate::protocol::body::Body;
use crate::threads::TimeSlice;

/// Bytes that are handed to the system at once.
const PIECE_BYTES: usize = 16 << 10;

/// How often the client made room where there was none. What fits into the buffers of the system says nothing about the
/// client.
#[derive(Clone, Debug, Default)]
pub(crate) struct Taken(Arc<AtomicU64>);

impl Taken {
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The way to one client. After a failure nothing more can be written.
pub(crate) struct MessageWriter {
    half: OwnedWriteHalf,
    taken: Taken,
    buffer: Vec<u8>,
    /// How long the client may take nothing.
    patience: Duration,
    time_slice: TimeSlice,
}

impl MessageWriter {
    pub(super) fn new(half: OwnedWriteHalf) -> Self {
        Self {
            half,
            taken: Taken::default(),
            buffer: Vec::new(),
            // Until the hello, somebody else looks at the clock.
            patience: Duration::MAX,
            time_slice: TimeSlice::new(),
        }
    }

    /// The way itself.
    pub(super) fn into_half(self) -> OwnedWriteHalf {
        self.half
    }

    pub(crate) fn taken(&self) -> Taken {
        self.taken.clone()
    }

    /// From now on, writing fails when the client takes nothing for so long.
    pub(crate) fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }

    /// Writes a message; `before_end` is called when only its last piece is left.
    ///
    /// # Errors
    /// When the client has gone, or takes nothing.
    pub(crate) async fn send(&mut self, body: &Body, before_end: impl FnOnce()) -> io::Result<()> {
        let opcode = if body.is_binary() {
            Data::Binary
        } else {
            Data::Text
        };
        let n_bytes = body.count().await;
        self.begin(OpCode::Data(opcode), n_bytes)?;
        let mut pieces = body.pieces();
        while pieces.fill(&mut self.buffer, PIECE_BYTES) {
            self.flush().await?;
        }
        before_end();
        self.flush().await
    }

    pub(crate) async fn ping(&mut self) -> io::Result<()> {
        self.control(Control::Ping, &[]).await
    }

    pub(crate) async fn pong(&mut self, payload: &[u8]) -> io::Result<()> {
        self.control(Control::Pong, payload).await
    }

    /// Says goodbye, and that nothing more will come.
    pub(crate) async fn close(&mut self, code: CloseCode, reason: &str) -> io::Result<()> {
        let mut payload = u16::from(code).to_be_bytes().to_vec();
        payload.extend(reason.as_bytes());
        self.control(Control::Close, &payload).await?;
        // The socket is shut down as the half is dropped.
        Ok(())
    }

    /// Writes bytes that are no frame: the answer to the upgrade.
    pub(crate) async fn raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.buffer.extend_from_slice(bytes);
        self.flush().await
    }

    async fn control(&mut self, control: Control, payload: &[u8]) -> io::Result<()> {
        self.begin(OpCode::Control(control), payload.len())?;
        self.buffer.extend_from_slice(payload);
        self.flush().await
    }

    fn begin(&mut self, opcode: OpCode, n_bytes: usize) -> io::Result<()> {
        let header = FrameHeader {
            opcode,
            ..FrameHeader::default()
        };
        header
            .format(n_bytes as u64, &mut self.buffer)
            .map_err(io::Error::other)
    }

    /// Hands what stands in the buffer to the system. However fast the client takes it, others get their turn.
    async fn flush(&mut self) -> io::Result<()> {
        self.time_slice.pause().await;
        let mut written = 0;
        while written < self.buffer.len() {
            match self.half.try_write(&self.buffer[written..]) {
                Ok(0) => return Err(io::ErrorKind::ConnectionReset.into()),
                Ok(n_bytes) => written += n_bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let room = timeout(self.patience, self.half.writable()).await;
                    room.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
                    self.taken.0.fetch_add(1, Ordering::Relaxed);
                }
                Err(error) => return Err(error),
            }
        }
        self.buffer.clear();
        Ok(())
    }
}
