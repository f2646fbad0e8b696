//! What forward passes do that programs put together by themselves, each on the dummy driver.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod support;

use std::cmp::Reverse;

use pie_core::batch::ArenaView;
use pie_core::sampling::{Key, Params};
use pie_core::{
    Adapter, Answer, Capabilities, ContextId, EngineConfig, Error, ErrorCode, Forward, Input,
    Method, PageCounts, Probe, ProcessId, Reading, RequestId, RowOutput, RowRequest, Sampler,
    Submission, TokenBudget,
};
use support::probing::{near, read};
use support::sampling::drawn as sampled;
use support::world::{MODEL, World, config, expected, output, prompt};
use support::{Slot, derived_seed, row_of, state_of, write, write_plain};

const P: ProcessId = ProcessId(1);
const LORA: Adapter = Adapter {
    id: 7,
    version: 2,
    zo_seed: Some(5),
};

fn forward(tokens: &[u32]) -> Forward {
    let input = tokens.iter().map(|&token| Input {
        token,
        position: None,
    });
    Forward {
        input: input.collect(),
        ..Forward::default()
    }
}

fn kept(index: u32) -> RowRequest {
    RowRequest {
        index,
        sampler: None,
        probes: vec![Probe::Logits],
        late_mask: false,
    }
}

fn drawn(index: u32, method: Method, seed: Option<u64>) -> RowRequest {
    RowRequest {
        index,
        sampler: Some(Sampler { method, seed }),
        probes: vec![],
        late_mask: false,
    }
}

fn run(world: &mut World, context: ContextId, forward: Forward) -> Result<Vec<RowOutput>, Error> {
    let request = world.submit(Submission::Forward(context, Box::new(forward)))?;
    match world.wait(request)? {
        Answer::Forwarded(rows) => Ok(rows),
        other => panic!("a forward pass was answered with {other:?}"),
    }
}

/// The row itself, where it was read.
fn values(row: &RowOutput) -> Option<&[f32]> {
    row.readings.iter().find_map(|reading| match reading {
        Reading::Logits(values) => Some(&**values),
        _ => None,
    })
}

fn code(outcome: Result<Vec<RowOutput>, Error>) -> ErrorCode {
    outcome.unwrap_err().code
}

fn slots(tokens: &[u32], adapter: Adapter) -> Vec<Slot> {
    let mut slots = Vec::new();
    for &token in tokens {
        slots.push(write_plain(&slots, token, adapter));
    }
    slots
}

fn logits(slot: &Slot) -> Vec<f32> {
    row_of(MODEL, 50, slot)
}

// rows: RS-089 RS-093..094 RS-097 RS-100
#[test]
fn rows_come_in_the_order_in_which_they_were_asked_for_and_each_has_a_slot_of_its_own() {
    let mut world = World::with_process(config(), 9);
    let context = world.context(&[1, 2, 3]);
    let hot = Method::Multinomial {
        temperature: 1.0,
        draws: 1,
    };
    let asked = Forward {
        rows: vec![
            drawn(1, hot, None),
            kept(0),
            drawn(0, Method::Argmax, None),
            drawn(1, hot, None),
        ],
        ..forward(&[4, 5])
    };
    let rows = run(&mut world, context, asked).unwrap();
    let slots = slots(&[1, 2, 3, 4, 5], Adapter::default());
    let seed = derived_seed(9, 0, &[1, 2, 3], 0);
    let params = hot.params().unwrap();
    let token = |row: &Slot, params: &Params, position, slot| {
        let key = Key {
            seed,
            position,
            slot,
            draw: 0,
        };
        sampled(&logits(row), params, &[], key).unwrap()
    };
    assert_eq!(rows[0].tokens, [token(&slots[4], &params, 5, 0)]);
    assert_eq!(values(&rows[1]), Some(&logits(&slots[3])[..]));
    assert_eq!(rows[2].tokens, [token(&slots[3], &Params::ARGMAX, 4, 1)]);
    assert_eq!(rows[3].tokens, [token(&slots[4], &params, 5, 2)]);
    assert_eq!(world.engine.tail(context, 10).unwrap(), [1, 2, 3, 4, 5]);
    assert_eq!(world.engine.seq_len(context).unwrap(), 5);
}

