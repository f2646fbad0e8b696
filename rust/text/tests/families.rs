//! The templates of the families: whole renderings equal those of `transformers`, and pieces equal the whole wherever a
//! template only appends; elsewhere by the rule of each family.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod support;

use std::sync::Arc;

use pie_text::{Answer, Chat, Role, ToolList};
use serde_json::{Value, json};
use support::Context;
use support::families::{FAMILIES, NAMES, chat_of, json_of};

/// FNV-1a of 64 bits over a text.
fn digest(text: &str) -> String {
    let step = |state: u64, byte: u8| (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", text.bytes().fold(0xcbf2_9ce4_8422_2325, step))
}

/// The conversation as far as a family has words for it: without tools, or with fewer calls at once, and with thoughts
/// where its template reads them.
fn fitting(conversation: &Value, name: &str) -> (Vec<Value>, Option<Value>) {
    let n_calls = FAMILIES[name].calls;
    let mut messages: Vec<Value> = Vec::new();
    for message in conversation["messages"].as_array().unwrap() {
        let mut message = message.clone();
        if let Some(thought) = message.as_object_mut().unwrap().remove("thought") {
            let follows_question = messages.last().is_some_and(|last| last["role"] == "user");
            think(
                &mut message,
                name,
                thought.as_str().unwrap(),
                follows_question,
            );
        }
        if message["role"] == "tool" {
            let place: usize = message["tool_call_id"].as_str().unwrap()[4..]
                .parse()
                .unwrap();
            if place >= n_calls {
                continue;
            }
        } else if let Some(calls) = message.get_mut("tool_calls").and_then(Value::as_array_mut) {
            calls.truncate(n_calls);
            if calls.is_empty() {
                continue;
            }
            for call in calls.iter_mut().filter(|_| name == "deepseek_r1") {
                let arguments = &mut call["function"]["arguments"];
                *arguments = Value::String(python_json(arguments));
            }
            // `transformers` leaves out what is null.
            message.as_object_mut().unwrap().remove("content");
        }
        messages.push(message);
    }
    let tools = conversation["tools"].as_array().filter(|_| n_calls > 0);
    (messages, tools.map(|tools| Value::Array(tools.clone())))
}

/// Puts the thought of a message where the template of a family reads it, if it does anywhere.
fn think(message: &mut Value, name: &str, thought: &str, follows_question: bool) {
    match name {
        "qwen3" => message["reasoning_content"] = json!(thought),
        "harmony" => message["thinking"] = json!(thought),
        // Behind the answers of tools its template opens no thought.
        "deepseek_r1" if follows_question && message.get("tool_calls").is_none() => {
            let content = text(message, "content");
            message["content"] = json!(format!("<think>\n{thought}\n</think>\n\n{content}"));
        }
        _ => {}
    }
}

/// What the model writes of its thought before an answer or a call.
fn thinking(name: &str, message: &Value) -> Option<String> {
    let thought = |key: &str| message.get(key).and_then(Value::as_str);
    match name {
        "qwen3" => Some(format!(
            "<think>\n{}\n</think>\n\n",
            thought("reasoning_content")?
        )),
        "harmony" => Some(format!(
            "<|channel|>analysis<|message|>{}<|end|><|start|>assistant",
            thought("thinking")?
        )),
        _ => None,
    }
}

/// What the model writes behind the cue for an answer that it thinks about first.
fn thoughtful_answer(name: &str, message: &Value) -> Option<String> {
    let content = text(message, "content");
    Some(match name {
        "harmony" => {
            let thought = thinking(name, message)?;
            format!("{thought}<|channel|>final<|message|>{content}<|return|>")
        }
        // The cue has opened the thought.
        "deepseek_r1" => format!(
            "{}<｜end▁of▁sentence｜>",
            content.strip_prefix("<think>\n")?
        ),
        _ => format!("{}{content}<|im_end|>", thinking(name, message)?),
    })
}

/// JSON as Python writes it, for objects of texts and numbers.
fn python_json(value: &Value) -> String {
    let fields = value.as_object().unwrap().iter();
    let fields: Vec<String> = fields
        .map(|(key, value)| format!("{}: {value}", json!(key)))
        .collect();
    format!("{{{}}}", fields.join(", "))
}

fn text<'a>(message: &'a Value, key: &str) -> &'a str {
    message[key].as_str().unwrap()
}

