//! Pages that a batch brings back from the host, for a pass that has other things befall it meanwhile.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod support;

use pie_core::batch::ArenaView;
use pie_core::{Capabilities, ContextId, EngineConfig, RequestId, Submission};
use support::world::{World, config, expected, output, prompt};

fn world(n_pages: u32) -> World {
    World::with_process(
        EngineConfig {
            prefill_chunk: 20,
            driver: Capabilities {
                n_pages,
                host_pages: 16,
                ..config().driver
            },
            ..config()
        },
        1,
    )
}

/// The pages that the batch planned last computes sequences with, and those that it brings back.
fn moves(world: &World) -> (usize, usize) {
    let arena = &world.running.last().unwrap().arena;
    let view = ArenaView::parse(arena).unwrap();
    (view.n_sequences(), view.swap_ins().count())
}

/// A context of which a batch brings back two pages and computes nothing, and the request of its pass. It has seven
/// tokens, and eight more in its buffer.
fn restored(world: &mut World) -> (ContextId, RequestId) {
    // A fork has computed the pending token of its parent, which fills a page.
    let context = world.context(&prompt(7, 0));
    let generator = world.generator(context, 1);
    world.run(generator).unwrap();
    let fork = world.engine.fork(context).unwrap();
    world.engine.append(fork, &prompt(4, 5)).unwrap();
    world.flush(fork).unwrap();
    // All pages go to the host, and three of the pool are taken for a batch that runs.
    let wide = world.context(&prompt(20, 1));
    world.flush(wide).unwrap();
    world.engine.release(wide);
    let other = world.context(&prompt(12, 2));
    world.submit(Submission::Flush(other)).unwrap();
    assert!(world.plan());
    // What was computed comes back, and there is no room for the rest.
    world.engine.append(context, &prompt(8, 3)).unwrap();
    let request = world.submit(Submission::Flush(context)).unwrap();
    assert!(world.plan());
    assert_eq!(moves(world), (0, 2));
    (context, request)
}

#[test]
fn what_a_batch_brings_back_for_a_pass_is_not_taken_for_that_of_another() {
    let mut world = world(5);
    let (context, request) = restored(&mut world);
    // The program goes on in another way before the pages are there.
    world.engine.cancel(request);
    world.engine.truncate(context, 1).unwrap();
    let generator = world.generator(context, 4);
    let request = world.submit(Submission::Run(generator)).unwrap();
    let tokens = output(world.wait(request).unwrap()).tokens;
    let mut all = prompt(7, 0);
    all.extend(prompt(8, 3));
    assert_eq!(tokens, expected(&all, 4));
}

#[test]
fn a_context_that_is_released_while_its_pages_come_back_is_gone_once_they_are_there() {
    let mut world = world(5);
    let (context, _) = restored(&mut world);
    let n_contexts = world.engine.stats().n_contexts;
    world.engine.release(context);
    // The batch has its pages still.
    assert_eq!(world.engine.stats().n_contexts, n_contexts);
    world.pump();
    assert_eq!(world.engine.stats().n_contexts, n_contexts - 1);
    world.check();
}

#[test]
fn a_pass_that_adopts_a_part_and_waits_for_the_rest_gives_up_what_it_had_reserved_for_both() {
    let mut world = World::with_process(
        EngineConfig {
            prefill_chunk: 4,
            driver: Capabilities {
                n_pages: 10,
                host_pages: 16,
                ..config().driver
            },
            ..config()
        },
        1,
    );
    let tokens = prompt(16, 0);
    // The first page of the pass is computed for long; pages for all of its tokens are reserved.
    let slow = world.context(&tokens);
    let request = world.submit(Submission::Flush(slow)).unwrap();
    assert!(world.plan());
    let finish_last = |world: &mut World| {
        let (batch, logits) = world.compute(world.running.len() - 1);
        world.conclude(&batch, &logits, &[]);
    };
    let flush = |world: &mut World, tokens: &[u32]| {
        let context = world.context(tokens);
        let request = world.submit(Submission::Flush(context)).unwrap();
        while world.plan() {
            finish_last(world);
        }
        let answer = world.engine.take(request);
        assert!(answer.is_some_and(|answer| answer.is_ok()));
        context
    };
    // Meanwhile another context computes the same tokens, and its pages go to the host.
    let quick = flush(&mut world, &tokens);
    let wide = flush(&mut world, &prompt(24, 1));
    world.engine.release(wide);
    // Two of them come back for a context that uses them for long, then the others for a batch that runs.
    let short = flush(&mut world, &tokens[..8]);
    for context in [short, quick] {
        let generator = world.generator(context, 2);
        world.submit(Submission::Run(generator)).unwrap();
        assert!(world.plan());
    }
    assert_eq!(moves(&world).1, 2);
    // The slow pass finds the second page, and the third is on its way.
    world.finish();
    let n_used = world.engine.stats().n_pages_used;
    assert!(!world.plan());
    assert_eq!(world.engine.stats().n_pages_used, n_used - 1);
    world.wait(request).unwrap();
    let generator = world.generator(slow, 4);
    assert_eq!(world.run(generator).unwrap().tokens, expected(&tokens, 4));
}
