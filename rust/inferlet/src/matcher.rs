//! Checked grammars, and what walks their texts by the tokens of a model.

use crate::bindings::pie::core::grammar as raw;
use crate::kept::Keeper;
use crate::{Result, Tokenizer};

/// A grammar that was checked. It belongs to no model.
#[derive(Debug)]
pub struct Grammar {
    raw: raw::Grammar,
}

impl Grammar {
    /// One that the engine made.
    pub(crate) fn from_raw(raw: raw::Grammar) -> Self {
        Self { raw }
    }

    fn of(source: &raw::Source) -> Result<Self> {
        Ok(Self {
            raw: raw::Grammar::create(source)?,
        })
    }

    /// Documents that fit a JSON Schema, given as its text, without white space between their signs.
    ///
    /// # Errors
    /// `invalid-grammar`: what does not parse, cannot be enforced, or takes too much, and where.
    pub fn from_json_schema(schema: &str) -> Result<Self> {
        Self::of(&raw::Source::JsonSchema(schema.to_owned()))
    }

    /// Documents of any JSON, without white space between their signs.
    ///
    /// # Errors
    /// As [`Grammar::from_json_schema`].
    pub fn json() -> Result<Self> {
        Self::of(&raw::Source::AnyJson)
    }

    /// Texts that match a regular expression as a whole.
    ///
    /// # Errors
    /// As [`Grammar::from_json_schema`].
    pub fn from_regex(pattern: &str) -> Result<Self> {
        Self::of(&raw::Source::Regex(pattern.to_owned()))
    }

    /// Texts of a grammar in EBNF: the dialect of Lark, or that of `root ::=`.
    ///
    /// # Errors
    /// As [`Grammar::from_json_schema`].
    pub fn from_ebnf(source: &str) -> Result<Self> {
        Self::of(&raw::Source::Ebnf(source.to_owned()))
    }
}

/// Walks a text of a grammar by the tokens of a model, for a constraint of one's own that wraps a grammar.
///
/// A grammar that takes too much with the vocabulary is an error that is kept: the next fallible call returns it.
#[derive(Debug)]
pub struct Matcher {
    raw: Option<raw::Matcher>,
    keeper: Keeper,
}

impl Matcher {
    /// A matcher at the beginning of a text.
    pub fn new(grammar: &Grammar, tokenizer: &Tokenizer) -> Self {
        Self::of(grammar.raw.matcher(tokenizer.raw()).map_err(Into::into))
    }

    pub(crate) fn of(made: Result<raw::Matcher>) -> Self {
        let keeper = Keeper::new();
        Self {
            raw: keeper.value_of(made.map(Some)),
            keeper,
        }
    }

    /// Goes on by tokens, 65,536 at most; where one does not continue the text, none is taken.
    ///
    /// # Errors
    /// `grammar-mismatch`; `invalid-grammar` for a document beyond a megabyte or 120 levels; a kept error.
    pub fn accept_tokens(&mut self, tokens: &[u32]) -> Result<()> {
        self.keeper.meet()?;
        match &self.raw {
            Some(raw) => Ok(raw.accept(tokens)?),
            None => Ok(()),
        }
    }

    /// The tokens that may follow, as run lengths ([`brle`](crate::brle)). After the end the error `grammar-mismatch`
    /// is kept, and no token may follow.
    pub fn next_token_logit_mask(&mut self) -> Vec<u32> {
        let mask = self.raw.as_ref().map(raw::Matcher::mask);
        match mask {
            Some(Ok(mask)) => mask,
            Some(Err(error)) => {
                self.keeper.keep(error);
                vec![1]
            }
            None => vec![1],
        }
    }

    /// The tokens that must follow, as the tokenizer writes them; empty where there is a choice.
    pub fn forced_tokens(&mut self) -> Vec<u32> {
        let forced = self.raw.as_ref().map(raw::Matcher::forced);
        forced.map_or_else(Vec::new, |forced| self.keeper.value_of(forced))
    }

    /// Whether the text has ended: a stop token was accepted, or nothing else could follow.
    pub fn is_terminated(&self) -> bool {
        self.raw.as_ref().is_some_and(raw::Matcher::is_terminated)
    }

    /// Goes back to the beginning of the text.
    pub fn reset(&mut self) {
        if let Some(raw) = &self.raw {
            self.keeper.value_of(raw.reset());
        }
    }

    /// A copy at the same place, which goes on by itself.
    pub fn fork(&self) -> Self {
        match &self.raw {
            Some(raw) => Self::of(raw.fork().map_err(Into::into)),
            None => Self {
                raw: None,
                keeper: self.keeper,
            },
        }
    }

    /// Keeps an error for the next fallible call.
    pub(crate) fn keep(&self, error: String) {
        self.keeper.keep(error);
    }

    /// The matcher of the engine.
    ///
    /// # Errors
    /// A kept error.
    pub(crate) fn raw(&self) -> Result<&raw::Matcher> {
        self.keeper.meet()?;
        let lost = || "the matcher could not be made, and its error was returned before".to_owned();
        self.raw.as_ref().ok_or_else(lost)
    }
}