// rows: RS-042..045
#[test]
fn whole_renderings_are_those_of_transformers() {
    let conversations = json_of("conversations.json");
    let expected = json_of("renderings.json");
    for name in NAMES {
        let template = FAMILIES[name].template(name);
        let digests = expected[name].as_array().unwrap();
        assert_eq!(digests.len(), 200);
        for (conversation, expected) in conversations.as_array().unwrap().iter().zip(digests) {
            let (messages, tools) = fitting(conversation, name);
            let messages = Value::Array(messages);
            let rendered = template
                .render_whole(&messages, tools.as_ref(), true)
                .unwrap();
            assert_eq!(
                json!(digest(&rendered)),
                *expected,
                "{name}: {messages} gave {rendered}"
            );
        }
    }
}

/// A context into which a conversation is built, turn by turn; the model writes its calls as `whole` has them.
struct Building<'a> {
    name: &'a str,
    chat: Arc<Chat>,
    context: Context,
}

impl Building<'_> {
    /// Builds a conversation; `whole` is its rendering.
    fn build(&mut self, messages: &[Value], tools: Option<&Value>, whole: &str) {
        if let Some(tools) = tools {
            let schemas: Vec<String> = tools
                .as_array()
                .unwrap()
                .iter()
                .map(Value::to_string)
                .collect();
            self.context.equip(&ToolList::parse(&schemas).unwrap());
        }
        for message in messages {
            match text(message, "role") {
                "system" => self.context.system(text(message, "content")),
                "user" => self.context.user(text(message, "content")),
                "tool" => {
                    let id = message["tool_call_id"].as_str();
                    let answer = Answer::new(text(message, "name"), id).unwrap();
                    self.context.answer(&answer, text(message, "content"))
                }
                _ if message.get("tool_calls").is_some() => {
                    let thought = thinking(self.name, message).unwrap_or_default();
                    self.call(whole, &thought)
                }
                _ => match thoughtful_answer(self.name, message) {
                    Some(answer) => self.context.cue().generate(&answer),
                    None => self.context.say(Role::Assistant, text(message, "content")),
                },
            };
        }
        self.context.cue();
    }

    /// The model writes its thought and what the whole has here, up to the token with which it ends.
    fn call(&mut self, whole: &str, thought: &str) -> &mut Context {
        self.context.cue();
        let so_far = shown(self.name, &self.context.text());
        let rest = whole
            .strip_prefix(&so_far)
            .unwrap_or_else(|| panic!("{}: {so_far:?} does not begin {whole:?}", self.name));
        let ends = FAMILIES[self.name].ends.iter();
        let end = ends
            .filter_map(|end| Some(rest.find(end.as_str())? + end.len()))
            .min()
            .unwrap();
        self.context.generate(&format!("{thought}{}", &rest[..end]))
    }
}

/// What the rule of the family leaves of a built text: a context keeps the thoughts that a template leaves out once the
/// model has answered. DeepSeek-R1 opens a thought with the cue, which stays too. GPT-OSS ends its answer with
/// `<|return|>`, which its template makes the end of a message.
fn shown(name: &str, text: &str) -> String {
    match name {
        "qwen3" => without(text, "<think>\n", "</think>\n\n"),
        "deepseek_r1" => without(text, "<think>\n", "</think>").replace("<think>\n", ""),
        "harmony" => {
            let (open, close) = (
                "<|channel|>analysis<|message|>",
                "<|end|><|start|>assistant",
            );
            without(text, open, close).replace("<|return|>", "<|end|>")
        }
        _ => text.to_owned(),
    }
}

/// A text without what stands from `open` to the first `close` behind it; what is not closed before it is opened again
/// stays.
fn without(text: &str, open: &str, close: &str) -> String {
    let mut parts = text.split(open);
    let mut left = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(close) {
            Some((_, rest)) => left.push_str(rest),
            None => left.extend([open, part]),
        }
    }
    left
}

/// The whole of a conversation by the rule of a family.
fn whole_of(name: &str, messages: &[Value], tools: Option<&Value>) -> String {
    let template = FAMILIES[name].template(name);
    let render = |messages: &[Value], tools: Option<&Value>, cue: bool| {
        template.render_whole(&json!(messages), tools, cue).unwrap()
    };
    let n_system = usize::from(messages[0]["role"] == "system");
    if name == "mistral" && (n_system > 0 || tools.is_some()) {
        // The system prompt and the tools move to the last question. They stay where they were said: at the first.
        let first = render(&messages[..=n_system], tools, false);
        let plain = render(&messages[n_system..], None, true);
        let question = render(&messages[n_system..=n_system], None, false);
        return first + plain.strip_prefix(&question).unwrap();
    }
    shown(name, &render(messages, tools, true))
}

