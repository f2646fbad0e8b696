//! What masks of JSON schemas cost, beside llguidance alone: `cargo bench --profile release -p pie-text --bench masks
//! -- TOKENIZER WORKLOAD`, where WORKLOAD is a list of `{"schema", "documents"}`.
//!
//! Both walk the same tokens of the same documents, with the same tokenizer. Each case is a line of JSON with its
//! samples by round, which `asv_benchmarks` reads.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    missing_docs,
    reason = "a benchmark prints, and stops at the first fault"
)]

use std::fs;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use llguidance::api::TopLevelGrammar;
use llguidance::toktrie::{
    INVALID_TOKEN, InferenceCapabilities, TokEnv, TokRxInfo, TokTrie, TokenId, TokenizerEnv,
};
use llguidance::{ParserFactory, TokenParser, earley::SlicedBiasComputer};
use pie_text::Tokenizer;
use pie_text::grammar::{Compiled, Grammar, Matcher, Source, Vocabulary};
use serde_json::{Value, json};

const ROUNDS: usize = 5;
/// Passes of a round: of each mask the least time counts, so that a wait for a core is not taken for work.
const PASSES: usize = 3;

/// A schema, and the tokens of documents that fit it.
struct Work {
    schema: String,
    documents: Vec<Vec<u32>>,
}

/// What the peer asks a tokenizer: the same as ours, without control tokens.
struct Environment {
    trie: TokTrie,
    tokenizer: Arc<Tokenizer>,
}

impl TokenizerEnv for Environment {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<TokenId> {
        self.trie
            .tokenize_with_greedy_fallback(bytes, |text| self.tokenizer.encode(text).unwrap())
    }
}

fn peer_factory(tokenizer: &Arc<Tokenizer>) -> ParserFactory {
    let n_tokens = tokenizer.vocab_size();
    let words: Vec<Vec<u8>> = (0..n_tokens)
        .map(|id| tokenizer.token_bytes(id).unwrap_or_default().to_vec())
        .collect();
    let trie = TokTrie::from(&TokRxInfo::new(n_tokens, INVALID_TOKEN), &words);
    let tokenizer = Arc::clone(tokenizer);
    let environment: TokEnv = Arc::new(Environment { trie, tokenizer });
    let slices = SlicedBiasComputer::json_slices();
    let mut factory =
        ParserFactory::new(&environment, InferenceCapabilities::default(), &slices).unwrap();
    factory.quiet();
    factory
}

/// The parser of a schema whose documents have no white space.
fn peer_parser(factory: &ParserFactory, schema: &str) -> TokenParser {
    let mut schema: Value = serde_json::from_str(schema).unwrap();
    schema["x-guidance"] = json!({"whitespace_flexible": false});
    let grammar = TopLevelGrammar::from_json_schema(schema);
    let mut parser = factory.create_parser(grammar).unwrap();
    parser.start_without_prompt();
    parser
}

fn our_compiled(vocabulary: &Arc<Vocabulary>, schema: &str) -> Arc<Compiled> {
    let grammar = Grammar::new(Source::JsonSchema(schema)).unwrap();
    Arc::new(Compiled::new(vocabulary.clone(), Arc::new(grammar)).unwrap())
}

fn us_since(began: Instant) -> f64 {
    began.elapsed().as_secs_f64() * 1e6
}

/// Microseconds of each mask of a document.
fn walk_ours(compiled: &Arc<Compiled>, document: &[u32], times: &mut Vec<f64>) {
    let mut matcher = Matcher::new(compiled, vec![]);
    for &token in document {
        let began = Instant::now();
        let mask = black_box(matcher.mask().unwrap());
        times.push(us_since(began));
        drop(mask);
        matcher.accept(&[token]).unwrap();
    }
    assert!(matcher.is_accepting().unwrap(), "the document goes on");
}

fn walk_peer(prototype: &TokenParser, document: &[u32], times: &mut Vec<f64>) {
    let mut parser = prototype.deep_clone();
    for &token in document {
        let began = Instant::now();
        let mask = black_box(parser.compute_mask().unwrap());
        times.push(us_since(began));
        drop(mask);
        parser.consume_token(token).unwrap();
    }
    assert!(parser.is_accepting(), "the document goes on");
}

/// The least time of each mask.
fn least(passes: &[Vec<f64>]) -> impl Iterator<Item = f64> + '_ {
    let of_mask = |place: usize| passes.iter().filter_map(move |times| times.get(place));
    let n_masks = passes.first().map_or(0, Vec::len);
    (0..n_masks).map(move |place| of_mask(place).copied().fold(f64::MAX, f64::min))
}

/// The mean, and the times that all but so many of a thousand keep.
fn measures(mut times: Vec<f64>) -> [f64; 4] {
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    [mean, at(0.5), at(0.99), at(0.999)]
}

fn show(case: &str, unit: &str, ours: &[f64], peer: &[f64]) {
    let line = json!({ "case": case, "unit": unit, "ours": ours, "peer": peer });
    println!("{line}");
}

