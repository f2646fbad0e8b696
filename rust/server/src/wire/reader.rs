//! Reading messages: each byte of one is charged before there is room for it, and a message has a time in which it
//! ends.
//!
//! | state | `frame` | `message` | next |
//! |---|---|---|---|
//! | between messages | none | none | a header |
//! | in a frame of a message | some | some | its bytes; then, after the last frame, the message |
//! | between two frames of a message | none | some | a header: of a continuation, a ping, a pong or a close |
//!
//! A control frame is taken whole out of the buffer, so that it never is a state. Others get their turn between two
//! messages, and between two looks into the buffer, so that many small frames keep a thread no longer than messages do.

use std::io::Cursor;
use std::time::Duration;

use pie_host::{Account, Charge, Error, ErrorCode, Purpose};
use tokio::io::AsyncReadExt;
use tokio::net::tcp::OwnedReadHalf;
use tokio::time::{Instant, timeout, timeout_at};
use tungstenite::protocol::frame::FrameHeader;
use tungstenite::protocol::frame::coding::{Control, Data, OpCode};

use super::message::{Message, Payload, SMALL_BYTES};
use crate::protocol::violation;
use crate::threads::TimeSlice;

/// Bytes that are read ahead: a whole control frame with its header, or the head of an HTTP request, fits.
pub(crate) const BUFFER_BYTES: usize = 8 << 10;
/// Bytes of a large message that are read at once.
const STRIDE_BYTES: usize = 64 << 10;
/// Frames of one message, each of which takes its time however little it brings. The largest message in frames of 256
/// bytes has as many.
const MAX_FRAMES: usize = 1 << 16;
/// Bytes of the payload of a control frame, by RFC 6455.
const MAX_CONTROL_BYTES: u64 = 125;
/// How long, and how much of, what a client still sends is thrown away after the goodbye: closing with bytes unread
/// would take the goodbye back.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 32 << 20;

/// What a message may be.
#[derive(Clone, Debug)]
pub(crate) struct Bounds {
    /// Who pays for it.
    pub(crate) account: Account,
    /// Bytes of one, in all its frames.
    pub(crate) max_bytes: usize,
    /// The setting that says so.
    pub(crate) max_name: &'static str,
    /// Time from its first byte to its last.
    pub(crate) time: Duration,
}

/// Why no message comes any more.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The client has gone.
    Gone,
    /// What it sends is refused.
    Refused(Error),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

/// The messages of one client.
pub(crate) struct MessageReader {
    half: OwnedReadHalf,
    bounds: Bounds,
    /// What was read and not looked at yet is `buffer[start..end]`.
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    /// The frame whose payload is on its way.
    frame: Option<Frame>,
    /// The message whose frames are on their way.
    message: Option<Partial>,
    /// When the first byte came of what is not whole.
    began: Option<Instant>,
    time_slice: TimeSlice,
}

struct Frame {
    is_last: bool,
    /// Bytes of its payload that have not come.
    left: usize,
    mask: Mask,
}

struct Partial {
    is_text: bool,
    n_frames: usize,
    bytes: Vec<u8>,
    charge: Option<Charge>,
}

impl MessageReader {
    pub(super) fn new(half: OwnedReadHalf, bounds: Bounds) -> Self {
        Self {
            half,
            bounds,
            buffer: vec![0; BUFFER_BYTES].into(),
            start: 0,
            end: 0,
            frame: None,
            message: None,
            began: None,
            time_slice: TimeSlice::new(),
        }
    }

    /// The way itself, with what was read and not looked at.
    pub(super) fn into_parts(self) -> (OwnedReadHalf, Vec<u8>) {
        (self.half, self.buffer[self.start..self.end].to_vec())
    }

    /// What messages may be from now on.
    pub(crate) fn set_bounds(&mut self, bounds: Bounds) {
        self.bounds = bounds;
    }

    /// The next message. Dropping the future before it is done loses nothing.
    ///
    /// # Errors
    /// `protocol-error`, `limit-message`, `limit-frame` for one that takes too long, `limit-engine-memory`; nothing can
    /// be read after one.
    pub(crate) async fn next(&mut self) -> Result<Message, Fault> {
        loop {
            self.time_slice.pause().await;
            if let Some(message) = self.advance()? {
                return Ok(message);
            }
            let is_idle = self.frame.is_none() && self.message.is_none() && self.start == self.end;
            if is_idle {
                self.began = None;
                self.fill().await?;
                continue;
            }
            let began = *self.began.get_or_insert_with(Instant::now);
            let until = began + self.bounds.time;
            match timeout_at(until, self.fill()).await {
                Ok(filled) => filled?,
                Err(_) => return Err(self.too_slow().into()),
            }
        }
    }

