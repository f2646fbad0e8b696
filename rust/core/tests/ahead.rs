//! What is computed before its program asks for it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod support;

use pie_core::{ErrorCode, FinishReason, ProcessId, Submission, TokenBudget};
use support::world::{World, config, expected, output, prompt};

#[test]
fn the_next_step_is_computed_before_its_program_asks() {
    let mut world = World::with_process(config(), 1);
    let context = world.context(&prompt(10, 0));
    let generator = world.generator(context, 6);
    let mut tokens = Vec::new();
    for step in 0..6 {
        world.engine.next_step(generator).unwrap();
        let request = world.submit(Submission::Step(generator)).unwrap();
        // All but the first were drawn while the program was away.
        assert_eq!(world.ready.contains_key(&request), step > 0, "{step}");
        tokens.extend(output(world.wait(request).unwrap()).tokens);
        assert_eq!(world.engine.seq_len(context).unwrap(), 11 + step);
        world.pump();
    }
    assert_eq!(tokens, expected(&prompt(10, 0), 6));
    let stats = world.engine.stats();
    assert_eq!((stats.n_ahead_used, stats.n_ahead_dropped), (5, 0));
    assert_eq!(stats.n_tokens, 10 + 5);
}

#[test]
fn a_step_that_was_wanted_makes_up_for_those_that_were_not() {
    let mut world = World::with_process(config(), 1);
    let context = world.context(&prompt(10, 0));
    let generator = world.generator(context, 100);
    for token in 0..4 {
        for _ in 0..2 {
            world.step(generator).unwrap().unwrap();
            world.pump();
        }
        world.engine.append(context, &[token]).unwrap();
    }
    let stats = world.engine.stats();
    assert_eq!((stats.n_ahead_used, stats.n_ahead_dropped), (4, 4));
}

#[test]
fn a_step_may_draw_the_last_token_of_a_budget() {
    let mut world = World::with_process(config(), 1);
    let budget = TokenBudget::new(11);
    world.engine.set_token_budget(ProcessId(1), budget.clone());
    let context = world.context(&prompt(10, 0));
    let generator = world.generator(context, 6);
    let output = world.step(generator).unwrap().unwrap();
    assert_eq!(output.tokens, expected(&prompt(10, 0), 1));
    assert_eq!((output.finish, budget.left()), (None, 0));
    let error = world.step(generator).unwrap_err();
    assert_eq!(error.code, ErrorCode::TokenBudget);
}

#[test]
fn what_ran_ahead_of_a_step_that_is_not_paid_for_does_not_run() {
    let mut world = World::with_process(config(), 1);
    let budget = TokenBudget::new(9);
    world.engine.set_token_budget(ProcessId(1), budget.clone());
    let steps = [0, 1].map(|salt| {
        let context = world.context(&prompt(4, salt));
        let generator = world.generator(context, 6);
        world.engine.next_step(generator).unwrap();
        let request = world.submit(Submission::Step(generator)).unwrap();
        (context, request)
    });
    assert!(world.plan());
    world.finish();
    let [(_, first), (context, second)] = steps;
    let answer = output(world.engine.take(first).unwrap().unwrap());
    assert_eq!((answer.tokens.len(), budget.left()), (1, 0));
    let error = world.engine.take(second).unwrap().unwrap_err();
    assert_eq!(error.code, ErrorCode::TokenBudget);
    // Only what ran ahead of the first is computed.
    let before = world.engine.stats();
    world.pump();
    let stats = world.engine.stats();
    assert_eq!(stats.n_tokens - before.n_tokens, 1);
    assert_eq!(world.engine.length(context).unwrap(), 4);
}

