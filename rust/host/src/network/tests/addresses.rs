//! Addresses of this machine and of link-local networks, in every spelling that was thought of; and names that have
//! them.

use std::sync::atomic::Ordering;

use pie_core::ErrorCode;
use tokio::runtime::Handle;

use super::server::{Server, ok};
use super::{Scripted, fetch, process, process_with};
use crate::Limits;
use crate::budget::Budget;
use crate::network::held::HeldNetwork;

/// Hosts that mean this machine or a link-local address.
const FORMS: [&str; 48] = [
    "127.0.0.1",
    "127.1",
    "127.0.1",
    "0177.0.0.1",
    "0x7f.0.0.1",
    "0x7f.1",
    "2130706433",
    "017700000001",
    "0x7f000001",
    "0x7F000001",
    "127.0.0.1.",
    "127.255.255.254",
    "0",
    "0.0.0.0",
    "0x0",
    "00000000000",
    "[::1]",
    "[::]",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::127.0.0.1]",
    "[0:0:0:0:0:ffff:127.0.0.1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[2002:7f00:1::]",
    "[::ffff:0:127.0.0.1]",
    "\u{2460}27.0.0.1",
    "\u{ff11}\u{ff12}\u{ff17}.0.0.1",
    "127\u{3002}0\u{3002}0\u{3002}1",
    "%31%32%37.0.0.1",
    "169.254.169.254",
    "0xa9.0xfe.0xa9.0xfe",
    "0251.0376.0251.0376",
    "2852039166",
    "0xa9fea9fe",
    "[::ffff:169.254.169.254]",
    "[::ffff:a9fe:a9fe]",
    "[64:ff9b::a9fe:a9fe]",
    "[2002:a9fe:a9fe::]",
    "[fe80::1]",
    "[fd00:ec2::254]",
    "[::169.254.169.254]",
    "10.0.0.1",
    "192.168.0.1",
    "172.16.0.1",
    "100.100.100.200",
    "localhost",
];

#[tokio::test]
async fn no_spelling_of_an_inner_address_is_asked() {
    let server = Server::saying(ok("secret")).await;
    let process = process_with(
        &["*"],
        &Limits::default(),
        Scripted::new(&[&["127.0.0.1", "::1"]]),
    );
    for host in FORMS {
        for url in [
            format!("http://{host}:{}/", server.port),
            format!("https://{host}/"),
        ] {
            let error = fetch(&process, &url).await.unwrap_err();
            assert_eq!(error.code, ErrorCode::NetDenied, "{url}: {error}");
            assert!(error.message.contains("--allow-net"), "{error}");
        }
    }
    // What hides a host behind another is refused before anybody is asked.
    for url in [
        "http://good.example@127.0.0.1/",
        "http://good.example:80@127.0.0.1/",
        "http://127.0.0.1\\@good.example/",
    ] {
        let error = fetch(&process, url).await.unwrap_err();
        assert!(
            matches!(
                error.code,
                ErrorCode::InvalidArgument | ErrorCode::NetDenied
            ),
            "{url}: {error}"
        );
    }
    assert_eq!(server.n_connections(), 0);
}

#[tokio::test]
async fn nothing_is_asked_where_nothing_is_allowed() {
    let server = Server::saying(ok("secret")).await;
    let resolver = Scripted::new(&[&["127.0.0.1"]]);
    let process = process_with(&[], &Limits::default(), resolver.clone());
    for url in [
        server.url("/"),
        format!("http://a.example:{}/", server.port),
    ] {
        let error = fetch(&process, &url).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::NetDenied);
    }
    // Not even the servers of names.
    assert_eq!(
        (
            server.n_connections(),
            resolver.n_asked.load(Ordering::Relaxed)
        ),
        (0, 0)
    );
}

#[tokio::test]
async fn a_name_with_an_inner_address_is_asked_where_that_is_named() {
    let server = Server::saying(ok("x")).await;
    let url = format!("http://inner.example:{}/", server.port);
    for (allow, is_allowed) in [
        (&["inner.example"][..], false),
        (&["inner.example", "127.0.0.0/8"], true),
        (&["inner.example", "localhost"], true),
        (&["127.0.0.0/8"], false),
        (&["*"], false),
    ] {
        let process = process_with(allow, &Limits::default(), Scripted::new(&[&["127.0.0.1"]]));
        assert_eq!(fetch(&process, &url).await.is_ok(), is_allowed, "{allow:?}");
    }
}

#[tokio::test]
async fn a_name_is_looked_up_once_and_its_checked_address_is_asked() {
    let server = Server::saying(ok("x")).await;
    let url = format!("http://a.example:{}/", server.port);
    // Whoever answers for the name gives another address to each question.
    let resolver = Scripted::new(&[&["127.0.0.1"], &["169.254.169.254"]]);
    let process = process_with(
        &["a.example", "127.0.0.1"],
        &Limits::default(),
        resolver.clone(),
    );
    fetch(&process, &url).await.unwrap();
    assert_eq!(resolver.n_asked.load(Ordering::Relaxed), 1);
    let error = fetch(&process, &url).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::NetDenied);
    assert!(
        error
            .message
            .contains("169.254.169.254, a link-local address"),
        "{error}"
    );
    assert!(serves_others(&process, &server).await);
}

/// Whether somebody else's process in the engine of this one is served as ever.
async fn serves_others(process: &HeldNetwork, server: &Server) -> bool {
    let account = Budget::new(1 << 30, None).account("honest");
    let (network, runtime) = (process.network.clone(), Handle::current());
    let other = HeldNetwork::new(network, runtime, &Limits::default(), account);
    let answered = fetch(&other, &format!("http://127.0.0.1:{}/", server.port)).await;
    answered.is_ok_and(|(_, body)| body == b"x")
}

#[tokio::test]
async fn of_several_addresses_those_are_asked_that_may_be() {
    let server = Server::saying(ok("x")).await;
    let resolver = Scripted::new(&[&["169.254.169.254", "10.0.0.1", "127.0.0.1"]]);
    let process = process_with(&["a.example", "127.0.0.1"], &Limits::default(), resolver);
    fetch(&process, &format!("http://a.example:{}/", server.port))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_server_that_is_not_there_is_an_error() {
    let process = process(&Limits::default());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let error = fetch(&process, &format!("http://127.0.0.1:{port}/"))
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::NetUnreachable, "{error}");
    let process = process_with(&["a.example"], &Limits::default(), Scripted::new(&[]));
    let error = fetch(&process, "http://a.example/").await.unwrap_err();
    assert_eq!(error.code, ErrorCode::NetUnreachable);
    assert!(
        error.message.contains("a.example:80") && error.message.contains("no such name"),
        "{error}"
    );
}
