//! Sessions with a server that the test plays: it is told what it is to answer, line by line.

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use pie_core::ErrorCode;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use super::call::Asked;
use super::clients::McpClientServers;
use super::config::McpConfig;
use super::held::HeldMcp;
use super::outgoing::McpLine;
use super::relay::{McpIncoming, McpRelay};
use super::servers::McpServers;
use super::session::McpSession;
use crate::budget::{Account, Budget};
use crate::futures::{Awaited, Future};
use crate::limits::Limits;
use crate::sync::lock;
use crate::{Error, Purpose};

type Answering = fn(&Value) -> Vec<McpIncoming>;

/// A client whose servers answer by a function, and what they were told.
#[derive(Debug)]
struct Client {
    answer: Answering,
    told: mpsc::UnboundedSender<Value>,
    n_starts: Mutex<usize>,
}

impl McpRelay for Client {
    fn open(
        &self,
        _: &str,
        mut outgoing: mpsc::Receiver<McpLine>,
        incoming: mpsc::Sender<McpIncoming>,
    ) -> Result<(), Error> {
        *lock(&self.n_starts) += 1;
        let (answer, told) = (self.answer, self.told.clone());
        tokio::spawn(async move {
            while let Some(line) = outgoing.recv().await {
                let message: Value = serde_json::from_str(&line).unwrap();
                for line in answer(&message) {
                    drop(incoming.send(line).await);
                }
                drop(told.send(message));
            }
        });
        Ok(())
    }
}

/// A process, with the server `files` of its client.
struct World {
    held: HeldMcp,
    client: Arc<Client>,
    told: mpsc::UnboundedReceiver<Value>,
    account: Account,
    servers: Arc<McpClientServers>,
}

impl World {
    fn new(answer: Answering, limits: &Limits) -> Self {
        let (sender, told) = mpsc::unbounded_channel();
        let client = Arc::new(Client {
            answer,
            told: sender,
            n_starts: Mutex::default(),
        });
        let config = McpConfig {
            starts_per_minute: 3,
            ..McpConfig::default()
        };
        let runtime = Handle::current();
        let servers = McpServers::new(&config, &[].into(), limits, (runtime.clone(), "", &[]));
        let relay: Arc<dyn McpRelay> = client.clone();
        let of_client = servers.of_client(Arc::downgrade(&relay));
        of_client.register("files").unwrap();
        let account = Budget::new(64 << 20, None).account("ada");
        let there = (runtime, account.clone());
        Self {
            held: HeldMcp::new(servers, Some(of_client.clone()), limits, there),
            client,
            told,
            account,
            servers: of_client,
        }
    }

    fn session(&self) -> McpSession {
        McpSession::open(&self.held, "files").unwrap()
    }

    /// What the server is told next by that method.
    async fn told(&mut self, method: &str) -> Value {
        loop {
            let message = self.told.recv().await.unwrap();
            if message["method"] == method {
                return message;
            }
        }
    }

    fn n_held(&self) -> u64 {
        self.account.usage().n_bytes()
    }
}

async fn answer(mut future: Future<Asked>) -> Result<String, Error> {
    wasmtime_wasi::p2::Pollable::ready(&mut future).await;
    future.take().unwrap()
}

fn line(value: &Value) -> McpIncoming {
    written(&value.to_string())
}

/// A line, which is charged to somebody.
fn written(text: &str) -> McpIncoming {
    McpIncoming::line(text.to_owned(), &Budget::new(64 << 20, None).account("bob"))
}

