//! What programs want of steps: tokens that they propose, masks, and what is read of rows.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod support;

use pie_core::masks::TokenMask;
use pie_core::sampling::MAX_PROBED_TOKENS;
use pie_core::{
    ContextId, Drafting, ErrorCode, FinishReason, GeneratorId, GeneratorOptions, Method, Output,
    Probe, ProcessId, Reading, Speculation, Submission, TokenBudget,
};
use proptest::prelude::*;
use support::world::{World, config, expected, options, output, prompt};

fn world() -> World {
    World::with_process(config(), 7)
}

fn generator(
    world: &mut World,
    tokens: &[u32],
    made: GeneratorOptions,
) -> (ContextId, GeneratorId) {
    let context = world.context(tokens);
    (context, world.engine.new_generator(context, made).unwrap())
}

/// A step with drafts.
fn draft(world: &mut World, id: GeneratorId, context: ContextId, drafts: &[u32]) -> Output {
    assert!(world.engine.next_step(id).unwrap().is_some());
    let first = world.engine.length(context).unwrap();
    let positions: Vec<u32> = (first..).take(drafts.len()).collect();
    world.engine.draft(id, drafts, &positions).unwrap();
    let request = world.submit(Submission::Step(id)).unwrap();
    output(world.wait(request).unwrap())
}

const fn speculation(n_drafted: u32, n_accepted: u32) -> Speculation {
    Speculation {
        n_drafted,
        n_accepted,
    }
}

// rows: RS-073 RS-080
#[test]
fn drafts_that_are_drawn_are_accepted_together_and_one_token_more() {
    let mut world = world();
    let (context, id) = generator(&mut world, &prompt(10, 1), options(Method::Argmax));
    let tokens = expected(&prompt(10, 1), 9);
    let first = draft(&mut world, id, context, &tokens[..3]);
    assert_eq!(
        (&first.tokens[..], first.speculation),
        (&tokens[..4], speculation(3, 3))
    );
    let wrong = (tokens[5] + 1) % 50;
    let second = draft(&mut world, id, context, &[tokens[4], wrong, tokens[6]]);
    assert_eq!(
        (&second.tokens[..], second.speculation),
        (&tokens[4..6], speculation(3, 1))
    );
    let third = draft(&mut world, id, context, &[wrong; 4]);
    assert_eq!(third.tokens.len(), 1);
    assert_eq!(world.engine.tokens_generated(id).unwrap(), 7);
    let stats = world.engine.stats();
    assert_eq!((stats.n_drafted, stats.n_drafts_accepted), (10, 4));
    assert_eq!(world.step(id).unwrap().unwrap().tokens, tokens[7..8]);
}

// rows: RS-068..069 RS-073
#[test]
fn an_accepted_run_is_cut_at_a_stop_token_and_at_the_cap_and_what_is_kept_is_charged() {
    let tokens = expected(&prompt(10, 1), 9);
    let cases = [
        (None, vec![tokens[2]], 3, Some(FinishReason::Stop)),
        (Some(2), vec![], 2, Some(FinishReason::Length)),
        (Some(9), vec![], 6, None),
    ];
    for (max_tokens, stop, n, finish) in cases {
        let mut world = world();
        let budget = TokenBudget::new(100);
        world.engine.set_token_budget(ProcessId(1), budget.clone());
        let made = GeneratorOptions {
            max_tokens,
            stop,
            ..options(Method::Argmax)
        };
        let (context, id) = generator(&mut world, &prompt(10, 1), made);
        let answer = draft(&mut world, id, context, &tokens[..5]);
        assert_eq!((&answer.tokens[..], answer.finish), (&tokens[..n], finish));
        assert_eq!(budget.left() as usize, 90 - n);
        assert_eq!(world.engine.seq_len(context).unwrap() as usize, 10 + n);
        // The context goes on from what was kept.
        let other = world.generator(context, 3);
        let all = [&prompt(10, 1)[..], &tokens[..n]].concat();
        assert_eq!(world.run(other).unwrap().tokens, expected(&all, 3));
    }
}

