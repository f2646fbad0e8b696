//! What goes to a server and comes back, and how much of it at once.

use http::HeaderValue;
use pie_core::ErrorCode;
use tokio::io::AsyncReadExt;
use tokio::sync::mpsc;

use super::server::{Server, ok, reply};
use super::{all_places_free, answer, asked, body, fetch, fetch_as, process};
use crate::Limits;
use crate::network::exchange::{Exchange, GivenBody};
use crate::network::request::text;

#[tokio::test]
async fn a_request_is_one_piece_and_its_answer_too() {
    let (seen, mut requests) = mpsc::unbounded_channel();
    let server = Server::start(move |head, stream| {
        seen.send(head).unwrap();
        async move {
            let answer =
                b"HTTP/1.1 299 Quite\r\nX-A: 1\r\nset-cookie: a\r\nSet-Cookie: b\xe4\r\n\r\nall";
            reply(stream, answer).await;
        }
    });
    let server = server.await;
    let process = process(&Limits::default());
    let (head, body) = fetch(&process, &server.url("/x/../y?z=1#part"))
        .await
        .unwrap();
    let expected = format!(
        "GET /y?z=1 HTTP/1.1\r\nhost: 127.0.0.1:{}\r\nconnection: close\r\n\r\n",
        server.port
    );
    assert_eq!(requests.recv().await.unwrap(), expected);
    assert_eq!(
        (head.status, &*head.reason, &*body),
        (299, "Quite", &b"all"[..])
    );
    let headers: Vec<_> = head
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), text(value)))
        .collect();
    let expected = [("x-a", "1"), ("set-cookie", "a"), ("set-cookie", "b\u{e4}")];
    assert_eq!(
        headers,
        expected.map(|(name, value)| (name, value.to_owned()))
    );
    all_places_free(&process).await;
}

#[tokio::test]
async fn a_head_that_is_too_long_is_not_sent() {
    let server = Server::saying(ok("")).await;
    let mut long = asked("GET", &server.url("/")).unwrap();
    long.headers
        .insert("x", HeaderValue::try_from("a".repeat(65 << 10)).unwrap());
    let error = fetch_as(&process(&Limits::default()), long, GivenBody::None)
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::LimitHttpHeaders);
    let url = server.url(&format!("/{}", "a".repeat(65 << 10)));
    let error = fetch(&process(&Limits::default()), &url).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::LimitHttpHeaders, "{error}");
}

#[tokio::test]
async fn a_program_has_so_many_requests_at_once() {
    let server = Server::start(|_, stream| async move {
        std::future::pending::<()>().await;
        drop(stream);
    });
    let server = server.await;
    let limits = Limits {
        http_requests: 2,
        ..Limits::default()
    };
    let process = process(&limits);
    let start = || {
        Exchange::start(
            &process,
            asked("GET", &server.url("/")).unwrap(),
            GivenBody::None,
        )
    };
    let two = [start().unwrap(), start().unwrap()];
    let error = start().unwrap_err();
    assert_eq!(error.code, ErrorCode::LimitHttpRequests);
    assert!(
        error.message.contains(
            "2 HTTP requests of this program are under way, of at most limits.http_requests = 2"
        ),
        "{error}"
    );
    drop(two);
    all_places_free(&process).await;
    start().unwrap();
}

/// A server that says how many bytes of a body in chunks it got.
async fn counting() -> Server {
    Server::start(|head, mut stream| async move {
        assert!(head.contains("transfer-encoding: chunked"), "{head}");
        let mut got = Vec::new();
        while !got.ends_with(b"0\r\n\r\n") {
            match stream.read_u8().await {
                Ok(byte) => got.push(byte),
                Err(_) => return,
            }
        }
        let text = String::from_utf8(got).unwrap().replace("\r\n", "|");
        reply(stream, ok(&text).as_bytes()).await;
    })
    .await
}

#[tokio::test]
async fn a_body_goes_out_in_parts() {
    let server = counting().await;
    let process = process(&Limits::default());
    let mut exchange = Exchange::start(
        &process,
        asked("POST", &server.url("/")).unwrap(),
        GivenBody::Streamed,
    )
    .unwrap();
    for part in ["one", "two!"] {
        answer(exchange.write(&process, part.into())).await.unwrap();
    }
    exchange.finish();
    let error = answer(exchange.write(&process, "x".into()))
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidArgument);
    assert_eq!(answer(exchange.head()).await.unwrap().status, 200);
    assert_eq!(
        String::from_utf8(body(&exchange).await.unwrap()).unwrap(),
        "3|one|4|two!|0||"
    );
}

#[tokio::test]
async fn a_body_in_parts_is_bounded() {
    let server = counting().await;
    let limits = Limits {
        http_sent_bytes: 5,
        ..Limits::default()
    };
    let process = process(&limits);
    let mut exchange = Exchange::start(
        &process,
        asked("POST", &server.url("/")).unwrap(),
        GivenBody::Streamed,
    )
    .unwrap();
    answer(exchange.write(&process, "12345".into()))
        .await
        .unwrap();
    let error = answer(exchange.write(&process, "6".into()))
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::LimitHttpBytes);
    assert!(
        error.message.contains("limits.http_sent_bytes = 5"),
        "{error}"
    );
}

#[tokio::test]
async fn a_server_that_answers_early_ends_the_body() {
    let server = Server::saying("HTTP/1.1 413 Too long\r\ncontent-length: 0\r\n\r\n").await;
    let process = process(&Limits::default());
    let mut exchange = Exchange::start(
        &process,
        asked("POST", &server.url("/")).unwrap(),
        GivenBody::Streamed,
    )
    .unwrap();
    assert_eq!(answer(exchange.head()).await.unwrap().status, 413);
    assert_eq!(body(&exchange).await.unwrap(), b"");
    all_places_free(&process).await;
    let error = answer(exchange.write(&process, "x".into()))
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::HttpProtocol, "{error}");
}

#[tokio::test]
async fn what_a_request_holds_is_charged_to_its_user() {
    let server = Server::saying(ok("x")).await;
    let process = process(&Limits::default());
    assert_eq!(process.n_charged(), 0);
    let exchange = Exchange::start(
        &process,
        asked("GET", &server.url("/")).unwrap(),
        GivenBody::None,
    )
    .unwrap();
    let charged = 4 * (64 << 10) + (64 << 10);
    assert_eq!(process.n_charged(), charged);
    // The head is held as long as the handle.
    body(&exchange).await.unwrap();
    assert_eq!(process.n_charged(), charged);
    drop(exchange);
    assert_eq!(process.n_charged(), 0);
}
