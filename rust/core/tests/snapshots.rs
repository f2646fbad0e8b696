//! What becomes of contexts that are saved, opened, taken and suspended, each on the dummy driver.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod support;

use std::collections::HashSet;
use std::sync::Arc;

use pie_core::{
    Capabilities, EngineConfig, ErrorCode, HostData, ProcessId, Submission, TokenBudget, UserId,
};
use support::world::{World, assert_draws_repeat, config, expected, prompt};

const P: ProcessId = ProcessId(1);

fn nothing() -> HostData {
    Arc::new(())
}

// rows: RS-035 RS-038 RS-041
#[test]
fn a_snapshot_outlives_its_process_uses_no_page_and_is_not_computed_again() {
    let mut world = World::with_process(config(), 1);
    let context = world.context(&prompt(41, 0));
    world.flush(context).unwrap();
    world.engine.append(context, &[1, 2]).unwrap();
    world.engine.save(context, "a", Arc::new(17u64)).unwrap();
    world.engine.end_process(P);
    assert_eq!(world.engine.stats().n_pages_used, 0);
    world.engine.new_process(P, UserId(1), 1).unwrap();
    let n_before = world.engine.stats().n_tokens;
    let (opened, host_data) = world.engine.open_snapshot(P, "a").unwrap();
    assert_eq!(host_data.downcast_ref::<u64>(), Some(&17));
    assert_eq!(world.engine.buffer(opened).unwrap(), [1, 2]);
    let generator = world.generator(opened, 3);
    let mut tokens = prompt(41, 0);
    tokens.extend([1, 2]);
    assert_eq!(world.run(generator).unwrap().tokens, expected(&tokens, 3));
    // The two that were buffered, and two of the three drawn.
    assert_eq!(world.engine.stats().n_tokens - n_before, 4);
}

// rows: RS-035 RS-038
#[test]
fn saving_again_replaces_and_opening_leaves_it() {
    let mut world = World::with_process(config(), 1);
    let context = world.context(&prompt(5, 0));
    world.engine.save(context, "a", nothing()).unwrap();
    world.engine.append(context, &[9]).unwrap();
    world.engine.save(context, "a", nothing()).unwrap();
    for _ in 0..2 {
        let (opened, _) = world.engine.open_snapshot(P, "a").unwrap();
        assert_eq!(world.engine.length(opened).unwrap(), 6);
    }
    assert_eq!(world.engine.snapshots(P).unwrap(), ["a"]);
    world.engine.check().unwrap();
}

// rows: RS-036
#[test]
fn of_two_that_take_it_one_gets_it() {
    let mut world = World::with_process(config(), 1);
    let context = world.context(&prompt(5, 0));
    world.engine.save(context, "a", nothing()).unwrap();
    world
        .engine
        .new_process(ProcessId(2), UserId(1), 2)
        .unwrap();
    assert!(world.engine.take_snapshot(P, "a").is_ok());
    let errors = [
        world.engine.take_snapshot(ProcessId(2), "a").unwrap_err(),
        world.engine.open_snapshot(P, "a").unwrap_err(),
        world.engine.delete_snapshot(P, "a").unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.code, ErrorCode::SnapshotMissing);
        assert!(error.message.contains("\"a\""), "{error}");
    }
}

// rows: RS-035..038
#[test]
fn a_user_sees_only_his_own() {
    let mut world = World::with_process(config(), 1);
    let context = world.context(&prompt(5, 0));
    world.engine.save(context, "a", nothing()).unwrap();
    let made = world.engine.snapshot(context, nothing()).unwrap();
    assert_eq!(world.engine.snapshots(P).unwrap(), ["a", made.as_str()]);
    world
        .engine
        .new_process(ProcessId(2), UserId(2), 1)
        .unwrap();
    assert!(world.engine.snapshots(ProcessId(2)).unwrap().is_empty());
    for name in ["a", made.as_str()] {
        let error = world.engine.open_snapshot(ProcessId(2), name).unwrap_err();
        assert_eq!(error.code, ErrorCode::SnapshotMissing);
    }
}

