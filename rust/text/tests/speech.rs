//! Thoughts and calls in what a model says: the same events however its tokens are split.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use pie_text::{
    Call, Chat, ChatDecoder, ChatEvent, ChatTemplate, ReasoningDecoder, ReasoningEvent,
    ToolDecoder, ToolEvent,
};
use proptest::prelude::*;
use support::families::{NAMES, chat_of};
use support::{CHATML, CHATML_THINKING, byte_level, special, tokenizer};

static CHATS: LazyLock<HashMap<&str, Arc<Chat>>> = LazyLock::new(|| {
    NAMES
        .into_iter()
        .map(|name| (name, chat_of(name)))
        .collect()
});

fn encode(chat: &Chat, text: &str) -> Vec<u32> {
    chat.tokenizer().encode(text).unwrap()
}

/// The events of tokens that are fed in pieces of these sizes, deltas joined, to the end of the turn.
fn thoughts(chat: &Arc<Chat>, tokens: &[u32], sizes: &[usize]) -> Vec<ReasoningEvent> {
    let mut decoder = ReasoningDecoder::new(Arc::clone(chat));
    let mut events: Vec<ReasoningEvent> = Vec::new();
    let mut keep = |event: ReasoningEvent| {
        match (events.last_mut(), event) {
            (_, ReasoningEvent::Idle) => return false,
            (Some(ReasoningEvent::Delta(text)), ReasoningEvent::Delta(more)) => {
                text.push_str(&more)
            }
            (_, event) => events.push(event),
        }
        true
    };
    for piece in split(tokens, sizes) {
        let mut more = keep(decoder.feed(piece).unwrap());
        while more {
            more = keep(decoder.feed(&[]).unwrap());
        }
    }
    let mut more = keep(decoder.finish());
    while more {
        more = keep(decoder.feed(&[]).unwrap());
    }
    events
}

/// The same of calls.
fn calls(chat: &Arc<Chat>, tokens: &[u32], sizes: &[usize]) -> Vec<ToolEvent> {
    let mut decoder = ToolDecoder::new(Arc::clone(chat));
    let mut events = Vec::new();
    for piece in split(tokens, sizes) {
        let mut event = decoder.feed(piece).unwrap();
        while event != ToolEvent::Idle {
            events.push(event);
            event = decoder.feed(&[]).unwrap();
        }
    }
    let mut event = decoder.finish();
    while event != ToolEvent::Idle {
        events.push(event);
        event = decoder.feed(&[]).unwrap();
    }
    events
}

/// Pieces of these sizes, again and again.
fn split<'t>(tokens: &'t [u32], sizes: &[usize]) -> Vec<&'t [u32]> {
    let mut pieces = Vec::new();
    let mut rest = tokens;
    for &size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, behind) = rest.split_at(size.clamp(1, rest.len()));
        pieces.push(piece);
        rest = behind;
    }
    pieces
}

fn call(name: &str, arguments: &str) -> ToolEvent {
    ToolEvent::Call(Call {
        name: name.to_owned(),
        arguments: arguments.to_owned(),
        id: None,
    })
}

/// `text` gives these events in a family, however it is split.
#[track_caller]
fn check_calls(family: &str, text: &str, expected: &[ToolEvent]) {
    let chat = &CHATS[family];
    let tokens = encode(chat, text);
    for size in [1, 2, 3, 4, 5, 1000] {
        assert_eq!(
            calls(chat, &tokens, &[size]),
            expected,
            "{family}: {text} by {size}"
        );
    }
}

#[track_caller]
fn check_thoughts(family: &str, text: &str, expected: &[ReasoningEvent]) {
    let chat = &CHATS[family];
    let tokens = encode(chat, text);
    for size in [1, 2, 3, 4, 5, 1000] {
        assert_eq!(
            thoughts(chat, &tokens, &[size]),
            expected,
            "{family}: {text} by {size}"
        );
    }
}

const PRICE: &str = r#"{"item": "violin", "n": 18446744073709551616}"#;

