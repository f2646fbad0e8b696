//! Small tokenizers and templates; `tests/text/write_cases.py` writes the tokenizers.
#![allow(dead_code, reason = "each test binary uses its part")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

pub(crate) mod families;

use std::sync::Arc;

use pie_text::{
    Answer, At, Chat, ChatState, ChatTemplate, Role, SpecialTokens, Tokenizer, ToolList,
};
use serde_json::Value;

/// The control tokens of the byte-level tokenizer: those of several families, so that one tokenizer serves every
/// template.
pub(crate) const CONTROL: [&str; 12] = [
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|begin_of_text|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<|eot_id|>",
    "<bos>",
    "<start_of_turn>",
    "<end_of_turn>",
    "<s>",
    "</s>",
];
/// Its added tokens that are not special.
pub(crate) const MARKERS: [&str; 5] = ["<think>", "</think>", "[INST]", "[/INST]", "<|turn|>"];

/// A byte-level tokenizer of 256 bytes, a few merges and the added tokens above.
pub(crate) fn byte_level() -> Value {
    serde_json::from_str(include_str!("../data/byte_level.json")).unwrap()
}

/// A sentencepiece-like tokenizer: metaspace and byte fallback.
pub(crate) fn metaspace() -> Value {
    serde_json::from_str(include_str!("../data/metaspace.json")).unwrap()
}

pub(crate) fn tokenizer(json: &Value) -> Tokenizer {
    Tokenizer::from_bytes(json.to_string().as_bytes(), 0).unwrap()
}

pub(crate) const CHATML: &str = include_str!("../data/templates/chatml.jinja");

/// Puts a system prompt of its own before a conversation that has none.
pub(crate) const CHATML_DEFAULT_SYSTEM: &str =
    include_str!("../data/templates/chatml_default_system.jinja");

/// Writes an empty thinking block into the last assistant message only, and drops the thinking of earlier ones.
pub(crate) const CHATML_THINKING: &str = include_str!("../data/templates/chatml_thinking.jinja");

pub(crate) const LLAMA3: &str = include_str!("../data/templates/llama3.jinja");

/// Has no system role of its own: the prompt goes into the first question. The roles must alternate.
pub(crate) const GEMMA: &str = include_str!("../data/templates/gemma.jinja");

/// Writes the system prompt into the last question, wherever that is.
pub(crate) const MISTRAL: &str = include_str!("../data/templates/mistral.jinja");

/// The special tokens that go with a template above.
pub(crate) fn special(source: &str) -> SpecialTokens {
    let (bos, eos) = match source {
        LLAMA3 => ("<|begin_of_text|>", "<|eot_id|>"),
        GEMMA => ("<bos>", "<end_of_turn>"),
        MISTRAL => ("<s>", "</s>"),
        _ => ("<|endoftext|>", "<|im_end|>"),
    };
    SpecialTokens::new([("bos_token", bos), ("eos_token", eos)])
}

/// The chat of a template, on the byte-level tokenizer.
pub(crate) fn chat(source: &str) -> Arc<Chat> {
    let special = special(source);
    let tokenizer = tokenizer(&byte_level());
    let end = tokenizer.encode(special.get("eos_token").unwrap()).unwrap();
    Arc::new(Chat::new(
        tokenizer,
        Some(ChatTemplate::new(source, special).unwrap()),
        end,
    ))
}

/// A context: what the engine holds of it, with the turn state beside it.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) chat: Arc<Chat>,
    pub(crate) tokens: Vec<u32>,
    pub(crate) state: ChatState,
}

impl Context {
    pub(crate) fn new(chat: &Arc<Chat>) -> Self {
        Self {
            chat: Arc::clone(chat),
            tokens: Vec::new(),
            state: ChatState::new(),
        }
    }

    fn at(&self) -> At<'_> {
        at(&self.tokens)
    }

    pub(crate) fn say(&mut self, role: Role, text: &str) -> &mut Self {
        let addition = self.chat.fill(&self.state, self.at(), role, text).unwrap();
        self.tokens.extend(addition.tokens);
        self.state = addition.state;
        self
    }

    pub(crate) fn system(&mut self, text: &str) -> &mut Self {
        self.say(Role::System, text)
    }

    pub(crate) fn user(&mut self, text: &str) -> &mut Self {
        self.say(Role::User, text)
    }

    pub(crate) fn assistant(&mut self, text: &str) -> &mut Self {
        self.say(Role::Assistant, text)
    }

    pub(crate) fn equip(&mut self, tools: &ToolList) -> &mut Self {
        let addition = self.chat.equip(&self.state, self.at(), tools).unwrap();
        self.tokens.extend(addition.tokens);
        self.state = addition.state;
        self
    }

    pub(crate) fn answer(&mut self, answer: &Answer, text: &str) -> &mut Self {
        let chat = Arc::clone(&self.chat);
        let addition = chat.answer(&self.state, self.at(), answer, text).unwrap();
        self.tokens.extend(addition.tokens);
        self.state = addition.state;
        self
    }

    pub(crate) fn cue(&mut self) -> &mut Self {
        let addition = self.chat.cue(&self.state, self.at()).unwrap();
        self.tokens.extend(addition.tokens);
        self.state = addition.state;
        self
    }

    pub(crate) fn seal(&mut self) -> &mut Self {
        let addition = self.chat.seal(&self.state, self.at()).unwrap();
        self.tokens.extend(addition.tokens);
        self.state = addition.state;
        self
    }

    pub(crate) fn append(&mut self, tokens: &[u32]) -> &mut Self {
        self.tokens.extend(tokens);
        self.chat
            .on_append(&mut self.state, tokens.len() as u32, at(&self.tokens));
        let length = self.tokens.len() as u32;
        self.chat.on_answer(&mut self.state, tokens, length);
        self
    }

    pub(crate) fn append_text(&mut self, text: &str) -> &mut Self {
        let tokens = self.chat.tokenizer().encode(text).unwrap();
        self.append(&tokens)
    }

    /// What the model writes, control tokens included.
    pub(crate) fn generate(&mut self, text: &str) -> &mut Self {
        if self.state.needs_cue() {
            self.cue();
        }
        let tokens = self.chat.tokenizer().encode(text).unwrap();
        self.tokens.extend(&tokens);
        self.state
            .on_generated(tokens.len() as u32, self.tokens.len() as u32);
        self
    }

    pub(crate) fn truncate(&mut self, length: usize) -> &mut Self {
        self.state.truncate(self.tokens.len() as u32, length as u32);
        self.tokens.truncate(length);
        self
    }

    pub(crate) fn text(&self) -> String {
        self.chat.tokenizer().decode(&self.tokens).unwrap()
    }
}

/// The end of a context that holds `tokens`.
pub(crate) fn at(tokens: &[u32]) -> At<'_> {
    At {
        length: tokens.len() as u32,
        tail: &tokens[tokens.len().saturating_sub(Chat::TAIL_LEN)..],
    }
}
