//! The engine against the oracle in Python, which shares no code with it: tokens, finish reasons and derived seeds.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod support;

use std::time::Duration;

use pie_core::{
    Capabilities, ContextId, EngineConfig, FinishReason, GeneratorOptions, Method, ProcessId,
};
use serde_json::Value;
use support::world::{World, options};

fn ids(value: &Value) -> Vec<u32> {
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|id| id.as_u64().unwrap() as u32)
        .collect()
}

fn method(sampler: &Value) -> Method {
    let float = |name: &str| sampler[name].as_f64().unwrap() as f32;
    let (temperature, k) = (
        float("temperature"),
        sampler["top_k"].as_u64().unwrap() as u32,
    );
    match (k, float("top_p"), float("min_p")) {
        (0, 1.0, 0.0) if temperature == 0.0 => Method::Argmax,
        (0, 1.0, 0.0) => Method::Multinomial {
            temperature,
            draws: 1,
        },
        (0, 1.0, p) => Method::MinP { temperature, p },
        (0, p, _) => Method::TopP { temperature, p },
        (k, 1.0, _) => Method::TopK { temperature, k },
        (k, p, _) => Method::TopKTopP { temperature, k, p },
    }
}

/// Runs a case in steps or in runs to the end; both must give the same.
fn check(case: &Value, config: EngineConfig, steps: bool) -> usize {
    let mut world = World::with_process(
        config,
        case["launch_seed"].as_str().unwrap().parse().unwrap(),
    );
    let mut contexts: Vec<ContextId> = Vec::new();
    let mut n_tokens = 0;
    for operation in case["operations"].as_array().unwrap() {
        let context = operation["context"]
            .as_u64()
            .map(|index| contexts[index as usize]);
        match operation["op"].as_str().unwrap() {
            "context" => contexts.push(world.engine.new_context(ProcessId(1)).unwrap()),
            "fork" => contexts.push(world.engine.fork(context.unwrap()).unwrap()),
            "append" => world
                .engine
                .append(context.unwrap(), &ids(&operation["tokens"]))
                .unwrap(),
            "flush" => world.flush(context.unwrap()).unwrap(),
            "generate" => {
                let options = GeneratorOptions {
                    seed: operation["seed"].as_str().map(|seed| seed.parse().unwrap()),
                    max_tokens: operation["max_tokens"].as_u64().map(|n| n as u32),
                    stop: ids(&operation["stop"]),
                    ..options(method(&operation["sampler"]))
                };
                let generator = world
                    .engine
                    .new_generator(context.unwrap(), options)
                    .unwrap();
                let mut tokens = Vec::new();
                if steps {
                    while let Some(output) = world.step(generator).unwrap() {
                        tokens.extend(output.tokens);
                    }
                } else {
                    tokens = world.run(generator).unwrap().tokens;
                }
                assert_eq!(tokens, ids(&operation["tokens"]), "{operation}");
                let finish = match world.engine.finish_reason(generator).unwrap() {
                    Some(FinishReason::Stop) => "stop",
                    Some(FinishReason::Length) => "length",
                    other => panic!("{other:?}"),
                };
                assert_eq!(finish, operation["finish"], "{operation}");
                n_tokens += tokens.len();
            }
            other => panic!("unknown operation {other}"),
        }
    }
    n_tokens
}

// rows: RS-064 RS-066 RS-083
#[test]
fn every_case_for_every_chunk_and_page_size() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/core_oracle/cases.json"
    );
    let cases: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let cases = cases.as_array().unwrap();
    let mut n_tokens = 0;
    for case in cases {
        for (page_size, max_batch_tokens, prefill_chunk) in [(16, 512, 512), (4, 16, 7), (1, 1, 1)]
        {
            let config = EngineConfig {
                end_tokens: ids(&case["end_tokens"]),
                max_batch_tokens,
                prefill_chunk,
                hold: Duration::ZERO,
                driver: Capabilities {
                    vocab_size: case["vocab_size"].as_u64().unwrap() as u32,
                    max_positions: case["max_context"].as_u64().unwrap() as u32,
                    page_size,
                    ..EngineConfig::new(case["model"].as_str().unwrap(), 1).driver
                },
                ..EngineConfig::new(case["model"].as_str().unwrap(), 1)
            };
            n_tokens += check(case, config.clone(), false);
            n_tokens += check(case, config, true);
        }
    }
    assert!(
        cases.len() >= 40 && n_tokens > 5000,
        "{} cases with {n_tokens} tokens prove little",
        cases.len()
    );
}
