//! Answers that send a request on.

use http::HeaderValue;
use pie_core::ErrorCode;
use tokio::sync::mpsc;

use super::server::{Server, ok, reply};
use super::{Scripted, asked, fetch, fetch_as, process, process_with};
use crate::Limits;
use crate::network::exchange::GivenBody;
use crate::network::redirect::Redirects;

fn to(status: u16, place: &str) -> String {
    format!("HTTP/1.1 {status} Elsewhere\r\nlocation: {place}\r\ncontent-length: 3\r\n\r\nbye")
}

#[tokio::test]
async fn a_redirect_is_followed_to_where_it_leads() {
    let (seen, mut requests) = mpsc::unbounded_channel();
    let server = Server::start(move |head, stream| {
        seen.send(head.clone()).unwrap();
        async move {
            let answer = match head.split(' ').nth(1).unwrap() {
                "/first" => to(303, "second?x=1#here"),
                "/second?x=1" => to(307, "/third"),
                _ => ok("there"),
            };
            reply(stream, answer.as_bytes()).await;
        }
    });
    let server = server.await;
    let process = process(&Limits::default());
    let charge = process.charge(2).unwrap();
    let mut first = asked("POST", &server.url("/first")).unwrap();
    first
        .headers
        .insert("content-type", HeaderValue::from_static("text/plain"));
    let (head, body) = fetch_as(&process, first, GivenBody::Whole("hi".into(), charge))
        .await
        .unwrap();
    assert_eq!(
        (head.status, head.is_redirected, &*body),
        (200, true, &b"there"[..])
    );
    assert_eq!(head.url, server.url("/third"));
    let methods: Vec<_> = std::iter::from_fn(|| requests.try_recv().ok())
        .map(|head| {
            (
                head.split(' ').next().unwrap().to_owned(),
                head.contains("content-type"),
            )
        })
        .collect();
    let get = ("GET".to_owned(), false);
    assert_eq!(methods, [("POST".to_owned(), true), get.clone(), get]);
}

#[tokio::test]
async fn every_place_is_checked() {
    let inner = Server::saying(ok("secret")).await;
    for place in [
        "http://169.254.169.254/latest/".to_owned(),
        "//localhost/".to_owned(),
        "http://[::1]/".to_owned(),
        "http://2852039166/".to_owned(),
        "https://other.example/".to_owned(),
        format!("http://inner.example:{}/", inner.port),
    ] {
        let server = Server::saying(to(302, &place)).await;
        let allow = format!("127.0.0.1:{}", server.port);
        let names = Scripted::new(&[&["127.0.0.1"]]);
        let process = process_with(
            &[&*allow, "inner.example", "*.b.example"],
            &Limits::default(),
            names,
        );
        let error = fetch(&process, &server.url("/")).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::NetDenied, "{place}: {error}");
    }
    for place in [
        "ftp://127.0.0.1/",
        "file:///etc/passwd",
        "http://a:b@127.0.0.1/",
        "http://[::1",
    ] {
        let server = Server::saying(to(302, place)).await;
        let error = fetch(&process(&Limits::default()), &server.url("/"))
            .await
            .unwrap_err();
        assert_eq!(error.code, ErrorCode::HttpRedirects, "{place}: {error}");
    }
    assert_eq!(inner.n_connections(), 0);
}

#[tokio::test]
async fn a_circle_ends() {
    let server = Server::saying(to(302, "/again")).await;
    let error = fetch(&process(&Limits::default()), &server.url("/"))
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::HttpRedirects);
    assert!(
        error.message.contains("for the 21th time, of at most 20") || error.message.contains("20"),
        "{error}"
    );
    assert_eq!(server.n_connections(), 21);
}

#[tokio::test]
async fn a_program_may_follow_none() {
    let server = Server::saying(to(302, "/there")).await;
    let process = process(&Limits::default());
    let with = |redirects| {
        let mut asked = asked("GET", &server.url("/")).unwrap();
        asked.redirects = redirects;
        asked
    };
    let error = fetch_as(&process, with(Redirects::Fail), GivenBody::None)
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::HttpRedirects);
    assert!(error.message.contains("/there"), "{error}");
    let (head, body) = fetch_as(&process, with(Redirects::Keep), GivenBody::None)
        .await
        .unwrap();
    assert_eq!((head.status, &*body), (302, &b"bye"[..]));
    assert_eq!(head.headers["location"], "/there");
}

#[tokio::test]
async fn secrets_do_not_go_to_another_server() {
    let (seen, mut requests) = mpsc::unbounded_channel();
    let other = Server::start(move |head, stream| {
        seen.send(head).unwrap();
        async move { reply(stream, ok("x").as_bytes()).await }
    });
    let other = other.await;
    let server = Server::saying(to(307, &other.url("/"))).await;
    let mut first = asked("GET", &server.url("/")).unwrap();
    for name in ["authorization", "cookie", "x-own"] {
        first.headers.insert(name, HeaderValue::from_static("s"));
    }
    fetch_as(&process(&Limits::default()), first, GivenBody::None)
        .await
        .unwrap();
    let head = requests.recv().await.unwrap();
    assert!(
        head.contains("x-own: s") && !head.contains("authorization") && !head.contains("cookie"),
        "{head}"
    );
}
