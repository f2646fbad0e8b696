//! What pages by content cost: `cargo bench --profile release -p pie-core --bench store -- (forks | prefixes | scale |
//! memory)`.
//!
//! The driver answers at once and computes nothing, so every figure is the engine's own. Each case is a line of JSON
//! with its samples by round, which `asv_benchmarks` reads.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::panic,
    missing_docs,
    reason = "a benchmark prints, and stops at the first fault"
)]

use std::time::Duration;
use std::time::Instant;

use pie_core::{
    Adapter, Answer, Capabilities, ContextId, Engine, EngineConfig, GeneratorOptions, Method,
    NextWork, ProcessId, RequestId, Sampler, Submission, UserId,
};
use serde_json::json;

const PAGE_SIZE: u32 = 16;
const VOCAB_SIZE: u32 = 64;
const ROUNDS: usize = 9;
const STEPS: usize = 64;
const PROMPT_TOKENS: u32 = 2048;
/// Contexts beside which steps are measured, of ten pages each.
const CONTEXTS: [u32; 5] = [100, 300, 1_000, 3_000, 10_000];
/// Pages of each of a thousand such contexts, beside the ten.
const PAGES_EACH: [u32; 4] = [1, 100, 300, 1_000];
const WIDTHS: [u32; 3] = [1, 64, 512];

/// An engine of one process, and the driver that computes nothing.
struct World {
    engine: Engine,
    logits: Vec<f32>,
    n_requests: u64,
}

impl World {
    fn new(n_pages: u32, prefix_cache: bool) -> Self {
        let config = EngineConfig {
            prefix_cache,
            max_batch_tokens: 8192,
            prefill_chunk: 8192,
            max_batch_seqs: 512,
            max_contexts: 1 << 20,
            max_process_contexts: 1 << 20,
            max_user_contexts: 1 << 20,
            hold: Duration::ZERO,
            driver: Capabilities {
                n_pages,
                page_size: PAGE_SIZE,
                max_positions: 1 << 20,
                ..EngineConfig::new("null", VOCAB_SIZE).driver
            },
            ..EngineConfig::new("null", VOCAB_SIZE)
        };
        let mut engine = Engine::new(config).unwrap();
        engine.new_process(ProcessId(1), UserId(1), 1).unwrap();
        let logits = (0..1024 * VOCAB_SIZE).map(|n| (n % 61) as f32).collect();
        Self {
            engine,
            logits,
            n_requests: 0,
        }
    }

    fn context(&mut self, tokens: &[u32]) -> ContextId {
        let context = self.engine.new_context(ProcessId(1)).unwrap();
        self.engine.append(context, tokens).unwrap();
        context
    }

    fn submit(&mut self, submission: Submission) -> RequestId {
        self.n_requests += 1;
        let request = RequestId(self.n_requests);
        self.engine.submit(request, submission, 0).unwrap();
        request
    }

    fn step(&mut self) -> bool {
        let NextWork::Batch(batch) = self.engine.next_batch(0) else {
            return false;
        };
        let n_values = batch.jobs.n_rows() * VOCAB_SIZE as usize;
        let sampled = batch.jobs.sample(&self.logits[..n_values], &[]);
        self.engine.complete(batch.id, Ok(sampled), 0).unwrap();
        true
    }

    fn flush(&mut self, context: ContextId) {
        let request = self.submit(Submission::Flush(context));
        while self.step() {}
        assert_eq!(self.engine.take(request).unwrap().unwrap(), Answer::Flushed);
    }

    fn run(&mut self, context: ContextId, max_tokens: Option<u32>) -> RequestId {
        let options = GeneratorOptions {
            sampler: Sampler {
                method: Method::Argmax,
                seed: None,
            },
            seed: Some(1),
            max_tokens,
            stop: Vec::new(),
            template_stop: Vec::new(),
            token_mask: Vec::new(),
            drafting: pie_core::Drafting::None,
            adapter: Adapter::default(),
        };
        let generator = self.engine.new_generator(context, options).unwrap();
        self.submit(Submission::Run(generator))
    }
}

fn prompt(n_tokens: u32, salt: u32) -> Vec<u32> {
    let token = |n: u32| {
        (pie_core::hash::mix(u64::from(n) << 32 | u64::from(salt)) % u64::from(VOCAB_SIZE)) as u32
    };
    (0..n_tokens).map(token).collect()
}

fn report(case: &str, unit: &str, ours: &[f64], peer: &[f64]) {
    println!(
        "{}",
        json!({"case": case, "unit": unit, "ours": ours, "peer": peer})
    );
}

/// Microseconds for each of `n`.
fn timed(n: usize, work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64() * 1e6 / n as f64
}

