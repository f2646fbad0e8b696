//! What the model says, as events.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;

use pie_text::{Chat, ChatDecoder, ChatEvent, Error};
use support::{CHATML, chat, metaspace, tokenizer};

fn delta(text: &str) -> ChatEvent {
    ChatEvent::Delta(text.to_owned())
}

fn done(text: &str) -> ChatEvent {
    ChatEvent::Done(text.to_owned())
}

/// A decoder, and the function that encodes what it is fed.
fn decoder() -> (ChatDecoder, impl Fn(&str) -> Vec<u32>) {
    let chat = chat(CHATML);
    (ChatDecoder::new(Arc::clone(&chat)), move |text: &str| {
        chat.tokenizer().encode(text).unwrap()
    })
}

// rows: RS-168 RS-170..172
#[test]
fn a_turn_token_by_token() {
    let (mut it, encode) = decoder();
    let events: Vec<ChatEvent> = encode("Hi<|im_end|>")
        .iter()
        .map(|&id| it.feed(&[id]).unwrap())
        .collect();
    assert_eq!(events, [delta("H"), delta("i"), done("Hi")]);
    assert_eq!(it.feed(&[]).unwrap(), ChatEvent::Idle);
}

// rows: RS-168 RS-170..172
#[test]
fn one_event_a_feed_and_delta_before_done() {
    let (mut it, encode) = decoder();
    assert_eq!(it.feed(&encode("Hi<|im_end|>")).unwrap(), delta("Hi"));
    assert_eq!(it.feed(&[]).unwrap(), done("Hi"));
    assert_eq!(it.feed(&[]).unwrap(), ChatEvent::Idle);
    // The next turn starts by itself.
    assert_eq!(it.feed(&encode("<|im_end|>")).unwrap(), done(""));
    it.feed(&encode("a<|im_start|>b")).unwrap();
    it.reset();
    assert_eq!(it.feed(&encode("c<|im_end|>")).unwrap(), delta("c"));
    assert_eq!(it.feed(&[]).unwrap(), done("c"));
}

#[test]
fn what_it_will_hold_at_most_is_known_before_it_is_fed() {
    let (mut it, encode) = decoder();
    let torn: Vec<u32> = (0x80..0x100).collect();
    let ends = encode("a<|im_end|>b<|im_start|>").repeat(40);
    let parts = [
        encode("H"),
        encode(&"words and words ".repeat(300)),
        torn.repeat(20),
        vec![0xf0, 0x9f],
        ends,
        encode("<|im_end|>"),
    ];
    for n in 0..30 {
        let tokens = &parts[n * 7 % parts.len()];
        let most = it.most_bytes(tokens);
        it.feed(tokens).unwrap();
        assert!(it.held_bytes() <= most, "{} > {most}", it.held_bytes());
        if n % 3 == 0 {
            while it.feed(&[]).unwrap() != ChatEvent::Idle {}
        }
    }
}

// rows: RS-170..171
#[test]
fn characters_are_never_torn() {
    let (mut it, _) = decoder();
    let bytes = "é😀".bytes().map(u32::from);
    let events: Vec<ChatEvent> = bytes.map(|id| it.feed(&[id]).unwrap()).collect();
    use ChatEvent::Idle;
    assert_eq!(events, [Idle, delta("é"), Idle, Idle, Idle, delta("😀")]);
}

// rows: RS-170..171
#[test]
fn nothing_is_lost_of_what_is_torn() {
    let (mut it, encode) = decoder();
    assert_eq!(it.feed(&[0xF0, 0x9F]).unwrap(), ChatEvent::Idle);
    assert_eq!(it.feed(&[0x41]).unwrap(), delta("\u{FFFD}A"));
    assert_eq!(it.feed(&[0xC3]).unwrap(), ChatEvent::Idle);
    assert_eq!(it.feed(&encode("<|im_end|>")).unwrap(), delta("\u{FFFD}"));
    assert_eq!(it.feed(&[]).unwrap(), done("\u{FFFD}A\u{FFFD}"));
}

// rows: RS-171
#[test]
fn a_turn_without_a_stop_token_can_be_finished() {
    let (mut it, encode) = decoder();
    it.feed(&encode("Hi")).unwrap();
    it.feed(&[0xC3]).unwrap();
    assert_eq!(it.finish(), delta("\u{FFFD}"));
    assert_eq!(it.finish(), done("Hi\u{FFFD}"));
    assert_eq!(it.finish(), ChatEvent::Idle);
    assert_eq!(it.feed_last(&encode("Hi")).unwrap(), delta("Hi"));
    assert_eq!(it.feed(&[]).unwrap(), done("Hi"));
    assert_eq!(it.feed(&[]).unwrap(), ChatEvent::Idle);
}

