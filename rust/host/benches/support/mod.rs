//! What the benchmarks of the host share: the programs, rounds in which ours and the peer alternate, bare wasmtime, and
//! the samples as lines of JSON, which `asv_benchmarks` reads.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each benchmark is a program of its own, uses a part of this, and exports nothing"
)]

pub mod bare;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pie_host::{
    Component, Event, Form, Host, HostConfig, Language, Launch, Process, Program, SourceBundle,
};
use serde_json::{Map, Value, json};

/// The top of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The value after `--name` on the command line.
pub fn argument(name: &str) -> Option<String> {
    let mut arguments = std::env::args();
    arguments.find(|argument| argument.strip_prefix("--") == Some(name))?;
    arguments.next()
}

/// A number after `--name` on the command line, or the default.
pub fn number(name: &str, default: usize) -> usize {
    argument(name).map_or(default, |text| text.parse().unwrap())
}

/// The languages that programs of the benchmarks are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    Rust,
    JavaScript,
    Python,
}

impl Written {
    pub const ALL: [Self; 3] = [Self::Rust, Self::JavaScript, Self::Python];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Rust => "Rust",
            Self::JavaScript => "JavaScript",
            Self::Python => "Python",
        }
    }

    /// The program `workload` in this language.
    pub fn program(self) -> Program {
        let (language, entry) = match self {
            Self::Rust => return Component::new(self.component()).into(),
            Self::JavaScript => (Language::JavaScript, "workload.js"),
            Self::Python => (Language::Python, "workload.py"),
        };
        let path = root().join("asv_benchmarks/programs").join(entry);
        let files = BTreeMap::from([(entry.to_owned(), std::fs::read(path).unwrap())]);
        SourceBundle {
            language,
            files: Arc::new(files),
            entry: entry.to_owned(),
        }
        .into()
    }

    /// The component that is instantiated for the program: itself, or the runtime of its language.
    pub fn component(self) -> Vec<u8> {
        std::fs::read(match self {
            Self::Rust => root().join("build/programs/workload.wasm"),
            Self::JavaScript => root().join("python/pie/runtimes/javascript.wasm"),
            Self::Python => root().join("python/pie/runtimes/python.wasm"),
        })
        .unwrap()
    }
}

/// The defaults of a host for so many processes, with both language runtimes and a cache of compiled programs.
pub fn config(max_processes: u32) -> HostConfig {
    HostConfig {
        cache_dir: Some(root().join("build/bench/cache")),
        python_runtime: Some(root().join("python/pie/runtimes/python.wasm")),
        javascript_runtime: Some(root().join("python/pie/runtimes/javascript.wasm")),
        compiler: Some(vec![env!("CARGO_BIN_EXE_pie-worker").to_owned()]),
        max_processes,
        // Ten thousand programs live at once, all of one user.
        memory_bytes: 64 << 30,
        ..HostConfig::default()
    }
}

/// Launches a program with a JSON text as its input.
pub fn launch(host: &Host, program: &Program, input: &str) -> Process {
    let launch = Launch {
        seed: Some(7),
        ..Launch::new(program.clone(), input)
    };
    host.launch(launch).unwrap()
}

/// Waits until an idle program says that it runs.
pub fn wait_until_idle(process: &Process) {
    let event = process.next_event(None);
    assert_eq!(event, Some(Event::Sent("idle".to_owned(), Form::Text)));
}

/// Disconnects from programs that wait for a message, and waits for their ends.
pub fn end(processes: Vec<Process>) {
    for process in &processes {
        process.close_input();
    }
    for process in &processes {
        assert_eq!(
            process.next_event(None),
            Some(Event::Return("0".to_owned()))
        );
    }
}

/// Runs ours and the peer in turns, A B B A: whatever drifts with time meets both alike.
pub fn in_turns(
    rounds: usize,
    mut ours: impl FnMut() -> f64,
    mut peer: impl FnMut() -> f64,
) -> (Vec<f64>, Vec<f64>) {
    let (mut our_samples, mut peer_samples) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        if round % 2 == 0 {
            our_samples.push(ours());
            peer_samples.push(peer());
        } else {
            peer_samples.push(peer());
            our_samples.push(ours());
        }
    }
    (our_samples, peer_samples)
}

/// Prints the samples of one case as a line of JSON: `ours` and `peer` by round, in `unit`, and further facts.
pub fn report(case: &str, unit: &str, samples: (Vec<f64>, Vec<f64>), facts: Value) {
    let mut line = Map::from_iter([
        ("case".to_owned(), json!(case)),
        ("unit".to_owned(), json!(unit)),
        ("ours".to_owned(), json!(samples.0)),
        ("peer".to_owned(), json!(samples.1)),
    ]);
    if let Value::Object(facts) = facts {
        line.extend(facts);
    }
    println!("{}", Value::Object(line));
}

/// The private memory of this process in bytes, what was swapped out included.
pub fn private_bytes() -> u64 {
    let rollup = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap();
    rollup
        .lines()
        .filter_map(|line| {
            let (name, value) = line.split_once(':')?;
            let counted = ["Private_Clean", "Private_Dirty", "Swap"].contains(&name);
            let kib: u64 = counted
                .then(|| value.trim().strip_suffix(" kB"))??
                .parse()
                .ok()?;
            Some(kib << 10)
        })
        .sum()
}

/// Regions of memory that the system keeps for this process; it allows `vm.max_map_count` of them.
pub fn n_maps() -> usize {
    std::fs::read_to_string("/proc/self/maps")
        .unwrap()
        .lines()
        .count()
}
