//! The client against a server that says what a test wants: it knows frames, and no engine.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use pie_client::{Client, ConnectOptions, Error, Event, Form, LaunchOptions, McpCommand, Process};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;

const PATIENCE: Duration = Duration::from_secs(60);
const WINDOW_BYTES: u64 = 4096;

/// The server's end of one connection.
struct Peer {
    socket: WebSocketStream<TcpStream>,
    acks: Vec<(u64, u64)>,
}

impl Peer {
    /// The next message but for acks, which are noted; a binary one has its bytes beside.
    async fn receive(&mut self) -> (Value, Vec<u8>) {
        loop {
            let frame = tokio::time::timeout(PATIENCE, self.socket.next());
            let (message, payload) = match frame.await.unwrap().unwrap().unwrap() {
                Message::Text(text) => (serde_json::from_str(text.as_str()).unwrap(), Vec::new()),
                Message::Binary(data) => {
                    let length = u32::from_le_bytes(data[..4].try_into().unwrap());
                    let (header, payload) = data[4..].split_at(usize::try_from(length).unwrap());
                    (serde_json::from_slice(header).unwrap(), payload.to_vec())
                }
                Message::Close(_) => (json!({ "type": "closed" }), Vec::new()),
                _ => continue,
            };
            let message: Value = message;
            if message["type"] == "ack" {
                self.acks.push((
                    message["pid"].as_u64().unwrap(),
                    message["seq"].as_u64().unwrap(),
                ));
            } else {
                return (message, payload);
            }
        }
    }

    /// The next message, which must be of that type.
    async fn expect(&mut self, kind: &str) -> Value {
        let (message, _) = self.receive().await;
        assert_eq!(message["type"], kind, "{message}");
        message
    }

    async fn tell(&mut self, message: Value) {
        self.socket
            .send(Message::text(message.to_string()))
            .await
            .unwrap();
    }

    async fn answer(&mut self, request: &Value, ok: Value) {
        self.tell(json!({ "id": request["id"], "ok": ok })).await;
    }

    async fn refuse(&mut self, request: &Value, code: &str) {
        let error = json!({ "code": code, "message": "no", "details": { "n": 1 } });
        self.tell(json!({ "id": request["id"], "error": error }))
            .await;
    }

    async fn event(&mut self, seq: u64, fields: Value) {
        let mut event = json!({ "type": "event", "pid": 5, "seq": seq });
        for (name, value) in fields.as_object().unwrap() {
            event[name] = value.clone();
        }
        self.tell(event).await;
    }
}

/// A connected client and its peer.
async fn connected() -> (Client, Peer) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let accepting = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let socket = tokio_tungstenite::accept_async(stream).await.unwrap();
        let mut peer = Peer {
            socket,
            acks: Vec::new(),
        };
        let hello = peer.expect("hello").await;
        let limits = json!({
            "frame_bytes": 1 << 20, "message_bytes": 1 << 20, "upload_bytes": 8 << 20, "window_bytes": WINDOW_BYTES, "open_requests": 64,
        });
        peer.tell(json!({
            "type": "hello", "protocol": 1, "server": "fake/1", "instance": "i", "user": hello["user"], "role": "user", "limits": limits,
        }))
        .await;
        peer
    });
    let options = ConnectOptions {
        user: Some("ada".to_owned()),
        ..ConnectOptions::default()
    };
    let client = Client::connect(&address, options).await.unwrap();
    (client, accepting.await.unwrap())
}

/// A launched process, its client and its peer.
async fn launched() -> (Client, Peer, Process) {
    let (client, mut peer) = connected().await;
    let (process, ()) = tokio::join!(client.launch("p", LaunchOptions::default()), async {
        let launch = peer.expect("launch").await;
        peer.answer(&launch, json!({ "pid": 5, "launch_seed": u64::MAX }))
            .await;
    });
    (client, peer, process.unwrap())
}

