//! Batches that are planned while the one runs that draws their tokens.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod support;

use std::time::Duration;

use pie_core::batch::ArenaView;
use pie_core::batch::layout::Field;
use pie_core::{
    Adapter, Answer, Capabilities, ContextId, DriverFailure, EngineConfig, Error, ErrorCode,
    FinishReason, Forward, GeneratorId, GeneratorOptions, Method, Probe, ProcessId, Reading,
    RequestId, RowRequest, Submission, TokenBudget,
};
use support::world::{MODEL, World, config, expected, options, output, prompt};
use support::{row_of, write_plain};

fn following() -> EngineConfig {
    EngineConfig {
        driver: Capabilities {
            follows: true,
            ..config().driver
        },
        ..config()
    }
}

/// An engine that waits for its driver for a microsecond.
fn impatient() -> EngineConfig {
    EngineConfig {
        driver_timeout: Duration::from_nanos(1000),
        ..following()
    }
}

fn world() -> World {
    World::with_process(following(), 1)
}

/// The tokens of each sequence of a batch that runs that its driver has to draw by itself.
fn n_followers(world: &World, index: usize) -> usize {
    let batch = &world.running[index];
    let view = ArenaView::parse(&batch.arena).unwrap();
    let n = view.sequences().filter(|it| it.follows.is_some()).count();
    assert_eq!(view.before().is_some(), n > 0);
    n
}

fn take(world: &mut World, request: RequestId) -> Result<Answer, Error> {
    world.engine.take(request).expect("the request is ready")
}

/// A text, and a run of eight tokens behind it, of which a batch runs and one follows.
struct Run {
    tokens: Vec<u32>,
    context: ContextId,
    generator: GeneratorId,
    request: RequestId,
}

impl Run {
    fn begin(world: &mut World, salt: u32) -> Self {
        let tokens = prompt(6, salt);
        let context = world.context(&tokens);
        let generator = world.generator(context, 8);
        let request = world.submit(Submission::Run(generator)).unwrap();
        Self {
            tokens,
            context,
            generator,
            request,
        }
    }

    /// Tries again after it failed or was cancelled.
    fn again(&mut self, world: &mut World) {
        self.request = world.submit(Submission::Run(self.generator)).unwrap();
    }

    /// It is ready, and has the tokens that it always has.
    fn end(self, world: &mut World) {
        let answer = output(take(world, self.request).unwrap());
        assert_eq!(answer.tokens, expected(&self.tokens, 8));
        world.engine.release(self.context);
    }
}

fn failure() -> DriverFailure {
    DriverFailure {
        message: "lost".to_owned(),
    }
}

#[test]
fn the_next_batch_is_there_before_the_one_that_runs_is_answered() {
    let mut world = world();
    let prompts: Vec<Vec<u32>> = (0..3).map(|salt| prompt(5 + salt, salt)).collect();
    let mut requests = Vec::new();
    for tokens in &prompts {
        let context = world.context(tokens);
        let generator = world.generator(context, 20);
        requests.push(world.submit(Submission::Run(generator)).unwrap());
    }
    assert!(world.plan());
    assert_eq!(n_followers(&world, 0), 0);
    for _ in 1..20 {
        assert!(world.plan());
        assert_eq!(n_followers(&world, 1), 3);
        assert!(!world.plan(), "one batch ahead is enough");
        world.finish();
    }
    // Nothing follows the last token that may be drawn.
    assert!(!world.plan());
    world.finish();
    for (tokens, request) in prompts.iter().zip(requests) {
        let output = output(take(&mut world, request).unwrap());
        assert_eq!(output.tokens, expected(tokens, 20));
    }
    let stats = world.engine.stats();
    assert_eq!((stats.n_batches, stats.n_followers), (20, 57));
    assert_eq!(stats.n_tokens, 5 + 6 + 7 + 57);
}

#[test]
fn a_driver_that_does_not_feed_itself_gets_no_second_batch() {
    let mut world = World::with_process(config(), 1);
    let context = world.context(&prompt(5, 0));
    let generator = world.generator(context, 3);
    let _request = world.submit(Submission::Run(generator)).unwrap();
    assert!(world.plan());
    assert!(!world.plan());
}