#[test]
fn a_bid_leaves_what_ran_ahead() {
    // Before the batch that draws the next token, while it runs, and after it.
    for n_done in 0..3 {
        let mut world = World::with_process(config(), 1);
        let context = world.context(&prompt(10, 0));
        let generator = world.generator(context, 6);
        let mut tokens = Vec::new();
        for step in 0..6 {
            world.engine.next_step(generator).unwrap();
            let request = world.submit(Submission::Step(generator)).unwrap();
            let busy = world.engine.set_bid(context, 100).unwrap_err();
            assert_eq!(busy.code, ErrorCode::ContextBusy);
            let answer = loop {
                if let Some(answer) = world.engine.take(request) {
                    break answer.unwrap();
                }
                if world.running.is_empty() {
                    assert!(world.plan());
                }
                world.finish();
            };
            tokens.extend(output(answer).tokens);
            if step < 5 && n_done > 0 {
                assert!(world.plan());
            }
            if step < 5 && n_done > 1 {
                world.finish();
            }
            world.engine.set_bid(context, step).unwrap();
            world.check();
        }
        assert_eq!(tokens, expected(&prompt(10, 0), 6));
        let stats = world.engine.stats();
        assert_eq!((stats.n_ahead_used, stats.n_ahead_dropped), (5, 0));
    }
}

#[test]
fn what_ran_ahead_in_vain_is_never_seen() {
    let mut world = World::with_process(config(), 1);
    let context = world.context(&prompt(10, 0));
    let generator = world.generator(context, 100);
    let mut tokens = prompt(10, 0);
    for step in 0..6 {
        let output = world.step(generator).unwrap().unwrap();
        assert_eq!(output.tokens, expected(&tokens, 1));
        tokens.extend(output.tokens);
        world.pump();
        // What is appended goes in between.
        world.engine.append(context, &[step]).unwrap();
        tokens.push(step);
        assert_eq!(world.engine.buffer(context).unwrap(), [step]);
    }
    // A program that never wants it is not served it for long.
    let stats = world.engine.stats();
    assert_eq!((stats.n_ahead_used, stats.n_ahead_dropped), (0, 2));
}

#[test]
fn an_end_that_the_program_saw_stays() {
    let mut world = World::with_process(config(), 1);
    let context = world.context(&prompt(3, 0));
    // One that may draw nothing, and one that has no room: neither runs, and both are asked or retired at their end.
    let capped = world.generator(context, 0);
    world.engine.append(context, &prompt(4093, 0)).unwrap();
    let full = world.generator(context, 9);
    assert_eq!(world.engine.next_step(full).unwrap(), None);
    world.generator(context, 1);
    for ended in [capped, full] {
        assert_eq!(world.engine.next_step(ended).unwrap(), None);
        assert_eq!(
            world.engine.finish_reason(ended).unwrap(),
            Some(FinishReason::Length)
        );
    }
}

/// As where a grammar forces text: some steps are followed by tokens that nobody drew.
#[test]
fn what_ran_ahead_in_vain_does_not_keep_later_steps_from_running_ahead() {
    let mut world = World::with_process(config(), 1);
    let context = world.context(&prompt(10, 0));
    let generator = world.generator(context, 200);
    let mut n_used = 0;
    for _ in 0..3 {
        for _ in 0..3 {
            let drawn = world.step(generator).unwrap().unwrap().tokens;
            world.pump();
            let said = [&drawn[..], &[7]].concat();
            world.engine.accept(generator, &said).unwrap();
        }
        for _ in 0..30 {
            world.step(generator).unwrap().unwrap();
            world.pump();
        }
        let stats = world.engine.stats();
        assert!(stats.n_ahead_used >= n_used + 15, "{stats:?}");
        n_used = stats.n_ahead_used;
    }
}

#[test]
fn what_always_runs_ahead_in_vain_runs_ahead_less_and_less() {
    let mut world = World::with_process(config(), 1);
    let context = world.context(&prompt(10, 0));
    let generator = world.generator(context, 2000);
    for _ in 0..1000 {
        world.step(generator).unwrap().unwrap();
        world.pump();
        world.engine.accept(generator, &[7]).unwrap();
    }
    let n_dropped = world.engine.stats().n_ahead_dropped;
    assert!((4..12).contains(&n_dropped), "{n_dropped}");
}
