//! Commands to the driver, in order with batches.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod support;

use std::time::Duration;

use pie_core::{
    AdapterName, Answer, Capabilities, Command, CommandFailure, DriverCommand, EngineConfig, Error,
    ErrorCode, ProcessId, RequestId, Submission, UserId,
};
use support::world::{World, config, expected, output, prompt};

const fn name(id: u64) -> AdapterName {
    AdapterName { id, version: 1 }
}

fn load(id: u64) -> Command {
    Command::LoadAdapter {
        adapter: name(id),
        path: "/adapters/it".to_owned(),
    }
}

fn ask(world: &mut World, command: Command) -> RequestId {
    let submission = Submission::Command(Some(ProcessId(1)), command);
    world.submit(submission).unwrap()
}

fn taken(world: &mut World, request: RequestId) -> Result<Answer, Error> {
    world.engine.take(request).expect("the request is ready")
}

fn failed(world: &mut World, request: RequestId) -> Error {
    taken(world, request).unwrap_err()
}

fn world(config: EngineConfig) -> World {
    World::with_process(config, 1)
}

#[test]
fn commands_are_carried_out_in_order_and_told_to_who_asked() {
    let mut world = world(config());
    let (from, to) = (name(1), name(2));
    let commands = [
        (load(1), true),
        (Command::CopyAdapter { from, to }, true),
        (Command::DropAdapter { adapter: from }, true),
        (Command::CopyAdapter { from, to }, false),
        (Command::DropAdapter { adapter: to }, true),
        (Command::DropAdapter { adapter: to }, false),
    ];
    let requests: Vec<(RequestId, bool)> = commands
        .into_iter()
        .map(|(command, succeeds)| (ask(&mut world, command), succeeds))
        .collect();
    assert!(world.engine.take(requests[0].0).is_none());
    world.pump();
    for (request, succeeds) in requests {
        match taken(&mut world, request) {
            Ok(answer) => assert!(succeeds && answer == Answer::Commanded),
            Err(error) => {
                assert!(!succeeds);
                assert_eq!(error.code, ErrorCode::DriverFailed);
                assert!(error.message.contains("is not loaded"), "{}", error.message);
            }
        }
    }
    assert_eq!(world.engine.stats().n_commands, 6);
}

#[test]
fn nothing_runs_beside_a_command_and_batches_take_turns_with_them() {
    for follows in [false, true] {
        let driver = Capabilities {
            follows,
            ..config().driver
        };
        let mut world = world(EngineConfig { driver, ..config() });
        let tokens = prompt(5, 1);
        let context = world.context(&tokens);
        let generator = world.generator(context, 4);
        let run = world.submit(Submission::Run(generator)).unwrap();
        assert!(world.plan());
        let loads: Vec<RequestId> = (1..4).map(|id| ask(&mut world, load(id))).collect();
        // The batch that runs is answered first.
        assert!(!world.plan());
        world.finish();
        for &request in &loads {
            assert!(world.plan() && world.command.is_some());
            assert!(!world.plan(), "a batch runs beside a command");
            world.finish_command();
            assert_eq!(taken(&mut world, request), Ok(Answer::Commanded));
            assert!(world.plan() && world.command.is_none());
            world.finish();
        }
        assert_eq!(
            output(taken(&mut world, run).unwrap()).tokens,
            expected(&tokens, 4)
        );
        world.pump();
        assert_eq!(world.engine.stats().n_batches, 4);
    }
}

#[test]
fn a_driver_without_adapters_says_so() {
    let driver = Capabilities {
        adapters: false,
        ..config().driver
    };
    let mut world = world(EngineConfig { driver, ..config() });
    let submission = Submission::Command(None, load(1));
    let error = world.submit(submission).unwrap_err();
    assert_eq!(error.code, ErrorCode::Unsupported);
    assert!(
        error.message.contains("no adapters on this driver"),
        "{}",
        error.message
    );
    // So does one that has said otherwise.
    let mut world = self::world(config());
    let request = world.submit(Submission::Command(None, load(1))).unwrap();
    assert!(world.plan());
    let command = world.command.take().unwrap();
    let failure = CommandFailure::NotServed("there are no adapters on this driver".to_owned());
    world
        .engine
        .complete_command(command.id, Err(failure), 0)
        .unwrap();
    assert_eq!(failed(&mut world, request).code, ErrorCode::Unsupported);
    // Once is enough.
    let again = world.engine.complete_command(command.id, Ok(()), 0);
    assert_eq!(again.unwrap_err().code, ErrorCode::Internal);
}

