//! Conversations that were cut inside of what the template wrote: whatever is said next makes them whole.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use support::{CHATML, Context, chat};

/// A conversation, cut so that `kept` is left of its text, goes on with `step` as `text`.
#[track_caller]
fn check_cut(kept: &str, step: impl FnOnce(&mut Context) -> &mut Context, text: &str) {
    let chat = chat(CHATML);
    let mut context = Context::new(&chat);
    context
        .system("Be brief.")
        .user("Hello there")
        .assistant("Hi")
        .cue();
    let length = chat.tokenizer().encode(kept).unwrap().len();
    context.truncate(length);
    assert_eq!(context.text(), kept);
    assert!(!context.state.needs_cue());
    step(&mut context);
    assert_eq!(context.text(), text);
    // It stands as if it had been said like this.
    let mut again = context.clone();
    assert_eq!(
        context.seal().user("And?").tokens,
        again.user("And?").tokens
    );
}

#[test]
fn a_message_that_was_cut_is_closed_by_whatever_comes_next() {
    let system = "<|im_start|>system\nBe brief.<|im_end|>\n";
    for left in ["Hello there<|im_end|>", "Hello there", "Hell", ""] {
        let kept = format!("{system}<|im_start|>user\n{left}");
        let content = left.trim_end_matches("<|im_end|>");
        let closed = format!("{system}<|im_start|>user\n{content}<|im_end|>\n");
        let with = |more: &str| closed.clone() + more;
        check_cut(&kept, |it| it.seal(), &closed);
        check_cut(&kept, |it| it.cue(), &with("<|im_start|>assistant\n"));
        check_cut(
            &kept,
            |it| it.user("x"),
            &with("<|im_start|>user\nx<|im_end|>\n"),
        );
        check_cut(
            &kept,
            |it| it.system("x"),
            &with("<|im_start|>system\nx<|im_end|>\n"),
        );
        check_cut(
            &kept,
            |it| it.assistant("x"),
            &with("<|im_start|>assistant\nx<|im_end|>\n"),
        );
    }
}

#[test]
fn a_header_that_was_cut_becomes_the_next_one_or_is_completed() {
    let before = "<|im_start|>system\nBe brief.<|im_end|>\n";
    // Any header begins like this.
    let kept = format!("{before}<|im_start|>");
    check_cut(
        &kept,
        |it| it.user("x"),
        &format!("{kept}user\nx<|im_end|>\n"),
    );
    check_cut(&kept, |it| it.cue(), &format!("{kept}assistant\n"));
    check_cut(&kept, |it| it.seal(), &format!("{kept}user\n<|im_end|>\n"));
    // This one is a user's.
    let kept = format!("{before}<|im_start|>user");
    check_cut(&kept, |it| it.user("x"), &format!("{kept}\nx<|im_end|>\n"));
    let empty = format!("{kept}\n<|im_end|>\n");
    check_cut(
        &kept,
        |it| it.cue(),
        &format!("{empty}<|im_start|>assistant\n"),
    );
    check_cut(&kept, |it| it.seal(), &empty);
}

#[test]
fn a_cue_that_was_cut_becomes_the_next_header_or_is_completed() {
    let before = "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHello there<|im_end|>\n\
                  <|im_start|>assistant\nHi<|im_end|>\n";
    let kept = format!("{before}<|im_start|>");
    check_cut(
        &kept,
        |it| it.user("x"),
        &format!("{kept}user\nx<|im_end|>\n"),
    );
    check_cut(&kept, |it| it.cue(), &format!("{kept}assistant\n"));
    let kept = format!("{before}<|im_start|>assistant");
    let empty = format!("{kept}\n<|im_end|>\n");
    check_cut(
        &kept,
        |it| it.user("x"),
        &format!("{empty}<|im_start|>user\nx<|im_end|>\n"),
    );
    check_cut(
        &kept,
        |it| it.assistant("x"),
        &format!("{kept}\nx<|im_end|>\n"),
    );
    check_cut(&kept, |it| it.cue(), &format!("{kept}\n"));
    check_cut(&kept, |it| it.seal(), &empty);
}

#[test]
fn what_closes_an_answer_is_completed_too() {
    let chat = chat(CHATML);
    let mut context = Context::new(&chat);
    context.user("Hello").cue().generate("Hi").seal();
    let sealed = context.tokens.clone();
    context.truncate(sealed.len() - 1);
    for step in [Context::cue, Context::seal] {
        let mut context = context.clone();
        step(&mut context);
        assert!(context.tokens.starts_with(&sealed), "{}", context.text());
    }
    assert!(context.user("x").tokens.starts_with(&sealed));
}

#[test]
fn a_message_may_be_cut_again_and_again() {
    let chat = chat(CHATML);
    let mut context = Context::new(&chat);
    context.user("Hello there");
    while context.tokens.len() > 1 {
        context.truncate(context.tokens.len() - 1);
        let mut next = context.clone();
        next.user("x").cue();
        let text = next.text();
        let turns: Vec<&str> = text.split("<|im_end|>\n").collect();
        assert!(
            turns
                .iter()
                .all(|turn| turn.matches("<|im_start|>").count() == 1),
            "{text}"
        );
        assert!(
            text.ends_with("<|im_start|>user\nx<|im_end|>\n<|im_start|>assistant\n"),
            "{text}"
        );
    }
}

#[test]
fn what_is_buffered_moves_up_with_its_turns() {
    // Kept: a question. Buffered: another one, and a cue. All of the first is cut.
    let chat = chat(CHATML);
    let mut context = Context::new(&chat);
    let kept = context.user("Hello there").tokens.len();
    context.user("And?").cue();
    context.tokens.drain(..kept);
    context.state.truncate(kept as u32, 0);
    let mut afresh = Context::new(&chat);
    afresh.user("And?").cue();
    assert_eq!(context.tokens, afresh.tokens);
    // The cue is cut off again, where it begins by now.
    let length = context.tokens.len() - chat.cue_tokens().unwrap().len();
    context.truncate(length);
    assert!(context.state.needs_cue());
    assert_eq!(context.cue().tokens, afresh.tokens);
}

#[test]
fn a_cue_that_is_appended_raw_opens_the_turn() {
    let chat = chat(CHATML);
    let mut context = Context::new(&chat);
    context.user("Hello").append_text("<|im_start|>assistant\n");
    context.append_text("Hi").user("And?");
    let text = "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\nHi<|im_end|>\n\
                <|im_start|>user\nAnd?<|im_end|>\n";
    assert_eq!(context.text(), text);
}