// rows: RS-073 RS-156
#[test]
fn wrong_drafts_are_refused_and_those_of_no_use_left_out() {
    let mut world = world();
    let (context, id) = generator(&mut world, &prompt(10, 1), options(Method::Argmax));
    let code = |drafted: Result<(), pie_core::Error>| drafted.unwrap_err().code;
    assert_eq!(
        code(world.engine.draft(id, &[1], &[10])),
        ErrorCode::StepPending
    );
    world.engine.next_step(id).unwrap();
    for (tokens, positions) in [
        (&[1, 2][..], &[10, 12][..]),
        (&[1, 2], &[10]),
        (&[1], &[11]),
        (&[1, 2], &[10, 10]),
    ] {
        assert_eq!(
            code(world.engine.draft(id, tokens, positions)),
            ErrorCode::InvalidArgument
        );
    }
    assert_eq!(
        code(world.engine.draft(id, &[50], &[10])),
        ErrorCode::InvalidToken
    );
    let many: Vec<u32> = (10..10_000).collect();
    assert_eq!(
        code(world.engine.draft(id, &vec![1; many.len()], &many)),
        ErrorCode::InvalidArgument
    );
    let request = world.submit(Submission::Step(id)).unwrap();
    world.wait(request).unwrap();
    // Where the last token is read again there are no drafts.
    world.flush(context).unwrap();
    let answer = draft(&mut world, id, context, &[1, 2]);
    assert_eq!(
        (answer.tokens.len(), answer.speculation),
        (1, speculation(0, 0))
    );
    // One whose tokens the engine drafts takes none.
    let made = GeneratorOptions {
        drafting: Drafting::NGram,
        ..options(Method::Argmax)
    };
    let (_, id) = generator(&mut world, &prompt(10, 1), made);
    world.engine.next_step(id).unwrap();
    assert_eq!(
        code(world.engine.draft(id, &[1], &[10])),
        ErrorCode::InvalidArgument
    );
}

// rows: RS-073 RS-083
#[test]
fn a_step_with_drafts_that_is_cancelled_leaves_the_context_as_it_was_and_is_run_again() {
    let mut world = world();
    let (context, id) = generator(&mut world, &prompt(10, 1), options(Method::Argmax));
    let tokens = expected(&prompt(10, 1), 4);
    for runs_first in [false, true] {
        world.engine.next_step(id).unwrap();
        world.engine.draft(id, &tokens[..2], &[10, 11]).unwrap();
        let request = world.submit(Submission::Step(id)).unwrap();
        if runs_first {
            world.pump();
        }
        world.engine.cancel(request);
        assert_eq!(world.engine.seq_len(context).unwrap(), 0);
        assert_eq!(world.engine.buffer(context).unwrap(), prompt(10, 1));
    }
    assert_eq!(draft(&mut world, id, context, &tokens[..3]).tokens, tokens);
}

// rows: RS-071 RS-073 RS-135
#[test]
fn a_mask_of_the_generator_restricts_every_draw_with_and_without_drafts() {
    let mut world = world();
    let code = |world: &mut World, mask: &[u32]| {
        let made = GeneratorOptions {
            token_mask: mask.to_vec(),
            ..options(Method::Argmax)
        };
        let context = world.context(&prompt(10, 1));
        world
            .engine
            .new_generator(context, made)
            .map(|id| (context, id))
    };
    for mask in [&[0][..], &[50], &[51, 1], &[0, 51], &[0; 52]] {
        let error = code(&mut world, mask).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidArgument, "{mask:?}");
    }
    let mask = [5, 10];
    let (_, id) = code(&mut world, &mask).unwrap();
    world.engine.set_max_tokens(id, 12).unwrap();
    let tokens = world.run(id).unwrap().tokens;
    assert!(tokens.len() == 12 && tokens.iter().all(|token| (5..15).contains(token)));
    assert_ne!(tokens, expected(&prompt(10, 1), 12));
    let (context, id) = code(&mut world, &mask).unwrap();
    world.engine.set_max_tokens(id, 12).unwrap();
    let mut stepped = draft(
        &mut world,
        id,
        context,
        &[tokens[0], tokens[1], 49, tokens[3]],
    )
    .tokens;
    assert_eq!(stepped, tokens[..3]);
    while let Some(output) = world.step(id).unwrap() {
        stepped.extend(output.tokens);
    }
    assert_eq!(stepped, tokens);
    // A mask of the step restricts beside it.
    let (_, id) = code(&mut world, &mask).unwrap();
    world.engine.set_late_masks(id, true).unwrap();
    world.engine.next_step(id).unwrap();
    let request = world.submit(Submission::Step(id)).unwrap();
    let error = world.give_mask(request, 0, &[15, 5]).unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidArgument);
    world.give_mask(request, 0, &[14, 5]).unwrap();
    assert_eq!(output(world.wait(request).unwrap()).tokens, [14]);
}

