//! What the engine does in situations that a reader may want to look up, each on the dummy driver.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod support;

use std::time::Duration;

use pie_core::batch::ArenaView;
use pie_core::{
    Batch, Capabilities, ContextId, Drafting, EngineConfig, ErrorCode, GeneratorId,
    GeneratorOptions, Method, NextWork, ProcessId, RequestId, Submission, UserId,
};
use support::world::{World, assert_draws_repeat, config, expected, options, output, prompt};

/// The batch that is planned now.
fn planned(world: &mut World) -> Batch {
    assert!(world.plan());
    world.running.last().unwrap().clone()
}

#[test]
fn generations_share_a_batch() {
    let mut world = World::with_process(config(), 1);
    for salt in 0..3 {
        let context = world.context(&prompt(5, salt));
        let generator = world.generator(context, 4);
        world.submit(Submission::Run(generator)).unwrap();
    }
    let batch = planned(&mut world);
    assert_eq!(ArenaView::parse(&batch.arena).unwrap().n_sequences(), 3);
    world.pump();
    assert_eq!(world.engine.stats().n_batches, 4);
}

#[test]
fn a_long_prefill_delays_no_token_of_a_running_generation() {
    let mut world = World::with_process(
        EngineConfig {
            max_batch_tokens: 8,
            prefill_chunk: 8,
            ..config()
        },
        1,
    );
    let context = world.context(&prompt(4, 0));
    let generator = world.generator(context, 30);
    let decoding = world.submit(Submission::Run(generator)).unwrap();
    world.plan();
    world.finish();
    let long = world.context(&prompt(100, 1));
    world.submit(Submission::Flush(long)).unwrap();
    for _ in 0..10 {
        let batch = planned(&mut world);
        let view = ArenaView::parse(&batch.arena).unwrap();
        let sizes: Vec<usize> = view
            .sequences()
            .map(|sequence| sequence.tokens.len())
            .collect();
        assert_eq!(sizes, [1, 7]);
        world.finish();
    }
    assert_eq!(
        output(world.wait(decoding).unwrap()).tokens,
        expected(&prompt(4, 0), 30)
    );
}

/// Text that a grammar forces is accepted with a step, and is computed with the next one: it waits for no prompt.
#[test]
fn a_few_tokens_that_were_accepted_are_computed_as_a_step() {
    let mut world = World::with_process(
        EngineConfig {
            max_batch_tokens: 8,
            prefill_chunk: 8,
            ..config()
        },
        1,
    );
    let context = world.context(&prompt(4, 0));
    let generator = world.generator(context, 30);
    world.step(generator).unwrap().unwrap();
    world.engine.accept(generator, &[4, 5, 6]).unwrap();
    let long = world.context(&prompt(100, 1));
    world.submit(Submission::Flush(long)).unwrap();
    world.engine.next_step(generator).unwrap();
    let step = world.submit(Submission::Step(generator)).unwrap();
    let batch = planned(&mut world);
    let view = ArenaView::parse(&batch.arena).unwrap();
    let sizes: Vec<usize> = view
        .sequences()
        .map(|sequence| sequence.tokens.len())
        .collect();
    assert_eq!(sizes, [3, 5]);
    world.finish();
    let text = [&prompt(4, 0)[..], &[4, 5, 6]].concat();
    assert_eq!(output(world.wait(step).unwrap()).tokens, expected(&text, 1));
}

// rows: RS-040
#[test]
fn forks_share_pages_until_they_write() {
    let mut world = World::with_process(config(), 1);
    let root = world.context(&prompt(41, 0));
    world.flush(root).unwrap();
    assert_eq!(world.engine.stats().n_pages_used, 11);
    let forks: Vec<ContextId> = (0..8).map(|_| world.engine.fork(root).unwrap()).collect();
    assert_eq!(world.engine.stats().n_pages_used, 11);
    let requests: Vec<RequestId> = forks
        .iter()
        .enumerate()
        .map(|(index, &fork)| {
            world.engine.append(fork, &[index as u32]).unwrap();
            let generator = world.generator(fork, 2);
            world.submit(Submission::Run(generator)).unwrap()
        })
        .collect();
    for (index, request) in requests.into_iter().enumerate() {
        let mut tokens = prompt(41, 0);
        tokens.push(index as u32);
        assert_eq!(
            output(world.wait(request).unwrap()).tokens,
            expected(&tokens, 2)
        );
    }
    // Ten shared pages, the partial one of the root, and a copy of it for each fork.
    assert_eq!(world.engine.stats().n_pages_used, 10 + 1 + 8);
    assert_eq!(world.engine.stats().n_copies, 8);
}

