//! The turn state of one context.

use std::sync::Arc;

use super::log::Log;
use super::role::Role;
use super::turn::Turn;
use crate::tools::list::ToolList;

/// The turn state of one context: who said what, recorded by the context's length, so that a truncated context has the
/// state that it had.
///
/// A clone costs no more than a reference, and whatever is added costs the same behind any number of turns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChatState {
    log: Log,
}

/// The conversation before a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct History {
    /// Who spoke, in order, as far as a template sees it; each turn is closed.
    pub(super) roles: Vec<Role>,
    /// The template's text behind the last of them; `None` when nobody spoke.
    pub(super) closing: Option<Arc<str>>,
    /// Whether something stands before the first of them, which the log does not know as a turn.
    pub(super) follows: bool,
}

impl ChatState {
    /// The state of an empty context.
    pub fn new() -> Self {
        Self::default()
    }

    /// About what it takes besides the tokens of its context, in bytes: the tools that were given.
    pub fn n_bytes(&self) -> usize {
        self.log.so_far().map_or(0, |so_far| so_far.tool_bytes)
    }

    /// Records that the model generated `n_tokens` tokens. `end` is how many tokens the context keeps with them,
    /// pending one included; what the program appended meanwhile lies behind and moves on.
    pub fn on_generated(&mut self, n_tokens: u32, end: u32) {
        let behind = self.pop_all_behind(end.saturating_sub(n_tokens));
        self.raw(n_tokens, end);
        for (end, turn) in behind.into_iter().rev() {
            self.log.push(end.saturating_add(n_tokens), turn);
        }
    }

    /// Records that the context's kept tokens, pending one included, were cut from `old_seq_len` to `new_seq_len`. Its
    /// buffer stays and moves up.
    pub fn truncate(&mut self, old_seq_len: u32, new_seq_len: u32) {
        if new_seq_len >= old_seq_len {
            return;
        }
        let buffered = self.pop_all_behind(old_seq_len);
        let first_lost = self.pop_all_behind(new_seq_len).pop();
        let follows_raw = buffered.last().is_some_and(|(_, turn)| *turn == Turn::Raw);
        if let Some(left) = self.left(first_lost, new_seq_len, follows_raw) {
            self.log.push(new_seq_len, left);
        }
        let n_gone = old_seq_len - new_seq_len;
        for (end, turn) in buffered.into_iter().rev() {
            self.log.push(end - n_gone, turn);
        }
    }

    /// What a cut at `length` leaves of the stretch through which it goes, where that has to be said: `first_lost` is
    /// the first stretch that ends behind it.
    fn left(
        &self,
        first_lost: Option<(u32, Turn)>,
        length: u32,
        follows_raw: bool,
    ) -> Option<Turn> {
        let (start, is_open) = self.log.last().map_or((0, false), |(end, turn)| {
            (end, matches!(turn, Turn::Open { .. }))
        });
        if start >= length {
            return None;
        }
        match first_lost {
            Some((end, turn)) if turn.loses(end - length) => {
                Some(turn.cut(length - start, end - length))
            }
            // What is left is the assistant's, or belongs to what continues behind it.
            _ if is_open || follows_raw => None,
            _ => Some(Turn::Raw),
        }
    }

    /// Takes off the stretches that end behind `end`, the last one first.
    fn pop_all_behind(&mut self, end: u32) -> Vec<(u32, Turn)> {
        std::iter::from_fn(|| self.log.pop_behind(end)).collect()
    }

    /// Whether generating has to open the assistant's turn first: a chat turn stands last.
    pub fn needs_cue(&self) -> bool {
        matches!(
            self.last(),
            Some(Turn::Said { .. } | Turn::Sealed { .. } | Turn::Tools { .. })
        )
    }

    /// Whether nothing was said but system messages: a model has nothing to answer then.
    pub fn has_only_instructions(&self) -> bool {
        let says_last = matches!(
            self.last(),
            Some(Turn::Said {
                role: Role::System,
                ..
            })
        );
        let is_alone = |roles: &[Role]| roles.iter().all(|role| *role == Role::System);
        says_last
            && self.log.so_far().is_some_and(|so_far| {
                !so_far.follows && so_far.roles.as_deref().is_some_and(is_alone)
            })
    }

    /// The tools that the model was given last.
    pub(crate) fn tools(&self) -> Option<&Arc<ToolList>> {
        self.log.so_far()?.tools.as_ref()
    }

    /// The tools that the model was given and that nothing has written yet.
    pub(super) fn unwritten_tools(&self) -> Option<&Arc<ToolList>> {
        let so_far = self.log.so_far().filter(|so_far| so_far.are_unwritten)?;
        so_far.tools.as_ref()
    }

    /// The state of a context of which nothing is known but that it is not empty.
    pub(super) fn following() -> Self {
        let mut state = Self::new();
        state.push(1, Turn::Raw);
        state
    }

    /// What stands last.
    pub(super) fn last(&self) -> Option<&Turn> {
        self.log.last().map(|(_, turn)| turn)
    }

    /// The state before what stands last, which is taken for not written.
    pub(super) fn without_last(&self) -> Self {
        Self {
            log: self.log.before(),
        }
    }

    /// Adds a stretch that ends at `end`.
    pub(super) fn push(&mut self, end: u32, turn: Turn) {
        // Tools that others replace before anything was said are of no more use.
        if let (Turn::Tools { .. }, Some((last, Turn::Tools { written: false, .. }))) =
            (&turn, self.log.last())
            && last == end
        {
            self.log = self.log.before();
        }
        self.log.push(end, turn);
    }

    /// Records `n_tokens` of no template up to `length`.
    pub(super) fn raw(&mut self, n_tokens: u32, length: u32) {
        if n_tokens == 0 {
            return;
        }
        match self.last() {
            // The assistant's words.
            Some(Turn::Open { .. }) => {}
            Some(Turn::Raw) => {
                self.log = self.log.before();
                self.push(length, Turn::Raw);
            }
            _ => self.push(length, Turn::Raw),
        }
    }

    /// What all stretches are and where they end, the first first.
    pub(super) fn stretches(&self) -> Vec<(u32, &Turn)> {
        let mut stretches: Vec<_> = self.log.all().collect();
        stretches.reverse();
        stretches
    }

    /// The state of stretches that were recorded before, with where each ends.
    pub(super) fn of_stretches(stretches: impl Iterator<Item = (u32, Turn)>) -> Self {
        let mut log = Log::default();
        for (end, turn) in stretches {
            log.push(end, turn);
        }
        Self { log }
    }

    /// Where the tokens at the end of the context begin that no template wrote, or of which it wrote the beginning of a
    /// cue.
    pub(super) fn raw_start(&self) -> u32 {
        self.log.so_far().map_or(0, |so_far| so_far.raw_start)
    }

    /// The conversation so far.
    pub(super) fn history(&self) -> History {
        let so_far = self.log.so_far();
        let roles = so_far.and_then(|so_far| so_far.roles.as_deref());
        History {
            roles: roles.unwrap_or_default().to_vec(),
            closing: so_far.and_then(|so_far| so_far.closing.clone()),
            follows: so_far.is_some_and(|so_far| so_far.follows),
        }
    }
}
