//! Walks a text token by token, and says which tokens may follow.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use super::compiled::Compiled;
use super::document::Document;
use super::engine::State;
use super::token_mask::TokenMask;
use super::walk::Walk;
use crate::error::{Error, Result};

/// Walks a text of a grammar. Clones go on apart from each other.
#[derive(Clone)]
pub struct Matcher {
    compiled: Arc<Compiled>,
    walk: Walk,
    /// Tokens that must follow, as the tokenizer writes the text that must. They were found where the text was first
    /// forced, so that it does not matter whether they are taken one by one.
    forced: VecDeque<u32>,
    /// Whether `forced` is what follows here.
    forced_known: bool,
    /// Tokens that end a text where one may end.
    stop: Arc<[u32]>,
    /// A stop token was accepted.
    stopped: bool,
    /// What was accepted, where a schema is to be checked.
    document: Document,
    n_tokens: usize,
}

impl fmt::Debug for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Matcher")
            .field("n_tokens", &self.n_tokens)
            .field("stopped", &self.stopped)
            .finish_non_exhaustive()
    }
}

impl Matcher {
    /// The most bytes that finding what may follow, or one more token, adds to what it takes; see [`Matcher::n_bytes`].
    /// `tests/grammar_memory.rs` walks typical and hostile grammars, of which none adds as much.
    pub const STEP_BYTES: usize = 8 << 20;

    /// At the beginning of a text. A text may be ended by one of the `stop` tokens, where it may end.
    pub fn new(compiled: &Arc<Compiled>, stop: impl Into<Arc<[u32]>>) -> Self {
        let stop = stop.into();
        Self {
            compiled: compiled.clone(),
            walk: Walk::new(compiled, &stop),
            forced: VecDeque::new(),
            forced_known: false,
            stop,
            stopped: false,
            document: Document::default(),
            n_tokens: 0,
        }
    }

    /// The grammar for the vocabulary.
    pub fn compiled(&self) -> &Arc<Compiled> {
        &self.compiled
    }

    /// Replaces the tokens that end a text where it may end.
    pub fn set_stop(&mut self, stop: impl Into<Arc<[u32]>>) {
        let stop = stop.into();
        if stop != self.stop {
            self.stop = stop;
            self.forced.clear();
            self.forced_known = false;
            self.walk.set_stop(&self.stop, self.n_tokens == 0);
        }
    }

    /// Goes back to the beginning.
    pub fn reset(&mut self) {
        let stop = self.stop.clone();
        *self = Self::new(&self.compiled.clone(), stop);
    }

    /// Whether the text has ended: a stop token was accepted, or nothing else could follow. Where a stop token belongs
    /// to the text, and there are some, it has not ended before.
    pub fn is_terminated(&self) -> bool {
        let waits = self.compiled.grammar().ends_with_stop() && !self.stop.is_empty();
        let state = self.state();
        self.stopped || state.failure().is_some() || (state.is_stopped() && !waits)
    }

    /// Whether the text may end here.
    ///
    /// # Errors
    /// `invalid-grammar` where finding out takes too much.
    pub fn is_accepting(&mut self) -> Result<bool> {
        match self.state().failure() {
            Some(failure) => Err(failure.clone()),
            None if self.state().is_stopped() => Ok(true),
            None => self.walk.is_accepting(),
        }
    }

    /// The tokens that may follow. Where the grammar forces text, that is the next of its tokens alone. The tokens that
    /// end a text are among them only where it may end.
    ///
    /// # Errors
    /// `invalid-grammar` where finding them takes too much; `grammar-mismatch` where the text has ended.
    pub fn mask(&mut self) -> Result<Arc<TokenMask>> {
        self.check_open()?;
        if let Some(&first) = self.forced()?.front() {
            let n_tokens = self.compiled.vocabulary().n_tokens();
            let mut mask = TokenMask::new(Vec::new(), n_tokens);
            mask.allow(first);
            return Ok(Arc::new(mask));
        }
        self.walk.mask(&self.stop)
    }