/// A program sees its names: they say nothing of what others did, and are the same in every launch of a seed.
// rows: RS-039
#[test]
fn names_that_are_made_up_follow_from_the_launch_and_the_path() {
    let launch = |seed, n_others: u64, user| {
        let mut world = World::with_process(config(), 1);
        let other = world.context(&prompt(5, 0));
        for _ in 0..n_others {
            world.engine.snapshot(other, nothing()).unwrap();
        }
        let process = ProcessId(2 + n_others);
        let engine = &mut world.engine;
        engine.new_process(process, UserId(user), seed).unwrap();
        let context = engine.new_context(process).unwrap();
        let fork = engine.fork(context).unwrap();
        let afresh = engine.new_context(process).unwrap();
        [context, context, fork, afresh].map(|context| engine.snapshot(context, nothing()).unwrap())
    };
    let names = launch(7, 0, 2);
    assert_eq!(names.iter().collect::<HashSet<_>>().len(), 4, "{names:?}");
    assert_eq!(launch(7, 3, 2), names);
    assert_eq!(launch(7, 5, 1), names);
    assert!(launch(8, 0, 2).iter().all(|name| !names.contains(name)));
}

// rows: RS-039
#[test]
fn names_that_are_made_up_are_new() {
    let mut world = World::with_process(config(), 1);
    let context = world.context(&prompt(5, 0));
    let first = world.engine.snapshot(context, nothing()).unwrap();
    // The user may have a name already: of another launch with that seed, or given.
    let process = ProcessId(2);
    let engine = &mut world.engine;
    engine.new_process(process, UserId(1), 1).unwrap();
    let context = engine.new_context(process).unwrap();
    let given = format!("{first}-2");
    engine.save(context, &given, nothing()).unwrap();
    let context = engine.new_context(process).unwrap();
    let second = engine.snapshot(context, nothing()).unwrap();
    assert_eq!(second, format!("{first}-3"));
    let names = engine.snapshots(P).unwrap();
    assert_eq!(names, [first, given, second]);
}

/// The first context that is opened from the first saving of a root draws other tokens than the first fork of its first
/// fork.
#[test]
fn what_is_opened_is_on_no_path_of_a_fork() {
    let mut world = World::with_process(config(), 7);
    let saved = world.context(&prompt(9, 0));
    world.engine.save(saved, "a", nothing()).unwrap();
    let (opened, _) = world.engine.open_snapshot(P, "a").unwrap();
    let forked = world.context(&prompt(9, 0));
    let fork = world.engine.fork(forked).unwrap();
    let fork_of_fork = world.engine.fork(fork).unwrap();
    let texts = [opened, fork, fork_of_fork, saved].map(|context| world.draw(context));
    let distinct: HashSet<_> = texts.iter().collect();
    assert_eq!(distinct.len(), texts.len(), "{texts:?}");
}

#[test]
fn a_context_under_way_is_not_saved_and_not_suspended() {
    let mut world = World::with_process(config(), 1);
    let context = world.context(&prompt(5, 0));
    let request = world.submit(Submission::Flush(context)).unwrap();
    let codes = [
        world.engine.save(context, "a", nothing()).unwrap_err().code,
        world.engine.snapshot(context, nothing()).unwrap_err().code,
        world.engine.suspend(context).unwrap_err().code,
    ];
    assert_eq!(codes, [ErrorCode::ContextBusy; 3]);
    world.wait(request).unwrap();
    world.engine.save(context, "a", nothing()).unwrap();
    world.engine.release(context);
    let error = world.engine.save(context, "b", nothing()).unwrap_err();
    assert_eq!(error.code, ErrorCode::ContextReleased);
    assert_eq!(
        world.engine.suspend(context).unwrap_err().code,
        ErrorCode::ContextReleased
    );
}