#[test]
fn what_follows_a_stop_token_is_dropped() {
    let mut world = world();
    let tokens = prompt(7, 0);
    let context = world.context(&tokens);
    let all = expected(&tokens, 10);
    let stop = *all.iter().find(|&token| !all[..2].contains(token)).unwrap();
    let n = 1 + all.iter().position(|&token| token == stop).unwrap();
    let generator = world
        .engine
        .new_generator(
            context,
            GeneratorOptions {
                stop: vec![stop],
                ..options(Method::Argmax)
            },
        )
        .unwrap();
    let output = world.run(generator).unwrap();
    assert_eq!(
        (output.tokens, output.finish),
        (all[..n].to_vec(), Some(FinishReason::Stop))
    );
    // The program goes on behind it as if nothing had been computed beyond.
    let more = prompt(3, 9);
    world.engine.append(context, &more).unwrap();
    let text = [&tokens[..], &all[..n], &more].concat();
    let generator = world.generator(context, 6);
    assert_eq!(world.run(generator).unwrap().tokens, expected(&text, 6));
    assert_eq!(
        world.engine.seq_len(context).unwrap() as usize,
        text.len() + 6
    );
}

#[test]
fn steps_are_followed_too_and_a_fork_sees_none_of_it() {
    let mut world = world();
    let tokens = prompt(6, 0);
    let context = world.context(&tokens);
    let generator = world.generator(context, 12);
    let mut drawn = Vec::new();
    for _ in 0..4 {
        world.engine.next_step(generator).unwrap().unwrap();
        let request = world.submit(Submission::Step(generator)).unwrap();
        loop {
            while world.engine.stats().n_in_flight < 2 && world.plan() {}
            if world.ready.contains_key(&request) {
                break;
            }
            world.finish();
        }
        drawn.extend(output(take(&mut world, request).unwrap()).tokens);
        // The batch that follows runs still.
        let fork = world.engine.fork(context).unwrap();
        assert_eq!(
            world.engine.length(fork).unwrap() as usize,
            tokens.len() + drawn.len()
        );
        world.engine.release(fork);
    }
    assert_eq!(drawn, expected(&tokens, 4));
    assert!(world.engine.stats().n_followers > 0);
    let fork = world.engine.fork(context).unwrap();
    let other = world.generator(fork, 5);
    let text = [&tokens[..], &drawn].concat();
    assert_eq!(world.run(other).unwrap().tokens, expected(&text, 5));
}

#[test]
fn a_batch_that_fails_takes_down_what_follows_and_nothing_else() {
    let mut world = world();
    let mut run = Run::begin(&mut world, 0);
    world.plan();
    // Another one begins in the batch that follows.
    let other = Run::begin(&mut world, 3);
    world.plan();
    assert_eq!(n_followers(&world, 1), 1);
    let first = world.running.remove(0);
    world.answer(first.id, Err(failure()));
    let error = take(&mut world, run.request).unwrap_err();
    assert_eq!(error.code, ErrorCode::DriverFailed);
    // It tries again while the batch that followed runs still.
    run.again(&mut world);
    world.pump();
    run.end(&mut world);
    other.end(&mut world);
}

#[test]
fn what_follows_a_request_that_is_cancelled_is_dropped_with_it() {
    let mut world = world();
    let mut run = Run::begin(&mut world, 0);
    world.plan();
    world.plan();
    world.engine.cancel(run.request);
    world.finish();
    run.again(&mut world);
    world.pump();
    run.end(&mut world);
    assert_eq!(world.engine.stats().n_pages_used, 0);
}

#[test]
fn what_is_answered_before_the_batch_that_it_follows_is_drawn_again() {
    let mut world = world();
    let run = Run::begin(&mut world, 0);
    world.plan();
    world.plan();
    let (batch, logits) = world.compute(1);
    world.conclude(&batch, &logits, &[]);
    // The rows of the batch that runs are not its driver's last any more.
    assert!(!world.plan());
    world.pump();
    run.end(&mut world);
}

