//! A grammar that was compiled for a vocabulary.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use llguidance::Matcher as Engine;
use llguidance::api::TopLevelGrammar;

use super::vocabulary::{Vocabulary, engine_error};
use super::{Grammar, fault};
use crate::error::Result;

/// A grammar compiled for a vocabulary. Matchers begin as copies of what it holds.
pub struct Compiled {
    vocabulary: Arc<Vocabulary>,
    grammar: Arc<Grammar>,
    /// At the beginning of a text, its first mask computed.
    prototype: Mutex<Engine>,
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
    /// `invalid-grammar` where it takes more than may be.
    pub fn new(vocabulary: Arc<Vocabulary>, grammar: Arc<Grammar>) -> Result<Self> {
        let source = TopLevelGrammar::from_lark(grammar.text().to_owned());
        let parser = vocabulary
            .factory()
            .create_parser(source)
            .map_err(|error| engine_error("the grammar does not compile", &error))?;
        let mut prototype = Engine::new(Ok(parser));
        if let Some(error) = prototype.get_error() {
            return Err(fault("the grammar does not compile", &error));
        }
        // Some grammars are too large only where they are begun.
        let accepts = prototype.is_accepting();
        if !prototype.is_stopped() {
            let mask = prototype.compute_mask();
            let nothing = mask.is_err() && !matches!(accepts, Ok(true));
            if let (Err(error), true) = (mask, nothing) {
                return Err(engine_error("no text can begin", &error));
            }
            if prototype.is_error() {
                let error = prototype.get_error().unwrap_or_default();
                return Err(fault("no text can begin", &error));
            }
        }
        Ok(Self {
            vocabulary,
            grammar,
            prototype: Mutex::new(prototype),
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

    /// About what it takes, in bytes. It is the same for all grammars of the same text.
    pub fn n_bytes(&self) -> usize {
        // Seen of typical schemas with 128 thousand tokens: half a megabyte, and 40 bytes for each of the text.
        const BASE_BYTES: usize = 512 << 10;
        const BYTES_PER_BYTE: usize = 40;
        BASE_BYTES + BYTES_PER_BYTE * self.grammar.text().len()
    }

    /// The state at the beginning of a text.
    pub(super) fn beginning(&self) -> Engine {
        self.prototype
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .deep_clone()
    }
}