// rows: RS-092 RS-094 RS-102..105 RS-119 RS-126
#[test]
fn probes_read_the_raw_row_whatever_is_drawn_and_masked() {
    let mut world = World::with_process(config(), 9);
    let context = world.context(&[1, 2, 3]);
    let probes = vec![
        Probe::Embedding,
        Probe::Entropy,
        Probe::Distribution {
            temperature: 0.5,
            k: 3,
        },
        Probe::Logprobs([4, 49].into()),
        Probe::Logits,
        Probe::Embedding,
    ];
    let masked = RowRequest {
        probes: probes.clone(),
        ..drawn(1, Method::Argmax, None)
    };
    let alone = RowRequest {
        probes: probes[..1].to_vec(),
        ..kept(0)
    };
    let asked = Forward {
        rows: vec![masked, alone],
        token_mask: vec![7, 1],
        ..forward(&[4, 5])
    };
    let rows = run(&mut world, context, asked).unwrap();
    // The hidden state and the logits of the one, and the hidden state of the other.
    assert_eq!(world.engine.stats().n_rows, 3);
    let slots = slots(&[1, 2, 3, 4, 5], Adapter::default());
    let (row, state) = (logits(&slots[4]), state_of(MODEL, 50, &slots[4]));
    assert_eq!(rows[0].tokens, [7]);
    let mut both = rows[0].readings.iter().zip(&probes);
    assert!(both.all(|(reading, probe)| near(reading, &read(&row, &state, probe))));
    let state = state_of(MODEL, 50, &slots[3]);
    assert_eq!(rows[1].readings, [Reading::Embedding(state.into())]);
}

// rows: RS-094 RS-122..125
#[test]
fn what_probes_may_ask_for_is_bounded() {
    let mut world = World::with_process(config(), 9);
    let context = world.context(&[]);
    let distribution = |temperature, k| Probe::Distribution { temperature, k };
    let invalid = ErrorCode::InvalidProbe;
    for (probe, n, code, part) in [
        (distribution(0.0, 1), 1, invalid, "temperature = 0"),
        (distribution(1.0, 51), 1, invalid, "k = 51"),
        (
            Probe::Logprobs([].into()),
            1,
            invalid,
            "number of tokens = 0",
        ),
        (
            Probe::Logprobs([50].into()),
            1,
            ErrorCode::InvalidToken,
            "token 50",
        ),
        (
            distribution(1.0, 1),
            17,
            ErrorCode::InvalidArgument,
            "17 distributions",
        ),
        (
            Probe::Entropy,
            1025,
            ErrorCode::InvalidArgument,
            "1025 probes",
        ),
    ] {
        // All of one row, or each of a row of its own.
        let own = RowRequest {
            probes: vec![probe.clone()],
            ..kept(0)
        };
        let one = RowRequest {
            probes: vec![probe; n],
            ..kept(0)
        };
        for rows in [vec![one], vec![own; n]] {
            let asked = Forward {
                rows,
                ..forward(&[1])
            };
            let error = run(&mut world, context, asked).unwrap_err();
            assert_eq!(error.code, code, "{error}");
            assert!(error.message.contains(part), "{error}");
        }
    }
    assert_eq!(world.engine.stats().n_batches, 0);
}

// rows: RS-090..091 RS-095
#[test]
fn positions_masks_and_adapters_reach_the_driver_and_stay_with_their_tokens() {
    let mut world = World::with_process(config(), 9);
    let context = world.context(&[1, 2]);
    let mut asked = Forward {
        masks: vec![vec![], vec![1, 3], vec![0, 1, 3, 1]],
        adapter: LORA,
        rows: vec![kept(2)],
        ..forward(&[3, 4, 5])
    };
    asked.input[1].position = Some(40);
    let rows = run(&mut world, context, asked).unwrap();
    let mut expected = slots(&[1, 2, 3], LORA);
    expected.push(write(&expected, 4, 40, vec![false, true, true, true], LORA));
    let seen = vec![true, false, false, false, true];
    expected.push(write(&expected, 5, 4, seen, LORA));
    assert_eq!(values(&rows[0]), Some(&logits(&expected[4])[..]));
    // A later pass without an adapter sees them as they were written, also when they have to be computed again.
    world.engine.suspend(context).unwrap();
    let others = world.context(&[7; 1020]);
    world.flush(others).unwrap();
    assert!(world.engine.stats().n_evicted + world.engine.stats().n_dropped > 0);
    let asked = Forward {
        rows: vec![kept(0)],
        ..forward(&[6])
    };
    let rows = run(&mut world, context, asked).unwrap();
    let last = write_plain(&expected, 6, Adapter::default());
    assert_eq!(values(&rows[0]), Some(&logits(&last)[..]));
}

