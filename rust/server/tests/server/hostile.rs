//! Clients that are slow, silent, broken or greedy: each is bounded, and the others are served.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;

use crate::client::{Client, PATIENCE, digest};
use crate::world::{World, chatty, long, quick};

/// A program runs for another client as if nothing were.
async fn served_as_before(world: &World) {
    let mut client = world.client("bystander").await;
    let digest = client.upload(&quick()).await;
    let pid = client.launch(&digest).await;
    assert_eq!(client.events(pid).await.1["value"], "true");
}

#[test]
fn handshakes_that_do_not_end_are_in_nobodys_way() {
    let world = World::with(|config| config.max_connections = 2);
    world.run(async {
        let address = world.server.address();
        let mut silent = Vec::new();
        for n in 0..600 {
            let mut stream = TcpStream::connect(address).await.unwrap();
            if n % 2 == 0 {
                stream
                    .write_all(b"GET / HTTP/1.1\r\nHost: x\r\nUpg")
                    .await
                    .unwrap();
            }
            silent.push(stream);
        }
        served_as_before(&world).await;
        // The oldest had to give way.
        let mut nothing = Vec::new();
        assert!(!matches!(
            silent[0].read_to_end(&mut nothing).await,
            Ok(1..)
        ));
    });
}

#[test]
fn a_handshake_has_its_time() {
    let world = World::with(|config| config.handshake_timeout = Duration::from_millis(20));
    world.run(async {
        let mut client = Client::silent(world.server.address()).await;
        assert_eq!(client.hear().await, json!({ "close": null }));
        let mut stream = TcpStream::connect(world.server.address()).await.unwrap();
        stream.write_all(b"GET / HT").await.unwrap();
        let mut nothing = Vec::new();
        assert!(!matches!(stream.read_to_end(&mut nothing).await, Ok(1..)));
    });
}

#[test]
fn a_client_that_begins_with_tls_is_answered_at_once() {
    // Nobody waits for the rest of what it sends.
    let world = World::with(|config| config.handshake_timeout = PATIENCE * 10);
    world.run(async {
        let mut stream = TcpStream::connect(world.server.address()).await.unwrap();
        stream.write_all(&[0x16]).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
        assert!(
            answer.contains("write ws:// in place of wss://"),
            "{answer}"
        );
        served_as_before(&world).await;
    });
}

#[test]
fn a_silent_client_is_let_go() {
    let world = World::with(|config| config.idle_timeout = Duration::from_millis(200));
    world.run(async {
        let mut client = world.client("alice").await;
        assert_eq!(client.hear().await, json!({ "close": 1000 }));
    });
}

#[test]
fn a_client_that_answers_pings_stays() {
    let world = World::with(|config| {
        config.ping_interval = Duration::from_millis(20);
        config.idle_timeout = Duration::from_secs(2);
    });
    world.run(async {
        let mut client = world.client("alice").await;
        let digest = client.upload(&crate::world::echoing()).await;
        let pid = client.launch(&digest).await;
        // Reading answers the pings: so many take longer than a connection may be silent.
        for _ in 0..120 {
            let frame = tokio::time::timeout(PATIENCE, client.socket.next()).await;
            assert!(matches!(frame, Ok(Some(Ok(Message::Ping(_))))), "{frame:?}");
        }
        client
            .request(json!({"type": "send", "pid": pid, "text": "x"}))
            .await
            .unwrap();
        assert_eq!(client.events(pid).await.0, ["x"]);
    });
}

#[test]
fn garbage_ends_only_its_connection() {
    let world = World::new();
    world.run(async {
        for garbage in [
            "",
            "null",
            "[]",
            "{",
            "\"x\"",
            "{\"type\":\"ping\"}",
            "{\"id\":1}",
            &"[".repeat(100_000),
        ] {
            let mut client = world.client("mallory").await;
            client.socket.send(Message::text(garbage)).await.unwrap();
            assert_eq!(
                client.hear().await["error"]["code"],
                "protocol-error",
                "{garbage:.20}"
            );
            assert_eq!(client.hear().await, json!({ "close": 1002 }));
        }
        for frame in [
            vec![],
            vec![1, 2, 3],
            vec![0xff; 100],
            vec![3, 0, 0, 0, b'{', b'}', b'x'],
        ] {
            let mut client = world.client("mallory").await;
            client.socket.send(Message::binary(frame)).await.unwrap();
            assert_eq!(client.hear().await["error"]["code"], "protocol-error");
        }
        // Bytes that are no frame at all.
        let mut client = world.client("mallory").await;
        client
            .socket
            .get_mut()
            .write_all(&[0xff; 64])
            .await
            .unwrap();
        assert_eq!(client.hear().await["error"]["code"], "protocol-error");
        // A text that is not UTF-8, masked with zeros.
        let mut client = world.client("mallory").await;
        client
            .socket
            .get_mut()
            .write_all(&[0x81, 0x82, 0, 0, 0, 0, 0xc3, 0x28])
            .await
            .unwrap();
        assert_eq!(client.hear().await["error"]["code"], "protocol-error");
        served_as_before(&world).await;
    });
}