fn read(tokenizer: &Tokenizer, path: &str) -> Vec<Work> {
    let listed: Vec<Value> = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let encoded = |text: &Value| tokenizer.encode(text.as_str().unwrap()).unwrap();
    listed
        .iter()
        .map(|work| Work {
            schema: work["schema"].as_str().unwrap().to_owned(),
            documents: work["documents"]
                .as_array()
                .unwrap()
                .iter()
                .map(encoded)
                .collect(),
        })
        .collect()
}

fn main() {
    // Cargo adds an argument of its own.
    let mut given = std::env::args().skip(1).filter(|it| !it.starts_with("--"));
    let (Some(path), Some(workload)) = (given.next(), given.next()) else {
        println!(
            "give a tokenizer.json and a workload; asv_benchmarks/benchmarks/grammars.py writes both"
        );
        return;
    };
    let tokenizer = Arc::new(Tokenizer::from_bytes(&fs::read(path).unwrap(), 0).unwrap());
    let works = read(&tokenizer, &workload);
    let vocabulary = Arc::new(Vocabulary::new(tokenizer.clone(), []).unwrap());
    let factory = peer_factory(&tokenizer);
    masks(&vocabulary, &factory, &works);
    first_masks(&vocabulary, &factory, &works);
}

fn masks(vocabulary: &Arc<Vocabulary>, factory: &ParserFactory, works: &[Work]) {
    let (mut cold, mut warm, mut peer) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let [mut of_cold, mut of_warm, mut of_peer] = [Vec::new(), Vec::new(), Vec::new()];
        for work in works {
            let [mut times_cold, mut times_warm, mut times_peer] = [const { Vec::new() }; 3];
            for pass in 0..PASSES {
                let compiled = our_compiled(vocabulary, &work.schema);
                let prototype = peer_parser(factory, &work.schema);
                let documents = || work.documents.iter();
                let mut run_peer = || {
                    let mut times = Vec::new();
                    documents().for_each(|it| walk_peer(&prototype, it, &mut times));
                    times_peer.push(times);
                };
                let run_ours = || {
                    let mut times = Vec::new();
                    documents().for_each(|it| walk_ours(&compiled, it, &mut times));
                    times
                };
                // In turns: whatever drifts with time meets both alike.
                if (round + pass) % 2 == 0 {
                    run_peer();
                    times_cold.push(run_ours());
                } else {
                    times_cold.push(run_ours());
                    run_peer();
                }
                times_warm.push(run_ours());
            }
            of_cold.extend(least(&times_cold));
            of_warm.extend(least(&times_warm));
            of_peer.extend(least(&times_peer));
        }
        // The first round warms the machine.
        if round > 0 {
            cold.push(measures(of_cold));
            warm.push(measures(of_warm));
            peer.push(measures(of_peer));
        }
    }
    for (place, measure) in ["mean", "p50", "p99", "p99.9"].into_iter().enumerate() {
        let of = |rounds: &[[f64; 4]]| rounds.iter().map(|it| it[place]).collect::<Vec<f64>>();
        show(
            &format!("{measure}, cold"),
            "us/token",
            &of(&cold),
            &of(&peer),
        );
        show(
            &format!("{measure}, warm"),
            "us/token",
            &of(&warm),
            &of(&peer),
        );
    }
}

/// From the text of a schema to its first mask, by schema.
fn first_masks(vocabulary: &Arc<Vocabulary>, factory: &ParserFactory, works: &[Work]) {
    let (mut cold, mut cached, mut peer) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let [mut of_cold, mut of_cached, mut of_peer] = [0.0; 3];
        for work in works {
            let [mut cold_us, mut cached_us, mut peer_us] = [f64::MAX; 3];
            for pass in 0..PASSES {
                let mut run_peer = || {
                    let began = Instant::now();
                    let mut parser = peer_parser(factory, &work.schema);
                    black_box(parser.compute_mask().unwrap());
                    peer_us = us_since(began).min(peer_us);
                };
                let mut run_ours = || {
                    let began = Instant::now();
                    let compiled = our_compiled(vocabulary, &work.schema);
                    black_box(Matcher::new(&compiled, vec![]).mask().unwrap());
                    cold_us = us_since(began).min(cold_us);
                    // A schema that is known is found by its hash.
                    let began = Instant::now();
                    black_box(pie_text::grammar::digest(Source::JsonSchema(&work.schema)));
                    black_box(Matcher::new(&compiled, vec![]).mask().unwrap());
                    cached_us = us_since(began).min(cached_us);
                };
                if (round + pass) % 2 == 0 {
                    run_peer();
                    run_ours();
                } else {
                    run_ours();
                    run_peer();
                }
            }
            of_cold += cold_us;
            of_cached += cached_us;
            of_peer += peer_us;
        }
        if round > 0 {
            let n_schemas = works.len() as f64;
            cold.push(of_cold / n_schemas);
            cached.push(of_cached / n_schemas);
            peer.push(of_peer / n_schemas);
        }
    }
    show("first mask, cold", "us/schema", &cold, &peer);
    show("first mask, cached", "us/schema", &cached, &peer);
}
