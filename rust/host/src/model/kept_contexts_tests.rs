//! Contexts that are saved to disk and opened from there, on the dummy driver: what they say, and what is charged.

use std::sync::Arc;

use pie_core::{ErrorCode, Submission, TokenBudget};

use super::adapters::{Recipe, Version};
use super::conversation::Context;
use super::kept_contexts::Opening;
use super::testing::{Driven, PROCESS, step};
use crate::Error;
use crate::budget::{Account, Budget, Purpose};

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
    assert_eq!(budget.held_bytes(), held, "what is on disk is charged to nobody");
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
    let set = |budget| driven.model.with_engine(|engine| engine.set_token_budget(PROCESS, budget));
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
    adapters.name(user, "mine", version.clone()).unwrap();
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
    assert!(held.upgrade().is_some(), "what was opened has to be computed");
    let refused = open(&driven, &account, true).unwrap_err();
    assert_eq!(refused.code, ErrorCode::SnapshotUnusable);
    assert!(refused.message.contains("adapter"), "{}", refused.message);
    assert_eq!(next_tokens(&driven, &opened, &account), expected);
    opened.release();
    assert!(held.upgrade().is_none(), "nothing on disk holds it");
    adapters.name(user, "mine", adapter(&driven, b"b")).unwrap();
    let refused = open(&driven, &account, true).unwrap_err();
    assert_eq!(refused.code, ErrorCode::SnapshotUnusable);
    adapters.replace(user, "mine", None, adapter(&driven, b"a")).unwrap();
    let taken = open(&driven, &account, true).unwrap();
    assert_eq!(next_tokens(&driven, &taken, &account), expected);
    taken.release();
    driven.model.check().unwrap();
}
