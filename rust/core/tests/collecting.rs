//! Steps that are collected: to the program they are one run, of which nothing is seen until its result is taken.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    unreachable_pub,
    reason = "a test fails by panicking, and is a crate of its own"
)]

mod support;

use pie_core::{
    ContextId, ErrorCode, FinishReason, GeneratorId, GeneratorOptions, Method, PageCounts,
    ProcessId, Submission, TokenBudget,
};
use proptest::prelude::*;
use support::derived_seed;
use support::world::{World, config, expected, options, prompt};

fn world() -> World {
    World::with_process(config(), 7)
}

/// A generator whose steps somebody has a part in.
fn generator(world: &mut World, context: ContextId, max_tokens: u32) -> GeneratorId {
    let made = GeneratorOptions {
        max_tokens: Some(max_tokens),
        ..options(Method::Multinomial {
            temperature: 1.0,
            draws: 1,
        })
    };
    let generator = world.engine.new_generator(context, made).unwrap();
    world.engine.set_late_masks(generator, true).unwrap();
    generator
}

/// A step whose mask restricts nothing; none after the end.
fn step(world: &mut World, generator: GeneratorId) -> Option<Vec<u32>> {
    world.engine.next_step(generator).unwrap()?;
    let request = world.submit(Submission::Step(generator)).unwrap();
    world.give_mask(request, 0, &[]).unwrap();
    let answer = world.wait(request).unwrap();
    Some(support::world::output(answer).tokens)
}

/// So many steps, or all there are.
fn steps(world: &mut World, generator: GeneratorId, n: usize) -> Vec<u32> {
    let mut tokens = Vec::new();
    for _ in 0..n {
        tokens.extend(step(world, generator).unwrap_or_default());
    }
    tokens
}

/// What a program can see.
#[derive(Debug, PartialEq)]
struct Seen {
    seq_len: u32,
    length: u32,
    buffer: Vec<u32>,
    n_cached: u32,
    pages: PageCounts,
    n_generated: u32,
    finish: Option<FinishReason>,
}

fn seen(world: &World, context: ContextId, generator: GeneratorId) -> Seen {
    let engine = &world.engine;
    Seen {
        seq_len: engine.seq_len(context).unwrap(),
        length: engine.length(context).unwrap(),
        buffer: engine.buffer(context).unwrap(),
        n_cached: engine.cached_tokens(context).unwrap(),
        pages: engine.page_counts(context).unwrap(),
        n_generated: engine.tokens_generated(generator).unwrap(),
        finish: engine.finish_reason(generator).unwrap(),
    }
}

fn all(world: &World, context: ContextId) -> Vec<u32> {
    world.engine.tail(context, 1000).unwrap()
}

// rows: RS-064..067
#[test]
fn a_collection_is_seen_once_it_is_taken() {
    let mut world = world();
    let context = world.context(&prompt(10, 1));
    let generator = generator(&mut world, context, 6);
    let before = seen(&world, context, generator);
    world.engine.begin_collection(generator).unwrap();
    let tokens = steps(&mut world, generator, 6);
    assert_eq!(tokens.len(), 6);
    assert_eq!(seen(&world, context, generator), before);
    assert_eq!(world.engine.seq_len_within(context), Ok(16));
    let finish = world.engine.finish_reason_within(generator).unwrap();
    assert_eq!(finish, Some(FinishReason::Length));
    world.engine.end_collection(generator);
    assert_eq!(seen(&world, context, generator), before);
    world.engine.keep_collection(generator).unwrap();
    let after = seen(&world, context, generator);
    assert_eq!((after.seq_len, after.n_generated), (16, 6));
    assert_eq!(after.finish, Some(FinishReason::Length));
    assert!(after.buffer.is_empty());
    assert_eq!(all(&world, context), [prompt(10, 1), tokens].concat());
    world.check();
}

