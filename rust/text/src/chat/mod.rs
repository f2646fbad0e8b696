//! A conversation built piece by piece.
use crate::{ChatTemplate, Tokenizer, error::Result};
use std::{path::Path, sync::Arc};

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Instructions.
    System,
    /// The user.
    User,
    /// The model.
    Assistant,
}

/// Where a context stands: its length and its last tokens.
#[derive(Debug, Clone, Copy)]
pub struct At<'a> {
    /// Tokens in the context: kept, pending and buffered.
    pub length: u32,
    /// Its last tokens, at least `min(length, Chat::tail_len())` of them.
    pub tail: &'a [u32],
}

/// What a chat call appends, and the turn state once it is appended.
#[derive(Debug, Clone)]
pub struct Addition {
    /// The tokens to append; may be empty.
    pub tokens: Vec<u32>,
    /// The state to keep if the append succeeds.
    pub state: ChatState,
}

/// The turn state of one context, recorded by length. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct ChatState {}

impl ChatState {
    /// The state of an empty context.
    pub fn new() -> Self {
        todo!()
    }
    /// `n_tokens` generated tokens were appended; `length` is the context's length with them.
    pub fn on_generated(&mut self, _n_tokens: u32, _length: u32) {
        todo!()
    }
    /// The context's kept tokens were cut from `old_seq_len` to `new_seq_len`; its buffer stayed.
    pub fn truncate(&mut self, _old_seq_len: u32, _new_seq_len: u32) {
        todo!()
    }
    /// Whether `generate` opens the assistant's turn by itself: a chat turn stands last.
    pub fn needs_cue(&self) -> bool {
        todo!()
    }
}

/// Tokenizer and template of one model, and the pieces that they make of a conversation.
pub struct Chat {}

impl Chat {
    /// Reads a model directory.
    pub fn from_dir(_dir: &Path, _model_vocab_size: u32) -> Result<Self> {
        todo!()
    }
    /// From parts. Without a template every chat call is a `template-error`; the tokenizer can be used.
    pub fn new(_tokenizer: Tokenizer, _template: Option<ChatTemplate>, _end_tokens: Vec<u32>) -> Result<Self> {
        todo!()
    }
    /// The tokenizer.
    pub fn tokenizer(&self) -> &Arc<Tokenizer> {
        todo!()
    }
    /// How many of a context's last tokens [`At::tail`] must hold.
    pub fn tail_len(&self) -> usize {
        todo!()
    }
    /// A whole message; closes an open assistant turn first.
    pub fn fill(&self, _state: &ChatState, _at: At<'_>, _role: Role, _text: &str) -> Result<Addition> {
        todo!()
    }
    /// Opens the assistant's turn. Idempotent.
    pub fn cue(&self, _state: &ChatState, _at: At<'_>) -> Result<Addition> {
        todo!()
    }
    /// Closes an open assistant turn. Idempotent.
    pub fn seal(&self, _state: &ChatState, _at: At<'_>) -> Result<Addition> {
        todo!()
    }
    /// The program appended raw tokens; `at` is the context with them.
    pub fn append_raw(&self, _state: &mut ChatState, _n_tokens: u32, _at: At<'_>) {
        todo!()
    }
    /// The tokens of a message that follows others.
    pub fn message_tokens(&self, _role: Role, _text: &str) -> Result<Vec<u32>> {
        todo!()
    }
    /// The tokens that open the assistant's turn.
    pub fn cue_tokens(&self) -> Result<Vec<u32>> {
        todo!()
    }
    /// The tokens that close the assistant's turn.
    pub fn seal_tokens(&self) -> Result<Vec<u32>> {
        todo!()
    }
    /// The template's stop tokens: those that end a turn. `template-error` without a template.
    pub fn stop_tokens(&self) -> Result<Vec<u32>> {
        todo!()
    }
    /// The model's end tokens, from its generation configuration.
    pub fn end_tokens(&self) -> &[u32] {
        todo!()
    }
}
