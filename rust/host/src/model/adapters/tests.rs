//! A version lives as long as somebody has it, and is charged and limited as long.

use std::time::Duration;

use pie_core::{Command, Submission};

use super::*;
use crate::model::testing::undriven;
use crate::model::{Model, driver};

const USER: UserId = UserId(1);
const OTHER: UserId = UserId(2);
const ANN: (UserId, &str) = (USER, "ann");

/// A version whose weights came about as `made_of` says.
fn version(model: &Arc<Model>, user: UserId, made_of: &str, folder: &str) -> Arc<Version> {
    let recipe = Recipe::new("test", &[made_of.as_bytes()]);
    let folder = model.adapters.folders.at(folder.into());
    model.adapters.new_version(user, recipe, folder)
}

/// A command that somebody asks for, as the driver gets it.
fn given(model: &Arc<Model>, command: Command) -> driver::Command {
    drop(model.submit(Submission::Command(None, command)));
    match model.next_work(Duration::from_secs(60)) {
        Some(driver::Work::Command(command)) => command,
        _ => panic!("there is no command"),
    }
}

fn code<T>(result: Result<T, Error>) -> Option<ErrorCode> {
    result.err().map(|error| error.code)
}

#[test]
fn a_recipe_is_known_by_its_kind_and_its_parts() {
    let parts: [&[u8]; 2] = [b"a", b"bc"];
    let recipe = Recipe::new("files", &parts);
    assert_eq!(recipe, Recipe::new("files", &parts));
    for other in [
        Recipe::new("change", &parts),
        Recipe::new("files", &[b"ab", b"c"]),
        Recipe::new("files", &[b"abc"]),
        Recipe::new("filesa", &[b"bc"]),
    ] {
        assert_ne!(recipe, other);
        assert_ne!(recipe.name(), other.name());
    }
}

#[test]
fn a_version_is_dropped_once_when_nobody_has_it() {
    let model = undriven();
    let adapters = &model.adapters;
    let made = version(&model, USER, "a", "/1");
    let name = made.name;
    adapters.name(ANN, "one", made.clone()).unwrap();
    adapters.name(ANN, "two", made).unwrap();
    assert_eq!(adapters.names(USER), ["one", "two"]);
    let used = adapters.find(USER, "two").unwrap();
    adapters.destroy(USER, "one").unwrap();
    adapters.destroy(USER, "two").unwrap();
    assert!(adapters.names(USER).is_empty());
    assert!(adapters.take_dropped().is_empty());
    drop(used);
    assert_eq!(adapters.take_dropped(), [name]);
    assert!(adapters.take_dropped().is_empty());
}

#[test]
fn a_list_tells_whose_each_is_and_what_its_files_take() {
    let model = undriven();
    let adapters = &model.adapters;
    let [one, other] = [(USER, "/1"), (OTHER, "/2")].map(|(user, at)| {
        let made = version(&model, user, "a", at);
        made.charge(7).unwrap();
        made
    });
    // The other user comes first by name, whatever the ids are.
    adapters.name((USER, "bob"), "b", one.clone()).unwrap();
    adapters.name((USER, "bob"), "a", one).unwrap();
    adapters.name((OTHER, "ann"), "c", other).unwrap();
    let listed = |user| {
        let each = adapters.list(user).into_iter();
        let told: Vec<_> = each.map(|it| (it.user, it.name, it.n_bytes)).collect();
        assert_eq!(told.len(), adapters.count(user));
        told
    };
    let told = |user: &str, name: &str| (user.to_owned(), name.to_owned(), 7);
    let (a, b, c) = (told("bob", "a"), told("bob", "b"), told("ann", "c"));
    assert_eq!(listed(None), [c.clone(), a.clone(), b.clone()]);
    assert_eq!(listed(Some(USER)), [a, b]);
    adapters.destroy(USER, "a").unwrap();
    adapters.destroy(USER, "b").unwrap();
    assert!(listed(Some(USER)).is_empty());
    assert_eq!(listed(None), [c]);
}

#[test]
fn equal_weights_are_dropped_with_the_last_of_them() {
    let model = undriven();
    let (one, other) = (
        version(&model, USER, "a", "/1"),
        version(&model, OTHER, "a", "/2"),
    );
    let name = one.name;
    assert_eq!(name, other.name);
    drop(one);
    assert!(model.adapters.take_dropped().is_empty());
    drop(other);
    let anew = version(&model, USER, "a", "/3");
    assert!(model.adapters.take_dropped().is_empty(), "it was made anew");
    drop(anew);
    assert_eq!(model.adapters.take_dropped(), [name]);
}

