//! Launches over the wire: `cargo bench --profile release -p pie-server`.
//!
//! A thousand launches from fifty connections, each taken to its last event; the figures are over all launches of a round: from the request
//! to its answer, and to the return value. The peer is one connection that launches one after another.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    dead_code,
    reason = "a benchmark prints, and stops at the first fault; it shares the client of the tests"
)]

#[path = "../tests/server/client.rs"]
mod client;
#[path = "../../host/tests/host/guest.rs"]
mod guest;
#[path = "../tests/server/world.rs"]
mod world;

use std::sync::Arc;
use std::time::{Duration, Instant};

use client::Client;
use pie_host::HostConfig;
use world::World;

const ROUNDS: usize = 5;
const LAUNCHES: usize = 1000;

fn main() {
    let host = HostConfig {
        max_processes: 2000,
        ..HostConfig::default()
    };
    let world = World::over(Arc::new(tempfile::tempdir().unwrap()), host, |config| {
        config.max_processes_per_user = 2000;
    });
    world.run(async {
        let mut client = world.client("bench").await;
        client.install("quick", "1", &world::quick()).await;
        // The first launch compiles.
        launched(&mut client).await;
    });
    for round in 0..ROUNDS {
        for n_connections in [1, 50] {
            let began = Instant::now();
            let times = world.run(round_of(&world, n_connections));
            let wall = began.elapsed();
            let (answers, ends): (Vec<_>, Vec<_>) = times.into_iter().unzip();
            println!(
                "round {round}, {n_connections} connections, {LAUNCHES} launches in {wall:.1?}: answer {}; end {}",
                described(answers),
                described(ends)
            );
        }
    }
}

/// The times of each launch: to the answer, to the end.
async fn round_of(world: &World, n_connections: usize) -> Vec<(Duration, Duration)> {
    let address = world.server.address();
    let clients: Vec<_> = (0..n_connections)
        .map(|_| {
            tokio::spawn(async move {
                let mut client = Client::connect(address, "bench").await;
                let mut times = Vec::new();
                for _ in 0..LAUNCHES / n_connections {
                    times.push(launched(&mut client).await);
                }
                times
            })
        })
        .collect();
    let mut times = Vec::new();
    for client in clients {
        times.extend(client.await.unwrap());
    }
    times
}

async fn launched(client: &mut Client) -> (Duration, Duration) {
    let began = Instant::now();
    let pid = client.launch("quick").await;
    let answered = began.elapsed();
    let (_, last) = client.events(pid).await;
    assert_eq!(last["value"], "true");
    (answered, began.elapsed())
}

fn described(mut times: Vec<Duration>) -> String {
    times.sort();
    let at = |share: usize| times[(times.len() - 1) * share / 100];
    format!(
        "p50 {:.2?}, p99 {:.2?}, worst {:.2?}",
        at(50),
        at(99),
        at(100)
    )
}
