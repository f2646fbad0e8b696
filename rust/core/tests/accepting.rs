//! A program says what follows a step, in place of what the step accepted.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    unreachable_pub,
    reason = "a test fails by panicking, and is a crate of its own"
)]

mod support;

use pie_core::{ContextId, GeneratorId, ProcessId};
use pie_core::{ErrorCode, FinishReason, GeneratorOptions, Method, Submission, TokenBudget};
use support::world::{World, config, expected, options, prompt};

fn world() -> World {
    World::with_process(config(), 7)
}

/// What a program does with a context or its generator.
type GoOn = fn(&mut World, ContextId, GeneratorId);

/// A context, and a generator of it that has made a step.
fn stepped(world: &mut World, max_tokens: Option<u32>) -> (ContextId, GeneratorId, Vec<u32>) {
    let context = world.context(&prompt(10, 1));
    let made = GeneratorOptions {
        max_tokens,
        stop: vec![9],
        ..options(Method::Argmax)
    };
    let generator = world.engine.new_generator(context, made).unwrap();
    let tokens = world.step(generator).unwrap().unwrap().tokens;
    assert_eq!(tokens, expected(&prompt(10, 1), 1));
    (context, generator, tokens)
}

fn all(world: &World, context: ContextId) -> Vec<u32> {
    world.engine.tail(context, 1000).unwrap()
}

// rows: RS-080 RS-086
#[test]
fn what_is_accepted_stands_in_place_of_what_was_drawn_and_generation_goes_on_from_it() {
    let mut world = world();
    let (context, generator, _) = stepped(&mut world, None);
    let said = [4, 5, 6];
    assert_eq!(world.engine.accept(generator, &said).unwrap(), said);
    let text = [&prompt(10, 1)[..], &said].concat();
    assert_eq!(all(&world, context), text);
    assert_eq!(world.engine.seq_len(context).unwrap(), 13);
    assert!(world.engine.buffer(context).unwrap().is_empty());
    assert_eq!(world.engine.tokens_generated(generator).unwrap(), 3);
    // The next step computes all three, and draws behind the last.
    let next = world.step(generator).unwrap().unwrap().tokens;
    assert_eq!(next, expected(&text, 1));
    assert_eq!(world.engine.tokens_generated(generator).unwrap(), 4);
}

// rows: RS-086
#[test]
fn it_may_be_said_again_until_the_program_goes_on() {
    let goes_on: [(&str, GoOn); 8] = [
        ("a step is opened", |world, _, generator| {
            world.engine.next_step(generator).unwrap();
        }),
        ("a run", |world, _, generator| {
            world.engine.set_max_tokens(generator, 5).unwrap();
            world.run(generator).unwrap();
        }),
        ("an append", |world, context, _| {
            world.engine.append(context, &[1]).unwrap();
        }),
        ("a flush", |world, context, _| world.flush(context).unwrap()),
        ("a fork", |world, context, _| {
            world.engine.fork(context).unwrap();
        }),
        ("a save", |world, context, _| {
            world
                .engine
                .snapshot(context, std::sync::Arc::new(()))
                .unwrap();
        }),
        ("a truncation", |world, context, _| {
            world.engine.truncate(context, 1).unwrap()
        }),
        ("a newer generator", |world, context, _| {
            world
                .engine
                .new_generator(context, options(Method::Argmax))
                .unwrap();
        }),
    ];
    for (what, go_on) in goes_on {
        let mut world = world();
        let (context, generator, drawn) = stepped(&mut world, None);
        assert_eq!(world.engine.accept(generator, &[4, 5]).unwrap(), [4, 5]);
        assert_eq!(world.engine.accept(generator, &[]).unwrap(), [0; 0]);
        assert_eq!(all(&world, context), prompt(10, 1));
        assert_eq!(world.engine.accept(generator, &drawn).unwrap(), drawn);
        assert_eq!(world.engine.tokens_generated(generator).unwrap(), 1);
        go_on(&mut world, context, generator);
        let before = all(&world, context);
        let error = world.engine.accept(generator, &[4]).unwrap_err();
        let codes = [ErrorCode::StepPending, ErrorCode::GeneratorRetired];
        assert!(codes.contains(&error.code), "{what}: {error}");
        assert_eq!(all(&world, context), before, "{what}");
    }
}

