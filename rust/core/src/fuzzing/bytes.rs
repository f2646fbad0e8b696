//! Bytes as the cases of property tests, for fuzzers.

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// The bytes that stand for settings, and for each operation: they seed the draw. Few, so that a fuzzer that adds,
/// removes and moves bytes often adds, removes and moves operations.
const SETTINGS_BYTES: usize = 4;
const OP_BYTES: usize = 2;

/// The settings and the operations that the bytes stand for. The same bytes always stand for the same.
pub fn case<S: Strategy, O: Strategy>(
    data: &[u8],
    settings: &S,
    op: &O,
) -> (S::Value, Vec<O::Value>) {
    let (first, rest) = data.split_at(data.len().min(SETTINGS_BYTES));
    let ops = rest.chunks(OP_BYTES);
    (
        draw(settings, first),
        ops.map(|seed| draw(op, seed)).collect(),
    )
}

fn draw<S: Strategy>(strategy: &S, bytes: &[u8]) -> S::Value {
    let mut seed = [0; 32];
    seed[..bytes.len()].copy_from_slice(bytes);
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let tree = strategy.new_tree(&mut runner);
    tree.unwrap_or_else(|reason| panic!("nothing can be drawn: {reason}"))
        .current()
}