#[test]
fn a_frame_that_is_too_large_is_refused_by_its_header() {
    let world = World::with(|config| config.max_frame_bytes = 1 << 20);
    world.run(async {
        let mut client = world.client("mallory").await;
        let mut header = vec![0x82, 0xff];
        header.extend((100_u64 << 20).to_be_bytes());
        header.extend([0; 4]);
        client.socket.get_mut().write_all(&header).await.unwrap();
        assert_eq!(client.hear().await["error"]["code"], "limit-message");
        assert_eq!(client.hear().await, json!({ "close": 1009 }));
        // In fragments, each of them small.
        let mut client = world.client("mallory").await;
        let stream = client.socket.get_mut();
        for n in 0..20 {
            let mut fragment = vec![if n == 0 { 0x02 } else { 0x00 }, 0xff];
            fragment.extend((100_u64 << 10).to_be_bytes());
            fragment.extend(vec![0; 4 + (100 << 10)]);
            if stream.write_all(&fragment).await.is_err() {
                break;
            }
        }
        let heard = client.hear().await;
        assert!(
            heard["error"]["code"] == "limit-message" || heard["close"].is_null(),
            "{heard}"
        );
        served_as_before(&world).await;
    });
}

#[test]
fn whoever_still_sends_when_it_is_refused_gets_the_goodbye_and_an_end() {
    let world = World::with(|config| config.max_frame_bytes = 1 << 20);
    world.run(async {
        let mut client = world.client("mallory").await;
        let mut header = vec![0x82, 0xff];
        header.extend((100_u64 << 20).to_be_bytes());
        header.extend([0; 4]);
        client.socket.get_mut().write_all(&header).await.unwrap();
        assert_eq!(client.hear().await["error"]["code"], "limit-message");
        assert_eq!(client.hear().await, json!({ "close": 1009 }));
        // It has not looked yet, and goes on. A connection that was closed would break over that.
        let stream = client.socket.get_mut();
        for _ in 0..10 {
            stream.write_all(&[0; 4 << 10]).await.unwrap();
        }
        stream.shutdown().await.unwrap();
        let mut rest = Vec::new();
        let ended = stream.read_to_end(&mut rest).await;
        assert!(ended.is_ok_and(|n_bytes| n_bytes == 0), "{rest:?}");
    });
}

#[test]
fn half_a_frame_and_a_vanished_client_disturb_nobody() {
    let world = World::new();
    world.run(async {
        for _ in 0..50 {
            let mut client = world.client("mallory").await;
            client
                .socket
                .get_mut()
                .write_all(&[0x81, 0xfe, 0x10])
                .await
                .unwrap();
            drop(client);
        }
        served_as_before(&world).await;
    });
}

#[test]
fn a_client_that_never_reads_is_bounded_and_holds_up_nobody() {
    let world = World::with(|config| {
        config.idle_timeout = Duration::from_millis(500);
        config.ping_interval = Duration::from_millis(100);
        config.window_bytes = 64 << 20;
    });
    world.run(async {
        let mut client = world.client("mallory").await;
        let digest = client.upload(&chatty(2_000_000)).await;
        for _ in 0..8 {
            client
                .ask(json!({"type": "launch", "program": digest, "attach": true}))
                .await;
        }
        // Requests whose answers nobody takes.
        let flood = async {
            loop {
                let ping = Message::text(json!({"id": 1_000_000, "type": "ping"}).to_string());
                if client.socket.send(ping).await.is_err() {
                    return;
                }
            }
        };
        let bystander = async {
            for _ in 0..5 {
                served_as_before(&world).await;
            }
        };
        tokio::join!(flood, bystander);
    });
}

