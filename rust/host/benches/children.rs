//! Children beside launches: `cargo bench --profile release -p pie-host --bench children`.
//!
//! Ours: a Rust program starts a child and awaits its end, again and again; the time of one. The peer launches the same
//! program with the same input and reads its last event, in the same host. A child is a process like any other: what it
//! takes beyond its launch is the way from program to program and back. Needs `build/programs/children.wasm` and both
//! language runtimes.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::panic,
    missing_docs,
    reason = "a benchmark prints, and stops at the first fault"
)]

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use pie_host::{Component, Event, Host, Language, Launch, Process, Program, SourceBundle};
use serde_json::json;
use support::{Written, config, in_turns, launch, number, report, root};

/// What a child is given: it ends at once.
const NOTHING: &str = "\"nothing\"";

/// The program of a language that ends at once, and how many are started in a round.
fn child(written: Written, parent: &Program) -> (Program, usize) {
    let (language, entry, text, n) = match written {
        Written::Rust => return (parent.clone(), 500),
        Written::JavaScript => {
            let text = "export function main() { return 0; }\n";
            (Language::JavaScript, "main.js", text, 200)
        }
        Written::Python => {
            let text = "def main(input):\n    return 0\n";
            (Language::Python, "main.py", text, 100)
        }
    };
    let bundle = SourceBundle {
        language,
        files: Arc::new(BTreeMap::from([(entry.to_owned(), text.into())])),
        entry: entry.to_owned(),
    };
    (bundle.into(), n)
}

/// What a program returns.
fn value(process: &Process) -> f64 {
    match process.next_event(None) {
        Some(Event::Return(value)) => value.parse().unwrap(),
        other => panic!("{other:?} is not the end of a program"),
    }
}

fn main() {
    let rounds = number("rounds", 5);
    let host = Host::new(config(16)).unwrap();
    let parent = std::fs::read(root().join("build/programs/children.wasm")).unwrap();
    let parent = Program::from(Component::new(parent));
    for written in Written::ALL {
        let (child, n) = child(written, &parent);
        let ours = || {
            let work = json!({ "spawn": { "program": "child", "n": n } });
            let launch = Launch {
                seed: Some(7),
                programs: BTreeMap::from([("child".to_owned(), child.clone())]),
                ..Launch::new(parent.clone(), work.to_string())
            };
            value(&host.launch(launch).unwrap()) / n as f64 / 1e3
        };
        let peer = || {
            let began = Instant::now();
            for _ in 0..n {
                value(&launch(&host, &child, NOTHING));
            }
            began.elapsed().as_secs_f64() * 1e6 / n as f64
        };
        let warm = in_turns(1, ours, peer);
        drop(warm);
        let samples = in_turns(rounds, ours, peer);
        report(written.name(), "us", samples, json!({ "children": n }));
    }
}
