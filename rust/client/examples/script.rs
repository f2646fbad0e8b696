//! The script of verbs in Rust: `script ADDRESS PROGRAM MCP_SERVER...` writes what each answers as a line of JSON.
//!
//! `tests/client/three/script.py` and `script.mjs` are the same in the other clients, line by line.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program that prints a transcript and may stop at a fault"
)]

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use pie_client::{Client, ConnectOptions, DaemonOptions, Error, Event, Events, Failure, Form};
use pie_client::{LaunchOptions, McpCommand, Outcome, Process, Returned};
use serde_json::{Value, json};

const N_FIRST: usize = 5;
const MANIFEST: &str =
    "[package]\nname = \"daemon\"\nversion = \"2\"\n[http]\ninstance = \"request\"\n";

/// A line of the transcript.
fn told(verb: &str, mut answer: Value) {
    answer["verb"] = verb.into();
    println!("{answer}");
}

/// A line of a call that fails.
async fn refused<T>(verb: &str, call: impl Future<Output = Result<T, Error>>) {
    let error = call.await.err();
    let message = error.as_ref().map(Error::message);
    told(
        verb,
        json!({ "code": error.as_ref().map(Error::code), "message": message }),
    );
}

/// The same, of what the clients themselves say, which differs in its quotes.
async fn refused_here<T>(verb: &str, call: impl Future<Output = Result<T, Error>>) {
    let error = call.await.err();
    told(
        verb,
        json!({ "code": error.as_ref().map(Error::code), "message": null }),
    );
}

fn shown(event: &Event) -> Value {
    match event {
        Event::Stdout { text, form, seq } => {
            let form = form.map(|form| if form == Form::Json { "json" } else { "text" });
            json!({ "type": "stdout", "seq": seq, "text": text, "form": form })
        }
        Event::Stderr { text, seq } => json!({ "type": "stderr", "seq": seq, "text": text }),
        Event::Message { text, seq } => json!({ "type": "message", "seq": seq, "text": text }),
        Event::Notice { text, seq } => json!({ "type": "notice", "seq": seq, "text": text }),
        Event::File { data, seq } => json!({ "type": "file", "seq": seq, "data": data }),
        Event::Return(returned) => shown_return(returned),
        Event::Error(failure) => shown_failure(failure),
    }
}

fn shown_return(returned: &Returned) -> Value {
    json!({ "type": "return", "seq": returned.seq, "text": returned.text })
}

fn shown_failure(failure: &Failure) -> Value {
    let Failure {
        code,
        message,
        kind,
        traceback,
        seq,
    } = failure;
    json!({ "type": "error", "seq": seq, "code": code, "message": message, "kind": kind, "traceback": traceback })
}

/// The next events.
async fn read(verb: &str, events: &mut Events, n: usize) {
    let mut seen = Vec::new();
    for _ in 0..n {
        seen.push(shown(&events.next().await.unwrap().unwrap()));
    }
    told(verb, json!({ "events": seen }));
}

/// The events up to the last.
async fn read_on(verb: &str, events: &mut Events) {
    let mut seen = Vec::new();
    while let Some(event) = events.next().await.unwrap() {
        seen.push(shown(&event));
    }
    told(verb, json!({ "events": seen }));
}

/// A process that has said what it says first.
async fn launched(client: &Client, program: &str) -> (Process, Events) {
    let options = LaunchOptions {
        input: json!({ "n": u64::MAX, "list": [1.5, null, true, "ü"] }),
        seed: Some(7),
        ..LaunchOptions::default()
    };
    let process = client.launch(program, options).await.unwrap();
    let mut events = process.events();
    told("launch", json!({ "launch_seed": process.launch_seed() }));
    read("events", &mut events, N_FIRST).await;
    (process, events)
}

/// Programs: uploads, installs, looks up.
async fn install(client: &Client, program: &[u8]) {
    let checked = client.check_program("three", None).await.unwrap();
    told("check_program", json!({ "answer": checked }));
    for version in ["1.9", "1.10"] {
        let installing = client.install(program, "three", version, None);
        installing.await.unwrap();
    }
    let digest = client.upload(program).await.unwrap();
    told("upload", json!({ "digest": digest }));
    let programs = client.programs(false).await.unwrap();
    let programs: Vec<_> = programs
        .iter()
        .map(|found| json!([found.name, found.version, found.digest, found.bytes]))
        .collect();
    told("programs", json!({ "answer": programs }));
    let resolved = client.resolve_version("three").await.unwrap();
    told("resolve_version", json!({ "answer": resolved }));
    refused_here("resolve_version", client.resolve_version("other")).await;
    for (name, of) in [
        ("three@1.9", None),
        ("three", Some(digest.as_str())),
        ("three@1.9", Some("sha256:0")),
        ("three@2", None),
    ] {
        let checked = client.check_program(name, of).await.unwrap();
        told("check_program", json!({ "answer": checked }));
    }
}

