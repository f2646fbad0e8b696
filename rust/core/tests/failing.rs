//! Drivers that fail, hang or answer nonsense: their requests fail, and nothing else.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod support;

use std::time::Duration;

use pie_core::{
    Batch, ContextId, DriverFailure, EngineConfig, ErrorCode, GeneratorId, RequestId, SettingNames,
    Submission,
};
use support::world::{World, config, expected, output, prompt};

/// The batch that is planned now.
fn planned(world: &mut World) -> Batch {
    assert!(world.plan());
    world.running.last().unwrap().clone()
}

#[test]
fn a_driver_that_hangs_fails_its_requests_and_gets_nothing_else() {
    let timeout_ns = 1000;
    let mut world = World::with_process(
        EngineConfig {
            driver_timeout: Duration::from_nanos(timeout_ns),
            names: SettingNames {
                driver_timeout: "the patience with drivers",
                ..SettingNames::default()
            },
            ..config()
        },
        1,
    );
    let contexts = [0, 1].map(|salt| world.context(&prompt(10, salt)));
    let generators = contexts.map(|context| world.generator(context, 4));
    let requests = generators.map(|generator| world.submit(Submission::Run(generator)).unwrap());
    let late = planned(&mut world);
    let n_reserved = world.engine.stats().n_pages_used;
    assert_eq!(world.engine.overdue_ns(), Some(timeout_ns));
    assert_eq!(world.hang(timeout_ns - 1), 0);
    assert_eq!(world.hang(1), 1);
    assert_eq!(world.hang(timeout_ns), 0, "it is abandoned once");
    assert_eq!(world.engine.overdue_ns(), None);
    for request in requests {
        assert!(world.ready.contains_key(&request));
        let error = world.engine.take(request).unwrap().unwrap_err();
        assert_eq!(error.code, ErrorCode::DriverFailed);
        for part in ["0.000001 s", "the patience with drivers"] {
            assert!(error.message.contains(part), "{}", error.message);
        }
    }
    // Contexts are as they were, and good for everything that takes no batch.
    assert_eq!(world.engine.seq_len(contexts[0]).unwrap(), 0);
    assert_eq!(world.engine.buffer(contexts[0]).unwrap(), prompt(10, 0));
    let fork = world.engine.fork(contexts[0]).unwrap();
    world.engine.release(contexts[1]);
    let again = [contexts[0], fork].map(|context| {
        let generator = world.generator(context, 4);
        world.submit(Submission::Run(generator)).unwrap()
    });
    assert!(!world.plan(), "it runs already");
    let stats = world.engine.stats();
    assert_eq!(
        (stats.n_stuck, stats.n_in_flight, stats.n_failed_batches),
        (1, 1, 1)
    );
    assert_eq!(stats.n_pages_used, n_reserved, "the batch may still write");
    // What it answers too late is dropped.
    let (batch, logits) = world.compute(0);
    assert_eq!(batch.id, late.id);
    world.conclude(&batch, &logits, &[]);
    let stats = world.engine.stats();
    assert_eq!((stats.n_stuck, stats.n_pages_used), (0, 0));
    for request in again {
        let tokens = output(world.wait(request).unwrap()).tokens;
        assert_eq!(tokens, expected(&prompt(10, 0), 4));
    }
}

#[test]
fn every_kind_of_late_answer_is_dropped() {
    type Answer = fn(&mut World);
    let answers: [Answer; 3] = [
        |world| {
            let (batch, _) = world.compute(0);
            world.answer(batch.id, Ok(batch.jobs.sample(&[], &[])));
        },
        |world| {
            let batch = world.running.remove(0);
            let message = "the device is gone".to_owned();
            world.answer(batch.id, Err(DriverFailure { message }));
        },
        |world| {
            let (batch, logits) = world.compute(0);
            world.conclude(&batch, &logits, &[]);
        },
    ];
    for answer in answers {
        // The second batch of the generation hangs: what the first computed goes, too.
        let mut world = World::with_process(config(), 1);
        let context = world.context(&prompt(10, 0));
        let generator = world.generator(context, 4);
        let request = world.submit(Submission::Run(generator)).unwrap();
        world.plan();
        world.finish();
        world.plan();
        assert_eq!(world.hang(config().driver_timeout.as_nanos() as u64), 1);
        // The request is not taken before the answer is there: it is failed once.
        answer(&mut world);
        let error = world.engine.take(request).unwrap().unwrap_err();
        assert_eq!(error.code, ErrorCode::DriverFailed);
        assert!(error.message.contains("within 60 s"), "{}", error.message);
        assert_eq!(world.engine.length(context).unwrap(), 10);
        assert_eq!(
            world.run(generator).unwrap().tokens,
            expected(&prompt(10, 0), 4)
        );
    }
}

