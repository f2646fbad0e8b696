//! Servers that answer with what a test has written.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A server of this machine.
pub(super) struct Server {
    pub(super) port: u16,
    n_connections: Arc<AtomicUsize>,
}

impl Server {
    /// Hands each connection to `answer`, with the head of the request that came by it.
    pub(super) async fn start<F>(answer: impl Fn(String, TcpStream) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let n_connections = Arc::new(AtomicUsize::new(0));
        let counted = n_connections.clone();
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                counted.fetch_add(1, Ordering::Relaxed);
                let head = read_head(&mut stream).await;
                tokio::spawn(answer(head, stream));
            }
        });
        Self {
            port,
            n_connections,
        }
    }

    /// Answers every request with these bytes, and closes.
    pub(super) async fn saying(answer: impl Into<Vec<u8>>) -> Self {
        let answer: Arc<Vec<u8>> = Arc::new(answer.into());
        Self::start(move |_, stream| {
            let answer = answer.clone();
            async move { reply(stream, &answer).await }
        })
        .await
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub(super) fn n_connections(&self) -> usize {
        self.n_connections.load(Ordering::Relaxed)
    }
}

/// Answers, and closes. What the client has sent beyond the head is read, or the system would cut the answer off.
pub(super) async fn reply(mut stream: TcpStream, answer: &[u8]) {
    // A client that has had enough closes first.
    drop(stream.write_all(answer).await);
    drop(stream.shutdown().await);
    drop(stream.read_to_end(&mut Vec::new()).await);
}

/// Reads a request up to the end of its head.
async fn read_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8_lossy(&head).into_owned()
}

/// An answer of status 200 with this body.
pub(super) fn ok(body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}
