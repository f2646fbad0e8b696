//! A device that is lost with all its pages: programs see that passes fail, and nothing else.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod support;

use std::sync::Arc;

use pie_core::{
    BatchId, Capabilities, EngineConfig, Error, ErrorCode, ProcessId, RequestId, Submission,
};
use support::world::{World, config, expected, output, prompt};

fn world(follows: bool) -> World {
    let config = EngineConfig {
        driver: Capabilities {
            follows,
            host_pages: 64,
            ..config().driver
        },
        ..config()
    };
    World::with_process(config, 1)
}

fn fails_with(world: &mut World, request: RequestId, code: ErrorCode) -> Error {
    assert!(world.ready.contains_key(&request), "{request:?} is ready");
    let error = world.engine.take(request).unwrap().unwrap_err();
    assert_eq!(error.code, code, "{error}");
    error
}

#[test]
fn what_runs_fails_what_waits_goes_on_and_a_retry_gets_the_same_tokens() {
    let config = EngineConfig {
        max_batch_seqs: 1,
        ..config()
    };
    let mut world = World::with_process(config, 1);
    let contexts = [0, 1].map(|salt| world.context(&prompt(10, salt)));
    let generators = contexts.map(|context| world.generator(context, 8));
    let [runs, waits] =
        generators.map(|generator| world.submit(Submission::Run(generator)).unwrap());
    for _ in 0..2 {
        assert!(world.plan());
        world.finish();
    }
    assert!(world.plan());
    world.lose();
    let failed = [runs, waits].map(|request| world.ready.contains_key(&request));
    assert_eq!(failed.iter().filter(|failed| **failed).count(), 1);
    for (index, request) in [runs, waits].into_iter().enumerate() {
        let tokens = if failed[index] {
            let error = fails_with(&mut world, request, ErrorCode::DriverLost);
            assert!(error.message.contains("it was killed"), "{error}");
            assert_eq!(world.engine.seq_len(contexts[index]).unwrap(), 0);
            world.run(generators[index]).unwrap().tokens
        } else {
            output(world.wait(request).unwrap()).tokens
        };
        assert_eq!(tokens, expected(&prompt(10, index as u32), 8));
    }
    assert_eq!(world.engine.stats().n_device_losses, 1);
}

#[test]
fn a_batch_that_follows_is_lost_with_the_one_before() {
    let mut world = world(true);
    let context = world.context(&prompt(6, 0));
    let generator = world.generator(context, 8);
    let request = world.submit(Submission::Run(generator)).unwrap();
    assert!(world.plan() && world.plan());
    assert_eq!(world.running.len(), 2);
    world.lose();
    fails_with(&mut world, request, ErrorCode::DriverLost);
    assert_eq!(
        world.run(generator).unwrap().tokens,
        expected(&prompt(6, 0), 8)
    );
}

#[test]
fn contexts_and_snapshots_are_computed_again_from_their_tokens() {
    let mut world = world(false);
    let context = world.context(&prompt(21, 0));
    world.flush(context).unwrap();
    let fork = world.engine.fork(context).unwrap();
    world.engine.append(fork, &prompt(5, 1)).unwrap();
    world.flush(fork).unwrap();
    world.engine.save(context, "kept", Arc::new(())).unwrap();
    world.engine.release(context);
    world.lose();
    let stats = world.engine.stats();
    assert_eq!((stats.n_pages_used, stats.n_pages_cached), (0, 0));
    let (opened, _) = world.engine.open_snapshot(ProcessId(1), "kept").unwrap();
    let longer = [prompt(21, 0), prompt(5, 1)].concat();
    for (context, tokens) in [(opened, prompt(21, 0)), (fork, longer)] {
        let generator = world.generator(context, 8);
        assert_eq!(world.run(generator).unwrap().tokens, expected(&tokens, 8));
    }
    assert!(world.engine.stats().n_replayed >= 21);
}