    /// The tokens that must follow, as the tokenizer writes the text that must; none where there is a choice.
    ///
    /// # Errors
    /// `invalid-grammar` where finding them takes too much.
    pub fn forced(&mut self) -> Result<&VecDeque<u32>> {
        if !self.forced_known && !self.state().is_stopped() {
            self.forced = self.walk.forced(&self.stop)?.iter().copied().collect();
            self.forced_known = true;
        }
        Ok(&self.forced)
    }

    /// Goes on by tokens. Where one of them does not continue the text, nothing of them is taken.
    ///
    /// # Errors
    /// `grammar-mismatch` for a token that does not continue the text; `invalid-grammar` where going on takes too much,
    /// or the finished document breaks its schema.
    pub fn accept(&mut self, tokens: &[u32]) -> Result<()> {
        match tokens {
            [] => Ok(()),
            [token] => self.accept_one(*token),
            _ => {
                let mut next = self.clone();
                for &token in tokens {
                    next.accept_one(token)?;
                }
                *self = next;
                Ok(())
            }
        }
    }

    fn accept_one(&mut self, token: u32) -> Result<()> {
        if let Some(failure) = self.state().failure() {
            return Err(failure.clone());
        }
        if self.is_terminated() {
            return Err(self.mismatch(token, "the text has ended"));
        }
        if self.stop.contains(&token) && self.is_accepting()? {
            self.check_document()?;
            self.stopped = true;
            self.n_tokens += 1;
            return Ok(());
        }
        let is_forced = self.forced.front() == Some(&token);
        if is_forced {
            self.forced.pop_front();
        } else {
            if token >= self.compiled.vocabulary().n_tokens() {
                return Err(self.mismatch(token, "the vocabulary does not have it"));
            }
            if self.state().is_stopped() || !self.walk.allows(token)? {
                return Err(self.mismatch(token, "the grammar has other text here"));
            }
            self.forced.clear();
        }
        let is_amid = !self.forced.is_empty();
        self.walk.consume(token, is_forced, is_amid)?;
        self.forced_known = is_amid;
        self.n_tokens += 1;
        let kept = self.keep(token);
        if let Err(failure) = &kept {
            self.walk.give_up(failure);
        }
        kept
    }

    /// Keeps what a token writes, where the document is to be checked, and checks it where it is finished.
    fn keep(&mut self, token: u32) -> Result<()> {
        if self.compiled.grammar().schema().is_none() {
            return Ok(());
        }
        let vocabulary = self.compiled.vocabulary();
        self.document.push(vocabulary.bytes(token))?;
        if self.state().is_stopped() {
            self.check_document()?;
        }
        Ok(())
    }

    fn state(&self) -> &State {
        self.walk.state()
    }

    fn check_open(&self) -> Result<()> {
        if let Some(failure) = self.state().failure() {
            return Err(failure.clone());
        }
        if self.is_terminated() {
            return Err(Error::Mismatch(
                "the text of the grammar has ended, and no token follows; reset the matcher"
                    .to_owned(),
            ));
        }
        Ok(())
    }

    fn mismatch(&self, token: u32, why: &str) -> Error {
        Error::Mismatch(format!(
            "token {} does not continue the text of the grammar behind {} tokens: {why}; use a token that its mask \
             allows",
            self.compiled.vocabulary().shown(token),
            self.n_tokens
        ))
    }

    fn check_document(&self) -> Result<()> {
        match self.compiled.grammar().schema() {
            Some(schema) => self.document.check(schema),
            None => Ok(()),
        }
    }

    /// About what it takes, in bytes: it grows with the text.
    pub fn n_bytes(&self) -> usize {
        const BASE_BYTES: usize = 4 << 10;
        let forced = self.forced.capacity() * size_of::<u32>();
        BASE_BYTES + self.walk.n_bytes() + self.document.n_bytes() + forced
    }
}