    /// Reads what comes until `found` finds an end in it: the head of a request, which is taken out. None when the
    /// client has gone, or sends more than the buffer holds.
    pub(crate) async fn head(
        &mut self,
        found: impl Fn(&[u8]) -> Option<usize>,
    ) -> Result<Option<Vec<u8>>, Fault> {
        loop {
            let held = &self.buffer[self.start..self.end];
            if let Some(n_bytes) = found(held) {
                let head = held[..n_bytes].to_vec();
                self.start += n_bytes;
                return Ok(Some(head));
            }
            if held.len() == BUFFER_BYTES {
                return Ok(None);
            }
            self.fill_buffer().await?;
        }
    }

    /// Throws away what the client still sends, for a moment, so that it gets the goodbye.
    pub(crate) async fn linger(mut self) {
        let throw_away = async {
            let mut n_bytes = 0;
            while n_bytes < LINGER_BYTES {
                match self.half.read(&mut self.buffer).await {
                    Ok(1..) => n_bytes += self.buffer.len(),
                    Ok(0) | Err(_) => return,
                }
            }
        };
        drop(timeout(LINGER, throw_away).await);
    }

    /// Goes on with what has been read; none when more has to come.
    fn advance(&mut self) -> Result<Option<Message>, Error> {
        loop {
            if self.frame.is_some() {
                self.take_buffered()?;
                let Some(frame) = self.frame.take_if(|frame| frame.left == 0) else {
                    return Ok(None);
                };
                if frame.is_last
                    && let Some(message) = self.message.take()
                {
                    self.began = None;
                    return Ok(Some(message.whole()));
                }
            }
            let Some((header, length)) = self.header()? else {
                return Ok(None);
            };
            if let OpCode::Control(control) = header.opcode {
                return self.control(&header, control, length);
            }
            self.begin(&header, length)?;
        }
    }

    /// The header at the start of the buffer. That of a control frame is left there until its payload has come.
    fn header(&mut self) -> Result<Option<(FrameHeader, u64)>, Error> {
        let mut cursor = Cursor::new(&self.buffer[self.start..self.end]);
        let parsed =
            FrameHeader::parse(&mut cursor).map_err(|error| violation(error.to_string()))?;
        let Some((header, length)) = parsed else {
            return Ok(None);
        };
        if header.rsv1 || header.rsv2 || header.rsv3 {
            return Err(violation(
                "a frame has reserved bits; no extension was agreed on",
            ));
        }
        if header.mask.is_none() {
            return Err(violation("a frame of a client has no mask"));
        }
        let n_bytes = usize::try_from(cursor.position()).unwrap_or(0);
        if let OpCode::Control(_) = header.opcode {
            if !header.is_final || length > MAX_CONTROL_BYTES {
                return Err(violation(
                    "a control frame is in parts, or longer than 125 bytes",
                ));
            }
            let held = self.end - self.start - n_bytes;
            if (held as u64) < length {
                return Ok(None);
            }
        }
        self.start += n_bytes;
        Ok(Some((header, length)))
    }

    /// A control frame whose payload stands in the buffer.
    fn control(
        &mut self,
        header: &FrameHeader,
        control: Control,
        length: u64,
    ) -> Result<Option<Message>, Error> {
        let n_bytes = usize::try_from(length).unwrap_or(0);
        let mut payload = self.buffer[self.start..self.start + n_bytes].to_vec();
        Mask::new(header).apply(&mut payload);
        self.start += n_bytes;
        if self.message.is_none() {
            self.began = None;
        }
        let message = match control {
            Control::Ping => Message::Ping(payload),
            Control::Pong => Message::Pong,
            Control::Close => match payload.as_slice() {
                [] => Message::Close(None),
                [_] => return Err(violation("a close frame holds half a code")),
                [high, low, ..] => Message::Close(Some(u16::from_be_bytes([*high, *low]))),
            },
            Control::Reserved(_) => {
                return Err(violation("a control frame of a kind that there is not"));
            }
        };
        Ok(Some(message))
    }

    /// Begins a frame of a message.
    fn begin(&mut self, header: &FrameHeader, length: u64) -> Result<(), Error> {
        let is_first = !matches!(header.opcode, OpCode::Data(Data::Continue));
        if is_first == self.message.is_some() {
            return Err(violation(if is_first {
                "a message begins before the one before has ended"
            } else {
                "a frame continues a message that has not begun"
            }));
        }
        let message = self.message.get_or_insert_with(|| Partial {
            is_text: matches!(header.opcode, OpCode::Data(Data::Text)),
            n_frames: 0,
            bytes: Vec::new(),
            charge: None,
        });
        message.n_frames += 1;
        if message.n_frames > MAX_FRAMES {
            let message = format!(
                "a message came in more than {MAX_FRAMES} frames; send fewer and larger ones"
            );
            return Err(Error::new(ErrorCode::LimitFrame, message));
        }
        let Bounds {
            max_bytes,
            max_name,
            ..
        } = self.bounds;
        let n_bytes = length.saturating_add(message.bytes.len() as u64);
        if n_bytes > max_bytes as u64 {
            let message = format!(
                "a message of {n_bytes} bytes is larger than {max_name} = {max_bytes}; send less at once, or raise the limit"
            );
            return Err(Error::new(ErrorCode::LimitMessage, message));
        }
        self.frame = Some(Frame {
            is_last: header.is_final,
            left: usize::try_from(length).unwrap_or(usize::MAX),
            mask: Mask::new(header),
        });
        Ok(())
    }