/// Messages, signals and files; leaves and comes back; the end.
async fn talk(client: &Client) -> u64 {
    let (process, mut events) = launched(client, "three").await;
    process.send("hello").await.unwrap();
    process.signal("hi").await.unwrap();
    read("send", &mut events, 2).await;
    process.send("file").await.unwrap();
    let every_byte: Vec<u8> = (0..=u8::MAX).collect();
    process.transfer_file(&every_byte).await.unwrap();
    read("transfer_file", &mut events, 1).await;
    process.detach().await.unwrap();
    refused_here("detach", events.next()).await;
    let beyond = client.attach(process.pid(), 1_000_000_000, None);
    refused_here("attach", beyond).await;
    let again = client.attach(process.pid(), 0, None).await.unwrap();
    let mut events = again.events();
    told("attach", json!({ "launch_seed": again.launch_seed() }));
    again.send("stop").await.unwrap();
    read_on("stop", &mut events).await;
    let value: Value = again.result().await.unwrap().value().unwrap();
    told("result", json!({ "stopped": value["stopped"] }));
    refused_here("send", again.send("late")).await;
    process.pid()
}

/// The other ways in which a process ends.
async fn end(client: &Client, digest: &str) -> [u64; 4] {
    let (failing, mut events) = launched(client, "three@1.9").await;
    failing.send("fail").await.unwrap();
    read_on("fail", &mut events).await;
    if let Err(error) = failing.result().await {
        let of = |name: &str| error.details()[name].clone();
        let details =
            json!({ "kind": of("kind"), "message": of("message"), "traceback": of("traceback") });
        told(
            "result",
            json!({ "code": error.code(), "message": error.message(), "details": details }),
        );
    }
    let (closed, mut events) = launched(client, digest).await;
    closed.close_input().await.unwrap();
    read_on("close_input", &mut events).await;
    let (stopped, mut events) = launched(client, "three@1.10").await;
    stopped.terminate().await.unwrap();
    read_on("terminate", &mut events).await;
    let (other, mut events) = launched(client, "three").await;
    client.terminate(other.pid()).await.unwrap();
    read_on("terminate", &mut events).await;
    [failing, closed, stopped, other].map(|process| process.pid())
}

/// An MCP server of this client, for programs, which takes the place of one before; two are refused.
async fn run_servers(client: &Client, command: &[String]) -> u64 {
    let absent = McpCommand {
        command: "/nowhere/at/all".to_owned(),
        ..McpCommand::default()
    };
    let registering = client.register_mcp_server("files", absent);
    registering.await.unwrap();
    let server = McpCommand {
        command: command[0].clone(),
        args: command[1..].to_vec(),
        ..McpCommand::default()
    };
    let registering = client.register_mcp_server("files", server.clone());
    registering.await.unwrap();
    let (process, mut events) = launched(client, "three").await;
    process.send("tool").await.unwrap();
    read("register_mcp_server", &mut events, 1).await;
    client.unregister_mcp_server("files").await.unwrap();
    process.send("tool").await.unwrap();
    read("unregister_mcp_server", &mut events, 1).await;
    process.send("stop").await.unwrap();
    read_on("stop", &mut events).await;
    refused(
        "unregister_mcp_server",
        client.unregister_mcp_server("files"),
    )
    .await;
    refused(
        "register_mcp_server",
        client.register_mcp_server("a b", server),
    )
    .await;
    process.pid()
}

/// A program that serves HTTP.
async fn launch_daemon(client: &Client, address: &str, program: &[u8]) {
    let public = DaemonOptions {
        public: true,
        ..DaemonOptions::default()
    };
    let launching = client.launch_daemon(program, "daemon", "0.1.0", public);
    let path = launching.await.unwrap();
    let answer = asked(address, &path).ends_with("served for ada");
    told("launch_daemon", json!({ "path": path, "answer": answer }));
    let stated = DaemonOptions {
        manifest: Some(MANIFEST.to_owned()),
        ..DaemonOptions::default()
    };
    refused(
        "launch_daemon",
        client.launch_daemon(program, "daemon", "2", stated),
    )
    .await;
    client.uninstall("daemon", "0.1.0", None).await.unwrap();
}