// rows: RS-042..046
#[test]
fn pieces_equal_the_whole() {
    let conversations = json_of("conversations.json");
    for name in NAMES {
        let chat = chat_of(name);
        let mut n_kept = 0;
        for conversation in conversations.as_array().unwrap() {
            let (messages, tools) = fitting(conversation, name);
            let whole = whole_of(name, &messages, tools.as_ref());
            let mut building = Building {
                name,
                chat: Arc::clone(&chat),
                context: Context::new(&chat),
            };
            building.build(&messages, tools.as_ref(), &whole);
            let context = &building.context;
            assert_eq!(shown(name, &context.text()), whole, "{name}");
            // A cue is encoded before anybody knows what the model says behind it, and a prompt before the question.
            let has_calls = messages.iter().any(|message| message["role"] == "tool");
            let thinks = |part: &[Value]| part.iter().any(|it| thinking(name, it).is_some());
            let is_question = |message: &Value| message["role"] == "user";
            let question = messages.iter().rposition(is_question).unwrap();
            // The template leaves out what was thought before the last question, and nothing behind it.
            if !thinks(&messages[..question]) && thinks(&messages[question..]) {
                let template = FAMILIES[name].template(name);
                let exact = template.render_whole(&json!(messages), tools.as_ref(), true);
                assert_eq!(context.text(), exact.unwrap(), "{name}");
                n_kept += 1;
            }
            let merges = ["gemma", "mistral", "deepseek_r1"].contains(&name);
            if !has_calls && !merges && !thinks(&messages) {
                let ids = building.chat.tokenizer().encode(&whole).unwrap();
                assert!(context.tokens == ids, "{name}: {whole}");
            }
        }
        let keeps = ["qwen3", "harmony"].contains(&name);
        assert_eq!(n_kept > 10, keeps, "{name}: {n_kept}");
    }
}

// rows: RS-043 RS-045..046
#[test]
fn gpt_oss_keeps_its_analysis_and_the_token_of_its_last_answer() {
    let chat = chat_of("harmony");
    let template = FAMILIES["harmony"].template("harmony");
    let question = json!([{"role": "user", "content": "Q"}]);
    let asked = template.render_whole(&question, None, true).unwrap();
    let thought = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant";
    let next = "<|start|>user<|message|>R<|end|><|start|>assistant";
    let go_on = |written: &str| {
        let mut context = Context::new(&chat);
        context.user("Q").cue().generate(written).user("R").cue();
        context.text()
    };
    // The answer keeps its thought and `<|return|>`, behind which no second end stands.
    let answer = format!("{thought}<|channel|>final<|message|>A<|return|>");
    assert_eq!(go_on(&answer), format!("{asked}{answer}{next}"));
    // The template itself has neither once it goes on.
    let later = json!([{"role": "user", "content": "Q"}, {"role": "assistant", "content": "A", "thinking": "Hm."},
        {"role": "user", "content": "R"}]);
    let whole = template.render_whole(&later, None, true).unwrap();
    assert_eq!(whole, shown("harmony", &go_on(&answer)));
    assert!(!whole.contains("analysis<|message|>") && !whole.contains("<|return|>"));
    // Until a final message the thought is the template's too.
    let tools = json!([{"type": "function", "function": {"name": "f", "description": "D.", "parameters": {}}}]);
    let called = json!([{"role": "user", "content": "Q"}, {"role": "assistant", "thinking": "Hm.", "tool_calls": [
        {"id": "call00000", "type": "function", "function": {"name": "f", "arguments": {}}}]},
        {"role": "tool", "name": "f", "tool_call_id": "call00000", "content": "3"}]);
    let whole = template.render_whole(&called, Some(&tools), true).unwrap();
    let list = ToolList::parse(&[tools[0].to_string()]).unwrap();
    let call = " to=functions.f<|channel|>commentary json<|message|>{}<|call|>";
    let mut context = Context::new(&chat);
    context
        .equip(&list)
        .user("Q")
        .cue()
        .generate(&format!("{thought}{call}"));
    context
        .answer(&Answer::new("f", Some("call00000")).unwrap(), "3")
        .cue();
    assert_eq!(context.text(), whole);
}

fn price() -> ToolList {
    let schema = r#"{"name": "get_price", "description": "Get it.", "parameters": {"type": "object", "properties": {"item": {"type": "string"}}}}"#;
    ToolList::parse(&[schema]).unwrap()
}