#[test]
fn what_was_copied_to_the_host_is_lost_too() {
    let config = EngineConfig {
        driver: Capabilities {
            n_pages: 8,
            host_pages: 64,
            copy_page_ns: 1,
            ..config().driver
        },
        ..config()
    };
    let mut world = World::with_process(config, 1);
    let first = world.context(&prompt(20, 0));
    world.flush(first).unwrap();
    world.now_ns += 1_000_000_000;
    let second = world.context(&prompt(20, 1));
    world.flush(second).unwrap();
    assert!(world.engine.stats().n_pages_host > 0, "nothing was copied");
    world.lose();
    assert_eq!(world.engine.stats().n_pages_host, 0);
    for (context, salt) in [(first, 0), (second, 1)] {
        world.now_ns += 1_000_000_000;
        let generator = world.generator(context, 4);
        assert_eq!(
            world.run(generator).unwrap().tokens,
            expected(&prompt(20, salt), 4)
        );
    }
}

#[test]
fn a_step_that_was_lost_is_yielded_again_with_the_same_token() {
    let mut world = world(false);
    let context = world.context(&prompt(6, 0));
    let generator = world.generator(context, 8);
    let (mut tokens, mut lost) = (Vec::new(), Vec::new());
    while let Some(number) = world.engine.next_step(generator).unwrap() {
        let request = world.submit(Submission::Step(generator)).unwrap();
        // The token of a step that had run ahead is there already; what is lost then is computed again unseen.
        let was_ready = world.ready.contains_key(&request);
        if !lost.contains(&number) && world.plan() {
            lost.push(number);
            world.lose();
            if !was_ready && world.ready.contains_key(&request) {
                fails_with(&mut world, request, ErrorCode::DriverLost);
                continue;
            }
        }
        tokens.extend(output(world.wait(request).unwrap()).tokens);
    }
    assert!(lost.len() > 1, "{lost:?}");
    assert_eq!(tokens, expected(&prompt(6, 0), 8));
}

#[test]
fn a_batch_that_was_lost_is_not_answered() {
    let mut world = world(false);
    let context = world.context(&prompt(6, 0));
    let request = world.submit(Submission::Flush(context)).unwrap();
    assert!(world.plan());
    let batch: BatchId = world.running[0].id;
    let jobs = world.running[0].jobs.clone();
    world.lose();
    fails_with(&mut world, request, ErrorCode::DriverLost);
    let now_ns = world.now_ns;
    let answered = world
        .engine
        .complete(batch, Ok(jobs.sample(&[], &[])), now_ns);
    assert_eq!(answered.unwrap_err().code, ErrorCode::Internal);
    world.flush(context).unwrap();
}

#[test]
fn where_nothing_may_be_asked_everything_fails_at_once_until_it_may() {
    let mut world = world(false);
    let context = world.context(&prompt(6, 0));
    let generator = world.generator(context, 4);
    let waits = world.submit(Submission::Run(generator)).unwrap();
    let reason = Error::new(ErrorCode::ModelUnavailable, "it ends too often");
    world.engine.refuse(Some(reason.clone()));
    for request in world.engine.drain_ready() {
        world.ready.insert(request, ());
    }
    assert_eq!(
        fails_with(&mut world, waits, ErrorCode::ModelUnavailable),
        reason
    );
    let refused = world.submit(Submission::Run(generator)).unwrap_err();
    assert_eq!(refused, reason);
    assert_eq!(world.engine.next_step(generator).unwrap(), Some(0));
    let refused = world.submit(Submission::Step(generator)).unwrap_err();
    assert_eq!(refused, reason);
    assert!(!world.plan());
    world.engine.refuse(None);
    assert_eq!(world.engine.next_step(generator).unwrap(), Some(0));
    let first = world.submit(Submission::Step(generator)).unwrap();
    let first = output(world.wait(first).unwrap()).tokens;
    assert_eq!(first, expected(&prompt(6, 0), 1));
}
