//! Processes and their clients: who outlives whom, and what waits for whom.

use std::time::Duration;

use serde_json::json;

use crate::client::Client;
use crate::world::{World, chatty, echoing, quick, spinning};

#[test]
fn a_detached_process_waits_with_its_events_for_whoever_attaches() {
    let world = World::with(|config| config.grace = Duration::from_millis(1));
    world.run(async {
        let mut client = world.client("alice").await;
        let digest = client.upload(&echoing()).await;
        let launch = json!({"type": "launch", "program": digest, "detached": true});
        let pid = client.request(launch).await.unwrap()["pid"]
            .as_u64()
            .unwrap();
        drop(client);
        let mut client = world.client("alice").await;
        client
            .request(json!({"type": "send", "pid": pid, "text": "kept"}))
            .await
            .unwrap();
        let listed = client.until(pid, "state", &json!("ended")).await;
        assert_eq!(
            (&listed["exit"], &listed["detached"]),
            (&json!("return"), &json!(true))
        );
        let attached = client
            .request(json!({"type": "attach", "pid": pid}))
            .await
            .unwrap();
        assert_eq!(attached, json!({"pid": pid, "next_seq": 1}));
        let (texts, last) = client.events(pid).await;
        assert_eq!(
            (texts, &last["value"]),
            (vec!["kept".to_owned()], &json!("true"))
        );
    });
}

#[test]
fn without_a_client_a_process_ends_after_its_grace() {
    let world = World::with(|config| config.grace = Duration::from_millis(20));
    world.run(async {
        let mut client = world.client("alice").await;
        let digest = client.upload(&spinning()).await;
        let pid = client.launch(&digest).await;
        drop(client);
        let mut client = world.client("alice").await;
        client.until(pid, "exit", &json!("cancelled")).await;
        client
            .request(json!({"type": "attach", "pid": pid}))
            .await
            .unwrap();
        let last = client.event(pid).await;
        assert!(
            last["message"]
                .as_str()
                .unwrap()
                .contains("server.grace_s = 0.02 s"),
            "{last}"
        );
    });
}

#[test]
fn what_was_not_acknowledged_goes_to_the_next_client() {
    let world = World::new();
    world.run(async {
        let mut first = world.client("alice").await;
        let digest = first.upload(&chatty(10)).await;
        let pid = first.launch(&digest).await;
        for _ in 0..4 {
            first.event(pid).await;
        }
        for _ in 0..3 {
            first.unacknowledged(pid).await;
        }
        // The acknowledgements have arrived when a later request was answered.
        first.request(json!({"type": "ping"})).await.unwrap();
        drop(first);
        let mut second = world.client("alice").await;
        second.until(pid, "attached", &json!(false)).await;
        let attached = second
            .request(json!({"type": "attach", "pid": pid}))
            .await
            .unwrap();
        assert_eq!(attached["next_seq"], 5);
        for seq in 5..=11 {
            assert_eq!(second.event(pid).await["seq"], seq);
        }
    });
}

#[test]
fn after_a_detach_no_event_follows_and_nothing_is_lost() {
    let world = World::new();
    world.run(async {
        let mut client = world.client("alice").await;
        let digest = client.upload(&chatty(500)).await;
        let id = client
            .ask(json!({"type": "launch", "program": digest, "attach": true, "window_bytes": 20}))
            .await;
        let pid = client.answer(id).await.unwrap()["pid"].as_u64().unwrap();
        client.event(pid).await;
        let detaching = client.ask(json!({"type": "detach", "pid": pid})).await;
        client.answer(detaching).await.unwrap();
        client.until(pid, "state", &json!("ended")).await;
        let attaching = client.ask(json!({"type": "attach", "pid": pid})).await;
        let next_seq = client.answer(attaching).await.unwrap()["next_seq"]
            .as_u64()
            .unwrap();
        let mut seen = 0;
        while seen < 501 {
            let event = client.event(pid).await;
            let seq = event["seq"].as_u64().unwrap();
            assert!(
                seq == seen + 1 || seq <= seen || seq == next_seq,
                "{event} after {seen}"
            );
            seen = seen.max(seq);
        }
    });
}

