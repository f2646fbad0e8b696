//! The bounds on what a file or a program can make this crate hold or compute.

/// The longest text of one `encode`, of one `decode` and of one chat message, in bytes. Encoding takes about a
/// microsecond a byte.
pub const MAX_TEXT_BYTES: usize = 4 << 20;
/// The largest `tokenizer.json`, in bytes. Those of the largest vocabularies have half of it.
pub const MAX_TOKENIZER_FILE_BYTES: u64 = 64 << 20;
/// The most values in the model of a `tokenizer.json`: entries of its vocabulary, and three for each of its merges.
pub const MAX_TOKENIZER_VALUES: usize = 4 << 20;
/// The most steps by which a tokenizer normalizes and splits.
pub const MAX_TOKENIZER_STEPS: usize = 64;
/// The largest of the other configuration files, a chat template included, in bytes.
pub const MAX_CONFIG_FILE_BYTES: u64 = 4 << 20;
/// The longest chat template, in bytes.
pub const MAX_TEMPLATE_BYTES: usize = 1 << 20;
/// The most words (names, texts, numbers, punctuation) of a chat template.
pub const MAX_TEMPLATE_WORDS: usize = 1 << 17;
/// The most tags of a chat template: `{{ ... }}` and `{% ... %}`.
pub const MAX_TEMPLATE_TAGS: usize = 1 << 14;
/// The most words of one tag.
pub const MAX_TAG_WORDS: usize = 1 << 12;
/// The bytes that one rendering may make or look at besides those of its contents, all of its steps together.
pub const RENDERING_BYTES: usize = 32 << 20;
/// And for each byte of its contents.
pub const RENDERING_BYTES_PER_CONTENT_BYTE: usize = 48;
/// What a template may write around the contents of a conversation, in bytes.
pub const MAX_RENDERED_BYTES: usize = 2 << 20;
/// What it may write for each byte of content.
pub const MAX_RENDERED_TIMES: usize = 8;
/// What is kept of the renderings of a template, in bytes.
pub const MAX_KEPT_BYTES: usize = 16 << 20;
/// The longest special token, in bytes.
pub const MAX_SPECIAL_TOKEN_BYTES: usize = 4 << 10;
/// Instructions that one rendering of a template may execute.
pub const MAX_TEMPLATE_FUEL: u64 = 4_000_000;
/// The text that a decoder holds, that of its reply and of its queued events, in bytes: a quarter of a million tokens,
/// since a program may have thousands of decoders.
pub const MAX_HELD_BYTES: usize = 1 << 20;
/// The most events that wait in a decoder.
pub const MAX_QUEUED_EVENTS: usize = 1 << 14;
/// The most tools that a model is given at once.
pub const MAX_TOOLS: usize = 256;
/// The most bytes of their schemas.
pub const MAX_TOOLS_BYTES: usize = 1 << 19;
/// The longest name of a tool, and the longest id of a call, in bytes.
pub const MAX_TOOL_NAME_BYTES: usize = 128;
/// The most stop texts that are looked for at once.
pub const MAX_STOP_TEXTS: usize = 64;
/// The longest stop text, in bytes.
pub const MAX_STOP_TEXT_BYTES: usize = 256;