// rows: RS-044 RS-047
#[test]
fn an_answer_that_is_appended_raw_counts_as_one() {
    for name in NAMES.into_iter().filter(|name| FAMILIES[*name].calls > 0) {
        let chat = chat_of(name);
        let answer = Answer::new("get_price", None).unwrap();
        let tokens = chat.answer_tokens(&answer, "340").unwrap();
        let mut context = Context::new(&chat);
        context
            .user("How much?")
            .cue()
            .append_text("I call.")
            .append(&tokens);
        assert!(context.state.needs_cue(), "{name}: {}", context.text());
        let mut other = Context::new(&chat);
        other
            .user("How much?")
            .cue()
            .append_text("I call.")
            .answer(&answer, "340");
        assert_eq!(context.cue().text(), other.cue().text(), "{name}");
        // What a model wrote is none.
        let mut context = Context::new(&chat);
        context.user("How much?").cue().append_text("340");
        assert!(!context.state.needs_cue(), "{name}");
    }
}

// rows: RS-182..183
#[test]
fn tools_stand_once_and_where_they_are_given() {
    for name in NAMES.into_iter().filter(|name| FAMILIES[*name].calls > 0) {
        let chat = chat_of(name);
        let count = |context: &Context| context.text().matches("get_price").count();
        let mut first = Context::new(&chat);
        first.equip(&price()).system("Be brief.").user("a");
        let n_names = count(&first);
        assert!(n_names > 0, "{name}");
        assert_eq!(
            count(first.assistant("b").user("c").cue()),
            n_names,
            "{name}"
        );
        // Behind a system prompt that was closed, behind a conversation, and before nothing.
        let mut later = Context::new(&chat);
        later
            .system("Be brief.")
            .user("a")
            .assistant("b")
            .equip(&price());
        assert!(later.state.needs_cue());
        assert_eq!(count(&later), 0);
        assert_eq!(
            count(later.user("c").cue()),
            n_names,
            "{name}: {}",
            later.text()
        );
        let mut alone = Context::new(&chat);
        alone.user("a").assistant("b").equip(&price()).cue();
        assert_eq!(count(&alone), n_names, "{name}: {}", alone.text());
        assert!(alone.tokens.ends_with(chat.cue_tokens().unwrap()), "{name}");
        // A cut goes back to where they are given.
        let mut cut = Context::new(&chat);
        cut.user("a").assistant("b").equip(&price());
        let length = cut.tokens.len();
        cut.user("c").truncate(length).user("c").cue();
        assert_eq!(count(&cut), n_names, "{name}");
    }
}

// rows: RS-182
#[test]
fn a_template_without_a_place_for_tools_is_an_error() {
    for name in ["gemma", "phi3"] {
        let refused = chat_of(name).equip_tokens(&price()).unwrap_err();
        assert_eq!(refused.code(), "template-error");
        assert!(
            refused.to_string().contains("no place for tools"),
            "{refused}"
        );
    }
}

