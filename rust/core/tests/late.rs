//! Token masks that come after the forward of their row was launched.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod support;

use std::sync::Arc;
use std::time::Duration;

use pie_core::masks::TokenMask;
use pie_core::sampling::{Key, Params};
use pie_core::{
    Answer, Capabilities, ContextId, DriverAnswer, DriverFailure, EngineConfig, Error, ErrorCode,
    FinishReason, Forward, GeneratorId, Method, Probe, ProcessId, Reading, RequestId, RowRequest,
    Sampler, Submission, UserId,
};
use support::sampling::drawn;
use support::world::{MODEL, World, config, output, prompt};

/// Allows the even tokens, and the odd ones.
const EVEN: fn(u32) -> bool = |token| token.is_multiple_of(2);
const ODD: fn(u32) -> bool = |token| !token.is_multiple_of(2);

/// A mask as run lengths over the vocabulary, written naively.
fn runs(allows: fn(u32) -> bool) -> Vec<u32> {
    let mut runs = vec![0];
    let mut allowed = false;
    for token in 0..50 {
        if allows(token) != allowed {
            allowed = !allowed;
            runs.push(0);
        }
        *runs.last_mut().unwrap() += 1;
    }
    runs
}

/// The tokens that a greedy generation draws behind these, each by its mask.
fn expected(tokens: &[u32], masks: &[fn(u32) -> bool]) -> Vec<u32> {
    let mut all = tokens.to_vec();
    for allows in masks {
        let logits = support::row(MODEL, 50, &all);
        let key = Key {
            seed: 0,
            position: 0,
            slot: 0,
            draw: 0,
        };
        let mask: Vec<bool> = (0..50).map(allows).collect();
        all.push(drawn(&logits, &Params::ARGMAX, &mask, key).unwrap());
    }
    all.split_off(tokens.len())
}

fn world() -> World {
    World::with_process(config(), 1)
}

/// A step of a generator whose masks come late, entered.
fn step(world: &mut World, generator: GeneratorId) -> RequestId {
    world.engine.next_step(generator).unwrap().unwrap();
    world.submit(Submission::Step(generator)).unwrap()
}

fn late(world: &mut World, context: ContextId, max_tokens: u32) -> GeneratorId {
    let generator = world.generator(context, max_tokens);
    world.engine.set_late_masks(generator, true).unwrap();
    generator
}

fn tokens(world: &mut World, request: RequestId) -> Vec<u32> {
    let answer = world.engine.take(request).expect("the request is ready");
    output(answer.unwrap()).tokens
}

fn failed(world: &mut World, request: RequestId) -> Error {
    let answer = world.engine.take(request).expect("the request is ready");
    answer.unwrap_err()
}

/// The second step of a generation behind `own`, whose first took an odd token.
fn steps_on(world: &mut World, generator: GeneratorId, own: &[u32]) {
    let request = step(world, generator);
    world.pump();
    world.give_mask(request, 0, &runs(EVEN)).unwrap();
    world.pump();
    assert_eq!(tokens(world, request), expected(own, &[ODD, EVEN])[1..]);
}

// rows: RS-071
#[test]
fn a_row_that_waits_for_its_mask_does_not_hold_its_batch() {
    let mut world = world();
    let (own, other) = (prompt(6, 1), prompt(7, 2));
    let context = world.context(&own);
    let generator = late(&mut world, context, 3);
    let waiting = step(&mut world, generator);
    let neighbour = world.context(&other);
    let neighbour = world.generator(neighbour, 4);
    let run = world.submit(Submission::Run(neighbour)).unwrap();
    world.pump();
    assert_eq!(tokens(&mut world, run), support::world::expected(&other, 4));
    assert!(world.engine.take(waiting).is_none());
    assert_eq!(world.engine.stats().n_late_rows, 1);
    world.give_mask(waiting, 0, &runs(ODD)).unwrap();
    assert_eq!(tokens(&mut world, waiting), expected(&own, &[ODD]));
}

