//! Frames as clients send them: by the byte, in parts, with control frames between, and wrong.

use std::time::Duration;

use pie_host::{Budget, ErrorCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::reader::BUFFER_BYTES;
use super::*;
use crate::protocol::body::Body;

const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

/// A frame of a client.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let n_bytes = payload.len();
    let mut frame = vec![first];
    match (u8::try_from(n_bytes), u16::try_from(n_bytes)) {
        (Ok(short @ ..=125), _) => frame.push(0x80 | short),
        (_, Ok(medium)) => {
            frame.push(0xfe);
            frame.extend(medium.to_be_bytes());
        }
        _ => {
            frame.push(0xff);
            frame.extend((n_bytes as u64).to_be_bytes());
        }
    }
    frame.extend(MASK);
    frame.extend(
        payload
            .iter()
            .zip(MASK.iter().cycle())
            .map(|(byte, mask)| byte ^ mask),
    );
    frame
}

/// A client and its connection, of which a message may have so many bytes.
pub(crate) async fn connected(
    budget: &std::sync::Arc<Budget>,
    max_bytes: usize,
    time: Duration,
) -> (TcpStream, Wire) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap())
        .await
        .unwrap();
    client.set_nodelay(true).unwrap();
    let (stream, _) = listener.accept().await.unwrap();
    let bounds = Bounds {
        account: budget.account("a"),
        max_bytes,
        max_name: "server.max_frame_bytes",
        time,
    };
    (client, Wire::new(stream, bounds))
}

/// Runs a test with a connection whose messages may have a megabyte.
fn with_wire<F: Future<Output = ()>>(test: impl FnOnce(TcpStream, Wire) -> F) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let budget = Budget::new(64 << 20, None);
        let (client, wire) = connected(&budget, 1 << 20, Duration::from_secs(60)).await;
        test(client, wire).await;
        assert_eq!(budget.held_bytes(), 0, "a charge is left");
    });
}

fn payload(message: Message) -> Vec<u8> {
    match message {
        Message::Text(payload) | Message::Binary(payload) => payload.bytes().to_vec(),
        other => panic!("{other:?}"),
    }
}

fn refused(fault: Fault) -> (ErrorCode, String) {
    match fault {
        Fault::Refused(error) => (error.code, error.message),
        Fault::Gone => panic!("gone"),
    }
}

/// How often a future gave its thread back before it was done, and what it came to.
async fn counted<F: Future>(future: F) -> (usize, F::Output) {
    let mut future = std::pin::pin!(future);
    let mut n_pauses = 0;
    let output = std::future::poll_fn(|context| {
        let polled = future.as_mut().poll(context);
        n_pauses += usize::from(polled.is_pending());
        polled
    })
    .await;
    (n_pauses, output)
}

#[test]
fn small_frames_without_end_keep_a_thread_no_longer_than_messages_do() {
    with_wire(|mut client, mut wire| async move {
        const N_FRAMES: usize = 16 << 10;
        let mut sent = frame(0x02, b"");
        for _ in 1..N_FRAMES {
            sent.extend(frame(0x00, b""));
        }
        sent.extend(frame(0x80, b"x"));
        let n_buffers = sent.len() / BUFFER_BYTES;
        // All of it is there before the first byte is looked at, so that nothing has to be waited for.
        let sending = tokio::spawn(async move {
            client.write_all(&sent).await.unwrap();
            client
        });
        tokio::time::sleep(Duration::from_millis(50)).await;
        wire.reader.pause_always();
        let (n_pauses, message) = counted(wire.reader.next()).await;
        assert_eq!(payload(message.unwrap()), b"x");
        assert!(n_pauses >= n_buffers, "{n_pauses} in {n_buffers} buffers");
        drop(sending.await.unwrap());
    });
}