#[tokio::test]
async fn events_come_in_order_and_each_says_what_it_is() {
    let (client, mut peer, process) = launched().await;
    assert_eq!(
        (client.user(), client.role(), client.server()),
        ("ada", "user", "fake/1")
    );
    assert_eq!((process.pid(), process.launch_seed()), (5, Some(u64::MAX)));
    let said = [
        json!({ "kind": "stdout", "text": "{\"n\":1}", "form": "json" }),
        json!({ "kind": "stdout", "text": "printed" }),
        json!({ "kind": "stderr", "text": "e" }),
        json!({ "kind": "message", "text": "m" }),
        json!({ "kind": "notice", "text": "n" }),
        json!({ "kind": "return", "value": "[1]" }),
    ];
    for (seq, fields) in (1..).zip(said) {
        peer.event(seq, fields).await;
    }
    let mut events = process.events();
    let mut read = Vec::new();
    while let Some(event) = events.next().await.unwrap() {
        read.push(event);
    }
    assert_eq!(
        read.iter().map(Event::seq).collect::<Vec<_>>(),
        [1, 2, 3, 4, 5, 6]
    );
    assert!(matches!(
        &read[0],
        Event::Stdout {
            form: Some(Form::Json),
            ..
        }
    ));
    assert_eq!(read[0].value::<Value>().unwrap(), json!({ "n": 1 }));
    assert!(matches!(&read[1], Event::Stdout { form: None, .. }));
    let value: Vec<u8> = process.result().await.unwrap().value().unwrap();
    assert_eq!(value, [1]);
    let (pinged, ()) = tokio::join!(client.ping(), async {
        let ping = peer.expect("ping").await;
        peer.answer(&ping, json!({})).await;
    });
    pinged.unwrap();
    assert_eq!(peer.acks.last(), Some(&(5, 6)));
}

#[tokio::test]
async fn a_launch_says_what_the_process_may_use_and_what_it_begins_with() {
    let (client, mut peer) = connected().await;
    let mut processes = Vec::new();
    for (pid, token_budget, credits) in [
        (5, Some(u64::MAX), Some(2.5)),
        (6, Some(0), Some(0.0)),
        (7, None, None),
    ] {
        let options = LaunchOptions {
            token_budget,
            credits,
            ..LaunchOptions::default()
        };
        let (process, ()) = tokio::join!(client.launch("p", options), async {
            let launch = peer.expect("launch").await;
            // What is not given is not sent: older servers do not know the fields.
            let expected = (token_budget.map(Value::from), credits.map(Value::from));
            let sent = ["token_budget", "credits"].map(|name| launch.get(name).cloned());
            assert_eq!(sent, [expected.0, expected.1]);
            peer.answer(&launch, json!({ "pid": pid, "launch_seed": 1 }))
                .await;
        });
        processes.push(process.unwrap());
    }
    let pids: Vec<u64> = processes.iter().map(Process::pid).collect();
    assert_eq!(pids, [5, 6, 7]);
}

#[tokio::test]
async fn a_list_says_what_processes_have_of_the_market_and_what_they_bid() {
    let (client, mut peer) = connected().await;
    let listed = json!({
        "pid": 5, "program": "chat@1.0", "state": "running", "attached": true, "detached": false, "started": 1e9,
        "ended": null, "cpu_s": 1.25, "exit": null, "dropped": 0, "tokens": 9,
        "credits": { "tiny": 1000.5 }, "bids": { "tiny": 0.25 },
    });
    let (processes, ()) = tokio::join!(client.list(false, false), async {
        let asked = peer.expect("processes").await;
        peer.answer(&asked, json!({ "processes": [listed] })).await;
    });
    let processes = processes.unwrap();
    let process = processes.first().unwrap();
    assert_eq!(
        (process.credits.get("tiny"), process.bids.get("tiny")),
        (Some(&1000.5), Some(&0.25))
    );
}