// rows: RS-071
#[test]
fn the_token_is_the_same_whenever_the_mask_comes() {
    let own = prompt(9, 3);
    let masks = [ODD, EVEN, EVEN, ODD, ODD];
    for run_ahead in [true, false] {
        for follows in [true, false] {
            for when in 0..4 {
                let driver = Capabilities {
                    follows,
                    ..config().driver
                };
                let mut world = World::with_process(
                    EngineConfig {
                        run_ahead,
                        driver,
                        ..config()
                    },
                    1,
                );
                let context = world.context(&own);
                let generator = late(&mut world, context, 5);
                let mut drawn = Vec::new();
                for allows in masks {
                    let request = step(&mut world, generator);
                    if when == 0 {
                        // Before its batch is planned, unless it ran ahead.
                        world.give_mask(request, 0, &runs(allows)).unwrap();
                    }
                    let plans = world.plan();
                    if when == 1 {
                        // Under way.
                        world.give_mask(request, 0, &runs(allows)).unwrap();
                    }
                    if plans && when == 2 {
                        // After its batch was answered.
                        world.finish();
                    }
                    if when > 1 {
                        world.pump();
                        world.give_mask(request, 0, &runs(allows)).unwrap();
                    }
                    world.pump();
                    drawn.extend(tokens(&mut world, request));
                }
                assert_eq!(
                    drawn,
                    expected(&own, &masks),
                    "{run_ahead} {follows} {when}"
                );
                let stats = world.engine.stats();
                assert_eq!(stats.n_ahead_used > 0, run_ahead);
                // What the mask comes late for was computed, and not drawn: it is followed by nothing.
                assert_eq!((stats.n_followers, stats.n_late_rows), (0, 0));
                // Each token was computed once, and the last not at all.
                assert_eq!(stats.n_tokens, 9 + 4);
            }
        }
    }
}

// rows: RS-071 RS-084
#[test]
fn a_step_that_was_refused_or_draws_nothing_takes_its_mask_without_a_word() {
    let mut world = world();
    let context = world.context(&prompt(6, 1));
    let generator = late(&mut world, context, 3);
    let mask = |runs: &[u32]| TokenMask::new(runs, 50);
    world.engine.next_step(generator).unwrap().unwrap();
    world.engine.clear_sampler(generator).unwrap();
    let request = world.submit(Submission::Step(generator)).unwrap();
    for _ in 0..2 {
        // Before it is answered, and after.
        world
            .engine
            .give_step_mask(request, mask(&runs(ODD)))
            .unwrap();
        world.pump();
    }
    assert_eq!(tokens(&mut world, request), [0; 0]);
    world.engine.accept(generator, &[]).unwrap();
    world.engine.next_step(generator).unwrap().unwrap();
    world.engine.probe(generator, 1, Probe::Entropy).unwrap();
    let refused = RequestId(77);
    let submission = Submission::Step(generator);
    let error = world.engine.submit(refused, submission, 0).unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidArgument);
    world
        .engine
        .give_step_mask(refused, mask(&runs(ODD)))
        .unwrap();
}

// rows: RS-071
#[test]
fn a_mask_that_comes_while_its_batch_is_drawn_from_is_not_lost() {
    let mut world = world();
    let own = prompt(6, 1);
    let context = world.context(&own);
    let generator = late(&mut world, context, 3);
    let request = step(&mut world, generator);
    assert!(world.plan());
    let (batch, logits) = world.compute(0);
    // Nobody holds the engine while this goes on.
    let masks = world.engine.late_masks(&batch.late);
    let answer = DriverAnswer::Logits(&logits);
    let sampled = batch.jobs.conclude(answer, &masks, &[]);
    world.give_mask(request, 0, &runs(ODD)).unwrap();
    assert!(world.engine.take(request).is_none());
    world.answer(batch.id, Ok(sampled));
    assert_eq!(tokens(&mut world, request), expected(&own, &[ODD]));
}

