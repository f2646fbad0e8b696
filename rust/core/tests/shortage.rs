//! What becomes of requests that do not fit together.

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
    Capabilities, ContextId, EngineConfig, ErrorCode, Forward, GeneratorId, Input, Method,
    ProcessId, RequestId, RowRequest, Sampler, Submission, UserId,
};
use support::world::{World, config, expected, output, prompt};

/// Who comes back to the device computes a token of its own before it can be displaced again: else each of the two
/// would compute again what the other one took, and neither would come to its end.
#[test]
fn two_contexts_that_each_fill_the_pool_both_finish() {
    for (page_size, prefill_chunk) in [(4, 1), (4, 3), (5, 1), (5, 7), (1, 2)] {
        let narrow = EngineConfig {
            max_batch_tokens: prefill_chunk,
            prefill_chunk,
            max_batch_seqs: 1,
            driver: Capabilities {
                page_size,
                n_pages: 40 / page_size,
                ..config().driver
            },
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

/// Each step comes anew, and a run goes on: that is no reason to let it wait for all steps.
#[test]
fn a_run_to_its_end_goes_on_beside_those_who_step() {
    let narrow = EngineConfig {
        max_batch_seqs: 2,
        run_ahead: false,
        ..config()
    };
    let mut world = World::with_process(narrow, 9);
    let steppers = [1, 2, 3].map(|token| {
        let context = world.context(&[token]);
        world.generator(context, 1000)
    });
    let context = world.context(&[4]);
    let generator = world.generator(context, 5);
    let run = world.submit(Submission::Run(generator)).unwrap();
    let mut steps = [None; 3];
    for n_batches in 0.. {
        assert!(n_batches < 50, "the run waits for ever");
        for (step, generator) in steps.iter_mut().zip(steppers) {
            if step.is_none_or(|request| world.engine.take(request).is_some()) {
                world.engine.next_step(generator).unwrap();
                *step = Some(world.submit(Submission::Step(generator)).unwrap());
            }
        }
        assert!(world.plan());
        world.finish();
        if world.engine.take(run).is_some() {
            break;
        }
    }
}

/// What was computed again is worth it: contexts that outgrow the pool together take turns that are long enough.
#[test]
fn contexts_that_outgrow_the_pool_together_mostly_compute_what_is_new() {
    let narrow = EngineConfig {
        driver: Capabilities {
            n_pages: 30,
            page_size: 16,
            ..config().driver
        },
        ..config()
    };
    let mut world = World::with_process(narrow, 9);
    world.engine.checks = false;
    let generators: Vec<_> = (0..10)
        .map(|token| {
            let context = world.context(&[token; 8]);
            world.generator(context, 390)
        })
        .collect();
    let mut steps = vec![None; generators.len()];
    loop {
        let mut goes_on = false;
        for (step, &generator) in steps.iter_mut().zip(&generators) {
            if step.is_none_or(|request| world.engine.take(request).is_some()) {
                let opened = world.engine.next_step(generator).unwrap();
                *step = opened.map(|_| world.submit(Submission::Step(generator)).unwrap());
            }
            goes_on |= step.is_some();
        }
        if !goes_on {
            break;
        }
        assert!(world.plan());
        let batch = ArenaView::parse(&world.running[0].arena).unwrap();
        world.now_ns += 10_000 + 1_000 * batch.n_tokens() as u64;
        world.finish();
    }
    let stats = world.engine.stats();
    let n_new = 10 * (8 + 390);
    // Were they displaced as soon as they are back, it would be six tokens for each that is new.
    assert!(stats.n_tokens < 5 * n_new, "{stats:?}");
}

/// A pass that wants as many rows as a batch may have gets its turn beside those that want one each time.
#[test]
fn who_wants_many_rows_gets_its_turn() {
    let narrow = EngineConfig {
        max_batch_rows: 4,
        ..config()
    };
    let mut world = World::with_process(narrow, 9);
    let rows = |tokens: &[u32], n_rows| {
        let input = tokens.iter().map(|&token| Input {
            token,
            position: None,
        });
        let sampler = Sampler {
            method: Method::Argmax,
            seed: None,
        };
        let row = RowRequest {
            index: 0,
            sampler: Some(sampler),
            probes: vec![],
            late_mask: false,
        };
        Box::new(Forward {
            input: input.collect(),
            rows: vec![row; n_rows],
            ..Forward::default()
        })
    };
    let [often, once] = [0, 1].map(|_| world.context(&[]));
    let mut small = world
        .submit(Submission::Forward(often, rows(&[1], 1)))
        .unwrap();
    let wide = world
        .submit(Submission::Forward(once, rows(&[2, 3], 4)))
        .unwrap();
    for n_batches in 0.. {
        assert!(n_batches < 50, "the wide pass waits for ever");
        assert!(world.plan());
        world.finish();
        if world.engine.take(wide).is_some() {
            break;
        }
        if world.engine.take(small).is_some() {
            let next = Submission::Forward(often, rows(&[1], 1));
            small = world.submit(next).unwrap();
        }
    }
}

/// However many programs a user launches, others can have contexts and enter requests.
#[test]
fn one_user_leaves_room_for_others() {
    let mut world = World::new(EngineConfig {
        max_contexts: 8,
        max_waiting: 8,
        ..config()
    });
    for (process, user) in [(1, 1), (2, 1), (3, 1), (4, 2)] {
        let engine = &mut world.engine;
        engine
            .new_process(ProcessId(process), UserId(user), process)
            .unwrap();
    }
    let mut held = Vec::new();
    for process in [1, 1, 2, 2] {
        held.push(world.engine.new_context(ProcessId(process)).unwrap());
    }
    let error = world.engine.new_context(ProcessId(3)).unwrap_err();
    assert_eq!(error.code, ErrorCode::LimitResources);
    assert!(error.message.contains("max_user_contexts"), "{error}");
    world.engine.new_context(ProcessId(4)).unwrap();
    world.engine.release(held[0]);
    world.engine.new_context(ProcessId(3)).unwrap();
    // What a process held is free for the user when it ends.
    world.engine.end_process(ProcessId(2));
    world.engine.new_context(ProcessId(3)).unwrap();
    world.engine.check().unwrap();

    let mut narrow = World::new(EngineConfig {
        max_waiting: 2,
        ..config()
    });
    for (process, user) in [(1, 1), (2, 1), (3, 2)] {
        let engine = &mut narrow.engine;
        engine
            .new_process(ProcessId(process), UserId(user), process)
            .unwrap();
    }
    let mut enter = |process| {
        let context = narrow.engine.new_context(ProcessId(process)).unwrap();
        narrow.engine.append(context, &[1]).unwrap();
        narrow.submit(Submission::Flush(context))
    };
    let first = enter(1).unwrap();
    let error = enter(2).unwrap_err();
    assert_eq!(error.code, ErrorCode::LimitQueue);
    assert!(error.message.contains("max_user_waiting"), "{error}");
    enter(3).unwrap();
    narrow.wait(first).unwrap();
    let context = narrow.engine.new_context(ProcessId(2)).unwrap();
    narrow.flush(context).unwrap();
}

/// A context of another user, with that bid, which generates step by step for as long as it has tokens to draw.
struct Stepper {
    salt: u32,
    context: ContextId,
    bid: u64,
    generator: GeneratorId,
    step: Option<RequestId>,
}

impl Stepper {
    fn new(world: &mut World, process: u64, salt: u32, bid: u64, n_drawn: u32) -> Self {
        let context = world.engine.new_context(ProcessId(process)).unwrap();
        world.engine.append(context, &prompt(8, salt)).unwrap();
        let generator = world.generator(context, n_drawn);
        Self {
            salt,
            context,
            bid,
            generator,
            step: None,
        }
    }

    /// Asks for the next token where the last one came. False: there is none to come.
    fn goes_on(&mut self, world: &mut World) -> bool {
        let is_due = self
            .step
            .is_none_or(|step| world.engine.take(step).is_some());
        if is_due {
            world.engine.set_bid(self.context, self.bid).unwrap();
            let opened = world.engine.next_step(self.generator).unwrap();
            let submission = Submission::Step(self.generator);
            self.step = opened.map(|_| world.submit(submission).unwrap());
        }
        self.step.is_some()
    }
}

/// Whoever bids little, beside others who bid more and always come back for the pages, waits for 32 batches and not for
/// ever: then it goes first, and displaces whom it has to.
#[test]
fn who_was_refused_for_long_goes_first() {
    let narrow = EngineConfig {
        run_ahead: false,
        end_tokens: vec![],
        driver: Capabilities {
            n_pages: 10,
            ..config().driver
        },
        ..config()
    };
    let mut world = World::new(narrow);
    for (process, user) in [(1, 1), (2, 2)] {
        let engine = &mut world.engine;
        engine
            .new_process(ProcessId(process), UserId(user), 9)
            .unwrap();
    }
    world
        .engine
        .open_account(ProcessId(1), None, Some(1_000_000_000_000), 0);
    // Three of three pages each, which end at different times: of ten pages never more than four are free.
    let mut rich: Vec<Stepper> = (0..3)
        .map(|index| Stepper::new(&mut world, 1, index, 5, 1 + index))
        .collect();
    for stepper in &mut rich {
        assert!(stepper.goes_on(&mut world));
    }
    assert!(world.plan());
    world.finish();
    let poor = world.engine.new_context(ProcessId(2)).unwrap();
    world.engine.append(poor, &prompt(22, 40)).unwrap();
    let poor = world.submit(Submission::Flush(poor)).unwrap();
    let mut n_batches = 0;
    while world.engine.take(poor).is_none() {
        assert!(n_batches < 60, "it waits for ever");
        for stepper in &mut rich {
            if !stepper.goes_on(&mut world) {
                world.engine.release(stepper.context);
                *stepper = Stepper::new(&mut world, 1, stepper.salt + 3, 5, 4);
                assert!(stepper.goes_on(&mut world));
            }
        }
        assert!(world.plan());
        world.finish();
        n_batches += 1;
    }
    assert!(n_batches > 32, "it was never refused for long");
}

/// A program that was answered keeps the pages of its context for four times as long as it usually takes to come back,
/// within 1 and 16 limits of a hold; others who need them wait for that and no longer.
#[test]
fn who_is_expected_back_keeps_its_pages_for_a_while() {
    let narrow = EngineConfig {
        driver: Capabilities {
            n_pages: 4,
            ..config().driver
        },
        hold: Duration::from_nanos(1000),
        run_ahead: false,
        end_tokens: vec![],
        ..config()
    };
    for (usual_ns, kept_ns) in [(100, 1000), (500, 2000), (2000, 8000), (9000, 16_000)] {
        let mut world = World::with_process(narrow.clone(), 9);
        let context = world.context(&prompt(8, 0));
        let generator = world.generator(context, 4);
        world.step(generator).unwrap();
        world.now_ns += usual_ns;
        world.step(generator).unwrap();
        let answered_ns = world.now_ns;
        let other = world.context(&prompt(8, 1));
        world.flush(other).unwrap();
        assert_eq!(world.now_ns - answered_ns, kept_ns, "after {usual_ns} ns");
        assert_eq!(world.engine.stats().n_suspended, 1);
    }
    // A context of which nothing is known keeps them for one limit.
    let mut world = World::with_process(narrow, 9);
    let [context, other] = [0, 1].map(|salt| world.context(&prompt(12, salt)));
    world.flush(context).unwrap();
    world.flush(other).unwrap();
    assert_eq!(world.now_ns, 1000);
}

/// A request for which there is not enough room lets go of the pages that it found, so that a smaller one can have them
/// meanwhile, also one that may not displace it.
#[test]
fn who_has_to_wait_keeps_nothing_from_a_smaller_one() {
    let narrow = EngineConfig {
        driver: Capabilities {
            n_pages: 6,
            ..config().driver
        },
        ..config()
    };
    let mut world = World::with_process(narrow, 9);
    world
        .engine
        .open_account(ProcessId(1), None, Some(1_000_000_000_000), 0);
    // Two of its pages lie idle, and four are with a batch that runs.
    let large = world.context(&prompt(8, 0));
    world.flush(large).unwrap();
    world.engine.suspend(large).unwrap();
    let other = world.context(&prompt(16, 1));
    let other = world.submit(Submission::Flush(other)).unwrap();
    assert!(world.plan());
    world.engine.append(large, &prompt(8, 2)).unwrap();
    world.engine.set_bid(large, 5).unwrap();
    let large = world.submit(Submission::Flush(large)).unwrap();
    assert!(!world.plan());
    assert_eq!(world.engine.stats().n_pages_used, 4);
    let small = world.context(&[3]);
    world.engine.begin_idle(small).unwrap();
    let small = world.submit(Submission::Flush(small)).unwrap();
    assert!(world.plan(), "the small one waits for the large one");
    for request in [small, other, large] {
        world.wait(request).unwrap();
    }
}

#[test]
fn who_can_run_does_where_its_user_was_refused_and_the_others_lack_pages() {
    let mut world = World::with_process(
        EngineConfig {
            max_batch_seqs: 1,
            prefill_chunk: 5,
            run_ahead: false,
            driver: Capabilities {
                n_pages: 10,
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
    // A generation fills six pages and needs another one soon.
    let (long, other) = (prompt(23, 0), prompt(16, 1));
    let context = world.context(&long);
    world.flush(context).unwrap();
    let generator = world.generator(context, 5);
    let run = world.submit(Submission::Run(generator)).unwrap();
    assert!(world.plan());
    // Meanwhile a prefill of the same user takes the other four, and another user asks for one.
    let context = world.context(&other);
    let generator = world.generator(context, 1);
    let prefill = world.submit(Submission::Run(generator)).unwrap();
    assert!(world.plan());
    let context = world.context_of(ProcessId(2), &prompt(2, 2));
    let flush = world.submit(Submission::Flush(context)).unwrap();
    // The last token of the prefill needs no page, and what it gives up is enough for all.
    world.pump();
    let tokens = |world: &mut World, request| output(world.engine.take(request).unwrap().unwrap());
    assert_eq!(tokens(&mut world, prefill).tokens, expected(&other, 1));
    assert_eq!(tokens(&mut world, run).tokens, expected(&long, 5));
    assert!(world.engine.take(flush).unwrap().is_ok());
}