// rows: RS-048 RS-066
#[test]
fn the_last_token_is_read_again_without_being_written() {
    let mut world = World::with_process(config(), 1);
    let context = world.context(&prompt(8, 0));
    world.flush(context).unwrap();
    let fork = world.engine.fork(context).unwrap();
    let generator = world.generator(fork, 3);
    let request = world.submit(Submission::Run(generator)).unwrap();
    let batch = planned(&mut world);
    let view = ArenaView::parse(&batch.arena).unwrap();
    let sequence = view.sequences().next().unwrap();
    assert!(sequence.reread);
    assert_eq!(
        (sequence.tokens, sequence.positions, sequence.length),
        (&prompt(8, 0)[7..], &[7][..], 8)
    );
    assert_eq!((view.copies().count(), view.n_rows()), (0, 1));
    assert_eq!(
        output(world.wait(request).unwrap()).tokens,
        expected(&prompt(8, 0), 3)
    );
    let generator = world.generator(context, 3);
    assert_eq!(
        world.run(generator).unwrap().tokens,
        expected(&prompt(8, 0), 3)
    );
}

#[test]
fn a_context_that_could_never_fit_is_refused_with_the_numbers() {
    let mut world = World::with_process(
        EngineConfig {
            driver: Capabilities {
                n_pages: 3,
                ..config().driver
            },
            ..config()
        },
        1,
    );
    let context = world.context(&prompt(13, 0));
    let error = world.submit(Submission::Flush(context)).unwrap_err();
    assert_eq!(error.code, ErrorCode::OutOfPages);
    assert_eq!(error.details, r#"{"needed":4,"limit":3}"#);
    let context = world.context(&prompt(10, 0));
    let generator = world.generator(context, 30);
    assert_eq!(
        world.run(generator).unwrap_err().code,
        ErrorCode::OutOfPages
    );
    assert_eq!(world.engine.buffer(context).unwrap().len(), 10);
    world.engine.set_max_tokens(generator, 3).unwrap();
    assert_eq!(
        world.run(generator).unwrap().tokens,
        expected(&prompt(10, 0), 3)
    );
}

#[test]
fn when_pages_are_short_the_youngest_wait_and_all_finish() {
    // Each grows from 2 pages to 5; there are 8. What is displaced is computed again, or copied to the host and back.
    for host_pages in [0, 100] {
        let mut world = World::with_process(
            EngineConfig {
                driver: Capabilities {
                    n_pages: 8,
                    host_pages,
                    ..config().driver
                },
                ..config()
            },
            1,
        );
        let requests: Vec<RequestId> = (0..3)
            .map(|salt| {
                let context = world.context(&prompt(8, salt));
                let generator = world.generator(context, 12);
                world.submit(Submission::Run(generator)).unwrap()
            })
            .collect();
        for (salt, request) in requests.into_iter().enumerate() {
            assert_eq!(
                output(world.wait(request).unwrap()).tokens,
                expected(&prompt(8, salt as u32), 12)
            );
        }
        let stats = world.engine.stats();
        assert!(stats.n_suspended > 0, "{stats:?}");
        assert_eq!(stats.n_dropped > 0, host_pages == 0, "{stats:?}");
        assert_eq!(stats.n_copied_in > 0, host_pages > 0, "{stats:?}");
        assert_eq!(stats.n_replayed > 0, host_pages == 0, "{stats:?}");
    }
}

#[test]
fn a_request_takes_the_pages_of_a_context_that_asks_for_nothing() {
    let mut world = World::with_process(
        EngineConfig {
            driver: Capabilities {
                n_pages: 4,
                ..config().driver
            },
            ..config()
        },
        1,
    );
    let holder = world.context(&prompt(12, 0));
    world.flush(holder).unwrap();
    let context = world.context(&prompt(8, 1));
    world.flush(context).unwrap();
    assert_eq!(world.engine.stats().n_suspended, 1);
    let generator = world.generator(holder, 3);
    assert_eq!(
        world.run(generator).unwrap().tokens,
        expected(&prompt(12, 0), 3)
    );
}

#[test]
fn a_program_that_waits_for_one_context_while_it_holds_another_never_keeps_the_pool() {
    // Twenty such programs, with pages for three contexts.
    let mut world = World::with_process(
        EngineConfig {
            driver: Capabilities {
                n_pages: 12,
                ..config().driver
            },
            ..config()
        },
        1,
    );
    let pairs: Vec<(ContextId, ContextId)> = (0..20)
        .map(|salt| {
            let held = world.context(&prompt(12, salt));
            let awaited = world.context(&prompt(13, 100 + salt));
            (held, awaited)
        })
        .collect();
    let held: Vec<RequestId> = pairs
        .iter()
        .map(|(held, _)| world.submit(Submission::Flush(*held)).unwrap())
        .collect();
    for request in held {
        world.wait(request).unwrap();
    }
    for index in [1, 0] {
        let requests: Vec<RequestId> = pairs
            .iter()
            .map(|&(held, awaited)| {
                let generator = world.generator([held, awaited][index], 3);
                world.submit(Submission::Run(generator)).unwrap()
            })
            .collect();
        for (salt, request) in requests.into_iter().enumerate() {
            let text = [prompt(12, salt as u32), prompt(13, 100 + salt as u32)][index].clone();
            assert_eq!(
                output(world.wait(request).unwrap()).tokens,
                expected(&text, 3)
            );
        }
    }
}

/// Two steps are under way where the budget has one token left: the second to be taken is refused, and so is what ran
/// ahead of it.
// rows: RS-048
#[test]
fn what_somebody_computed_is_not_computed_again() {
    let mut world = World::with_process(config(), 1);
    let first = world.context(&prompt(41, 0));
    world.flush(first).unwrap();
    world.engine.release(first);
    let stats = world.engine.stats();
    assert_eq!((stats.n_pages_used, stats.n_pages_cached), (0, 10));
    let second = world.context(&prompt(41, 0));
    let generator = world.generator(second, 4);
    assert_eq!(
        world.run(generator).unwrap().tokens,
        expected(&prompt(41, 0), 4)
    );
    let stats = world.engine.stats();
    assert_eq!((stats.n_reused, stats.n_tokens), (40, 41 + 1 + 3));
    // All of it: the last token is read again.
    let third = world.context(&prompt(40, 0));
    let generator = world.generator(third, 1);
    assert_eq!(
        world.run(generator).unwrap().tokens,
        expected(&prompt(40, 0), 1)
    );
    assert_eq!(world.engine.stats().n_tokens, 46);
    // A flush that finds everything takes no batch.
    let n_batches = world.engine.stats().n_batches;
    let fourth = world.context(&prompt(40, 0));
    world.flush(fourth).unwrap();
    assert_eq!(world.engine.stats().n_batches, n_batches);
    // What another user computed is of no use.
    world
        .engine
        .new_process(ProcessId(2), UserId(2), 1)
        .unwrap();
    let other = world.engine.new_context(ProcessId(2)).unwrap();
    world.engine.append(other, &prompt(40, 0)).unwrap();
    world.flush(other).unwrap();
    assert_eq!(world.engine.stats().n_tokens, 46 + 40);
}

#[test]
fn pages_of_a_batch_in_flight_are_not_given_to_others() {
    let mut world = World::with_process(
        EngineConfig {
            driver: Capabilities {
                n_pages: 4,
                ..config().driver
            },
            ..config()
        },
        1,
    );
    let context = world.context(&prompt(12, 0));
    let request = world.submit(Submission::Flush(context)).unwrap();
    world.plan();
    world.engine.release(context);
    assert_eq!(
        world.engine.take(request).unwrap().unwrap_err().code,
        ErrorCode::ContextReleased
    );
    assert_eq!(world.engine.stats().n_pages_used, 3);
    let other = world.context(&prompt(8, 1));
    let waiting = world.submit(Submission::Flush(other)).unwrap();
    assert!(!world.plan());
    world.finish();
    assert!(world.wait(waiting).is_ok());
    assert_eq!(world.engine.stats().n_pages_used, 2);
}

// rows: RS-083
#[test]
fn a_cancelled_pass_keeps_its_pages_until_its_batch_is_done() {
    let mut world = World::with_process(config(), 1);
    let context = world.context(&prompt(12, 0));
    let request = world.submit(Submission::Flush(context)).unwrap();
    world.plan();
    world.engine.cancel(request);
    assert_eq!(world.engine.stats().n_pages_used, 3);
    let other = world.context(&prompt(10, 1));
    let flushed = world.submit(Submission::Flush(other)).unwrap();
    world.plan();
    // The later batch first: what the cancelled one then writes must not reach its pages.
    let (batch, logits) = world.compute(1);
    world.conclude(&batch, &logits, &[]);
    assert_eq!(world.wait(flushed), Ok(pie_core::Answer::Flushed));
    let generator = world.generator(other, 4);
    assert_eq!(
        world.run(generator).unwrap().tokens,
        expected(&prompt(10, 1), 4)
    );
    let generator = world.generator(context, 4);
    assert_eq!(
        world.run(generator).unwrap().tokens,
        expected(&prompt(12, 0), 4)
    );
}

/// Sixteen programs that step by themselves, each a little slower or faster: they share batches, because a batch is
/// held for those that are about to come back. The clock is the test's own.
#[test]
fn programs_that_step_by_themselves_share_batches() {
    let mut world = World::with_process(
        EngineConfig {
            hold: Duration::from_nanos(2_000_000),
            run_ahead: false,
            ..config()
        },
        1,
    );
    let (n_programs, n_steps, batch_ns) = (16, 40, 1_000_000);
    let generators: Vec<GeneratorId> = (0..n_programs)
        .map(|salt| {
            let context = world.context(&prompt(6, salt));
            world.generator(context, n_steps)
        })
        .collect();
    // What happens next: a program submits, or the driver answers.
    let mut returns: Vec<(u64, GeneratorId)> =
        generators.iter().map(|&generator| (0, generator)).collect();
    let mut waiting: Vec<(RequestId, GeneratorId)> = Vec::new();
    let mut asked_ns = 0;
    loop {
        returns.sort();
        match returns.first().copied() {
            Some((at_ns, generator)) if at_ns <= asked_ns => {
                returns.remove(0);
                world.now_ns = at_ns;
                if world.engine.next_step(generator).unwrap().is_some() {
                    waiting.push((
                        world.submit(Submission::Step(generator)).unwrap(),
                        generator,
                    ));
                }
                continue;
            }
            _ => {}
        }
        world.now_ns = asked_ns;
        match world.engine.next_batch(asked_ns) {
            NextWork::Batch(batch) => {
                let logits = world.driver.run(&batch.arena).unwrap().logits;
                asked_ns += batch_ns;
                world
                    .engine
                    .complete(batch.id, Ok(batch.jobs.sample(&logits, &[])), asked_ns)
                    .unwrap();
                for request in world.engine.drain_ready() {
                    let at = waiting.iter().position(|(id, _)| *id == request).unwrap();
                    let (_, generator) = waiting.remove(at);
                    world.engine.take(request).unwrap().unwrap();
                    let think_ns = 20_000 + pie_core::hash::mix(request.0) % 280_000;
                    returns.push((asked_ns + think_ns, generator));
                }
            }
            NextWork::HoldUntil(until_ns) => {
                asked_ns = returns
                    .first()
                    .map_or(until_ns, |(at_ns, _)| until_ns.min(*at_ns))
            }
            NextWork::Command(command) => panic!("nobody asked for {command:?}"),
            NextWork::Idle => match returns.first() {
                Some((at_ns, _)) => asked_ns = *at_ns,
                None => break,
            },
        }
    }
    let stats = world.engine.stats();
    assert_eq!(stats.n_rows, u64::from(n_programs * n_steps));
    let width = stats.n_sequences as f64 / stats.n_batches as f64;
    assert!(width >= 12.0, "mean batch width {width:.1}");
}

#[test]
fn the_end_of_a_process_leaves_nothing_behind() {
    let mut world = World::with_process(config(), 1);
    world
        .engine
        .new_process(ProcessId(2), UserId(1), 2)
        .unwrap();
    let mut made = Vec::new();
    for salt in 0..4 {
        let context = world.context(&prompt(9, salt));
        let generator = world.generator(context, 50);
        made.push(world.submit(Submission::Run(generator)).unwrap());
    }
    world.plan();
    world.engine.end_process(ProcessId(1));
    world.engine.check().unwrap();
    assert!(world.engine.drain_ready().is_empty());
    world.finish();
    let stats = world.engine.stats();
    assert_eq!(
        (
            stats.n_contexts,
            stats.n_generators,
            stats.n_requests,
            stats.n_pages_used,
            stats.n_waiting
        ),
        (0, 0, 0, 0, 0)
    );
    assert_eq!(
        world.engine.new_context(ProcessId(1)).unwrap_err().code,
        ErrorCode::InvalidArgument
    );
    assert!(world.engine.new_context(ProcessId(2)).is_ok());
}

// rows: RS-040 RS-064
#[test]
fn forks_without_seeds_differ_and_a_launch_repeats() {
    let launch = |seed: u64| -> Vec<Vec<u32>> {
        let mut world = World::with_process(config(), seed);
        let root = world.context(&prompt(9, 0));
        let mut contexts: Vec<ContextId> =
            (0..4).map(|_| world.engine.fork(root).unwrap()).collect();
        contexts.push(root);
        // A second attempt from the same place is another one.
        contexts.push(world.context(&prompt(9, 0)));
        let texts = contexts.into_iter().map(|context| world.draw(context));
        texts.collect()
    };
    assert_draws_repeat(launch);
}

// rows: RS-064
#[test]
fn a_seed_may_be_given_until_a_step_is_opened() {
    let drawn = |sampler_seed: Option<u64>, given: Option<u64>, set: Option<u64>| {
        let mut world = World::with_process(config(), 1);
        let context = world.context(&prompt(9, 0));
        let mut made = options(Method::Multinomial {
            temperature: 1.0,
            draws: 1,
        });
        (made.sampler.seed, made.seed, made.max_tokens) = (sampler_seed, given, Some(8));
        let generator = world.engine.new_generator(context, made).unwrap();
        if let Some(seed) = set {
            world.engine.set_seed(generator, seed).unwrap();
        }
        world.run(generator).unwrap().tokens
    };
    assert_eq!(drawn(None, None, Some(7)), drawn(None, Some(7), None));
    assert_eq!(drawn(None, Some(3), Some(0)), drawn(None, Some(0), None));
    assert_ne!(drawn(None, Some(3), None), drawn(None, Some(0), None));
    // A seed of the sampler goes first.
    assert_eq!(drawn(Some(5), None, Some(7)), drawn(Some(5), None, None));

    let mut world = World::with_process(config(), 1);
    let context = world.context(&prompt(9, 0));
    let generator = world.generator(context, 8);
    let refused = |world: &mut World| world.engine.set_seed(generator, 7).unwrap_err().code;
    world.engine.next_step(generator).unwrap();
    assert_eq!(refused(&mut world), ErrorCode::InvalidArgument);
    let request = world.submit(Submission::Step(generator)).unwrap();
    assert_eq!(refused(&mut world), ErrorCode::ContextBusy);
    world.engine.cancel(request);
    assert_eq!(refused(&mut world), ErrorCode::InvalidArgument);
    world.run(generator).unwrap();
    assert_eq!(refused(&mut world), ErrorCode::InvalidArgument);
}

// rows: RS-074
#[test]
fn a_token_mask_and_drafts_may_be_given_until_a_step_is_opened() {
    let mask: [u32; 2] = [2, 9];
    let made = |token_mask: &[u32], drafting| GeneratorOptions {
        token_mask: token_mask.to_vec(),
        drafting,
        max_tokens: Some(12),
        ..options(Method::Argmax)
    };
    let drawn = |first: GeneratorOptions, then: Option<(&[u32], Drafting)>| {
        let mut world = World::with_process(config(), 1);
        let context = world.context(&prompt(4, 0).repeat(5));
        let generator = world.engine.new_generator(context, first).unwrap();
        if let Some((mask, drafting)) = then {
            world.engine.set_token_mask(generator, mask).unwrap();
            world.engine.set_drafting(generator, drafting).unwrap();
        }
        let held = world.engine.option_bytes(generator).unwrap();
        (world.run(generator).unwrap().tokens, held)
    };
    let (none, n_gram) = (Drafting::None, Drafting::NGram);
    assert_eq!(
        drawn(made(&[], none), Some((&mask[..], n_gram))),
        drawn(made(&mask, n_gram), None)
    );
    assert_eq!(
        drawn(made(&mask, n_gram), Some((&[][..], none))),
        drawn(made(&[], none), None)
    );
    assert_ne!(drawn(made(&mask, none), None), drawn(made(&[], none), None));

    let mut world = World::with_process(config(), 1);
    let context = world.context(&prompt(9, 0));
    let generator = world.generator(context, 8);
    let mut codes = Vec::new();
    for bad in [&[0][..], &[5000], &[0; 5000]] {
        codes.extend(world.engine.set_token_mask(generator, bad).err());
    }
    world.engine.next_step(generator).unwrap();
    codes.extend(world.engine.set_token_mask(generator, &mask).err());
    codes.extend(world.engine.set_drafting(generator, n_gram).err());
    let codes: Vec<ErrorCode> = codes.into_iter().map(|error| error.code).collect();
    assert_eq!(codes, [ErrorCode::InvalidArgument; 5]);
    let request = world.submit(Submission::Step(generator)).unwrap();
    let busy = world.engine.set_token_mask(generator, &mask).unwrap_err();
    assert_eq!(busy.code, ErrorCode::ContextBusy);
    world.engine.cancel(request);
}

#[test]
fn limits_name_themselves() {
    let mut world = World::with_process(
        EngineConfig {
            max_contexts: 2,
            max_process_contexts: 2,
            max_user_contexts: 10,
            max_user_waiting: 10,
            max_waiting: 1,
            driver: Capabilities {
                max_positions: 10,
                ..config().driver
            },
            ..config()
        },
        1,
    );
    let context = world.context(&prompt(10, 0));
    let cases = [
        (
            world.engine.append(context, &[50]).unwrap_err(),
            ErrorCode::InvalidToken,
            "token 50",
            "below 50",
        ),
        (
            world.engine.append(context, &[1]).unwrap_err(),
            ErrorCode::ContextFull,
            "10 of at most 10",
            "append at most 0",
        ),
        (
            world.engine.truncate(context, 1).unwrap_err(),
            ErrorCode::TruncateRange,
            "1 tokens",
            "at most 0",
        ),
    ];
    for (error, code, value, remedy) in cases {
        assert_eq!(error.code, code);
        assert!(
            error.message.contains(value) && error.message.contains(remedy),
            "{error}"
        );
    }
    let second = world.context(&prompt(3, 0));
    let error = world.engine.new_context(ProcessId(1)).unwrap_err();
    assert_eq!(
        (error.code, error.details.as_str()),
        (ErrorCode::LimitResources, r#"{"contexts":2,"limit":2}"#)
    );
    assert_eq!(
        world.engine.fork(second).unwrap_err().code,
        ErrorCode::LimitResources
    );
    world.submit(Submission::Flush(context)).unwrap();
    let error = world.submit(Submission::Flush(second)).unwrap_err();
    assert_eq!(
        (error.code, error.details.as_str()),
        (ErrorCode::LimitQueue, r#"{"requests":1,"limit":1}"#)
    );
    let stop = GeneratorOptions {
        stop: vec![99],
        ..options(Method::Argmax)
    };
    assert_eq!(
        world.engine.new_generator(second, stop).unwrap_err().code,
        ErrorCode::InvalidToken
    );
    let sampler = options(Method::TopP {
        temperature: -1.0,
        p: 0.5,
    });
    assert_eq!(
        world
            .engine
            .new_generator(second, sampler)
            .unwrap_err()
            .code,
        ErrorCode::InvalidSampler
    );
}

#[test]
fn one_process_leaves_room_for_the_others() {
    let mut world = World::with_process(
        EngineConfig {
            max_contexts: 7,
            max_waiting: 5,
            ..config()
        },
        1,
    );
    world
        .engine
        .new_process(ProcessId(2), UserId(1), 1)
        .unwrap();
    // A quarter of each, rounded up, is 2.
    let contexts = [world.context(&prompt(3, 0)), world.context(&prompt(3, 1))];
    for error in [
        world.engine.new_context(ProcessId(1)).unwrap_err(),
        world.engine.fork(contexts[0]).unwrap_err(),
    ] {
        assert_eq!(
            (error.code, error.details.as_str()),
            (ErrorCode::LimitResources, r#"{"contexts":2,"limit":2}"#)
        );
        assert!(error.message.contains("max_process_contexts"), "{error}");
    }
    for _ in 0..8 {
        world.generator(contexts[0], 1);
    }
    let error = world
        .engine
        .new_generator(contexts[0], options(Method::Argmax))
        .unwrap_err();
    assert_eq!(
        (error.code, error.details.as_str()),
        (ErrorCode::LimitResources, r#"{"generators":8,"limit":8}"#)
    );
    let other = world.engine.new_context(ProcessId(2)).unwrap();
    world.engine.append(other, &prompt(3, 2)).unwrap();
    assert!(
        world
            .engine
            .new_generator(other, options(Method::Argmax))
            .is_ok()
    );

    // A request waits until its answer is taken, also when it failed with its context.
    let mut requests = Vec::new();
    for context in contexts {
        requests.push(world.submit(Submission::Flush(context)).unwrap());
        world.engine.release(context);
    }
    let third = world.context(&prompt(3, 0));
    let error = world.submit(Submission::Flush(third)).unwrap_err();
    assert_eq!(
        (error.code, error.details.as_str()),
        (ErrorCode::LimitQueue, r#"{"requests":2,"limit":2}"#)
    );
    assert!(error.message.contains("max_process_waiting"), "{error}");
    world.submit(Submission::Flush(other)).unwrap();
    let error = world.engine.take(requests[0]).unwrap().unwrap_err();
    assert_eq!(error.code, ErrorCode::ContextReleased);
    let waiting = world.submit(Submission::Flush(third)).unwrap();
    world.engine.cancel(waiting);
    world.submit(Submission::Flush(third)).unwrap();
}

#[test]
fn a_hold_ends_with_the_request_that_it_held() {
    let mut world = World::with_process(
        EngineConfig {
            hold: Duration::from_nanos(1000),
            run_ahead: false,
            ..config()
        },
        1,
    );
    let [slow, quick] = [0, 1].map(|salt| {
        let context = world.context(&prompt(3, salt));
        world.generator(context, 9)
    });
    for generator in [slow, quick] {
        world.engine.next_step(generator).unwrap();
        world.submit(Submission::Step(generator)).unwrap();
        assert!(world.plan());
    }
    // The batch of one is answered, so that its program is expected back, and a request is held for it.
    let (batch, logits) = world.compute(1);
    world.conclude(&batch, &logits, &[]);
    let other = world.context(&prompt(3, 2));
    let request = world.submit(Submission::Flush(other)).unwrap();
    let plan = world.engine.next_batch(world.now_ns);
    assert!(matches!(plan, NextWork::HoldUntil(_)), "{plan:?}");
    world.engine.cancel(request);
    let plan = world.engine.next_batch(world.now_ns);
    assert!(matches!(plan, NextWork::Idle), "{plan:?}");

    // Much later the other batch is answered, and another request is held for its program, for a time of its own.
    world.now_ns += 1_000_000;
    world.finish();
    world.submit(Submission::Flush(other)).unwrap();
    let plan = world.engine.next_batch(world.now_ns);
    assert!(matches!(plan, NextWork::HoldUntil(_)), "{plan:?}");
}
