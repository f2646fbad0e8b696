//! What becomes of contexts that leave an engine as values and come back, into it or into another one, each on the
//! dummy driver.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod support;

use std::sync::Arc;

use pie_core::{
    Adapter, Capabilities, ContextId, ContextImage, EngineConfig, ErrorCode, Forward, Input,
    ProcessId, SpecialSlot, Submission, TokenBudget, UserId,
};
use support::world::{World, config, expected, prompt};

const P: ProcessId = ProcessId(1);
const LORA: Adapter = Adapter {
    id: 7,
    version: 2,
    zo_seed: Some(5),
};

/// The same with pages of another size.
fn with_pages_of(page_size: u32) -> EngineConfig {
    let config = config();
    EngineConfig {
        driver: Capabilities {
            page_size,
            ..config.driver
        },
        ..config
    }
}

/// A pass whose tokens have positions, masks and an adapter of their own.
fn forward(world: &mut World, context: ContextId) {
    let input = [3, 4, 5].map(|token| Input {
        token,
        position: None,
    });
    let mut asked = Forward {
        input: input.to_vec(),
        masks: vec![vec![], vec![1, 3], vec![0, 1, 3, 1]],
        adapter: LORA,
        ..Forward::default()
    };
    asked.input[1].position = Some(40);
    let request = world.submit(Submission::Forward(context, Box::new(asked)));
    world.wait(request.unwrap()).unwrap();
}

/// A context of two tokens, of a pass like no other, and of a generation.
fn special(world: &mut World) -> ContextId {
    let context = world.context(&[1, 2]);
    world.flush(context).unwrap();
    forward(world, context);
    let generator = world.generator(context, 6);
    world.run(generator).unwrap();
    world.engine.append(context, &[8, 9]).unwrap();
    context
}

fn generated(world: &mut World, context: ContextId) -> Vec<u32> {
    let generator = world.generator(context, 7);
    world.run(generator).unwrap().tokens
}

// rows: RS-041
#[test]
fn a_context_goes_on_in_another_engine_whatever_the_size_of_its_pages() {
    let mut first = World::with_process(config(), 1);
    let context = special(&mut first);
    let image = first.engine.image(context).unwrap();
    let tokens = generated(&mut first, context);
    for page_size in [1, 2, 4, 5, 16, 64] {
        let mut second = World::with_process(with_pages_of(page_size), 1);
        let opened = second.engine.open_image(P, &image).unwrap();
        assert_eq!(second.engine.buffer(opened).unwrap(), [8, 9]);
        assert_eq!(
            second.engine.length(opened).unwrap() as usize,
            image.length()
        );
        assert_eq!(generated(&mut second, opened), tokens, "{page_size}");
        second.engine.end_process(P);
        second.check();
        assert_eq!(second.engine.stats().n_pages_used, 0);
    }
}

#[test]
fn an_image_of_what_was_opened_is_that_image() {
    let mut first = World::with_process(config(), 1);
    let context = special(&mut first);
    let image = first.engine.image(context).unwrap();
    assert!(!image.special.is_empty() && !image.pending.is_empty());
    let mut second = World::with_process(config(), 2);
    for _ in 0..2 {
        let opened = second.engine.open_image(P, &image).unwrap();
        let again = second.engine.image(opened).unwrap();
        // A path is that of the copy.
        assert_ne!(again.path, image.path);
        let path = image.path;
        assert_eq!(ContextImage { path, ..again }, image);
    }
    second.check();
}

#[test]
fn what_another_context_has_computed_is_not_computed_again() {
    let mut world = World::with_process(config(), 1);
    let context = world.context(&prompt(41, 0));
    world.flush(context).unwrap();
    let image = world.engine.image(context).unwrap();
    let n_before = world.engine.stats().n_tokens;
    let opened = world.engine.open_image(P, &image).unwrap();
    let generator = world.generator(opened, 3);
    let tokens = world.run(generator).unwrap().tokens;
    assert_eq!(tokens, expected(&prompt(41, 0), 3));
    // The part of a page that lies behind the full ones, and two of those that were drawn.
    assert_eq!(world.engine.stats().n_tokens - n_before, 3);
    world.engine.end_process(P);
    world.check();
}

#[test]
fn an_image_is_a_saving_for_seeds_once_it_is_counted() {
    let launch = |n_counted: usize| {
        let mut world = World::with_process(config(), 7);
        let context = world.context(&prompt(5, 0));
        let image = world.engine.image(context).unwrap();
        assert_eq!(world.engine.image(context).unwrap(), image);
        for _ in 0..n_counted {
            world.engine.count_saved(context);
        }
        let opened = world.engine.open_image(P, &image).unwrap();
        let fork = world.engine.fork(context).unwrap();
        let next = world.engine.image(context).unwrap();
        [
            world.draw(opened),
            world.draw(fork),
            vec![u32::from(next.path == image.path)],
        ]
    };
    let [uncounted, counted] = [launch(0), launch(1)];
    assert_eq!(uncounted[0], counted[0]);
    assert_ne!(uncounted[1], counted[1]);
    assert_eq!(counted[2], [0]);
    // As a snapshot in memory does.
    let mut world = World::with_process(config(), 7);
    let context = world.context(&prompt(5, 0));
    world.engine.save(context, "a", Arc::new(())).unwrap();
    let (opened, _) = world.engine.open_snapshot(P, "a").unwrap();
    let fork = world.engine.fork(context).unwrap();
    assert_eq!([world.draw(opened), world.draw(fork)], counted[..2]);
}

