//! Hellos, requests and the order of things on one connection.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::Client;
use crate::world::{World, chatty, echoing, failing, quick, spinning};

/// Bytes of a message where a test makes them few.
const MESSAGE_BYTES: usize = 4096;

#[test]
fn a_client_of_the_future_is_told_the_version() {
    let world = World::new();
    world.run(async {
        for (hello, code, close) in [
            (
                json!({"type": "hello", "protocol": 2, "new": 1}),
                "protocol-version",
                1002,
            ),
            (
                json!({"type": "hello", "protocol": 1, "new": 1}),
                "protocol-error",
                1002,
            ),
            (json!({"type": "ping", "id": 1}), "protocol-error", 1002),
            (
                json!({"type": "hello", "protocol": 1, "user": "a/b"}),
                "invalid-name",
                1008,
            ),
        ] {
            let mut client = Client::silent(world.server.address()).await;
            client.say(&hello).await;
            assert_eq!(client.hear().await["error"]["code"], code, "{hello}");
            assert_eq!(client.hear().await, json!({ "close": close }), "{hello}");
        }
    });
}

#[test]
fn web_pages_of_other_origins_are_refused() {
    let world = World::with(|config| {
        let origins = pie_host::Value::Texts(vec!["https://good.example".to_owned()]);
        config.set("allowed_origins", origins).unwrap();
    });
    world.run(async {
        for (origin, admitted) in [("https://evil.example", false), ("https://good.example", true)] {
            let address = world.server.address();
            let mut stream = TcpStream::connect(address).await.unwrap();
            let request = format!(
                "GET / HTTP/1.1\r\nHost: {address}\r\nOrigin: {origin}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
            );
            stream.write_all(request.as_bytes()).await.unwrap();
            if admitted {
                let mut status = [0; 12];
                stream.read_exact(&mut status).await.unwrap();
                assert_eq!(&status, b"HTTP/1.1 101");
            } else {
                let mut answer = String::new();
                stream.read_to_string(&mut answer).await.unwrap();
                let (head, body) = answer.split_once("\r\n\r\n").unwrap();
                assert!(head.starts_with("HTTP/1.1 403 "), "{head}");
                let body: Value = serde_json::from_str(body).unwrap();
                assert_eq!(body["error"]["code"], "forbidden-origin");
            }
        }
    });
}

#[test]
fn bad_requests_fail_alone() {
    let world = World::new();
    world.run(async {
        let mut client = world.client("alice").await;
        for (request, code) in [
            (json!({"type": "fly"}), "protocol-error"),
            (json!({"type": "ping", "colour": 1}), "protocol-error"),
            (json!({"type": "launch"}), "protocol-error"),
            (
                json!({"type": "launch", "program": "nothing"}),
                "unknown-program",
            ),
            (
                json!({"type": "launch", "program": "../../etc/passwd"}),
                "unknown-program",
            ),
            (json!({"type": "attach", "pid": 1}), "unknown-process"),
            (
                json!({"type": "send", "pid": 1, "text": ""}),
                "unknown-process",
            ),
            (json!({"type": "upload"}), "protocol-error"),
            (
                json!({"type": "uninstall", "name": "x", "version": "1"}),
                "unknown-program",
            ),
        ] {
            assert_eq!(
                client.request(request.clone()).await,
                Err(code.to_owned()),
                "{request}"
            );
        }
        assert_eq!(client.request(json!({"type": "ping"})).await, Ok(json!({})));
    });
}

#[test]
fn an_id_belongs_to_one_open_request_and_the_open_ones_are_bounded() {
    let world = World::new();
    world.run(async {
        let mut client = world.client("alice").await;
        let digest = client.upload(&echoing()).await;
        let pid = client.launch(&digest).await;
        let follow = json!({"type": "logs", "pid": pid, "follow": true});
        let first = client.ask(follow.clone()).await;
        client.say(&json!({"id": first, "type": "ping"})).await;
        assert_eq!(client.answer(first).await, Err("protocol-error".to_owned()));
        for _ in 1..64 {
            client.ask(follow.clone()).await;
        }
        assert_eq!(
            client.request(json!({"type": "ping"})).await,
            Err("protocol-error".to_owned())
        );
        drop(client);
        let mut other = world.client("alice").await;
        other
            .request(json!({"type": "send", "pid": pid, "text": "go"}))
            .await
            .unwrap();
        other.until(pid, "state", &json!("ended")).await;
    });
}

#[test]
fn events_come_in_order_after_the_answer() {
    let world = World::new();
    world.run(async {
        let mut client = world.client("alice").await;
        let digest = client.upload(&chatty(300)).await;
        let id = client.ask(json!({"type": "launch", "program": digest, "attach": true, "seed": u64::MAX, "window_bytes": 64})).await;
        let answer = client.hear().await;
        assert_eq!((&answer["id"], &answer["ok"]["launch_seed"]), (&json!(id), &json!(u64::MAX)));
        let pid = answer["ok"]["pid"].as_u64().unwrap();
        for seq in 1..=300 {
            let event = client.event(pid).await;
            assert_eq!(event, json!({"type": "event", "pid": pid, "seq": seq, "kind": "stdout", "form": "text", "text": "hello"}));
        }
        let last = client.event(pid).await;
        assert_eq!((&last["kind"], &last["value"]), (&json!("return"), &json!("true")));
    });
}

