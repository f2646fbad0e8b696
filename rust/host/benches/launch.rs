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
use serde_json::{Value, json};
use support::bare::Bare;
use support::{Written, config, end, in_turns, launch, number, report, wait_until_idle};

const AT_ONCE: [usize; 3] = [1, 100, 1000];

/// The phases of launches at once, each from the end of the one before.
#[derive(Clone, Copy, Debug, Default)]
struct Phases {
    /// `Host::launch` has returned for all.
    called: Duration,
    /// The entry of the last one is called: its instance stands.
    entered: Duration,
    /// Its first event is read: a source is loaded by its runtime.
    read: Duration,
}

impl Phases {
    /// The time until the last one's first instruction.
    fn until_first_instruction(&self, written: Written) -> Duration {
        match written {
            Written::Rust => self.called + self.entered,
            Written::JavaScript | Written::Python => self.called + self.entered + self.read,
        }
    }
}

/// Launches so many programs; gives what it took until the first event of each was read.
fn start(host: &Host, program: &Program, n: usize) -> (Phases, Vec<Process>) {
    let started = Instant::now();
    let (offsets, processes): (Vec<_>, Vec<_>) = (0..n)
        .map(|_| (started.elapsed(), launch(host, program, "\"idle\"")))
        .unzip();
    let called = started.elapsed();
    processes.iter().for_each(wait_until_idle);
    let read = started.elapsed();
    let entered = offsets
        .iter()
        .zip(&processes)
        .map(|(offset, process)| *offset + process.launch_time().unwrap())
        .max()
        .unwrap_or_default();
    // The last one may have entered before its launch returned.
    let called = called.min(entered);
    let phases = Phases {
        called,
        entered: entered - called,
        read: read.saturating_sub(entered),
    };
    (phases, processes)
}

/// The phases of one launch of so many, as the mean of `repeats`, in microseconds.
fn phases_us(host: &Host, program: &Program, n: usize, repeats: usize) -> Value {
    let mut sum = Phases::default();
    for _ in 0..repeats {
        let (phases, processes) = start(host, program, n);
        sum.called += phases.called;
        sum.entered += phases.entered;
        sum.read += phases.read;
        end(processes);
    }
    let mean = |spent: Duration| spent.as_secs_f64() * 1e6 / repeats as f64;
    json!({
        "calls of launch": mean(sum.called),
        "to the last entry": mean(sum.entered),
        "to the last first event": mean(sum.read),
    })
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
                    let (phases, processes) = start(&host, &program, n);
                    spent_us += phases.until_first_instruction(written).as_secs_f64() * 1e6;
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
            let phases = phases_us(&host, &program, n, repeats);
            let facts = json!({ "language": written.name(), "programs": n, "phases_us": phases });
            report(&format!("{} at {n}", written.name()), "us", samples, facts);
        }
    }
}
