//! Grammars that programs made: checked and compiled once for all of them, and forgotten where they are too many.
//!
//! A grammar is known by the hash of its source. What is kept belongs to nobody; who holds a grammar or a matcher is
//! charged for it. Sources that were refused are remembered as well, so that asking again costs nothing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use pie_text::Chat;
use pie_text::grammar::{Compiled, Grammar, Source, Vocabulary, digest};

use crate::Error;
use crate::errors::text_error;
use crate::sync::lock;

/// The most sources that are remembered.
const MAX_ENTRIES: usize = 256;
/// The most bytes that are kept of them.
const MAX_BYTES: usize = 64 << 20;

/// What a program gave as the source of a grammar.
#[derive(Debug, Clone)]
pub(crate) enum OwnedSource {
    JsonSchema(String),
    AnyJson,
    Regex(String),
    Ebnf(String),
}

impl OwnedSource {
    fn borrowed(&self) -> Source<'_> {
        match self {
            Self::JsonSchema(text) => Source::JsonSchema(text),
            Self::AnyJson => Source::AnyJson,
            Self::Regex(text) => Source::Regex(text),
            Self::Ebnf(text) => Source::Ebnf(text),
        }
    }

    /// Bytes of its text.
    pub(crate) fn n_bytes(&self) -> usize {
        match self {
            Self::JsonSchema(text) | Self::Regex(text) | Self::Ebnf(text) => text.len(),
            Self::AnyJson => 0,
        }
    }
}

/// A kept answer. Models are told apart by their addresses, which stay theirs as long as they are held.
type Key = (Option<usize>, [u8; 32]);

#[derive(Clone)]
enum Kept {
    Checked(Result<Arc<Grammar>, Error>),
    Compiled(Result<Arc<Compiled>, Error>),
}

impl Kept {
    fn n_bytes(&self) -> usize {
        const ERROR_BYTES: usize = 1 << 10;
        match self {
            Self::Checked(Ok(grammar)) => grammar.n_bytes(),
            Self::Compiled(Ok(compiled)) => compiled.n_bytes(),
            Self::Checked(Err(_)) | Self::Compiled(Err(_)) => ERROR_BYTES,
        }
    }
}

/// The grammars of a host.
#[derive(Default)]
pub(crate) struct Grammars {
    cache: Mutex<Cache>,
    vocabularies: Mutex<Vec<(Arc<Chat>, Arc<Vocabulary>)>>,
}

#[derive(Default)]
struct Cache {
    entries: HashMap<Key, (Kept, u64)>,
    n_bytes: usize,
    /// Counts uses: the least used last is forgotten first.
    clock: u64,
}

impl Cache {
    fn get(&mut self, key: &Key) -> Option<Kept> {
        self.clock += 1;
        let clock = self.clock;
        let (kept, used) = self.entries.get_mut(key)?;
        *used = clock;
        Some(kept.clone())
    }

    fn put(&mut self, key: Key, kept: Kept) {
        self.clock += 1;
        let n_bytes = kept.n_bytes();
        if let Some((before, _)) = self.entries.insert(key, (kept, self.clock)) {
            self.n_bytes -= before.n_bytes();
        }
        self.n_bytes += n_bytes;
        while self.entries.len() > MAX_ENTRIES || self.n_bytes > MAX_BYTES {
            let oldest = self.entries.iter().min_by_key(|(_, (_, used))| *used);
            let Some(oldest) = oldest.map(|(key, _)| *key) else {
                return;
            };
            if let Some((kept, _)) = self.entries.remove(&oldest) {
                self.n_bytes -= kept.n_bytes();
            }
        }
    }
}

impl Grammars {
    /// The grammar of a source, where it is known without work.
    pub(crate) fn known(&self, source: &OwnedSource) -> Option<Result<Arc<Grammar>, Error>> {
        match lock(&self.cache).get(&(None, digest(source.borrowed())))? {
            Kept::Checked(checked) => Some(checked),
            Kept::Compiled(_) => None,
        }
    }

    /// Checks a source.
    ///
    /// # Errors
    /// `invalid-grammar`.
    pub(crate) fn check(&self, source: &OwnedSource) -> Result<Arc<Grammar>, Error> {
        let checked = Grammar::new(source.borrowed());
        let checked = checked.map(Arc::new).map_err(text_error);
        let key = (None, digest(source.borrowed()));
        lock(&self.cache).put(key, Kept::Checked(checked.clone()));
        checked
    }

    /// A grammar compiled for a model, where it is known without work.
    pub(crate) fn known_compiled(
        &self,
        chat: &Arc<Chat>,
        grammar: &Grammar,
    ) -> Option<Result<Arc<Compiled>, Error>> {
        match lock(&self.cache).get(&(Some(address(chat)), *grammar.digest()))? {
            Kept::Compiled(compiled) => Some(compiled),
            Kept::Checked(_) => None,
        }
    }

    /// Compiles a grammar for a model.
    ///
    /// # Errors
    /// `invalid-grammar`, `invalid-model`.
    pub(crate) fn compile(
        &self,
        chat: &Arc<Chat>,
        grammar: &Arc<Grammar>,
    ) -> Result<Arc<Compiled>, Error> {
        let vocabulary = self.vocabulary(chat)?;
        let compiled = Compiled::new(vocabulary, grammar.clone());
        let compiled = compiled.map(Arc::new).map_err(text_error);
        let key = (Some(address(chat)), *grammar.digest());
        lock(&self.cache).put(key, Kept::Compiled(compiled.clone()));
        compiled
    }

    /// The tree of a model's tokens, built at the first use. Whoever needs it meanwhile waits for it.
    fn vocabulary(&self, chat: &Arc<Chat>) -> Result<Arc<Vocabulary>, Error> {
        let mut vocabularies = lock(&self.vocabularies);
        if let Some((_, vocabulary)) = vocabularies.iter().find(|(it, _)| Arc::ptr_eq(it, chat)) {
            return Ok(vocabulary.clone());
        }
        let vocabulary = Vocabulary::new(chat.tokenizer().clone()).map_err(text_error)?;
        let vocabulary = Arc::new(vocabulary);
        vocabularies.push((chat.clone(), vocabulary.clone()));
        Ok(vocabulary)
    }
}

fn address(chat: &Arc<Chat>) -> usize {
    Arc::as_ptr(chat).addr()
}