/// Others take the processor now and then: a median of steps is what a step costs.
fn median(samples: impl Iterator<Item = f64>) -> f64 {
    let mut samples: Vec<f64> = samples.collect();
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

/// A long context forked, beside a short one in turns; and a tree of branches, in pages.
fn forks() {
    let mut world = World::new(1 << 16, true);
    let mut samples = [32_000, 1_000].map(|n_tokens| {
        let context = world.context(&prompt(n_tokens, n_tokens));
        world.flush(context);
        (context, Vec::new())
    });
    let n = 1000;
    for round in 0..ROUNDS {
        for which in [round % 2, 1 - round % 2] {
            let mut forks = Vec::with_capacity(n);
            let (context, samples) = &mut samples[which];
            samples.push(timed(n, || {
                forks.extend((0..n).map(|_| world.engine.fork(*context).unwrap()));
            }));
            forks.drain(..).for_each(|fork| world.engine.release(fork));
        }
    }
    let [(_, long), (_, short)] = samples;
    report("fork of 1,000 tokens", "us", &short, &[]);
    report("fork of 32,000 tokens", "us", &long, &short);
    tree();
}

fn tree() {
    let (n_branches, n_prefix, n_drawn) = (64, 1024, 64);
    let mut world = World::new(1 << 16, true);
    let root = world.context(&prompt(n_prefix, 0));
    world.flush(root);
    let requests: Vec<RequestId> = (0..n_branches)
        .map(|branch| {
            let fork = world.engine.fork(root).unwrap();
            world
                .engine
                .append(fork, &[branch % VOCAB_SIZE, branch / 8, 1])
                .unwrap();
            world.run(fork, Some(n_drawn))
        })
        .collect();
    while world.step() {}
    for request in requests {
        world.engine.take(request).unwrap().unwrap();
    }
    // What a branch adds: three tokens of its own and all that it drew but the last, which is not computed.
    let ideal = n_prefix / PAGE_SIZE + n_branches * (3 + n_drawn - 1).div_ceil(PAGE_SIZE);
    let used = world.engine.stats().n_pages_used;
    report(
        "a tree of 64 branches behind 1,024 tokens",
        "pages",
        &[used as f64],
        &[f64::from(ideal)],
    );
}

/// A prompt of which a part was seen before, with the prefix cache and without it.
fn prefixes() {
    for share in [0u32, 50, 90, 99] {
        let n_shared = PROMPT_TOKENS * share / 100;
        let mut worlds = [true, false].map(|prefix_cache| {
            let mut world = World::new(1 << 18, prefix_cache);
            let first = world.context(&prompt(PROMPT_TOKENS, 0));
            world.flush(first);
            (world, Vec::new())
        });
        for round in 0..2 * ROUNDS {
            for which in [round % 2, 1 - round % 2] {
                let (world, samples) = &mut worlds[which];
                let salt = 1000 * (share + 1) + round as u32;
                let mut tokens = prompt(n_shared, 0);
                tokens.extend(prompt(PROMPT_TOKENS - n_shared, salt));
                samples.push(timed(1, || {
                    let context = world.context(&tokens);
                    world.flush(context);
                }));
            }
        }
        let [(_, with), (_, without)] = worlds;
        report(
            &format!("engine alone, {share} % seen before"),
            "us/prompt",
            &with,
            &without,
        );
    }
}

/// Steps beside idle contexts and their pages.
fn scale() {
    let many = CONTEXTS.map(|n_contexts| (n_contexts, 10));
    let long = PAGES_EACH.map(|n_pages_each| (1_000, n_pages_each));
    for (n_contexts, n_pages_each) in many.into_iter().chain(long) {
        let n_idle_pages = n_contexts * n_pages_each;
        let mut world = World::new(n_idle_pages + 512 * 256, true);
        for salt in 0..n_contexts {
            let context = world.context(&prompt(n_pages_each * PAGE_SIZE, salt));
            world.flush(context);
        }
        let mut n_running = 0;
        for width in WIDTHS {
            for salt in n_running..width {
                let context = world.context(&prompt(512, 1 << 20 | salt));
                world.run(context, None);
            }
            n_running = width;
            while world.engine.stats().batch_sequences.max() < u64::from(width) {
                world.step();
            }
            (0..STEPS).for_each(|_| assert!(world.step()));
            let samples: Vec<f64> = (0..ROUNDS)
                .map(|_| median((0..STEPS).map(|_| timed(1, || assert!(world.step())))))
                .collect();
            let case =
                format!("{width} sequences beside {n_contexts} contexts with {n_idle_pages} pages");
            report(&case, "us/step", &samples, &[]);
        }
    }
}

/// Bytes of this process in memory.
fn resident_bytes() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: f64 = statm.split_whitespace().nth(1).unwrap().parse().unwrap();
    pages * 4096.0
}

fn memory() {
    for (what, n_contexts, n_tokens) in [
        ("an empty context", 100_000u32, 0),
        ("a page of 16 tokens", 1_000, 1_000 * PAGE_SIZE),
    ] {
        let before = resident_bytes();
        let mut world = World::new(1 << 21, true);
        for salt in 0..n_contexts {
            let context = world.context(&prompt(n_tokens, salt));
            world.flush(context);
        }
        let n = f64::from(n_contexts * (n_tokens / PAGE_SIZE).max(1));
        report(what, "bytes", &[(resident_bytes() - before) / n], &[]);
    }
}

fn main() {
    // Cargo adds an option of its own.
    let part = std::env::args().skip(1).find(|part| !part.starts_with('-'));
    match part.as_deref() {
        Some("forks") => forks(),
        Some("prefixes") => prefixes(),
        Some("scale") => scale(),
        Some("memory") => memory(),
        other => panic!("{other:?} is none of: forks, prefixes, scale, memory"),
    }
}