#[test]
fn unread_output_is_dropped_and_counted_and_the_end_is_kept() {
    let world = World::with(|config| config.kept_bytes = 3 * (64 + 5));
    world.run(async {
        let mut client = world.client("alice").await;
        let digest = client.upload(&chatty(50)).await;
        let launch = json!({"type": "launch", "program": digest});
        let pid = client.request(launch).await.unwrap()["pid"]
            .as_u64()
            .unwrap();
        let listed = client.until(pid, "state", &json!("ended")).await;
        assert_eq!(listed["dropped"], 47);
        let attached = client
            .request(json!({"type": "attach", "pid": pid}))
            .await
            .unwrap();
        assert_eq!(attached["next_seq"], 47);
        let first = client.event(pid).await;
        assert_eq!(
            (&first["kind"], &first["seq"]),
            (&json!("notice"), &json!(47))
        );
        assert_eq!(
            first["text"],
            "47 events (235 bytes) were dropped while nobody was attached"
        );
        let (texts, last) = client.events(pid).await;
        assert_eq!((texts.len(), &last["seq"]), (3, &json!(51)));
    });
}

#[test]
fn ended_processes_are_forgotten_in_time_and_in_number() {
    let world = World::with(|config| config.max_ended_processes = 2);
    world.run(async {
        let mut client = world.client("alice").await;
        let digest = client.upload(&quick()).await;
        let mut pids = Vec::new();
        for _ in 0..4 {
            let pid = client.launch(&digest).await;
            client.events(pid).await;
            pids.push(pid);
        }
        let listed = client
            .request(json!({"type": "processes", "all": true}))
            .await
            .unwrap();
        let kept: Vec<_> = listed["processes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|p| p["pid"].as_u64().unwrap())
            .collect();
        assert_eq!(kept, pids[2..]);
        let gone = client
            .request(json!({"type": "attach", "pid": pids[0]}))
            .await;
        assert_eq!(gone, Err("unknown-process".to_owned()));
    });
    let world = World::with(|config| config.retention = Duration::from_millis(1));
    world.run(async {
        let mut client = world.client("alice").await;
        let digest = client.upload(&quick()).await;
        let pid = client.launch(&digest).await;
        client.events(pid).await;
        loop {
            let stats = client.request(json!({"type": "stats"})).await.unwrap();
            if (&stats["n_live"], &stats["n_ended"]) == (&json!(0), &json!(0)) {
                break;
            }
        }
    });
}

#[test]
fn whoever_keeps_the_most_ended_processes_gives_way_first() {
    let world = World::with(|config| config.max_ended_processes = 4);
    world.run(async {
        let (mut alice, mut bob) = (world.client("alice").await, world.client("bob").await);
        let digest = bob.upload(&quick()).await;
        let his = bob.launch(&digest).await;
        bob.events(his).await;
        let digest = alice.upload(&quick()).await;
        let mut hers = Vec::new();
        for _ in 0..8 {
            let pid = alice.launch(&digest).await;
            alice.events(pid).await;
            hers.push(pid);
        }
        let all = json!({"type": "processes", "all": true});
        let pids = |listed: serde_json::Value| {
            let processes = listed["processes"].as_array().unwrap().iter();
            let pids = processes.map(|process| process["pid"].as_u64().unwrap());
            pids.collect::<Vec<_>>()
        };
        assert_eq!(pids(bob.request(all.clone()).await.unwrap()), [his]);
        assert_eq!(pids(alice.request(all).await.unwrap()), hers[5..]);
    });
}

#[test]
fn a_client_gets_the_rest_of_a_forgotten_process_within_the_bounds() {
    let world = World::with(|config| config.max_ended_processes = 0);
    world.run(async {
        let mut client = world.client("alice").await;
        let digest = client.upload(&chatty(50)).await;
        let launch =
            json!({"type": "launch", "program": digest, "attach": true, "window_bytes": 1});
        let pid = client.request(launch).await.unwrap()["pid"]
            .as_u64()
            .unwrap();
        let (texts, last) = client.events(pid).await;
        assert_eq!((texts.len(), &last["value"]), (50, &json!("true")));
        client.until_forgotten(pid).await;
    });
    // Nothing may be kept: the process goes with all that was not sent, and the client is told so.
    let world = World::with(|config| config.max_ended_bytes = 0);
    world.run(async {
        let mut client = world.client("alice").await;
        let digest = client.upload(&chatty(3)).await;
        let launch =
            json!({"type": "launch", "program": digest, "attach": true, "window_bytes": 1});
        let pid = client.request(launch).await.unwrap()["pid"]
            .as_u64()
            .unwrap();
        client.until_forgotten(pid).await;
        // One event fits into the window, where it was sent in time.
        let mut last = client.unacknowledged(pid).await;
        if last["kind"] == "stdout" {
            last = client.unacknowledged(pid).await;
        }
        assert_eq!(
            (&last["code"], &last["seq"]),
            (&json!("unknown-process"), &json!(4))
        );
        // The attachment outlives the number, and can be ended.
        assert_eq!(
            client.request(json!({"type": "detach", "pid": pid})).await,
            Ok(json!({}))
        );
        assert_eq!(
            client.request(json!({"type": "detach", "pid": pid})).await,
            Err("unknown-process".to_owned())
        );
    });
}

#[test]
fn a_process_whose_events_were_taken_cannot_be_attached_to() {
    let world = World::new();
    world.run(async {
        let mut client = world.client("alice").await;
        let digest = client.upload(&chatty(1)).await;
        let pid = client.launch(&digest).await;
        client.events(pid).await;
        let id = client.ask(json!({"type": "attach", "pid": pid})).await;
        let answer = client.hear_that(|message| message["id"] == id).await;
        assert_eq!(answer["error"]["code"], "session-closed");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(
            message.contains("has ended and its events were taken; `pie logs "),
            "{message}"
        );
        let log = client
            .request(json!({"type": "logs", "pid": pid}))
            .await
            .unwrap();
        assert_eq!(log["text"], "hello");
    });
}

#[test]
fn a_detach_behind_a_launch_from_disk_finds_the_process_attached() {
    let world = World::new();
    world.run(async {
        let mut client = world.client("alice").await;
        client.install("p", "1", &chatty(100_000)).await;
    });
    let folder = world.folder.clone();
    drop(world);
    for _ in 0..20 {
        let world = World::over(folder.clone(), pie_host::HostConfig::default(), |_| ());
        world.run(async {
            let mut client = world.client("alice").await;
            let pid = client.launch("p").await;
            client
                .request(json!({"type": "detach", "pid": pid}))
                .await
                .unwrap();
            // Attached no more, so that nothing suspends it.
            client.until(pid, "state", &json!("ended")).await;
        });
    }
}

#[test]
fn the_processes_of_a_user_are_bounded() {
    let world = World::with(|config| config.max_processes_per_user = 2);
    world.run(async {
        let mut alice = world.client("alice").await;
        let digest = alice.upload(&spinning()).await;
        let pid = alice.launch(&digest).await;
        alice.launch(&digest).await;
        let third = alice
            .request(json!({"type": "launch", "program": digest}))
            .await;
        assert_eq!(third, Err("limit-processes".to_owned()));
        let mut bob = world.client("bob").await;
        let his = bob.upload(&quick()).await;
        let his = bob.launch(&his).await;
        assert_eq!(bob.events(his).await.1["value"], "true");
        alice
            .request(json!({"type": "terminate", "pid": pid}))
            .await
            .unwrap();
        alice.events(pid).await;
        alice.launch(&digest).await;
    });
}

#[test]
fn draining_refuses_launches_and_lets_processes_end() {
    let world = World::new();
    world.run(async {
        let mut client = world.client("alice").await;
        let digest = client.upload(&echoing()).await;
        let pid = client.launch(&digest).await;
        world.server.begin_drain();
        client
            .hear_that(|message| message["type"] == "draining")
            .await;
        let refused = client
            .request(json!({"type": "launch", "program": digest}))
            .await;
        assert_eq!(refused, Err("server-draining".to_owned()));
        let unknown = client
            .request(json!({"type": "launch", "program": "nothing"}))
            .await;
        assert_eq!(unknown, Err("server-draining".to_owned()));
        assert_eq!(world.server.n_live(), 1);
        client
            .request(json!({"type": "send", "pid": pid, "text": "last words"}))
            .await
            .unwrap();
        let (texts, last) = client.events(pid).await;
        assert_eq!(
            (texts, &last["value"]),
            (vec!["last words".to_owned()], &json!("true"))
        );
    });
    assert_eq!(world.server.n_live(), 0);
}

#[test]
fn what_does_not_end_while_the_server_drains_is_cancelled() {
    let world = World::with(|config| config.drain = Duration::from_millis(1));
    world.run(async {
        let mut client = world.client("alice").await;
        let digest = client.upload(&spinning()).await;
        let pid = client.launch(&digest).await;
        world.server.begin_drain();
        let last = client.events(pid).await.1;
        assert_eq!(
            (&last["code"], &last["message"]),
            (&json!("cancelled"), &json!("the server has ended"))
        );
    });
}

#[test]
fn a_stop_delivers_what_is_left_and_says_goodbye() {
    let world = World::new();
    let (mut client, pid) = world.run(async {
        let mut client = world.client("alice").await;
        let digest = client.upload(&spinning()).await;
        let pid = client.launch(&digest).await;
        (client, pid)
    });
    world.server.stop();
    world.run(async {
        let last = client.unacknowledged(pid).await;
        assert_eq!(
            (&last["kind"], &last["code"]),
            (&json!("error"), &json!("cancelled"))
        );
        client.hear_that(|message| message["close"] == 1001).await;
    });
    assert_eq!(world.server.n_live(), 0);
    world.server.stop();
    let refused = world.run(async {
        tokio::net::TcpStream::connect(world.server.address())
            .await
            .is_err()
    });
    assert!(refused);
}

#[test]
fn a_stop_lets_a_client_take_what_did_not_fit_its_window() {
    let world = World::new();
    let (mut client, pid) = world.run(async {
        let mut client = world.client("alice").await;
        let digest = client.upload(&chatty(40)).await;
        let launch =
            json!({"type": "launch", "program": digest, "attach": true, "window_bytes": 10});
        let pid = client.request(launch).await.unwrap()["pid"].as_u64();
        let pid = pid.unwrap();
        client.until(pid, "state", &json!("ended")).await;
        (client, pid)
    });
    std::thread::scope(|scope| {
        scope.spawn(|| world.server.stop());
        world.run(async {
            // The server closes once nobody comes in any more.
            let address = world.server.address();
            while tokio::net::TcpStream::connect(address).await.is_ok() {
                tokio::task::yield_now().await;
            }
            let (texts, last) = client.events(pid).await;
            assert_eq!((texts.len(), &last["kind"]), (40, &json!("return")));
            client.hear_that(|message| message["close"] == 1001).await;
        });
    });
    // Nothing is left of it, though its end was kept.
    assert!(world.host.find_process("alice", pid).is_err());
}

#[test]
fn a_client_may_come_back_within_the_grace() {
    let world = World::new();
    world.run(async {
        let mut client = world.client("alice").await;
        let digest = client.upload(&echoing()).await;
        let pid = client.launch(&digest).await;
        drop(client);
        let mut again: Client = world.client("alice").await;
        again.until(pid, "attached", &json!(false)).await;
        again
            .request(json!({"type": "attach", "pid": pid}))
            .await
            .unwrap();
        again
            .request(json!({"type": "send", "pid": pid, "text": "back"}))
            .await
            .unwrap();
        assert_eq!(again.events(pid).await.0, ["back"]);
    });
}