// rows: RS-071
#[test]
fn what_runs_ahead_gets_its_mask_when_it_is_asked_for() {
    let mut world = world();
    let own = prompt(5, 4);
    let context = world.context(&own);
    let generator = late(&mut world, context, 3);
    let first = step(&mut world, generator);
    world.pump();
    world.give_mask(first, 0, &runs(ODD)).unwrap();
    // Its row is computed before the program is back, and waits.
    world.pump();
    assert_eq!(tokens(&mut world, first), expected(&own, &[ODD]));
    let n_batches = world.engine.stats().n_batches;
    let second = step(&mut world, generator);
    assert!(!world.plan() && world.engine.take(second).is_none());
    world.give_mask(second, 0, &runs(EVEN)).unwrap();
    assert_eq!(
        tokens(&mut world, second),
        expected(&own, &[ODD, EVEN])[1..]
    );
    assert_eq!(world.engine.stats().n_batches, n_batches);
    // Asked for without a mask, what ran ahead for one is of no use.
    world.pump();
    world.engine.set_late_masks(generator, false).unwrap();
    let third = step(&mut world, generator);
    world.pump();
    let any: fn(u32) -> bool = |_| true;
    assert_eq!(
        tokens(&mut world, third),
        expected(&own, &[ODD, EVEN, any])[2..]
    );
}

// rows: RS-071
#[test]
fn a_pass_waits_for_its_masks_for_so_long() {
    let mut world = World::with_process(
        EngineConfig {
            late_mask: Duration::from_nanos(1000),
            ..config()
        },
        1,
    );
    let own = prompt(6, 1);
    let context = world.context(&own);
    let generator = late(&mut world, context, 3);
    let request = step(&mut world, generator);
    // Time counts from when its row is there.
    world.hang(5000);
    assert!(world.plan());
    assert_eq!(
        world.engine.overdue_ns(),
        Some(5000 + config().driver_timeout.as_nanos() as u64)
    );
    world.now_ns += 500;
    world.finish();
    assert_eq!(world.engine.overdue_ns(), Some(6500));
    world.hang(999);
    assert!(world.engine.take(request).is_none());
    world.hang(1);
    assert_eq!(world.engine.overdue_ns(), None);
    // Its mask came too late, and changes nothing.
    world.give_mask(request, 0, &runs(ODD)).unwrap();
    let error = failed(&mut world, request);
    assert_eq!(error.code, ErrorCode::LateMask);
    assert!(error.message.contains("late_mask_s"), "{}", error.message);
    assert_eq!(error.details, "{\"limit_ms\":0}");
    // The same step again.
    let request = step(&mut world, generator);
    world.pump();
    world.give_mask(request, 0, &runs(EVEN)).unwrap();
    world.pump();
    assert_eq!(tokens(&mut world, request), expected(&own, &[EVEN]));
    // What runs ahead of the program ends without a word, and its room is given back.
    assert_eq!(world.engine.stats().n_late_rows, 1);
    world.hang(1000);
    let stats = world.engine.stats();
    assert_eq!((stats.n_late_rows, stats.n_late_masks), (0, 2));
    let request = step(&mut world, generator);
    world.pump();
    world.give_mask(request, 0, &runs(ODD)).unwrap();
    assert_eq!(
        tokens(&mut world, request),
        expected(&own, &[EVEN, ODD])[1..]
    );
}

/// Rows behind the tokens 0 and 1, the first of which waits for its mask.
fn rows() -> Forward {
    let row = |index, late_mask, probes| RowRequest {
        index,
        sampler: Some(Sampler {
            method: Method::Argmax,
            seed: None,
        }),
        probes,
        late_mask,
    };
    Forward {
        rows: vec![
            row(1, false, vec![]),
            row(0, true, vec![Probe::Logits]),
            row(1, true, vec![]),
        ],
        token_mask: runs(EVEN),
        ..Forward::default()
    }
}

#[test]
fn rows_of_a_forward_pass_wait_each_for_its_own_mask() {
    let mut world = world();
    let own = prompt(2, 6);
    let context = world.context(&own);
    let request = world
        .submit(Submission::Forward(context, Box::new(rows())))
        .unwrap();
    world.pump();
    world.give_mask(request, 2, &runs(ODD)).unwrap();
    assert!(world.engine.take(request).is_none());
    // An empty mask allows everything; it stands in place of that of the pass.
    world.give_mask(request, 1, &[]).unwrap();
    let Answer::Forwarded(outputs) = world.engine.take(request).unwrap().unwrap() else {
        panic!("it is a forward pass")
    };
    let any: fn(u32) -> bool = |_| true;
    let drawn: Vec<u32> = outputs.iter().map(|output| output.tokens[0]).collect();
    let wanted = [
        expected(&own, &[EVEN]),
        expected(&own[..1], &[any]),
        expected(&own, &[ODD]),
    ];
    assert_eq!(drawn, wanted.concat());
    let n_read = outputs.iter().map(|output| output.readings.len());
    assert_eq!(n_read.collect::<Vec<_>>(), [0, 1, 0]);
    let row = support::row(MODEL, 50, &own[..1]);
    assert_eq!(outputs[1].readings, [Reading::Logits(Arc::from(row))]);
}

