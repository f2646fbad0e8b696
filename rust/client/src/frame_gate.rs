//! Keeps messages of a server within a bound, which changes: before the hello it is small, and then it follows from
//! what the server says that it sends. The library of the WebSocket knows one bound for the whole life of a connection,
//! and reserves memory by what the head of a frame announces. So each head is read here before the library sees it, and
//! a message that is too long fails the connection there.
//!
//! | state | next |
//! |---|---|
//! | answer to the upgrade | head, or refused: anything may follow |
//! | head of a frame | payload, or too long: nothing may follow |
//! | payload | head |

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What ends the answer to the upgrade.
const END: &[u8; 4] = b"\r\n\r\n";
/// How that answer begins where the server follows: `HTTP/1.1 101`.
const STATUS_BYTES: usize = 12;
const SWITCHING: &[u8] = b" 101";
/// The longest head of a frame: two bytes, eight of a length, four of a mask.
const MAX_HEAD_BYTES: usize = 14;

/// The error of a message that is longer than the bound.
#[derive(Debug)]
pub(crate) struct TooLong;

impl fmt::Display for TooLong {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a message is longer than it may be")
    }
}

impl std::error::Error for TooLong {}

impl TooLong {
    /// Whether that is what went wrong.
    pub(crate) fn is(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|inner| inner.is::<Self>())
    }
}

/// A stream of bytes from a server, whose messages are bounded.
pub(crate) struct FrameGate<S> {
    stream: S,
    most_bytes: u64,
    frames: Frames,
}

impl<S> FrameGate<S> {
    /// A connection that begins; its messages have at most `most_bytes`.
    pub(crate) fn new(stream: S, most_bytes: u64) -> Self {
        Self {
            stream,
            most_bytes,
            frames: Frames::default(),
        }
    }