#[test]
fn the_limits_are_of_one_user_and_of_all() {
    let limits = EngineConfig {
        max_snapshots: 3,
        max_user_snapshots: 2,
        ..config()
    };
    let mut world = World::with_process(limits, 1);
    world
        .engine
        .new_process(ProcessId(2), UserId(2), 1)
        .unwrap();
    let context = world.context(&prompt(5, 0));
    world.engine.save(context, "a", nothing()).unwrap();
    world.engine.save(context, "b", nothing()).unwrap();
    let error = world.engine.save(context, "c", nothing()).unwrap_err();
    assert_eq!(error.code, ErrorCode::LimitSnapshots);
    assert!(error.message.contains("max_user_snapshots"), "{error}");
    let error = world.engine.snapshot(context, nothing()).unwrap_err();
    assert_eq!(error.code, ErrorCode::LimitSnapshots);
    // Replacing takes no room.
    world.engine.save(context, "b", nothing()).unwrap();
    let other = world.engine.new_context(ProcessId(2)).unwrap();
    world.engine.save(other, "a", nothing()).unwrap();
    let error = world.engine.save(other, "b", nothing()).unwrap_err();
    assert_eq!(error.code, ErrorCode::LimitSnapshots);
    assert!(error.message.contains("max_snapshots"), "{error}");
    for name in [String::new(), "x".repeat(257)] {
        let error = world.engine.save(context, &name, nothing()).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidArgument);
    }
}

#[test]
fn a_name_that_cannot_be_shown_is_refused_with_the_place() {
    let mut world = World::with_process(config(), 1);
    let context = world.context(&prompt(5, 0));
    for (name, at) in [
        ("a\nb", "U+000A at byte 1"),
        ("é\u{7F}", "U+007F at byte 2"),
        ("\u{0}", "U+0000 at byte 0"),
    ] {
        let refused = [
            world.engine.save(context, name, nothing()).unwrap_err(),
            world.engine.open_snapshot(P, name).unwrap_err(),
            world.engine.take_snapshot(P, name).unwrap_err(),
            world.engine.delete_snapshot(P, name).unwrap_err(),
        ];
        for error in refused {
            assert_eq!(error.code, ErrorCode::InvalidArgument);
            assert!(error.message.contains(at), "{error}");
        }
    }
    world.engine.save(context, "é 日本", nothing()).unwrap();
}

#[test]
fn users_who_have_gone_do_not_keep_others_from_saving() {
    let limits = EngineConfig {
        max_snapshots: 5,
        max_user_snapshots: 3,
        ..config()
    };
    let mut world = World::with_process(limits, 1);
    let mut save = |user: u64, names: &[&str], stays: bool| {
        let (engine, process) = (&mut world.engine, ProcessId(100 + user));
        if engine.snapshots(process).is_err() {
            engine.new_process(process, UserId(user), 1).unwrap();
        }
        let context = engine.new_context(process).unwrap();
        let saved: Vec<_> = names
            .iter()
            .map(|name| {
                engine
                    .save(context, name, nothing())
                    .map_err(|error| error.code)
            })
            .collect();
        let left = engine.snapshots(process).unwrap();
        if !stays {
            engine.end_process(process);
        }
        (saved, left)
    };
    save(2, &["a", "b", "c"], false);
    save(3, &["a"], false);
    save(4, &["a"], true);
    // The first of the user who has gone and has the most gives way, but not once the two have as many.
    let (saved, left) = save(4, &["b", "c"], true);
    assert_eq!(saved, [Ok(()), Err(ErrorCode::LimitSnapshots)]);
    assert_eq!(left, ["a", "b"]);
    assert_eq!(save(2, &[], true).1, ["b", "c"]);
    // Those of users who are there stay, and those of one who has no more than the one that saves.
    let (saved, _) = save(5, &["a", "b"], true);
    assert_eq!(saved, [Ok(()), Err(ErrorCode::LimitSnapshots)]);
    assert_eq!(save(3, &[], true).1, [""; 0]);
    assert_eq!(save(2, &[], true).1, ["b", "c"]);
}

