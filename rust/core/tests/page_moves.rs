//! Pages that are written to files and read from them, on the dummy driver: one wrong page changes every later token.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod support;

use pie_core::{
    Answer, Capabilities, ContentId, ContextId, ContextImage, EngineConfig, Error, ErrorCode,
    MAX_MOVED_PAGES, MoveDirection, PageMove, ProcessId, RequestId, Submission,
};
use support::world::{World, config, expected, prompt};

const P: ProcessId = ProcessId(1);
const FILE: &str = "/pages";
/// Whole pages of the context that is moved.
const N: u32 = 10;

fn with_pages(n_pages: u32) -> EngineConfig {
    let config = config();
    EngineConfig {
        driver: Capabilities {
            n_pages,
            ..config.driver
        },
        ..config
    }
}

fn ask(
    world: &mut World,
    direction: MoveDirection,
    contents: Vec<ContentId>,
) -> Result<RequestId, Error> {
    let path = FILE.to_owned();
    world.submit(Submission::Pages(PageMove {
        direction,
        contents,
        path,
    }))
}

fn moved(world: &mut World, request: RequestId) -> Result<u32, Error> {
    world.pump();
    match world.engine.take(request).expect("it is answered")? {
        Answer::Moved(n) => Ok(n),
        answer => panic!("pages were moved, and it says {answer:?}"),
    }
}

/// A context whose pages were written, as a value, and the world that it was in.
fn exported() -> (World, ContextImage) {
    let mut world = World::with_process(config(), 1);
    let context = world.context(&prompt(41, 0));
    world.flush(context).unwrap();
    let image = world.engine.image(context).unwrap();
    let contents = world.engine.contents(context).unwrap();
    assert_eq!(contents.len() as u32, N);
    let request = ask(&mut world, MoveDirection::Export, contents).unwrap();
    assert_eq!(moved(&mut world, request), Ok(N));
    assert_eq!(world.engine.stats().n_pages_exported, u64::from(N));
    (world, image)
}

/// Another world that has the file, and the context in it.
fn opened(config: EngineConfig) -> (World, ContextId, Vec<ContentId>) {
    let (first, image) = exported();
    let mut second = World::with_process(config, 1);
    second.files = first.files;
    let context = second.engine.open_image(P, &image).unwrap();
    let contents = second.engine.contents(context).unwrap();
    (second, context, contents)
}

fn generated(world: &mut World, context: ContextId) -> Vec<u32> {
    let generator = world.generator(context, 4);
    world.run(generator).unwrap().tokens
}

#[test]
fn pages_that_were_read_are_not_computed() {
    let (mut world, context, contents) = opened(config());
    assert_eq!(world.engine.n_contents_there(&contents), 0);
    let request = ask(&mut world, MoveDirection::Import, contents.clone()).unwrap();
    assert_eq!(moved(&mut world, request), Ok(N));
    assert_eq!(world.engine.n_contents_there(&contents), N);
    assert_eq!(generated(&mut world, context), expected(&prompt(41, 0), 4));
    let stats = world.engine.stats();
    assert_eq!(stats.n_pages_imported, u64::from(N));
    assert!(stats.n_replayed <= 1, "{stats:?}");
    // Once is enough.
    let request = ask(&mut world, MoveDirection::Import, contents).unwrap();
    let n_commands = stats.n_commands;
    assert_eq!(moved(&mut world, request), Ok(N));
    assert_eq!(world.engine.stats().n_commands, n_commands);
}

#[test]
fn a_wrong_page_changes_the_tokens() {
    let (mut world, context, contents) = opened(config());
    let file = world.files.get_mut(FILE).unwrap();
    file.get_mut(&(N - 1)).unwrap()[0] ^= 1;
    let request = ask(&mut world, MoveDirection::Import, contents).unwrap();
    assert_eq!(moved(&mut world, request), Ok(N));
    assert_ne!(generated(&mut world, context), expected(&prompt(41, 0), 4));
}

#[test]
fn a_pass_waits_for_pages_that_are_on_their_way_and_so_does_that_of_a_fork() {
    let (mut world, context, contents) = opened(config());
    world.engine.await_pages(context).unwrap();
    let fork = world.engine.fork(context).unwrap();
    assert!(
        world.engine.drain_page_wishes().is_empty(),
        "nobody has asked"
    );
    let generators = [context, fork].map(|it| world.generator(it, 4));
    let runs = generators.map(|it| world.submit(Submission::Run(it)).unwrap());
    assert_eq!(world.engine.drain_page_wishes(), [context; 2]);
    let other = world.context(&prompt(9, 3));
    let other = generated(&mut world, other);
    assert_eq!(other, expected(&prompt(9, 3), 4), "a neighbour goes on");
    world.pump();
    assert!(runs.iter().all(|&run| world.engine.take(run).is_none()));
    let request = ask(&mut world, MoveDirection::Import, contents).unwrap();
    assert_eq!(moved(&mut world, request), Ok(N));
    world.engine.pages_arrived(context);
    world.pump();
    for run in runs {
        let Answer::Generated(output) = world.engine.take(run).unwrap().unwrap() else {
            panic!("a run was answered as another pass");
        };
        assert_eq!(output.tokens, expected(&prompt(41, 0), 4));
    }
    assert!(world.engine.stats().n_replayed <= 2);
}