// rows: RS-064..067
#[test]
fn the_seed_of_a_collection_counts_once_it_is_taken() {
    let drawn = |n_before| {
        let mut world = world();
        let context = world.context(&prompt(10, 1));
        let generator = generator(&mut world, context, 4);
        let seed = derived_seed(7, 0, &prompt(10, 1), n_before);
        world.engine.set_seed(generator, seed).unwrap();
        steps(&mut world, generator, 4)
    };
    let wanted: Vec<Vec<u32>> = (0..3).map(drawn).collect();
    let mut world = world();
    let context = world.context(&prompt(10, 1));
    let mine = generator(&mut world, context, 4);
    world.engine.begin_collection(mine).unwrap();
    assert_eq!(steps(&mut world, mine, 3), wanted[0][..3]);
    // Whoever draws meanwhile draws by the same seed, as beside a run.
    let beside = world.context(&prompt(10, 1));
    let other = generator(&mut world, beside, 4);
    assert_eq!(steps(&mut world, other, 4), wanted[0]);
    world.engine.drop_collection(mine);
    world.engine.begin_collection(mine).unwrap();
    assert_eq!(steps(&mut world, mine, 4), wanted[1]);
    world.engine.end_collection(mine);
    world.engine.keep_collection(mine).unwrap();
    let last = world.context(&prompt(10, 1));
    let last = generator(&mut world, last, 4);
    assert_eq!(steps(&mut world, last, 4), wanted[2]);
}

/// What is refused while a collection goes on, and when it is whole.
type Refused = fn(&mut World, ContextId, GeneratorId) -> Result<(), pie_core::Error>;

#[test]
fn a_context_is_busy_until_its_collection_is_taken() {
    let mut world = world();
    let context = world.context(&prompt(10, 1));
    let generator = generator(&mut world, context, 3);
    world.engine.begin_collection(generator).unwrap();
    assert_eq!(steps(&mut world, generator, 3).len(), 3);
    world.engine.end_collection(generator);
    let refused: [(&str, Refused); 9] = [
        ("append", |world, context, _| {
            world.engine.append(context, &[5])
        }),
        ("fork", |world, context, _| {
            world.engine.fork(context).map(drop)
        }),
        ("truncate", |world, context, _| {
            world.engine.truncate(context, 1)
        }),
        ("bid", |world, context, _| world.engine.set_bid(context, 5)),
        ("flush", |world, context, _| world.flush(context)),
        ("step", |world, _, generator| {
            world.engine.next_step(generator).map(drop)
        }),
        ("accept", |world, _, generator| {
            world.engine.accept(generator, &[5]).map(drop)
        }),
        ("cap", |world, _, generator| {
            world.engine.set_max_tokens(generator, 9)
        }),
        ("collect", |world, _, generator| {
            world.engine.begin_collection(generator)
        }),
    ];
    for (what, call) in refused {
        let error = call(&mut world, context, generator).expect_err(what);
        assert_eq!(error.code, ErrorCode::ContextBusy, "{what}: {error}");
        assert!(
            error.message.contains("fork the context for each of them"),
            "{what}: {error}"
        );
    }
    world.engine.drop_collection(generator);
    world.engine.append(context, &[5]).unwrap();
    assert_eq!(world.engine.finish_reason(generator), Ok(None));
    world.check();
}

#[test]
fn tokens_of_a_collection_that_is_given_up_are_not_charged() {
    for releases in [false, true] {
        let mut world = world();
        let budget = TokenBudget::new(20);
        world.engine.set_token_budget(ProcessId(1), budget.clone());
        let context = world.context(&prompt(10, 1));
        let generator = generator(&mut world, context, 8);
        assert_eq!(steps(&mut world, generator, 2).len(), 2);
        world.engine.begin_collection(generator).unwrap();
        assert_eq!(steps(&mut world, generator, 3).len(), 3);
        let more = [world.engine.tail(context, 1).unwrap(), vec![3, 4]].concat();
        world.engine.accept(generator, &more).unwrap();
        assert_eq!(budget.n_used(), 17);
        if releases {
            world.engine.release(context);
        }
        world.engine.drop_collection(generator);
        assert_eq!(budget.n_used(), 12);
        world.check();
    }
}