// rows: RS-171 RS-188
#[test]
fn a_turn_that_ended_does_not_end_again() {
    let (mut it, encode) = decoder();
    assert_eq!(it.finish(), ChatEvent::Idle);
    assert_eq!(it.feed(&encode("Hi<|im_end|>")).unwrap(), delta("Hi"));
    assert_eq!(it.finish(), done("Hi"));
    assert_eq!(it.finish(), ChatEvent::Idle);
    assert_eq!(it.feed(&encode("Ho")).unwrap(), delta("Ho"));
    assert_eq!(it.feed_last(&encode("<|im_end|>")).unwrap(), done("Ho"));
    assert_eq!(it.feed_last(&[]).unwrap(), ChatEvent::Idle);
}

// rows: RS-171
#[test]
fn a_stop_token_ends_a_turn_in_which_nothing_was_said() {
    let (mut it, encode) = decoder();
    assert_eq!(it.feed_stopped(&[]).unwrap(), done(""));
    assert_eq!(it.feed(&[]).unwrap(), ChatEvent::Idle);
    assert_eq!(it.feed_stopped(&encode("Hi")).unwrap(), delta("Hi"));
    assert_eq!(it.feed(&[]).unwrap(), done("Hi"));
    assert_eq!(it.feed(&[]).unwrap(), ChatEvent::Idle);
}

// rows: RS-173
#[test]
fn control_tokens_interrupt_and_markers_are_text() {
    let (mut it, encode) = decoder();
    let start = encode("<|im_start|>")[0];
    assert_eq!(
        it.feed(&encode("a<|im_start|><think>b<|im_end|>")).unwrap(),
        delta("a")
    );
    assert_eq!(it.feed(&[]).unwrap(), ChatEvent::Interrupt(start));
    assert_eq!(it.feed(&[]).unwrap(), delta("<think>b"));
    assert_eq!(it.feed(&[]).unwrap(), done("a<think>b"));
}

// rows: RS-168
#[test]
fn bad_tokens_are_refused_whole() {
    let (mut it, encode) = decoder();
    let error = it.feed(&[encode("a")[0], 1_000_000]).unwrap_err();
    assert!(matches!(error, Error::Token { id: 1_000_000, .. }));
    assert_eq!(it.finish(), ChatEvent::Idle);
}

// rows: RS-168
#[test]
fn the_queue_is_bounded() {
    let (mut it, encode) = decoder();
    let start = encode("<|im_start|>")[0];
    let many = vec![start; pie_text::limits::MAX_QUEUED_EVENTS / 2 - 1];
    assert_eq!(it.feed(&many).unwrap(), ChatEvent::Interrupt(start));
    let error = it.feed(&many).unwrap_err();
    assert!(error.to_string().contains("feed([])"), "{error}");
    assert_eq!(it.feed(&[]).unwrap(), ChatEvent::Interrupt(start));
}

// rows: RS-170
#[test]
fn plain_text_is_one_event_however_long() {
    let (mut it, encode) = decoder();
    let tokens = encode("a").repeat(2 * pie_text::limits::MAX_QUEUED_EVENTS);
    assert!(it.feed(&tokens).unwrap() == delta(&"a".repeat(tokens.len())));
    assert_eq!(it.feed(&[]).unwrap(), ChatEvent::Idle);
}

// rows: RS-168
#[test]
fn the_text_of_all_undrained_turns_together_is_bounded() {
    let (mut it, encode) = decoder();
    let limit = pie_text::limits::MAX_HELD_BYTES;
    let mut turn = encode("a").repeat(limit / 4);
    turn.extend(encode("<|im_end|>"));
    // A turn leaves its text twice, as its delta and at its end, and each feed takes one of the two.
    for _ in 0..4 {
        it.feed(&turn).unwrap();
    }
    let error = it.feed(&turn).map(drop).unwrap_err();
    assert_eq!(error.code(), "invalid-argument");
    assert!(error.to_string().contains(&limit.to_string()), "{error}");
    while it.feed(&[]).unwrap() != ChatEvent::Idle {}
    it.feed(&turn).unwrap();
}

// rows: RS-168
#[test]
fn a_turn_without_end_is_bounded() {
    let (mut it, encode) = decoder();
    let quarter = encode("a").repeat(pie_text::limits::MAX_HELD_BYTES / 4);
    for _ in 0..4 {
        it.feed(&quarter).unwrap();
    }
    let error = it.feed(&quarter).map(drop).unwrap_err();
    assert!(error.to_string().contains("reset()"), "{error}");
    it.reset();
    it.feed(&quarter).unwrap();
}

// rows: RS-170..171
#[test]
fn the_space_that_sentencepiece_puts_first_is_not_said() {
    let chat = Arc::new(Chat::new(tokenizer(&metaspace()), None, vec![2]));
    let mut it = ChatDecoder::new(Arc::clone(&chat));
    let ids = chat.tokenizer().encode("hello world</s>").unwrap();
    it.feed(&ids).unwrap();
    assert_eq!(it.feed(&[]).unwrap(), done("hello world"));
}
