//! What metering costs, how exactly a runaway program is stopped, and what its neighbours notice of it:
//! `cargo bench --profile release -p pie-host --bench metering`.
//!
//! Three kernels run as programs of a host, with interruption and limits on, and in the same component on bare
//! wasmtime, without.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::panic,
    missing_docs,
    reason = "a benchmark prints, and stops at the first fault"
)]

mod support;

use std::time::{Duration, Instant};

use pie_host::{Event, Form, Host, HostConfig, Launch, Limits, Value};
use serde_json::json;
use support::bare::Bare;
use support::{Written, config, in_turns, launch, number, report};

/// Rounds of each kernel in one call: about 100 ms.
const KERNELS: [(&str, u32); 3] = [("sort", 100), ("hash", 800), ("matrix", 400)];
/// The processor time that the runaway program may use.
const CPU_LIMIT: Duration = Duration::from_millis(200);
/// Messages that the neighbour answers in one round.
const N_ECHOES: usize = 20_000;

fn main() {
    let rounds = number("rounds", 7);
    kernels(rounds);
    runaway(rounds);
    neighbours(rounds);
}

/// The time of a kernel as a program, from its entry to its answer, beside the same call on bare wasmtime. Both answer
/// the same.
fn kernels(rounds: usize) {
    let host = Host::new(config(16)).unwrap();
    let program = Written::Rust.program();
    let bare = Bare::new(&Written::Rust.component(), 16);
    for (kernel, n) in KERNELS {
        let input = json!({ "compute": { "kernel": kernel, "rounds": n } }).to_string();
        let expected = bare.call(&input);
        let ours = || {
            let started = Instant::now();
            let process = launch(&host, &program, &input);
            let answer = process.next_event(None);
            let ended = started.elapsed();
            assert_eq!(answer, Some(Event::Return(expected.clone())));
            (ended - process.launch_time().unwrap()).as_secs_f64() * 1e3
        };
        let peer = || {
            let started = Instant::now();
            assert_eq!(bare.call(&input), expected);
            started.elapsed().as_secs_f64() * 1e3
        };
        let samples = in_turns(rounds, ours, peer);
        report(
            &format!("kernel {kernel}"),
            "ms",
            samples,
            json!({ "language": "Rust" }),
        );
    }
}

fn limited() -> HostConfig {
    HostConfig {
        limits: Limits {
            cpu: Some(CPU_LIMIT),
            ..Limits::default()
        },
        ..config(16)
    }
}

/// How much processor time a program that spins used beyond its limit.
fn runaway(rounds: usize) {
    let host = Host::new(limited()).unwrap();
    let program = Written::Rust.program();
    let spin = || {
        let process = launch(&host, &program, "\"spin\"");
        let event = process.next_event(None);
        let Some(Event::Error(failure)) = event else {
            panic!("a program that spins ended with {event:?}");
        };
        assert_eq!(failure.code.as_deref(), Some("limit-cpu"));
        (process.cpu().saturating_sub(CPU_LIMIT)).as_secs_f64() * 1e3
    };
    spin();
    let beyond = (0..rounds).map(|_| spin()).collect();
    report(
        "beyond the limit",
        "ms",
        (beyond, Vec::new()),
        json!({ "language": "Rust" }),
    );
}

/// The p99 of the answers of an echoing program, beside programs that spin until they are stopped and are launched
/// again, and alone.
fn neighbours(rounds: usize) {
    // The limit holds for the programs that spin: the neighbour runs for as long as the benchmark.
    let host = Host::new(config(16)).unwrap();
    let program = Written::Rust.program();
    let echo = launch(&host, &program, "\"echo\"");
    let spin = || {
        let limits = [("cpu_s".to_owned(), Value::Seconds(CPU_LIMIT.as_secs_f64()))];
        let launch = Launch {
            limits: limits.into(),
            ..Launch::new(program.clone(), "\"spin\"")
        };
        host.launch(launch).unwrap()
    };
    let p99_us = || {
        let mut times: Vec<f64> = (0..N_ECHOES)
            .map(|_| {
                let started = Instant::now();
                echo.send("x".to_owned()).unwrap();
                let sent = Event::Sent("x".to_owned(), Form::Text);
                assert_eq!(echo.next_event(None), Some(sent));
                started.elapsed().as_secs_f64() * 1e6
            })
            .collect();
        times.sort_by(f64::total_cmp);
        times[N_ECHOES * 99 / 100]
    };
    let beside = || {
        let done = std::sync::atomic::AtomicBool::new(false);
        let spinning = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut process = spin();
                spinning.wait();
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    if process.next_event(Some(Duration::from_millis(5))).is_some() {
                        process = spin();
                    }
                }
            });
            spinning.wait();
            let p99 = p99_us();
            done.store(true, std::sync::atomic::Ordering::Relaxed);
            p99
        })
    };
    p99_us();
    let samples = in_turns(rounds, beside, p99_us);
    report(
        "p99 of a neighbour",
        "us",
        samples,
        json!({ "language": "Rust" }),
    );
}