#[tokio::test]
async fn an_error_of_the_server_has_its_code_and_its_details() {
    let (_client, mut peer, process) = launched().await;
    let (refused, ()) = tokio::join!(process.send("a"), async {
        let send = peer.expect("send").await;
        assert_eq!((&send["pid"], &send["text"]), (&json!(5), &json!("a")));
        peer.refuse(&send, "limit-queue").await;
    });
    let error = refused.unwrap_err();
    assert_eq!((error.code(), error.message()), ("limit-queue", "no"));
    assert_eq!(error.details()["n"], 1);
}

#[tokio::test]
async fn a_window_of_zero_is_refused_before_anything_is_sent() {
    let (client, mut peer) = connected().await;
    let options = LaunchOptions {
        window_bytes: Some(0),
        ..LaunchOptions::default()
    };
    let launched = client.launch("p", options).await.err();
    let attached = client.attach(5, 0, Some(0)).await.err();
    for error in [launched, attached] {
        let error = error.unwrap();
        assert_eq!(error.code(), "invalid-argument");
        assert_eq!(error.details()["argument"], "window_bytes");
    }
    let (pinged, ()) = tokio::join!(client.ping(), async {
        let ping = peer.expect("ping").await;
        peer.answer(&ping, json!({})).await;
    });
    pinged.unwrap();
}

#[tokio::test]
async fn a_file_is_one_binary_frame() {
    let (_client, mut peer, process) = launched().await;
    let (sent, ()) = tokio::join!(process.transfer_file(&[0, 255]), async {
        let (header, payload) = peer.receive().await;
        assert_eq!(
            (&header["type"], &header["pid"]),
            (&json!("file"), &json!(5))
        );
        assert_eq!(payload, [0, 255]);
        peer.answer(&header, json!({})).await;
    });
    sent.unwrap();
    let error = process.transfer_file(&vec![0; 1 << 20]).await.unwrap_err();
    assert_eq!(error.code(), "limit-message");
}

#[tokio::test]
async fn a_launch_that_was_dropped_is_ended_when_its_answer_comes() {
    let (client, mut peer) = connected().await;
    let launching = tokio::spawn({
        let client = client.clone();
        async move { client.launch("p", LaunchOptions::default()).await.map(drop) }
    });
    let launch = peer.expect("launch").await;
    launching.abort();
    assert!(launching.await.unwrap_err().is_cancelled());
    peer.answer(&launch, json!({ "pid": 6, "launch_seed": 1 }))
        .await;
    let undoing = peer.expect("terminate").await;
    assert_eq!(undoing["pid"], 6);
    peer.answer(&undoing, json!({})).await;
}

#[tokio::test]
async fn closing_takes_back_an_unanswered_launch_and_tells_its_caller() {
    let (client, mut peer) = connected().await;
    let launching = tokio::spawn({
        let client = client.clone();
        async move { client.launch("p", LaunchOptions::default()).await.map(drop) }
    });
    let launch = peer.expect("launch").await;
    // One that closes while another does waits with it.
    let ((), (), ()) = tokio::join!(client.close(), client.close(), async {
        peer.answer(&launch, json!({ "pid": 6, "launch_seed": 1 }))
            .await;
        let undoing = peer.expect("terminate").await;
        peer.answer(&undoing, json!({})).await;
        peer.expect("closed").await;
        // The closing handshake ends by reading on.
        assert!(peer.socket.next().await.is_none());
    });
    assert_eq!(
        launching.await.unwrap().unwrap_err().code(),
        "connection-failed"
    );
    assert_eq!(client.ping().await.unwrap_err().code(), "connection-failed");
    client.close().await;
}

