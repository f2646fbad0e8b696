//! Servers that hang, drip, lie about lengths, and say too much.

use std::time::Duration;

use pie_core::ErrorCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::server::{Server, ok};
use super::{all_places_free, answer, asked, fetch, process, process_with};
use crate::network::connection::Resolver;
use crate::network::exchange::{Exchange, GivenBody};
use crate::{Error, Limits};

const MS: Duration = Duration::from_millis(1);

async fn fails(answer: impl Into<Vec<u8>>, limits: &Limits) -> Error {
    let server = Server::saying(answer).await;
    let process = process(limits);
    let error = fetch(&process, &server.url("/")).await.unwrap_err();
    all_places_free(&process).await;
    error
}

#[tokio::test]
async fn what_is_no_answer_is_an_error() {
    for answer in [
        "",
        "\r\n\r\n",
        "nonsense",
        "HTTP/1.1",
        "HTTP/1.1 abc\r\n\r\n",
        "HTTP/1.1 200 OK\r\n",
        "HTTP/9.9 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
        "HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\n",
        "SSH-2.0-OpenSSH\r\n",
    ] {
        let error = fails(answer, &Limits::default()).await;
        // A body that is neither measured nor in chunks ends with its connection.
        assert_eq!(error.code, ErrorCode::HttpProtocol, "{answer:?}: {error}");
        assert!(error.message.contains("127.0.0.1:"), "{error}");
    }
}

#[tokio::test]
async fn a_head_is_bounded() {
    let limits = Limits {
        http_header_bytes: 16 << 10,
        ..Limits::default()
    };
    for answer in [
        format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "a".repeat(10 << 20)),
        format!("HTTP/1.1 200 OK\r\n{}\r\n", "x: a\r\n".repeat(1 << 20)),
        format!("HTTP/1.1 200 {}\r\n\r\n", "a".repeat(1 << 20)),
        "a".repeat(1 << 20),
    ] {
        let error = fails(answer, &limits).await;
        let is_one = matches!(
            error.code,
            ErrorCode::LimitHttpHeaders | ErrorCode::HttpProtocol
        );
        assert!(is_one, "{error}");
    }
    let error = fails(
        format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "a".repeat(10 << 20)),
        &limits,
    )
    .await;
    assert_eq!(error.code, ErrorCode::LimitHttpHeaders);
    assert!(
        error.message.contains("limits.http_header_bytes = 16384"),
        "{error}"
    );
}

#[tokio::test]
async fn a_body_is_bounded_whether_its_length_is_said_or_not() {
    let limits = Limits {
        http_received_bytes: 1000,
        ..Limits::default()
    };
    for answer in [
        "HTTP/1.1 200 OK\r\ncontent-length: 1001\r\n\r\n".to_owned(),
        format!("HTTP/1.1 200 OK\r\n\r\n{}", "a".repeat(1001)),
        format!(
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{}",
            "64\r\n".to_owned() + &"a".repeat(100) + "\r\n"
        )
        .repeat(1)
            + &("64\r\n".to_owned() + &"a".repeat(100) + "\r\n").repeat(20),
    ] {
        let error = fails(answer, &limits).await;
        assert_eq!(error.code, ErrorCode::LimitHttpBytes, "{error}");
        assert!(
            error.message.contains("limits.http_received_bytes = 1000"),
            "{error}"
        );
    }
    let server = Server::saying(ok(&"a".repeat(1000))).await;
    assert_eq!(
        fetch(&process(&limits), &server.url("/"))
            .await
            .unwrap()
            .1
            .len(),
        1000
    );
}

/// What is longer than it was said to be is read as far as that.
#[tokio::test]
async fn what_stands_behind_an_answer_is_not_read() {
    let server = Server::saying(
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nabcdefHTTP/1.1 200 OK\r\n\r\nsmuggled",
    )
    .await;
    assert_eq!(
        fetch(&process(&Limits::default()), &server.url("/"))
            .await
            .unwrap()
            .1,
        b"ab"
    );
}

#[tokio::test]
async fn a_server_that_hangs_is_given_up() {
    let hanging = Server::start(|_, stream| async move {
        std::future::pending::<()>().await;
        drop(stream);
    });
    let hanging = hanging.await;
    let limits = Limits {
        http_first_byte: 30 * MS,
        ..Limits::default()
    };
    let process = process(&limits);
    let error = fetch(&process, &hanging.url("/")).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::LimitHttpTime);
    assert!(
        error.message.contains(
            "the head of the answer took longer than 0.03 s, by limits.http_first_byte_s"
        ),
        "{error}"
    );
    all_places_free(&process).await;
}

