//! The text of a conversation's pieces as tokens.

use std::fmt;
use std::sync::{Arc, OnceLock};

use super::pieces::{Frame, InsertionPoint, Pieces};
use super::role::Role;
use super::scene::{Answer, Particulars};
use super::state::{ChatState, History};
use crate::error::Result;
use crate::template::ChatTemplate;
use crate::tokenizer::{Fence, Tokenizer};
use crate::tools::list::ToolList;
use crate::tools::mask::{Mask, holds_private, unmasked};

/// What a template makes of a conversation, in tokens.
pub(super) struct Script {
    tokenizer: Arc<Tokenizer>,
    pieces: Pieces,
    /// The tokens that only the template may write: those which the checkpoint declares special, and those which stand
    /// around messages.
    fence: Fence,
    /// The same, with the markers of the answers of tools, of calls and of thoughts. Nobody but the template writes
    /// these, save the assistant, whose words they are.
    strict: Fence,
    /// Keeps the texts of tools from becoming one of those.
    mask: Mask,
    /// What stands around the answers of tools; none where it cannot be told.
    answers: OnceLock<Option<Around>>,
    cue: Vec<u32>,
    seal: Vec<u32>,
    stop: Vec<u32>,
}

/// What a template writes around every answer of a tool.
struct Around {
    /// The token with which it begins: the one that ends the turn before.
    first: u32,
    /// The text before the content, up to the name of the tool.
    opening: String,
    closing: Arc<str>,
}

/// A message of a template.
pub(super) struct Message {
    pub(super) tokens: Vec<u32>,
    /// The template's text behind its content.
    pub(super) closing: Arc<str>,
}

