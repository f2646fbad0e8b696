//! Where a stop text ends a generation, on the dummy driver.

use pie_core::{ErrorCode, FinishReason};

use super::generator::Generator;
use super::testing::{Driven, step};
use crate::budget::{Account, Budget};

/// What the model says, across many tokens.
const REPLY: &str = "one two three END of it";

/// An account that nothing is refused.
fn large() -> Account {
    Budget::new(1 << 34, Some(1 << 34)).account("ada")
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

/// What the steps of a generator say to its end, and why it ended.
fn said(driven: &Driven, generator: &Generator) -> (String, FinishReason) {
    let chat = driven.model.chat().clone();
    let mut bytes = Vec::new();
    loop {
        let output = step(generator).unwrap();
        for &token in &output.tokens {
            bytes.extend_from_slice(chat.tokenizer().token_bytes(token).unwrap());
        }
        if let Some(finish) = output.finish {
            return (String::from_utf8(bytes).unwrap(), finish);
        }
    }
}

#[test]
fn a_generation_ends_with_the_token_that_completes_a_stop_text() {
    let driven = Driven::new(Some(REPLY));
    let account = large();
    for texts in [&["e END"][..], &["no such text", "END of"], &["w", "two"]] {
        let context = driven.context(&account, 5);
        let generator = driven.generator(&context, &account);
        generator.add_stop_texts(owned(texts), &account).unwrap();
        let (text, finish) = said(&driven, &generator);
        assert_eq!(finish, FinishReason::Stop);
        let ended = texts
            .iter()
            .filter_map(|&stop| Some(text.find(stop)? + stop.len()));
        let end = ended.min().unwrap();
        assert!(REPLY.starts_with(&text) && end <= text.len(), "{text:?}");
        // No token follows the one that completes it.
        let longest = driven.model.chat().tokenizer().encode(REPLY).unwrap();
        let longest = longest.iter().map(|&id| {
            let tokenizer = driven.model.chat().tokenizer();
            tokenizer.token_bytes(id).map_or(0, <[u8]>::len)
        });
        assert!(text.len() - end < longest.max().unwrap(), "{text:?}");
        assert_eq!(generator.open_step().unwrap(), None);
        let reason = generator.with_engine(|engine, id| engine.finish_reason(id));
        assert_eq!(reason.unwrap(), Some(FinishReason::Stop));
    }
}

#[test]
fn a_collection_that_is_given_up_reads_anew() {
    let driven = Driven::new(Some(REPLY));
    let account = large();
    let context = driven.context(&account, 5);
    let generator = driven.generator(&context, &account);
    generator
        .add_stop_texts(owned(&["three END"]), &account)
        .unwrap();
    assert!(generator.runs_by_steps());
    let n_tokens = || generator.with_engine(|engine, id| engine.tokens_generated(id).unwrap());
    let collection = generator.begin_collection(None, &account).unwrap();
    for _ in 0..4 {
        step(&generator).unwrap();
    }
    assert_eq!(n_tokens(), 0);
    generator.drop_collection(collection);
    let (text, finish) = said(&driven, &generator);
    assert!(text.starts_with("one two three END"), "{text:?}");
    assert_eq!(finish, FinishReason::Stop);
}

#[test]
fn stop_texts_are_charged_and_what_is_refused_changes_nothing() {
    let driven = Driven::new(Some(REPLY));
    // The floor of a user has room for the context, and none for the most stop texts.
    let account = Budget::new(1 << 20, Some(64 << 10)).account("ada");
    let context = driven.context(&account, 5);
    let generator = driven.generator(&context, &account);
    let many: Vec<String> = (0..64)
        .map(|n| format!("{n} {}", "x".repeat(250)))
        .collect();
    let refused = generator.add_stop_texts(many, &account).unwrap_err();
    assert_eq!(refused.code, ErrorCode::LimitEngineMemory);
    for texts in [
        owned(&["ok", ""]),
        vec!["x".repeat(257)],
        vec!["x".to_owned(); 65],
    ] {
        let refused = generator.set_stop_texts(texts, &account).unwrap_err();
        assert_eq!(refused.code, ErrorCode::InvalidArgument, "{refused}");
    }
    assert!(generator.stop_watch().is_none() && !generator.has_set_stop_texts());
    let before = account.usage().n_bytes();
    generator.add_stop_texts(owned(&["END"]), &account).unwrap();
    assert!(account.usage().n_bytes() > before);
    generator.set_stop_texts(owned(&["two"]), &account).unwrap();
    assert!(generator.has_set_stop_texts());
    let (text, _) = said(&driven, &generator);
    assert!(text.contains("two") && !text.contains("three"), "{text:?}");
}