/// Of users who have gone with as many snapshots each, the one whose snapshot was used the longest ago gives it.
#[test]
fn the_snapshot_that_nobody_missed_for_longest_gives_way() {
    let limits = EngineConfig {
        max_snapshots: 4,
        max_user_snapshots: 3,
        ..config()
    };
    let save = |world: &mut World, user: u64, name: &str| {
        let process = ProcessId(100 + user);
        let engine = &mut world.engine;
        engine.new_process(process, UserId(user), 1).unwrap();
        let context = engine.new_context(process).unwrap();
        engine.save(context, name, nothing()).unwrap();
        engine.end_process(process);
    };
    let names = |world: &mut World, user: u64| {
        let process = ProcessId(200 + user);
        let engine = &mut world.engine;
        engine.new_process(process, UserId(user), 1).unwrap();
        let names = engine.snapshots(process).unwrap();
        engine.end_process(process);
        names
    };
    for users in 0..12 {
        let (first, second) = (10 + users % 2, 11 - users % 2);
        let mut world = World::new(limits.clone());
        for (user, name) in [(first, "a"), (second, "a"), (second, "b"), (first, "b")] {
            save(&mut world, user, name);
        }
        save(&mut world, 9, "new");
        assert_eq!(names(&mut world, first), ["b"]);
        assert_eq!(names(&mut world, second), ["a", "b"]);
        // One that was opened since is missed the more.
        let process = ProcessId(300);
        let engine = &mut world.engine;
        engine.new_process(process, UserId(second), 1).unwrap();
        engine.open_snapshot(process, "a").unwrap();
        engine.end_process(process);
        save(&mut world, 8, "new");
        assert_eq!(names(&mut world, second), ["a"]);
    }
}

#[test]
fn what_is_opened_counts_against_the_budget_and_a_refused_one_stays() {
    let mut world = World::with_process(config(), 1);
    let context = world.context(&prompt(6, 0));
    world.engine.save(context, "a", nothing()).unwrap();
    world.engine.set_token_budget(P, TokenBudget::new(10));
    world.engine.open_snapshot(P, "a").unwrap();
    let error = world.engine.take_snapshot(P, "a").unwrap_err();
    assert_eq!(error.code, ErrorCode::TokenBudget);
    assert_eq!(world.engine.snapshots(P).unwrap(), ["a"]);
}

// rows: RS-035 RS-064
#[test]
fn what_is_opened_draws_tokens_of_its_own_and_a_launch_repeats() {
    let launch = |seed: u64| -> Vec<Vec<u32>> {
        let mut world = World::with_process(config(), 5);
        let context = world.context(&prompt(9, 0));
        world.engine.save(context, "a", nothing()).unwrap();
        let id = ProcessId(2);
        world.engine.new_process(id, UserId(1), seed).unwrap();
        let mut contexts = Vec::new();
        for _ in 0..3 {
            contexts.push(world.engine.open_snapshot(id, "a").unwrap().0);
        }
        contexts.push(world.engine.fork(contexts[0]).unwrap());
        contexts.push(world.engine.take_snapshot(id, "a").unwrap().0);
        contexts
            .into_iter()
            .map(|context| world.draw(context))
            .collect()
    };
    assert_draws_repeat(launch);
}

// rows: RS-039..040
#[test]
fn a_snapshot_is_a_fork_apart_from_the_others_of_its_context() {
    let mut world = World::with_process(config(), 7);
    let context = world.context(&prompt(9, 0));
    world.engine.save(context, "a", nothing()).unwrap();
    let fork = world.engine.fork(context).unwrap();
    let (opened, _) = world.engine.open_snapshot(P, "a").unwrap();
    let texts = [fork, opened, context].map(|context| world.draw(context));
    assert!(texts[0] != texts[1] && texts[1] != texts[2] && texts[0] != texts[2]);
}

