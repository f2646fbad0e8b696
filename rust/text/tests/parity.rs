//! The same ids and texts as `transformers`: `tests/text/write_cases.py` writes the cases.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::path::Path;
use std::sync::Arc;

use pie_text::{Chat, ChatTemplate, Role, SpecialTokens};
use serde::Deserialize;
use support::{
    CHATML, CHATML_DEFAULT_SYSTEM, CHATML_THINKING, Context, GEMMA, LLAMA3, MISTRAL, byte_level,
    chat, metaspace, tokenizer,
};

#[derive(Deserialize)]
struct Message {
    role: String,
    content: String,
}

#[derive(Deserialize)]
struct Conversation {
    template: String,
    messages: Vec<Message>,
    text: String,
    ids: Vec<u32>,
}

#[derive(Deserialize)]
struct Text {
    tokenizer: String,
    text: String,
    ids: Vec<u32>,
    decoded: String,
}

#[derive(Deserialize)]
struct Expression {
    expression: String,
    text: String,
}

fn role(name: &str) -> Role {
    [Role::System, Role::User, Role::Assistant]
        .into_iter()
        .find(|role| role.name() == name)
        .unwrap()
}

// rows: RS-042..045
#[test]
fn conversations() {
    let templates = [
        ("chatml", CHATML),
        ("chatml_default_system", CHATML_DEFAULT_SYSTEM),
        ("chatml_thinking", CHATML_THINKING),
        ("llama3", LLAMA3),
        ("gemma", GEMMA),
        ("mistral", MISTRAL),
    ];
    let cases: Vec<Conversation> =
        serde_json::from_str(include_str!("data/conversations.json")).unwrap();
    assert!(cases.len() >= 4 * templates.len());
    for (name, template) in templates {
        let chat = chat(template);
        for case in cases.iter().filter(|case| case.template == name) {
            let mut context = Context::new(&chat);
            for message in &case.messages {
                context.say(role(&message.role), &message.content);
            }
            context.cue();
            assert_eq!(context.text(), case.text, "{name}");
            assert_eq!(context.tokens, case.ids, "{name}: {:?}", case.text);
        }
    }
}

// rows: RS-028..029
#[test]
fn texts() {
    let cases: Vec<Text> = serde_json::from_str(include_str!("data/texts.json")).unwrap();
    let tokenizers = [
        ("byte_level", tokenizer(&byte_level())),
        ("metaspace", tokenizer(&metaspace())),
    ];
    assert!(cases.len() >= 20);
    for case in cases {
        let it = &tokenizers
            .iter()
            .find(|(name, _)| *name == case.tokenizer)
            .unwrap()
            .1;
        assert_eq!(
            it.encode(&case.text).unwrap(),
            case.ids,
            "{}: {:?}",
            case.tokenizer,
            case.text
        );
        assert_eq!(
            it.decode(&case.ids).unwrap(),
            case.decoded,
            "{}: {:?}",
            case.tokenizer,
            case.text
        );
    }
}

// rows: RS-042..044
#[test]
fn expressions() {
    let cases: Vec<Expression> =
        serde_json::from_str(include_str!("data/expressions.json")).unwrap();
    assert!(cases.len() >= 30);
    for Expression { expression, text } in cases {
        // The rendering can be seen in what it puts before the content of a message.
        let source = format!(
            "{{{{ {expression} }}}}|{{% for m in messages %}}{{{{ m.content }}}}{{% endfor %}}"
        );
        let template = ChatTemplate::new(&source, SpecialTokens::default()).unwrap();
        let chat = Arc::new(Chat::new(tokenizer(&byte_level()), Some(template), vec![]));
        assert_eq!(
            Context::new(&chat).user("x").text(),
            format!("{text}|x"),
            "{expression}"
        );
    }
}

// rows: RS-028..029
#[test]
fn the_embedded_model() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/pie/pie_tiny");
    let chat = Arc::new(Chat::from_dir(&dir, 4096).unwrap());
    let mut context = Context::new(&chat);
    context
        .system("You are helpful.")
        .user("What is 2 + 2?")
        .generate("4.<|im_end|>")
        .user("And 3 + 3?")
        .cue();
    let whole = "<|im_start|>system\nYou are helpful.<|im_end|>\n<|im_start|>user\nWhat is 2 + 2?<|im_end|>\n<|im_start|>assistant\n4.<|im_end|>\n\
                 <|im_start|>user\nAnd 3 + 3?<|im_end|>\n<|im_start|>assistant\n";
    assert_eq!(context.text(), whole);
    assert_eq!(context.tokens, chat.tokenizer().encode(whole).unwrap());
    assert_eq!(
        chat.tokenizer()
            .decode(chat.stop_tokens().unwrap())
            .unwrap(),
        "<|im_end|>"
    );
    assert!(
        chat.stop_tokens()
            .unwrap()
            .iter()
            .all(|id| chat.end_tokens().contains(id))
    );
}