// rows: RS-182
#[test]
fn schemas_that_are_none_are_refused() {
    for (schemas, why) in [
        (vec![], "empty"),
        (vec!["{"], "tool 0: it is not JSON"),
        (vec!["[1]"], "not an object"),
        (vec!["{}"], "no name"),
        (vec![r#"{"name": 5}"#], "not a text"),
        (vec![r#"{"name": ""}"#], "cannot stand in a call"),
        (vec![r#"{"name": "a\"b"}"#], "cannot stand in a call"),
        (vec![r#"{"name": "a\nb"}"#], "cannot stand in a call"),
        (vec![r#"{"name": "<|im_end|>"}"#], "cannot stand in a call"),
        (vec![r#"{"name": "a", "description": 5}"#], "description"),
        (
            vec![r#"{"name": "a", "parameters": []}"#],
            "not a JSON schema",
        ),
        (
            vec![r#"{"name": "a", "parameters": {"type": "string"}}"#],
            "of type",
        ),
        (
            vec![
                r#"{"name": "a"}"#,
                r#"{"type": "function", "function": {"name": "a"}}"#,
            ],
            "two tools are called",
        ),
    ] {
        let refused = ToolList::parse(&schemas).unwrap_err();
        assert_eq!(refused.code(), "invalid-argument");
        assert!(refused.to_string().contains(why), "{refused}");
    }
    let many = vec![r#"{"name": "a"}"#; pie_text::limits::MAX_TOOLS + 1];
    assert!(ToolList::parse(&many).is_err());
    let long = format!(
        r#"{{"name": "a", "description": "{}"}}"#,
        "x".repeat(pie_text::limits::MAX_TOOLS_BYTES)
    );
    assert!(ToolList::parse(&[long]).is_err());
    assert!(Answer::new("a b", None).is_err());
    assert!(Answer::new("a", Some("<s>")).is_err());
    let mcp = r#"{"name": "a", "inputSchema": {"type": "object", "properties": {"x": {}}}, "annotations": {}}"#;
    assert_eq!(
        ToolList::parse(&[mcp]).unwrap().parameters(0)["properties"]["x"],
        json!({})
    );
}

/// The token that a text is.
fn only_token(chat: &Chat, text: &str) -> u32 {
    match chat.tokenizer().encode(text).unwrap().as_slice() {
        [id] => *id,
        other => panic!("{text:?} is {other:?}"),
    }
}

/// What somebody writes who wants to be taken for the template: the control tokens of all families, whole and in
/// pieces.
fn injections() -> Vec<String> {
    let mut texts = Vec::new();
    for name in NAMES {
        let family = &FAMILIES[name];
        for token in family.special.iter().chain(&family.markers) {
            let half = token
                .char_indices()
                .nth(token.chars().count() / 2)
                .unwrap()
                .0;
            let (head, tail) = token.split_at(half);
            texts.extend([
                format!("a{token}b"),
                format!("{head}{token}{tail}"),
                head.to_owned(),
                tail.to_owned(),
            ]);
        }
    }
    texts
}

// rows: RS-042..044 RS-183
#[test]
fn no_content_becomes_a_control_token() {
    for name in NAMES {
        let chat = chat_of(name);
        let family = &FAMILIES[name];
        let has_tools = family.calls > 0;
        // The markers of calls, of their answers and of thoughts too, which some do not declare special.
        let texts = family.special.iter().chain(&family.markers);
        let owned: Vec<u32> = texts.map(|text| only_token(&chat, text)).collect();
        let control = |context: &Context| -> Vec<u32> {
            let ids = context.tokens.iter().copied();
            ids.filter(|id| owned.contains(id)).collect()
        };
        let build = |text: &str| {
            let mut context = Context::new(&chat);
            if has_tools {
                let schema = json!({"name": "f", "description": text, "parameters": {"type": "object",
                    "properties": {"x": {"type": "string", "description": text, "enum": [text]}}}});
                context.equip(&ToolList::parse(&[schema.to_string()]).unwrap());
            }
            context.system(text).user(text);
            if has_tools {
                context
                    .cue()
                    .append_text("x")
                    .answer(&Answer::new("f", None).unwrap(), text);
            }
            // Roles alternate in some.
            context.assistant("y").user(text);
            context
        };
        let plain = control(&build("ab"));
        let injections = injections();
        let all = injections.concat();
        for text in injections.iter().step_by(7).chain([&all]) {
            assert_eq!(control(&build(text)), plain, "{name}: {text}");
        }
        let message = |text: &str| chat.message_tokens(Role::User, text).unwrap();
        let count = |ids: Vec<u32>| ids.iter().filter(|id| owned.contains(id)).count();
        for text in &injections {
            assert_eq!(count(message(text)), count(message("ab")), "{name}: {text}");
        }
        if has_tools {
            let answer = Answer::new("f", None).unwrap();
            let tokens = |text: &str| count(chat.answer_tokens(&answer, text).unwrap());
            assert_eq!(tokens(&all), tokens("ab"), "{name}");
        }
    }
}

// rows: RS-043 RS-045
#[test]
fn what_the_assistant_said_keeps_its_markers() {
    let chat = chat_of("qwen3");
    let mut context = Context::new(&chat);
    context.user("Q").assistant("<tool_call>\n{}\n</tool_call>");
    for marker in ["<tool_call>", "</tool_call>"] {
        let id = only_token(&chat, marker);
        assert!(context.tokens.contains(&id), "{marker}");
    }
}

// rows: RS-049 RS-183
#[test]
fn a_message_in_the_place_of_one_that_was_cut_has_its_tools() {
    for name in NAMES.into_iter().filter(|name| FAMILIES[*name].calls > 0) {
        let chat = chat_of(name);
        let tools = ToolList::parse(&[r#"{"name": "look_around"}"#]).unwrap();
        let asked = |text: &str| {
            let mut context = Context::new(&chat);
            context.equip(&tools).user(text);
            context
        };
        let mut cut = asked("Q");
        cut.truncate(1);
        cut.user("Q2");
        assert!(cut.text().contains("look_around"), "{name}: {}", cut.text());
        assert_eq!(cut.tokens, asked("Q2").tokens, "{name}");
    }
}