fn result(message: &Value, result: Value) -> McpIncoming {
    let id = &message["id"];
    line(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

/// What every server answers to the hello.
fn hello(message: &Value) -> Option<Vec<McpIncoming>> {
    match message["method"].as_str()? {
        "initialize" => Some(vec![
            written("starting up"),
            result(
                message,
                json!({"protocolVersion": "2025-06-18", "capabilities": {}}),
            ),
        ]),
        "notifications/initialized" | "notifications/cancelled" => Some(Vec::new()),
        _ => None,
    }
}

/// Answers behind noise, and an answer that nobody waits for.
fn working(message: &Value) -> Vec<McpIncoming> {
    hello(message).unwrap_or_else(|| {
        let cursor = message["params"]["cursor"].as_str();
        let answer = match (message["method"].as_str().unwrap(), cursor) {
            ("tools/list", None) => json!({"tools": [{"name": "a"}], "nextCursor": "2"}),
            ("tools/list", Some(_)) => json!({"tools": [{"name": "b"}]}),
            (_, _) => json!({"asked": message["params"]}),
        };
        vec![
            line(&json!({"jsonrpc": "2.0", "id": 9999, "result": {"tools": []}})),
            written("{\"id\":"),
            result(message, answer),
        ]
    })
}

fn hanging(message: &Value) -> Vec<McpIncoming> {
    hello(message).unwrap_or_default()
}

fn crashing(message: &Value) -> Vec<McpIncoming> {
    hello(message).unwrap_or_else(|| vec![McpIncoming::Ended("it crashed".to_owned())])
}

fn long(message: &Value) -> Vec<McpIncoming> {
    hello(message).unwrap_or_else(|| vec![result(message, json!("x".repeat(2 << 20)))])
}

fn limits() -> Limits {
    Limits {
        mcp_answer_bytes: 1 << 20,
        ..Limits::default()
    }
}

#[tokio::test]
async fn a_session_asks_for_all_that_there_is() {
    let world = World::new(working, &limits());
    assert_eq!(world.held.names(), ["files"]);
    let session = world.session();
    let tools = answer(session.list(&world.held, "tools/list", "tools")).await;
    assert_eq!(tools.unwrap(), r#"{"tools":[{"name":"a"},{"name":"b"}]}"#);
    let called = session.named(&world.held, "tools/call", ("a", "{\"x\":\n1}"));
    assert_eq!(
        answer(called).await.unwrap(),
        r#"{"asked":{"name":"a","arguments":{"x":1}}}"#
    );
    let read = answer(session.read(&world.held, "file:///a\"b")).await;
    assert_eq!(read.unwrap(), r#"{"asked":{"uri":"file:///a\"b"}}"#);
    let hello = answer(session.hello(&world.held)).await.unwrap();
    assert!(hello.contains("2025-06-18"));
    let wrong = session.named(&world.held, "tools/call", ("a", "[]"));
    let error = answer(wrong).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidArgument);
    drop(session);
    assert_eq!((world.n_held(), *lock(&world.client.n_starts)), (0, 1));
}

#[tokio::test]
async fn a_server_that_hangs_is_told_that_it_is_given_up() {
    let limits = Limits {
        mcp_call: Duration::from_millis(50),
        ..limits()
    };
    let mut world = World::new(hanging, &limits);
    let session = world.session();
    let error = answer(session.read(&world.held, "a")).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::LimitMcpTime);
    let asked = world.told("resources/read").await;
    let cancelled = world.told("notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], asked["id"]);
}

#[tokio::test]
async fn what_is_dropped_or_closed_is_given_up() {
    let mut world = World::new(hanging, &limits());
    let mut session = world.session();
    let dropped = session.read(&world.held, "a");
    world.told("resources/read").await;
    drop(dropped);
    world.told("notifications/cancelled").await;
    let call = session.read(&world.held, "b");
    world.told("resources/read").await;
    session.close();
    session.close();
    assert_eq!(answer(call).await.unwrap_err().code, ErrorCode::McpClosed);
    world.told("notifications/cancelled").await;
    let late = answer(session.read(&world.held, "c")).await.unwrap_err();
    assert_eq!(late.code, ErrorCode::McpClosed);
    assert_eq!(world.n_held(), 0);
}

#[tokio::test]
async fn a_session_that_is_closed_keeps_no_server() {
    let world = World::new(working, &limits());
    let mut session = world.session();
    let server = Arc::downgrade(&world.servers.find("files").unwrap());
    assert!(world.servers.unregister("files"));
    assert!(server.upgrade().is_some());
    session.close();
    assert!(server.upgrade().is_none());
}

#[tokio::test]
async fn a_server_that_crashes_is_started_again_so_often() {
    let world = World::new(crashing, &limits());
    let session = world.session();
    for n in 1..=5 {
        let error = answer(session.read(&world.held, "a")).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::McpUnavailable);
        let part = if n <= 3 {
            "it crashed"
        } else {
            "runtime.mcp_starts_per_minute"
        };
        assert!(error.message.contains(part), "{}", error.message);
    }
    assert_eq!(*lock(&world.client.n_starts), 3);
}

#[tokio::test]
async fn a_client_that_has_gone_has_no_servers() {
    let mut world = World::new(working, &limits());
    let session = world.session();
    let (told, _) = mpsc::unbounded_channel();
    world.client = Arc::new(Client {
        answer: working,
        told,
        n_starts: Mutex::default(),
    });
    let error = answer(session.read(&world.held, "a")).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::McpUnavailable);
    assert!(error.message.contains("has gone"), "{}", error.message);
}

#[tokio::test]
async fn an_answer_that_is_too_long_is_refused_and_not_held() {
    let world = World::new(long, &limits());
    let session = world.session();
    let error = answer(session.read(&world.held, "a")).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::LimitMcpBytes);
    let sent = "x".repeat(2 << 20);
    let error = answer(session.read(&world.held, &sent)).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::LimitMcpBytes);
    assert!(world.n_held() < 64 << 10);
}