#[tokio::test]
async fn an_upload_is_made_of_parts_and_one_that_is_refused_is_ended() {
    let (client, mut peer) = connected().await;
    let program: Vec<u8> = (0..600_000_u32).map(|n| n.to_le_bytes()[0]).collect();
    let (digest, ()) = tokio::join!(client.upload(&program), async {
        let mut whole = Vec::new();
        loop {
            let (part, payload) = peer.receive().await;
            assert_eq!(part["offset"], whole.len());
            whole.extend(payload);
            if part["last"] == true {
                peer.answer(&part, json!({})).await;
                break;
            }
        }
        assert_eq!(whole, program);
    });
    assert!(digest.unwrap().starts_with("sha256:"));
    let (named, ()) = tokio::join!(client.upload_named(b"small", "a.py"), async {
        let (part, _) = peer.receive().await;
        assert_eq!(
            (&part["name"], &part["last"]),
            (&json!("a.py"), &json!(true))
        );
        peer.answer(&part, json!({})).await;
    });
    named.unwrap();
    let large = vec![0; 32 << 20];
    let (refused, ()) = tokio::join!(client.upload(&large), async {
        let (first, _) = peer.receive().await;
        peer.refuse(&first, "limit-upload").await;
        loop {
            let (part, payload) = peer.receive().await;
            assert_eq!(part["id"], first["id"]);
            if part["last"] == true {
                assert!(payload.is_empty(), "the rest was not sent");
                break;
            }
        }
    });
    assert_eq!(refused.unwrap_err().code(), "limit-upload");
}

#[tokio::test]
async fn detaching_acknowledges_first_and_leaves_the_rest() {
    let (_client, mut peer, process) = launched().await;
    peer.event(1, json!({ "kind": "stdout", "text": "one" }))
        .await;
    let mut events = process.events();
    assert!(events.next().await.unwrap().is_some());
    let (detached, ()) = tokio::join!(process.detach(), async {
        let detach = peer.expect("detach").await;
        assert_eq!(peer.acks, [(5, 1)]);
        peer.answer(&detach, json!({})).await;
    });
    detached.unwrap();
    assert_eq!(events.next().await.unwrap_err().code(), "session-closed");
}

#[tokio::test]
async fn of_two_readers_the_first_gets_all_events_and_the_second_is_told_so() {
    let (_client, mut peer, process) = launched().await;
    for (seq, text) in [(1, "one"), (2, "two"), (3, "three")] {
        peer.event(seq, json!({ "kind": "stdout", "text": text }))
            .await;
    }
    let (mut first, mut second) = (process.events(), process.events());
    assert_eq!(first.next().await.unwrap().unwrap().seq(), 1);
    let refused = second.next().await.unwrap_err();
    assert_eq!(refused.code(), "future-taken");
    assert_eq!(
        refused.message(),
        "the events of process 5 are read already, by another loop, which gets all of them; read them in one place"
    );
    assert_eq!(first.next().await.unwrap().unwrap().seq(), 2);
    drop(first);
    assert_eq!(second.next().await.unwrap().unwrap().seq(), 3);
}

#[tokio::test]
async fn an_end_of_the_connection_is_told_to_everybody_who_waits() {
    let unknown = json!({ "id": 999, "ok": {} });
    let full =
        json!({ "type": "error", "error": { "code": "limit-connections", "message": "too many" } });
    let revoked = CloseFrame {
        code: 1008_u16.into(),
        reason: "the key is no longer good".into(),
    };
    let cases = [
        (Message::text("hello"), "protocol-error"),
        (Message::text(unknown.to_string()), "protocol-error"),
        (Message::text(full.to_string()), "limit-connections"),
        (Message::Close(Some(revoked)), "authentication-failed"),
    ];
    for (message, code) in cases {
        let (client, mut peer, process) = launched().await;
        let mut events = process.events();
        let outcomes = async {
            let (pinged, read, ended) =
                tokio::join!(client.ping(), events.next(), process.result());
            [pinged.err(), read.err(), ended.err()]
        };
        let (outcomes, _peer) = tokio::join!(outcomes, async {
            peer.expect("ping").await;
            peer.socket.send(message).await.unwrap();
            peer
        });
        for error in outcomes {
            assert_eq!(error.as_ref().map(Error::code), Some(code));
        }
    }
}