// rows: RS-095..096
#[test]
fn pages_are_shared_by_those_who_wrote_the_same_and_by_no_others() {
    let mut world = World::with_process(config(), 9);
    let with = |adapter| Forward {
        adapter,
        ..forward(&[1, 2, 3, 4, 5, 6, 7, 8])
    };
    let mut n_computed = |adapter| {
        let before = world.engine.stats().n_tokens;
        let context = world.context(&[]);
        run(&mut world, context, with(adapter)).unwrap();
        world.engine.stats().n_tokens - before
    };
    assert_eq!(n_computed(LORA), 8);
    assert_eq!(n_computed(LORA), 0);
    let others = [
        Adapter { id: 8, ..LORA },
        Adapter { version: 3, ..LORA },
        Adapter {
            zo_seed: None,
            ..LORA
        },
    ];
    assert_eq!(others.map(n_computed), [8, 8, 8]);
}

// rows: RS-094
#[test]
fn tokens_whose_rows_are_wanted_are_computed_though_they_are_known() {
    let mut world = World::with_process(config(), 9);
    let tokens: Vec<u32> = (0..16).collect();
    let known = world.context(&tokens);
    world.flush(known).unwrap();
    let context = world.context(&[]);
    let asked = Forward {
        rows: vec![kept(9)],
        ..forward(&tokens)
    };
    let before = world.engine.stats().n_tokens;
    let rows = run(&mut world, context, asked).unwrap();
    // Pages of 4: the first two are there, and from the page of the wanted row on the batch computes.
    assert_eq!(world.engine.stats().n_tokens - before, 8);
    let slots = slots(&tokens, Adapter::default());
    assert_eq!(values(&rows[0]), Some(&logits(&slots[9])[..]));
}

// rows: RS-089..094 RS-096..097
#[test]
fn a_pass_that_is_wrong_is_refused_by_name_and_changes_nothing() {
    let mut world = World::with_process(config(), 9);
    let context = world.context(&[]);
    let mut refused = |forward: Forward| run(&mut world, context, forward).unwrap_err();
    let two = || forward(&[1, 2]);
    let mut far = two();
    far.input[0].position = Some(4096);
    let wrong = [
        (Forward::default(), "has no tokens"),
        (far, "position 4096"),
        (
            Forward {
                rows: vec![kept(2)],
                ..two()
            },
            "behind token 2",
        ),
        (
            Forward {
                masks: vec![vec![]],
                ..two()
            },
            "2 tokens has 1 attention masks",
        ),
        (
            Forward {
                masks: vec![vec![], vec![0, 3]],
                ..two()
            },
            "covers 3 elements",
        ),
        (
            Forward {
                masks: vec![vec![1, 1], vec![]],
                ..two()
            },
            "the token at 0 allows none",
        ),
        (
            Forward {
                token_mask: vec![50],
                ..two()
            },
            "the token mask allows nothing",
        ),
        (
            Forward {
                rows: vec![kept(0); 257],
                ..two()
            },
            "at most 256",
        ),
        (
            Forward {
                adapter: Adapter {
                    zo_seed: Some(1),
                    ..Adapter::default()
                },
                ..two()
            },
            "zo_seed 1 perturbs an adapter",
        ),
    ];
    for (forward, part) in wrong {
        let error = refused(forward);
        assert_eq!(error.code, ErrorCode::InvalidArgument, "{error}");
        assert!(error.message.contains(part), "{error}");
    }
    assert_eq!(refused(forward(&[50])).code, ErrorCode::InvalidToken);
    assert_eq!(refused(forward(&[1; 4097])).code, ErrorCode::ContextFull);
    assert_eq!(world.engine.length(context).unwrap(), 0);
    assert_eq!(world.engine.stats().n_batches, 0);
}