fn entropy(reading: &Reading) -> f32 {
    match reading {
        Reading::Entropy(nats) => *nats,
        other => panic!("{other:?} is not an entropy"),
    }
}

// rows: RS-078
#[test]
fn a_step_that_ran_ahead_is_refused_a_row_that_it_does_not_have() {
    let mut world = world();
    let (_, id) = generator(&mut world, &prompt(10, 1), options(Method::Argmax));
    let tokens = expected(&prompt(10, 1), 2);
    let first = world.step(id).unwrap().unwrap();
    assert_eq!(first.tokens, tokens[..1]);
    world.pump();
    world.engine.probe_each_step(id, 1, Probe::Entropy).unwrap();
    assert!(world.engine.next_step(id).unwrap().is_some());
    let refused = world.submit(Submission::Step(id)).unwrap_err();
    assert_eq!(refused.code, ErrorCode::InvalidArgument);
    assert!(refused.message.starts_with("row 1 of a step is read"));
}

// rows: RS-076
#[test]
fn what_ran_ahead_with_another_adapter_is_of_no_use() {
    let mut world = world();
    let (_, id) = generator(&mut world, &prompt(10, 1), options(Method::Argmax));
    world.step(id).unwrap().unwrap();
    world.pump();
    // There is no adapter to perturb.
    world.engine.set_zo_seed(id, 3).unwrap();
    assert!(world.engine.next_step(id).unwrap().is_some());
    let refused = world.submit(Submission::Step(id)).unwrap_err();
    assert_eq!(refused.code, ErrorCode::InvalidArgument);
}

// rows: RS-078 RS-085
#[test]
fn probes_of_every_step_and_of_one_are_read_in_the_order_in_which_they_were_attached() {
    let mut world = world();
    let (context, id) = generator(&mut world, &prompt(10, 1), options(Method::Argmax));
    let tokens = expected(&prompt(10, 1), 9);
    assert_eq!(
        world.engine.probe_each_step(id, 0, Probe::Entropy).unwrap(),
        0
    );
    let plain = world.step(id).unwrap().unwrap();
    assert_eq!((&plain.tokens[..], plain.readings.len()), (&tokens[..1], 1));
    // What ran ahead has read it too.
    world.pump();
    let second = world.step(id).unwrap().unwrap();
    assert_eq!(
        (&second.tokens[..], second.readings.len()),
        (&tokens[1..2], 1)
    );
    assert_eq!(world.engine.stats().n_ahead_used, 1);
    // Rows behind drafts are read as the rows of later steps would be.
    assert!(world.engine.next_step(id).unwrap().is_some());
    world.engine.draft(id, &tokens[2..4], &[12, 13]).unwrap();
    let named = Probe::Logprobs([tokens[4]].into());
    assert_eq!(world.engine.probe(id, 2, named).unwrap(), 1);
    assert_eq!(world.engine.probe(id, 1, Probe::Entropy).unwrap(), 2);
    let request = world.submit(Submission::Step(id)).unwrap();
    let third = output(world.wait(request).unwrap());
    assert_eq!(third.tokens, tokens[2..5]);
    let [first, Reading::Logprobs(logprobs), third] = &third.readings[..] else {
        panic!("{:?} has another order", third.readings);
    };
    assert!(entropy(first) > 0.0 && entropy(third) > 0.0 && logprobs[0] < 0.0);
    let (_, other) = generator(
        &mut world,
        &[&prompt(10, 1)[..], &tokens[..3]].concat(),
        options(Method::Argmax),
    );
    world
        .engine
        .probe_each_step(other, 0, Probe::Entropy)
        .unwrap();
    let alone = world.step(other).unwrap().unwrap();
    assert_eq!(&alone.readings[0], third);
    // A run reads nothing.
    world.engine.set_max_tokens(id, 7).unwrap();
    let rest = world.run(id).unwrap();
    assert_eq!((&rest.tokens[..], rest.readings.len()), (&tokens[5..7], 0));
    assert_eq!(world.engine.length(context).unwrap(), 17);
}

