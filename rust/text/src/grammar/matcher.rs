//! Walks a text token by token, and says which tokens may follow.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use llguidance::Matcher as Engine;
use llguidance::toktrie::SimpleVob;

use super::compiled::Compiled;
use super::fault;
use super::vocabulary::engine_error;
use crate::error::{Error, Result};

/// The longest document that a matcher keeps to check it when it is finished.
pub(super) const MAX_DOCUMENT_BYTES: usize = 4 << 20;

/// Walks a text of a grammar. Clones go on apart from each other.
pub struct Matcher {
    compiled: Arc<Compiled>,
    state: Engine,
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
    document: Vec<u8>,
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

impl Clone for Matcher {
    fn clone(&self) -> Self {
        Self {
            compiled: self.compiled.clone(),
            state: self.state.deep_clone(),
            forced: self.forced.clone(),
            forced_known: self.forced_known,
            stop: self.stop.clone(),
            stopped: self.stopped,
            document: self.document.clone(),
            n_tokens: self.n_tokens,
        }
    }
}

/// Which tokens may follow: a bit each, the lowest bit of the first word for token 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenMask {
    words: Vec<u32>,
    n_tokens: u32,
}

impl TokenMask {
    /// The words.
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// Whether a token may follow.
    pub fn allows(&self, token: u32) -> bool {
        let word = self.words.get(token as usize / 32).copied().unwrap_or(0);
        token < self.n_tokens && word >> (token % 32) & 1 == 1
    }

    /// Whether no token may follow.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// As alternating run lengths, of tokens that may not follow first. What lies behind the last run may not.
    pub fn runs(&self) -> Vec<u32> {
        let mut runs = Vec::new();
        let mut allowed = false;
        let mut start = 0;
        loop {
            // The next token that is not as those before.
            let end = self.next(start, !allowed);
            match end {
                Some(end) => {
                    runs.push(end - start);
                    start = end;
                    allowed = !allowed;
                }
                None => {
                    if allowed {
                        runs.push(self.n_tokens - start);
                    } else if runs.is_empty() {
                        // A list that allows nothing is not the empty one.
                        runs.push(self.n_tokens);
                    }
                    return runs;
                }
            }
        }
    }

    /// The first token from `start` on that is allowed, or is not.
    fn next(&self, start: u32, allowed: bool) -> Option<u32> {
        let mut at = start;
        while at < self.n_tokens {
            let word = self.words.get(at as usize / 32).copied().unwrap_or(0);
            let word = if allowed { word } else { !word } >> (at % 32);
            if word != 0 {
                let found = at + word.trailing_zeros();
                return (found < self.n_tokens).then_some(found);
            }
            at = (at / 32 + 1) * 32;
        }
        None
    }

    fn allow(&mut self, token: u32) {
        if token < self.n_tokens
            && let Some(word) = self.words.get_mut(token as usize / 32)
        {
            *word |= 1 << (token % 32);
        }
    }

    fn forbid(&mut self, token: u32) {
        if let Some(word) = self.words.get_mut(token as usize / 32) {
            *word &= !(1 << (token % 32));
        }
    }
}

impl Matcher {
    /// At the beginning of a text. A text may be ended by one of the `stop` tokens, where it may end.
    pub fn new(compiled: &Arc<Compiled>, stop: impl Into<Arc<[u32]>>) -> Self {
        Self {
            compiled: compiled.clone(),
            state: compiled.beginning(),
            forced: VecDeque::new(),
            forced_known: false,
            stop: stop.into(),
            stopped: false,
            document: Vec::new(),
            n_tokens: 0,
        }
    }

    /// The grammar for the vocabulary.
    pub fn compiled(&self) -> &Arc<Compiled> {
        &self.compiled
    }

    /// Replaces the tokens that end a text where it may end.
    pub fn set_stop(&mut self, stop: impl Into<Arc<[u32]>>) {
        self.stop = stop.into();
        self.forced.clear();
        self.forced_known = false;
    }

    /// Goes back to the beginning.
    pub fn reset(&mut self) {
        let stop = self.stop.clone();
        *self = Self::new(&self.compiled.clone(), stop);
    }

    /// Whether the text has ended: a stop token was accepted, or nothing else could follow.
    pub fn is_terminated(&self) -> bool {
        self.stopped || self.state.is_stopped()
    }

    /// Whether the text may end here.
    ///
    /// # Errors
    /// `invalid-grammar` where finding out takes too much.
    pub fn is_accepting(&mut self) -> Result<bool> {
        if self.is_terminated() {
            return Ok(true);
        }
        self.state
            .is_accepting()
            .map_err(|error| engine_error("the grammar cannot go on", &error))
    }

