//! The text of a conversation's pieces as tokens.

use std::fmt;
use std::sync::Arc;

use super::pieces::{InsertionPoint, Pieces};
use super::role::Role;
use super::state::{ChatState, History};
use crate::error::Result;
use crate::template::ChatTemplate;
use crate::tokenizer::{Fence, Tokenizer};

/// What a template makes of a conversation, in tokens.
pub(super) struct Script {
    tokenizer: Arc<Tokenizer>,
    pieces: Pieces,
    /// The tokens that only the template may write: those which the checkpoint declares special, and those which stand
    /// around messages.
    fence: Fence,
    cue: Vec<u32>,
    seal: Vec<u32>,
    stop: Vec<u32>,
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script")
            .field("cue", &self.cue)
            .field("seal", &self.seal)
            .field("stop", &self.stop)
            .finish_non_exhaustive()
    }
}

impl Script {
    /// Reads off the template what surrounds a plain conversation.
    ///
    /// # Errors
    /// `template-error` when the template does not even render a question and its answer.
    pub(super) fn new(tokenizer: Arc<Tokenizer>, template: ChatTemplate) -> Result<Self> {
        let pieces = Pieces::new(Arc::clone(&tokenizer), template);
        let first = InsertionPoint {
            roles: &[],
            written: "",
            follows: false,
        };
        let question = pieces.frame(&first, Role::User)?;
        let asked = InsertionPoint {
            roles: &[Role::User],
            written: question.closing(),
            follows: false,
        };
        let answer = pieces.frame(&asked, Role::Assistant)?;
        let answered = InsertionPoint {
            roles: &[Role::User, Role::Assistant],
            written: answer.closing(),
            follows: false,
        };
        let next = pieces.frame(&answered, Role::User)?;

        let mut around = vec![
            question.header().to_owned(),
            next.header().to_owned(),
            next.closing().to_owned(),
        ];
        if let Ok(system) = pieces.frame(&first, Role::System) {
            around.extend([system.header().to_owned(), system.closing().to_owned()]);
        }
        around.extend([question.closing().to_owned(), answer.closing().to_owned()]);
        let owned = around
            .iter()
            .flat_map(|text| tokenizer.added_tokens_in(text));
        let fence = tokenizer.fence_with(owned)?;

        let cue = tokenizer.encode(&pieces.cue(&asked)?)?;
        let seal = tokenizer.encode(answer.closing())?;
        let stop = seal
            .iter()
            .copied()
            .find(|&id| fence.holds(id))
            .into_iter()
            .collect();
        Ok(Self {
            tokenizer,
            pieces,
            fence,
            cue,
            seal,
            stop,
        })
    }

    /// The tokens that open the assistant's turn after a question.
    pub(super) fn cue_tokens(&self) -> &[u32] {
        &self.cue
    }

    /// The tokens that close the assistant's turn after a question.
    pub(super) fn seal_tokens(&self) -> &[u32] {
        &self.seal
    }

    /// The control tokens right behind the assistant's words.
    pub(super) fn stop_tokens(&self) -> &[u32] {
        &self.stop
    }

    /// Whether the template owns this token.
    pub(super) fn owns(&self, id: u32) -> bool {
        self.fence.holds(id)
    }

    /// Text of the template's as tokens.
    pub(super) fn encode(&self, text: &str) -> Result<Vec<u32>> {
        self.tokenizer.encode(text)
    }

    /// The conversation of `state`, as the template sees it before `next` speaks.
    ///
    /// Where something stands before the first turn, the turn does not open the conversation: to the template a
    /// question and an answer came before it. A conversation that the assistant begins without a message gets a
    /// question before it.
    pub(super) fn history(&self, state: &ChatState, next: Role) -> Result<History> {
        let mut history = state.history();
        if history.follows {
            let before: &[Role] = match history.roles.first().copied().unwrap_or(next) {
                Role::User => &[Role::User, Role::Assistant],
                Role::Assistant => &[Role::User],
                Role::System => &[],
            };
            history.roles.splice(0..0, before.iter().copied());
            if history.closing.is_none() && !before.is_empty() {
                history.closing = Some(self.pieces.closing_of(before)?.into());
            }
        }
        Ok(history)
    }

    /// The tokens of a message, and the template's text behind its content.
    pub(super) fn message(
        &self,
        history: &History,
        role: Role,
        text: &str,
    ) -> Result<(Vec<u32>, Arc<str>)> {
        let frame = self.pieces.frame(&place(history), role)?;
        let content = self.pieces.content(&frame, text)?;
        let (header, closing) = (frame.header(), frame.closing());
        let message = [header, &content, closing].concat();
        let tokens = self.tokenizer.encode_fenced(
            &message,
            header.len()..header.len() + content.len(),
            &self.fence,
        )?;
        Ok((tokens, closing.into()))
    }

    /// The tokens that the template writes before the content of a message.
    pub(super) fn header(&self, history: &History, role: Role) -> Result<Vec<u32>> {
        self.encode(self.pieces.frame(&place(history), role)?.header())
    }

    /// The tokens that open the assistant's turn.
    pub(super) fn cue(&self, history: &History) -> Result<Vec<u32>> {
        self.encode(&self.pieces.cue(&place(history))?)
    }

    /// The template's text behind the assistant's words.
    pub(super) fn closing(&self, history: &History) -> Result<Arc<str>> {
        Ok(self
            .pieces
            .frame(&place(history), Role::Assistant)?
            .closing()
            .into())
    }
}

fn place(history: &History) -> InsertionPoint<'_> {
    InsertionPoint {
        roles: &history.roles,
        written: history.closing.as_deref().unwrap_or_default(),
        follows: history.follows,
    }
}