#[test]
fn commands_that_cannot_be_meant_are_refused() {
    let mut world = world(config());
    let path = "x".repeat(4097);
    let adapter = name(1);
    for command in [
        load(0),
        Command::CopyAdapter {
            from: adapter,
            to: name(0),
        },
        Command::LoadAdapter {
            adapter,
            path: String::new(),
        },
        Command::LoadAdapter { adapter, path },
    ] {
        let error = world
            .submit(Submission::Command(None, command))
            .unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidArgument);
    }
    let stranger = Submission::Command(Some(ProcessId(9)), load(1));
    assert_eq!(
        world.submit(stranger).unwrap_err().code,
        ErrorCode::InvalidArgument
    );
}

#[test]
fn so_many_commands_may_wait_as_requests() {
    let mut world = world(EngineConfig {
        max_process_waiting: 2,
        ..config()
    });
    let first = ask(&mut world, load(1));
    ask(&mut world, load(2));
    let third = Submission::Command(Some(ProcessId(1)), load(3));
    assert_eq!(world.submit(third).unwrap_err().code, ErrorCode::LimitQueue);
    world.engine.cancel(first);
    ask(&mut world, load(3));
    world.pump();
    // The one that was cancelled is not given.
    assert_eq!(world.engine.stats().n_commands, 2);
}

#[test]
fn a_command_that_hangs_fails_and_nothing_is_given_until_the_driver_answers() {
    let mut world = world(EngineConfig {
        driver_timeout: Duration::from_nanos(1000),
        ..config()
    });
    let hangs = ask(&mut world, load(1));
    let waits = ask(&mut world, load(2));
    assert!(world.plan());
    assert_eq!(world.engine.overdue_ns(), Some(1000));
    assert_eq!(world.hang(999), 0);
    assert_eq!(world.hang(1), 1);
    let error = failed(&mut world, hangs);
    assert_eq!(error.code, ErrorCode::DriverFailed);
    assert!(
        error.message.contains("driver_timeout"),
        "{}",
        error.message
    );
    assert_eq!(
        (world.engine.is_stuck(), world.engine.stats().n_stuck),
        (true, 1)
    );
    assert!(!world.plan());
    world.finish_command();
    assert!(!world.engine.is_stuck());
    world.pump();
    assert_eq!(taken(&mut world, waits), Ok(Answer::Commanded));
}

#[test]
fn a_command_is_lost_with_its_device_and_those_that_wait_go_on_with_the_next() {
    let mut world = world(config());
    let drop = |id| Command::DropAdapter { adapter: name(id) };
    ask(&mut world, load(1));
    world.pump();
    let lost = ask(&mut world, load(2));
    let waits = [1, 2].map(|id| ask(&mut world, drop(id)));
    assert!(world.plan());
    world.lose();
    assert_eq!(failed(&mut world, lost).code, ErrorCode::DriverLost);
    world.pump();
    // The next device has what was loaded, and not what was about to be.
    assert_eq!(taken(&mut world, waits[0]), Ok(Answer::Commanded));
    assert_eq!(failed(&mut world, waits[1]).code, ErrorCode::DriverFailed);
    let refused = ask(&mut world, load(1));
    let reason = Error::new(ErrorCode::ModelUnavailable, "it ends too often");
    world.engine.refuse(Some(reason));
    assert_eq!(
        failed(&mut world, refused).code,
        ErrorCode::ModelUnavailable
    );
    let later = world.submit(Submission::Command(None, load(1)));
    assert_eq!(later.unwrap_err().code, ErrorCode::ModelUnavailable);
}

/// What the driver is given next: the adapter that it loads again, from its path.
fn loads_again(world: &mut World) -> Option<(u64, String)> {
    assert!(world.plan());
    match world.command.clone() {
        Some(DriverCommand {
            command: Command::LoadAdapter { adapter, path },
            again: true,
            ..
        }) => Some((adapter.id, path)),
        _ => None,
    }
}

