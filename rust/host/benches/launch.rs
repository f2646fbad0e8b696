//! Warm launches beside bare `InstancePre::instantiate`: `cargo bench --profile release -p pie-host --bench launch`.
//!
//! Ours: from the first call of `Host::launch` to the first instruction of the last program, for 1, 100 and 1,000
//! programs at once, all of them alive at the end. For Rust that is the entry of the component; for programs from
//! source, which their runtime has to load first, the event that the program sends with its first own instruction, when
//! it has been read. The peer instantiates the same component as often and keeps every instance. Needs
//! `build/programs/workload.wasm` and both language runtimes.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::panic,
    missing_docs,
    reason = "a benchmark prints, and stops at the first fault"
)]

mod support;

use std::time::{Duration, Instant};

use pie_host::{Host, Process, Program};
use serde_json::json;
use support::bare::Bare;
use support::{Written, config, end, in_turns, launch, number, report, wait_until_idle};

const AT_ONCE: [usize; 3] = [1, 100, 1000];

/// Launches so many programs; gives the time until the last one's first instruction.
fn start(host: &Host, written: Written, program: &Program, n: usize) -> (Duration, Vec<Process>) {
    let started = Instant::now();
    let (offsets, processes): (Vec<_>, Vec<_>) = (0..n)
        .map(|_| (started.elapsed(), launch(host, program, "\"idle\"")))
        .unzip();
    processes.iter().for_each(wait_until_idle);
    let read = started.elapsed();
    let entered = offsets
        .iter()
        .zip(&processes)
        .map(|(offset, process)| *offset + process.launch_time().unwrap());
    let spent = match written {
        Written::Rust => entered.max().unwrap_or_default(),
        Written::JavaScript | Written::Python => read,
    };
    (spent, processes)
}

fn main() {
    let rounds = number("rounds", 7);
    let most = AT_ONCE[AT_ONCE.len() - 1] as u32 + 8;
    let host = Host::new(config(most)).unwrap();
    for written in Written::ALL {
        let program = written.program();
        let bare = Bare::new(&written.component(), most);
        for n in AT_ONCE {
            // A launch alone is measured often; a thousand at once are many by themselves.
            let repeats = (100 / n).max(1);
            let ours = || {
                let mut spent_us = 0.0;
                for _ in 0..repeats {
                    let (spent, processes) = start(&host, written, &program, n);
                    spent_us += spent.as_secs_f64() * 1e6;
                    end(processes);
                }
                spent_us / repeats as f64
            };
            let peer = || {
                let mut spent_us = 0.0;
                for _ in 0..repeats {
                    let started = Instant::now();
                    let instances: Vec<_> = (0..n).map(|_| bare.instantiate()).collect();
                    spent_us += started.elapsed().as_secs_f64() * 1e6;
                    drop(instances);
                }
                spent_us / repeats as f64
            };
            let warm = in_turns(1, ours, peer);
            drop(warm);
            let samples = in_turns(rounds, ours, peer);
            let facts = json!({ "language": written.name(), "programs": n });
            report(&format!("{} at {n}", written.name()), "us", samples, facts);
        }
    }
}
