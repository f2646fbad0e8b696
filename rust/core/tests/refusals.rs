//! What the messages of refusals name: the value, the limit and the remedy.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod support;

use pie_core::{EngineConfig, ErrorCode, Forward, Method, Probe, RowRequest, Sampler, Submission};
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