    /// The tokens that may follow. Where the grammar forces text, that is the next of its tokens alone. The tokens that
    /// end a text are among them only where it may end.
    ///
    /// # Errors
    /// `invalid-grammar` where finding them takes too much; `grammar-mismatch` where the text has ended.
    pub fn mask(&mut self) -> Result<TokenMask> {
        if self.is_terminated() {
            return Err(Error::Mismatch(
                "the text of the grammar has ended, and no token follows; reset the matcher"
                    .to_owned(),
            ));
        }
        let vocabulary = self.compiled.vocabulary().clone();
        let n_tokens = vocabulary.n_tokens();
        if let Some(&first) = self.forced()?.front() {
            let mut mask = TokenMask {
                words: vec![0; (n_tokens as usize).div_ceil(32)],
                n_tokens,
            };
            mask.allow(first);
            return Ok(mask);
        }
        let accepting = self.is_accepting()?;
        let mut mask = self.of_engine(accepting, n_tokens)?;
        for &(first, twin) in vocabulary.twins() {
            if mask.allows(first) {
                mask.allow(twin);
            }
        }
        for &token in &*self.stop.clone() {
            if accepting {
                mask.allow(token);
            } else {
                mask.forbid(token);
            }
        }
        if mask.is_empty() {
            return Err(fault(
                "the grammar cannot go on",
                "no token of the vocabulary continues the text; allow more of it, or use fewer stop tokens",
            ));
        }
        Ok(mask)
    }

    fn of_engine(&mut self, accepting: bool, n_tokens: u32) -> Result<TokenMask> {
        let words = match self.state.compute_mask() {
            Ok(mask) => {
                let mask: SimpleVob = mask;
                let mut words = mask.as_slice().to_vec();
                words.resize((n_tokens as usize).div_ceil(32), 0);
                words
            }
            // Nothing but the end may follow.
            Err(_) if accepting => vec![0; (n_tokens as usize).div_ceil(32)],
            Err(error) => return Err(engine_error("the grammar cannot go on", &error)),
        };
        Ok(TokenMask { words, n_tokens })
    }

    /// The tokens that must follow, as the tokenizer writes the text that must; none where there is a choice.
    ///
    /// # Errors
    /// `invalid-grammar` where finding them takes too much.
    pub fn forced(&mut self) -> Result<&VecDeque<u32>> {
        if !self.forced_known && !self.is_terminated() {
            // A token that ends the text anywhere else is not forced: another spelling of the text is drawn then.
            let forced = self.state.compute_ff_tokens().into_iter();
            let stop = &self.stop;
            self.forced = forced.take_while(|it| !stop.contains(it)).collect();
            if let Some(error) = self.state.get_error() {
                return Err(fault("the grammar cannot go on", &error));
            }
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
        if self.is_terminated() {
            return Err(self.mismatch(token, "the text has ended"));
        }
        if self.stop.contains(&token) && self.is_accepting()? {
            self.check_document()?;
            self.stopped = true;
            self.n_tokens += 1;
            return Ok(());
        }
        if self.forced.front() != Some(&token) {
            if token >= self.compiled.vocabulary().n_tokens() {
                return Err(self.mismatch(token, "the vocabulary does not have it"));
            }
            let valid = self.state.validate_tokens(&[token]);
            let valid = valid.map_err(|error| engine_error("the grammar cannot go on", &error))?;
            if valid == 0 {
                return Err(self.mismatch(token, "the grammar has other text here"));
            }
            self.forced.clear();
        } else {
            self.forced.pop_front();
        }
        self.state
            .consume_token(token)
            .map_err(|error| engine_error("the grammar cannot go on", &error))?;
        self.forced_known = !self.forced.is_empty();
        self.n_tokens += 1;
        self.keep(token);
        if self.state.is_stopped() {
            if self.state.is_error() {
                let error = self.state.get_error().unwrap_or_default();
                return Err(fault("the grammar cannot go on", &error));
            }
            self.check_document()?;
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

    /// Keeps what a token writes, where the document is to be checked.
    fn keep(&mut self, token: u32) {
        if self.compiled.grammar().schema().is_some() && self.document.len() <= MAX_DOCUMENT_BYTES {
            let bytes = self.compiled.vocabulary().bytes(token);
            self.document.extend_from_slice(bytes);
        }
    }

    /// Checks the finished document against its schema: the grammar lets nothing else through, and this makes sure.
    fn check_document(&self) -> Result<()> {
        let Some(schema) = self.compiled.grammar().schema() else {
            return Ok(());
        };
        if self.document.len() > MAX_DOCUMENT_BYTES {
            return Ok(());
        }
        let checked = match std::str::from_utf8(&self.document) {
            Ok(document) => schema.check(document),
            Err(_) => Err("it is not UTF-8".to_owned()),
        };
        checked.map_err(|why| {
            fault(
                "the finished document does not fit its schema",
                &format!("{why}; please report the schema"),
            )
        })
    }

    /// About what it takes, in bytes.
    pub fn n_bytes(&self) -> usize {
        self.compiled.n_bytes() / 2 + self.document.len()
    }
}
