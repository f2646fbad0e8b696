//! Contexts that are saved to disk and opened from there, on the dummy driver: what they say, and what is charged.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pie_core::{Capabilities, ErrorCode, Submission, TokenBudget};

use super::adapters::{Recipe, Version};
use super::conversation::Context;
use super::kept_contexts::Opening;
use super::testing::{Driven, PROCESS, step};
use crate::Error;
use crate::budget::{Account, Budget, Purpose};
use crate::snapshots::config::PageKeeping;

const MIB: u64 = 1 << 20;
const USER: &str = "ada";

/// Runs a call to its end, on a runtime of its own: the rest of a test may block.
fn wait<T>(call: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(call)
}

/// Opens a snapshot of the user, or takes it.
fn open(driven: &Driven, account: &Account, is_taken: bool) -> Result<Arc<Context>, Error> {
    let opening = Opening {
        process: PROCESS,
        user: USER.to_owned(),
        name: "a".to_owned(),
        account: account.clone(),
        is_taken,
        absent: Error::new(ErrorCode::SnapshotMissing, "there is none"),
    };
    let keeping = driven.model.keeping().unwrap();
    wait(Context::open_kept(driven.model.clone(), keeping, opening)).map(Arc::new)
}

fn save(driven: &Driven, context: &Arc<Context>, account: &Account) -> Result<(), Error> {
    let keeping = driven.model.keeping().unwrap();
    let saving = context.clone();
    wait(saving.save_on_disk(keeping, "a".to_owned(), account))
}

fn next_tokens(driven: &Driven, context: &Arc<Context>, account: &Account) -> Vec<u32> {
    let generator = driven.generator(context, account);
    let mut tokens = Vec::new();
    for _ in 0..4 {
        tokens.extend(step(&generator).unwrap().tokens);
    }
    tokens
}

#[test]
fn a_context_goes_on_in_the_next_model_and_is_charged_as_before() {
    let dir = tempfile::tempdir().unwrap();
    let budget = Budget::new(1 << 34, Some(1 << 34));
    let account = budget.account(USER);
    let first = Driven::keeping_in(dir.path());
    let context = first.context(&account, 3000);
    let held = budget.held_bytes();
    save(&first, &context, &account).unwrap();
    assert_eq!(
        budget.held_bytes(),
        held,
        "what is on disk is charged to nobody"
    );
    let expected = next_tokens(&first, &context, &account);
    context.release();
    drop((context, first));
    assert_eq!(budget.held_bytes(), 0);
    let second = Driven::keeping_in(dir.path());
    for is_taken in [false, true] {
        let opened = open(&second, &account, is_taken).unwrap();
        assert!((3000 * 24..=2 * held).contains(&budget.held_bytes()));
        assert_eq!(next_tokens(&second, &opened, &account), expected);
        opened.release();
    }
    assert_eq!(budget.held_bytes(), 0);
    let gone = open(&second, &account, false).unwrap_err();
    assert_eq!(gone.code, ErrorCode::SnapshotMissing);
    second.model.check().unwrap();
}

#[test]
fn a_snapshot_that_cannot_be_charged_or_paid_is_refused_and_stays() {
    let dir = tempfile::tempdir().unwrap();
    let driven = Driven::keeping_in(dir.path());
    let rich = Budget::new(1 << 34, Some(1 << 34)).account(USER);
    let context = driven.context(&rich, 3000);
    save(&driven, &context, &rich).unwrap();
    // The floor of a user, which is 16 KiB here, has no room for it.
    let budget = Budget::new(MIB, Some(64 << 10));
    let poor = budget.account(USER);
    let filled = poor.charge(Purpose::Queue, 60 << 10).unwrap();
    let refused = open(&driven, &poor, true).unwrap_err();
    assert_eq!(refused.code, ErrorCode::LimitEngineMemory);
    let refused = save(&driven, &context, &poor).unwrap_err();
    assert_eq!(refused.code, ErrorCode::LimitEngineMemory);
    assert_eq!(budget.held_bytes(), filled.n_bytes());
    let few = TokenBudget::new(2999);
    let set = |budget| {
        driven
            .model
            .with_engine(|engine| engine.set_token_budget(PROCESS, budget))
    };
    set(few);
    let refused = open(&driven, &rich, true).unwrap_err();
    assert_eq!(refused.code, ErrorCode::TokenBudget);
    set(TokenBudget::new(3000));
    open(&driven, &rich, true).unwrap().release();
    driven.model.check().unwrap();
}

#[test]
fn a_context_under_way_is_not_saved() {
    let dir = tempfile::tempdir().unwrap();
    let driven = Driven::keeping_in(dir.path());
    let account = Budget::new(1 << 34, Some(1 << 34)).account(USER);
    let context = driven.context(&account, 300);
    let (request, receiver) = driven.model.submit(Submission::Flush(context.id));
    let refused = save(&driven, &context, &account).unwrap_err();
    assert_eq!(refused.code, ErrorCode::ContextBusy);
    receiver.blocking_recv().unwrap().unwrap();
    let taken = driven.model.with_engine(|engine| engine.take(request));
    taken.unwrap().unwrap();
    save(&driven, &context, &account).unwrap();
    let named = driven.model.snapshots(Some(USER)).unwrap();
    assert_eq!((named.len(), named[0].n_tokens), (1, 300));
    assert_eq!(driven.model.n_snapshots(None), 1);
    driven.model.delete_snapshot(USER, "a").unwrap();
    let gone = driven.model.delete_snapshot(USER, "a").unwrap_err();
    assert_eq!(gone.code, ErrorCode::SnapshotMissing);
}