#[test]
fn what_follows_is_overdue_by_when_it_began_to_run() {
    let mut world = World::with_process(impatient(), 1);
    let mut run = Run::begin(&mut world, 0);
    world.plan();
    world.plan();
    world.now_ns += 900;
    world.finish();
    // Not by when it was planned.
    assert_eq!(world.hang(900), 0);
    assert_eq!(world.hang(200), 1);
    let error = take(&mut world, run.request).unwrap_err();
    assert_eq!(error.code, ErrorCode::DriverFailed);
    assert!(!world.plan());
    run.again(&mut world);
    world.pump();
    run.end(&mut world);
}

#[test]
fn a_batch_that_waits_behind_another_is_overdue_by_when_it_began_to_run() {
    let mut world = World::with_process(
        EngineConfig {
            max_batch_tokens: 4,
            prefill_chunk: 4,
            ..impatient()
        },
        1,
    );
    // A part of a prompt draws nothing, so that nothing follows it.
    let long = world.context(&prompt(8, 0));
    let first = world.submit(Submission::Flush(long)).unwrap();
    let other = world.context(&prompt(4, 1));
    let second = world.submit(Submission::Flush(other)).unwrap();
    assert!(world.plan() && world.plan());
    assert_eq!(n_followers(&world, 1), 0);
    world.now_ns += 900;
    world.finish();
    assert_eq!(world.hang(900), 0);
    world.pump();
    assert_eq!(take(&mut world, first).unwrap(), Answer::Flushed);
    assert_eq!(take(&mut world, second).unwrap(), Answer::Flushed);
    // Each ran for 900 ns at the most.
    assert!(world.engine.stats().batch_us.max() < 2);
}

#[test]
fn a_device_that_hangs_with_two_batches_fails_both_and_goes_on() {
    for order in [[0, 0], [1, 0]] {
        let mut world = World::with_process(impatient(), 1);
        let mut run = Run::begin(&mut world, 0);
        world.plan();
        let mut other = Run::begin(&mut world, 3);
        world.plan();
        assert_eq!(world.hang(1000), 2);
        for run in [&mut run, &mut other] {
            let error = take(&mut world, run.request).unwrap_err();
            assert_eq!(error.code, ErrorCode::DriverFailed);
            run.again(&mut world);
        }
        for index in order {
            assert!(!world.plan(), "a driver that hangs gets nothing");
            let (batch, logits) = world.compute(index);
            world.conclude(&batch, &logits, &[]);
        }
        world.pump();
        run.end(&mut world);
        other.end(&mut world);
        assert_eq!(world.engine.stats().n_pages_used, 0);
    }
}

#[test]
fn equal_texts_are_merged_and_no_batch_loses_a_page_that_it_has() {
    let mut world = world();
    let runs = [0; 3].map(|salt| Run::begin(&mut world, salt));
    world.plan();
    world.plan();
    assert_eq!(n_followers(&world, 1), 3);
    // The first page is of one content now, and the batch that runs still has it in three places.
    world.finish();
    let other = Run::begin(&mut world, 5);
    world.plan();
    let [running, next] =
        [0, 1].map(|index| ArenaView::parse(&world.running[index].arena).unwrap());
    let used = running.field(Field::KvIndices);
    let joined = next.sequences().find(|sequence| sequence.follows.is_none());
    for page in joined.unwrap().pages {
        assert!(!used.contains(page), "page {page} is in use");
    }
    world.finish();
    // Three tails, the page that they share, and two pages of the other.
    assert_eq!(world.engine.stats().n_pages_used, 3 + 1 + 2);
    world.pump();
    for run in runs {
        run.end(&mut world);
    }
    other.end(&mut world);
    assert_eq!(world.engine.stats().n_pages_used, 0);
}

