//! What a step leaves where it cannot be taken, and what contexts are charged with, on the dummy driver.

use std::time::Duration;

use pie_core::{Drafting, DriverAnswer, ErrorCode, TokenBudget};

use super::conversation::Context;
use super::draft_model::DraftModel;
use super::driver::Work;
use super::dummy;
use super::generator::Generator;
use super::grammars::OwnedSource;
use super::testing::{Driven, PROCESS, step};
use crate::budget::{Account, Budget, Purpose};

const MIB: u64 = 1 << 20;
/// No batch takes a tenth of it to come.
const PATIENCE: Duration = Duration::from_secs(60);

/// An account that nothing is refused.
fn large() -> Account {
    Budget::new(1 << 34, Some(1 << 34)).account("ada")
}

/// What a program can see of a generation, without what it has drawn last.
fn seen(generator: &Generator) -> (u32, u32, Vec<u32>) {
    generator.with_engine(|engine, id| {
        let context = generator.context.id;
        (
            engine.length(context).unwrap(),
            engine.tokens_generated(id).unwrap(),
            engine.tail(context, 1000).unwrap(),
        )
    })
}

fn forcing() -> OwnedSource {
    // A text that is forced from its first token on.
    OwnedSource::Regex("the quick brown fox jumps over the lazy dog, ".repeat(100))
}

/// A batch is handed out while nobody can make the mask of its step, and is computed and answered meanwhile too. The
/// mask comes later, and what is drawn is what it allows.
#[test]
fn a_mask_is_made_while_its_batch_is_computed() {
    let account = large();
    let letters = || OwnedSource::Regex("[xyz]{3}".to_owned());
    let expected = {
        let driven = Driven::new(None);
        let context = driven.context(&account, 20);
        let generator = driven.generator(&context, &account);
        driven.constrain(&generator, &letters(), &account);
        step(&generator).unwrap().tokens
    };
    for answered_before in [true, false] {
        let driven = Driven::by_hand();
        let context = driven.context(&account, 20);
        let generator = driven.generator(&context, &account);
        driven.constrain(&generator, &letters(), &account);
        let mut driver = dummy::driver(&driven.model, Vec::new()).unwrap();
        let held = generator.hold_constraints();
        let tokens = std::thread::scope(|scope| {
            let stepping = scope.spawn(|| step(&generator).map(|output| output.tokens));
            let Some(Work::Batch(batch)) = driven.model.next_work(PATIENCE) else {
                drop(held);
                driven.model.stop();
                panic!("no batch came without a mask");
            };
            let computed = driver.run(batch.arena()).unwrap();
            let answer = || {
                let logits = DriverAnswer::Logits(&computed.logits);
                driven.model.complete(&batch, logits, &computed.failures)
            };
            if answered_before {
                answer().unwrap();
                drop(held);
            } else {
                drop(held);
                answer().unwrap();
            }
            stepping.join().unwrap()
        });
        assert_eq!(tokens.unwrap(), expected, "{answered_before}");
    }
    let text = super::testing::tiny_chat().tokenizer().decode(&expected);
    assert!(text.unwrap().starts_with(['x', 'y', 'z']));
}

#[test]
fn a_step_whose_forced_text_has_no_room_fails_as_a_whole_and_comes_again() {
    let driven = Driven::new(None);
    let accounts = large();
    let expected = {
        let context = driven.context(&accounts, 160);
        let generator = driven.generator(&context, &accounts);
        driven.constrain(&generator, &forcing(), &accounts);
        step(&generator).unwrap().tokens
    };
    assert!(expected.len() > 700, "{}", expected.len());
    // The floor of a user, which is 16 KiB here, has room for the step and none for the text.
    let budget = Budget::new(MIB, Some(64 << 10));
    let account = budget.account("ada");
    let filled = account.charge(Purpose::Queue, 60 << 10).unwrap();
    let context = driven.context(&account, 160);
    let generator = driven.generator(&context, &accounts);
    driven.constrain(&generator, &forcing(), &accounts);
    let before = seen(&generator);
    for _ in 0..2 {
        let refused = step(&generator).unwrap_err();
        assert_eq!(refused.code, ErrorCode::LimitEngineMemory);
        assert_eq!(seen(&generator), before);
    }
    drop(filled);
    assert_eq!(step(&generator).unwrap().tokens, expected);
    assert_eq!(seen(&generator).1 as usize, expected.len());
}

#[test]
fn forced_text_beyond_a_token_budget_is_drawn_for_as_long_as_there_is_some() {
    let driven = Driven::new(None);
    let account = large();
    let context = driven.context(&account, 20);
    driven.model.with_engine(|engine| {
        engine.set_token_budget(PROCESS, TokenBudget::new(3));
    });
    let generator = driven.generator(&context, &account);
    driven.constrain(&generator, &forcing(), &account);
    for _ in 0..3 {
        assert_eq!(step(&generator).unwrap().tokens.len(), 1);
    }
    let refused = step(&generator).unwrap_err();
    assert_eq!(refused.code, ErrorCode::TokenBudget);
    assert_eq!(seen(&generator).1, 3);
}