#[test]
fn a_pass_whose_pages_do_not_come_computes_them() {
    let (mut world, context, _) = opened(config());
    world.engine.await_pages(context).unwrap();
    let generator = world.generator(context, 4);
    let run = world.submit(Submission::Run(generator)).unwrap();
    world.pump();
    world.engine.pages_arrived(context);
    world.engine.pages_arrived(context);
    world.pump();
    let answer = world.engine.take(run).unwrap().unwrap();
    assert!(
        matches!(answer, Answer::Generated(output) if output.tokens == expected(&prompt(41, 0), 4))
    );
}

#[test]
fn what_waits_for_pages_is_cancelled_released_and_refused_as_ever() {
    let (mut world, context, _) = opened(config());
    world.engine.await_pages(context).unwrap();
    let generator = world.generator(context, 4);
    let run = world.submit(Submission::Run(generator)).unwrap();
    world.engine.cancel(run);
    world.check();
    let run = world.submit(Submission::Run(generator)).unwrap();
    let refusal = Error::new(ErrorCode::ModelUnavailable, "its driver does not come back");
    world.engine.refuse(Some(refusal));
    let failed = world.engine.take(run).unwrap().unwrap_err();
    assert_eq!(failed.code, ErrorCode::ModelUnavailable);
    world.engine.pages_arrived(context);
    world.check();
    let (mut world, context, _) = opened(config());
    world.engine.await_pages(context).unwrap();
    let generator = world.generator(context, 4);
    world.submit(Submission::Run(generator)).unwrap();
    world.engine.release(context);
    world.engine.pages_arrived(context);
    world.engine.end_process(P);
    world.check();
}

#[test]
fn pages_come_as_far_as_nobody_has_to_give_one_up() {
    let (mut world, context, contents) = opened(with_pages(14));
    let holder = world.context(&prompt(35, 5));
    world.flush(holder).unwrap();
    let request = ask(&mut world, MoveDirection::Import, contents).unwrap();
    assert_eq!(moved(&mut world, request), Ok(5));
    assert_eq!(world.engine.stats().n_pages_used, 9);
    assert_eq!(generated(&mut world, context), expected(&prompt(41, 0), 4));
    assert_eq!(generated(&mut world, holder), expected(&prompt(35, 5), 4));
}

#[test]
fn a_driver_that_goes_or_fails_moves_nothing() {
    let (mut world, context, contents) = opened(config());
    let request = ask(&mut world, MoveDirection::Import, contents.clone()).unwrap();
    assert!(world.plan() && world.command.is_some());
    world.lose();
    assert_eq!(
        moved(&mut world, request).unwrap_err().code,
        ErrorCode::DriverLost
    );
    assert_eq!(world.engine.stats().n_pages_free, 256);
    world.files.clear();
    let request = ask(&mut world, MoveDirection::Import, contents).unwrap();
    assert_eq!(
        moved(&mut world, request).unwrap_err().code,
        ErrorCode::DriverFailed
    );
    assert_eq!(generated(&mut world, context), expected(&prompt(41, 0), 4));
}

#[test]
fn a_driver_that_answers_too_late_has_its_pages_until_then() {
    let (mut world, context, contents) = opened(config());
    let request = ask(&mut world, MoveDirection::Import, contents).unwrap();
    assert!(world.plan());
    world.hang(120_000_000_000);
    assert_eq!(moved_late(&mut world, request), ErrorCode::DriverFailed);
    assert_eq!(world.engine.stats().n_pages_used, u64::from(N));
    world.finish_command();
    let stats = world.engine.stats();
    assert_eq!(
        (stats.n_pages_used, stats.n_pages_cached),
        (0, 0),
        "its file may have been another one by then"
    );
    assert_eq!(stats.n_pages_imported, 0);
    assert_eq!(generated(&mut world, context), expected(&prompt(41, 0), 4));
}

fn moved_late(world: &mut World, request: RequestId) -> ErrorCode {
    world.engine.take(request).unwrap().unwrap_err().code
}

#[test]
fn pages_that_are_gone_or_not_there_are_not_moved() {
    let (mut world, context, contents) = opened(config());
    let request = ask(&mut world, MoveDirection::Export, contents.clone()).unwrap();
    assert_eq!(moved(&mut world, request), Ok(0), "they were not computed");
    world.engine.release(context);
    for direction in [MoveDirection::Export, MoveDirection::Import] {
        let request = ask(&mut world, direction, contents.clone()).unwrap();
        assert_eq!(moved(&mut world, request), Ok(0));
    }
}

#[test]
fn what_cannot_be_moved_is_refused_by_name() {
    let (mut world, _, contents) = opened(config());
    let many = vec![contents[0]; MAX_MOVED_PAGES + 1];
    for wrong in [Vec::new(), many] {
        let refused = ask(&mut world, MoveDirection::Import, wrong).unwrap_err();
        assert_eq!(refused.code, ErrorCode::InvalidArgument);
    }
    let driver = Capabilities {
        page_bytes: 0,
        ..config().driver
    };
    let mut without = World::with_process(EngineConfig { driver, ..config() }, 1);
    let refused = ask(&mut without, MoveDirection::Export, contents).unwrap_err();
    assert_eq!(refused.code, ErrorCode::Unsupported);
}
