//! What becomes of requests that do not fit together.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod support;

use pie_core::{EngineConfig, Submission};
use support::world::{World, config, output};

/// Who comes back to the device computes a token of its own before it can be displaced again: else each of the two would compute again what
/// the other one took, and neither would come to its end.
#[test]
fn two_contexts_that_each_fill_the_pool_both_finish() {
    for (page_size, prefill_chunk) in [(4, 1), (4, 3), (5, 1), (5, 7), (1, 2)] {
        let narrow = EngineConfig {
            page_size,
            n_pages: 40 / page_size,
            max_batch_tokens: prefill_chunk,
            prefill_chunk,
            max_batch_seqs: 1,
            ..config()
        };
        let mut world = World::with_process(narrow, 9);
        let requests = [10, 20, 30].map(|token| {
            let context = world.context(&[token; 34]);
            let generator = world.generator(context, 4);
            world.submit(Submission::Run(generator)).unwrap()
        });
        world.pump();
        for request in requests {
            let answer = world.engine.take(request).expect("it ran").unwrap();
            assert_eq!(output(answer).tokens.len(), 4);
        }
        // Each token of a context costs at most all of its tokens once more.
        let stats = world.engine.stats();
        assert!(stats.n_tokens <= 3 * (34 + 4 * 40), "{stats:?}");
    }
}
