//! Requests by HTTP to a Rust program: `cargo bench --profile release -p pie-server --bench requests`.
//!
//! So many connections ask one after another; the figure is how many requests are answered in a second. Ours are
//! answered by a program that stays, and by an instance for each. The peer is a bare server of hyper, on which axum
//! stands, that gives the same bytes on threads of its own. Needs `build/programs/answering.wasm`. A line of JSON for
//! each case.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    dead_code,
    reason = "a benchmark prints, and stops at the first fault; it shares the world of the tests"
)]

#[path = "../tests/server/client.rs"]
mod client;
#[path = "../../host/tests/host/guest.rs"]
mod guest;
#[path = "../tests/server/world.rs"]
mod world;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::Response;
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use pie_host::{Component, HostConfig, HttpInstance, Launch};
use pie_server::MountedProgram;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use wasmtime_wasi_http::io::TokioIo;
use world::World;

const ROUNDS: usize = 5;
const N_CONNECTIONS: usize = 16;
/// What is asked: the program answers with a body of one byte.
const REQUEST: &[u8] = b"POST /length HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n";
const BODY: &[u8] = b"0";

/// A server with the program of the tests, and the threads of its clients.
fn world(instance: HttpInstance) -> World {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let program = std::fs::read(root.join("build/programs/answering.wasm")).unwrap();
    let launch = Launch {
        username: Some("bench".to_owned()),
        ..Launch::new(Component::new(program), "null")
    };
    let folder = Arc::new(tempfile::tempdir().unwrap());
    World::over(folder, HostConfig::default(), |config| {
        config.max_ended_processes = 0;
        config.mount = Some(MountedProgram {
            label: "bench".to_owned(),
            launch,
            instance,
        });
    })
}

/// A server of hyper alone: its address, and its threads.
fn bare() -> (SocketAddr, Runtime) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    runtime.spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            stream.set_nodelay(true).unwrap();
            let answer = service_fn(|_| async {
                Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(BODY))))
            });
            let io = TokioIo::new(stream);
            tokio::spawn(http1::Builder::new().serve_connection(io, answer));
        }
    });
    (address, runtime)
}

/// Asks so many times over one connection.
async fn ask(address: SocketAddr, n: usize) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let mut held = Vec::new();
    for _ in 0..n {
        stream.write_all(REQUEST).await.unwrap();
        loop {
            let end = held.windows(4).position(|end| end == b"\r\n\r\n");
            if let Some(end) = end.filter(|end| held.len() > end + 4) {
                assert!(held.starts_with(b"HTTP/1.1 200"));
                assert_eq!(&held[end + 4..end + 5], BODY);
                held.clear();
                break;
            }
            assert!(stream.read_buf(&mut held).await.unwrap() > 0);
        }
    }
}

/// Requests a second over all connections.
fn rate(clients: &Runtime, address: SocketAddr, n_each: usize) -> f64 {
    let began = Instant::now();
    clients.block_on(async {
        let asking: Vec<_> = (0..N_CONNECTIONS)
            .map(|_| tokio::spawn(ask(address, n_each)))
            .collect();
        for one in asking {
            one.await.unwrap();
        }
    });
    (N_CONNECTIONS * n_each) as f64 / began.elapsed().as_secs_f64()
}

fn main() {
    let clients = Runtime::new().unwrap();
    let (peer, _threads) = bare();
    for (case, instance, n_each) in [
        ("one instance", HttpInstance::Shared, 2000),
        ("an instance each", HttpInstance::Request, 200),
    ] {
        let world = world(instance);
        let ours = world.server.address();
        // The first request compiles.
        rate(&clients, ours, 1);
        let mut samples = [Vec::new(), Vec::new()];
        for round in 0..ROUNDS {
            // Both take turns in changing order, so that whatever drifts meets both alike.
            for turn in 0..2 {
                let side = (round + turn) % 2;
                samples[side].push(rate(&clients, [ours, peer][side], n_each));
            }
        }
        let [ours, peer] = samples;
        println!(
            "{}",
            json!({"case": case, "unit": "requests/s", "ours": ours, "peer": peer})
        );
    }
}
