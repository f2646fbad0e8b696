//! A grammar that was compiled for a vocabulary.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use llguidance::api::TopLevelGrammar;

use super::deep::with_stack;
use super::engine::State;
use super::seen::Seen;
use super::vocabulary::Vocabulary;
use super::{Grammar, fault};
use crate::error::{Error, Result};

/// A grammar compiled for a vocabulary. Matchers begin as copies of what it holds.
pub struct Compiled {
    vocabulary: Arc<Vocabulary>,
    grammar: Arc<Grammar>,
    /// At the beginning of a text, its first mask computed.
    prototype: Mutex<State>,
    seen: Seen,
    n_bytes: usize,
}

impl fmt::Debug for Compiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compiled")
            .field("grammar", &self.grammar)
            .finish_non_exhaustive()
    }
}

impl Compiled {
    /// Compiles a grammar for a vocabulary.
    ///
    /// # Errors
    /// `invalid-grammar` where it takes more than may be; `invalid-argument` for the native grammar of another model.
    pub fn new(vocabulary: Arc<Vocabulary>, grammar: Arc<Grammar>) -> Result<Self> {
        const DOES_NOT_COMPILE: &str = "the grammar does not compile";
        if grammar
            .tokenizer()
            .is_some_and(|it| !Arc::ptr_eq(it, vocabulary.tokenizer()))
        {
            return Err(Error::Argument(
                "the grammar is that of another model's calls; make one with tools.native_grammar of this model"
                    .to_owned(),
            ));
        }
        let source = TopLevelGrammar::from_lark(grammar.text().to_owned());
        let parser = match with_stack(|| vocabulary.factory().create_parser(source)) {
            Some(Ok(parser)) => parser,
            Some(Err(error)) => return Err(fault(DOES_NOT_COMPILE, &error.to_string())),
            None => return Err(fault(DOES_NOT_COMPILE, "the engine failed on it")),
        };
        let mut prototype = State::new(parser);
        // Some grammars are too large only where they are begun.
        if !prototype.is_stopped() {
            let accepts = prototype.is_accepting()?;
            if prototype.mask()?.is_none() && !accepts {
                return Err(fault("no text can begin", "no token begins one"));
            }
        }
        // What compiled rules take, seen of typical schemas: 40 bytes for each of the text.
        const BYTES_PER_BYTE: usize = 40;
        let n_bytes = BYTES_PER_BYTE * grammar.text().len() + prototype.n_bytes();
        let seen = Seen::new(vocabulary.n_tokens());
        Ok(Self {
            vocabulary,
            grammar,
            prototype: Mutex::new(prototype),
            n_bytes: n_bytes + seen.max_bytes(),
            seen,
        })
    }

    /// The grammar.
    pub fn grammar(&self) -> &Arc<Grammar> {
        &self.grammar
    }

    /// The vocabulary that it was compiled for.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// About what it takes, in bytes, with the most that it comes to keep.
    pub fn n_bytes(&self) -> usize {
        self.n_bytes
    }

    /// What was found out about its texts.
    pub(super) fn seen(&self) -> &Seen {
        &self.seen
    }

    /// The state at the beginning of a text.
    pub(super) fn beginning(&self) -> State {
        self.prototype
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}