/// The bound follows from what the server says of its messages: 64 MiB, and six times those.
#[tokio::test]
async fn a_message_that_is_too_long_fails_the_connection_by_its_head() {
    for (n_bytes, is_refused) in [(70_u64 << 20, false), ((70 << 20) + 1, true)] {
        let (client, mut peer) = connected().await;
        let head = [&[0x81, 127][..], &n_bytes.to_be_bytes()].concat();
        let (pinged, peer) = tokio::join!(client.ping(), async {
            peer.expect("ping").await;
            let stream = peer.socket.get_mut();
            stream.writable().await.unwrap();
            assert_eq!(stream.try_write(&head).unwrap(), head.len());
            if !is_refused {
                // The client waits for the rest of it.
                drop(peer);
                return None;
            }
            Some(peer)
        });
        let error = pinged.unwrap_err();
        let code = if is_refused {
            "protocol-error"
        } else {
            "connection-failed"
        };
        assert_eq!(error.code(), code, "{error}");
        drop(peer);
    }
}

#[tokio::test]
async fn what_does_not_speak_the_protocol_is_told() {
    for address in ["http://127.0.0.1:1", "127.0.0.1", ":1", "ws://", ""] {
        let error = Client::connect(address, ConnectOptions::default()).await;
        let error = error.err().unwrap();
        assert_eq!(error.code(), "connection-failed");
        assert!(
            error.message().contains("write it as ws://HOST:PORT"),
            "{error}"
        );
    }
    let key = ConnectOptions {
        key: Some("pie_0".to_owned()),
        ..ConnectOptions::default()
    };
    let error = Client::connect("ws://127.0.0.1:1", key)
        .await
        .err()
        .unwrap();
    assert_eq!(error.code(), "invalid-argument");
    let at_once = ConnectOptions {
        timeout: Some(Duration::ZERO),
        ..ConnectOptions::default()
    };
    let error = Client::connect("ws://127.0.0.1:1", at_once)
        .await
        .err()
        .unwrap();
    assert_eq!(
        (error.code(), &error.details()["argument"]),
        ("invalid-argument", &json!("timeout"))
    );
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("ws://{}", silent.local_addr().unwrap());
    let options = ConnectOptions {
        timeout: Some(Duration::from_millis(10)),
        ..ConnectOptions::default()
    };
    let error = Client::connect(&address, options).await.err().unwrap();
    assert!(
        error.message().contains("no answer within 0.01 s"),
        "{error}"
    );
}

#[tokio::test]
async fn a_server_without_tls_is_told_from_others() {
    let answers: [(&[u8], &str); 3] = [
        (
            b"HTTP/1.1 400 Bad Request\r\n\r\n",
            "the server answered without TLS; write ws://",
        ),
        (b"", "the connection broke before TLS was agreed on"),
        // An alert of TLS: the handshake has failed.
        (&[21, 3, 3, 0, 2, 2, 40], "TLS failed ("),
    ];
    for (answer, told) in answers {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("wss://{}", listener.local_addr().unwrap());
        let options = ConnectOptions::default();
        let (client, ()) = tokio::join!(Client::connect(&address, options), async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut hello = [0; 4096];
            assert!(stream.read(&mut hello).await.unwrap() > 0);
            assert_eq!(hello[0], 0x16);
            stream.write_all(answer).await.unwrap();
        });
        let error = client.err().unwrap();
        assert_eq!(error.code(), "connection-failed");
        assert!(error.message().contains(told), "{error}");
    }
}

