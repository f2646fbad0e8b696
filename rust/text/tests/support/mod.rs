//! Small tokenizers and templates, made for the tests.
#![allow(dead_code, reason = "each test binary uses its part")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use pie_text::{At, Chat, ChatState, ChatTemplate, Role, SpecialTokens, Tokenizer};
use serde_json::{Value, json};

/// The control tokens of the byte-level tokenizer: those of several families, so that one tokenizer serves every template.
pub(crate) const CONTROL: [&str; 12] = [
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>",
    "<bos>", "<start_of_turn>", "<end_of_turn>", "<s>", "</s>",
];
/// Its added tokens that are not special.
pub(crate) const MARKERS: [&str; 5] = ["<think>", "</think>", "[INST]", "[/INST]", "<|turn|>"];

const SPLIT: &str =
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// The character that stands for a byte in a byte-level vocabulary.
pub(crate) fn byte_char(byte: u8) -> char {
    match byte {
        b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF => char::from(byte),
        0..=0x20 => char::from_u32(0x100 + u32::from(byte)).unwrap(),
        0x7F..=0xA0 => char::from_u32(0x121 + u32::from(byte) - 0x7F).unwrap(),
        0xAD => '\u{143}',
    }
}

/// A byte-level tokenizer of 256 bytes, a few merges and the added tokens above.
pub(crate) fn byte_level() -> Value {
    let mut vocab = serde_json::Map::new();
    for byte in 0..=u8::MAX {
        vocab.insert(byte_char(byte).to_string(), json!(byte));
    }
    let mut merges = Vec::new();
    let pairs = [
        ("e", "r"), ("Ċ", "Ċ"), ("Ġ", "Ġ"), ("u", "s"), ("us", "er"), ("Ġ", "a"), ("h", "e"), ("Ġ", "t"), ("Ġt", "he"), ("l", "l"),
        (":", "Ċ"), ("o", "Ġ"), ("s", "s"), ("Ã", "©"), ("ðŁ", "ĺ"), ("ð", "Ł"), (".", "Ċ"), ("i", "n"),
    ];
    for (left, right) in pairs {
        let id = vocab.len();
        vocab.insert(format!("{left}{right}"), json!(id));
        merges.push(json!([left, right]));
    }
    // A merge needs its parts before it.
    merges.swap(14, 15);
    let mut id = vocab.len();
    let mut added = Vec::new();
    for (special, names) in [(true, CONTROL.as_slice()), (false, MARKERS.as_slice())] {
        for content in names {
            added.push(json!({"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": false, "special": special}));
            id += 1;
        }
    }
    json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": added, "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": SPLIT}, "behavior": "Isolated", "invert": false},
            {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}]},
        "post_processor": null,
        "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
        "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null, "end_of_word_suffix": null,
            "fuse_unk": false, "byte_fallback": false, "ignore_merges": false, "vocab": vocab, "merges": merges}
    })
}

/// A sentencepiece-like tokenizer: metaspace and byte fallback.
pub(crate) fn metaspace() -> Value {
    let mut vocab = serde_json::Map::new();
    for token in ["<unk>", "<s>", "</s>"] {
        vocab.insert(token.to_owned(), json!(vocab.len()));
    }
    for byte in 0..=255 {
        vocab.insert(format!("<0x{byte:02X}>"), json!(vocab.len()));
    }
    for token in ["▁", "h", "e", "l", "o", "w", "r", "d", "<", "s", ">", "/", "▁h", "▁w", "el", "lo"] {
        vocab.insert(token.to_owned(), json!(vocab.len()));
    }
    let merges = json!([["▁", "h"], ["▁", "w"], ["e", "l"], ["l", "o"]]);
    let added: Vec<Value> = ["<unk>", "<s>", "</s>"]
        .iter()
        .enumerate()
        .map(|(id, content)| {
            json!({"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
                "special": true})
        })
        .collect();
    json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": added, "normalizer": null,
        "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": false},
        "post_processor": null,
        "decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
            {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
        "model": {"type": "BPE", "dropout": null, "unk_token": "<unk>", "continuing_subword_prefix": null, "end_of_word_suffix": null,
            "fuse_unk": true, "byte_fallback": true, "ignore_merges": false, "vocab": vocab, "merges": merges}
    })
}

pub(crate) fn tokenizer(json: &Value) -> Tokenizer {
    Tokenizer::from_bytes(json.to_string().as_bytes(), 0).unwrap()
}

pub(crate) const CHATML: &str = "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}\
{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

/// Puts a system prompt of its own before a conversation that has none.
pub(crate) const CHATML_DEFAULT_SYSTEM: &str = "{%- if messages[0]['role'] == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}
{%- else %}
    {{- '<|im_start|>system\\nYou are a helpful assistant.<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'user' or (message.role == 'system' and not loop.first) or message.role == 'assistant' %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}";

/// Writes an empty thinking block into the last assistant message only, and drops the thinking of earlier ones.
pub(crate) const CHATML_THINKING: &str = "{%- set ns = namespace(last_query_index=messages|length - 1, found=false) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if not ns.found and message.role == 'user' %}
        {%- set ns.found = true %}
        {%- set ns.last_query_index = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.role == 'assistant' %}
        {%- set content = message.content %}
        {%- set reasoning = '' %}
        {%- if '</think>' in content %}
            {%- set reasoning = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
            {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query_index and (loop.last or reasoning) %}
            {{- '<|im_start|>assistant\\n<think>\\n' + reasoning.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}
        {%- else %}
            {{- '<|im_start|>assistant\\n' + content }}
        {%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- else %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}";

pub(crate) const LLAMA3: &str = "{% set loop_messages = messages %}{% for message in loop_messages %}\
{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' %}\
{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}\
{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}";

/// Has no system role of its own: the prompt goes into the first question. The roles must alternate.
pub(crate) const GEMMA: &str = "{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- set first = messages[0]['content'] + '\n\n' -%}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}
    {%- set first = '' -%}
    {%- set loop_messages = messages -%}
{%- endif -%}
{%- for message in loop_messages -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}
    {%- endif -%}
    {%- set role = 'model' if message['role'] == 'assistant' else message['role'] -%}
    {{ '<start_of_turn>' + role + '\n' + (first if loop.first else '') }}{{ message['content'] | trim }}{{ '<end_of_turn>\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<start_of_turn>model\n' }}{%- endif -%}";

/// Writes the system prompt into the last question, wherever that is.
pub(crate) const MISTRAL: &str = "{%- if messages[0]['role'] == 'system' %}
    {%- set system = messages[0]['content'] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message['role'] == 'user' %}
        {%- if loop.last and system is defined %}
            {{- '[INST] ' + system + '\\n\\n' + message['content'] + '[/INST]' }}
        {%- else %}
            {{- '[INST] ' + message['content'] + '[/INST]' }}
        {%- endif %}
    {%- else %}
        {{- ' ' + message['content'] + eos_token }}
    {%- endif %}
{%- endfor %}";

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
    Arc::new(Chat::new(tokenizer, Some(ChatTemplate::new(source, special).unwrap()), end))
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
        Self { chat: Arc::clone(chat), tokens: Vec::new(), state: ChatState::new() }
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
        self.chat.on_append(&mut self.state, tokens.len() as u32, at(&self.tokens));
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
        self.state.on_generated(tokens.len() as u32, self.tokens.len() as u32);
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
    At { length: tokens.len() as u32, tail: &tokens[tokens.len().saturating_sub(Chat::TAIL_LEN)..] }
}