#[test]
fn a_process_whose_events_are_not_taken_holds_up_no_other() {
    let world = World::new();
    world.run(async {
        let mut client = world.client("alice").await;
        let digest = client.upload(&chatty(100_000)).await;
        let stuck = client.launch(&digest).await;
        client.unacknowledged(stuck).await;
        let quick = client.upload(&chatty(20)).await;
        for _ in 0..5 {
            let pid = client.launch(&quick).await;
            let (texts, last) = client.events(pid).await;
            assert_eq!((texts.len(), &last["kind"]), (20, &json!("return")));
        }
        client
            .request(json!({"type": "terminate", "pid": stuck}))
            .await
            .unwrap();
        client.until(stuck, "exit", &json!("cancelled")).await;
    });
}

#[test]
fn messages_reach_the_program_until_its_queue_is_full() {
    let mut host = pie_host::HostConfig::default();
    host.limits.queue_events = 2;
    let folder = std::sync::Arc::new(tempfile::tempdir().unwrap());
    let world = World::over(folder, host, |_| ());
    world.run(async {
        let mut client = world.client("alice").await;
        let digest = client.upload(&echoing()).await;
        let pid = client.launch(&digest).await;
        client
            .request(json!({"type": "signal", "pid": pid, "text": "what?"}))
            .await
            .unwrap();
        let (texts, last) = client.events(pid).await;
        assert_eq!(
            (texts, &last["value"]),
            (vec!["what?".to_owned()], &json!("true"))
        );
        let late = client
            .request(json!({"type": "send", "pid": pid, "text": "late"}))
            .await;
        assert_eq!(late, Err("session-closed".to_owned()));
        let digest = client.upload(&spinning()).await;
        let pid = client.launch(&digest).await;
        let send = json!({"type": "send", "pid": pid, "text": "x"});
        client.request(send.clone()).await.unwrap();
        client.request(send.clone()).await.unwrap();
        assert_eq!(client.request(send).await, Err("limit-queue".to_owned()));
        client
            .say_binary(
                &json!({"id": 1000, "type": "file", "pid": pid}),
                &[0xff; 10],
            )
            .await;
        assert_eq!(client.answer(1000).await, Ok(json!({})));
        client
            .request(json!({"type": "close_input", "pid": pid}))
            .await
            .unwrap();
        client
            .request(json!({"type": "terminate", "pid": pid}))
            .await
            .unwrap();
        assert_eq!(client.events(pid).await.1["code"], "cancelled");
    });
}

#[test]
fn logs_are_read_without_taking_and_followed() {
    let world = World::with(|config| config.log_bytes = 12);
    world.run(async {
        let mut client = world.client("alice").await;
        let digest = client.upload(&chatty(3)).await;
        let pid = client.launch(&digest).await;
        client.events(pid).await;
        let log = client
            .request(json!({"type": "logs", "pid": pid}))
            .await
            .unwrap();
        assert_eq!(
            log,
            json!({"text": "lohellohello", "next": 15, "dropped_bytes": 3, "ended": true})
        );
        let tail = client
            .request(json!({"type": "logs", "pid": pid, "tail_bytes": 2, "follow": true}))
            .await
            .unwrap();
        assert_eq!(tail["text"], "lo");
        let digest = client.upload(&echoing()).await;
        let pid = client.launch(&digest).await;
        let following = client
            .ask(json!({"type": "logs", "pid": pid, "follow": true}))
            .await;
        client
            .request(json!({"type": "send", "pid": pid, "text": "now"}))
            .await
            .unwrap();
        assert_eq!(client.answer(following).await.unwrap()["text"], "now");
    });
}

#[test]
fn how_a_process_ended_can_be_asked_for_after_its_events_were_taken() {
    let world = World::new();
    world.run(async {
        let mut client = world.client("alice").await;
        let digest = client.upload(&echoing()).await;
        let pid = client.launch(&digest).await;
        let outcome = json!({"type": "outcome", "pid": pid});
        assert_eq!(
            client.request(outcome.clone()).await.unwrap(),
            json!({"outcome": null})
        );
        client
            .request(json!({"type": "terminate", "pid": pid}))
            .await
            .unwrap();
        client.events(pid).await;
        let answer = client.request(outcome.clone()).await.unwrap();
        assert_eq!(
            (&answer["outcome"]["kind"], &answer["outcome"]["code"]),
            (&json!("error"), &json!("cancelled"))
        );
        let digest = client.upload(&chatty(3)).await;
        let pid = client.launch(&digest).await;
        client.events(pid).await;
        let answer = client
            .request(json!({"type": "outcome", "pid": pid}))
            .await
            .unwrap();
        assert_eq!(answer["outcome"]["kind"], "return");
        let mut other = world.client("bob").await;
        let refused = other.request(json!({"type": "outcome", "pid": pid})).await;
        assert_eq!(refused.unwrap_err(), "unknown-process");
    });
}