// rows: RS-090..091 RS-095
#[test]
fn what_the_driver_does_not_serve_is_refused_by_name() {
    let config = EngineConfig {
        driver: Capabilities {
            masks: false,
            positions: false,
            adapters: false,
            embeddings: 0,
            ..config().driver
        },
        ..config()
    };
    let mut world = World::with_process(config, 9);
    let context = world.context(&[]);
    let mut placed = forward(&[1]);
    placed.input[0].position = Some(0);
    let masked = Forward {
        masks: vec![vec![0, 1]],
        ..forward(&[1])
    };
    let adapted = Forward {
        adapter: LORA,
        ..forward(&[1])
    };
    let embedded = Forward {
        rows: vec![RowRequest {
            probes: vec![Probe::Embedding],
            ..kept(0)
        }],
        ..forward(&[1])
    };
    for wrong in [placed, masked, adapted, embedded] {
        assert_eq!(
            code(run(&mut world, context, wrong)),
            ErrorCode::Unsupported
        );
    }
    run(&mut world, context, forward(&[1])).unwrap();
}

// rows: RS-089 RS-097
#[test]
fn tokens_of_a_pass_count_against_the_budget_when_they_enter() {
    let mut world = World::with_process(config(), 9);
    world.engine.set_token_budget(P, TokenBudget::new(5));
    let context = world.context(&[1, 2]);
    assert_eq!(
        code(run(&mut world, context, forward(&[1; 4]))),
        ErrorCode::TokenBudget
    );
    let request = world
        .submit(Submission::Forward(context, Box::new(forward(&[1; 3]))))
        .unwrap();
    world.engine.cancel(request);
    run(&mut world, context, forward(&[1; 3])).unwrap();
    assert_eq!(
        code(run(&mut world, context, forward(&[1]))),
        ErrorCode::TokenBudget
    );
}

// rows: RS-056..062
#[test]
fn working_pages_are_the_programs_to_commit_and_to_drop() {
    let mut world = World::with_process(config(), 9);
    let context = world.context(&[]);
    let asked = Forward {
        leaves_working_pages: true,
        ..forward(&[1, 2, 3, 4, 5, 6])
    };
    run(&mut world, context, asked).unwrap();
    let counts = |world: &World, n_committed, n_working, n_last| {
        let counts = world.engine.page_counts(context).unwrap();
        assert_eq!(
            counts,
            PageCounts {
                n_committed,
                n_working,
                n_last
            }
        );
    };
    counts(&world, 0, 2, 2);
    world.engine.reserve_working_pages(context, 3).unwrap();
    counts(&world, 0, 5, 2);
    let error = world.engine.commit_working_pages(context, 2).unwrap_err();
    assert!(error.message.contains("1 are full"), "{error}");
    world.engine.commit_working_pages(context, 1).unwrap();
    counts(&world, 1, 4, 2);
    world
        .engine
        .truncate_working_page_tokens(context, 9)
        .unwrap();
    counts(&world, 1, 4, 0);
    world.engine.release_working_pages(context, 9).unwrap();
    counts(&world, 1, 0, 0);
    assert_eq!(world.engine.tail(context, 9).unwrap(), [1, 2, 3, 4]);
    let error = world
        .engine
        .reserve_working_pages(context, 1000)
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::OutOfPages);
}

