//! The engine's own cost of one step: planning, the arena, drawing and folding, with a driver that answers at once.
//!
//! `cargo run --release -p pie-core --example step_cost`. Prints microseconds a step, the best and the median of the
//! rounds, for generations that the engine steps by itself. The vocabulary is small, so that drawing costs next to
//! nothing; a second table draws from rows of 151,936 logits.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program that prints a table and may stop at a fault"
)]

use std::time::Duration;
use std::time::Instant;

use pie_core::{
    Adapter, Capabilities, ContextId, Engine, EngineConfig, GeneratorOptions, Method, NextWork,
    ProcessId, RequestId, Sampler, Submission,
};

const ROUNDS: usize = 9;
const CONTEXT_TOKENS: usize = 512;

fn engine(n_sequences: u32, vocab_size: u32, method: Method) -> Engine {
    let config = EngineConfig {
        max_batch_seqs: n_sequences,
        max_batch_tokens: 8192,
        hold: Duration::ZERO,
        driver: Capabilities {
            n_pages: 1 << 20,
            ..EngineConfig::new("null", vocab_size).driver
        },
        ..EngineConfig::new("null", vocab_size)
    };
    let mut engine = Engine::new(config).unwrap();
    for number in 0..u64::from(n_sequences) {
        engine
            .new_process(ProcessId(number), pie_core::UserId(0), number)
            .unwrap();
        let context: ContextId = engine.new_context(ProcessId(number)).unwrap();
        engine.append(context, &[1; CONTEXT_TOKENS]).unwrap();
        let options = GeneratorOptions {
            adapter: Adapter::default(),
            sampler: Sampler { method, seed: None },
            seed: None,
            max_tokens: None,
            stop: Vec::new(),
            template_stop: Vec::new(),
            token_mask: Vec::new(),
            drafting: pie_core::Drafting::None,
        };
        let generator = engine.new_generator(context, options).unwrap();
        engine
            .submit(RequestId(number), Submission::Run(generator), 0)
            .unwrap();
    }
    engine
}

/// Runs one batch; returns its width, and the seconds of the engine without and within drawing.
fn step(engine: &mut Engine, logits: &[f32]) -> (usize, f64, f64) {
    let start = Instant::now();
    let NextWork::Batch(batch) = engine.next_batch(0) else {
        return (0, 0.0, 0.0);
    };
    let planned = start.elapsed().as_secs_f64();
    let n_rows = batch.jobs.n_rows();
    let start = Instant::now();
    let sampled = batch.jobs.sample(
        &logits[..n_rows * engine.config().driver.vocab_size as usize],
        &[],
    );
    let drawn = start.elapsed().as_secs_f64();
    let start = Instant::now();
    engine.complete(batch.id, Ok(sampled), 0).unwrap();
    (n_rows, planned + start.elapsed().as_secs_f64(), drawn)
}

/// Microseconds a step of the engine and of drawing: the best round, and the median one.
fn measure(n_sequences: u32, vocab_size: u32, n_steps: usize, method: Method) -> [[f64; 2]; 2] {
    let mut engine = engine(n_sequences, vocab_size, method);
    let logits: Vec<f32> = (0..n_sequences as usize * vocab_size as usize)
        .map(|n| (pie_core::hash::mix(n as u64) >> 40) as f32 / 1_048_576.0)
        .collect();
    while step(&mut engine, &logits).0 < n_sequences as usize {}
    let mut rounds: Vec<[f64; 2]> = Vec::new();
    for _ in 0..ROUNDS {
        let mut sum = [0.0; 2];
        for _ in 0..n_steps {
            let (_, engine_s, drawing_s) = step(&mut engine, &logits);
            sum = [sum[0] + engine_s, sum[1] + drawing_s];
        }
        rounds.push(sum.map(|seconds| seconds * 1e6 / n_steps as f64));
    }
    rounds.sort_by(|a, b| (a[0] + a[1]).total_cmp(&(b[0] + b[1])));
    [rounds[0], rounds[ROUNDS / 2]]
}

fn main() {
    println!(
        "contexts of {CONTEXT_TOKENS} tokens and more, pages of 16; microseconds a step: best (median) of {ROUNDS} rounds"
    );
    println!(
        "{:>10} {:>18} {:>18}",
        "sequences", "engine", "drawing of 64"
    );
    for n_sequences in [1, 64, 512] {
        let [best, median] = measure(n_sequences, 64, 40, Method::Argmax);
        println!(
            "{n_sequences:>10} {:>9.1} ({:>6.1}) {:>9.1} ({:>6.1})",
            best[0], median[0], best[1], median[1]
        );
    }
    println!("one row of 151,936 logits; microseconds a draw: best (median)");
    for (name, method) in [
        ("argmax", Method::Argmax),
        (
            "top-k 50",
            Method::TopK {
                temperature: 0.8,
                k: 50,
            },
        ),
        (
            "top-p 0.95",
            Method::TopP {
                temperature: 0.8,
                p: 0.95,
            },
        ),
        (
            "min-p 0.05",
            Method::MinP {
                temperature: 0.8,
                p: 0.05,
            },
        ),
        (
            "whole",
            Method::Multinomial {
                temperature: 0.8,
                draws: 1,
            },
        ),
    ] {
        let [best, median] = measure(1, 151_936, 10, method);
        println!("{name:>10} {:>9.1} ({:>6.1})", best[1], median[1]);
    }
}