#[test]
fn a_device_that_comes_next_is_given_all_adapters_before_anything_else() {
    for follows in [false, true] {
        let driver = Capabilities {
            follows,
            ..config().driver
        };
        let mut world = world(EngineConfig { driver, ..config() });
        let elsewhere = Command::LoadAdapter {
            adapter: name(2),
            path: "/elsewhere".to_owned(),
        };
        let (from, to) = (name(2), name(4));
        let copy = Command::CopyAdapter { from, to };
        let drop = Command::DropAdapter { adapter: name(3) };
        for command in [load(1), load(2), load(3), elsewhere, copy, drop] {
            let request = ask(&mut world, command);
            world.pump();
            assert_eq!(taken(&mut world, request), Ok(Answer::Commanded));
        }
        let tokens = prompt(5, 1);
        let context = world.context(&tokens);
        let generator = world.generator(context, 4);
        let run = world.submit(Submission::Run(generator)).unwrap();
        let waits = ask(&mut world, Command::DropAdapter { adapter: to });
        world.lose();
        // A second loss begins anew.
        assert!(loads_again(&mut world).is_some());
        world.finish_command();
        world.lose();
        for (id, path) in [(1, "/adapters/it"), (2, "/elsewhere"), (4, "/elsewhere")] {
            assert_eq!(loads_again(&mut world), Some((id, path.to_owned())));
            assert!(!world.plan(), "nothing runs beside a command");
            world.finish_command();
        }
        world.pump();
        assert_eq!(taken(&mut world, waits), Ok(Answer::Commanded));
        let answer = taken(&mut world, run).unwrap();
        assert_eq!(output(answer).tokens, expected(&tokens, 4));
        // What was dropped meanwhile stays away.
        world.lose();
        for id in [1, 2] {
            assert_eq!(loads_again(&mut world).map(|(id, _)| id), Some(id));
            world.finish_command();
        }
        assert!(!world.plan());
    }
}

#[test]
fn an_adapter_that_cannot_be_loaded_again_is_forgotten() {
    let mut world = world(config());
    for id in [1, 2, 3] {
        ask(&mut world, load(id));
    }
    world.pump();
    world.lose();
    let mut found = Vec::new();
    for _ in 0..3 {
        let (id, _) = loads_again(&mut world).unwrap();
        found.push(id);
        if id == 2 {
            let command = world.command.take().unwrap();
            let failure = CommandFailure::Failed("its file is gone".to_owned());
            let outcome = world.engine.complete_command(command.id, Err(failure), 0);
            assert_eq!(outcome, Ok(()));
        } else {
            world.finish_command();
        }
    }
    world.lose();
    // The first of those that are left ends each driver that loads it.
    for _ in 0..2 {
        assert_eq!(loads_again(&mut world).map(|(id, _)| id), Some(1));
        assert_eq!(world.lose(), None);
    }
    assert_eq!(loads_again(&mut world).map(|(id, _)| id), Some(1));
    assert_eq!(world.lose(), Some(name(1)));
    assert_eq!(loads_again(&mut world).map(|(id, _)| id), Some(3));
    world.finish_command();
    assert_eq!(found, [1, 2, 3]);
    assert!(!world.plan());
}

#[test]
fn losses_count_only_in_a_row() {
    let mut world = world(config());
    ask(&mut world, load(1));
    world.pump();
    for _ in 0..4 {
        for _ in 0..3 {
            assert_eq!(world.lose(), None);
            assert!(loads_again(&mut world).is_some());
        }
        world.finish_command();
    }
}

#[test]
fn an_adapter_that_is_loaded_again_too_slowly_is_there_once_it_is_loaded() {
    let mut world = world(EngineConfig {
        driver_timeout: Duration::from_nanos(1000),
        ..config()
    });
    ask(&mut world, load(1));
    world.pump();
    world.lose();
    assert!(loads_again(&mut world).is_some());
    assert_eq!(world.hang(1000), 1);
    assert!(world.engine.is_stuck() && !world.plan());
    world.finish_command();
    assert!(!world.engine.is_stuck());
    let drop = ask(&mut world, Command::DropAdapter { adapter: name(1) });
    world.pump();
    assert_eq!(taken(&mut world, drop), Ok(Answer::Commanded));
}