// rows: RS-055
#[test]
fn committed_pages_are_dropped_from_the_end_and_stay_with_who_shares_them() {
    let mut world = World::with_process(config(), 9);
    let tokens: Vec<u32> = (0..14).collect();
    let context = world.context(&tokens);
    world.flush(context).unwrap();
    let fork = world.engine.fork(context).unwrap();
    let refused = |world: &mut World, n| {
        let error = world.engine.drop_committed_pages(context, n).unwrap_err();
        assert_eq!(error.code, ErrorCode::TruncateRange);
        error.message
    };
    assert!(refused(&mut world, 1).contains("2 tokens stand behind"));
    world.engine.truncate(context, 2).unwrap();
    assert!(refused(&mut world, 4).contains("3 are committed"));
    let generator = world.generator(context, 1);
    world.engine.reserve_working_pages(context, 2).unwrap();
    world.engine.drop_committed_pages(context, 2).unwrap();
    world.check();
    assert_eq!(world.engine.tail(context, 20).unwrap(), tokens[..4]);
    let counts = world.engine.page_counts(context).unwrap();
    let expected = PageCounts {
        n_committed: 1,
        n_working: 2,
        n_last: 0,
    };
    assert_eq!(counts, expected);
    let step = world.step(generator).unwrap_err();
    assert_eq!(step.code, ErrorCode::GeneratorRetired);
    // Who shares the pages has them: nothing is computed again but the tokens behind the full ones.
    let asked = |row| Forward {
        rows: vec![kept(0)],
        ..forward(&[row])
    };
    let before = world.engine.stats().n_tokens;
    let rows = run(&mut world, fork, asked(30)).unwrap();
    assert_eq!(world.engine.stats().n_tokens - before, 1);
    let whole = slots(&[&tokens[..], &[30]].concat(), Adapter::default());
    assert_eq!(values(&rows[0]), Some(&logits(&whole[14])[..]));
    let rows = run(&mut world, context, asked(31)).unwrap();
    let short = slots(&[&tokens[..4], &[31]].concat(), Adapter::default());
    assert_eq!(values(&rows[0]), Some(&logits(&short[4])[..]));
    let request = Submission::Flush(context);
    world.engine.append(context, &[1]).unwrap();
    let request = world.submit(request).unwrap();
    let busy = world.engine.drop_committed_pages(context, 0).unwrap_err();
    assert_eq!(busy.code, ErrorCode::ContextBusy);
    world.wait(request).unwrap();
    world.engine.release(context);
    let gone = world.engine.drop_committed_pages(context, 0).unwrap_err();
    assert_eq!(gone.code, ErrorCode::ContextReleased);
}

/// What a context has cut is in the arena before; what it finds computed in its place is not.
// rows: RS-049 RS-089
#[test]
fn pages_that_come_in_the_place_of_others_are_in_the_next_arena() {
    let mut world = World::with_process(config(), 9);
    let other = world.context(&[1, 2, 3, 4, 9, 9, 9, 9]);
    world.flush(other).unwrap();
    let context = world.context(&[]);
    for tokens in [&[1, 2, 3, 4, 5, 6, 7, 8, 5][..], &[6]] {
        let asked = Forward {
            leaves_working_pages: true,
            ..forward(tokens)
        };
        run(&mut world, context, asked).unwrap();
    }
    world.engine.truncate(context, 6).unwrap();
    let asked = Forward {
        rows: vec![kept(4)],
        ..forward(&[9, 9, 9, 9, 8])
    };
    let rows = run(&mut world, context, asked).unwrap();
    let whole = slots(&[1, 2, 3, 4, 9, 9, 9, 9, 8], Adapter::default());
    let expected = row_of(MODEL, 50, &whole[8]);
    assert_eq!(values(&rows[0]), Some(&expected[..]));
}

// rows: RS-093
#[test]
fn a_batch_has_no_more_rows_than_the_driver_takes() {
    let narrow = EngineConfig {
        driver: Capabilities {
            max_batch_tokens: 4,
            ..config().driver
        },
        ..config()
    };
    let mut world = World::with_process(narrow, 9);
    let writer = world.context(&prompt(3, 0));
    let generator = world.generator(writer, 20);
    let written = world.submit(Submission::Run(generator)).unwrap();
    // Six rows of two tokens are more than a batch may have, and the three of one token leave room for one more.
    let readers: Vec<RequestId> = (0..3)
        .map(|_| {
            let reader = world.context(&[]);
            let pass = Forward {
                rows: [0, 0, 0, 1, 1, 1]
                    .map(|index| drawn(index, Method::Argmax, None))
                    .to_vec(),
                ..forward(&[1, 2])
            };
            world
                .submit(Submission::Forward(reader, Box::new(pass)))
                .unwrap()
        })
        .collect();
    // The world looks at every batch.
    world.pump();
    for reader in readers {
        match world.wait(reader).unwrap() {
            Answer::Forwarded(rows) => assert_eq!(rows.len(), 6),
            other => panic!("a forward pass was answered with {other:?}"),
        }
    }
    let drawn = output(world.wait(written).unwrap()).tokens;
    assert_eq!(drawn, expected(&prompt(3, 0), 20));
    let crowded = Forward {
        rows: vec![kept(0); 5],
        ..forward(&[1])
    };
    let reader = world.context(&[]);
    let refused = run(&mut world, reader, crowded);
    assert_eq!(code(refused), ErrorCode::InvalidArgument);
}