#[tokio::test]
async fn an_mcp_server_is_a_process_whose_lines_are_carried() {
    let (client, mut peer) = connected().await;
    let server = McpCommand {
        command: "cat".to_owned(),
        ..McpCommand::default()
    };
    let (registered, ()) = tokio::join!(client.register_mcp_server("files", server), async {
        let request = peer.expect("register_mcp_server").await;
        assert_eq!(request["name"], "files");
        peer.answer(&request, json!({})).await;
    });
    registered.unwrap();
    peer.tell(json!({ "type": "mcp_start", "link": 1, "server": "files" }))
        .await;
    let line = r#"{"id":1}"#;
    for text in ["noise", line] {
        peer.tell(json!({ "type": "mcp_line", "link": 1, "text": text }))
            .await;
    }
    let carried = peer.expect("mcp_line").await;
    assert_eq!(
        (&carried["link"], &carried["text"]),
        (&json!(1), &json!(line))
    );
    peer.tell(json!({ "type": "mcp_stop", "link": 1 })).await;
    let ended = peer.expect("mcp_end").await;
    assert_eq!(ended["text"], "it was ended (exit status: 0)");
    peer.tell(json!({ "type": "mcp_start", "link": 2, "server": "other" }))
        .await;
    let ended = peer.expect("mcp_end").await;
    assert_eq!(ended["text"], "this client has no such server");
}

#[tokio::test]
async fn an_mcp_server_that_cannot_be_started_says_why() {
    let (client, mut peer) = connected().await;
    let server = McpCommand {
        command: "/nowhere/at/all".to_owned(),
        ..McpCommand::default()
    };
    let (registered, ()) = tokio::join!(client.register_mcp_server("files", server), async {
        let request = peer.expect("register_mcp_server").await;
        peer.answer(&request, json!({})).await;
    });
    registered.unwrap();
    peer.tell(json!({ "type": "mcp_start", "link": 1, "server": "files" }))
        .await;
    let ended = peer.expect("mcp_end").await;
    let text = ended["text"].as_str().unwrap();
    assert!(text.starts_with("it cannot be started"), "{text}");
}

/// Begins to register a server, and gives that up once the request is sent, which is given back.
async fn given_up(client: &Client, peer: &mut Peer, command: &str, args: &[&str]) -> Value {
    let server = McpCommand {
        command: command.to_owned(),
        args: args.iter().map(|text| (*text).to_owned()).collect(),
        ..McpCommand::default()
    };
    tokio::select! {
        biased;
        request = peer.expect("register_mcp_server") => request,
        registered = client.register_mcp_server("files", server) => panic!("{registered:?}"),
    }
}