// rows: RS-084..086
#[test]
fn a_step_without_a_sampler_reads_rows_and_its_program_decides() {
    let mut world = world();
    let (context, id) = generator(&mut world, &prompt(10, 1), options(Method::Argmax));
    let tokens = expected(&prompt(10, 1), 3);
    world.engine.next_step(id).unwrap();
    world.engine.draft(id, &tokens[..2], &[10, 11]).unwrap();
    for row in 0..3 {
        world
            .engine
            .probe(
                id,
                row,
                Probe::Distribution {
                    temperature: 1.0,
                    k: 1,
                },
            )
            .unwrap();
    }
    world.engine.clear_sampler(id).unwrap();
    let request = world.submit(Submission::Step(id)).unwrap();
    let answer = output(world.wait(request).unwrap());
    let best: Vec<u32> = answer
        .readings
        .iter()
        .map(|reading| match reading {
            Reading::Distribution { tokens, .. } => tokens[0],
            other => panic!("{other:?} is not a distribution"),
        })
        .collect();
    assert_eq!((answer.tokens.len(), &best), (0, &tokens));
    assert_eq!(world.engine.seq_len(context).unwrap(), 10);
    assert_eq!(world.engine.accept(id, &best).unwrap(), best);
    let all = [&prompt(10, 1)[..], &best].concat();
    assert_eq!(world.step(id).unwrap().unwrap().tokens, expected(&all, 1));
    // Where all is computed, the last token is read again.
    let context = world.context(&prompt(10, 2));
    world.flush(context).unwrap();
    let id = world.generator(context, 5);
    world.engine.next_step(id).unwrap();
    world.engine.probe(id, 0, Probe::Entropy).unwrap();
    world.engine.clear_sampler(id).unwrap();
    let request = world.submit(Submission::Step(id)).unwrap();
    assert_eq!(output(world.wait(request).unwrap()).readings.len(), 1);
}

// rows: RS-078 RS-085
#[test]
fn what_cannot_be_read_is_refused() {
    let mut config = config();
    config.driver.embeddings = 0;
    let mut world = World::with_process(config, 7);
    let (_, id) = generator(&mut world, &prompt(10, 1), options(Method::Argmax));
    let many = vec![1; MAX_PROBED_TOKENS + 1];
    for (probe, code) in [
        (Probe::Logprobs([50].into()), ErrorCode::InvalidToken),
        (Probe::Logprobs(many.into()), ErrorCode::InvalidProbe),
        (Probe::Embedding, ErrorCode::Unsupported),
    ] {
        assert_eq!(
            world.engine.probe_each_step(id, 0, probe).unwrap_err().code,
            code
        );
    }
    let error = world.engine.probe(id, 0, Probe::Entropy).unwrap_err();
    assert_eq!(error.code, ErrorCode::StepPending);
    // The row of a draft that nobody made.
    world.engine.next_step(id).unwrap();
    world.engine.probe(id, 1, Probe::Entropy).unwrap();
    let error = world.submit(Submission::Step(id)).unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidArgument);
    world.engine.next_step(id).unwrap();
    for _ in 0..16 {
        let probe = Probe::Distribution {
            temperature: 0.5,
            k: 1,
        };
        world.engine.probe(id, 0, probe).unwrap();
    }
    let one_more = Probe::Distribution {
        temperature: 0.5,
        k: 1,
    };
    let error = world.engine.probe(id, 0, one_more).unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidArgument);
}