// rows: RS-071
#[test]
fn what_ends_while_it_waits_ends_as_ever() {
    let own = prompt(6, 1);
    let begin = || {
        let mut world = world();
        let context = world.context(&own);
        let generator = late(&mut world, context, 3);
        let request = step(&mut world, generator);
        world.pump();
        (world, context, generator, request)
    };
    let again = |world: &mut World, generator| {
        let request = step(world, generator);
        world.pump();
        world.give_mask(request, 0, &runs(ODD)).unwrap();
        world.pump();
        assert_eq!(tokens(world, request), expected(&own, &[ODD]));
    };
    // Cancelled.
    let (mut world, _, generator, request) = begin();
    world.engine.cancel(request);
    assert_eq!(world.engine.stats().n_late_rows, 0);
    assert!(world.give_mask(request, 0, &runs(ODD)).is_err());
    again(&mut world, generator);
    // Its context was released.
    let (mut world, context, _, request) = begin();
    world.engine.release(context);
    world.give_mask(request, 0, &runs(ODD)).unwrap();
    assert_eq!(failed(&mut world, request).code, ErrorCode::ContextReleased);
    // Its process ended.
    let (mut world, _, _, request) = begin();
    world.engine.end_process(ProcessId(1));
    assert!(world.give_mask(request, 0, &runs(ODD)).is_err());
    assert_eq!(world.engine.stats().n_late_rows, 0);
    // The device was lost: its row is kept by the host.
    let (mut world, _, generator, request) = begin();
    world.lose();
    world.give_mask(request, 0, &runs(ODD)).unwrap();
    assert_eq!(tokens(&mut world, request), expected(&own, &[ODD]));
    steps_on(&mut world, generator, &own);
    // Its batch failed: the mask belongs to the request.
    let mut world = self::world();
    let context = world.context(&own);
    let generator = late(&mut world, context, 3);
    let request = step(&mut world, generator);
    world.plan();
    world.give_mask(request, 0, &runs(EVEN)).unwrap();
    let batch = world.running.remove(0);
    let failure = DriverFailure {
        message: "it broke".to_owned(),
    };
    world.answer(batch.id, Err(failure));
    assert_eq!(failed(&mut world, request).code, ErrorCode::DriverFailed);
    again(&mut world, generator);
    // It was cancelled while somebody drew from its row.
    let (mut world, _, generator, request) = begin();
    world.holds_draws = true;
    world.give_mask(request, 0, &runs(EVEN)).unwrap();
    world.engine.cancel(request);
    let request = step(&mut world, generator);
    world.holds_draws = false;
    world.draw_held();
    world.pump();
    world.give_mask(request, 0, &runs(ODD)).unwrap();
    assert_eq!(tokens(&mut world, request), expected(&own, &[ODD]));
}

#[test]
fn a_context_whose_pass_waits_for_a_mask_gives_its_pages_to_others() {
    let mut world = World::with_process(
        EngineConfig {
            driver: Capabilities {
                n_pages: 6,
                ..config().driver
            },
            ..config()
        },
        1,
    );
    let (own, other) = (prompt(14, 1), prompt(16, 2));
    let context = world.context(&own);
    let generator = late(&mut world, context, 3);
    let request = step(&mut world, generator);
    world.pump();
    let neighbour = world.context(&other);
    let neighbour = world.generator(neighbour, 4);
    let run = world.submit(Submission::Run(neighbour)).unwrap();
    world.pump();
    assert_eq!(tokens(&mut world, run), support::world::expected(&other, 4));
    assert_eq!(world.engine.stats().n_suspended, 1);
    world.give_mask(request, 0, &runs(ODD)).unwrap();
    assert_eq!(tokens(&mut world, request), expected(&own, &[ODD]));
    steps_on(&mut world, generator, &own);
}

