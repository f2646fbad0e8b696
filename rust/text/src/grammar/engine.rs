//! One text in llguidance, the engine below: guarded against what it panics on, and measured.

use std::fmt;

use llguidance::TokenParser;
use llguidance::api::StopReason;
use llguidance::toktrie::{SimpleVob, TokenId};

use super::fault;
use super::vocabulary::MAX_LEXER_STATES;
use crate::caught::caught;
use crate::error::{Error, Result};

/// The most bytes that the state of one text may take. A grammar that reads a text in many ways at once keeps all of
/// them for every character.
const MAX_STATE_BYTES: usize = 64 << 20;
/// Bytes that a byte of the text takes: its lexer state, itself twice, and the number of its token. Vectors have twice
/// the room that they need at most. These and those below are sums of the fields of llguidance 1.9, which
/// `tests/grammar_memory.rs` compares with what is allocated.
const BYTES_PER_BYTE: usize = 2 * 18;
/// Bytes that a token takes.
const BYTES_PER_TOKEN: usize = 2 * size_of::<TokenId>();
/// Bytes that a lexeme takes besides the ways to read it.
const BYTES_PER_ROW: usize = 2 * 96;
/// Bytes that a way to read a lexeme takes.
const BYTES_PER_ITEM: usize = 2 * 8;
/// What the tables of the lexer take, in hundredths of what it says itself.
const LEXER_PERCENT: usize = 130;

/// What is bounded of a state and grows with what is looked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Growth {
    n_bytes: usize,
    n_lexer_states: usize,
}

impl Growth {
    /// Both together.
    pub(super) const fn and(self, other: Self) -> Self {
        Self {
            n_bytes: self.n_bytes.saturating_add(other.n_bytes),
            n_lexer_states: self.n_lexer_states.saturating_add(other.n_lexer_states),
        }
    }

    /// What there is of it beyond what was there before.
    pub(super) const fn beyond(self, before: Self) -> Self {
        Self {
            n_bytes: self.n_bytes.saturating_sub(before.n_bytes),
            n_lexer_states: self.n_lexer_states.saturating_sub(before.n_lexer_states),
        }
    }
}

/// The state of one text. After a failure it is of no more use, and every call says so.
pub(super) struct State {
    parser: TokenParser,
    failure: Option<Error>,
    /// No token of the vocabulary continues the text, which may end.
    is_exhausted: bool,
    /// Lexemes and ways to read them, those that were looked at in vain included.
    n_rows: usize,
    n_items: usize,
    /// The most ways that were looked at to find out what may follow.
    n_tried: usize,
    /// Bytes of the tables of the lexer.
    n_lexer_bytes: usize,
    n_lexer_states: usize,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State")
            .field("failure", &self.failure)
            .finish_non_exhaustive()
    }
}

impl Clone for State {
    /// A copy that goes on by itself, with tables of its own.
    fn clone(&self) -> Self {
        Self {
            parser: self.parser.deep_clone(),
            failure: self.failure.clone(),
            ..*self
        }
    }
}

/// What a failure says, in front of the words of the engine.
const CANNOT_GO_ON: &str = "the grammar cannot go on";

impl State {
    /// The beginning of a text.
    pub(super) fn new(mut parser: TokenParser) -> Self {
        if parser.is_fresh() {
            parser.start_without_prompt();
        }
        let mut state = Self {
            parser,
            failure: None,
            is_exhausted: false,
            n_items: 0,
            n_tried: 0,
            n_rows: 0,
            n_lexer_bytes: 0,
            n_lexer_states: 0,
        };
        state.measure();
        state
    }

    /// Whether nothing may follow.
    pub(super) fn is_stopped(&self) -> bool {
        self.failure.is_some() || (self.parser.stopped() && !self.is_exhausted)
    }

    /// Whether what may follow is all that there is to know: it takes little, and its end was not met.
    pub(super) fn is_plain(&self) -> bool {
        const MAX_PLAIN_BYTES: usize = MAX_STATE_BYTES / 8;
        self.failure.is_none()
            && !self.is_exhausted
            && !self.parser.stopped()
            && self.n_bytes() <= MAX_PLAIN_BYTES
    }

    /// Makes a failure of the caller's that of the text.
    pub(super) fn give_up(&mut self, failure: &Error) {
        self.failure.get_or_insert_with(|| failure.clone());
    }

    /// What failed, where something did.
    pub(super) fn failure(&self) -> Option<&Error> {
        self.failure.as_ref()
    }

    /// Whether the text may end here.
    ///
    /// # Errors
    /// `invalid-grammar` where finding out takes too much. So with the functions below.
    pub(super) fn is_accepting(&mut self) -> Result<bool> {
        self.run(|parser| Ok::<_, String>(parser.is_accepting()))
    }

