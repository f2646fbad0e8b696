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

// rows: RS-042..046 RS-049
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

// rows: RS-042..046 RS-049
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

// rows: RS-045 RS-049
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

// rows: RS-044 RS-046 RS-049
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

// rows: RS-049
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

// rows: RS-049
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

// rows: RS-045 RS-047 RS-049
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

// rows: RS-045 RS-047 RS-049
#[test]
fn a_cue_that_begins_in_raw_tokens_is_cut_as_those() {
    let chat = chat(CHATML);
    let cue = chat.cue_tokens().unwrap().to_vec();
    for n_raw in 1..=cue.len() {
        let mut whole = Context::new(&chat);
        whole.append_text("a").append(&cue[..n_raw]).cue();
        let cued = whole.tokens.clone();
        for n_cut in 1..=cue.len() {
            let left = cued.len() - n_cut;
            let mut context = whole.clone();
            assert_eq!(context.truncate(left).cue().tokens, cued);
            assert_eq!(context.truncate(left).cue().tokens, cued);
            let steps: [fn(&mut Context) -> &mut Context; 3] =
                [Context::seal, |it| it.user("x"), |it| it.assistant("x")];
            for step in steps {
                let mut afresh = Context::new(&chat);
                afresh.append(&cued[..left]);
                let mut context = whole.clone();
                context.truncate(left);
                assert_eq!(step(&mut context).text(), step(&mut afresh).text());
            }
        }
    }
}

// rows: RS-045 RS-047 RS-049
#[test]
fn a_cue_behind_a_turn_that_begins_in_raw_tokens_is_cut_as_those() {
    let chat = chat(CHATML);
    let mut context = Context::new(&chat);
    context.user("Hi").append_text("<|im_start|>").cue();
    let question = "<|im_start|>user\nHi<|im_end|>\n";
    context.truncate(context.tokens.len() - 1);
    let kept = format!("{question}<|im_start|>assistant");
    assert_eq!(context.text(), kept);
    assert!(!context.state.needs_cue());
    let after = |step: fn(&mut Context) -> &mut Context| step(&mut context.clone()).text();
    assert_eq!(after(|it| it.cue()), format!("{kept}\n"));
    assert_eq!(after(|it| it.seal()), format!("{kept}<|im_end|>\n"));
    assert_eq!(
        after(|it| it.user("x")),
        format!("{kept}<|im_start|>user\nx<|im_end|>\n")
    );
    assert_eq!(
        after(|it| it.assistant("x")),
        format!("{kept}<|im_start|>assistant\nx<|im_end|>\n")
    );
}

// rows: RS-043 RS-049
#[test]
fn a_header_that_runs_into_its_content_is_not_taken_for_itself() {
    // The header ends with the tokens `he` and `l`, and with an `o` behind it with one token.
    let chat = chat(
        "{% for message in messages %}{{ '<|im_start|>' + message['role'] + ' hel' + message['content'] + \
         '<|im_end|>' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant hel' }}{% endif %}",
    );
    let encode = |text: &str| chat.tokenizer().encode(text).unwrap();
    assert_eq!(encode("helo").len() + 1, encode("hel").len());
    let mut context = Context::new(&chat);
    context.user("o there");
    let kept = "<|im_start|>user helo";
    context.truncate(encode(kept).len());
    assert_eq!(context.text(), kept);
    let closed = format!("{kept}<|im_end|>");
    let after = |step: fn(&mut Context) -> &mut Context| step(&mut context.clone()).text();
    assert_eq!(after(|it| it.seal()), closed);
    assert_eq!(
        after(|it| it.cue()),
        format!("{closed}<|im_start|>assistant hel")
    );
    assert_eq!(
        after(|it| it.user("x")),
        format!("{closed}<|im_start|>user helx<|im_end|>")
    );
    // What is left of another one is a header, and stays so.
    let mut context = Context::new(&chat);
    context.user("x");
    context.truncate(encode("<|im_start|>user he").len());
    assert_eq!(
        context.clone().user("x").text(),
        "<|im_start|>user helx<|im_end|>"
    );
    assert_eq!(
        context.user("o").text(),
        "<|im_start|>user hel<|im_end|><|im_start|>user helo<|im_end|>"
    );
}
