//! What the messages of refusals name: the value, the limit and the remedy.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod support;

use pie_core::{
    EngineConfig, Error, ErrorCode, Forward, Method, Probe, ProcessId, RequestId, RowRequest,
    Sampler, Submission, UserId,
};
use support::world::{World, config, options, output, prompt};

// rows: RS-084 RS-086
#[test]
fn a_step_that_follows_one_which_drew_nothing_names_that() {
    let mut world = World::with_process(config(), 7);
    let context = world.context(&prompt(10, 1));
    let generator = world
        .engine
        .new_generator(context, options(Method::Argmax))
        .unwrap();
    for step in 0..3 {
        world.engine.next_step(generator).unwrap();
        world.engine.clear_sampler(generator).unwrap();
        let request = world.submit(Submission::Step(generator)).unwrap();
        assert!(output(world.wait(request).unwrap()).tokens.is_empty());
        let error = world.engine.next_step(generator).unwrap_err();
        assert_eq!(error.code, ErrorCode::StepPending);
        let named = format!("step {step} of this generator drew nothing");
        assert!(error.message.starts_with(&named), "{}", error.message);
        world.engine.accept(generator, &[3]).unwrap();
    }
}

// rows: RS-085
#[test]
fn a_row_that_no_step_has_is_refused_with_how_many_there_are() {
    let mut world = World::with_process(config(), 7);
    let context = world.context(&prompt(10, 1));
    let generator = world
        .engine
        .new_generator(context, options(Method::Argmax))
        .unwrap();
    world.engine.next_step(generator).unwrap();
    world
        .engine
        .probe_each_step(generator, 256, Probe::Entropy)
        .unwrap();
    let error = world
        .engine
        .probe_each_step(generator, 257, Probe::Entropy)
        .unwrap_err();
    assert_eq!(
        error.message,
        "row 257 of a step is read, and a step has at most 257 rows; read row 0, or one behind a draft"
    );
}

#[test]
fn a_forward_pass_has_no_more_late_rows_than_may_wait() {
    let late = EngineConfig {
        max_late_rows: 4,
        ..config()
    };
    let mut world = World::with_process(late, 7);
    let context = world.context(&prompt(2, 1));
    let rows = |n: usize| Forward {
        rows: vec![
            RowRequest {
                index: 1,
                sampler: Some(Sampler {
                    method: Method::Argmax,
                    seed: None,
                }),
                probes: Vec::new(),
                late_mask: true,
            };
            n
        ],
        ..Forward::default()
    };
    // A program may have a quarter of all, and at least one.
    let error = world
        .submit(Submission::Forward(context, Box::new(rows(2))))
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::LimitResources);
    let named = "2 rows are to wait for their token masks, 0 of the program do, and at most 1 may";
    assert!(error.message.starts_with(named), "{}", error.message);
    let request = world
        .submit(Submission::Forward(context, Box::new(rows(1))))
        .unwrap();
    world.pump();
    world.give_mask(request, 0, &[]).unwrap();
    assert!(world.engine.take(request).is_some());
}

/// An engine with so many processes of each of three users: 1 to 4 of the first, 5 to 8 of the second, 9 to 12 of the
/// third.
fn three_users(config: EngineConfig) -> World {
    let mut world = World::new(config);
    for process in 1..13 {
        let user = UserId(1 + (process - 1) / 4);
        world
            .engine
            .new_process(ProcessId(process), user, process)
            .unwrap();
    }
    world
}

/// How often `take` succeeds for the processes of a user, until each was refused.
fn taken(user: u64, mut take: impl FnMut(ProcessId) -> Result<(), Error>) -> usize {
    let processes = (1..5).map(|process| ProcessId(4 * (user - 1) + process));
    processes
        .map(|process| (0..100).take_while(|_| take(process).is_ok()).count())
        .sum()
}

#[test]
fn two_users_who_take_all_that_they_may_leave_contexts_to_a_third() {
    let mut world = three_users(EngineConfig {
        max_contexts: 16,
        ..config()
    });
    let n_taken =
        [1, 2, 3].map(|user| taken(user, |process| world.engine.new_context(process).map(drop)));
    assert_eq!(n_taken, [8, 4, 2]);
    world.engine.check().unwrap();
    // What the first gives back is for all.
    for process in 1..5 {
        world.engine.end_process(ProcessId(process));
    }
    let more = taken(3, |process| world.engine.new_context(process).map(drop));
    assert_eq!(more, 4);
    world.engine.check().unwrap();
}

#[test]
fn two_users_who_take_all_that_they_may_leave_requests_to_a_third() {
    let mut world = three_users(EngineConfig {
        max_waiting: 16,
        ..config()
    });
    let mut entered: Vec<RequestId> = Vec::new();
    let n_taken = [1, 2, 3].map(|user| {
        taken(user, |process| {
            let context = world.engine.new_context(process)?;
            world.engine.append(context, &[1])?;
            entered.push(world.submit(Submission::Flush(context))?);
            Ok(())
        })
    });
    assert_eq!(n_taken, [8, 4, 2]);
    for request in entered {
        world.wait(request).unwrap();
    }
    world.engine.check().unwrap();
}

#[test]
fn two_users_who_take_all_that_they_may_leave_late_rows_to_a_third() {
    let mut world = three_users(EngineConfig {
        max_late_rows: 16,
        ..config()
    });
    let n_taken = [1, 2, 3].map(|user| {
        taken(user, |process| {
            let context = world.context_of(process, &prompt(2, 1));
            let row = RowRequest {
                index: 1,
                sampler: Some(Sampler {
                    method: Method::Argmax,
                    seed: None,
                }),
                probes: Vec::new(),
                late_mask: true,
            };
            let forward = Forward {
                rows: vec![row],
                ..Forward::default()
            };
            world
                .submit(Submission::Forward(context, Box::new(forward)))
                .map(drop)
        })
    });
    assert_eq!(n_taken, [8, 4, 2]);
}
