//! A conversation built piece by piece, by the checkpoint's own template.
//!
//! Nothing about a template is known beforehand. Its pieces are read off renderings in which marks stand for what was
//! said: the text between two marks is the template's ([`pieces`]). A piece is written into a context as soon as it is
//! known. A template may render the earlier part of a conversation in another way once more was said; the context then
//! keeps the first way.

mod call;
mod cut;
mod kept;
mod log;
mod pieces;
mod plain;
mod role;
mod scene;
mod script;
mod state;
mod turn;
mod window;

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use crate::error::{Error, Result};
use crate::files;
use crate::reasoning::ReasoningFormat;
use crate::special::SpecialTokens;
use crate::template::ChatTemplate;
use crate::tokenizer::Tokenizer;
use crate::tools::Calls;
use crate::tools::finding::format_of;
use crate::tools::format::CallFormat;
use crate::tools::frame::CallFrame;
use crate::tools::list::ToolList;

use call::end;
pub use call::{Addition, At};
pub use role::Role;
pub use scene::Answer;
pub(crate) use scene::CallStyle;
use scene::Particulars;
use script::{Script, answering};
pub use state::ChatState;
use state::History;
use turn::Turn;

/// The tokenizer and the template of one model. Immutable; share it in an [`Arc`].
#[derive(Debug)]
pub struct Chat {
    tokenizer: Arc<Tokenizer>,
    /// The error where there is no script is reported by the chat calls. The model can be used without them.
    script: Result<Script>,
    end_tokens: Vec<u32>,
    /// How the model marks its thoughts; none where its template has none.
    reasoning: Option<ReasoningFormat>,
    /// How the model writes calls; none where its template has no way.
    calls: Option<CallFormat>,
    /// The texts around them; none where they are not enforced.
    call_frame: Option<CallFrame>,
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
                reasoning: None,
                calls: None,
                call_frame: None,
            }),
            Err(error) => Err(error),
        }
    }

    /// From parts; `end_tokens` are the ids with which the model ends whatever it writes. Without a template the plain
    /// one is used: `System: `, `User: `, `Assistant: ` or `Tool: ` before each message, and an empty line behind it.
    pub fn new(tokenizer: Tokenizer, template: Option<ChatTemplate>, end_tokens: Vec<u32>) -> Self {
        let tokenizer = Arc::new(tokenizer);
        let mut script = template
            .map_or_else(plain::template, Ok)
            .and_then(|template| Script::new(Arc::clone(&tokenizer), template, &end_tokens));
        let (mut reasoning, mut calls, mut call_frame) = (None, None, None);
        if let Ok(script) = &script {
            let ends = [script.stop_tokens(), &end_tokens].concat();
            let cue = tokenizer.decode(script.cue_tokens()).unwrap_or_default();
            reasoning = ReasoningFormat::of(&tokenizer, script.template(), &cue);
            calls = format_of(&tokenizer, script.template(), &ends);
            call_frame = calls
                .as_ref()
                .and_then(|format| CallFrame::of(&tokenizer, script.template(), format, &ends));
        }
        let markers = markers_of(&tokenizer, reasoning.as_ref(), calls.as_ref());
        script = script.and_then(|mut script| {
            script.keep_from_content(&markers)?;
            Ok(script)
        });
        Self {
            tokenizer,
            script,
            end_tokens,
            reasoning,
            calls,
            call_frame,
        }
    }

    /// How the model marks its thoughts.
    pub(crate) fn reasoning_format(&self) -> Option<&ReasoningFormat> {
        self.reasoning.as_ref()
    }

    /// How the model writes calls.
    pub(crate) fn call_format(&self) -> Option<&CallFormat> {
        self.calls.as_ref()
    }

    /// The texts around calls; none where they cannot be enforced.
    pub(crate) fn call_frame(&self) -> Option<&CallFrame> {
        self.call_frame.as_ref()
    }

    /// The tokens that end a turn, by the template and by the model.
    pub(crate) fn ends(&self) -> Vec<u32> {
        [self.stop_tokens().unwrap_or_default(), self.end_tokens()].concat()
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
        let (mut tokens, mut state) = self.closed(script, state, at)?;
        let (message, with) = script.message_of(&state, role, text)?;
        tokens.extend(message.tokens);
        let closing = message.closing;
        let said = Turn::Said {
            role,
            closing,
            with,
        };
        state.push(end(at, &tokens), said);
        Ok(Addition { tokens, state })
    }

    /// The answer of a tool, which closes the turn that called it. What `text` spells never becomes a control token.
    ///
    /// # Errors
    /// As [`Chat::fill`]; `template-error` too where the template has no place for the answers of tools.
    pub fn answer(
        &self,
        state: &ChatState,
        at: At<'_>,
        answer: &Answer,
        text: &str,
    ) -> Result<Addition> {
        let script = self.script()?;
        let is_open = matches!(state.last(), Some(Turn::Open { .. }));
        let (mut tokens, mut state) = if is_open {
            (Vec::new(), state.clone())
        } else {
            self.closed(script, state, at)?
        };
        let mut history = script.history(&state, Role::Tool)?;
        if is_open {
            // The template writes the end of the turn, with which the answer begins.
            history.roles.push(Role::Assistant);
            history.closing = None;
        }
        let with = answering(answer);
        let message = script.message(&history, Role::Tool, &with, text)?;
        tokens.extend(if is_open {
            self.beyond_tail(&state, at, message.tokens)
        } else {
            message.tokens
        });
        let said = Turn::Said {
            role: Role::Tool,
            closing: message.closing,
            with,
        };
        state.push(end(at, &tokens), said);
        Ok(Addition { tokens, state })
    }

    /// Gives the model tools: the next message is written with them, as the template does it. Closes an open assistant
    /// turn first.
    ///
    /// # Errors
    /// `template-error` where the template has no place for tools; `invalid-argument` for characters that are reserved.
    pub fn equip(&self, state: &ChatState, at: At<'_>, tools: &ToolList) -> Result<Addition> {
        let script = self.script()?;
        let tools = script.tools(tools)?;
        let (tokens, mut state) = self.closed(script, state, at)?;
        let written = false;
        state.push(end(at, &tokens), Turn::Tools { tools, written });
        Ok(Addition { tokens, state })
    }

    /// The tokens that give the model tools, behind other messages and before a question.
    ///
    /// # Errors
    /// As [`Chat::equip`].
    pub fn equip_tokens(&self, tools: &ToolList) -> Result<Vec<u32>> {
        let script = self.script()?;
        script.tools_alone(&script.tools(tools)?)
    }

    /// The tokens of the answer of a tool, behind the assistant's turn that called it, whose end is not written yet.
    ///
    /// # Errors
    /// As [`Chat::answer`].
    pub fn answer_tokens(&self, answer: &Answer, text: &str) -> Result<Vec<u32>> {
        let script = self.script()?;
        let history = History {
            roles: vec![Role::User, Role::Assistant],
            closing: None,
            follows: false,
        };
        script.answer(&history, &answering(answer), text)
    }

    /// Records that the program appended these tokens of its own, up to `length`. Those of an answer, as
    /// [`Chat::answer_tokens`] gives them, are one.
    pub fn on_answer(&self, state: &mut ChatState, tokens: &[u32], length: u32) {
        let Ok(script) = &self.script else {
            return;
        };
        if let Some(closing) = script.closing_of_answer(tokens) {
            let said = Turn::Said {
                role: Role::Tool,
                closing,
                with: Particulars::default(),
            };
            state.push(length, said);
        }
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
            _ => self.closed(script, state, at)?,
        };
        if let Some(tools) = state.unwritten_tools().map(Arc::clone) {
            tokens.extend(script.tools_alone(&tools)?);
            let written = true;
            state.push(end(at, &tokens), Turn::Tools { tools, written });
        }
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
            Some(Turn::Raw) => self.close(script, state, at)?,
            _ => self.closed(script, state, at)?,
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
        let plain = Particulars::default();
        Ok(script.message(&history, role, &plain, text)?.tokens)
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

    /// All such tokens.
    pub(crate) fn owned_tokens(&self) -> Vec<u32> {
        match &self.script {
            Ok(script) => script.control_tokens().collect(),
            Err(_) => self.tokenizer.control_tokens().collect(),
        }
    }

    fn script(&self) -> Result<&Script> {
        self.script.as_ref().map_err(Clone::clone)
    }

    /// The tokens that close what stands open or was cut, and the state after them.
    fn closed(
        &self,
        script: &Script,
        state: &ChatState,
        at: At<'_>,
    ) -> Result<(Vec<u32>, ChatState)> {
        match state.last() {
            Some(Turn::Open { .. }) => self.close(script, state, at),
            Some(Turn::Cut { .. }) => cut::finish(script, state, at),
            _ => Ok((Vec::new(), state.clone())),
        }
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
        let mut tokens = self.beyond_tail(&state, at, script.encode(&closing)?);
        // A turn that the model ended with the token of a last answer has its end.
        let stop = script.stop_tokens();
        let last = at.since(state.raw_start()).last();
        if last.is_some_and(|last| stop.contains(last) && script.ends_anew()) {
            tokens.drain(..1.min(tokens.len()));
        }
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

/// The tokens that are markers of thoughts or calls.
pub(crate) fn markers_of(
    tokenizer: &Tokenizer,
    reasoning: Option<&ReasoningFormat>,
    calls: Option<&CallFormat>,
) -> Vec<u32> {
    let calls = calls.map_or_else(Vec::new, Calls::markers_of);
    let thoughts = reasoning.map_or_else(Vec::new, ReasoningFormat::markers);
    let markers = calls.into_iter().chain(thoughts);
    markers
        .filter_map(|marker| tokenizer.id_of(marker))
        .collect()
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
                    files::damaged(&path, &format!("its eos_token_id {value} is not a token"))
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