// rows: RS-068..069 RS-086
#[test]
fn what_is_accepted_is_cut_behind_a_stop_token_and_at_the_cap_and_the_end_is_judged_anew() {
    let mut world = world();
    let (_, generator, _) = stepped(&mut world, Some(3));
    let accept = |world: &mut World, tokens: &[u32]| {
        let kept = world.engine.accept(generator, tokens).unwrap();
        (kept, world.engine.finish_reason(generator).unwrap())
    };
    assert_eq!(
        accept(&mut world, &[4, 9, 5]),
        (vec![4, 9], Some(FinishReason::Stop))
    );
    assert_eq!(accept(&mut world, &[4, 5]), (vec![4, 5], None));
    assert_eq!(
        accept(&mut world, &[1, 2, 3, 4]),
        (vec![1, 2, 3], Some(FinishReason::Length))
    );
    // The stop token comes before the cap.
    assert_eq!(
        accept(&mut world, &[1, 2, 9]),
        (vec![1, 2, 9], Some(FinishReason::Stop))
    );
    assert_eq!(accept(&mut world, &[]), (vec![], None));
    assert_eq!(
        world.step(generator).unwrap().unwrap().tokens,
        expected(&prompt(10, 1), 1)
    );
}

// rows: RS-086
#[test]
fn a_context_takes_no_more_than_the_model_knows() {
    let mut small = config();
    small.driver.max_positions = 13;
    let mut world = World::with_process(small, 7);
    let (context, generator, _) = stepped(&mut world, None);
    assert_eq!(world.engine.accept(generator, &[1; 100]).unwrap(), [1; 3]);
    assert_eq!(world.engine.length(context).unwrap(), 13);
    assert_eq!(
        world.engine.finish_reason(generator).unwrap(),
        Some(FinishReason::Length)
    );
    assert_eq!(world.engine.next_step(generator).unwrap(), None);
}

// rows: RS-073 RS-086
#[test]
fn what_stays_of_a_step_with_drafts_is_not_computed_again() {
    let mut config = config();
    config.run_ahead = false;
    let mut world = World::with_process(config, 7);
    let context = world.context(&prompt(8, 1));
    let generator = world.generator(context, 9);
    let tokens = expected(&prompt(8, 1), 4);
    world.engine.next_step(generator).unwrap();
    // None of them fills a page, which would be found again.
    let positions = [8, 9, 10];
    world
        .engine
        .draft(generator, &tokens[..3], &positions)
        .unwrap();
    let request = world.submit(Submission::Step(generator)).unwrap();
    world.wait(request).unwrap();
    assert_eq!(all(&world, context), [&prompt(8, 1)[..], &tokens].concat());
    let other = [tokens[0], tokens[1], (tokens[2] + 1) % 9];
    assert_eq!(world.engine.accept(generator, &other).unwrap(), other);
    let n_tokens = world.engine.stats().n_tokens;
    let next = world.step(generator).unwrap().unwrap().tokens;
    let text = [&prompt(8, 1)[..], &other].concat();
    assert_eq!(next, expected(&text, 1));
    assert_eq!(world.engine.stats().n_tokens - n_tokens, 1);
}

// rows: RS-086
#[test]
fn what_cannot_be_accepted_changes_nothing() {
    let mut world = world();
    let budget = TokenBudget::new(13);
    world.engine.set_token_budget(ProcessId(1), budget.clone());
    let (context, generator, drawn) = stepped(&mut world, None);
    let code = |world: &mut World, tokens: &[u32]| {
        let error = world.engine.accept(generator, tokens).unwrap_err();
        assert!(all(world, context).ends_with(&drawn), "{error}");
        assert_eq!(world.engine.tokens_generated(generator).unwrap(), 1);
        error.code
    };
    assert_eq!(code(&mut world, &[1, 50]), ErrorCode::InvalidToken);
    assert_eq!(code(&mut world, &[1; 4]), ErrorCode::TokenBudget);
    assert_eq!(budget.left(), 2);
    assert_eq!(world.engine.accept(generator, &[1; 3]).unwrap(), [1; 3]);
    assert_eq!(budget.left(), 0);
    // What is taken back is not given back, and what stood there costs nothing again.
    assert_eq!(world.engine.accept(generator, &[1]).unwrap(), [1]);
    assert_eq!(world.engine.accept(generator, &[2; 3]).unwrap(), [2; 3]);
    assert_eq!(budget.left(), 0);
}

