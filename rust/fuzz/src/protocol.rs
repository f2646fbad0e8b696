//! Clients that send anything: bytes instead of a handshake, frames that are none, messages that no client says.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use arbitrary::Unstructured;
use pie_host::{Host, HostConfig};
use pie_server::{Server, ServerConfig};
use tempfile::TempDir;

/// Whatever a client sends, it has an answer or an end after this time: the times of the server are far below.
const PATIENCE: Duration = Duration::from_secs(30);
const UPGRADE: &str = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
const HELLO: &str = r#"{"type":"hello","protocol":1,"user":"fuzzer"}"#;
/// Messages that are right, for the bytes to spoil.
const MESSAGES: &[&str] = &[
    r#"{"type":"ping","id":1}"#,
    r#"{"type":"processes","id":2}"#,
    r#"{"type":"programs","id":3}"#,
    r#"{"type":"launch","id":4,"program":"none@0.1.0","input":{"n":1},"args":["a"],"seed":7,"limits":{"cpu_s":1}}"#,
    r#"{"type":"attach","id":5,"pid":1,"window_bytes":100}"#,
    r#"{"type":"terminate","id":6,"pid":1}"#,
    r#"{"type":"signal","id":7,"pid":1,"text":"x"}"#,
    r#"{"type":"send","id":7,"pid":1,"text":"x"}"#,
    r#"{"type":"file","id":7,"pid":1}"#,
    r#"{"type":"close_input","id":7,"pid":1}"#,
    r#"{"type":"detach","id":7,"pid":1}"#,
    r#"{"type":"stats","id":7}"#,
    r#"{"type":"logs","id":8,"pid":1,"tail_bytes":10,"follow":true}"#,
    r#"{"type":"install","id":9,"name":"a","version":"0.1.0","digest":"sha256:00","manifest":"[package]"}"#,
    r#"{"type":"uninstall","id":10,"name":"a","version":"0.1.0"}"#,
    r#"{"type":"upload","id":11,"digest":"sha256:00","bytes":4,"offset":0,"last":true}"#,
    r#"{"type":"ack","pid":1,"seq":1}"#,
];

/// A server that all inputs share.
struct Served {
    server: Server,
    _folder: TempDir,
}

fn served() -> &'static Served {
    static SERVED: OnceLock<Served> = OnceLock::new();
    SERVED.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let mut config = ServerConfig::new(folder.path().to_owned());
        config.port = 0;
        config.handshake_timeout = Duration::from_secs(2);
        config.max_frame_bytes = 16 << 10;
        config.max_upload_bytes = 16 << 10;
        config.max_installed_bytes = 1 << 20;
        let host = Arc::new(Host::new(HostConfig::default()).unwrap());
        Served {
            server: Server::start(host, config).unwrap(),
            _folder: folder,
        }
    })
}

/// What a client sends: the handshake, and what follows once it was answered.
struct Conversation {
    handshake: Vec<u8>,
    rest: Vec<u8>,
    /// What is waited for before this side is closed.
    answer: &'static [u8],
}

/// Connects, sends what the bytes say and closes its side; the server closes the other, and a client that comes then is served.
pub fn protocol(data: &[u8]) {
    let mut bytes = Unstructured::new(data);
    let Ok(conversation) = conversation(&mut bytes) else {
        return;
    };
    let served = served();
    talk(served, &conversation);
    let ping = Conversation {
        handshake: UPGRADE.as_bytes().to_vec(),
        rest: [HELLO, MESSAGES[0]]
            .map(|message| frame(1, message.as_bytes()))
            .concat(),
        answer: br#"{"id":1,"ok":{}}"#,
    };
    let heard = talk(served, &ping);
    assert!(
        holds(&heard, ping.answer),
        "{}",
        String::from_utf8_lossy(&heard)
    );
    let ends_before = Instant::now() + PATIENCE;
    while served.server.n_connections() > 0 {
        assert!(Instant::now() < ends_before, "a connection is left");
        std::thread::yield_now();
    }
}

/// What goes over the wire.
fn conversation(bytes: &mut Unstructured<'_>) -> arbitrary::Result<Conversation> {
    // A handshake is sometimes left out, spoiled, or not waited for.
    let mut handshake = match bytes.int_in_range(0..=9)? {
        0 => Vec::new(),
        1 => spoiled(UPGRADE.as_bytes(), bytes)?,
        _ => UPGRADE.as_bytes().to_vec(),
    };
    let mut sent = match bytes.int_in_range(0..=9)? {
        0 => Vec::new(),
        1 => frame(1, &spoiled(HELLO.as_bytes(), bytes)?),
        _ => frame(1, HELLO.as_bytes()),
    };
    for _ in 0..bytes.int_in_range(0..=20)? {
        let message = bytes.choose(MESSAGES)?.as_bytes();
        match bytes.int_in_range(0..=7)? {
            0 => sent.extend(frame(1, message)),
            1..=3 => sent.extend(frame(1, &spoiled(message, bytes)?)),
            4 => sent.extend(frame(2, &binary(message, bytes)?)),
            5 => sent.extend(spoiled(&frame(1, message), bytes)?),
            6 => sent.extend(frame(bytes.arbitrary()?, &bytes.arbitrary::<Vec<u8>>()?)),
            _ => sent.extend(bytes.arbitrary::<Vec<u8>>()?),
        }
    }
    if bytes.ratio(1, 16)? {
        handshake.append(&mut sent);
    }
    Ok(Conversation {
        handshake,
        rest: sent,
        answer: b"",
    })
}

/// A message with some of it replaced.
fn spoiled(message: &[u8], bytes: &mut Unstructured<'_>) -> arbitrary::Result<Vec<u8>> {
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

/// A binary message: the length of its header, the header, and a payload.
fn binary(header: &[u8], bytes: &mut Unstructured<'_>) -> arbitrary::Result<Vec<u8>> {
    let length = if bytes.ratio(7, 8)? {
        u32::try_from(header.len()).unwrap_or(u32::MAX)
    } else {
        bytes.arbitrary()?
    };
    let payload: Vec<u8> = bytes.arbitrary()?;
    Ok([&length.to_le_bytes(), header, &payload].concat())
}

/// A WebSocket frame of a client, whose mask is zero (RFC 6455, 5.2).
fn frame(opcode: u8, payload: &[u8]) -> Vec<u8> {
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

/// Says all of it, closes this side, and answers all that the server sends until it closes its own.
fn talk(served: &Served, conversation: &Conversation) -> Vec<u8> {
    let mut stream = TcpStream::connect(served.server.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut heard = Vec::new();
    match said(&mut stream, conversation, &mut heard) {
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            panic!("neither an answer nor an end within {PATIENCE:?}")
        }
        // A server that has heard enough closes before all is sent, and a connection that was reset has ended too.
        Ok(()) | Err(_) => heard,
    }
}

fn said(
    stream: &mut TcpStream,
    conversation: &Conversation,
    heard: &mut Vec<u8>,
) -> std::io::Result<()> {
    stream.write_all(&conversation.handshake)?;
    if conversation.handshake == UPGRADE.as_bytes() {
        read_until(stream, heard, b"\r\n\r\n")?;
    }
    stream.write_all(&conversation.rest)?;
    read_until(stream, heard, conversation.answer)?;
    stream.shutdown(Shutdown::Write)?;
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

fn holds(heard: &[u8], part: &[u8]) -> bool {
    heard.windows(part.len()).any(|window| window == part)
}
