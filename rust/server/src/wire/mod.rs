//! WebSocket frames on a TCP connection, read and written by the piece.
//!
//! A library that hands out whole messages holds each one, and a copy of each answer, before anybody can say how much
//! that may be. Here the bytes of a message are charged before there is room for them, and an answer of any length goes
//! out through one small buffer. The handshake, the layout of headers and the codes are tungstenite's.

mod message;
mod reader;
mod writer;

use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

pub(crate) use self::message::{Message, Payload, SMALL_BYTES};
pub(crate) use self::reader::{Bounds, Fault, MessageReader};
pub(crate) use self::writer::{MessageWriter, Taken};

/// What one connection holds beside its messages and answers: both buffers, its tasks, small messages and small
/// answers.
pub(crate) const CONNECTION_BYTES: u64 = 64 << 10;

/// Both ways of one connection.
pub(crate) struct Wire {
    pub(crate) reader: MessageReader,
    pub(crate) writer: MessageWriter,
}

impl Wire {
    pub(crate) fn new(stream: TcpStream, bounds: Bounds) -> Self {
        let (read, write) = stream.into_split();
        Self {
            reader: MessageReader::new(read, bounds),
            writer: MessageWriter::new(write),
        }
    }

    /// Both ways of the connection for something else than messages, with what was read ahead.
    pub(crate) fn into_parts(self) -> (OwnedReadHalf, OwnedWriteHalf, Vec<u8>) {
        let (read, ahead) = self.reader.into_parts();
        (read, self.writer.into_half(), ahead)
    }
}

#[cfg(test)]
pub(crate) mod tests;