#[test]
fn of_the_names_on_disk_those_count_that_the_engine_could_make_up() {
    let (dir, account) = (tempfile::tempdir().unwrap(), account());
    let driven = Driven::keeping_in(dir.path());
    let context = driven.context(&account, 10);
    let made_up = driven
        .model
        .with_engine(|engine| engine.snapshot(context.id, Arc::new(())));
    let made_up = made_up.unwrap();
    for name in ["a", "snapshots", "a-snapshot-1", &made_up] {
        let keeping = driven.model.keeping().unwrap();
        let saving = context.clone();
        wait(saving.save_on_disk(keeping, name.to_owned(), &account)).unwrap();
    }
    let counted = wait(driven.model.made_up_names(USER)).unwrap();
    assert_eq!(counted, HashSet::from([made_up]));
}

/// An adapter of the user, whose weights came about as `made_of` says.
fn adapter(driven: &Driven, made_of: &[u8]) -> Arc<Version> {
    let model = &driven.model;
    let asker = (model.user(USER), PROCESS);
    let recipe = Recipe::new("test", &[made_of]);
    let folder = model.adapters.folders.at("/adapter".into());
    wait(model.read_version(asker, recipe, folder)).unwrap()
}

#[test]
fn tokens_of_an_adapter_are_opened_where_the_user_has_it_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let driven = Driven::keeping_in(dir.path());
    let account = Budget::new(1 << 34, Some(1 << 34)).account(USER);
    let (adapters, user) = (&driven.model.adapters, driven.model.user(USER));
    let version = adapter(&driven, b"a");
    let (name, held) = (version.name, Arc::downgrade(&version));
    adapters
        .name((user, USER), "mine", version.clone())
        .unwrap();
    let context = driven.context(&account, 300);
    let generator = driven.generator(&context, &account);
    context.hold(version).unwrap();
    let given = generator.with_engine(|engine, id| engine.set_adapter(id, name.id, name.version));
    given.unwrap();
    for _ in 0..3 {
        step(&generator).unwrap();
    }
    save(&driven, &context, &account).unwrap();
    let expected = next_tokens(&driven, &context, &account);
    let opened = open(&driven, &account, false).unwrap();
    adapters.destroy(user, "mine").unwrap();
    context.release();
    assert!(
        held.upgrade().is_some(),
        "what was opened has to be computed"
    );
    let refused = open(&driven, &account, true).unwrap_err();
    assert_eq!(refused.code, ErrorCode::SnapshotUnusable);
    let said = "computed with the adapter that was called \"mine\" when it was saved (";
    assert!(refused.message.contains(said), "{}", refused.message);
    assert_eq!(next_tokens(&driven, &opened, &account), expected);
    opened.release();
    assert!(held.upgrade().is_none(), "nothing on disk holds it");
    adapters
        .name((user, USER), "mine", adapter(&driven, b"b"))
        .unwrap();
    let refused = open(&driven, &account, true).unwrap_err();
    assert_eq!(refused.code, ErrorCode::SnapshotUnusable);
    adapters
        .replace(user, "mine", None, adapter(&driven, b"a"))
        .unwrap();
    let taken = open(&driven, &account, true).unwrap();
    assert_eq!(next_tokens(&driven, &taken, &account), expected);
    taken.release();
    driven.model.check().unwrap();
}

/// Pages of the runs of a context of 3000 tokens.
const N_PAGES: u64 = 128;

fn gives_pages(driver: &mut Capabilities) {
    driver.page_bytes = 16 * u64::from(driver.page_size);
    driver.pages_made_by = "test-1".to_owned();
}

fn with_pages(dir: &Path) -> Driven {
    Driven::keeping_pages_in(dir, PageKeeping::Always, gives_pages)
}

fn page_files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir.join("tiny")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|it| it == "kv"))
        .collect();
    files.sort();
    files
}

/// Saves a context of 3000 computed tokens. Returns the tokens that come next.
fn save_computed(driven: &Driven, account: &Account) -> Vec<u32> {
    let context = driven.context(account, 3000);
    let (request, receiver) = driven.model.submit(Submission::Flush(context.id));
    receiver.blocking_recv().unwrap().unwrap();
    let taken = driven.model.with_engine(|engine| engine.take(request));
    taken.unwrap().unwrap();
    save(driven, &context, account).unwrap();
    let tokens = next_tokens(driven, &context, account);
    context.release();
    tokens
}