#[test]
fn a_command_that_was_given_up_is_told_to_nobody() {
    let mut world = world(config());
    let cancelled = ask(&mut world, load(1));
    assert!(world.plan());
    world.engine.cancel(cancelled);
    ask(&mut world, load(2));
    world.engine.end_process(ProcessId(1));
    world.finish_command();
    world.pump();
    let stats = world.engine.stats();
    assert_eq!((stats.n_commands, stats.n_requests), (1, 0));
    assert!(world.ready.is_empty());
}

fn carry_out(world: &mut World, expected: &Command) {
    assert!(world.plan());
    assert_eq!(world.command.as_ref().map(|it| &it.command), Some(expected));
    world.finish_command();
}

#[test]
fn adapters_are_made_changed_and_loaded_again_from_where_they_were_written() {
    let mut world = world(config());
    let create = Command::CreateAdapter {
        adapter: name(1),
        path: "/adapters/made".to_owned(),
        rank: 8,
        alpha: 16.0,
        sigma: 0.02,
    };
    let change = Command::ChangeAdapter {
        from: name(1),
        to: name(2),
        path: "/adapters/changed".to_owned(),
        sigma: None,
        changes: [(7, 0.5), (u64::MAX, -0.5)].into(),
    };
    for command in [create, change] {
        let request = ask(&mut world, command.clone());
        carry_out(&mut world, &command);
        assert_eq!(taken(&mut world, request), Ok(Answer::Commanded));
    }
    assert_eq!(world.engine.lose_device("it was killed", 0), None);
    for (id, path) in [(1, "/adapters/made"), (2, "/adapters/changed")] {
        let path = path.to_owned();
        let adapter = name(id);
        let command = Command::LoadAdapter { adapter, path };
        assert!(world.plan());
        assert_eq!(world.command.as_ref().map(|it| &it.command), Some(&command));
        world.finish_command();
    }
}

#[test]
fn what_nobody_wants_any_more_is_forgotten_before_what_waits() {
    let mut world = world(config());
    let request = ask(&mut world, load(1));
    carry_out(&mut world, &load(1));
    assert_eq!(taken(&mut world, request), Ok(Answer::Commanded));
    let again = ask(&mut world, load(1));
    world.engine.forget_adapter(name(1));
    // One that the driver never had costs no command.
    world.engine.forget_adapter(name(9));
    carry_out(&mut world, &Command::DropAdapter { adapter: name(1) });
    carry_out(&mut world, &load(1));
    assert_eq!(taken(&mut world, again), Ok(Answer::Commanded));
    assert!(!world.plan());
    world.engine.forget_adapter(name(1));
    assert_eq!(world.engine.lose_device("it was killed", 0), None);
    assert!(!world.plan(), "the next driver has none to forget");
    world.engine.check().unwrap();
}

#[test]
fn an_adapter_that_cannot_be_taken_is_told_by_its_code() {
    let mut world = world(config());
    for code in [ErrorCode::InvalidAdapter, ErrorCode::LimitAdapters] {
        let request = ask(&mut world, load(1));
        assert!(world.plan());
        let command = world.command.take().unwrap();
        let failure = CommandFailure::Refused(code, "adapter_config.json: r is 0".to_owned());
        let answered = world.engine.complete_command(command.id, Err(failure), 0);
        answered.unwrap();
        let error = failed(&mut world, request);
        assert_eq!(
            (error.code, &*error.message),
            (code, "adapter_config.json: r is 0")
        );
    }
}

#[test]
fn passes_that_compute_with_an_adapter_are_counted_until_they_are_done() {
    let mut world = world(config());
    let context = world.context(&prompt(5, 1));
    let generator = world.generator(context, 2);
    world.engine.set_adapter(generator, 1, 1).unwrap();
    assert_eq!(world.engine.passes_with(UserId(1), name(1)), 0);
    let run = world.submit(Submission::Run(generator)).unwrap();
    assert_eq!(world.engine.passes_with(UserId(1), name(1)), 1);
    assert_eq!(world.engine.passes_with(UserId(1), name(2)), 0);
    assert_eq!(world.engine.passes_with(UserId(2), name(1)), 0);
    world.pump();
    assert_eq!(world.engine.passes_with(UserId(1), name(1)), 0);
    taken(&mut world, run).unwrap();
}