#[test]
fn what_forward_passes_keep_is_bounded() {
    let mut world = World::with_process(
        EngineConfig {
            max_batch_rows: 1 << 16,
            driver: Capabilities {
                vocab_size: 1 << 20,
                ..config().driver
            },
            ..config()
        },
        1,
    );
    let rows = |n: usize| Forward {
        rows: vec![kept(0); n],
        ..forward(&[1])
    };
    // 4 MiB a row: 64 of them are as many as a program may keep.
    let contexts: Vec<ContextId> = (0..3).map(|_| world.context(&[])).collect();
    let mut enter = |context: usize, n| {
        let asked = Submission::Forward(contexts[context], Box::new(rows(n)));
        world.submit(asked).map_err(|error| error.code)
    };
    enter(0, 40).unwrap();
    assert_eq!(enter(1, 25).unwrap_err(), ErrorCode::LimitResources);
    let second = enter(1, 24).unwrap();
    assert_eq!(enter(2, 1).unwrap_err(), ErrorCode::LimitResources);
    world.engine.cancel(second);
    let third = Submission::Forward(contexts[2], Box::new(rows(24)));
    world.submit(third).unwrap();
}

/// However a pass ends, what it holds no longer counts; what is refused never did.
#[test]
fn what_a_pass_keeps_counts_until_it_ends() {
    let mut world = World::with_process(
        EngineConfig {
            max_batch_rows: 1 << 16,
            driver: Capabilities {
                vocab_size: 1 << 20,
                ..config().driver
            },
            ..config()
        },
        1,
    );
    let whole = |context: ContextId| {
        let asked = Forward {
            rows: vec![kept(0); 64],
            ..forward(&[1])
        };
        Submission::Forward(context, Box::new(asked))
    };
    let [cancelled, released, last] = [(); 3].map(|()| world.context(&[]));
    let first = world.submit(whole(cancelled)).unwrap();
    let refused = world.submit(whole(released)).unwrap_err();
    assert_eq!(refused.code, ErrorCode::LimitResources);
    world.engine.cancel(first);
    let second = world.submit(whole(released)).unwrap();
    assert!(world.submit(whole(last)).is_err());
    world.engine.release(released);
    assert!(world.wait(second).is_err());
    world.submit(whole(last)).unwrap();
    world.engine.end_process(P);
    world.check();
}

/// However it is written down, a mask that allows every token is none: what was computed without one is found.
// rows: RS-091
#[test]
fn an_attention_mask_that_allows_everything_is_none() {
    let mut world = World::with_process(config(), 9);
    let plain = world.context(&prompt(8, 0));
    world.flush(plain).unwrap();
    for (n, full) in [(4, &[0, 8][..]), (8, &[0, 3, 0, 5])] {
        let context = world.context(&[]);
        let asked = Forward {
            masks: vec![full.to_vec(); 8],
            rows: vec![kept(7)],
            ..forward(&prompt(8, 0))
        };
        let rows = run(&mut world, context, asked).unwrap();
        let slots = slots(&prompt(8, 0), Adapter::default());
        assert_eq!(values(&rows[0]), Some(&logits(&slots[7])[..]));
        assert_eq!(world.engine.stats().n_reused, n);
    }
}