#[tokio::test]
async fn an_answer_is_charged_until_it_is_taken() {
    let world = World::new(working, &limits());
    let session = world.session();
    let uri = "x".repeat(100 << 10);
    let mut future = session.read(&world.held, &uri);
    wasmtime_wasi::p2::Pollable::ready(&mut future).await;
    assert!(world.n_held() > 200 << 10);
    future.take().unwrap().unwrap();
    assert!(world.n_held() < 64 << 10);
    let rest = 64 << 20;
    let all = world
        .account
        .charge(Purpose::Queue, rest / 8 * 3 - (64 << 10));
    let refused = answer(session.read(&world.held, &uri)).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::LimitEngineMemory);
    drop(all);
}

#[test]
fn a_line_is_charged_before_it_is_read() {
    let account = Budget::new(16 << 20, None).account("ada");
    let text = format!(r#"{{"id":7,"result":"{}"}}"#, "x".repeat(1 << 20));
    let first = McpIncoming::line(text.clone(), &account);
    assert!(account.usage().n_bytes() > 2 << 20);
    let lines: Vec<_> = (0..3)
        .map(|_| McpIncoming::line(text.clone(), &account))
        .collect();
    let McpIncoming::Unread(id, error) = &lines[2] else {
        panic!("a user may hold six mebibytes, and this line is one too many");
    };
    assert_eq!(id.as_deref(), Some("7"));
    assert_eq!(error.code, ErrorCode::LimitEngineMemory);
    drop((first, lines));
    assert_eq!(account.usage().n_bytes(), 0);
}

/// A client whose user has no memory for what its server answers.
fn without_memory(message: &Value) -> Vec<McpIncoming> {
    hello(message).unwrap_or_else(|| {
        let text = json!({"jsonrpc": "2.0", "id": message["id"], "result": {}}).to_string();
        let account = Budget::new(16 << 20, None).account("ada");
        let _all = account.charge(Purpose::Queue, 6 << 20).unwrap();
        vec![McpIncoming::line(text, &account)]
    })
}

#[tokio::test]
async fn an_answer_for_which_there_is_no_memory_fails_its_call_at_once() {
    let world = World::new(without_memory, &limits());
    let session = world.session();
    let error = answer(session.read(&world.held, "a")).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::LimitEngineMemory);
}

#[tokio::test]
async fn sessions_and_calls_are_counted() {
    let limits = Limits {
        mcp_sessions: 2,
        mcp_calls: 1,
        ..limits()
    };
    let world = World::new(hanging, &limits);
    let [first, _second] = [world.session(), world.session()];
    let error = McpSession::open(&world.held, "files").unwrap_err();
    assert_eq!(error.code, ErrorCode::LimitMcpCalls);
    let _call = first.read(&world.held, "a");
    let error = answer(first.read(&world.held, "b")).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::LimitMcpCalls);
    let error = McpSession::open(&world.held, "nobody").unwrap_err();
    assert_eq!(error.code, ErrorCode::UnknownMcpServer);
    assert!(error.message.contains("there are files"));
}
