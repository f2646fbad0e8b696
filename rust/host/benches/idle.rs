//! The private memory of live idle programs: `cargo bench --profile release -p pie-host --bench idle -- --language Rust
//! --programs 10000`.
//!
//! Each program waits for a message. The figure is what the private memory of this process grew by for each of them,
//! and the peer's is that of a bare pooled instance of the same component, in a process of its own (`--bare`).
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::panic,
    missing_docs,
    reason = "a benchmark prints, and stops at the first fault"
)]

mod support;

use pie_host::Host;
use serde_json::json;
use support::bare::Bare;
use support::{
    Written, argument, config, end, launch, n_maps, number, private_bytes, report, wait_until_idle,
};

/// Programs that run before the memory is first read, so that what is set up once does not count.
const N_FIRST: usize = 64;

fn main() {
    let language = argument("language").unwrap_or_else(|| "Rust".to_owned());
    let written = Written::ALL
        .into_iter()
        .find(|written| written.name() == language)
        .unwrap();
    let n = number("programs", 1000);
    let most = u32::try_from(n + N_FIRST + 8).unwrap();
    let bare = std::env::args().any(|argument| argument == "--bare");
    let measured = if bare {
        of_instances(written, n, most)
    } else {
        of_programs(written, n, most)
    };
    let each = (measured.1 as f64 - measured.0 as f64) / n as f64;
    let facts = json!({
        "language": written.name(),
        "programs": n,
        "before_bytes": measured.0,
        "live_bytes": measured.1,
        "after_bytes": measured.2,
        "n_maps": measured.3,
    });
    report(
        &format!("{n} {}{}", written.name(), if bare { ", bare" } else { "" }),
        "bytes",
        (vec![each], Vec::new()),
        facts,
    );
}

/// Private memory before, with and after `n` programs, and the regions of memory with them.
fn of_programs(written: Written, n: usize, most: u32) -> (u64, u64, u64, usize) {
    let host = Host::new(config(most)).unwrap();
    let program = written.program();
    let start = |n: usize| {
        let processes: Vec<_> = (0..n)
            .map(|_| launch(&host, &program, "\"idle\""))
            .collect();
        processes.iter().for_each(wait_until_idle);
        processes
    };
    let first = start(N_FIRST);
    let before = private_bytes();
    let processes = start(n);
    let (live, maps) = (private_bytes(), n_maps());
    end(processes);
    end(first);
    (before, live, private_bytes(), maps)
}

/// The same of bare instances.
fn of_instances(written: Written, n: usize, most: u32) -> (u64, u64, u64, usize) {
    let bare = Bare::new(&written.component(), most);
    let first: Vec<_> = (0..N_FIRST).map(|_| bare.instantiate()).collect();
    let before = private_bytes();
    let instances: Vec<_> = (0..n).map(|_| bare.instantiate()).collect();
    let (live, maps) = (private_bytes(), n_maps());
    drop(instances);
    drop(first);
    (before, live, private_bytes(), maps)
}
