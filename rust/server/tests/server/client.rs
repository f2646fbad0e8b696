//! A client that speaks the raw protocol.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

/// How long a test waits for a message before it has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A connected client.
pub(crate) struct Client {
    pub(crate) socket: WebSocketStream<TcpStream>,
    next_id: u64,
    /// What came while something else was waited for.
    passed: VecDeque<Value>,
}

impl Client {
    /// Connects without a hello.
    pub(crate) async fn silent(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        Self::over(stream).await
    }

    /// Upgrades a connection, without a hello.
    pub(crate) async fn over(stream: TcpStream) -> Self {
        stream.set_nodelay(true).unwrap();
        let url = format!("ws://{}/", stream.peer_addr().unwrap());
        let (socket, _) = tokio_tungstenite::client_async(url, stream).await.unwrap();
        Self {
            socket,
            next_id: 1,
            passed: VecDeque::new(),
        }
    }

    /// Connects and says hello.
    pub(crate) async fn connect(address: SocketAddr, user: &str) -> Self {
        let mut client = Self::silent(address).await;
        client
            .say(&json!({"type": "hello", "protocol": 1, "user": user}))
            .await;
        let hello = client.hear().await;
        assert_eq!(
            (&hello["type"], &hello["user"]),
            (&json!("hello"), &json!(user)),
            "{hello}"
        );
        client
    }

    /// Sends a text frame.
    pub(crate) async fn say(&mut self, message: &Value) {
        self.socket
            .send(Message::text(message.to_string()))
            .await
            .unwrap();
    }

    /// Sends a binary frame.
    pub(crate) async fn say_binary(&mut self, header: &Value, payload: &[u8]) {
        let header = header.to_string();
        let mut frame = u32::try_from(header.len()).unwrap().to_le_bytes().to_vec();
        frame.extend(header.as_bytes());
        frame.extend(payload);
        self.socket.send(Message::binary(frame)).await.unwrap();
    }

    /// The next message from the wire; the close comes as `{"close": code}`, the end without one as `{"close": null}`.
    pub(crate) async fn hear(&mut self) -> Value {
        loop {
            let frame = tokio::time::timeout(PATIENCE, self.socket.next())
                .await
                .unwrap();
            match frame {
                Some(Ok(Message::Text(text))) => return serde_json::from_str(&text).unwrap(),
                Some(Ok(Message::Binary(frame))) => {
                    let length = u32::from_le_bytes(frame[..4].try_into().unwrap()) as usize;
                    let mut header: Value = serde_json::from_slice(&frame[4..4 + length]).unwrap();
                    header["payload"] = json!(frame[4 + length..].to_vec());
                    return header;
                }
                Some(Ok(Message::Close(frame))) => {
                    return json!({ "close": frame.map(|frame| u16::from(frame.code)) });
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return json!({ "close": null }),
            }
        }
    }

    /// The next message for which `wanted` holds; others wait.
    pub(crate) async fn hear_that(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.passed.iter().position(&wanted) {
            return self.passed.remove(at).unwrap();
        }
        loop {
            let message = self.hear().await;
            if wanted(&message) {
                return message;
            }
            assert!(
                message.get("close").is_none(),
                "closed: {message}, after {:?}",
                self.passed
            );
            self.passed.push_back(message);
        }
    }

    /// Sends a request; returns its id.
    pub(crate) async fn ask(&mut self, mut request: Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        request["id"] = json!(id);
        self.say(&request).await;
        id
    }

    /// The answer to a request: what follows `ok`, or the code of the error.
    pub(crate) async fn answer(&mut self, id: u64) -> Result<Value, String> {
        let mut answer = self.hear_that(|message| message["id"] == id).await;
        match answer.get_mut("ok") {
            Some(ok) => Ok(ok.take()),
            None => Err(answer["error"]["code"].as_str().unwrap().to_owned()),
        }
    }

    /// Sends a request and waits for its answer.
    pub(crate) async fn request(&mut self, request: Value) -> Result<Value, String> {
        let id = self.ask(request).await;
        self.answer(id).await
    }

    /// Uploads bytes in one part; returns the digest.
    pub(crate) async fn upload(&mut self, bytes: &[u8]) -> String {
        let digest = digest(bytes);
        let id = self.next_id;
        self.next_id += 1;
        let header = json!({"id": id, "type": "upload", "digest": digest, "bytes": bytes.len(), "offset": 0, "last": true});
        self.say_binary(&header, bytes).await;
        let answer = self.answer(id).await.unwrap();
        assert_eq!(answer["digest"], digest);
        digest
    }

    /// Uploads and installs a program.
    pub(crate) async fn install(&mut self, name: &str, version: &str, bytes: &[u8]) -> Value {
        let digest = self.upload(bytes).await;
        let request =
            json!({"type": "install", "name": name, "version": version, "digest": digest});
        self.request(request).await.unwrap()
    }

    /// Launches a program, attached; returns its number.
    pub(crate) async fn launch(&mut self, program: &str) -> u64 {
        let launched = self
            .request(json!({"type": "launch", "program": program, "attach": true}))
            .await;
        launched.unwrap()["pid"].as_u64().unwrap()
    }

    /// The next event of a process, acknowledged.
    pub(crate) async fn event(&mut self, pid: u64) -> Value {
        let event = self.unacknowledged(pid).await;
        self.say(&json!({"type": "ack", "pid": pid, "seq": event["seq"]}))
            .await;
        event
    }

    /// The next event of a process.
    pub(crate) async fn unacknowledged(&mut self, pid: u64) -> Value {
        self.hear_that(|message| message["type"] == "event" && message["pid"] == pid)
            .await
    }

    /// The texts of the events of a process, and its last event, each acknowledged.
    pub(crate) async fn events(&mut self, pid: u64) -> (Vec<String>, Value) {
        let mut texts = Vec::new();
        loop {
            let event = self.event(pid).await;
            match event["text"].as_str() {
                Some(text) => texts.push(text.to_owned()),
                None => return (texts, event),
            }
        }
    }

    /// Waits until a process is listed with `value` under `key`.
    pub(crate) async fn until(&mut self, pid: u64, key: &str, value: &Value) -> Value {
        loop {
            let listed = self
                .request(json!({"type": "processes", "all": true}))
                .await
                .unwrap();
            let processes = listed["processes"].as_array().unwrap();
            let process = processes.iter().find(|process| process["pid"] == pid);
            if let Some(process) = process
                && process[key] == *value
            {
                return process.clone();
            }
        }
    }

    /// Waits until the number of an own process is unknown.
    pub(crate) async fn until_forgotten(&mut self, pid: u64) {
        while self.request(json!({"type": "logs", "pid": pid})).await
            != Err("unknown-process".to_owned())
        {}
    }
}

/// The digest of bytes as it travels.
pub(crate) fn digest(bytes: &[u8]) -> String {
    let digits: String = Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("sha256:{digits}")
}