#[test]
fn what_nobody_waits_for_is_dropped_when_the_driver_is_done() {
    let model = undriven();
    let adapters = &model.adapters;
    let made = version(&model, USER, "a", "/1");
    let (name, held) = (made.name, Arc::downgrade(&made));
    let path = "/1".to_owned();
    let command = Command::LoadAdapter {
        adapter: name,
        path,
    };
    let running = given(&model, command);
    adapters.abandon(made);
    model.with_engine(|_| ());
    assert!(held.upgrade().is_some(), "the driver writes to its folder");
    model.complete_command(&running, Ok(())).unwrap();
    assert!(held.upgrade().is_none());
    assert_eq!(adapters.take_dropped(), [name]);
}

#[test]
fn what_the_driver_has_read_last_stays_as_long_as_equal_weights() {
    let model = undriven();
    let (one, other) = (
        version(&model, USER, "a", "/1"),
        version(&model, OTHER, "a", "/2"),
    );
    let last = Arc::downgrade(&other.folder);
    let load = Command::LoadAdapter {
        adapter: other.name,
        path: "/2".to_owned(),
    };
    let running = given(&model, load);
    model.complete_command(&running, Ok(())).unwrap();
    for version in [&one, &other] {
        model.with_engine(|engine| version.note_read(engine));
    }
    drop(other);
    assert!(last.upgrade().is_some(), "another driver would read it");
    drop(one);
    assert!(last.upgrade().is_none());
}

#[test]
fn names_are_checked_and_limited() {
    let model = undriven();
    let adapters = &model.adapters;
    let made = version(&model, USER, "a", "/1");
    let long = "x".repeat(MAX_NAME_BYTES + 1);
    for name in ["", "a\nb", &long] {
        let refused = adapters.name(ANN, name, made.clone());
        assert_eq!(code(refused), Some(ErrorCode::InvalidArgument), "{name:?}");
    }
    for idx in 0..adapters.limits.n_user_names {
        adapters.name(ANN, &idx.to_string(), made.clone()).unwrap();
    }
    assert_eq!(
        code(adapters.check_new(USER, "0")),
        Some(ErrorCode::AdapterExists)
    );
    assert_eq!(
        code(adapters.check_new(USER, "new")),
        Some(ErrorCode::LimitAdapters)
    );
    adapters.check_new(OTHER, "0").unwrap();
    assert_eq!(
        code(adapters.find(OTHER, "0")),
        Some(ErrorCode::AdapterMissing)
    );
    adapters.destroy(USER, "0").unwrap();
    adapters.check_new(USER, "0").unwrap();
    assert_eq!(
        code(adapters.destroy(USER, "0")),
        Some(ErrorCode::AdapterMissing)
    );
}

#[test]
fn a_change_of_what_was_changed_meanwhile_is_refused() {
    let model = undriven();
    let adapters = &model.adapters;
    let [first, second, third] = ["a", "b", "c"].map(|it| version(&model, USER, it, it));
    let names = [first.name, second.name, third.name];
    adapters.name(ANN, "mine", first.clone()).unwrap();
    adapters
        .replace(USER, "mine", Some(&first), second)
        .unwrap();
    let late = adapters.replace(USER, "mine", Some(&first), third);
    assert_eq!(code(late), Some(ErrorCode::AdapterBusy));
    assert_eq!(adapters.take_dropped(), [names[2]]);
    let loaded = version(&model, USER, "d", "d");
    adapters.replace(USER, "mine", None, loaded).unwrap();
    assert_eq!(adapters.take_dropped(), [names[1]]);
    let gone = adapters.replace(USER, "other", None, first);
    assert_eq!(code(gone), Some(ErrorCode::AdapterMissing));
}

#[test]
fn a_user_is_charged_as_long_as_a_version_lives() {
    let model = undriven();
    let adapters = &model.adapters;
    let limit = adapters.limits.user_bytes;
    let (large, small) = (
        version(&model, USER, "a", "/1"),
        version(&model, USER, "b", "/2"),
    );
    large.charge(limit).unwrap();
    assert_eq!(
        code(adapters.bytes_left(USER)),
        Some(ErrorCode::LimitAdapters)
    );
    assert_eq!(code(small.charge(1)), Some(ErrorCode::LimitAdapters));
    assert_eq!(adapters.bytes_left(OTHER).unwrap(), limit);
    drop(large);
    small.charge(1).unwrap();
    assert_eq!(adapters.bytes_left(USER).unwrap(), limit - 1);
    drop(small);
    assert!(lock(&adapters.state).users.is_empty());
}