// rows: RS-075..077
#[test]
fn adapters_perturbations_and_horizons() {
    let mut served = config();
    served.driver.adapters = true;
    let mut world = World::with_process(served, 7);
    let tokens = |world: &mut World, adapter: Option<u64>, zo_seed: Option<u64>| {
        let (_, id) = generator(world, &prompt(10, 1), options(Method::Argmax));
        world.engine.set_max_tokens(id, 5).unwrap();
        if let Some(adapter) = adapter {
            world.engine.set_adapter(id, adapter, 0).unwrap();
        }
        if let Some(zo_seed) = zo_seed {
            world.engine.set_zo_seed(id, zo_seed).unwrap();
        }
        world.run(id).map(|output| output.tokens)
    };
    let plain = tokens(&mut world, None, None).unwrap();
    let adapted = tokens(&mut world, Some(1), None).unwrap();
    let perturbed = tokens(&mut world, Some(1), Some(5)).unwrap();
    assert!(plain != adapted && adapted != perturbed && perturbed != plain);
    assert_eq!(tokens(&mut world, Some(1), Some(5)).unwrap(), perturbed);
    let error = tokens(&mut world, None, Some(5)).unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidArgument);
    let mut unserved = config();
    unserved.driver.adapters = false;
    let mut world = World::with_process(unserved, 7);
    let (_, id) = generator(&mut world, &prompt(10, 1), options(Method::Argmax));
    for refused in [
        world.engine.set_adapter(id, 1, 0),
        world.engine.set_zo_seed(id, 1),
    ] {
        assert_eq!(refused.unwrap_err().code, ErrorCode::Unsupported);
    }
    let error = world.engine.set_horizon(id, 0).unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidArgument);
    // It is kept, and ends nothing.
    world.engine.set_horizon(id, 1).unwrap();
    assert_eq!(world.engine.horizon(id).unwrap(), Some(1));
    world.engine.set_max_tokens(id, 5).unwrap();
    assert_eq!(world.run(id).unwrap().tokens.len(), 5);
}

/// A prompt that repeats itself, and a temperature at which what is drawn does so too or does not.
fn drafted_world(follows: bool, chunk: u32) -> World {
    let mut config = config();
    config.driver.follows = follows;
    config.prefill_chunk = chunk;
    config.max_batch_tokens = chunk.max(2);
    World::with_process(config, 7)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whoever drafts what, at any temperature, in steps and in runs, however batches are cut: the tokens are those of
    /// the same generator without drafts.
    // rows: RS-073..074
    #[test]
    fn drafts_change_no_token(
        text in prop::collection::vec(0u32..4, 1..30),
        temperature in prop_oneof![Just(0.0f32), 0.1f32..2.0],
        seed in any::<u64>(),
        max_tokens in 1u32..40,
        drafts in prop::collection::vec((0usize..6, 0usize..6, 0u32..50), 0..40),
        chunk in 1u32..9,
        follows in any::<bool>(),
    ) {
        let made = |drafting| GeneratorOptions {
            seed: Some(seed),
            max_tokens: Some(max_tokens),
            drafting,
            // Few tokens, so that some stand as they stood before.
            token_mask: vec![0, 3],
            ..options(Method::TopP { temperature, p: 1.0 })
        };
        let mut world = drafted_world(follows, chunk);
        let (_, id) = generator(&mut world, &text, made(Drafting::None));
        let all = world.run(id).unwrap();
        // By the engine, in a run and in steps.
        let (_, id) = generator(&mut world, &text, made(Drafting::NGram));
        let run = world.run(id).unwrap();
        prop_assert_eq!((&run.tokens, run.finish), (&all.tokens, all.finish));
        let (_, id) = generator(&mut world, &text, made(Drafting::NGram));
        let (mut stepped, mut drafted) = (Vec::new(), Speculation::default());
        while let Some(output) = world.step(id).unwrap() {
            stepped.extend(output.tokens);
            drafted.n_drafted += output.speculation.n_drafted;
            drafted.n_accepted += output.speculation.n_accepted;
        }
        prop_assert_eq!(&stepped, &all.tokens);
        prop_assert_eq!(drafted, run.speculation);
        // By a program: first tokens that are right, and others.
        let (context, id) = generator(&mut world, &text, made(Drafting::None));
        let mut stepped: Vec<u32> = Vec::new();
        let mut drafts = drafts.into_iter();
        while stepped.len() < all.tokens.len() {
            let (n_right, n_wrong, wrong) = drafts.next().unwrap_or((1, 1, 49));
            let mut tokens: Vec<u32> = all.tokens[stepped.len()..].iter().take(n_right).copied().collect();
            tokens.extend(vec![wrong; n_wrong]);
            let output = draft(&mut world, id, context, &tokens);
            prop_assert!(!output.tokens.is_empty());
            stepped.extend(output.tokens);
        }
        prop_assert_eq!(&stepped, &all.tokens);
        prop_assert_eq!(world.engine.finish_reason(id).unwrap(), all.finish);
    }
}