#[test]
fn what_was_opened_survives_that_its_pages_and_its_device_are_lost() {
    let mut world = World::with_process(config(), 1);
    let image = ContextImage {
        tokens: prompt(41, 0),
        ..ContextImage::default()
    };
    let [first, second] = [(); 2].map(|()| world.engine.open_image(P, &image).unwrap());
    assert_eq!(generated(&mut world, first), expected(&prompt(41, 0), 7));
    world.engine.suspend(first).unwrap();
    let others = world.context(&[7; 1020]);
    world.flush(others).unwrap();
    world.engine.release(others);
    world.lose();
    assert_eq!(generated(&mut world, second), expected(&prompt(41, 0), 7));
}

#[test]
fn committed_pages_stay_committed() {
    let mut world = World::with_process(config(), 1);
    let context = world.context(&prompt(10, 0));
    world.flush(context).unwrap();
    let image = world.engine.image(context).unwrap();
    let opened = world.engine.open_image(P, &image).unwrap();
    let counts = world.engine.page_counts(opened).unwrap();
    assert_eq!(counts, world.engine.page_counts(context).unwrap());
    let refused = world.engine.truncate(opened, 3).unwrap_err();
    assert_eq!(refused.code, ErrorCode::TruncateRange);
    world.engine.truncate(opened, 2).unwrap();
    assert_eq!(world.engine.seq_len(opened).unwrap(), 8);
}

#[test]
fn what_no_context_of_the_model_could_say_is_refused_and_leaves_nothing() {
    let slot = |slot: u32| SpecialSlot {
        slot,
        position: slot,
        mask: Arc::from([1, 1]),
        adapter: Adapter::default(),
        media: 0,
    };
    let of = |special: Vec<SpecialSlot>| ContextImage {
        tokens: prompt(9, 0),
        special,
        ..ContextImage::default()
    };
    let with_mask = |mask: &[u32]| SpecialSlot {
        mask: Arc::from(mask),
        ..slot(3)
    };
    let wrong = [
        (of(vec![slot(9)]), ErrorCode::InvalidArgument),
        (of(vec![slot(4), slot(4)]), ErrorCode::InvalidArgument),
        (of(vec![slot(5), slot(4)]), ErrorCode::InvalidArgument),
        (of(vec![with_mask(&[1, 9])]), ErrorCode::InvalidArgument),
        (of(vec![with_mask(&[0])]), ErrorCode::InvalidArgument),
        (of(vec![with_mask(&[0, 4])]), ErrorCode::InvalidArgument),
        (
            of(vec![with_mask(&[u32::MAX, u32::MAX])]),
            ErrorCode::InvalidArgument,
        ),
        (
            of(vec![SpecialSlot {
                position: 4096,
                ..slot(3)
            }]),
            ErrorCode::InvalidArgument,
        ),
        (
            of(vec![SpecialSlot {
                adapter: Adapter { id: 0, ..LORA },
                ..slot(3)
            }]),
            ErrorCode::InvalidArgument,
        ),
        (
            ContextImage {
                pending: vec![50],
                ..of(vec![])
            },
            ErrorCode::InvalidToken,
        ),
        (
            ContextImage {
                buffer: vec![1; 4096],
                ..of(vec![])
            },
            ErrorCode::ContextFull,
        ),
    ];
    let mut world = World::with_process(config(), 1);
    for (image, code) in wrong {
        let refused = world.engine.open_image(P, &image).unwrap_err();
        assert_eq!(refused.code, code, "{image:?}: {refused}");
    }
    let unknown = world.engine.open_image(ProcessId(9), &of(vec![]));
    assert_eq!(unknown.unwrap_err().code, ErrorCode::InvalidArgument);
    let budget = TokenBudget::new(8);
    world
        .engine
        .new_process(ProcessId(2), UserId(1), 1)
        .unwrap();
    world.engine.set_token_budget(ProcessId(2), budget);
    let poor = world.engine.open_image(ProcessId(2), &of(vec![]));
    assert_eq!(poor.unwrap_err().code, ErrorCode::TokenBudget);
    world.check();
    // Numbers that cannot be are cut.
    let image = ContextImage {
        n_cached: u32::MAX,
        n_committed: u32::MAX,
        n_final: u32::MAX,
        n_reserved: u32::MAX,
        ..of(vec![with_mask(&[1, 3])])
    };
    let opened = world.engine.open_image(P, &image).unwrap();
    world.flush(opened).unwrap();
    generated(&mut world, opened);
    world.check();
}

#[test]
fn what_the_driver_does_not_serve_is_refused() {
    let mut first = World::with_process(config(), 1);
    let context = special(&mut first);
    let image = first.engine.image(context).unwrap();
    for change in [
        |driver: &mut Capabilities| driver.masks = false,
        |driver: &mut Capabilities| driver.positions = false,
        |driver: &mut Capabilities| driver.adapters = false,
    ] {
        let mut config = config();
        change(&mut config.driver);
        let mut second = World::with_process(config, 1);
        let refused = second.engine.open_image(P, &image).unwrap_err();
        assert_eq!(refused.code, ErrorCode::Unsupported, "{refused}");
        second.check();
    }
}

#[test]
fn a_context_under_way_has_no_image() {
    let mut world = World::with_process(config(), 1);
    let context = world.context(&prompt(5, 0));
    let request = world.submit(Submission::Flush(context)).unwrap();
    let refused = world.engine.image(context).unwrap_err();
    assert_eq!(refused.code, ErrorCode::ContextBusy);
    world.wait(request).unwrap();
    world.engine.image(context).unwrap();
    world.engine.release(context);
    let refused = world.engine.image(context).unwrap_err();
    assert_eq!(refused.code, ErrorCode::ContextReleased);
    world.engine.count_saved(context);
}