    /// Moves payload of the current frame from the buffer to its message.
    fn take_buffered(&mut self) -> Result<(), Error> {
        let (Some(frame), Some(message)) = (&mut self.frame, &mut self.message) else {
            return Ok(());
        };
        let n_bytes = frame.left.min(self.end - self.start);
        message.make_room(n_bytes, frame, &self.bounds)?;
        let from = message.bytes.len();
        message
            .bytes
            .extend_from_slice(&self.buffer[self.start..self.start + n_bytes]);
        frame.mask.apply(&mut message.bytes[from..]);
        frame.left -= n_bytes;
        self.start += n_bytes;
        Ok(())
    }

    /// Reads on. The missing part of a large frame is read to where it belongs, anything else into the buffer.
    async fn fill(&mut self) -> Result<(), Fault> {
        let (Some(frame), Some(message)) = (&mut self.frame, &mut self.message) else {
            return self.fill_buffer().await;
        };
        if frame.left < BUFFER_BYTES {
            return self.fill_buffer().await;
        }
        let n_bytes = frame.left.min(STRIDE_BYTES);
        message.make_room(n_bytes, frame, &self.bounds)?;
        let from = message.bytes.len();
        let mut part = (&mut self.half).take(n_bytes as u64);
        match part.read_buf(&mut message.bytes).await {
            Ok(0) | Err(_) => return Err(Fault::Gone),
            Ok(n_bytes) => frame.left -= n_bytes,
        }
        frame.mask.apply(&mut message.bytes[from..]);
        Ok(())
    }

    async fn fill_buffer(&mut self) -> Result<(), Fault> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        match self.half.read(&mut self.buffer[self.end..]).await {
            Ok(0) | Err(_) => Err(Fault::Gone),
            Ok(n_bytes) => {
                self.end += n_bytes;
                Ok(())
            }
        }
    }

    fn too_slow(&self) -> Error {
        let n_bytes = self
            .message
            .as_ref()
            .map_or(0, |message| message.bytes.len());
        let message = format!(
            "a message did not end within server.frame_timeout_s = {} s of its first byte ({n_bytes} bytes came); send smaller ones, or raise the limit",
            self.bounds.time.as_secs_f64()
        );
        Error::new(ErrorCode::LimitFrame, message)
    }
}

#[cfg(test)]
impl MessageReader {
    /// Gives others their turn as often as there is a place for it.
    pub(super) fn pause_always(&mut self) {
        self.time_slice = TimeSlice::of(Duration::ZERO);
    }
}

impl Partial {
    /// Makes room for `n_bytes` more, after charging them. The room doubles, so that a long message is copied few
    /// times, and does not exceed what the message can become.
    fn make_room(&mut self, n_bytes: usize, frame: &Frame, bounds: &Bounds) -> Result<(), Error> {
        let needed = self.bytes.len() + n_bytes;
        if needed <= self.bytes.capacity() {
            return Ok(());
        }
        let most = if frame.is_last {
            self.bytes.len() + frame.left
        } else {
            bounds.max_bytes
        };
        let room = needed.max(self.bytes.capacity() * 2).min(most);
        if room > SMALL_BYTES {
            let charge = self
                .charge
                .get_or_insert_with(|| bounds.account.empty(Purpose::Frame));
            charge.resize(room as u64)?;
        }
        self.bytes
            .try_reserve_exact(room - self.bytes.len())
            .map_err(|error| {
                let message = format!("the machine has no {room} bytes for a message: {error}");
                Error::new(ErrorCode::LimitEngineMemory, message)
            })
    }

    fn whole(self) -> Message {
        let payload = Payload::new(self.bytes, self.charge);
        if self.is_text {
            Message::Text(payload)
        } else {
            Message::Binary(payload)
        }
    }
}

/// The mask of a frame, and how far it has come.
struct Mask {
    bytes: [u8; 4],
    at: usize,
}

impl Mask {
    fn new(header: &FrameHeader) -> Self {
        Self {
            bytes: header.mask.unwrap_or_default(),
            at: 0,
        }
    }

    /// Takes the mask off the next part of the payload.
    fn apply(&mut self, part: &mut [u8]) {
        self.bytes.rotate_left(self.at % 4);
        self.at = part.len() % 4;
        // Sixteen bytes at once, which compilers turn into one operation.
        let wide: [u8; 16] = std::array::from_fn(|n| self.bytes[n % 4]);
        let mut chunks = part.chunks_exact_mut(wide.len());
        for chunk in &mut chunks {
            for (byte, mask) in chunk.iter_mut().zip(wide) {
                *byte ^= mask;
            }
        }
        for (byte, mask) in chunks.into_remainder().iter_mut().zip(wide) {
            *byte ^= mask;
        }
    }
}