/// A call in the words of each family that has some.
fn written(family: &str) -> Option<String> {
    Some(match family {
        "llama3" => format!(r#"{{"name": "get_price", "parameters": {PRICE}}}<|eot_id|>"#),
        "qwen25" | "qwen3" => {
            format!(
                "<tool_call>\n{{\"name\": \"get_price\", \"arguments\": {PRICE}}}\n</tool_call><|im_end|>"
            )
        }
        "mistral" => format!(r#"[TOOL_CALLS] [{{"name": "get_price", "arguments": {PRICE}}}]</s>"#),
        "phi4" => format!(
            r#"<|tool_call|>[{{"name": "get_price", "arguments": {PRICE}}}]<|/tool_call|><|end|>"#
        ),
        "deepseek_r1" => format!(
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_price\n```json\n{PRICE}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>"
        ),
        "harmony" => format!(
            "<|channel|>commentary to=functions.get_price <|constrain|>json<|message|>{PRICE}<|call|>"
        ),
        _ => return None,
    })
}

// rows: RS-179..181
#[test]
fn a_call_of_each_family() {
    for family in NAMES {
        match written(family) {
            Some(text) => check_calls(family, &text, &[ToolEvent::Start, call("get_price", PRICE)]),
            None => check_calls(
                family,
                r#"<tool_call>{"name": "a", "arguments": {}}</tool_call>"#,
                &[],
            ),
        }
    }
}

// rows: RS-179..181
#[test]
fn calls_in_parallel() {
    let two = [
        ToolEvent::Start,
        call("a", "{}"),
        ToolEvent::Start,
        call("b", r#"{"x": [1, {"y": "}]"}]}"#),
    ];
    let json = [
        r#"{"name": "a", "arguments": {}}"#,
        r#"{"name": "b", "arguments": {"x": [1, {"y": "}]"}]}}"#,
    ];
    let [a, b] = json;
    for family in ["qwen25", "qwen3"] {
        check_calls(
            family,
            &format!("Both:\n<tool_call>\n{a}\n</tool_call>\n<tool_call>{b}</tool_call><|im_end|>"),
            &two,
        );
    }
    check_calls("mistral", &format!("[TOOL_CALLS][{a},\n {b}]</s>"), &two);
    check_calls(
        "phi4",
        &format!("<|tool_call|>[{a}, {b}]<|/tool_call|><|end|>"),
        &two,
    );
    check_calls("llama3", &format!("<|python_tag|>{a}; {b}<|eom_id|>"), &two);
    let deepseek = |name: &str, arguments: &str| {
        format!("<｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{arguments}<｜tool▁call▁end｜>")
    };
    let text = deepseek("a", "{}") + "\n" + &deepseek("b", r#"{"x": [1, {"y": "}]"}]}"#);
    check_calls("deepseek_r1", &text, &two);
    let harmony = |name: &str, arguments: &str| {
        format!(
            "<|start|>assistant to=functions.{name}<|channel|>commentary json<|message|>{arguments}<|end|>"
        )
    };
    let text = harmony("a", "{}") + &harmony("b", r#"{"x": [1, {"y": "}]"}]}"#);
    check_calls("harmony", &text, &two);
    check_calls(
        "mistral",
        r#"[TOOL_CALLS]a[ARGS]{}[TOOL_CALLS]b[ARGS]{"x": [1, {"y": "}]"}]}</s>"#,
        &two,
    );
}

// rows: RS-179..181
#[test]
fn what_is_no_call_is_given_back_as_it_was_written() {
    let malformed = |text: &str| [ToolEvent::Start, ToolEvent::Malformed(text.to_owned())];
    for body in [
        "",
        "nothing",
        r#"{"name": "a", "arguments": {}"#,
        r#"{"name": "a b", "arguments": {}}"#,
        r#"{"name": "a<|im_end|>", "arguments": {}}"#,
        r#"{"name": "a", "name": "b", "arguments": {}}"#,
        r#"{"name": "a", "arguments": [1]}"#,
        r#"{"name": "a", "arguments": "[1]"}"#,
        r#"{"arguments": {}}"#,
        r#"{"name": 5, "arguments": {}}"#,
        r#"{"name": "a", "arguments": {}} and more"#,
    ] {
        let body = body.replace("<|im_end|>", "|");
        let text = format!("<tool_call>{body}</tool_call>");
        check_calls("qwen3", &text, &malformed(&text));
    }
    // Where the turn ends first, and where another call begins.
    check_calls(
        "qwen3",
        "<tool_call>\n{\"name\": \"a\"<|im_end|>",
        &malformed("<tool_call>\n{\"name\": \"a\""),
    );
    let [start, bad] = malformed("<tool_call>x");
    let text = r#"<tool_call>x<tool_call>{"name": "a"}</tool_call>"#;
    check_calls(
        "qwen3",
        text,
        &[start, bad, ToolEvent::Start, call("a", "{}")],
    );
    check_calls(
        "llama3",
        r#"{"name": "a", "parameters": {"#,
        &malformed(r#"{"name": "a", "parameters": {"#),
    );
    // JSON of another kind is an answer.
    check_calls("llama3", r#"{"price": 340}<|eot_id|>"#, &[]);
    check_calls("llama3", r#"The call {"name": "a", "parameters": {}}"#, &[]);
}

// rows: RS-177 RS-181
#[test]
fn text_that_spells_a_marker_is_text() {
    let chat = &CHATS["qwen3"];
    let tokens = chat.tokenizer().encode_content("<tool").unwrap();
    let spelled = [
        tokens,
        encode(chat, r#"_call>{"name": "a"}</tool"#),
        encode(chat, "_call> <thi"),
        encode(chat, "nk>x"),
    ];
    assert_eq!(calls(chat, &spelled.concat(), &[1]), []);
    assert_eq!(thoughts(chat, &spelled.concat(), &[1]), []);
    // Where the tokenizer has no such token, the text is the marker.
    let plain = Arc::new(Chat::new(tokenizer(&byte_level()), None, vec![0]));
    let text = r#"Look: <tool_call>{"name": "a"}</tool_call> <tool_<tool_call>{}</tool_call>"#;
    let tokens = encode(&plain, text);
    let expected = [
        ToolEvent::Start,
        call("a", "{}"),
        ToolEvent::Start,
        ToolEvent::Malformed("<tool_call>{}</tool_call>".to_owned()),
    ];
    for size in 1..6 {
        assert_eq!(calls(&plain, &tokens, &[size]), expected);
    }
}

// rows: RS-174..178
#[test]
fn thoughts_of_each_family() {
    use ReasoningEvent::{Delta, End, Start};
    let thought = |text: &str| [Start, Delta(text.to_owned()), End(text.to_owned())];
    check_thoughts(
        "qwen3",
        "<think>\nIt is é.\n</think>\n\n4.<|im_end|>",
        &thought("\nIt is é.\n"),
    );
    check_thoughts("qwen3", "4.<|im_end|>", &[]);
    check_thoughts("qwen3", "<think></think>4.", &[Start, End(String::new())]);
    // The cue of its template opens the thought.
    check_thoughts(
        "deepseek_r1",
        "hm</think>4.<｜end▁of▁sentence｜>",
        &thought("hm"),
    );
    check_thoughts("deepseek_r1", "<think>hm</think>4.", &thought("hm"));
    check_thoughts(
        "harmony",
        "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>4.<|return|>",
        &thought("hm"),
    );
    // A turn that ends in a thought ends it.
    check_thoughts("qwen3", "<think>hm<|im_end|>", &thought("hm"));
    check_thoughts("qwen3", "<think>hm", &thought("hm"));
    let two = [thought("a"), thought("b")].concat();
    check_thoughts("qwen3", "<think>a</think>x<think>b</think>", &two);
    check_thoughts("qwen3", "<think>a<|im_end|><think>b</think>", &two);
    for family in ["llama3", "qwen25", "mistral", "gemma", "phi3", "phi4"] {
        check_thoughts(family, "<think>hm</think>4.", &[]);
    }
}

// rows: RS-178 RS-181
#[test]
fn calls_inside_a_thought_are_calls() {
    let text = r#"<think>I call <tool_call>{"name": "a"}</tool_call> first</think>"#;
    check_calls("qwen3", text, &[ToolEvent::Start, call("a", "{}")]);
}

// rows: RS-168 RS-174 RS-179
#[test]
fn what_is_beyond_the_bounds_is_refused_and_not_taken() {
    let chat = &CHATS["qwen3"];
    let text = encode(chat, &"a b ".repeat(pie_text::limits::MAX_HELD_BYTES / 8));
    let open = encode(chat, "<tool_call>");
    let mut decoder = ToolDecoder::new(Arc::clone(chat));
    decoder.feed(&open).unwrap();
    decoder.feed(&text).unwrap();
    decoder.feed(&text).unwrap();
    let refused = decoder.feed(&text).unwrap_err();
    assert_eq!(refused.code(), "invalid-argument");
    assert_eq!(
        decoder.feed(&[u32::MAX]).unwrap_err().code(),
        "invalid-token"
    );
    assert!(decoder.held_bytes() < 8 * pie_text::limits::MAX_HELD_BYTES);
    let many = vec![open[0]; pie_text::limits::MAX_QUEUED_EVENTS];
    assert_eq!(decoder.feed(&many).unwrap_err().code(), "invalid-argument");
    decoder.reset();
    assert_eq!(decoder.finish(), ToolEvent::Idle);
}

// rows: RS-184
#[test]
fn a_finished_text_is_parsed_at_once() {
    for family in NAMES {
        let Some(text) = written(family) else {
            continue;
        };
        let found = CHATS[family].parse_call(&text).unwrap().unwrap();
        assert_eq!(
            (found.name.as_str(), found.arguments.as_str()),
            ("get_price", PRICE)
        );
    }
    assert_eq!(CHATS["qwen3"].parse_call("no call").unwrap(), None);
    let id = CHATS["mistral"]
        .parse_call(r#"[TOOL_CALLS][{"name": "a", "arguments": {}, "id": "x12345678"}]"#);
    assert_eq!(id.unwrap().unwrap().id.as_deref(), Some("x12345678"));
}

/// What a decoder shows that hides thoughts and calls.
fn shown(chat: &Arc<Chat>, tokens: &[u32], sizes: &[usize]) -> Vec<ChatEvent> {
    let mut decoder = ChatDecoder::hiding(Arc::clone(chat), true, true);
    let mut events: Vec<ChatEvent> = Vec::new();
    let mut keep = |event: ChatEvent| {
        match (events.last_mut(), event) {
            (_, ChatEvent::Idle) => return false,
            (Some(ChatEvent::Delta(text)), ChatEvent::Delta(more)) => text.push_str(&more),
            (_, event) => events.push(event),
        }
        true
    };
    for piece in split(tokens, sizes) {
        let mut more = keep(decoder.feed(piece).unwrap());
        while more {
            more = keep(decoder.feed(&[]).unwrap());
        }
    }
    let mut more = keep(decoder.finish());
    while more {
        more = keep(decoder.feed(&[]).unwrap());
    }
    events
}

// rows: RS-170
#[test]
fn what_is_shown_without_thoughts_and_calls() {
    let check = |family: &str, text: &str, visible: &str| {
        let chat = &CHATS[family];
        let tokens = encode(chat, text);
        for size in 1..6 {
            let events = shown(chat, &tokens, &[size]);
            let text = match events.last() {
                Some(ChatEvent::Done(text)) => text.as_str(),
                _ => panic!("{events:?}"),
            };
            assert_eq!(text, visible, "{family}");
        }
    };
    check(
        "qwen3",
        "<think>hm</think>4, or <tool_call>{\"name\": \"a\"}</tool_call>5.<|im_end|>",
        "4, or 5.",
    );
    check(
        "qwen3",
        "<tool_call>no</tool_call>5.",
        "<tool_call>no</tool_call>5.",
    );
    check(
        "llama3",
        "{\"name\": \"a\", \"parameters\": {}}<|eot_id|>",
        "",
    );
    check("llama3", " {\"price\": 5}<|eot_id|>", " {\"price\": 5}");
    check(
        "llama3",
        &format!("{{\"price\": {}}}", "5".repeat(200)),
        &format!("{{\"price\": {}}}", "5".repeat(200)),
    );
    check("deepseek_r1", "hm</think>4.", "4.");
    let harmony = "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>4.<|return|>";
    check("harmony", harmony, "4.");
    check("harmony", &written("harmony").unwrap(), "");
    // The header stands before the turn, or is all that there is of a message.
    check("harmony", "4.<|return|>", "4.");
    check("harmony", "4.", "4.");
    check("harmony", "<|channel|>final", "");
    check("harmony", "a<|end|><|start|>assistant", "");
    // Markers that neither begin nor end anything are what was said.
    check("qwen3", "4</think>5", "4</think>5");
    check("qwen3", "</think>5", "</think>5");
    check("qwen3", "<think>hm</think>4</think>5", "4</think>5");
    check("qwen3", "4</tool_call>5", "4</tool_call>5");
    check("qwen3", "</tool_call>5", "</tool_call>5");
}

// rows: RS-170 RS-181
#[test]
fn a_marker_within_a_bare_call_is_part_of_it() {
    let arguments = r#"{"q":"a<|python_tag|>b"}"#;
    let text = format!(r#"{{"name":"f","parameters":{arguments}}}"#);
    check_calls("llama3", &text, &[ToolEvent::Start, call("f", arguments)]);
    let chat = &CHATS["llama3"];
    let marker = encode(chat, "<|python_tag|>");
    let events = shown(chat, &encode(chat, "4<|python_tag|>5"), &[1]);
    let text = |text: &str| ChatEvent::Delta(text.to_owned());
    let mut expected = vec![text("4")];
    if chat.tokenizer().is_control(marker[0]) {
        let done = ChatEvent::Done("45".to_owned());
        expected.extend([ChatEvent::Interrupt(marker[0]), text("5"), done]);
    } else {
        let whole = "4<|python_tag|>5";
        expected = vec![text(whole), ChatEvent::Done(whole.to_owned())];
    }
    assert_eq!(events, expected);
}

// rows: RS-181
#[test]
fn a_call_in_a_channel_has_a_name_that_can_be_answered() {
    let text = |name: &str| {
        format!(
            "<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{{}}<|call|>"
        )
    };
    check_calls("harmony", &text("a"), &[ToolEvent::Start, call("a", "{}")]);
    let malformed = ToolEvent::Malformed("{}".to_owned());
    check_calls("harmony", &text("a!b"), &[ToolEvent::Start, malformed]);
}

// rows: RS-168 RS-179
#[test]
fn no_more_events_wait_than_their_limit() {
    let chat = &CHATS["qwen3"];
    let start = encode(chat, "<|im_start|>")[0];
    let mut decoder = ChatDecoder::hiding(Arc::clone(chat), true, true);
    let refused = decoder.feed(&vec![start; 80_000]).unwrap_err();
    assert_eq!(refused.code(), "invalid-argument");
    // A body may close many times in a feed, and each time with many calls.
    let body = vec![r#"{"name":"f"}"#; 250].join(" ");
    let text = format!("<tool_call>{body}</tool_call>").repeat(60);
    let mut decoder = ToolDecoder::new(Arc::clone(chat));
    assert!(decoder.feed(&encode(chat, &text)).is_err());
    let body = vec![r#"{"name":"f"}"#; 80_000 / 2].join(",");
    let mut decoder = ToolDecoder::new(Arc::clone(&CHATS["mistral"]));
    for part in encode(&CHATS["mistral"], &format!("[TOOL_CALLS][{body}]")).chunks(1000) {
        decoder.feed(part).unwrap();
    }
    let mut events = vec![decoder.finish()];
    while events.last() != Some(&ToolEvent::Idle) {
        events.push(decoder.feed(&[]).unwrap());
    }
    assert!(matches!(
        events.as_slice(),
        [ToolEvent::Malformed(_), ToolEvent::Idle]
    ));
}

/// A marker is one of the tokenizer, or stands in the template alone.
// rows: RS-174 RS-176..178
#[test]
fn markers_of_thoughts_are_known_by_the_tokenizer_or_by_the_template() {
    let mut without_markers = byte_level();
    let added = without_markers["added_tokens"].as_array_mut().unwrap();
    added.retain(|token| !token["content"].as_str().unwrap().contains("think"));
    let template = ChatTemplate::new(CHATML_THINKING, special(CHATML_THINKING)).unwrap();
    let by_template = Chat::new(tokenizer(&without_markers), Some(template), vec![0]);
    for chat in [support::chat(CHATML), Arc::new(by_template)] {
        let tokens = encode(&chat, "<think>hm</think>4.");
        for size in [1, 3, 1000] {
            assert_eq!(
                thoughts(&chat, &tokens, &[size]),
                [
                    ReasoningEvent::Start,
                    ReasoningEvent::Delta("hm".to_owned()),
                    ReasoningEvent::End("hm".to_owned()),
                ]
            );
        }
    }
}

/// A token of the vocabulary may have more than the marker.
// rows: RS-170..171
#[test]
fn what_a_token_has_before_a_spelled_marker_is_shown() {
    let mut json = byte_level();
    json["model"]["vocab"]["a<tool_call>"] = 900.into();
    json["model"]["vocab"]["ab<tool_call>"] = 901.into();
    let plain = Arc::new(Chat::new(tokenizer(&json), None, vec![0]));
    let rest = encode(&plain, r#"{"name": "a"}</tool_call>c"#);
    for (token, visible) in [(900, "ac"), (901, "abc")] {
        let tokens = [&[token], &rest[..]].concat();
        for size in [1, 2, 3, 1000] {
            let events = shown(&plain, &tokens, &[size]);
            assert_eq!(events.last(), Some(&ChatEvent::Done(visible.to_owned())));
        }
    }
}

// rows: RS-171
#[test]
fn the_last_tokens_of_a_turn_end_it_whatever_is_hidden() {
    let chat = &CHATS["qwen3"];
    for text in ["4.", "<tool_call>no"] {
        for mut decoder in [
            ChatDecoder::new(Arc::clone(chat)),
            ChatDecoder::hiding(Arc::clone(chat), true, true),
        ] {
            let mut event = decoder.feed_last(&encode(chat, text)).unwrap();
            let mut last = ChatEvent::Idle;
            while event != ChatEvent::Idle {
                last = event;
                event = decoder.feed(&[]).unwrap();
            }
            assert_eq!(last, ChatEvent::Done(text.to_owned()));
        }
    }
}

/// Every way to cut so many tokens into pieces of 1 to 5.
fn chunkings(n_tokens: usize) -> Vec<Vec<usize>> {
    if n_tokens == 0 {
        return vec![Vec::new()];
    }
    let mut every = Vec::new();
    for size in 1..=n_tokens.min(5) {
        for mut rest in chunkings(n_tokens - size) {
            rest.insert(0, size);
            every.push(rest);
        }
    }
    every
}

/// Wherever ten tokens stand, before and behind others, all ways to cut them give the same.
#[test]
fn every_chunking_of_1_to_5_tokens_gives_the_same_events() {
    const N_CUT: usize = 10;
    let every = chunkings(N_CUT);
    assert_eq!(every.len(), 464);
    for family in NAMES {
        let chat = &CHATS[family];
        let call = written(family).unwrap_or_default();
        let tokens = encode(chat, &format!("é.<think>漢</think>{call}<think>a"));
        let whole = (
            thoughts(chat, &tokens, &[1]),
            calls(chat, &tokens, &[1]),
            shown(chat, &tokens, &[1]),
        );
        for start in (0..=tokens.len().saturating_sub(N_CUT)).step_by(4) {
            for sizes in &every {
                let sizes: Vec<usize> = [start]
                    .iter()
                    .filter(|n_before| **n_before > 0)
                    .chain(sizes)
                    .chain(&[tokens.len()])
                    .copied()
                    .collect();
                let cut = (
                    thoughts(chat, &tokens, &sizes),
                    calls(chat, &tokens, &sizes),
                    shown(chat, &tokens, &sizes),
                );
                assert_eq!(cut, whole, "{family}: {sizes:?}");
            }
        }
    }
}

/// What models say: parts of the formats of all families, in any order.
fn speech() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        "[a-z é漢\n]{0,8}",
        Just("<think>".to_owned()),
        Just("</think>".to_owned()),
        Just("<tool_call>".to_owned()),
        Just("</tool_call>".to_owned()),
        Just("[TOOL_CALLS]".to_owned()),
        Just("<|channel|>analysis<|message|>".to_owned()),
        Just("<|channel|>commentary to=functions.f<|message|>{}".to_owned()),
        Just("<|end|>".to_owned()),
        Just("<|im_end|>".to_owned()),
        Just("<tool".to_owned()),
        (0..NAMES.len()).prop_map(|place| written(NAMES[place]).unwrap_or_default()),
    ];
    prop::collection::vec(part, 0..10).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 128, ..ProptestConfig::default() })]

    // rows: RS-168 RS-174..181
    #[test]
    fn events_do_not_depend_on_how_tokens_are_split(
        family in 0..NAMES.len(),
        text in speech(),
        sizes in prop::collection::vec(1..9_usize, 1..6),
    ) {
        let chat = &CHATS[NAMES[family]];
        let tokens = encode(chat, &text);
        let (whole_thoughts, whole_calls) = (thoughts(chat, &tokens, &[1]), calls(chat, &tokens, &[1]));
        let whole_shown = shown(chat, &tokens, &[1]);
        for sizes in [&[2][..], &[3], &[4], &[5], &[1000], &sizes] {
            prop_assert_eq!(&thoughts(chat, &tokens, sizes), &whole_thoughts);
            prop_assert_eq!(&calls(chat, &tokens, sizes), &whole_calls);
            prop_assert_eq!(&shown(chat, &tokens, sizes), &whole_shown);
        }
    }
}
