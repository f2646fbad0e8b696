//! Launches over the wire: `cargo bench --profile release -p pie-server`.
//!
//! A thousand launches from fifty connections, each taken to its last event; the figures are over all launches of a
//! round: from the request to its answer, and to the return value. The peer is one connection that launches one after
//! another. A line of JSON for each case.
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

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use client::Client;
use pie_host::HostConfig;
use serde_json::json;
use world::World;

const ROUNDS: usize = 5;
const LAUNCHES: usize = 1000;
const N_CONNECTIONS: usize = 50;

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
    let mut figures: BTreeMap<String, [Vec<f64>; 2]> = BTreeMap::new();
    for round in 0..ROUNDS {
        // Both take turns in changing order, so that whatever drifts meets both alike.
        for turn in 0..2 {
            let side = (round + turn) % 2;
            let began = Instant::now();
            let times = world.run(round_of(&world, [N_CONNECTIONS, 1][side]));
            let mut note = |case: &str, time: Duration| {
                figures.entry(case.to_owned()).or_default()[side].push(time.as_secs_f64() * 1e3);
            };
            note("all", began.elapsed());
            let (answers, ends): (Vec<_>, Vec<_>) = times.into_iter().unzip();
            for (what, mut times) in [("answer", answers), ("end", ends)] {
                times.sort();
                for share in [50, 99] {
                    let time = times[(times.len() - 1) * share / 100];
                    note(&format!("{what} p{share}"), time);
                }
            }
        }
    }
    for (case, [ours, peer]) in figures {
        println!(
            "{}",
            json!({"case": case, "unit": "ms", "ours": ours, "peer": peer})
        );
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