// rows: RS-035 RS-041
#[test]
fn a_snapshot_whose_pages_were_needed_is_computed_again() {
    let small = EngineConfig {
        driver: Capabilities {
            n_pages: 12,
            ..config().driver
        },
        ..config()
    };
    let mut world = World::with_process(small, 1);
    let context = world.context(&prompt(38, 0));
    world.flush(context).unwrap();
    world.engine.save(context, "a", nothing()).unwrap();
    world.engine.release(context);
    let other = world.context(&[5; 44]);
    world.flush(other).unwrap();
    world.engine.release(other);
    let (opened, _) = world.engine.take_snapshot(P, "a").unwrap();
    let generator = world.generator(opened, 3);
    assert_eq!(
        world.run(generator).unwrap().tokens,
        expected(&prompt(38, 0), 3)
    );
    let stats = world.engine.stats();
    assert!(stats.n_dropped > 0 && stats.n_replayed > 0, "{stats:?}");
}

// rows: RS-193
#[test]
fn a_suspended_context_has_no_page_until_its_next_pass() {
    let mut world = World::with_process(config(), 1);
    let context = world.context(&prompt(10, 0));
    let generator = world.generator(context, 4);
    let first = world.step(generator).unwrap().unwrap().tokens;
    assert!(world.engine.stats().n_pages_used > 0);
    world.engine.suspend(context).unwrap();
    world.engine.suspend(context).unwrap();
    let stats = world.engine.stats();
    assert_eq!((stats.n_pages_used, stats.n_suspended), (0, 0));
    assert_eq!(world.engine.length(context).unwrap(), 11);
    let mut tokens = first;
    while let Some(output) = world.step(generator).unwrap() {
        tokens.extend(output.tokens);
    }
    assert_eq!(tokens, expected(&prompt(10, 0), 4));
    assert_eq!(world.engine.stats().n_replayed, 0);
}

#[test]
fn pages_that_a_batch_uses_go_when_it_is_done() {
    let mut world = World::with_process(config(), 1);
    let context = world.context(&prompt(10, 0));
    let request = world.submit(Submission::Flush(context)).unwrap();
    assert!(world.plan());
    world.engine.cancel(request);
    world.engine.suspend(context).unwrap();
    assert!(world.engine.stats().n_pages_used > 0);
    world.finish();
    assert_eq!(world.engine.stats().n_pages_used, 0);
    // A pass that is entered before the batch is done keeps them.
    world.flush(context).unwrap();
    let generator = world.generator(context, 4);
    let request = world.submit(Submission::Run(generator)).unwrap();
    assert!(world.plan());
    world.engine.cancel(request);
    world.engine.suspend(context).unwrap();
    let request = world.submit(Submission::Flush(context)).unwrap();
    world.finish();
    assert!(world.engine.stats().n_pages_used > 0);
    world.wait(request).unwrap();
}

#[test]
fn what_is_opened_needs_room_as_any_context() {
    let narrow = EngineConfig {
        max_contexts: 2,
        ..config()
    };
    let mut world = World::with_process(narrow, 1);
    let context = world.context(&prompt(6, 0));
    world.engine.save(context, "a", nothing()).unwrap();
    let mut n_opened = 0;
    let refused = loop {
        match world.engine.open_snapshot(P, "a") {
            Ok(_) => n_opened += 1,
            Err(error) => break error,
        }
        assert!(n_opened < 5, "there is no limit");
    };
    assert_eq!(refused.code, ErrorCode::LimitResources);
    let refused = world.engine.take_snapshot(P, "a").unwrap_err();
    assert_eq!(refused.code, ErrorCode::LimitResources);
    assert_eq!(world.engine.snapshots(P).unwrap(), ["a"]);
}