#[test]
fn a_step_that_a_constraint_refuses_leaves_everything_as_it_was() {
    // The grammar of any JSON lets lists stand in each other, and a document is given up where they stand too deep.
    let driven = Driven::new(Some(&"[".repeat(200)));
    let account = large();
    let context = driven.context(&account, 5);
    let generator = driven.generator(&context, &account);
    // The first goes on where the second gives up.
    let lists = OwnedSource::Regex("[\\[]*".to_owned());
    driven.constrain(&generator, &lists, &account);
    driven.constrain(&generator, &OwnedSource::AnyJson, &account);
    let mut n_steps = 0;
    let (refused, before) = loop {
        let before = seen(&generator);
        match step(&generator) {
            Ok(output) => assert!(!output.tokens.is_empty()),
            Err(error) => break (error, before),
        }
        n_steps += 1;
        assert!(n_steps <= 120);
    };
    assert_eq!(refused.code, ErrorCode::InvalidGrammar, "{refused}");
    assert!(
        refused.message.contains("the limit of 120 deep"),
        "{refused}"
    );
    assert_eq!(seen(&generator), before);
    // It comes again: the first constraint stands where it stood, and what is refused is refused again.
    let again = step(&generator).unwrap_err();
    assert_eq!(again, refused);
    assert_eq!(seen(&generator), before);
}

#[test]
fn a_snapshot_that_is_taken_is_never_lost_for_want_of_memory() {
    let driven = Driven::new(None);
    let model = &driven.model;
    let budget = Budget::new(MIB, Some(20 << 10));
    let small = budget.account("ada");
    // The charge of a snapshot is exact, that of a context has steps: this one has room for the first alone.
    let context = driven.context(&large(), 800);
    let name = context.save("ada", &small, pie_core::Engine::snapshot);
    let name = name.unwrap();
    let saved = budget.held_bytes();
    assert!(saved >= 800 * 24);
    let refused = model.with_engine(|engine| engine.open_snapshot(PROCESS, &name));
    let (id, host_data) = refused.unwrap();
    let refused = Context::open(model.clone(), id, &host_data, small.clone()).unwrap_err();
    assert_eq!(refused.code, ErrorCode::LimitEngineMemory);
    drop(host_data);
    let taken = model.with_engine(|engine| engine.take_snapshot(PROCESS, &name));
    let (id, host_data) = taken.unwrap();
    let taken = Context::take_over(model.clone(), id, &host_data, small.clone());
    drop(host_data);
    let length = model.with_engine(|engine| engine.length(taken.id));
    assert_eq!(length, Ok(800));
    let held = budget.held_bytes();
    assert!((800 * 24..=saved).contains(&held), "{held}");
    let of_purpose = |wanted| {
        let usage = small.usage();
        let mut held = usage.by_purpose();
        held.find(|(purpose, _)| *purpose == wanted).unwrap().1
    };
    assert_eq!(of_purpose(Purpose::Snapshot), 0);
    assert_eq!(of_purpose(Purpose::Text), held);
    taken.release();
    assert_eq!(budget.held_bytes(), 0);
}

#[test]
fn what_was_not_appended_is_not_charged() {
    let driven = Driven::new(None);
    let budget = Budget::new(64 * MIB, Some(64 * MIB));
    let context = driven.context(&budget.account("ada"), 1000);
    let before = budget.held_bytes();
    let wrong = context.append(&vec![1_000_000; 20_000]).unwrap_err();
    assert_eq!(wrong.code, ErrorCode::InvalidToken);
    assert_eq!(budget.held_bytes(), before);
    let long = context.append(&vec![5; 40_000]).unwrap_err();
    assert_eq!(long.code, ErrorCode::ContextFull);
    assert_eq!(budget.held_bytes(), before);
}

#[test]
fn a_context_that_cannot_follow_stays_charged_with_what_it_has() {
    let driven = Driven::new(None);
    let budget = Budget::new(MIB, Some(64 << 10));
    let account = budget.account("ada");
    let context = Context::create_draft(driven.model.clone(), PROCESS, account).unwrap();
    context.follow(0, &[5; 1000], 4).unwrap();
    let held = budget.held_bytes();
    assert!(held >= 1000 * 24);
    let refused = context.follow(1000, &[6; 9000], 4).unwrap_err();
    assert_eq!(refused.code, ErrorCode::LimitEngineMemory);
    assert_eq!(budget.held_bytes(), held);
}

#[test]
fn the_mask_of_a_model_that_drafts_is_charged() {
    let driven = Driven::new(None);
    let budget = Budget::new(64 * MIB, Some(64 * MIB));
    let account = budget.account("ada");
    let context = driven.context(&account, 8);
    let generator = driven.generator(&context, &account);
    let held = || budget.held_bytes();
    let (without, mask_bytes) = (held(), 4 * 4096);
    generator.set_mask(&[1; 4096]).unwrap();
    let once = held();
    assert!((mask_bytes..2 * mask_bytes).contains(&(once - without)));
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.build().unwrap();
    let model = &driven.model;
    let draft = |drafting, drafts| {
        let set = model.set_drafting(generator.id, drafting, drafts, runtime.handle());
        set.and_then(|()| generator.recharge()).unwrap();
    };
    let drafts = DraftModel::new(model.clone(), PROCESS, account.clone(), generator.sampler);
    draft(Drafting::Host, Some(drafts.unwrap()));
    assert!(held() - without >= 3 * mask_bytes);
    // Others draft: the mask is there once, and a model that does not draft any more has no context.
    draft(Drafting::None, None);
    assert_eq!(held(), once);
    drop(generator);
    assert_eq!(held(), without);
}

#[test]
fn stop_tokens_are_given_to_the_core_once_each() {
    let driven = Driven::new(None);
    let list = driven.model.stop_list([5, 3].repeat(100_000)).unwrap();
    assert_eq!(list, [3, 5]);
    let wrong = driven.model.stop_list(vec![5, 4096]).unwrap_err();
    assert_eq!(wrong.code, ErrorCode::InvalidToken);
}