#[test]
fn messages_of_every_length_come_as_they_were_sent() {
    with_wire(|mut client, mut wire| async move {
        for n_bytes in [
            0,
            1,
            125,
            126,
            8191,
            8192,
            8193,
            65_535,
            65_536,
            300_001,
            1 << 20,
        ] {
            let sent: Vec<u8> = (0..n_bytes).map(|n| (n % 251) as u8).collect();
            let written = frame(0x82, &sent);
            let (written, read) = tokio::join!(client.write_all(&written), wire.reader.next());
            written.unwrap();
            assert!(payload(read.unwrap()) == sent, "{n_bytes} bytes");
        }
    });
}

#[test]
fn fragments_are_one_message_whatever_comes_between() {
    with_wire(|mut client, mut wire| async move {
        let mut sent = frame(0x01, b"ab");
        sent.extend(frame(0x89, b"ping"));
        sent.extend(frame(0x00, b""));
        sent.extend(frame(0x8a, b""));
        sent.extend(frame(0x80, &[b'c'; 20_000]));
        sent.extend(frame(0x81, b"next"));
        sent.extend(frame(0x88, &1001_u16.to_be_bytes()));
        // By the byte: every state is met in which something is missing.
        for byte in sent.drain(..200) {
            client.write_all(&[byte]).await.unwrap();
            tokio::task::yield_now().await;
        }
        client.write_all(&sent).await.unwrap();
        assert!(
            matches!(wire.reader.next().await, Ok(Message::Ping(payload)) if payload == b"ping")
        );
        assert!(matches!(wire.reader.next().await, Ok(Message::Pong)));
        let whole = payload(wire.reader.next().await.unwrap());
        assert_eq!((&whole[..3], whole.len()), (&b"abc"[..], 20_002));
        assert_eq!(payload(wire.reader.next().await.unwrap()), b"next");
        assert!(matches!(
            wire.reader.next().await,
            Ok(Message::Close(Some(1001)))
        ));
        drop(client);
        assert!(matches!(wire.reader.next().await, Err(Fault::Gone)));
    });
}

#[test]
fn frames_that_are_none_are_refused() {
    let unmasked = [0x81, 0x01, b'x'];
    let mut too_long = vec![0x82, 0xff];
    too_long.extend(u64::MAX.to_be_bytes());
    too_long.extend(MASK);
    let mut in_parts = frame(0x01, &[0; 1 << 19]);
    in_parts.extend(frame(0x80, &[0; (1 << 19) + 1]));
    for (sent, code, part) in [
        (unmasked.to_vec(), ErrorCode::ProtocolError, "no mask"),
        (frame(0xc1, b"x"), ErrorCode::ProtocolError, "reserved bits"),
        (frame(0x83, b"x"), ErrorCode::ProtocolError, "opcode"),
        (frame(0x80, b"x"), ErrorCode::ProtocolError, "has not begun"),
        (frame(0x09, b"x"), ErrorCode::ProtocolError, "in parts"),
        (
            frame(0x89, &[0; 126]),
            ErrorCode::ProtocolError,
            "125 bytes",
        ),
        (frame(0x88, b"x"), ErrorCode::ProtocolError, "half a code"),
        (
            [frame(0x01, b"x"), frame(0x81, b"y")].concat(),
            ErrorCode::ProtocolError,
            "before the one before",
        ),
        (
            too_long,
            ErrorCode::LimitMessage,
            "server.max_frame_bytes = 1048576",
        ),
        (
            in_parts,
            ErrorCode::LimitMessage,
            "a message of 1048577 bytes",
        ),
    ] {
        with_wire(|mut client, mut wire| async move {
            let (written, read) = tokio::join!(client.write_all(&sent), wire.reader.next());
            written.unwrap();
            let (actual, message) = refused(read.unwrap_err());
            assert_eq!(actual, code, "{message}");
            assert!(message.contains(part), "{message}");
        });
    }
}