#[test]
fn so_many_rows_may_wait() {
    let mut world = World::with_process(
        EngineConfig {
            max_late_rows: 5,
            ..config()
        },
        1,
    );
    let contexts: Vec<ContextId> = (0..3).map(|salt| world.context(&prompt(4, salt))).collect();
    let generators: Vec<GeneratorId> = contexts
        .iter()
        .map(|&context| late(&mut world, context, 9))
        .collect();
    // Two of one program, a quarter of all.
    let first = step(&mut world, generators[0]);
    step(&mut world, generators[1]);
    world.engine.next_step(generators[2]).unwrap();
    let error = world.submit(Submission::Step(generators[2])).unwrap_err();
    assert_eq!(error.code, ErrorCode::LimitResources);
    assert!(
        error.message.contains("raise max_late_rows"),
        "{}",
        error.message
    );
    world.pump();
    // The row of what runs ahead has the room of the step.
    world.give_mask(first, 0, &runs(ODD)).unwrap();
    world.pump();
    assert_eq!(world.engine.stats().n_late_rows, 2);
    tokens(&mut world, first);
    assert!(world.submit(Submission::Step(generators[2])).is_err());
    world.engine.release(contexts[0]);
    let third = world.submit(Submission::Step(generators[2])).unwrap();
    world.pump();
    world.give_mask(third, 0, &runs(ODD)).unwrap();
    assert_eq!(tokens(&mut world, third), expected(&prompt(4, 2), &[ODD]));
}

/// A step whose mask comes late, of a new context with that prompt of a process.
fn step_of(world: &mut World, process: ProcessId, salt: u32) -> Result<RequestId, Error> {
    let context = world.context_of(process, &prompt(4, salt));
    let generator = late(world, context, 9);
    world.engine.next_step(generator).unwrap();
    world.submit(Submission::Step(generator))
}

#[test]
fn whoever_fills_what_may_wait_leaves_room_for_other_users() {
    let mut world = World::with_process(
        EngineConfig {
            max_late_rows: 8,
            ..config()
        },
        1,
    );
    for (process, user) in [(2, 1), (3, 1), (4, 2), (5, 3), (6, 4)] {
        world
            .engine
            .new_process(ProcessId(process), UserId(user), 0)
            .unwrap();
    }
    let mut own = Vec::new();
    for process in [2, 2, 3, 3] {
        own.push(step_of(&mut world, ProcessId(process), own.len() as u32).unwrap());
    }
    // The fourth program of the user has none, and the user has half of all.
    let error = step_of(&mut world, ProcessId(1), 9).unwrap_err();
    assert_eq!(error.code, ErrorCode::LimitResources);
    assert_eq!(
        error.message,
        "1 rows are to wait for their token masks, 4 of the user do, and at most 4 may, since max_late_rows is 8; give \
         the masks of others first, or raise max_late_rows"
    );
    // Each of the others has half of what is left.
    for (salt, process) in [4, 4, 5, 6].into_iter().enumerate() {
        let process = ProcessId(process);
        step_of(&mut world, process, 20 + salt as u32).unwrap();
    }
    assert!(step_of(&mut world, ProcessId(4), 30).is_err());
    world.pump();
    assert_eq!(world.engine.stats().n_late_rows, 8);
    // What runs ahead has the room of its step until its program ends.
    world.give_mask(own[0], 0, &runs(ODD)).unwrap();
    assert_eq!(tokens(&mut world, own[0]), expected(&prompt(4, 0), &[ODD]));
    assert!(step_of(&mut world, ProcessId(1), 10).is_err());
    world.engine.end_process(ProcessId(2));
    world.engine.end_process(ProcessId(3));
    step_of(&mut world, ProcessId(1), 11).unwrap();
}

