//! A conversation built piece by piece, by the checkpoint's own template.
//!
//! Nothing about a template is known beforehand. Its pieces are read off renderings in which marks stand for what was
//! said: the text between two marks is the template's ([`pieces`]). A piece is written into a context as soon as it is
//! known. A template may render the earlier part of a conversation in another way once more was said; the context then
//! keeps the first way.

mod call;
mod cut;
mod pieces;
mod role;
mod script;
mod state;

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use crate::error::{Error, Result};
use crate::files;
use crate::special::SpecialTokens;
use crate::template::ChatTemplate;
use crate::tokenizer::Tokenizer;

use call::end;
pub use call::{Addition, At};
pub use role::Role;
use script::Script;
pub use state::ChatState;
use state::Turn;

/// The tokenizer and the template of one model. Immutable; share it in an [`Arc`].
#[derive(Debug)]
pub struct Chat {
    tokenizer: Arc<Tokenizer>,
    /// The error where there is no script is reported by the chat calls. The model can be used without them.
    script: Result<Script>,
    end_tokens: Vec<u32>,
}

impl Chat {
    /// How many of a context's last tokens [`At::tail`] holds: more than any template writes to open or to close a
    /// turn.
    pub const TAIL_LEN: usize = 64;

    /// Reads a model directory; `model_vocab_size` is the width of the model's logits (see [`Tokenizer::from_dir`]).
    ///
    /// A template that is missing or cannot be used is not an error here: the chat calls report it.
    ///
    /// # Errors
    /// `invalid-model` for a file that is missing or damaged.
    pub fn from_dir(dir: &Path, model_vocab_size: u32) -> Result<Self> {
        let tokenizer = Tokenizer::from_dir(dir, model_vocab_size)?;
        let end_tokens = end_tokens(dir, &tokenizer)?;
        match ChatTemplate::from_dir(dir) {
            Ok(template) => Ok(Self::new(tokenizer, template, end_tokens)),
            Err(error @ Error::Template(_)) => Ok(Self {
                tokenizer: Arc::new(tokenizer),
                script: Err(error),
                end_tokens,
            }),
            Err(error) => Err(error),
        }
    }