/// The end of a conversation of these roles, behind this text of the last.
const fn behind<'a>(roles: &'a [Role], written: &'a str) -> InsertionPoint<'a> {
    InsertionPoint {
        roles,
        written,
        follows: false,
    }
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
    pub(super) fn new(
        tokenizer: Arc<Tokenizer>,
        template: ChatTemplate,
        end_tokens: &[u32],
    ) -> Result<Self> {
        let plain = Particulars::default();
        let mut pieces = Pieces::new(Arc::clone(&tokenizer), template);
        let first = behind(&[], "");
        let question = pieces.frame(&first, Role::User, &plain)?;
        let asked = behind(&[Role::User], question.closing());
        let answer = pieces.frame(&asked, Role::Assistant, &plain)?;
        let answered = behind(&[Role::User, Role::Assistant], answer.closing());
        let next = pieces.frame(&answered, Role::User, &plain)?;

        let system = pieces.frame(&first, Role::System, &plain).ok();
        let mut around = vec![question.header(), next.header(), next.closing()];
        if let Some(system) = &system {
            around.extend([system.header(), system.closing()]);
        }
        around.extend([question.closing(), answer.closing()]);
        let owned = around
            .iter()
            .flat_map(|text| tokenizer.added_tokens_in(text));
        let fence = tokenizer.fence_with(owned)?;

        let cue = tokenizer.encode(&pieces.cue(&asked)?)?;
        let seal = tokenizer.encode(answer.closing())?;
        // Where the template ends the last answer in another way than those before, the model does too.
        let ending = tokenizer.encode(&pieces.last_ending()?)?;
        let ends_anew = ending.first() != seal.first();
        let ending = if ends_anew { &ending } else { &seal };
        let stop = ending.iter().copied().find(|&id| fence.holds(id));
        let stop = Vec::from_iter(stop);
        let ends = stop.iter().chain(end_tokens);
        let ends = ends.filter_map(|&id| tokenizer.token_bytes(id));
        let ends = ends.map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        pieces.set_ends(ends.filter(|text| !text.is_empty()).collect());
        let answers = answers_of(&pieces).into_iter();
        let answers = answers.flat_map(|text| tokenizer.added_tokens_in(&text));
        let strict = tokenizer.fence_with(fence.ids().chain(answers).collect::<Vec<_>>())?;
        let mask = mask_of(&tokenizer, &strict);
        Ok(Self {
            tokenizer,
            pieces,
            fence,
            strict,
            mask,
            answers: OnceLock::new(),
            cue,
            seal,
            stop,
        })
    }

    /// Keeps content from becoming these tokens as well, unless it is the assistant's.
    ///
    /// # Errors
    /// `invalid-model` where the tokenizer does not take them.
    pub(super) fn keep_from_content(&mut self, markers: &[u32]) -> Result<()> {
        let ids = self.strict.ids().chain(markers.iter().copied());
        self.strict = self.tokenizer.fence_with(ids.collect::<Vec<_>>())?;
        self.mask = mask_of(&self.tokenizer, &self.strict);
        Ok(())
    }

    /// The tokens that what somebody says does not become.
    fn fence_of(&self, role: Role) -> &Fence {
        match role {
            Role::Assistant => &self.fence,
            Role::System | Role::User | Role::Tool => &self.strict,
        }
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

    /// The template.
    pub(super) fn template(&self) -> &ChatTemplate {
        self.pieces.template()
    }

    /// Whether the template ends the last answer with another token than those before.
    pub(super) fn ends_anew(&self) -> bool {
        self.stop.iter().any(|id| !self.seal.contains(id))
    }

    /// Whether the template owns this token.
    pub(super) fn owns(&self, id: u32) -> bool {
        self.fence.holds(id)
    }

    /// The control tokens of the checkpoint and the tokens that the template owns.
    pub(super) fn control_tokens(&self) -> impl Iterator<Item = u32> + '_ {
        self.fence.ids()
    }

    /// Text of the template's as tokens.
    pub(super) fn encode(&self, text: &str) -> Result<Vec<u32>> {
        if holds_private(text) {
            return self
                .tokenizer
                .encode_pieces(&self.pieces_of(text), &self.strict);
        }
        self.tokenizer.encode(text)
    }

    /// The control tokens of a text of the template's and the texts between, with the characters of tools put back.
    fn pieces_of(&self, text: &str) -> Vec<(String, Option<u32>)> {
        let mut pieces = self.tokenizer.pieces_of(text);
        for (text, id) in &mut pieces {
            if id.is_none() {
                *text = unmasked(text);
            }
        }
        pieces
    }

    /// The tools that a program gives, as they can stand in the template's text.
    ///
    /// # Errors
    /// `template-error` when the template has no place for them; `invalid-argument` for characters that are reserved.
    pub(super) fn tools(&self, tools: &ToolList) -> Result<Arc<ToolList>> {
        let tools = Arc::new(self.mask.tools(tools)?);
        self.tools_alone(&tools)?;
        Ok(tools)
    }

    /// The tokens of tools alone, behind something else.
    ///
    /// # Errors
    /// As [`Script::tools`].
    pub(super) fn tools_alone(&self, tools: &Arc<ToolList>) -> Result<Vec<u32>> {
        self.encode(&self.pieces.tools_alone(&giving(tools))?)
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
                Role::Tool | Role::System => &[],
            };
            history.roles.splice(0..0, before.iter().copied());
            if history.closing.is_none() && !before.is_empty() {
                history.closing = Some(self.pieces.closing_of(before)?.into());
            }
        }
        Ok(history)
    }

    /// A message after `history`, with the tools of `unwritten` where the template writes them there.
    pub(super) fn message(
        &self,
        history: &History,
        role: Role,
        with: &Particulars,
        text: &str,
    ) -> Result<Message> {
        let frame = self.pieces.frame(&place(history), role, with)?;
        let tokens = self.tokens(&frame, role, text)?;
        Ok(Message {
            tokens,
            closing: frame.closing().into(),
        })
    }

    /// The same with tools, and what it is said with if they stand in it. `None` where the template does not write them
    /// with it.
    pub(super) fn message_with_tools(
        &self,
        history: &History,
        role: Role,
        tools: &Arc<ToolList>,
        text: &str,
    ) -> Result<Option<(Message, Particulars)>> {
        let mut with = giving(tools);
        let Some(frame) = self.pieces.frame_with_tools(&place(history), role, &with) else {
            return Ok(None);
        };
        let are_written = self.pieces.writes_tools(&place(history), role, &with);
        // A system prompt may be worded in another way where the tools come with the first question.
        if !are_written && role != Role::System {
            return Ok(None);
        }
        let tokens = self.tokens(&frame, role, text)?;
        let plain = self
            .pieces
            .frame(&place(history), role, &Particulars::default())?;
        if frame.closing().len() > plain.closing().len() {
            with.plain_closing = Some(plain.closing().into());
        }
        with.tools = with.tools.filter(|_| are_written);
        let closing = frame.closing().into();
        Ok(Some((Message { tokens, closing }, with)))
    }

    /// A message that continues a conversation, with the tools that nothing has written yet where the template writes
    /// them there, and what it is said with.
    pub(super) fn message_of(
        &self,
        state: &ChatState,
        role: Role,
        text: &str,
    ) -> Result<(Message, Particulars)> {
        let history = self.history(state, role)?;
        if let Some(tools) = state.unwritten_tools()
            && let Some(given) = self.message_with_tools(&history, role, tools, text)?
        {
            return Ok(given);
        }
        let plain = Particulars::default();
        Ok((self.message(&history, role, &plain, text)?, plain))
    }

    /// The whole of an answer, with what the template writes behind the last one.
    pub(super) fn answer(
        &self,
        history: &History,
        with: &Particulars,
        text: &str,
    ) -> Result<Vec<u32>> {
        let frame = self.pieces.frame(&place(history), Role::Tool, with)?;
        self.tokens_closed(&frame, Role::Tool, frame.last_closing(), text)
    }

    /// The template's text behind an answer that these tokens are, if they are one.
    pub(super) fn closing_of_answer(&self, tokens: &[u32]) -> Option<Arc<str>> {
        let answers = self.answers.get_or_init(|| self.around_answers());
        let around = answers.as_ref()?;
        if tokens.first() != Some(&around.first) {
            return None;
        }
        // A header that runs into its content is encoded with it, so that texts are compared.
        let text = self.tokenizer.decode(tokens).ok()?;
        let rest = text.strip_prefix(around.opening.as_str())?;
        rest.ends_with(&*around.closing)
            .then(|| Arc::clone(&around.closing))
    }

    /// What stands around every answer; none where nobody could tell that it is one.
    fn around_answers(&self) -> Option<Around> {
        let history = History {
            roles: vec![Role::User, Role::Assistant],
            closing: None,
            follows: false,
        };
        let frame = |name: &str| {
            let with = answering(&Answer::new(name, None).ok()?);
            let frame = self.pieces.frame(&place(&history), Role::Tool, &with);
            frame.ok()
        };
        let (one, other) = (frame("alpha")?, frame("beta")?);
        let pairs = one.header().chars().zip(other.header().chars());
        let opening: String = pairs
            .take_while(|(left, right)| left == right)
            .map(|(left, _)| left)
            .collect();
        let first = *self.encode(&opening).ok()?.first()?;
        let closing: Arc<str> = one.last_closing().into();
        (self.owns(first) && !closing.is_empty()).then_some(Around {
            first,
            opening,
            closing,
        })
    }

    /// The tokens of a message with this content.
    fn tokens(&self, frame: &Frame, role: Role, text: &str) -> Result<Vec<u32>> {
        self.tokens_closed(frame, role, frame.closing(), text)
    }

    fn tokens_closed(
        &self,
        frame: &Frame,
        role: Role,
        closing: &str,
        text: &str,
    ) -> Result<Vec<u32>> {
        let fence = self.fence_of(role);
        let content = self.pieces.content(frame, text)?;
        let header = frame.header();
        if holds_private(header) || holds_private(closing) {
            let mut pieces = self.pieces_of(header);
            pieces.push((content, None));
            pieces.extend(self.pieces_of(closing));
            return self.tokenizer.encode_pieces(&pieces, fence);
        }
        let message = [header, &content, closing].concat();
        self.tokenizer
            .encode_fenced(&message, header.len()..header.len() + content.len(), fence)
    }

    /// The tokens that the template writes before the content of a message.
    pub(super) fn header(
        &self,
        history: &History,
        role: Role,
        with: &Particulars,
    ) -> Result<Vec<u32>> {
        self.encode(self.pieces.frame(&place(history), role, with)?.header())
    }

    /// The tokens that open the assistant's turn.
    pub(super) fn cue(&self, history: &History) -> Result<Vec<u32>> {
        self.encode(&self.pieces.cue(&place(history))?)
    }

    /// The template's text behind the assistant's words.
    pub(super) fn closing(&self, history: &History) -> Result<Arc<str>> {
        Ok(self
            .pieces
            .frame(&place(history), Role::Assistant, &Particulars::default())?
            .closing()
            .into())
    }
}