// rows: RS-086
#[test]
fn a_program_that_takes_back_whatever_is_drawn_uses_up_its_token_budget() {
    for is_cleared in [false, true] {
        let mut world = world();
        let budget = TokenBudget::new(14);
        world.engine.set_token_budget(ProcessId(1), budget.clone());
        let context = world.context(&prompt(10, 1));
        let generator = world.generator(context, 100);
        let step = |world: &mut World| -> Result<(), ErrorCode> {
            world.engine.next_step(generator).map_err(|it| it.code)?;
            if is_cleared {
                world.engine.clear_sampler(generator).unwrap();
            }
            let request = world.submit(Submission::Step(generator));
            let request = request.map_err(|it| it.code)?;
            world.wait(request).map_err(|it| it.code)?;
            let accepted = world.engine.accept(generator, &[]);
            accepted.map(drop).map_err(|it| it.code)
        };
        for left in (0..4).rev() {
            step(&mut world).unwrap();
            assert_eq!(budget.left(), left);
        }
        let error = step(&mut world).unwrap_err();
        assert_eq!(error, ErrorCode::TokenBudget, "{is_cleared}");
        assert_eq!(all(&world, context), prompt(10, 1));
    }
}

// rows: RS-086
#[test]
fn nothing_is_accepted_before_a_step_or_while_one_is_under_way() {
    let mut world = world();
    let context = world.context(&prompt(10, 1));
    let generator = world.generator(context, 5);
    let error = world.engine.accept(generator, &[1]).unwrap_err();
    assert_eq!(error.code, ErrorCode::StepPending);
    world.engine.next_step(generator).unwrap();
    let request = world.submit(Submission::Step(generator)).unwrap();
    let error = world.engine.accept(generator, &[1]).unwrap_err();
    assert_eq!(error.code, ErrorCode::ContextBusy);
    world.wait(request).unwrap();
    world.engine.accept(generator, &[1]).unwrap();
}

// rows: RS-084 RS-086
#[test]
fn a_step_whose_sampler_is_cleared_draws_nothing_and_the_program_says_what_follows() {
    let mut world = world();
    let context = world.context(&prompt(10, 1));
    let generator = world.generator(context, 5);
    let error = world.engine.clear_sampler(generator).unwrap_err();
    assert_eq!(error.code, ErrorCode::StepPending);
    world.engine.next_step(generator).unwrap();
    world.engine.clear_sampler(generator).unwrap();
    let request = world.submit(Submission::Step(generator)).unwrap();
    let output = support::world::output(world.wait(request).unwrap());
    assert_eq!((output.tokens, output.finish), (vec![], None));
    assert_eq!(world.engine.seq_len(context).unwrap(), 10);
    for goes_on in [
        world.engine.next_step(generator).map(drop),
        world.submit(Submission::Run(generator)).map(drop),
    ] {
        assert_eq!(goes_on.unwrap_err().code, ErrorCode::StepPending);
    }
    assert_eq!(world.engine.accept(generator, &[8]).unwrap(), [8]);
    let text = [&prompt(10, 1)[..], &[8]].concat();
    assert_eq!(world.run(generator).unwrap().tokens, expected(&text, 4));
}

// rows: RS-084 RS-086
#[test]
fn a_step_that_draws_nothing_has_nothing_to_compute_where_all_is_computed() {
    let mut world = world();
    let context = world.context(&prompt(10, 1));
    world.flush(context).unwrap();
    let generator = world.generator(context, 5);
    world.engine.next_step(generator).unwrap();
    world.engine.clear_sampler(generator).unwrap();
    let n_batches = world.engine.stats().n_batches;
    let request = world.submit(Submission::Step(generator)).unwrap();
    world.wait(request).unwrap();
    assert_eq!(world.engine.stats().n_batches, n_batches);
    assert_eq!(world.engine.accept(generator, &[]).unwrap(), [0; 0]);
    assert_eq!(
        world.run(generator).unwrap().tokens,
        expected(&prompt(10, 1), 5)
    );
}

// rows: RS-086
#[test]
fn what_ran_ahead_is_used_where_a_step_is_accepted_as_it_is_and_forgotten_where_it_is_not() {
    let mut world = world();
    let (_, generator, drawn) = stepped(&mut world, None);
    world.pump();
    world.engine.accept(generator, &drawn).unwrap();
    let second = world.step(generator).unwrap().unwrap().tokens;
    assert_eq!(second, expected(&prompt(10, 1), 2)[1..]);
    assert_eq!(
        (
            world.engine.stats().n_ahead_used,
            world.engine.stats().n_ahead_dropped
        ),
        (1, 0)
    );
    world.pump();
    world.engine.accept(generator, &[7]).unwrap();
    assert_eq!(world.engine.stats().n_ahead_dropped, 1);
    let text = [&prompt(10, 1)[..], &drawn, &[7]].concat();
    assert_eq!(
        world.step(generator).unwrap().unwrap().tokens,
        expected(&text, 1)
    );
}