#[test]
fn refused_uploads_are_remembered_in_bounds() {
    let world = World::new();
    world.run(async {
        let mut client = world.client("mallory").await;
        // Each would keep its digest if refused uploads kept any data.
        let digest = "x".repeat(1 << 20);
        let first = |id: u64| json!({"id": id, "type": "upload", "digest": digest, "bytes": 9, "offset": 0, "last": false});
        for id in 100..164 {
            client.say_binary(&first(id), b"123").await;
            assert_eq!(client.answer(id).await, Err("invalid-argument".to_owned()));
        }
        // One that is ended makes room for one more.
        let last = json!({"id": 100, "type": "upload", "digest": "", "bytes": 9, "offset": 3, "last": true});
        client.say_binary(&last, b"").await;
        client.say_binary(&first(164), b"123").await;
        assert_eq!(client.answer(164).await, Err("invalid-argument".to_owned()));
        client.say_binary(&first(165), b"123").await;
        assert_eq!(client.answer(165).await, Err("invalid-argument".to_owned()));
        assert_eq!(client.hear().await["error"]["code"], "protocol-error");
        assert_eq!(client.hear().await, json!({ "close": 1002 }));
        served_as_before(&world).await;
    });
}

#[test]
fn the_uploads_of_a_connection_are_bounded_in_number() {
    let world = World::new();
    world.run(async {
        let mut client = world.client("mallory").await;
        for n in 0..256_u32 {
            client.upload(&n.to_le_bytes()).await;
        }
        let one_more = json!({"id": 9999, "type": "upload", "digest": digest(b"more"), "bytes": 4, "offset": 0, "last": true});
        client.say_binary(&one_more, b"more").await;
        assert_eq!(client.answer(9999).await, Err("limit-upload".to_owned()));
    });
}

#[test]
fn a_slow_client_that_takes_a_long_message_is_not_cut_off() {
    let world = World::with(|config| {
        config.idle_timeout = Duration::from_secs(1);
        config.ping_interval = Duration::from_millis(25);
    });
    world.run(async {
        // Small buffers, so that the message is in the hands of the server for most of the time.
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        let stream = socket.connect(world.server.address()).await.unwrap();
        let mut slow = Client::over(stream).await;
        slow.say(&json!({"type": "hello", "protocol": 1})).await;
        slow.hear_that(|message| message["type"] == "hello").await;
        let digest = slow.upload(&long(8_000_000)).await;
        slow.launch(&digest).await;
        // The pings that another client gets are the clock by which this one takes a little at a time.
        let mut clock = world.client("bystander").await;
        let stream = slow.socket.get_mut();
        let mut taken = Vec::new();
        let mut part = vec![0; 96 << 10];
        for _ in 0..80 {
            let n_bytes = stream.read(&mut part).await.unwrap();
            assert!(n_bytes > 0, "cut off after {} bytes", taken.len());
            taken.extend_from_slice(&part[..n_bytes]);
            clock.socket.next().await.unwrap().unwrap();
        }
        // Pings may follow the end.
        let ends = |taken: &[u8]| {
            taken[taken.len() - 300..]
                .windows(3)
                .any(|end| end == br#"1"}"#)
        };
        while !ends(&taken) {
            let n_bytes = stream.read(&mut part).await.unwrap();
            assert!(n_bytes > 0, "cut off after {} bytes", taken.len());
            taken.extend_from_slice(&part[..n_bytes]);
        }
        assert!(taken.len() > 8_000_000);
    });
}

#[test]
fn the_clients_are_bounded() {
    let world = World::with(|config| config.max_connections = 1);
    world.run(async {
        let first = world.client("alice").await;
        let mut second = Client::silent(world.server.address()).await;
        second.say(&json!({"type": "hello", "protocol": 1})).await;
        second
            .hear_that(|message| {
                message["type"] == "error" && message["error"]["code"] == "limit-connections"
            })
            .await;
        second.hear_that(|message| message["close"] == 1013).await;
        drop(first);
        loop {
            let mut third = Client::silent(world.server.address()).await;
            third.say(&json!({"type": "hello", "protocol": 1})).await;
            if third.hear().await["type"] == "hello" {
                break;
            }
        }
    });
}