#[tokio::test]
async fn a_server_that_stops_in_the_middle_is_given_up() {
    let server = Server::start(|_, mut stream| async move {
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nab")
            .await
            .unwrap();
        std::future::pending::<()>().await;
    });
    let server = server.await;
    let limits = Limits {
        http_idle: 30 * MS,
        ..Limits::default()
    };
    let error = fetch(&process(&limits), &server.url("/"))
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::LimitHttpTime);
    assert!(error.message.contains("limits.http_idle_s"), "{error}");
}

#[tokio::test]
async fn a_server_that_drips_is_given_up_in_the_end() {
    for head in ["HTTP/1.1 200 OK\r\nx: ", "HTTP/1.1 200 OK\r\n\r\n"] {
        let server = Server::start(move |_, mut stream| async move {
            drop(stream.write_all(head.as_bytes()).await);
            while stream.write_all(b"a").await.is_ok() {
                tokio::time::sleep(5 * MS).await;
            }
        });
        let server = server.await;
        let limits = Limits {
            http: 100 * MS,
            ..Limits::default()
        };
        let error = fetch(&process(&limits), &server.url("/"))
            .await
            .unwrap_err();
        assert_eq!(error.code, ErrorCode::LimitHttpTime);
        assert!(
            error
                .message
                .contains("all of it took longer than 0.1 s, by limits.http_s"),
            "{error}"
        );
    }
}

/// Knows no address, and never says so.
#[derive(Debug)]
struct Silent;

#[wasmtime_wasi::async_trait]
impl Resolver for Silent {
    async fn resolve(&self, _: &str) -> std::io::Result<Vec<std::net::IpAddr>> {
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_name_that_nobody_answers_for_is_given_up() {
    let limits = Limits {
        http_connect: 30 * MS,
        ..Limits::default()
    };
    let process = process_with(&["a.example"], &limits, std::sync::Arc::new(Silent));
    let error = fetch(&process, "http://a.example/").await.unwrap_err();
    assert_eq!(error.code, ErrorCode::LimitHttpTime);
    assert!(
        error
            .message
            .contains("a connection took longer than 0.03 s, by limits.http_connect_s"),
        "{error}"
    );
    all_places_free(&process).await;
}

#[tokio::test]
async fn dropping_a_request_frees_its_connection() {
    for head in ["", "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nab"] {
        let (closed, mut was_closed) = mpsc::channel(1);
        let server = Server::start(move |_, mut stream| {
            let closed = closed.clone();
            async move {
                drop(stream.write_all(head.as_bytes()).await);
                // Nothing more comes but the end.
                let end = stream.read(&mut [0]).await;
                closed.send(matches!(end, Ok(0) | Err(_))).await.unwrap();
            }
        });
        let server = server.await;
        let process = process(&Limits::default());
        let exchange = Exchange::start(
            &process,
            asked("GET", &server.url("/")).unwrap(),
            GivenBody::None,
        )
        .unwrap();
        if head.is_empty() {
            // The request has arrived once the server answers to it; it does not.
            while server.n_connections() == 0 {
                tokio::task::yield_now().await;
            }
        } else {
            answer(exchange.head()).await.unwrap();
            assert_eq!(answer(exchange.read()).await.unwrap().unwrap(), b"ab");
        }
        drop(exchange);
        assert_eq!(was_closed.recv().await, Some(true));
        all_places_free(&process).await;
    }
}

#[tokio::test]
async fn a_program_that_does_not_read_lets_the_server_wait() {
    let (stuck, mut how_much) = mpsc::channel(1);
    let server = Server::start(move |_, mut stream| {
        let stuck = stuck.clone();
        async move {
            drop(stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await);
            let (part, mut n_bytes) = (vec![b'a'; 1 << 20], 0);
            // A server that can write nothing for so long waits for its client.
            while timeout(500 * MS, stream.write_all(&part)).await.is_ok() {
                n_bytes += part.len();
            }
            stuck.send(n_bytes).await.unwrap();
        }
    });
    let server = server.await;
    let process = process(&Limits::default());
    let asked = asked("GET", &server.url("/")).unwrap();
    let exchange = Exchange::start(&process, asked, GivenBody::None).unwrap();
    answer(exchange.head()).await.unwrap();
    // What the system buffers on both sides of such a connection is far below this.
    let n_bytes = how_much.recv().await.unwrap();
    assert!(n_bytes < 64 << 20, "{n_bytes}");
    assert!(answer(exchange.read()).await.unwrap().is_some());
}