// rows: RS-039..040 RS-049 RS-086
#[test]
fn accepted_tokens_are_forked_saved_and_dropped_as_the_pending_one() {
    let mut world = world();
    let (context, generator, _) = stepped(&mut world, None);
    world.engine.accept(generator, &[4, 5, 6]).unwrap();
    let fork = world.engine.fork(context).unwrap();
    let name = world
        .engine
        .snapshot(context, std::sync::Arc::new(()))
        .unwrap();
    let (opened, _) = world.engine.open_snapshot(ProcessId(1), &name).unwrap();
    world.engine.truncate(context, 2).unwrap();
    let text = [&prompt(10, 1)[..], &[4, 5, 6]].concat();
    for (context, text) in [(context, &text[..11]), (fork, &text), (opened, &text)] {
        assert_eq!(all(&world, context), text);
        let generator = world.generator(context, 3);
        assert_eq!(world.run(generator).unwrap().tokens, expected(text, 3));
    }
}

// rows: RS-086
#[test]
fn how_many_would_be_kept_is_known_before_the_answer_of_a_step_is_taken() {
    let mut world = world();
    let budget = TokenBudget::new(100);
    world.engine.set_token_budget(ProcessId(1), budget.clone());
    let context = world.context(&prompt(10, 1));
    let made = GeneratorOptions {
        max_tokens: Some(4),
        stop: vec![9],
        ..options(Method::Argmax)
    };
    let generator = world.engine.new_generator(context, made).unwrap();
    world.engine.next_step(generator).unwrap();
    let request = world.submit(Submission::Step(generator)).unwrap();
    assert_eq!(world.engine.drawn(request), None);
    assert_eq!(world.engine.n_to_follow(request, &[4]), 0);
    world.pump();
    let drawn = expected(&prompt(10, 1), 1);
    assert_eq!(world.engine.drawn(request), Some((&drawn[..], None)));
    let tries: [(&[u32], usize); 5] = [
        (&[], 0),
        (&[4, 5], 2),
        (&[4, 9, 5], 2),
        (&[1, 2, 3, 4], 3),
        (&[1, 50], 0),
    ];
    for (tokens, n_kept) in tries {
        assert_eq!(world.engine.n_to_follow(request, tokens), n_kept);
    }
    // Of the budget, the step and two more are left.
    budget.spend(budget.left() as usize - 3).unwrap();
    assert_eq!(world.engine.n_to_follow(request, &[1, 2, 3]), 0);
    assert_eq!(world.engine.n_to_follow(request, &[1, 2]), 2);
    world.engine.take(request).unwrap().unwrap();
    assert_eq!(world.engine.drawn(request), None);
    let all = [&drawn[..], &[1, 2]].concat();
    assert_eq!(world.engine.accept(generator, &all).unwrap(), all);
}

#[test]
fn a_stop_text_ends_a_generation_and_what_is_cut_behind_it_is_not_charged() {
    let mut world = world();
    let budget = TokenBudget::new(100);
    world.engine.set_token_budget(ProcessId(1), budget.clone());
    let (context, generator, drawn) = stepped(&mut world, Some(8));
    // A step of four tokens, of which the second completes a stop text.
    let four = [&drawn[..], &[4, 5, 6]].concat();
    world.engine.accept(generator, &four).unwrap();
    let n_used = budget.n_used();
    world.engine.accept(generator, &four[..2]).unwrap();
    assert_eq!(budget.n_used(), n_used);
    for _ in 0..2 {
        world.engine.end_by_stop(generator, 2).unwrap();
        assert_eq!(budget.n_used(), n_used - 2);
    }
    let reason = world.engine.finish_reason(generator).unwrap();
    assert_eq!(reason, Some(FinishReason::Stop));
    let text = [&prompt(10, 1)[..], &four[..2]].concat();
    assert_eq!(all(&world, context), text);
    // What the program says in its place goes on.
    world.engine.accept(generator, &[4]).unwrap();
    assert_eq!(world.engine.finish_reason(generator).unwrap(), None);
    world.check();
}