// rows: RS-074
#[test]
fn a_text_that_repeats_itself_takes_few_batches_and_one_that_does_not_hardly_more() {
    let n_batches = |drafting, token_mask: Vec<u32>, n: u32| {
        let mut world = world();
        let made = GeneratorOptions {
            max_tokens: Some(n),
            token_mask,
            drafting,
            ..options(Method::Argmax)
        };
        let (_, id) = generator(&mut world, &prompt(10, 1), made);
        world.run(id).unwrap();
        let stats = world.engine.stats();
        (stats.n_batches, stats.n_tokens)
    };
    // One token alone may be drawn.
    let (n, _) = n_batches(Drafting::NGram, vec![7, 1], 400);
    assert!(n < 60, "{n} batches for 400 tokens");
    assert_eq!(n_batches(Drafting::None, vec![7, 1], 400).0, 400);
    let (plain, drafted) = (
        n_batches(Drafting::None, vec![], 400),
        n_batches(Drafting::NGram, vec![], 400),
    );
    assert!(drafted.0 <= plain.0, "{drafted:?} {plain:?}");
    assert!(drafted.1 <= plain.1 * 102 / 100, "{drafted:?} {plain:?}");
}

// rows: RS-071
#[test]
fn a_mask_of_a_step_that_cannot_be_fails_the_step_and_the_context_is_as_it_was() {
    for launches_first in [false, true] {
        let mut world = world();
        let (context, id) = generator(&mut world, &prompt(10, 1), options(Method::Argmax));
        world.engine.set_late_masks(id, true).unwrap();
        for mask in [&[50][..], &[0, 51], &[0; 60]] {
            world.engine.next_step(id).unwrap();
            let request = world.submit(Submission::Step(id)).unwrap();
            if launches_first {
                world.pump();
            }
            let mask = TokenMask::new(mask, 50);
            let error = world.engine.give_step_mask(request, mask).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidArgument);
            let error = world.wait(request).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidArgument);
            assert_eq!(world.engine.buffer(context).unwrap(), prompt(10, 1));
        }
        world.engine.next_step(id).unwrap();
        let request = world.submit(Submission::Step(id)).unwrap();
        let mask = |runs: &[u32]| TokenMask::new(runs, 50);
        let given = world.engine.give_step_mask(request, mask(&[7, 1]));
        given.unwrap();
        // A second one fails nothing.
        let given = world.engine.give_step_mask(request, mask(&[8, 1]));
        let error = given.unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidArgument);
        assert_eq!(output(world.wait(request).unwrap()).tokens, [7]);
    }
}

/// Sets an option of a generator.
type SetOption = fn(&mut World, GeneratorId);