#[test]
fn what_stood_before_a_collection_is_final_and_the_step_that_was_undone_comes_again() {
    let mut world = world();
    let context = world.context(&prompt(10, 1));
    let generator = generator(&mut world, context, 8);
    assert!(step(&mut world, generator).is_some());
    world.engine.next_step(generator).unwrap();
    let cleared = world.engine.clear_sampler(generator);
    cleared.unwrap();
    let refused = world.engine.begin_collection(generator).unwrap_err();
    assert_eq!(refused.code, ErrorCode::StepPending);
    let request = world.submit(Submission::Step(generator)).unwrap();
    world.engine.cancel(request);
    world.engine.begin_collection(generator).unwrap();
    assert_eq!(steps(&mut world, generator, 2).len(), 2);
    world.engine.drop_collection(generator);
    let refused = world.engine.accept(generator, &[5]).unwrap_err();
    assert_eq!(refused.code, ErrorCode::StepPending);
    assert_eq!(world.engine.next_step(generator), Ok(Some(1)));
    assert_eq!(world.engine.is_cleared(generator), Ok(true));
}

#[test]
fn a_collection_is_given_up_while_a_batch_computes_its_step() {
    let mut world = world();
    let context = world.context(&prompt(10, 1));
    let generator = world.generator(context, 8);
    world.engine.set_late_masks(generator, true).unwrap();
    world.engine.begin_collection(generator).unwrap();
    assert_eq!(steps(&mut world, generator, 2).len(), 2);
    world.engine.next_step(generator).unwrap();
    let request = world.submit(Submission::Step(generator)).unwrap();
    world.plan();
    world.engine.cancel(request);
    world.engine.drop_collection(generator);
    world.check();
    world.pump();
    assert_eq!(all(&world, context), prompt(10, 1));
    assert_eq!(steps(&mut world, generator, 8), expected(&prompt(10, 1), 8));
}

proptest! {
    /// However much was generated, filled and accepted before, and whenever a collection is given up: what a program
    /// sees afterwards is what it saw before, and what it does then gives the same as in a world without the
    /// collection.
    #[test]
    fn a_collection_that_is_given_up_leaves_no_trace(
        n_prompt in 1u32..14,
        n_stepped in 0usize..9,
        accepted in prop::option::of(prop::collection::vec(0u32..50, 1..6)),
        appended in prop::collection::vec(0u32..50, 0..6),
        n_collected in 0usize..14,
        ends in any::<bool>(),
    ) {
        let run = |collects: bool| {
            let mut world = world();
            let context = world.context(&prompt(n_prompt, 1));
            let generator = generator(&mut world, context, 30);
            steps(&mut world, generator, n_stepped);
            if let Some(accepted) = accepted.as_ref().filter(|_| n_stepped > 0) {
                world.engine.accept(generator, accepted).unwrap();
            }
            world.engine.append(context, &appended).unwrap();
            if collects {
                world.engine.begin_collection(generator).unwrap();
                let before = seen(&world, context, generator);
                steps(&mut world, generator, n_collected);
                assert_eq!(seen(&world, context, generator), before);
                if ends {
                    world.engine.end_collection(generator);
                }
                world.engine.drop_collection(generator);
                world.check();
                assert_eq!(seen(&world, context, generator), before);
            }
            let tokens = all(&world, context);
            let fork = world.engine.fork(context).unwrap();
            let rest = steps(&mut world, generator, 10);
            world.check();
            (tokens, rest, all(&world, context), all(&world, fork))
        };
        prop_assert_eq!(run(true), run(false));
    }
}