/// Starts what is registered, which has to be a server that says what it is told.
async fn echoes(peer: &mut Peer, link: u64) {
    let start = json!({ "type": "mcp_start", "link": link, "server": "files" });
    peer.tell(start).await;
    let line = json!({ "type": "mcp_line", "link": link, "text": r#"{"id":1}"# });
    peer.tell(line.clone()).await;
    assert_eq!(peer.expect("mcp_line").await, line);
}

#[tokio::test]
async fn a_registration_that_is_given_up_is_made_as_a_whole_or_not_at_all() {
    let (client, mut peer) = connected().await;
    let refused = given_up(&client, &mut peer, "cat", &[]).await;
    peer.refuse(&refused, "limit-mcp-calls").await;
    peer.tell(json!({ "type": "mcp_start", "link": 1, "server": "files" }))
        .await;
    let ended = peer.expect("mcp_end").await;
    assert_eq!(ended["text"], "this client has no such server");
    let made = given_up(&client, &mut peer, "cat", &[]).await;
    peer.answer(&made, json!({})).await;
    echoes(&mut peer, 2).await;
    // One that is refused takes no place, nor does one that was never sent.
    let refused = given_up(&client, &mut peer, "/nowhere/at/all", &[]).await;
    peer.refuse(&refused, "limit-mcp-calls").await;
    echoes(&mut peer, 3).await;
    drop(client.register_mcp_server("files", McpCommand::default()));
    echoes(&mut peer, 4).await;
}

#[tokio::test]
async fn a_server_whose_registration_was_given_up_ends_with_its_client() {
    let folder = std::env::temp_dir().join(format!("pie-client-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let pipe = folder.join("alive");
    let made = std::process::Command::new("mkfifo")
        .arg(&pipe)
        .status()
        .unwrap();
    assert!(made.success());
    let (client, mut peer) = connected().await;
    // The pipe ends with the last process that has it.
    let script = r#"exec 3> "$0"; echo '{"id":7}'; exec cat"#;
    let path = pipe.to_str().unwrap();
    let request = given_up(&client, &mut peer, "sh", &["-c", script, path]).await;
    peer.answer(&request, json!({})).await;
    let reading = pipe.clone();
    let alive = tokio::task::spawn_blocking(move || std::fs::read(reading).unwrap());
    peer.tell(json!({ "type": "mcp_start", "link": 1, "server": "files" }))
        .await;
    assert_eq!(peer.expect("mcp_line").await["text"], r#"{"id":7}"#);
    drop(client);
    peer.expect("closed").await;
    drop(peer);
    let ended = tokio::time::timeout(PATIENCE, alive).await;
    assert_eq!(ended.unwrap().unwrap(), b"");
    std::fs::remove_dir_all(folder).unwrap();
}

/// Registers a server that never reads.
async fn deaf(client: &Client, peer: &mut Peer) {
    let server = McpCommand {
        command: "sleep".to_owned(),
        args: vec!["600".to_owned()],
        ..McpCommand::default()
    };
    let (registered, ()) = tokio::join!(client.register_mcp_server("deaf", server), async {
        let request = peer.expect("register_mcp_server").await;
        peer.answer(&request, json!({})).await;
    });
    registered.unwrap();
}

#[tokio::test]
async fn an_mcp_server_that_does_not_read_ends_at_the_bound_of_what_waits() {
    let (client, mut peer) = connected().await;
    deaf(&client, &mut peer).await;
    let start = json!({ "type": "mcp_start", "link": 1, "server": "deaf" });
    peer.tell(start).await;
    // What the pipe and the writer hold waits no more.
    let text = "x".repeat(900_000);
    for _ in 0..20 {
        let line = json!({ "type": "mcp_line", "link": 1, "text": text });
        peer.tell(line).await;
    }
    let ended = peer.expect("mcp_end").await;
    let why = ended["text"].as_str().unwrap();
    assert!(
        why.starts_with("it does not read what it is sent: ")
            && why.contains("of at most 16777216 of one server at this client (limit-mcp-bytes)"),
        "{why}"
    );
    let start = json!({ "type": "mcp_start", "link": 2, "server": "deaf" });
    peer.tell(start).await;
    for _ in 0..1200 {
        let line = json!({ "type": "mcp_line", "link": 2, "text": "x".repeat(1000) });
        peer.tell(line).await;
    }
    let ended = peer.expect("mcp_end").await;
    let why = ended["text"].as_str().unwrap();
    assert!(
        why.contains("1024 lines wait, the most of one server at this client (limit-mcp-calls)"),
        "{why}"
    );
}

#[tokio::test]
async fn a_second_start_of_a_link_ends_the_connection() {
    let (client, mut peer) = connected().await;
    deaf(&client, &mut peer).await;
    let pinging = async {
        let error = client.ping().await.unwrap_err();
        assert_eq!(error.code(), "protocol-error");
        assert_eq!(
            error.message(),
            "the server of Pie started an MCP server as the link 1, which is still open; connect again"
        );
    };
    let telling = async {
        peer.expect("ping").await;
        for _ in 0..2 {
            let start = json!({ "type": "mcp_start", "link": 1, "server": "deaf" });
            peer.tell(start).await;
        }
    };
    tokio::join!(pinging, telling);
}