/// What a server answers to a request by HTTP.
fn asked(address: &str, path: &str) -> String {
    let host = address.strip_prefix("ws://").unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    // A body of one chunk ends with the mark of the last one.
    answer.trim_end_matches("\r\n0\r\n\r\n").to_owned()
}

/// Waits until the server has put the end of a process down.
async fn ended(client: &Client, pid: u64) {
    let mut after = 0;
    loop {
        let logs = client.logs(pid, after, None, true).await.unwrap();
        if logs.ended && logs.text.is_empty() {
            return;
        }
        after = logs.next;
    }
}

/// What is told of processes and of the server.
async fn look(client: &Client, pids: &[u64]) {
    for pid in pids {
        ended(client, *pid).await;
    }
    let mut processes = client.list(true, false).await.unwrap();
    processes.retain(|process| pids.contains(&process.pid));
    let processes: Vec<_> = processes
        .iter()
        .map(|process| {
            json!([
                process.program,
                process.state,
                process.exit,
                process.detached
            ])
        })
        .collect();
    told("list", json!({ "answer": processes }));
    for pid in pids {
        let outcome = client.outcome(*pid).await.unwrap();
        let outcome = outcome.map(|outcome| match outcome {
            Outcome::Return(returned) => shown_return(&returned),
            Outcome::Error(failure) => shown_failure(&failure),
        });
        told("outcome", json!({ "answer": outcome }));
    }
    let logs = client.logs(pids[0], 0, None, false).await.unwrap();
    told(
        "logs",
        json!({ "text": logs.text, "next": logs.next, "dropped_bytes": logs.dropped_bytes, "ended": logs.ended }),
    );
    let part = client.logs(pids[0], 5, Some(4), false).await.unwrap();
    told("logs", json!({ "text": part.text }));
    let snapshots = client.snapshots(false).await.unwrap();
    let snapshots: Vec<_> = snapshots.iter().map(|snapshot| &snapshot.name).collect();
    told("snapshots", json!({ "answer": snapshots }));
    let adapters = client.adapters(false).await.unwrap();
    let adapters: Vec<_> = adapters.iter().map(|adapter| &adapter.name).collect();
    told("adapters", json!({ "answer": adapters }));
    let topics = client.topics(false).await.unwrap();
    let topics: Vec<_> = topics.iter().map(|topic| &topic.topic).collect();
    told("topics", json!({ "answer": topics }));
    let discarded = client.discard_topic("none", None).await.unwrap();
    told("discard_topic", json!({ "answer": discarded }));
    let stats = client.stats().await.unwrap();
    let mut names: Vec<_> = stats.keys().collect();
    names.sort();
    told("stats", json!({ "answer": names }));
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let (address, path) = (arguments.next().unwrap(), arguments.next().unwrap());
    let program = std::fs::read(path).unwrap();
    let options = ConnectOptions {
        user: Some("ada".to_owned()),
        ..ConnectOptions::default()
    };
    let client = Client::connect(&address, options).await.unwrap();
    told(
        "connect",
        json!({ "user": client.user(), "role": client.role(), "is_draining": client.is_draining() }),
    );
    client.ping().await.unwrap();
    install(&client, &program).await;
    let digest = client.upload(&program).await.unwrap();
    let mut pids = vec![talk(&client).await];
    pids.extend(end(&client, &digest).await);
    let server: Vec<String> = arguments.collect();
    pids.push(run_servers(&client, &server).await);
    look(&client, &pids).await;
    launch_daemon(&client, &address, &program).await;
    refused("launch", client.launch("absent", LaunchOptions::default())).await;
    let limited = LaunchOptions {
        limits: [("riddle".to_owned(), Some(1.0))].into(),
        ..LaunchOptions::default()
    };
    refused("launch", client.launch("three", limited)).await;
    refused("attach", client.attach(1, 0, None)).await;
    refused(
        "delete_snapshot",
        client.delete_snapshot("default", "absent", None),
    )
    .await;
    refused(
        "delete_adapter",
        client.delete_adapter("default", "absent", None),
    )
    .await;
    refused("connections", client.connections()).await;
    refused("disconnect", client.disconnect(1)).await;
    for version in ["1.9", "1.10"] {
        client.uninstall("three", version, None).await.unwrap();
    }
    refused("uninstall", client.uninstall("three", "1.9", None)).await;
    client.close().await;
    refused("ping", client.ping()).await;
}