#[test]
fn a_message_of_very_many_frames_is_refused() {
    with_wire(|mut client, mut wire| async move {
        let mut sent = frame(0x01, b"");
        sent.extend(frame(0x00, b"").repeat(1 << 16));
        let (written, read) = tokio::join!(client.write_all(&sent), wire.reader.next());
        written.unwrap();
        let (code, message) = refused(read.unwrap_err());
        assert_eq!(code, ErrorCode::LimitFrame);
        assert!(message.contains("65536 frames"), "{message}");
    });
}

#[test]
fn bytes_are_charged_while_they_come_and_given_back_with_the_message() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let budget = Budget::new(1 << 20, Some(400 << 10));
        let (mut client, mut wire) = connected(&budget, 1 << 20, Duration::from_secs(60)).await;
        let sent = frame(0x82, &[7; 300 << 10]);
        client.write_all(&sent[..40 << 10]).await.unwrap();
        assert!(
            tokio::time::timeout(Duration::from_millis(20), wire.reader.next())
                .await
                .is_err()
        );
        let held = budget.held_bytes();
        assert!((40 << 10..=150 << 10).contains(&held), "{held}");
        client.write_all(&sent[40 << 10..]).await.unwrap();
        let whole = wire.reader.next().await.unwrap();
        assert_eq!(budget.held_bytes(), 300 << 10);
        drop(whole);
        assert_eq!(budget.held_bytes(), 0);
        // More than the user may hold.
        let sent = frame(0x82, &[7; 500 << 10]);
        let (_, read) = tokio::join!(client.write_all(&sent), wire.reader.next());
        assert_eq!(refused(read.unwrap_err()).0, ErrorCode::LimitEngineMemory);
        drop(wire);
        assert_eq!(budget.held_bytes(), 0);
    });
}

#[test]
fn a_message_that_does_not_end_is_refused_whatever_comes_between() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let budget = Budget::new(64 << 20, None);
        let (mut client, mut wire) = connected(&budget, 1 << 20, Duration::from_millis(250)).await;
        client.write_all(&frame(0x01, b"begun")).await.unwrap();
        let mut n_pings = 0;
        let dripping = async {
            loop {
                tokio::time::sleep(Duration::from_millis(20)).await;
                client.write_all(&frame(0x89, b"")).await.unwrap();
                client.write_all(&frame(0x00, b".")).await.unwrap();
            }
        };
        let reading = async {
            loop {
                match wire.reader.next().await {
                    Ok(Message::Ping(_)) => n_pings += 1,
                    Ok(other) => panic!("{other:?}"),
                    Err(fault) => return refused(fault),
                }
            }
        };
        let (code, message) = tokio::select! {
            told = reading => told,
            () = dripping => unreachable!(),
        };
        assert_eq!(code, ErrorCode::LimitFrame);
        assert!(
            message.contains("server.frame_timeout_s = 0.25 s"),
            "{message}"
        );
        assert!(n_pings > 0);
    });
}

#[test]
fn a_message_of_the_server_comes_whole_and_is_over_before_its_last_piece() {
    with_wire(|mut client, mut wire| async move {
        let text = "\u{1}".repeat(100_000);
        let value = serde_json::json!(text);
        let body = Body::json(&value);
        let (is_over, over) = tokio::sync::oneshot::channel();
        let writing = async {
            wire.writer
                .send(&body, || is_over.send(()).unwrap())
                .await
                .unwrap();
            wire.writer.pong(b"x").await.unwrap();
            drop(wire);
        };
        let mut read = Vec::new();
        let (_, heard) = tokio::join!(writing, client.read_to_end(&mut read));
        heard.unwrap();
        over.await.unwrap();
        let n_bytes = 600_002_u64;
        assert_eq!(read[..2], [0x81, 127]);
        assert_eq!(read[2..10], n_bytes.to_be_bytes());
        let end = 10 + usize::try_from(n_bytes).unwrap();
        assert!(read[10..end] == *value.to_string().as_bytes());
        assert_eq!(read[end..], [0x8a, 1, b'x']);
    });
}
