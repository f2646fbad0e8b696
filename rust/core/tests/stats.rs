//! What the engine counts, each on the dummy driver and by a clock of the test's own.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod support;

use std::collections::BTreeSet;

use pie_core::{EngineConfig, Figure, Submission};
use support::world::{World, config};

const US: u64 = 1_000;

fn prompt(n: u32, salt: u32) -> Vec<u32> {
    (0..n).map(|token| (token * 7 + salt) % 50).collect()
}

#[test]
fn a_request_waits_until_the_first_batch_that_computes_anything_of_it() {
    let mut world = World::with_process(
        EngineConfig {
            max_batch_tokens: 16,
            prefill_chunk: 16,
            ..config()
        },
        1,
    );
    world.now_ns = 50 * US;
    let long = world.context(&prompt(40, 0));
    let first = world.submit(Submission::Flush(long)).unwrap();
    world.now_ns += 10 * US;
    assert!(world.plan());
    let other = world.context(&prompt(8, 1));
    let second = world.submit(Submission::Flush(other)).unwrap();
    world.now_ns += 90 * US;
    world.finish();
    world.wait(first).unwrap();
    world.wait(second).unwrap();
    let stats = world.engine.stats();
    // 10 us, and 90: chunks of the long one are no waits of their own.
    assert_eq!((stats.wait_us.n(), stats.wait_us.sum()), (2, 100));
    assert_eq!(stats.wait_us.max(), 90);
    // The first batch ran for 90 us; the others took no time.
    assert_eq!((stats.batch_us.n(), stats.batch_us.sum()), (3, 90));
    assert_eq!(
        (stats.batch_tokens.sum(), stats.batch_tokens.max()),
        (48, 16)
    );
    assert_eq!(stats.batch_sequences.sum(), stats.n_sequences);
    // The rest of the long one, and the other.
    assert_eq!(stats.n_waiting_max, 2);
    // Where nothing is left to compute, the wait ends without a batch.
    let again = world.context(&prompt(40, 0));
    let third = world.submit(Submission::Flush(again)).unwrap();
    world.now_ns += 5 * US;
    world.wait(third).unwrap();
    let stats = world.engine.stats();
    assert_eq!((stats.wait_us.n(), stats.wait_us.sum()), (3, 105));
    assert_eq!((stats.n_hits, stats.n_reused), (1, 40));
}

#[test]
fn a_step_that_ran_ahead_did_not_wait() {
    let mut world = World::with_process(config(), 1);
    let context = world.context(&prompt(10, 0));
    let generator = world.generator(context, 4);
    for _ in 0..4 {
        world.step(generator).unwrap().unwrap();
        world.pump();
    }
    let stats = world.engine.stats();
    assert_eq!((stats.wait_us.n(), stats.n_ahead_used), (1, 3));
}

#[test]
fn without_the_prefix_cache_everything_is_computed_and_forks_share() {
    for (prefix_cache, n_tokens) in [(true, 40), (false, 80)] {
        let mut world = World::with_process(
            EngineConfig {
                prefix_cache,
                ..config()
            },
            1,
        );
        for _ in 0..2 {
            let context = world.context(&prompt(40, 0));
            world.flush(context).unwrap();
            world.engine.fork(context).unwrap();
        }
        let stats = world.engine.stats();
        assert_eq!(stats.n_tokens, n_tokens);
        assert_eq!(stats.n_reused, 80 - n_tokens);
        assert_eq!(stats.n_pages_used, 10);
    }
}

#[test]
fn the_largest_queue_is_kept() {
    let mut world = World::with_process(config(), 1);
    for salt in 0..5 {
        let context = world.context(&prompt(8, salt));
        world.submit(Submission::Flush(context)).unwrap();
    }
    world.pump();
    let stats = world.engine.stats();
    assert_eq!((stats.n_waiting, stats.n_waiting_max), (0, 5));
}

#[test]
fn every_page_is_used_cached_or_free() {
    let mut world = World::with_process(config(), 1);
    let kept = world.context(&prompt(10, 0));
    world.flush(kept).unwrap();
    let gone = world.context(&prompt(12, 1));
    world.flush(gone).unwrap();
    world.engine.release(gone);
    let stats = world.engine.stats();
    assert_eq!(
        (
            stats.n_pages_used,
            stats.n_pages_cached,
            stats.n_pages_free,
            stats.n_pages
        ),
        (3, 3, 250, 256)
    );
}

#[test]
fn figures_have_names_of_their_own() {
    let stats = World::with_process(config(), 1).engine.stats();
    let names: BTreeSet<_> = stats.figures().map(|(name, _)| name).collect();
    assert_eq!(names.len(), stats.figures().count());
    for (name, figure) in stats.figures() {
        let counts = matches!(figure, Figure::Number(_));
        let is_named_so = name.starts_with("n_") || name.ends_with("_microcredits");
        assert_eq!(counts, is_named_so, "{name}");
    }
}