#[test]
fn what_programs_do_between_two_answers_changes_no_token() {
    type Deed = fn(&mut World, &Run);
    let deeds: [Deed; 4] = [
        |world, run| world.engine.release(run.context),
        |world, _| world.engine.end_process(ProcessId(1)),
        |world, run| {
            world.engine.cancel(run.request);
            world.engine.append(run.context, &[7]).unwrap();
        },
        |world, run| {
            world.engine.cancel(run.request);
            world.engine.suspend(run.context).unwrap();
        },
    ];
    for deed in deeds {
        let mut world = world();
        let run = Run::begin(&mut world, 0);
        world.plan();
        world.plan();
        deed(&mut world, &run);
        world.finish();
        world.check();
        world.pump();
        world.engine.end_process(ProcessId(1));
        assert_eq!(world.engine.stats().n_pages_used, 0);
        assert_eq!(world.engine.stats().n_followers_dropped, 1);
    }
}

#[test]
fn nothing_follows_the_last_token_that_fits() {
    let limits = [
        EngineConfig {
            driver: Capabilities {
                max_positions: 8,
                ..following().driver
            },
            ..following()
        },
        EngineConfig {
            driver: Capabilities {
                n_pages: 2,
                ..following().driver
            },
            ..following()
        },
    ];
    for config in limits {
        let mut world = World::with_process(config, 1);
        let tokens = prompt(7, 0);
        let context = world.context(&tokens);
        let generator = world.generator(context, 9);
        let _request = world.submit(Submission::Run(generator)).unwrap();
        world.plan();
        let follows = world.plan();
        assert_eq!(follows, world.engine.config().driver.max_positions > 8);
        world.pump();
        assert_eq!(world.engine.stats().n_in_flight, 0);
    }
}

#[test]
fn a_page_that_others_hold_is_copied_before_anything_follows() {
    let mut world = world();
    let tokens = prompt(6, 0);
    let context = world.context(&tokens);
    world.flush(context).unwrap();
    let fork = world.engine.fork(context).unwrap();
    let more = prompt(1, 5);
    world.engine.append(fork, &more).unwrap();
    let generator = world.generator(fork, 6);
    let request = world.submit(Submission::Run(generator)).unwrap();
    world.plan();
    assert!(!world.plan(), "the batch that runs makes the copy");
    world.pump();
    let answer = output(take(&mut world, request).unwrap());
    assert_eq!(answer.tokens, expected(&[tokens, more].concat(), 6));
}

#[test]
fn a_budget_that_others_spend_meanwhile_is_kept() {
    let mut world = world();
    let budget = TokenBudget::new(12);
    world.engine.set_token_budget(ProcessId(1), budget);
    let run = Run::begin(&mut world, 0);
    world.plan();
    world.plan();
    // Six of twelve went with the text; five of the rest go now.
    let _other = world.context(&prompt(5, 1));
    world.pump();
    let error = take(&mut world, run.request).unwrap_err();
    assert_eq!(error.code, ErrorCode::TokenBudget);
}

#[test]
fn what_is_read_beside_a_sequence_that_fails_stays_with_its_pass() {
    let mut world = world();
    let mut run = Run::begin(&mut world, 1);
    assert!(world.plan());
    // Both passes are in the batch that follows: the run, which fails with the batch before, and one that is read.
    let read = prompt(7, 2);
    let context = world.context(&read);
    let rows = vec![RowRequest {
        index: 0,
        sampler: None,
        probes: vec![Probe::Logits],
        late_mask: false,
    }];
    let forward = Forward {
        rows,
        ..Forward::default()
    };
    let submission = Submission::Forward(context, Box::new(forward));
    let request = world.submit(submission).unwrap();
    assert!(world.plan());
    assert_eq!(n_followers(&world, 1), 1);
    let failed = world.running.remove(0);
    world.answer(failed.id, Err(failure()));
    world.pump();
    assert!(take(&mut world, run.request).is_err());
    let Ok(Answer::Forwarded(rows)) = take(&mut world, request) else {
        panic!("the other pass does not fail");
    };
    let slots = [write_plain(&[], read[0], Adapter::default())];
    let expected = row_of(MODEL, 50, &slots[0]);
    assert_eq!(rows[0].readings, [Reading::Logits(expected.into())]);
    run.again(&mut world);
    world.pump();
    run.end(&mut world);
}
