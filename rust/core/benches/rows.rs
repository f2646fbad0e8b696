//! What a row of logits costs where it is drawn from: `cargo bench --profile release -p pie-core --bench rows`.
//!
//! Each case is a line of JSON with its samples by round, which `asv_benchmarks` reads.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    missing_docs,
    reason = "a benchmark prints, and stops at the first fault"
)]

use std::hint::black_box;
use std::time::Instant;

use pie_core::hash::mix;
use pie_core::masks;
use pie_core::sampling::{Key, Params, Probe, Scratch, read_row, sample};
use serde_json::json;

const VOCAB_SIZE: u32 = 151_936;
const ROUNDS: usize = 25;
/// A round takes about so long, which is less than the system lets a thread run: others of a busy machine are in few of
/// the rounds then, and not in all.
const ROUND_S: f64 = 1e-3;
const MOST_TIMES: f64 = 40.0;
const N_MASKS: u64 = 4;
/// Runs of each of the masks.
const N_RUNS: u64 = 256;

/// Logits around 0 with a spread of about 3, as those of a language model are.
fn logits() -> Vec<f32> {
    let uniform = |n: u64| (mix(n) >> 40) as f32 / 16_777_216.0;
    let value = |id: u64| (0..6).map(|n| uniform(6 * id + n)).sum::<f32>();
    (0..u64::from(VOCAB_SIZE))
        .map(|id| (value(id) - 3.0) * 4.0)
        .collect()
}

/// A mask of which about half allows.
fn mask(seed: u64) -> Vec<u32> {
    let most = 2 * u64::from(VOCAB_SIZE) / N_RUNS;
    let mut runs: Vec<u32> = (0..N_RUNS)
        .map(|n| (mix(seed << 32 | n) % most) as u32)
        .collect();
    while runs.iter().sum::<u32>() > VOCAB_SIZE {
        runs.pop();
    }
    runs
}

/// Microseconds of each round.
fn timed(mut work: impl FnMut()) -> Vec<f64> {
    work();
    let began = Instant::now();
    work();
    let times = (ROUND_S / began.elapsed().as_secs_f64()).clamp(1.0, MOST_TIMES) as u32;
    let round = || {
        let began = Instant::now();
        (0..times).for_each(|_| work());
        began.elapsed().as_secs_f64() * 1e6 / f64::from(times)
    };
    std::iter::repeat_with(round).take(ROUNDS).collect()
}

fn main() {
    let (row, mut scratch) = (logits(), Scratch::default());
    let given: Vec<Vec<u32>> = (1..=N_MASKS).map(mask).collect();
    let hot = Params {
        temperature: 0.8,
        ..Params::ARGMAX
    };
    let samplers = [
        ("argmax", Params::ARGMAX),
        ("top-k 50", Params { top_k: 50, ..hot }),
        ("top-p 0.95", Params { top_p: 0.95, ..hot }),
        ("min-p 0.05", Params { min_p: 0.05, ..hot }),
        (
            "top-k 50 and top-p 0.95",
            Params {
                top_k: 50,
                top_p: 0.95,
                ..hot
            },
        ),
        ("all", hot),
    ];
    for (name, params) in samplers {
        let mut key = Key {
            seed: 1,
            position: 0,
            slot: 0,
            draw: 0,
        };
        for (masked, given) in [("4 masks", &given[..]), ("no mask", &[])] {
            let ours = timed(|| {
                let mask = masks::intersection(black_box(given), VOCAB_SIZE).unwrap();
                key.position += 1;
                black_box(sample(&row, &params, &mask, key, &mut scratch).unwrap());
            });
            print(&format!("{name}, {masked}"), &ours);
        }
    }
    let probes = [
        ("entropy", Probe::Entropy),
        ("logprobs of 10 tokens", Probe::Logprobs((0..10).collect())),
        (
            "distribution of the first 20",
            Probe::Distribution {
                temperature: 1.0,
                k: 20,
            },
        ),
        ("logits", Probe::Logits),
    ];
    for (name, probe) in probes {
        let probe = [probe];
        let ours = timed(|| {
            black_box(read_row(black_box(&row), &[], &probe, &mut scratch));
        });
        print(&format!("probe: {name}"), &ours);
    }
}

fn print(case: &str, ours: &[f64]) {
    println!(
        "{}",
        json!({"case": case, "unit": "us", "ours": ours, "peer": []})
    );
}