// rows: RS-091
#[test]
fn the_runs_of_an_attention_mask_are_bounded() {
    let mut world = World::with_process(
        EngineConfig {
            driver: Capabilities {
                n_pages: 600,
                ..config().driver
            },
            ..config()
        },
        1,
    );
    let context = world.context(&[1; 2000]);
    world.flush(context).unwrap();
    let mut pass = |n_runs: usize| {
        let masks = vec![vec![1; n_runs]];
        let asked = Forward {
            masks,
            ..forward(&[1])
        };
        world.submit(Submission::Forward(context, Box::new(asked)))
    };
    let error = pass(1025).unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidArgument);
    assert!(error.message.contains("1025 runs"), "{error}");
    pass(1024).unwrap();
}

// rows: RS-058
#[test]
fn an_empty_page_is_released_without_what_is_pending() {
    let mut world = World::with_process(config(), 1);
    let context = world.context(&prompt(4, 0));
    let generator = world.generator(context, 1);
    let drawn = world.run(generator).unwrap().tokens;
    // The token that was drawn will lie in a page of its own.
    world.engine.reserve_working_pages(context, 2).unwrap();
    world.engine.release_working_pages(context, 2).unwrap();
    let text = [prompt(4, 0), drawn].concat();
    assert_eq!(world.engine.tail(context, 9).unwrap(), text);
    let generator = world.generator(context, 3);
    assert_eq!(world.run(generator).unwrap().tokens, expected(&text, 3));
}

#[test]
fn under_shortage_the_lowest_bid_gives_way() {
    let tight = EngineConfig {
        driver: Capabilities {
            n_pages: 12,
            ..config().driver
        },
        ..config()
    };
    for bids in [[0, 0, 0], [0, 1, 2], [0, 2, 1], [1, 0, 2]] {
        let mut world = World::with_process(tight.clone(), 9);
        world
            .engine
            .open_account(P, None, Some(1_000_000_000_000), 0);
        // Each fills a third of the pool to the last slot, and goes on with a token for which there is no page.
        let contexts = [0, 15, 30].map(|first| {
            let prompt: Vec<u32> = (first..first + 16).collect();
            let context = world.context(&prompt);
            world.flush(context).unwrap();
            context
        });
        let requests = [0, 1, 2].map(|index| {
            world.engine.set_bid(contexts[index], bids[index]).unwrap();
            let pass = Box::new(forward(&[40 + index as u32]));
            world
                .submit(Submission::Forward(contexts[index], pass))
                .unwrap()
        });
        assert!(world.plan());
        let view = ArenaView::parse(&world.running[0].arena).unwrap();
        let running: Vec<u32> = view.sequences().map(|it| it.tokens[0]).collect();
        let lowest = (0..3).min_by_key(|&index| (bids[index], Reverse(index)));
        let others = (0..3).filter(|&index| Some(index) != lowest);
        let others: Vec<u32> = others.map(|index| 40 + index as u32).collect();
        assert_eq!(running, others, "{bids:?}");
        world.pump();
        for request in requests {
            world.engine.take(request).expect("it ran").unwrap();
        }
    }
}

#[test]
fn whoever_comes_when_too_many_wait_is_told_when_to_come_back() {
    let narrow = EngineConfig {
        max_waiting: 1,
        max_process_waiting: 10,
        max_user_waiting: 10,
        ..config()
    };
    let mut world = World::with_process(narrow, 9);
    let [one, other] = [[1], [2]].map(|tokens| world.context(&tokens));
    world.now_ns = 30_000_000;
    let request = world
        .submit(Submission::Forward(one, Box::new(forward(&[3]))))
        .unwrap();
    assert!(world.plan());
    world.now_ns += 25_000_000;
    world.wait(request).unwrap();
    world.now_ns += 3_600_000_000_000;
    let waiting = Submission::Forward(one, Box::new(forward(&[4])));
    world.submit(waiting).unwrap();
    let error = world.submit(Submission::Flush(other)).unwrap_err();
    assert_eq!(error.code, ErrorCode::LimitQueue);
    assert!(
        error
            .message
            .ends_with("in about 25 ms, or raise max_waiting"),
        "{error}"
    );
    assert!(error.details.contains("\"retry_after_ms\":25"), "{error:?}");
}