// rows: RS-066 RS-069..070 RS-074..078 RS-083
#[test]
fn a_run_and_its_steps_draw_the_same_with_every_option() {
    let set: [(&str, SetOption); 9] = [
        ("nothing", |_, _| {}),
        ("stop", |world, id| {
            world.engine.set_stop(id, &[3, 7]).unwrap()
        }),
        ("add_stop", |world, id| {
            world.engine.add_stop(id, &[3, 7]).unwrap()
        }),
        ("ignore_eos", |world, id| {
            world.engine.ignore_eos(id, true).unwrap()
        }),
        ("seed", |world, id| world.engine.set_seed(id, 0).unwrap()),
        ("adapter", |world, id| {
            world.engine.set_adapter(id, 2, 1).unwrap()
        }),
        ("zo_seed", |world, id| {
            world.engine.set_adapter(id, 2, 1).unwrap();
            world.engine.set_zo_seed(id, 9).unwrap();
        }),
        ("horizon", |world, id| {
            world.engine.set_horizon(id, 2).unwrap()
        }),
        ("probe_each_step", |world, id| {
            world.engine.probe_each_step(id, 0, Probe::Entropy).unwrap();
        }),
    ];
    let sampler = options(Method::TopP {
        temperature: 1.0,
        p: 0.9,
    });
    for (what, set) in set {
        for (drafting, token_mask) in [
            (Drafting::None, vec![]),
            (Drafting::NGram, vec![]),
            (Drafting::None, vec![2, 9]),
            (Drafting::NGram, vec![2, 9]),
        ] {
            let draw = |steps: bool| {
                let mut config = config();
                (config.driver.adapters, config.end_tokens) = (true, vec![5]);
                let mut world = World::with_process(config, 7);
                let made = GeneratorOptions {
                    max_tokens: Some(30),
                    drafting,
                    token_mask: token_mask.clone(),
                    ..sampler.clone()
                };
                let (_, id) = generator(&mut world, &prompt(10, 1), made);
                set(&mut world, id);
                let mut tokens = Vec::new();
                if steps {
                    while let Some(output) = world.step(id).unwrap() {
                        tokens.extend(output.tokens);
                    }
                } else {
                    tokens = world.run(id).unwrap().tokens;
                }
                (tokens, world.engine.finish_reason(id).unwrap())
            };
            let run = draw(false);
            assert!(!run.0.is_empty() && run.1.is_some(), "{what}");
            assert_eq!(draw(true), run, "{what}, {drafting:?}, {token_mask:?}");
        }
    }
}

// rows: RS-083..085
#[test]
fn a_step_that_was_given_up_comes_again_with_all_that_was_wanted_of_it() {
    let text = expected(&prompt(10, 1), 3);
    let give_up: [fn(&mut World, pie_core::RequestId); 3] = [
        |world, request| world.engine.cancel(request),
        |world, request| {
            world.pump();
            world.engine.cancel(request);
        },
        |world, request| {
            assert!(world.plan());
            let batch = world.running.remove(0);
            let failure = pie_core::DriverFailure {
                message: "broken".into(),
            };
            world.answer(batch.id, Err(failure));
            let error = world.wait(request).unwrap_err();
            assert_eq!(error.code, ErrorCode::DriverFailed);
        },
    ];
    for give_up in give_up {
        for is_cleared in [false, true] {
            let mut world = world();
            let context = world.context(&prompt(10, 1));
            let id = world
                .engine
                .new_generator(context, options(Method::Argmax))
                .unwrap();
            world.engine.next_step(id).unwrap();
            if is_cleared {
                world.engine.clear_sampler(id).unwrap();
            }
            world.engine.draft(id, &text[..1], &[10]).unwrap();
            let argmax = Probe::Distribution {
                temperature: 1.0,
                k: 1,
            };
            for row in [0, 1] {
                world.engine.probe(id, row, argmax.clone()).unwrap();
            }
            let request = world.submit(Submission::Step(id)).unwrap();
            give_up(&mut world, request);
            assert_eq!(world.engine.next_step(id).unwrap(), Some(0));
            let request = world.submit(Submission::Step(id)).unwrap();
            let output = output(world.wait(request).unwrap());
            let drawn = if is_cleared { &[][..] } else { &text[..2] };
            assert_eq!(output.tokens, drawn);
            let read = output.readings.iter().map(|reading| match reading {
                Reading::Distribution { tokens, .. } => tokens[0],
                other => panic!("{other:?}"),
            });
            assert_eq!(read.collect::<Vec<u32>>(), text[..2]);
            // The next one is as every other.
            if is_cleared {
                world.engine.accept(id, &text[..2]).unwrap();
            }
            let next = world.step(id).unwrap().unwrap();
            assert_eq!((&next.tokens[..], next.readings.len()), (&text[2..], 0));
        }
    }
}