#[test]
fn a_long_log_comes_in_parts() {
    let mut host = pie_host::HostConfig::default();
    host.limits.message_bytes = MESSAGE_BYTES;
    let folder = std::sync::Arc::new(tempfile::tempdir().unwrap());
    let world = World::over(folder, host, |_| ());
    world.run(async {
        let mut client = world.client("alice").await;
        let digest = client.upload(&chatty(2000)).await;
        let pid = client.launch(&digest).await;
        client.events(pid).await;
        let mut text = String::new();
        loop {
            let request = json!({"type": "logs", "pid": pid, "after": text.len(), "follow": true});
            let log = client.request(request).await.unwrap();
            let part = log["text"].as_str().unwrap();
            assert!(part.len() <= MESSAGE_BYTES);
            text.push_str(part);
            assert_eq!(log["next"], text.len());
            if part.is_empty() {
                assert_eq!(log["ended"], true);
                break;
            }
        }
        assert_eq!(text, "hello".repeat(2000));
    });
}

#[test]
fn the_kind_of_a_failure_is_clamped() {
    let world = World::new();
    world.run(async {
        let mut client = world.client("alice").await;
        let digest = client.upload(&failing(5000)).await;
        let pid = client.launch(&digest).await;
        let last = client.events(pid).await.1;
        assert_eq!(
            (&last["code"], &last["error_kind"]),
            (&json!("program-error"), &json!("k".repeat(256)))
        );
    });
}

#[test]
fn a_client_cannot_have_events_that_were_not_sent_yet() {
    let world = World::new();
    world.run(async {
        let mut client = world.client("alice").await;
        client.install("p", "1", &spinning()).await;
        let pid = client.launch("p").await;
        client
            .request(json!({"type": "detach", "pid": pid}))
            .await
            .unwrap();
        for after_seq in [99, u64::MAX] {
            let attach = json!({"type": "attach", "pid": pid, "after_seq": after_seq});
            assert_eq!(
                client.request(attach).await,
                Err("invalid-argument".to_owned())
            );
        }
        // A refusal attaches nobody.
        let attach = json!({"type": "attach", "pid": pid, "after_seq": 0});
        assert_eq!(client.request(attach).await.unwrap()["next_seq"], 1);
    });
}

#[test]
fn users_see_their_own_only() {
    let world = World::new();
    world.run(async {
        let (mut alice, mut bob) = (world.client("alice").await, world.client("bob").await);
        alice.install("p", "1", &spinning()).await;
        let pid = alice.launch("p").await;
        for request in [
            json!({"type": "attach", "pid": pid}),
            json!({"type": "detach", "pid": pid}),
            json!({"type": "terminate", "pid": pid}),
            json!({"type": "logs", "pid": pid}),
            json!({"type": "close_input", "pid": pid}),
        ] {
            assert_eq!(
                bob.request(request).await,
                Err("unknown-process".to_owned())
            );
        }
        assert_eq!(
            bob.request(json!({"type": "launch", "program": "p"})).await,
            Err("unknown-program".to_owned())
        );
        assert_eq!(
            bob.request(json!({"type": "processes", "all": true})).await,
            Ok(json!({"processes": []}))
        );
        assert_eq!(
            bob.request(json!({"type": "programs"})).await,
            Ok(json!({"programs": []}))
        );
        let mut again = world.client("alice").await;
        assert_eq!(
            again.request(json!({"type": "attach", "pid": pid})).await,
            Err("process-attached".to_owned())
        );
        again
            .request(json!({"type": "terminate", "pid": pid}))
            .await
            .unwrap();
        assert_eq!(alice.events(pid).await.1["code"], "cancelled");
    });
}

#[test]
fn a_thousand_launches_over_fifty_connections_leave_nothing() {
    let host = pie_host::HostConfig {
        max_processes: 2000,
        ..pie_host::HostConfig::default()
    };
    let folder = std::sync::Arc::new(tempfile::tempdir().unwrap());
    let world = World::over(folder, host, |config| {
        config.max_processes_per_user = 2000;
        config.max_ended_processes = 10;
    });
    world.run(async {
        let mut first = world.client("alice").await;
        first.install("p", "1", &quick()).await;
        let address = world.server.address();
        let clients: Vec<_> = (0..50)
            .map(|_| {
                tokio::spawn(async move {
                    let mut client = Client::connect(address, "alice").await;
                    for _ in 0..20 {
                        let pid = client.launch("p").await;
                        assert_eq!(client.events(pid).await.1["value"], "true");
                    }
                })
            })
            .collect();
        for client in clients {
            client.await.unwrap();
        }
        let stats = first.request(json!({"type": "stats"})).await.unwrap();
        assert_eq!(
            (&stats["n_live"], &stats["n_ended"]),
            (&json!(0), &json!(10))
        );
    });
    assert_eq!(world.server.n_live(), 0);
}
