//! Grammars of calls: whatever is drawn under them, every call of every family is one of the tools.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod support;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use pie_text::grammar::{Compiled, Matcher, Vocabulary, check_document};
use pie_text::{
    Call, Chat, ChatTemplate, Error, SpecialTokens, ToolChoice, ToolDecoder, ToolEvent, ToolList,
};
use serde_json::{Value, json};
use support::families::{FAMILIES, NAMES, chat_of};
use support::{byte_level, tokenizer};

/// A model, and its tokens as grammars search them.
type Family = (Arc<Chat>, Arc<Vocabulary>);

static CHATS: LazyLock<HashMap<&str, Family>> = LazyLock::new(|| {
    let of = |name| {
        let chat = chat_of(name);
        let vocabulary = vocabulary(&chat);
        (name, (chat, vocabulary))
    };
    NAMES.into_iter().map(of).collect()
});

fn vocabulary(chat: &Chat) -> Arc<Vocabulary> {
    let vocabulary = Vocabulary::new(chat.tokenizer().clone(), chat.control_tokens());
    Arc::new(vocabulary.unwrap())
}

/// Families whose templates write calls.
fn calling() -> impl Iterator<Item = &'static str> {
    NAMES.into_iter().filter(|name| FAMILIES[*name].calls > 0)
}

fn schemas() -> [Value; 3] {
    let price = json!({"type": "object", "properties": {"item": {"type": "string", "maxLength": 12}, "n": {"type": "integer"}},
        "required": ["item"]});
    let kinds = json!({"type": "object", "properties": {"kind": {"enum": ["a", "b", {"c": [1, 2]}]}, "all": {"type": "array",
        "items": {"type": "string", "maxLength": 5}, "maxItems": 3}}, "required": ["all"]});
    [
        json!({"name": "get", "parameters": price}),
        json!({"name": "get_price", "parameters": kinds}),
        json!({"name": "now"}),
    ]
}

fn tools() -> ToolList {
    ToolList::parse(&schemas().map(|it| it.to_string())).unwrap()
}

fn ends(chat: &Chat) -> Vec<u32> {
    [chat.stop_tokens().unwrap(), chat.end_tokens()].concat()
}

fn matcher(chat: &Arc<Chat>, vocabulary: &Arc<Vocabulary>, choice: &ToolChoice) -> Matcher {
    let grammar = chat.native_grammar(&tools(), choice).unwrap().unwrap();
    let compiled = Compiled::new(vocabulary.clone(), Arc::new(grammar)).unwrap();
    Matcher::new(&Arc::new(compiled), ends(chat))
}

struct Draw(u64);

impl Draw {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % n
    }
}

