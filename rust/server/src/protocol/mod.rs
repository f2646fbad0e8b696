//! The messages of `docs/reference/protocol.md`: reading those of clients, writing those of the server.

pub(crate) mod body;
pub(crate) mod incoming;
pub(crate) mod outgoing;

use pie_host::{Error, ErrorCode};

/// The version that this server speaks.
pub(crate) const VERSION: u64 = 1;
/// Requests of one connection that may be open at once.
pub(crate) const OPEN_REQUESTS: usize = 64;
/// Bytes of one part of an upload.
pub(crate) const UPLOAD_PART_BYTES: usize = 1 << 20;

/// Bytes of what is told about a message: it may repeat what the client wrote.
const MAX_TOLD_BYTES: usize = 1 << 10;

/// A message that does not follow the protocol.
pub(crate) fn violation(message: impl Into<String>) -> Error {
    let mut message = message.into();
    message.truncate(message.floor_char_boundary(MAX_TOLD_BYTES));
    Error::new(ErrorCode::ProtocolError, message)
}
