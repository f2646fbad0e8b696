//! How fuzzers speak to a server: step by step over one connection, by frames of a WebSocket or by any bytes.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use arbitrary::Unstructured;

/// Whatever a client sends, it has an answer or an end after this time: the times of the server are far below.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
const UPGRADE: &str = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
pub(crate) const HELLO: &str = r#"{"type":"hello","protocol":1,"user":"fuzzer"}"#;

/// What a client sends at once, and what it waits for before it goes on.
pub(crate) struct Step {
    pub(crate) sent: Vec<u8>,
    pub(crate) answer: Vec<u8>,
}

impl Step {
    pub(crate) fn new(sent: Vec<u8>, answer: &str) -> Self {
        let answer = answer.as_bytes().to_vec();
        Self { sent, answer }
    }

    pub(crate) fn upgrade() -> Self {
        Self::new(UPGRADE.as_bytes().to_vec(), "\r\n\r\n")
    }

    /// What follows the upgrade, and the end of the server's own hello.
    pub(crate) fn hello() -> Self {
        Self::new(frame(1, HELLO.as_bytes()), "\"name_bytes\":128}}")
    }
}

/// A message with some of it replaced.
pub(crate) fn spoiled(message: &[u8], bytes: &mut Unstructured<'_>) -> arbitrary::Result<Vec<u8>> {
    let mut message = message.to_vec();
    for _ in 0..bytes.int_in_range(1..=3)? {
        let from = bytes.int_in_range(0..=message.len())?;
        let to = bytes.int_in_range(from..=message.len().min(from + 16))?;
        let instead = match bytes.int_in_range(0..=3)? {
            0 => bytes
                .choose(&[
                    "null",
                    "-1",
                    "1e999",
                    "\"\\u0000\"",
                    "[[",
                    "{\"a\":1}",
                    "18446744073709551616",
                ])?
                .as_bytes()
                .to_vec(),
            1 => Vec::new(),
            _ => bytes.arbitrary()?,
        };
        message.splice(from..to, instead);
    }
    Ok(message)
}

/// The length of a header, the header, and a payload.
pub(crate) fn framed(header: &[u8], payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(header.len()).unwrap_or(u32::MAX);
    [&length.to_le_bytes(), header, payload].concat()
}

/// A WebSocket frame of a client, whose mask is zero (RFC 6455, 5.2).
pub(crate) fn frame(opcode: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x80 | (opcode & 0x0f)];
    match payload.len() {
        length @ 0..126 => frame.push(0x80 | u8::try_from(length).unwrap_or(0)),
        length => {
            frame.push(0x80 | 126);
            frame.extend(u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes());
        }
    }
    frame.extend([0; 4]);
    frame.extend(payload);
    frame
}

/// Says it step by step, closes this side, and returns all that the server sends until it closes its own.
pub(crate) fn talk(address: SocketAddr, steps: &[Step]) -> Vec<u8> {
    talk_and(address, steps, Ending::Closes)
}

/// Who closes a connection first.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// This side says that nothing more comes.
    Closes,
    /// The server has to find that it has heard enough, or waited long enough.
    Waits,
}

/// The same, with another ending.
pub(crate) fn talk_and(address: SocketAddr, steps: &[Step], ending: Ending) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut heard = Vec::new();
    match said(&mut stream, (steps, ending), &mut heard) {
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            panic!(
                "neither an answer nor an end within {PATIENCE:?}, after {}",
                String::from_utf8_lossy(&heard)
            )
        }
        // A server that has heard enough closes before all is sent, and a connection that was reset has ended too.
        Ok(()) | Err(_) => heard,
    }
}

fn said(
    stream: &mut TcpStream,
    (steps, ending): (&[Step], Ending),
    heard: &mut Vec<u8>,
) -> std::io::Result<()> {
    for step in steps {
        stream.write_all(&step.sent)?;
        read_until(stream, heard, &step.answer)?;
    }
    if ending == Ending::Closes {
        stream.shutdown(Shutdown::Write)?;
    }
    stream.read_to_end(heard).map(drop)
}

fn read_until(stream: &mut TcpStream, heard: &mut Vec<u8>, end: &[u8]) -> std::io::Result<()> {
    let mut byte = [0];
    while !heard.ends_with(end) {
        stream.read_exact(&mut byte)?;
        heard.extend(byte);
    }
    Ok(())
}

/// Whether that part is somewhere in it.
pub(crate) fn holds(heard: &[u8], part: &[u8]) -> bool {
    heard.windows(part.len()).any(|window| window == part)
}