// rows: RS-084 RS-086
#[test]
fn drafts_of_a_step_that_draws_nothing_are_no_answer_though_all_of_them_are_known() {
    let mut world = world();
    let tokens = prompt(10, 1);
    let text = expected(&tokens, 3);
    let context = world.context(&tokens);
    let id = world
        .engine
        .new_generator(context, options(Method::Argmax))
        .unwrap();
    world.engine.next_step(id).unwrap();
    // With them a page is full, and known when the step comes again.
    world.engine.draft(id, &text[..2], &[10, 11]).unwrap();
    let request = world.submit(Submission::Step(id)).unwrap();
    world.pump();
    world.engine.cancel(request);
    world.engine.next_step(id).unwrap();
    world.engine.clear_sampler(id).unwrap();
    let request = world.submit(Submission::Step(id)).unwrap();
    assert_eq!(output(world.wait(request).unwrap()).tokens, [0; 0]);
    assert_eq!(world.engine.accept(id, &text[..1]).unwrap(), text[..1]);
    assert_eq!(world.step(id).unwrap().unwrap().tokens, text[1..2]);
}

/// How many tokens a step accepts is the same whether it was given up before, and whether anything ran ahead.
// rows: RS-074
#[test]
fn what_the_engine_drafts_depends_on_what_was_taken_alone() {
    let made = |run_ahead: bool, gives_up: fn(usize) -> bool| {
        let mut config = pie_core::EngineConfig {
            run_ahead,
            ..config()
        };
        (config.driver.vocab_size, config.driver.embeddings) = (3, 0);
        let mut world = World::with_process(config, 7);
        let context = world.context(&[0, 1, 2, 0]);
        let options = GeneratorOptions {
            drafting: Drafting::NGram,
            ..options(Method::Argmax)
        };
        let id = world.engine.new_generator(context, options).unwrap();
        world.engine.ignore_eos(id, true).unwrap();
        let mut steps = Vec::new();
        for n in 0..150 {
            world.engine.next_step(id).unwrap();
            if gives_up(n) {
                let request = world.submit(Submission::Step(id)).unwrap();
                world.pump();
                world.engine.cancel(request);
                world.engine.next_step(id).unwrap();
            }
            let request = world.submit(Submission::Step(id)).unwrap();
            let output = output(world.wait(request).unwrap());
            steps.push((output.tokens, output.speculation.n_drafted));
        }
        steps
    };
    let plain = made(true, |_| false);
    let n_drafted: u32 = plain.iter().map(|(_, n)| n).sum();
    assert!(
        (5..100).contains(&n_drafted),
        "it drafts and it rests: {n_drafted}"
    );
    assert_eq!(made(false, |_| false), plain);
    assert_eq!(made(true, |_| true), plain);
    assert_eq!(made(true, |n| n % 3 == 1), plain);
    assert_eq!(made(false, |n| n % 2 == 0), plain);
}

/// Rows are read though others computed, or came to have, all that the step has.
// rows: RS-084..085
#[test]
fn a_step_that_draws_nothing_reads_its_row_whatever_others_computed() {
    let mut world = world();
    let before = world.context(&prompt(12, 1));
    world.flush(before).unwrap();
    let context = world.context(&prompt(12, 1));
    let id = world.generator(context, 5);
    world.engine.next_step(id).unwrap();
    world.engine.clear_sampler(id).unwrap();
    world.engine.probe(id, 0, Probe::Entropy).unwrap();
    let request = world.submit(Submission::Step(id)).unwrap();
    let output = output(world.wait(request).unwrap());
    assert_eq!((output.tokens.len(), output.readings.len()), (0, 1));
}