/// Each distribution goes over a whole row, while the driver waits.
// rows: RS-093
#[test]
fn a_batch_reads_no_more_distributions_than_it_may_have_rows() {
    let few = EngineConfig {
        max_batch_rows: 8,
        ..config()
    };
    let all = |temperature: u32| Probe::Distribution {
        temperature: 1.0 + temperature as f32,
        k: 1,
    };
    let row = |index, n| RowRequest {
        index,
        sampler: None,
        probes: (0..n).map(all).collect(),
        late_mask: false,
    };
    for (n_probes, n_batches) in [(1, 1), (4, 3), (5, 6), (16, 6)] {
        let mut world = World::with_process(few.clone(), 9);
        let context = world.context(&[]);
        let asked = Forward {
            rows: (0..6).map(|index| row(index, n_probes)).collect(),
            ..forward(&[1, 2, 3, 4, 5, 6])
        };
        let rows = run(&mut world, context, asked).unwrap();
        assert!(rows.iter().all(|it| it.readings.len() == n_probes as usize));
        assert_eq!(world.engine.stats().n_batches, n_batches, "{n_probes}");
        world.check();
    }
    // Steps of several generations, each of which reads some.
    let mut world = World::with_process(few, 9);
    let requests: Vec<RequestId> = (0..4)
        .map(|salt| {
            let context = world.context(&prompt(5, salt));
            let generator = world.generator(context, 4);
            for temperature in 0..5 {
                let probe = all(temperature);
                world.engine.probe_each_step(generator, 0, probe).unwrap();
            }
            world.engine.next_step(generator).unwrap();
            world.submit(Submission::Step(generator)).unwrap()
        })
        .collect();
    for request in requests {
        assert_eq!(output(world.wait(request).unwrap()).readings.len(), 5);
    }
    assert!(world.engine.stats().n_batches >= 4);
}

/// Nobody is charged for what the pages of a context that is gone take in the memory of the host.
// rows: RS-090
#[test]
fn pages_with_long_masks_are_kept_for_nobody() {
    // Of 100 slots every other one is shown, or a few stretches.
    let every_other: Vec<u32> = vec![1; 100];
    let stretches = vec![10, 40, 10, 40];
    for (mask, is_kept) in [(stretches, true), (every_other, false)] {
        let mut world = World::with_process(config(), 9);
        let context = world.context(&prompt(90, 0));
        world.flush(context).unwrap();
        let n_plain = 90 / 4;
        let asked = Forward {
            masks: vec![mask; 10],
            ..forward(&prompt(10, 3))
        };
        run(&mut world, context, asked).unwrap();
        // What stands behind them keeps them, too.
        run(&mut world, context, forward(&prompt(20, 4))).unwrap();
        world.engine.release(context);
        let n_cached = world.engine.stats().n_pages_cached;
        let n_all = if is_kept { 120 / 4 } else { n_plain };
        assert_eq!(n_cached, n_all, "{is_kept}");
        world.check();
    }
}

// rows: RS-090
#[test]
fn masks_that_were_read_before_are_those_that_are_read_then() {
    let masks = vec![vec![0, 3, 1, 20], vec![1, 3], vec![]];
    let asked = Forward {
        masks,
        rows: vec![kept(2)],
        ..forward(&[4, 5, 6])
    };
    let mut answers = Vec::new();
    for slots in [None, Some(0), Some(1)] {
        let mut world = World::with_process(config(), 9);
        let context = world.context(&[1, 2, 3]);
        let mut asked = asked.clone();
        asked.masks[0] = vec![0, 3, 1, 2];
        if let Some(beyond) = slots {
            let slots = world.engine.masked_slots(context, &asked).unwrap();
            assert_eq!(slots, 3..6);
            // Those of other slots are read again.
            asked.read_masks(slots.start + beyond..slots.end + beyond);
        }
        let rows = run(&mut world, context, asked).unwrap();
        answers.push(values(&rows[0]).unwrap().to_vec());
    }
    assert!(answers.iter().all(|it| *it == answers[0]));
    let mut world = World::with_process(config(), 9);
    let context = world.context(&[1, 2, 3]);
    let mut bad = Forward {
        masks: vec![vec![0]; 3],
        ..asked
    };
    let slots = world.engine.masked_slots(context, &bad).unwrap();
    bad.read_masks(slots);
    assert_eq!(
        code(run(&mut world, context, bad)),
        ErrorCode::InvalidArgument
    );
}
