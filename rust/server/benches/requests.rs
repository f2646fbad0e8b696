//! Requests by HTTP to a Rust program: `cargo bench --profile release -p pie-server --bench requests`.
//!
//! So many connections, which stay open, ask one after another; the figure is how many requests are answered in a
//! second. Ours are answered by a program that stays, and by an instance for each. The peer is a bare server of axum
//! that gives the same body on threads of its own. Each side has a fixed number of requests in a round, of which a slow
//! machine answers all within a minute. Needs `build/programs/answering.wasm`. A line of JSON for each case.
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

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::post;
use axum::serve::ListenerExt;
use pie_host::{Component, HostConfig, HttpInstance, Launch};
use pie_server::MountedProgram;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::time::timeout;
use world::World;

const ROUNDS: usize = 5;
const N_CONNECTIONS: usize = 16;
/// What is asked: the program answers with a body of one byte.
const REQUEST: &[u8] = b"POST /length HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n";
const BODY: &str = "0";
/// Requests of each connection in a round: of the peer, of the program that stays, and of an instance for each.
const N_PEER: usize = 500;
const N_STAYING: usize = 500;
const N_INSTANCES: usize = 25;
/// A round that takes longer has a fault, and is not waited for.
const ROUND: Duration = Duration::from_secs(30);

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

/// A server of axum alone: its address, and its threads.
fn bare() -> (SocketAddr, Runtime) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    let listener = listener.tap_io(|stream| stream.set_nodelay(true).unwrap());
    let answering = Router::new().route("/length", post(|| async { BODY }));
    runtime.spawn(async move { axum::serve(listener, answering).await.unwrap() });
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
                assert_eq!(&held[end + 4..end + 5], BODY.as_bytes());
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
            .map(|_| tokio::spawn(timeout(ROUND, ask(address, n_each))))
            .collect();
        for one in asking {
            one.await.unwrap().unwrap();
        }
    });
    (N_CONNECTIONS * n_each) as f64 / began.elapsed().as_secs_f64()
}

fn main() {
    let clients = Runtime::new().unwrap();
    let (peer, _threads) = bare();
    rate(&clients, peer, 1);
    for (case, instance, n_each) in [
        ("one instance", HttpInstance::Shared, N_STAYING),
        ("an instance each", HttpInstance::Request, N_INSTANCES),
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
                let (address, n_each) = [(ours, n_each), (peer, N_PEER)][side];
                samples[side].push(rate(&clients, address, n_each));
            }
        }
        let [ours, peer] = samples;
        println!(
            "{}",
            json!({"case": case, "unit": "requests/s", "ours": ours, "peer": peer})
        );
    }
}