/// What a model says that knows nothing: each of its tokens is drawn among those that may follow, more often among
/// those that no text is, so that it comes to an end.
fn said(chat: &Chat, mut matcher: Matcher, seed: u64) -> Option<Vec<u32>> {
    let mut draw = Draw(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let control = chat.control_tokens();
    let mut tokens = Vec::new();
    while !matcher.is_terminated() {
        let mask = matcher.mask().unwrap();
        let allowed: Vec<u32> = (0..chat.tokenizer().vocab_size())
            .filter(|&it| mask.allows(it))
            .collect();
        let is_short = |id: &u32| {
            let bytes = chat.tokenizer().token_bytes(*id).unwrap_or_default();
            control.contains(id) || matches!(bytes, b"\"" | b"}" | b"]" | b"{" | b",")
        };
        let short: Vec<u32> = allowed.iter().copied().filter(is_short).collect();
        let from = if short.is_empty() || draw.below(3) > 0 {
            &allowed
        } else {
            &short
        };
        let token = from[draw.below(from.len())];
        matcher.accept(&[token]).unwrap();
        tokens.push(token);
        if tokens.len() > 400 {
            return None;
        }
    }
    Some(tokens)
}

/// The calls in what was said; a malformed one fails.
fn calls(chat: &Arc<Chat>, tokens: &[u32]) -> Vec<Call> {
    let mut decoder = ToolDecoder::new(chat.clone());
    let mut calls = Vec::new();
    let mut event = decoder.feed(tokens).unwrap();
    while event != ToolEvent::Idle {
        match event {
            ToolEvent::Call(call) => calls.push(call),
            ToolEvent::Malformed(text) => {
                panic!("{text:?} of {:?}", chat.tokenizer().decode(tokens))
            }
            _ => {}
        }
        event = decoder.feed(&[]).unwrap();
    }
    calls
}

/// A call is one of the tools, and its arguments fit.
fn check(call: &Call) {
    let schemas = schemas();
    let tool = schemas.iter().find(|it| it["name"] == call.name.as_str());
    let tool = tool.unwrap_or_else(|| panic!("{call:?}"));
    let mut parameters = tool
        .get("parameters")
        .cloned()
        .unwrap_or_else(|| json!({"type": "object", "properties": {}}));
    parameters["additionalProperties"] = json!(false);
    check_document(&parameters.to_string(), &call.arguments).unwrap();
}

#[test]
fn every_call_is_one_of_the_tools() {
    for name in calling() {
        let (chat, vocabulary) = &CHATS[name];
        let ends = ends(chat);
        let mut most = 0;
        for (choice, least) in [
            (ToolChoice::Auto, 0),
            (ToolChoice::None, 0),
            (ToolChoice::Required, 1),
            (ToolChoice::Named("get_price".to_owned()), 1),
        ] {
            let matcher = matcher(chat, vocabulary, &choice);
            let mut n_ended = 0;
            for seed in 1..40 {
                let Some(tokens) = said(chat, matcher.clone(), seed) else {
                    continue;
                };
                n_ended += 1;
                assert!(ends.contains(tokens.last().unwrap()), "{name} {choice:?}");
                let calls = calls(chat, &tokens);
                calls.iter().for_each(check);
                assert!(
                    calls.len() >= least,
                    "{name} {choice:?} {:?}",
                    chat.tokenizer().decode(&tokens)
                );
                most = most.max(calls.len());
                match &choice {
                    ToolChoice::None => assert_eq!(calls, []),
                    ToolChoice::Named(wanted) => {
                        assert_eq!(calls.len(), 1);
                        assert_eq!(&calls[0].name, wanted);
                    }
                    _ => {}
                }
            }
            assert!(n_ended > 5, "{name} {choice:?}: {n_ended}");
        }
        // Calls follow each other where the template writes several.
        assert_eq!(most > 1, FAMILIES[name].calls > 1, "{name}: {most}");
    }
}

/// A text of control tokens and others, as its model writes it.
fn accepts(chat: &Arc<Chat>, matcher: &Matcher, text: &str) -> bool {
    let tokens = chat.tokenizer().encode(text).unwrap();
    let mut matcher = matcher.clone();
    match matcher.accept(&tokens) {
        Ok(()) => matcher.is_accepting().unwrap(),
        Err(Error::Mismatch(_)) => false,
        Err(error) => panic!("{error}"),
    }
}

/// What the template writes of a call, and what may stand before it.
fn written(family: &str) -> (&'static str, &'static str) {
    match family {
        "llama3" => ("", r#"{"name": "get", "parameters": {"item": "x"}}"#),
        "qwen25" | "qwen3" => (
            "I look.\n",
            "<tool_call>\n{\"name\": \"get\", \"arguments\": {\"item\": \"x\"}}\n</tool_call>",
        ),
        "mistral" => (
            "I look.",
            r#"[TOOL_CALLS] [{"name": "get", "arguments": {"item": "x"}, "id": "abcdefgh1"}]"#,
        ),
        "phi4" => (
            "I look.",
            r#"<|tool_call|>[{"name": "get", "arguments": {"item": "x"}}]<|/tool_call|>"#,
        ),
        "deepseek_r1" => (
            "I look.",
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get\n```json\n{\"item\": \"x\"}\n```\
             <｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        ),
        "harmony" => (
            "<|channel|>commentary<|message|>I look.<|end|><|start|>assistant",
            " to=functions.get<|channel|>commentary json<|message|>{\"item\": \"x\"}",
        ),
        other => panic!("{other}"),
    }
}

#[test]
fn a_choice_says_whether_there_is_a_call() {
    for name in calling() {
        let (chat, vocabulary) = &CHATS[name];
        let (before, call) = written(name);
        // The cue of DeepSeek opens a thought.
        let thought = if name == "deepseek_r1" {
            "Hm.</think>"
        } else {
            ""
        };
        let plain = match name {
            "harmony" => "<|channel|>final<|message|>Hello.",
            _ => "Hello.",
        };
        let text = |middle: &str| format!("{thought}{middle}");
        let [called, introduced, said] =
            [text(call), text(&format!("{before}{call}")), text(plain)];
        let is_bare = before.is_empty();
        for (choice, may_call, may_speak) in [
            (ToolChoice::Auto, true, true),
            (ToolChoice::None, false, true),
            (ToolChoice::Required, true, false),
            (ToolChoice::Named("get".to_owned()), true, false),
            (ToolChoice::Named("now".to_owned()), false, false),
        ] {
            let matcher = matcher(chat, vocabulary, &choice);
            assert_eq!(
                accepts(chat, &matcher, &called),
                may_call,
                "{name} {choice:?} {called}"
            );
            assert_eq!(
                accepts(chat, &matcher, &said),
                may_speak,
                "{name} {choice:?} {said}"
            );
            let both = may_call && (may_speak || is_bare);
            assert_eq!(
                accepts(chat, &matcher, &introduced),
                both,
                "{name} {choice:?} {introduced}"
            );
            for bad in [
                call.replace("item", "itme"),
                call.replace("\"x\"", "5"),
                call.replace("get", "gte"),
                call.replace("\"x\"", "\"x\", \"y\": 1"),
                call.replacen('{', "{ ", 1),
            ] {
                assert!(
                    !accepts(chat, &matcher, &text(&bad)),
                    "{name} {choice:?} {bad}"
                );
            }
        }
    }
}

#[test]
fn the_text_of_a_turn_ends_with_its_stop_token() {
    for name in calling() {
        let (chat, vocabulary) = &CHATS[name];
        let named = ToolChoice::Named("now".to_owned());
        let mut matcher = matcher(chat, vocabulary, &named);
        let (_, call) = written(name);
        let thought = if name == "deepseek_r1" {
            "</think>"
        } else {
            ""
        };
        let call = call.replace("get", "now").replace(r#"{"item": "x"}"#, "{}");
        let tokens = chat
            .tokenizer()
            .encode(&format!("{thought}{call}"))
            .unwrap();
        matcher.accept(&tokens).unwrap();
        assert!(
            !matcher.is_terminated() && matcher.is_accepting().unwrap(),
            "{name}"
        );
        let mask = matcher.mask().unwrap();
        let mut ends = ends(chat);
        let allowed: Vec<u32> = (0..chat.tokenizer().vocab_size())
            .filter(|&it| mask.allows(it))
            .collect();
        ends.sort_unstable();
        ends.dedup();
        assert_eq!(allowed, ends, "{name}");
        // Without stop tokens it has ended.
        let mut endless = matcher.clone();
        endless.set_stop(Vec::new());
        assert!(endless.is_terminated());
        matcher.accept(&ends[..1]).unwrap();
        assert!(matcher.is_terminated());
    }
}

#[test]
fn a_model_without_a_way_to_write_calls_has_no_grammar() {
    for name in ["gemma", "phi3"] {
        let (chat, _) = &CHATS[name];
        for choice in [ToolChoice::Auto, ToolChoice::Required] {
            assert!(chat.native_grammar(&tools(), &choice).unwrap().is_none());
        }
    }
}

#[test]
fn a_model_without_a_template_calls_in_the_plain_way() {
    let plain = Arc::new(Chat::new(tokenizer(&byte_level()), None, vec![]));
    let vocabulary = vocabulary(&plain);
    let matcher = matcher(&plain, &vocabulary, &ToolChoice::Auto);
    let call = r#"<tool_call>{"name": "get", "arguments": {"item": "x"}}</tool_call>"#;
    assert!(accepts(&plain, &matcher, call) && accepts(&plain, &matcher, "Hello."));
    assert!(accepts(&plain, &matcher, &format!("I look: {call}")));
    assert!(!accepts(&plain, &matcher, &call.replace("get", "gte")));
}

#[test]
fn what_cannot_be_enforced_names_its_tool() {
    let (chat, vocabulary) = &CHATS["qwen3"];
    let bad = json!({"name": "bad", "parameters": {"type": "object", "properties": {"x": {"uniqueItems": true}}}});
    let tools = ToolList::parse(&[schemas()[0].to_string(), bad.to_string()]).unwrap();
    let refused = chat.native_grammar(&tools, &ToolChoice::Auto).unwrap_err();
    assert_eq!(refused.code(), "invalid-grammar");
    let refused = refused.to_string();
    assert!(
        refused.contains("the tool \"bad\"") && refused.contains("#/properties/x/uniqueItems"),
        "{refused}"
    );
    // One that is not called needs none.
    let named = ToolChoice::Named("get".to_owned());
    assert!(chat.native_grammar(&tools, &named).unwrap().is_some());
    assert!(
        chat.native_grammar(&tools, &ToolChoice::None)
            .unwrap()
            .is_some()
    );
    let unknown = ToolChoice::Named("gone".to_owned());
    let refused = chat.native_grammar(&tools, &unknown).unwrap_err();
    assert_eq!(refused.code(), "invalid-argument");
    assert!(refused.to_string().contains("\"gone\"") && refused.to_string().contains("get, bad"));
    // It is of one model alone.
    let grammar = chat.native_grammar(&tools, &named).unwrap().unwrap();
    let (_, other) = &CHATS["phi4"];
    let refused = Compiled::new(other.clone(), Arc::new(grammar)).unwrap_err();
    assert_eq!(refused.code(), "invalid-argument");
    drop(vocabulary.clone());
}

#[test]
fn arguments_that_a_schema_allows_beyond_its_names_are_allowed() {
    let (chat, vocabulary) = &CHATS["qwen3"];
    let accepts = |parameters: Value, arguments: &str| {
        let tool = json!({"name": "f", "parameters": parameters}).to_string();
        let tools = ToolList::parse(&[tool]).unwrap();
        let grammar = chat.native_grammar(&tools, &ToolChoice::Required).unwrap();
        let compiled = Compiled::new(vocabulary.clone(), Arc::new(grammar.unwrap())).unwrap();
        let matcher = Matcher::new(&Arc::new(compiled), ends(chat));
        let text =
            format!("<tool_call>\n{{\"name\": \"f\", \"arguments\": {arguments}}}\n</tool_call>");
        accepts(chat, &matcher, &text)
    };
    let named = json!({"x": {"type": "integer"}});
    assert!(!accepts(
        json!({"properties": named}),
        r#"{"x": 1, "y": 2}"#
    ));
    assert!(accepts(
        json!({"properties": named, "additionalProperties": true}),
        r#"{"x": 1, "y": [2, {"a": 3}]}"#
    ));
    assert!(accepts(
        json!({"allOf": [{"properties": named}]}),
        r#"{"y": 1}"#
    ));
    assert!(!accepts(json!({"properties": named}), "null"));
    // A marker is no text of an argument; what spells it is.
    assert!(!accepts(
        json!({"properties": {"x": {"type": "string"}}}),
        r#"{"x": "</tool_call>"}"#
    ));
}

/// Markers that are no tokens are looked for in all that is said.
#[test]
fn markers_that_are_no_tokens_stand_in_no_text() {
    let source = "{%- for message in messages %}{{- '<|im_start|>' + message.role + '\\n' }}\
        {%- if message.tool_calls %}{%- for call in message.tool_calls %}{{- '<tool_call>\\n' + call.function | tojson + '\\n</tool_call>' }}{%- endfor %}\
        {%- else %}{{- message.content }}{%- endif %}{{- '<|im_end|>\\n' }}{%- endfor %}\
        {%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}";
    let special = SpecialTokens::new([("eos_token", "<|im_end|>")]);
    let tokenizer = tokenizer(&byte_level());
    let end = tokenizer.encode("<|im_end|>").unwrap();
    let chat = Arc::new(Chat::new(
        tokenizer,
        Some(ChatTemplate::new(source, special).unwrap()),
        end,
    ));
    let vocabulary = vocabulary(&chat);
    let call = "<tool_call>\n{\"name\": \"get\", \"arguments\": {\"item\": \"x\"}}\n</tool_call>";
    let auto = matcher(&chat, &vocabulary, &ToolChoice::Auto);
    assert!(accepts(&chat, &auto, call) && accepts(&chat, &auto, "Hello <tool."));
    assert!(accepts(&chat, &auto, &format!("I look: {call}")));
    assert!(!accepts(&chat, &auto, "I look: <tool_call>"));
    let none = matcher(&chat, &vocabulary, &ToolChoice::None);
    assert!(accepts(&chat, &none, "Hello <tool.") && !accepts(&chat, &none, call));
    assert!(!accepts(&chat, &none, "I say <tool_call>"));
    let required = matcher(&chat, &vocabulary, &ToolChoice::Required);
    assert!(accepts(&chat, &required, call) && !accepts(&chat, &required, "Hello"));
    assert!(!accepts(
        &chat,
        &required,
        &call.replace("\"x\"", "\"</tool_call>\"")
    ));
    let mut n_calls = 0;
    for seed in 1..60 {
        for matcher in [&auto, &required] {
            if let Some(tokens) = said(&chat, matcher.clone(), seed) {
                let calls = calls(&chat, &tokens);
                calls.iter().for_each(check);
                n_calls += calls.len();
            }
        }
    }
    assert!(n_calls > 20, "{n_calls}");
}