    /// From now on messages have at most so many bytes.
    pub(crate) fn allow(&mut self, most_bytes: u64) {
        self.most_bytes = most_bytes;
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for FrameGate<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(context, buffer))?;
        let read = buffer.filled().get(before..).unwrap_or_default();
        if let Err(error) = this.frames.feed(read, this.most_bytes) {
            buffer.set_filled(before);
            return Poll::Ready(Err(io::Error::other(error)));
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for FrameGate<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// How far the bytes of a server have come.
#[derive(Debug, Default)]
struct Frames {
    state: State,
    /// Bytes of the message of which this is a frame, in the frames that have come.
    message_bytes: u64,
}

#[derive(Debug)]
enum State {
    /// In the answer to the upgrade: its first bytes, and how much of its end has come.
    Upgrade { status: Vec<u8>, n_end: usize },
    /// In the head of a frame, of which this has come.
    Head(Vec<u8>),
    /// In the payload of a frame, of which so many bytes are to come.
    Payload(u64),
    /// It is not a WebSocket.
    Refused,
    /// A message was too long.
    TooLong,
}

impl Default for State {
    fn default() -> Self {
        Self::Upgrade {
            status: Vec::new(),
            n_end: 0,
        }
    }
}

impl Frames {
    /// Takes the next bytes.
    fn feed(&mut self, mut bytes: &[u8], most_bytes: u64) -> Result<(), TooLong> {
        while let Some((&byte, rest)) = bytes.split_first() {
            match &mut self.state {
                State::Refused => return Ok(()),
                State::TooLong => return Err(TooLong),
                State::Payload(left) => {
                    let n_bytes = usize::try_from(*left).unwrap_or(usize::MAX);
                    let n_bytes = n_bytes.min(bytes.len());
                    bytes = bytes.get(n_bytes..).unwrap_or_default();
                    *left -= n_bytes as u64;
                    if *left == 0 {
                        self.state = State::Head(Vec::new());
                    }
                }
                State::Upgrade { status, n_end } => {
                    bytes = rest;
                    if status.len() < STATUS_BYTES {
                        status.push(byte);
                    }
                    *n_end = match END.get(*n_end) {
                        Some(expected) if *expected == byte => *n_end + 1,
                        _ => usize::from(byte == b'\r'),
                    };
                    if *n_end == END.len() {
                        self.state = match status.ends_with(SWITCHING) {
                            true => State::Head(Vec::new()),
                            false => State::Refused,
                        };
                    }
                }
                State::Head(head) => {
                    bytes = rest;
                    head.push(byte);
                    if let Some((is_data, begins, n_bytes)) = read_head(head) {
                        self.begin(is_data, begins, n_bytes, most_bytes)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The payload of a frame of so many bytes begins; one that `begins` a message is its first.
    fn begin(
        &mut self,
        is_data: bool,
        begins: bool,
        n_bytes: u64,
        most_bytes: u64,
    ) -> Result<(), TooLong> {
        let before = if begins { 0 } else { self.message_bytes };
        let message_bytes = before.saturating_add(n_bytes);
        if message_bytes > most_bytes {
            self.state = State::TooLong;
            return Err(TooLong);
        }
        // What controls the connection stands between the frames of a message.
        if is_data {
            self.message_bytes = message_bytes;
        }
        self.state = match n_bytes {
            0 => State::Head(Vec::new()),
            n_bytes => State::Payload(n_bytes),
        };
        Ok(())
    }
}

/// Whether a frame has data, and begins a message, and the bytes of its payload; none where its head is not whole. See
/// RFC 6455, section 5.2.
fn read_head(head: &[u8]) -> Option<(bool, bool, u64)> {
    debug_assert!(
        head.len() <= MAX_HEAD_BYTES,
        "a head is read once it is whole"
    );
    let (&[kind, length], rest) = head.split_first_chunk::<2>()?;
    let (n_bytes, rest) = match length & 0x7f {
        126 => {
            let (length, rest) = rest.split_first_chunk::<2>()?;
            (u64::from(u16::from_be_bytes(*length)), rest)
        }
        127 => {
            let (length, rest) = rest.split_first_chunk::<8>()?;
            (u64::from_be_bytes(*length), rest)
        }
        short => (u64::from(short), rest),
    };
    // A server masks nothing; where one does, the library says so.
    if length & 0x80 != 0 && rest.len() < 4 {
        return None;
    }
    let opcode = kind & 0x0f;
    Some((opcode < 8, opcode != 0, n_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const UPGRADE: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\nA: \r\r\n\r\n";

    /// The head of a frame.
    fn head(kind: u8, n_bytes: u64) -> Vec<u8> {
        let mut head = vec![kind];
        match (u8::try_from(n_bytes), u16::try_from(n_bytes)) {
            (Ok(n_bytes @ ..126), _) => head.push(n_bytes),
            (_, Ok(n_bytes)) => {
                head.push(126);
                head.extend(n_bytes.to_be_bytes());
            }
            _ => {
                head.push(127);
                head.extend(n_bytes.to_be_bytes());
            }
        }
        head
    }

    fn frame(kind: u8, n_bytes: usize) -> Vec<u8> {
        // What stands in a payload is no head.
        [head(kind, n_bytes as u64), vec![0xff; n_bytes]].concat()
    }

    /// Whether a server may say that, in pieces of any length.
    fn passes(frames: &[Vec<u8>], most_bytes: u64) -> bool {
        let bytes = [UPGRADE, &frames.concat()].concat();
        let by_piece = |n: usize| {
            let mut gate = Frames::default();
            let mut pieces = bytes.chunks(n);
            pieces.all(|piece| gate.feed(piece, most_bytes).is_ok())
        };
        let all: Vec<_> = [1, 2, 3, 7, 64, bytes.len()].map(by_piece).into();
        assert!(all.iter().all(|one| *one == all[0]), "{all:?}");
        all[0]
    }

    #[test]
    fn messages_are_bounded_whatever_frames_they_have() {
        const TEXT: u8 = 0x81;
        const TEXT_BEGINS: u8 = 0x01;
        const GOES_ON: u8 = 0x00;
        const ENDS: u8 = 0x80;
        const PING: u8 = 0x89;
        for n_bytes in [0, 1, 125, 126, 127, 65_535, 65_536] {
            let frames = [frame(TEXT, n_bytes), frame(TEXT, n_bytes)];
            assert!(passes(&frames, n_bytes as u64), "{n_bytes}");
            if n_bytes > 0 {
                assert!(!passes(&frames, n_bytes as u64 - 1), "{n_bytes}");
            }
        }
        let parts = [
            frame(TEXT_BEGINS, 60),
            frame(PING, 100),
            frame(GOES_ON, 30),
            frame(ENDS, 10),
            frame(TEXT, 100),
        ];
        assert!(passes(&parts, 100) && !passes(&parts, 99));
        // Nothing comes through behind it, however short.
        let mut gate = Frames::default();
        for piece in [UPGRADE, &frame(TEXT, 0)] {
            assert!(gate.feed(piece, 9).is_ok());
        }
        for piece in [&frame(TEXT, 10), &frame(TEXT, 1)] {
            assert!(gate.feed(piece, 9).is_err());
        }
        // The head alone says it.
        assert!(!passes(&[head(TEXT, u64::MAX)], 1 << 30));
        assert!(!passes(
            &[frame(TEXT_BEGINS, 60), head(GOES_ON, u64::MAX)],
            1 << 30
        ));
    }

    #[test]
    fn what_is_no_websocket_is_for_others_to_tell() {
        let mut gate = Frames::default();
        let answer = b"HTTP/1.1 404 Not Found\r\n\r\n\x81\x7f\xff\xff\xff\xff\xff\xff\xff\xff";
        assert!(gate.feed(answer, 0).is_ok());
    }
}
