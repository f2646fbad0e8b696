//! What pages by content cost: its memory, forks, a tree of branches, prompts that were computed before or not, and a step
//! beside many contexts.
//!
//! `cargo run --release -p pie-core --example store_cost`. The driver answers at once and computes nothing, so every figure is the engine's own.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program that prints a table and may stop at a fault"
)]

use std::time::Instant;

use pie_core::{
    Adapter, Answer, ContextId, Engine, EngineConfig, GeneratorOptions, Method, Plan, ProcessId,
    RequestId, Sampler, Submission, UserId,
};

const PAGE_SIZE: u32 = 16;
const VOCAB_SIZE: u32 = 64;
const ROUNDS: usize = 9;

/// An engine of one process, and the driver that computes nothing.
struct World {
    engine: Engine,
    logits: Vec<f32>,
    n_requests: u64,
}

impl World {
    fn new(n_pages: u32) -> Self {
        let config = EngineConfig {
            n_pages,
            page_size: PAGE_SIZE,
            max_batch_tokens: 8192,
            prefill_chunk: 8192,
            max_context: 1 << 20,
            max_contexts: 1 << 20,
            max_process_contexts: Some(1 << 20),
            hold_ns: 0,
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
        let Plan::Batch(batch) = self.engine.next_batch(0) else {
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
            adapter: Adapter::default(),
            sampler: Sampler {
                method: Method::Argmax,
                seed: None,
            },
            seed: Some(1),
            max_tokens,
            stop: Vec::new(),
            template_stop: Vec::new(),
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

/// The best of some rounds, in microseconds for each of `n`.
fn best(n: usize, mut round: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        round();
        best = best.min(start.elapsed().as_secs_f64() * 1e6 / n as f64);
    }
    best
}

fn forks() {
    println!("fork and release; microseconds each, best of {ROUNDS} rounds");
    for n_tokens in [1_000, 1_024, 32_000, 32_768] {
        let mut world = World::new(1 << 16);
        let context = world.context(&prompt(n_tokens, 0));
        world.flush(context);
        let n = 1000;
        let mut forks = Vec::with_capacity(n);
        let mut both = [f64::INFINITY; 2];
        for _ in 0..ROUNDS {
            let start = Instant::now();
            forks.extend((0..n).map(|_| world.engine.fork(context).unwrap()));
            both[0] = both[0].min(start.elapsed().as_secs_f64() * 1e6 / n as f64);
            let start = Instant::now();
            forks.drain(..).for_each(|fork| world.engine.release(fork));
            both[1] = both[1].min(start.elapsed().as_secs_f64() * 1e6 / n as f64);
        }
        println!("{n_tokens:>8} tokens: {:.3} {:.3}", both[0], both[1]);
    }
}

fn tree() {
    let (n_branches, n_prefix, n_drawn) = (64, 1024, 64);
    let mut world = World::new(1 << 16);
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
    println!("tree of {n_branches} branches behind {n_prefix} tokens: {used} pages, ideal {ideal}");
}

fn prefixes() {
    println!("a prompt of 2,048 tokens; microseconds of the engine, best of {ROUNDS} rounds");
    for share in [0u32, 50, 90, 99, 100] {
        let mut world = World::new(1 << 18);
        let n_shared = 2048 * share / 100;
        let first = world.context(&prompt(2048, 0));
        world.flush(first);
        let mut salt = 0;
        let before = world.engine.stats();
        let cost = best(1, || {
            salt += 1;
            let mut tokens = prompt(n_shared, 0);
            tokens.extend(prompt(2048 - n_shared, 1000 + share * 100 + salt));
            let context = world.context(&tokens);
            let request = world.submit(Submission::Flush(context));
            while world.step() {}
            world.engine.take(request).unwrap().unwrap();
        });
        let after = world.engine.stats();
        let computed = (after.n_tokens - before.n_tokens) as usize / ROUNDS;
        let ideal = (2048 - n_shared / PAGE_SIZE * PAGE_SIZE) as usize;
        println!("{share:>8} % seen before: {cost:.1}, {computed} tokens computed, ideal {ideal}");
    }
}

fn scale() {
    println!("a step of 64 sequences beside others; microseconds, best of {ROUNDS} rounds");
    for (n_contexts, n_pages_each) in [(100, 10), (1_000, 10), (10_000, 10), (10_000, 100)] {
        let mut world = World::new(n_contexts * n_pages_each + 64 * 128);
        for salt in 0..n_contexts {
            let context = world.context(&prompt(n_pages_each * PAGE_SIZE, salt));
            world.flush(context);
        }
        for salt in 0..64 {
            let context = world.context(&prompt(512, 1 << 20 | salt));
            world.run(context, None);
        }
        for _ in 0..200 {
            world.step();
        }
        let cost = best(64, || {
            for _ in 0..64 {
                world.step();
            }
        });
        println!(
            "{n_contexts:>8} contexts, {:>9} pages: {cost:.1}",
            world.engine.stats().n_pages
        );
    }
}

/// Bytes of this process in memory.
fn resident_bytes() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: f64 = statm.split_whitespace().nth(1).unwrap().parse().unwrap();
    pages * 4096.0
}

fn memory() {
    println!("memory of the engine");
    for (n_contexts, n_tokens) in [(100_000u32, 0), (1_000, 1_000 * PAGE_SIZE)] {
        let before = resident_bytes();
        let mut world = World::new(1 << 21);
        for salt in 0..n_contexts {
            let context = world.context(&prompt(n_tokens, salt));
            world.flush(context);
        }
        let n = f64::from(n_contexts * (n_tokens / PAGE_SIZE).max(1));
        let what = if n_tokens == 0 {
            "an empty context"
        } else {
            "a page of 16 tokens"
        };
        println!("    {what}: {:.0} bytes", (resident_bytes() - before) / n);
    }
}

fn main() {
    memory();
    forks();
    tree();
    prefixes();
    scale();
}