    /// The tokens that may follow; none where nothing but the end may.
    pub(super) fn mask(&mut self) -> Result<Option<SimpleVob>> {
        if self.is_exhausted {
            return Ok(None);
        }
        let before = self.parser.parser.stats().all_items;
        let mask = self.run(|parser| {
            let accepts = parser.is_accepting();
            match parser.compute_mask() {
                Ok(mask) => Ok(Some(mask)),
                Err(_) if accepts && parser.stop_reason() == StopReason::NoExtensionBias => {
                    Ok(None)
                }
                Err(error) => Err(error),
            }
        })?;
        self.is_exhausted = mask.is_none();
        let n_tried = self.parser.parser.stats().all_items - before;
        self.n_tried = self.n_tried.max(n_tried);
        self.bound_size()?;
        Ok(mask)
    }

    /// The tokens that must follow, as the tokenizer writes the text that must.
    pub(super) fn forced(&mut self) -> Result<Vec<TokenId>> {
        self.grow(|parser| {
            let forced = parser.compute_ff_tokens();
            match parser.parser.get_error() {
                None => Ok(forced),
                Some(error) => Err(error.message()),
            }
        })
    }

    /// Whether a token of the vocabulary may follow.
    pub(super) fn allows(&mut self, token: TokenId) -> Result<bool> {
        let n_valid = self.run(|parser| parser.validate_tokens_raw(&[token]))?;
        Ok(n_valid > 0)
    }

    /// Goes on by a token that may follow.
    pub(super) fn consume(&mut self, token: TokenId) -> Result<()> {
        self.grow(|parser| {
            parser.consume_token(token)?;
            parser.check_stop().map(drop)
        })
    }

    /// What of it is bounded.
    pub(super) fn size(&self) -> Growth {
        Growth {
            n_bytes: self.n_bytes(),
            n_lexer_states: self.n_lexer_states,
        }
    }

    /// Whether it would have met no limit with so much more.
    pub(super) fn has_room_for(&self, more: Growth) -> bool {
        let size = self.size().and(more);
        size.n_bytes <= MAX_STATE_BYTES && size.n_lexer_states < MAX_LEXER_STATES
    }

    /// About what it takes, in bytes.
    pub(super) fn n_bytes(&self) -> usize {
        let text = BYTES_PER_BYTE * self.parser.parser.get_bytes().len()
            + BYTES_PER_TOKEN * self.parser.num_tokens();
        let chart = BYTES_PER_ROW * self.n_rows + BYTES_PER_ITEM * (self.n_items + self.n_tried);
        let mask = self.parser.token_env.tok_trie().vocab_size() / 8;
        text + chart + mask + self.n_lexer_bytes / 100 * LEXER_PERCENT
    }

    /// Runs what adds to the text.
    fn grow<T, E: fmt::Display>(
        &mut self,
        work: impl FnOnce(&mut TokenParser) -> std::result::Result<T, E>,
    ) -> Result<T> {
        let before = self.parser.parser.stats().clone();
        let done = self.run(work)?;
        let after = self.parser.parser.stats();
        self.n_items += after.all_items - before.all_items;
        self.n_rows += after.rows - before.rows;
        self.bound_size()?;
        Ok(done)
    }

    fn run<T, E: fmt::Display>(
        &mut self,
        work: impl FnOnce(&mut TokenParser) -> std::result::Result<T, E>,
    ) -> Result<T> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let parser = &mut self.parser;
        let failure = match caught(|| work(parser)) {
            Some(Ok(done)) => {
                self.measure();
                return Ok(done);
            }
            Some(Err(error)) => fault(CANNOT_GO_ON, &error.to_string()),
            None => fault(CANNOT_GO_ON, "the engine failed on it"),
        };
        self.failure = Some(failure.clone());
        Err(failure)
    }

    /// Notes how large it is. The engine holds its lexer locked where it panicked, so this is not done after a failure.
    fn measure(&mut self) {
        let lexer = self.parser.parser.lexer_stats();
        (self.n_lexer_bytes, self.n_lexer_states) = (lexer.num_bytes, lexer.num_states);
    }

    /// A text that takes too much to follow is one that cannot be gone on with, from then on.
    fn bound_size(&mut self) -> Result<()> {
        let n_bytes = self.n_bytes();
        if n_bytes <= MAX_STATE_BYTES {
            return Ok(());
        }
        let failure = fault(
            CANNOT_GO_ON,
            &format!(
                "its text takes {n_bytes} bytes to follow, and the limit is {MAX_STATE_BYTES}: it can be read in too many ways"
            ),
        );
        self.failure = Some(failure.clone());
        Err(failure)
    }
}