#[test]
fn the_part_of_a_user_can_be_set() {
    let mut world = World::with_process(
        EngineConfig {
            max_late_rows: 8,
            max_user_late_rows: 1,
            ..config()
        },
        1,
    );
    step_of(&mut world, ProcessId(1), 1).unwrap();
    let error = step_of(&mut world, ProcessId(1), 2).unwrap_err();
    assert!(
        error
            .message
            .ends_with("at most 1 may, since max_user_late_rows is 1; give the masks of others first, or raise \
                max_user_late_rows"),
        "{}",
        error.message
    );
}

#[test]
fn rows_that_wait_are_charged_by_their_bytes() {
    let vocab_size = 1 << 20;
    let mut world = World::with_process(
        EngineConfig {
            max_late_bytes: 8 << 20,
            driver: Capabilities {
                vocab_size,
                ..config().driver
            },
            ..config()
        },
        1,
    );
    world
        .engine
        .new_process(ProcessId(2), UserId(2), 0)
        .unwrap();
    world
        .engine
        .new_process(ProcessId(3), UserId(3), 0)
        .unwrap();
    step_of(&mut world, ProcessId(1), 1).unwrap();
    step_of(&mut world, ProcessId(2), 2).unwrap();
    let error = step_of(&mut world, ProcessId(3), 3).unwrap_err();
    assert_eq!(
        error.message,
        "1 rows are to wait for their token masks, 2 of the engine do, and at most 2 may, since max_late_bytes is \
         8388608; give the masks of others first, or raise max_late_bytes"
    );
}

// rows: RS-071
#[test]
fn masks_that_do_not_fit_are_refused() {
    let mut world = world();
    let context = world.context(&prompt(3, 1));
    let generator = late(&mut world, context, 2);
    assert_eq!(
        world.submit(Submission::Run(generator)).unwrap_err().code,
        ErrorCode::InvalidArgument
    );
    let request = step(&mut world, generator);
    let code = |given: Result<(), Error>| given.unwrap_err().code;
    for (request, row, mask) in [
        (request, 1, &[0, 50][..]),
        (RequestId(99), 0, &[0, 50]),
        (request, 0, &[50]),
        (request, 0, &[0, 51]),
        (request, 0, &[0; 60]),
    ] {
        assert_eq!(
            code(world.give_mask(request, row, mask)),
            ErrorCode::InvalidArgument
        );
    }
    world.give_mask(request, 0, &runs(ODD)).unwrap();
    assert_eq!(
        code(world.give_mask(request, 0, &runs(ODD))),
        ErrorCode::InvalidArgument
    );
    world.pump();
    assert_eq!(
        code(world.give_mask(request, 0, &runs(ODD))),
        ErrorCode::InvalidArgument
    );
    tokens(&mut world, request);
    // A row that draws nothing needs none, and one that was not asked for so takes none.
    let other = world.context(&prompt(2, 2));
    let mut forward = rows();
    forward.rows[1].sampler = None;
    let submitted = world.submit(Submission::Forward(other, Box::new(forward)));
    assert_eq!(submitted.unwrap_err().code, ErrorCode::InvalidArgument);
    let request = world
        .submit(Submission::Forward(other, Box::new(rows())))
        .unwrap();
    assert_eq!(
        code(world.give_mask(request, 0, &runs(ODD))),
        ErrorCode::InvalidArgument
    );
}

// rows: RS-071
#[test]
fn a_step_of_a_generation_that_has_ended_takes_its_mask_and_needs_none() {
    let mut world = world();
    let context = world.context(&prompt(6, 1));
    let generator = late(&mut world, context, 3);
    world.engine.next_step(generator).unwrap().unwrap();
    world.engine.set_max_tokens(generator, 0).unwrap();
    let request = world.submit(Submission::Step(generator)).unwrap();
    let bad = TokenMask::new(&[51], 50);
    let refused = world.engine.give_step_mask(request, bad).unwrap_err();
    assert_eq!(refused.code, ErrorCode::InvalidArgument);
    let mask = TokenMask::new(&runs(ODD), 50);
    world.engine.give_step_mask(request, mask).unwrap();
    let answer = world.engine.take(request).expect("the request is ready");
    let output = output(answer.unwrap());
    assert_eq!(output.tokens, [0; 0]);
    assert_eq!(output.finish, Some(FinishReason::Length));
}