/// What the template writes around the answer of a tool; nothing where it has no place for one.
fn answers_of(pieces: &Pieces) -> Vec<String> {
    let called = InsertionPoint {
        roles: &[Role::User, Role::Assistant],
        written: "",
        follows: false,
    };
    let frame = pieces.frame(&called, Role::Tool, &Particulars::default());
    frame.map_or_else(
        |_| Vec::new(),
        |frame| {
            [frame.header(), frame.closing(), frame.last_closing()]
                .map(str::to_owned)
                .into()
        },
    )
}

fn mask_of(tokenizer: &Tokenizer, fence: &Fence) -> Mask {
    Mask::new(fence.ids().filter_map(|id| tokenizer.token_bytes(id)))
}

/// A message with which tools are given.
fn giving(tools: &Arc<ToolList>) -> Particulars {
    Particulars {
        tools: Some(Arc::clone(tools)),
        ..Particulars::default()
    }
}

/// A message that answers a call.
pub(super) fn answering(answer: &Answer) -> Particulars {
    Particulars {
        answer: Some(Arc::new(answer.clone())),
        ..Particulars::default()
    }
}

fn place(history: &History) -> InsertionPoint<'_> {
    InsertionPoint {
        roles: &history.roles,
        written: history.closing.as_deref().unwrap_or_default(),
        follows: history.follows,
    }
}
