//! Batches that are planned while the one runs that draws their tokens.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod support;

use pie_core::batch::ArenaView;
use pie_core::{
    Answer, ContextId, DriverFailure, EngineConfig, Error, ErrorCode, FinishReason, GeneratorId,
    GeneratorOptions, Method, RequestId, Serves, Submission,
};
use support::world::{World, config, expected, options, output, prompt};

fn following() -> EngineConfig {
    EngineConfig {
        serves: Serves {
            follows: true,
            ..Serves::default()
        },
        ..config()
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
    world.answer(batch.id, Ok(batch.jobs.sample(&logits, &[])));
    // The rows of the batch that runs are not its driver's last any more.
    assert!(!world.plan());
    world.pump();
    run.end(&mut world);
}

#[test]
fn what_follows_is_overdue_by_when_it_began_to_run() {
    let mut world = World::with_process(
        EngineConfig {
            driver_timeout_ns: 1000,
            ..following()
        },
        1,
    );
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