#[test]
fn a_failed_batch_fails_its_requests_and_nothing_else() {
    let mut world = World::with_process(config(), 1);
    let contexts: Vec<ContextId> = (0..3).map(|salt| world.context(&prompt(6, salt))).collect();
    let generators: Vec<GeneratorId> = contexts
        .iter()
        .map(|&context| world.generator(context, 5))
        .collect();
    let requests: Vec<RequestId> = generators
        .iter()
        .map(|&generator| world.submit(Submission::Run(generator)).unwrap())
        .collect();
    world.plan();
    world.finish();
    world.plan();
    let batch = world.running.remove(0);
    world.answer(
        batch.id,
        Err(DriverFailure {
            message: "the device is lost".to_owned(),
        }),
    );
    for (request, &context) in requests.into_iter().zip(&contexts) {
        let error = world.engine.take(request).unwrap().unwrap_err();
        assert_eq!(error.code, ErrorCode::DriverFailed);
        assert!(error.message.contains("the device is lost"), "{error}");
        assert_eq!(
            (
                world.engine.seq_len(context).unwrap(),
                world.engine.buffer(context).unwrap().len()
            ),
            (0, 6)
        );
    }
    assert_eq!(world.engine.stats().n_pages_used, 0);
    for (salt, &generator) in generators.iter().enumerate() {
        assert_eq!(
            world.run(generator).unwrap().tokens,
            expected(&prompt(6, salt as u32), 5)
        );
    }
}

#[test]
fn bad_logits_fail_one_request() {
    let mut world = World::with_process(
        EngineConfig {
            run_ahead: false,
            ..config()
        },
        1,
    );
    let contexts: Vec<ContextId> = (0..3).map(|salt| world.context(&prompt(6, salt))).collect();
    let generators: Vec<GeneratorId> = contexts
        .iter()
        .map(|&context| world.generator(context, 9))
        .collect();
    for (bad, good_rows) in [(f32::NAN, 3), (f32::INFINITY, 3), (0.0, 1)] {
        let requests: Vec<RequestId> = generators
            .iter()
            .map(|&generator| {
                world.engine.next_step(generator).unwrap();
                world.submit(Submission::Step(generator)).unwrap()
            })
            .collect();
        world.plan();
        let (batch, mut logits) = world.compute(0);
        logits[50 + 7] = if bad == 0.0 { logits[50 + 7] } else { bad };
        logits.truncate(good_rows * 50);
        world.conclude(&batch, &logits, &[]);
        for (row, request) in requests.into_iter().enumerate() {
            let answer = world.engine.take(request).unwrap();
            let fails = if bad == 0.0 {
                row >= good_rows
            } else {
                row == 1
            };
            assert_eq!(answer.is_err(), fails, "row {row}");
            if let Err(error) = answer {
                assert_eq!(error.code, ErrorCode::BadLogits);
                world.step(generators[row]).unwrap();
            }
        }
    }
    for (salt, &context) in contexts.iter().enumerate() {
        let all = prompt(6, salt as u32);
        assert_eq!(world.engine.tail(context, 3).unwrap(), expected(&all, 3));
    }
}

#[test]
fn an_answer_of_the_wrong_shape_or_batch_is_refused() {
    let mut world = World::with_process(config(), 1);
    let context = world.context(&prompt(6, 0));
    let generator = world.generator(context, 2);
    let request = world.submit(Submission::Run(generator)).unwrap();
    let batch = planned(&mut world);
    let stranger = pie_core::BatchId(99);
    assert_eq!(
        world
            .engine
            .complete(stranger, Ok(batch.jobs.sample(&[], &[])), 0)
            .unwrap_err()
            .code,
        ErrorCode::Internal
    );
    world.running.clear();
    world.answer(batch.id, Ok(batch.jobs.sample(&[0.0; 101], &[])));
    let error = world.engine.take(request).unwrap().unwrap_err();
    assert_eq!(error.code, ErrorCode::BadLogits);
    assert!(
        error.message.contains("101") && error.message.contains("1 rows of 50"),
        "{error}"
    );
    assert_eq!(
        world
            .engine
            .complete(batch.id, Ok(batch.jobs.sample(&[], &[])), 0)
            .unwrap_err()
            .code,
        ErrorCode::Internal
    );
}