/// Opens the snapshot on a driver that has nothing. Returns the tokens that come next, and how many pages were read.
fn go_on(driven: &Driven, account: &Account) -> (Vec<u32>, u64) {
    let opened = open(driven, account, false).unwrap();
    let tokens = next_tokens(driven, &opened, account);
    opened.release();
    driven.model.check().unwrap();
    (tokens, driven.model.stats().n_pages_imported)
}

fn account() -> Account {
    Budget::new(1 << 34, Some(1 << 34)).account(USER)
}

#[test]
fn pages_are_read_in_place_of_being_computed() {
    let (dir, account) = (tempfile::tempdir().unwrap(), account());
    let first = with_pages(dir.path());
    let expected = save_computed(&first, &account);
    assert_eq!(first.model.stats().n_pages_exported, N_PAGES);
    // What is there is not written again.
    let again = open(&first, &account, false).unwrap();
    save(&first, &again, &account).unwrap();
    assert_eq!(first.model.stats().n_pages_exported, N_PAGES);
    again.release();
    drop((again, first));
    assert_eq!(page_files(dir.path()).len(), 2);
    let second = with_pages(dir.path());
    let opened = open(&second, &account, false).unwrap();
    assert_eq!(
        second.model.stats().n_pages_imported,
        0,
        "nobody wants them yet"
    );
    let fork = Arc::new(opened.fork().unwrap());
    opened.release();
    assert_eq!(next_tokens(&second, &fork, &account), expected);
    let stats = second.model.stats();
    assert_eq!(stats.n_pages_imported, N_PAGES);
    assert!(stats.n_tokens < 2000, "{stats:?}");
    fork.release();
}

#[test]
fn a_damaged_page_is_computed_and_the_snapshot_stays() {
    let (dir, account) = (tempfile::tempdir().unwrap(), account());
    let first = with_pages(dir.path());
    let expected = save_computed(&first, &account);
    drop(first);
    for path in page_files(dir.path()) {
        let mut bytes = fs::read(&path).unwrap();
        // In the page before the last.
        let at = bytes.len() - 300;
        bytes[at] ^= 1;
        fs::write(&path, bytes).unwrap();
    }
    let second = with_pages(dir.path());
    assert_eq!(go_on(&second, &account), (expected.clone(), 62));
    drop(second);
    for path in page_files(dir.path()) {
        fs::write(&path, b"pie-page").unwrap();
    }
    let third = with_pages(dir.path());
    assert_eq!(go_on(&third, &account), (expected, 0));
}

#[test]
fn pages_of_another_size_or_maker_and_those_that_are_not_wanted_are_computed() {
    let (dir, account) = (tempfile::tempdir().unwrap(), account());
    let first = with_pages(dir.path());
    let expected = save_computed(&first, &account);
    drop(first);
    let other_size = |driver: &mut Capabilities| {
        driver.page_size = 32;
        gives_pages(driver);
    };
    let other_maker = |driver: &mut Capabilities| {
        gives_pages(driver);
        driver.pages_made_by = "test-2".to_owned();
    };
    let second = Driven::keeping_pages_in(dir.path(), PageKeeping::Always, other_size);
    assert_eq!(go_on(&second, &account), (expected.clone(), 0));
    drop(second);
    let third = Driven::keeping_pages_in(dir.path(), PageKeeping::Always, other_maker);
    assert_eq!(go_on(&third, &account), (expected.clone(), 0));
    drop(third);
    let fourth = Driven::keeping_pages_in(dir.path(), PageKeeping::Never, gives_pages);
    assert_eq!(go_on(&fourth, &account), (expected, 0));
}

#[test]
fn a_pool_that_others_use_takes_as_many_pages_as_are_free() {
    let (dir, account) = (tempfile::tempdir().unwrap(), account());
    let first = with_pages(dir.path());
    let expected = save_computed(&first, &account);
    drop(first);
    let small = |driver: &mut Capabilities| {
        gives_pages(driver);
        driver.n_pages = 200;
    };
    let second = Driven::keeping_pages_in(dir.path(), PageKeeping::Always, small);
    let other = second.context(&account, 1600);
    let generator = second.generator(&other, &account);
    step(&generator).unwrap();
    let (tokens, n_imported) = go_on(&second, &account);
    assert_eq!(tokens, expected);
    assert!((1..N_PAGES).contains(&n_imported), "{n_imported}");
    drop(generator);
    other.release();
}

#[test]
fn pages_go_with_the_snapshot_once_they_were_read() {
    let (dir, account) = (tempfile::tempdir().unwrap(), account());
    let first = with_pages(dir.path());
    let expected = save_computed(&first, &account);
    drop(first);
    let second = with_pages(dir.path());
    let taken = open(&second, &account, true).unwrap();
    assert_eq!(second.model.n_snapshots(None), 0);
    assert_eq!(page_files(dir.path()).len(), 2, "its first pass reads them");
    assert_eq!(next_tokens(&second, &taken, &account), expected);
    assert_eq!(second.model.stats().n_pages_imported, N_PAGES);
    drop(second);
    let third = with_pages(dir.path());
    assert!(third.model.snapshots(Some(USER)).unwrap().is_empty());
    assert!(page_files(dir.path()).is_empty());
    drop(taken);
}