    /// From parts; `end_tokens` are the ids with which the model ends whatever it writes.
    pub fn new(tokenizer: Tokenizer, template: Option<ChatTemplate>, end_tokens: Vec<u32>) -> Self {
        let tokenizer = Arc::new(tokenizer);
        let script = match template {
            Some(template) => Script::new(Arc::clone(&tokenizer), template),
            None => Err(Error::Template(
                "the model has no chat template; append text or tokens instead, or add a chat_template.jinja to its directory".to_owned(),
            )),
        };
        Self {
            tokenizer,
            script,
            end_tokens,
        }
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &Arc<Tokenizer> {
        &self.tokenizer
    }

    /// A whole message, closing an open assistant turn, or a message that was cut, first. What `text` spells never
    /// becomes a control token.
    ///
    /// # Errors
    /// `template-error` when there is no template, or it refuses the conversation; `invalid-argument` for a text that
    /// is too long.
    pub fn fill(&self, state: &ChatState, at: At<'_>, role: Role, text: &str) -> Result<Addition> {
        let script = self.script()?;
        if let Some(addition) = cut::goes_on_as_message(script, state, at, role, text)? {
            return Ok(addition);
        }
        let (mut tokens, mut state) = match state.last() {
            Some(Turn::Open { .. }) => self.close(script, state, at)?,
            Some(Turn::Cut { .. }) => cut::finish(script, state, at)?,
            _ => (Vec::new(), state.clone()),
        };
        let history = script.history(&state, role)?;
        let (message, closing) = script.message(&history, role, text)?;
        tokens.extend(message);
        state.push(end(at, &tokens), Turn::Said { role, closing });
        Ok(Addition { tokens, state })
    }

    /// Opens the assistant's turn. In an open turn there is nothing to do. After raw tokens, the part of the opening
    /// that they already hold is not repeated. A message that was cut is closed first.
    ///
    /// # Errors
    /// `template-error` when there is no template, or it refuses the conversation.
    pub fn cue(&self, state: &ChatState, at: At<'_>) -> Result<Addition> {
        let script = self.script()?;
        if let Some(addition) = cut::goes_on_as_cue(script, state, at)? {
            return Ok(addition);
        }
        let (mut tokens, mut state) = match state.last() {
            Some(Turn::Open { .. }) => {
                return Ok(Addition {
                    tokens: Vec::new(),
                    state: state.clone(),
                });
            }
            Some(Turn::Cut { .. }) => cut::finish(script, state, at)?,
            _ => (Vec::new(), state.clone()),
        };
        let cue = script.cue(&script.history(&state, Role::Assistant)?)?;
        let n_tokens = cue.len();
        let missing = self.beyond_tail(&state, at, cue);
        let whole = missing.len() == n_tokens;
        tokens.extend(missing);
        state.push(end(at, &tokens), Turn::Open { whole });
        Ok(Addition { tokens, state })
    }

    /// Closes an open assistant turn; what the model already wrote of the closing tokens is not repeated. After raw
    /// tokens these count as the open turn. A message that was cut is closed; after anything else there is nothing to
    /// do.
    ///
    /// # Errors
    /// `template-error` when there is no template, or it refuses the conversation.
    pub fn seal(&self, state: &ChatState, at: At<'_>) -> Result<Addition> {
        let script = self.script()?;
        let (tokens, state) = match state.last() {
            Some(Turn::Open { .. } | Turn::Raw) => self.close(script, state, at)?,
            Some(Turn::Cut { .. }) => cut::finish(script, state, at)?,
            _ => (Vec::new(), state.clone()),
        };
        Ok(Addition { tokens, state })
    }

    /// Records that the program appended tokens of its own; `at` is the context with them, `n_tokens` of them new.
    ///
    /// Raw tokens that end with what opens the assistant's turn open it.
    pub fn on_append(&self, state: &mut ChatState, n_tokens: u32, at: At<'_>) {
        state.raw(n_tokens, at.length);
        if let (Some(Turn::Raw), Ok(script)) = (state.last(), &self.script) {
            let cue = script.cue_tokens();
            if !cue.is_empty() && at.since(state.raw_start()).ends_with(cue) {
                state.push(at.length, Turn::Open { whole: false });
            }
        }
    }

    /// The tokens of a message that follows others.
    ///
    /// # Errors
    /// As [`Chat::fill`].
    pub fn message_tokens(&self, role: Role, text: &str) -> Result<Vec<u32>> {
        let script = self.script()?;
        let history = script.history(&ChatState::following(), role)?;
        Ok(script.message(&history, role, text)?.0)
    }

    /// The tokens that open the assistant's turn after a user's message.
    ///
    /// # Errors
    /// `template-error` when the model has no usable template.
    pub fn cue_tokens(&self) -> Result<&[u32]> {
        self.script().map(Script::cue_tokens)
    }

    /// The tokens that close the assistant's turn.
    ///
    /// # Errors
    /// `template-error` when the model has no usable template.
    pub fn seal_tokens(&self) -> Result<&[u32]> {
        self.script().map(Script::seal_tokens)
    }

    /// The control tokens that end a turn by the template: what it writes right behind the assistant's words.
    ///
    /// # Errors
    /// `template-error` when the model has no usable template.
    pub fn stop_tokens(&self) -> Result<&[u32]> {
        self.script().map(Script::stop_tokens)
    }

    /// The tokens with which the model ends whatever it writes, by its generation configuration.
    pub fn end_tokens(&self) -> &[u32] {
        &self.end_tokens
    }

    /// Whether the token is one that no content may become, and that has no text to show.
    pub(crate) fn is_control(&self, id: u32) -> bool {
        self.tokenizer.is_control(id) || self.script.as_ref().is_ok_and(|script| script.owns(id))
    }

    fn script(&self) -> Result<&Script> {
        self.script.as_ref().map_err(Clone::clone)
    }

    /// The tokens that close the turn which stands open, and the state after them.
    fn close(
        &self,
        script: &Script,
        state: &ChatState,
        at: At<'_>,
    ) -> Result<(Vec<u32>, ChatState)> {
        let mut state = state.clone();
        let closing = script.closing(&script.history(&state, Role::Assistant)?)?;
        let tokens = self.beyond_tail(&state, at, script.encode(&closing)?);
        let n_written = u32::try_from(tokens.len()).unwrap_or(u32::MAX);
        state.push(end(at, &tokens), Turn::Sealed { closing, n_written });
        Ok((tokens, state))
    }

    /// `tokens` without those that the context already ends with. Only what the program or the model wrote itself is
    /// compared, so that a user's words are never taken for the template's.
    fn beyond_tail(&self, state: &ChatState, at: At<'_>, mut tokens: Vec<u32>) -> Vec<u32> {
        let free = at.since(state.raw_start());
        let n_written = (0..=tokens.len().min(free.len()))
            .rev()
            .find(|&n| free.ends_with(&tokens[..n]))
            .unwrap_or(0);
        tokens.drain(..n_written);
        tokens
    }
}

/// The end tokens of a checkpoint: of `generation_config.json`, else of `config.json`, else the tokenizer's
/// `eos_token`.
fn end_tokens(dir: &Path, tokenizer: &Tokenizer) -> Result<Vec<u32>> {
    for file in ["generation_config.json", "config.json"] {
        let path = dir.join(file);
        let Some(config) = files::read_json(&path)? else {
            continue;
        };
        let ids: Vec<&Value> = match &config["eos_token_id"] {
            Value::Null => continue,
            Value::Array(ids) => ids.iter().collect(),
            id => vec![id],
        };
        let id = |value: &Value| {
            value
                .as_u64()
                .and_then(|id| u32::try_from(id).ok())
                .filter(|&id| id < tokenizer.vocab_size())
        };
        return ids
            .into_iter()
            .map(|value| {
                id(value).ok_or_else(|| {
                    files::damaged(&path, &format!("its eos_token_id {value} is no token"))
                })
            })
            .collect();
    }
    let special = SpecialTokens::from_dir(dir)?;
    Ok(special
        .get("eos_token")
        .and_then(|token| tokenizer.id_of(token))
        .into_iter()
        .collect())
}
