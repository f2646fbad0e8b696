//! Grammars: what a model may write, token by token.
//!
//! - [`Source`]: a JSON Schema, any JSON, a regular expression or an EBNF text;
//! - [`Grammar`]: a source that was checked, without a model, or the calls of a model. A keyword of a schema is
//!   enforced or refused by its name and place, and everything is bounded, so that no source takes a second or 64 MB;
//! - [`Vocabulary`]: the tokens of a model as a tree; [`Compiled::new`] compiles a [`Grammar`] for it;
//! - [`Matcher`]: walks a text by tokens, says which may follow ([`TokenMask`]), which must, and when it has ended.
//!
//! llguidance is the engine below. What it is known to let through is closed here: strings of documents are written in
//! one spelling, so that no key escapes its property; formats are patterns of our own; and a finished document is
//! checked by [`schema::validation`](schema), which shares nothing with the grammar.

mod compiled;
mod deep;
mod document;
mod ebnf;
mod ecmascript;
mod engine;
mod matcher;
mod number;
mod pattern;
mod properties;
mod schema;
mod seen;
mod token_mask;
mod vocabulary;
mod walk;

use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::tokenizer::Tokenizer;

pub use compiled::Compiled;
pub use matcher::Matcher;
pub use token_mask::TokenMask;
pub use vocabulary::Vocabulary;

use schema::{Schema, Spelling};

/// What a grammar is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source<'a> {
    /// Documents that fit a JSON Schema, without white space.
    JsonSchema(&'a str),
    /// Any JSON, without white space.
    AnyJson,
    /// Texts that match a regular expression as a whole.
    Regex(&'a str),
    /// Texts of a grammar in EBNF: the dialect of Lark, or that of `root ::=`.
    Ebnf(&'a str),
}

/// A grammar that was checked. It belongs to no model, but for those of the calls of one.
#[derive(Debug)]
pub struct Grammar {
    text: String,
    schema: Option<Schema>,
    /// Of a grammar whose text names tokens by their ids: whose they are.
    tokenizer: Option<Arc<Tokenizer>>,
    digest: [u8; 32],
}

impl Grammar {
    /// Checks a source.
    ///
    /// # Errors
    /// `invalid-grammar`: what is wrong, where, and what to do.
    pub fn new(source: Source<'_>) -> Result<Self> {
        deep::with_stack(|| Self::read(source)).unwrap_or_else(|| {
            Err(fault(
                "the grammar does not parse",
                "the engine failed on it",
            ))
        })
    }

    fn read(source: Source<'_>) -> Result<Self> {
        let of_schema = |text| {
            let (schema, grammar) = Schema::read(text, &Spelling::default())?;
            Ok((grammar, Some(schema)))
        };
        let read = match source {
            Source::JsonSchema(text) => of_schema(text),
            Source::AnyJson => of_schema("true"),
            Source::Regex(text) => {
                pattern::Pattern::whole(text).map(|it| (format!("start: /{}/\n", it.plain), None))
            }
            Source::Ebnf(text) => ebnf::translated(text).map(|grammar| (grammar, None)),
        };
        let (text, schema) = read.map_err(Error::Grammar)?;
        let grammar = Self {
            text,
            schema,
            tokenizer: None,
            digest: digest(source),
        };
        if matches!(source, Source::Ebnf(_)) {
            grammar.check_text()?;
        }
        Ok(grammar)
    }

    /// A grammar in the dialect of the engine, whose control tokens are named by their ids. A token that ends the turn
    /// belongs to its texts.
    pub(crate) fn native(text: String, tokenizer: Arc<Tokenizer>) -> Self {
        Self {
            digest: hash(NATIVE, &text),
            text,
            schema: None,
            tokenizer: Some(tokenizer),
        }
    }

    /// Has the engine read the text, without a vocabulary.
    fn check_text(&self) -> Result<()> {
        use llguidance::api::{GrammarInit, ParserLimits, TopLevelGrammar};
        let read = || {
            let grammar = TopLevelGrammar::from_lark(self.text.clone());
            let limits = ParserLimits {
                verbose_errors: false,
                ..ParserLimits::default()
            };
            GrammarInit::Serialized(grammar)
                .to_internal(None, limits)
                .map(drop)
        };
        match read() {
            Ok(()) => Ok(()),
            // Control tokens are known to vocabularies alone.
            Err(error) if error.to_string().contains("special token") => Ok(()),
            Err(error) => Err(fault("the grammar does not parse", &error.to_string())),
        }
    }

    /// The text of the grammar, in the dialect of the engine.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What tells its source from all others: a hash of its kind and text.
    pub fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    /// What it takes, in bytes.
    pub fn n_bytes(&self) -> usize {
        self.text.len() + self.schema.as_ref().map_or(0, Schema::n_bytes)
    }

    /// Whether a token that ends the turn belongs to its texts.
    pub(in crate::grammar) fn ends_with_stop(&self) -> bool {
        self.tokenizer.is_some()
    }

    /// Of a grammar that names tokens by their ids, whose they are.
    pub(in crate::grammar) fn tokenizer(&self) -> Option<&Arc<Tokenizer>> {
        self.tokenizer.as_ref()
    }

    pub(in crate::grammar) fn schema(&self) -> Option<&Schema> {
        self.schema.as_ref()
    }
}

/// The hash of a source: of its kind and its text.
pub fn digest(source: Source<'_>) -> [u8; 32] {
    match source {
        Source::JsonSchema(text) => hash(0, text),
        Source::AnyJson => hash(1, ""),
        Source::Regex(text) => hash(2, text),
        Source::Ebnf(text) => hash(3, text),
    }
}

/// The kind of grammars that are no source.
const NATIVE: u8 = 4;

fn hash(kind: u8, text: &str) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update([kind]);
    hash.update(text.as_bytes());
    hash.finalize().into()
}

/// The rules of the documents of a JSON Schema, to be put into a text for [`Grammar::native`]; `{prefix}start` is the
/// whole document. Documents are written with a space behind commas and colons, as chat templates write them. No string
/// of them holds a text of `avoided`.
///
/// # Errors
/// What cannot be enforced, and where.
pub(crate) fn rules_of_schema(
    schema: &str,
    prefix: &str,
    avoided: &[String],
) -> std::result::Result<String, String> {
    let spelling = Spelling {
        prefix: prefix.to_owned(),
        avoided: avoided.to_vec(),
        ..Spelling::spaced()
    };
    Schema::read(schema, &spelling).map(|(_, rules)| rules)
}

/// A regular expression that matches a text alone, for a text for [`Grammar::native`].
pub(crate) fn pattern_of_text(text: &str) -> String {
    pattern::literal(text, false)
}

/// Checks a JSON text against a JSON Schema.
///
/// # Errors
/// `invalid-grammar` for the schema; `grammar-mismatch` for a text that breaks it, with the place and the keyword.
pub fn check_document(schema: &str, document: &str) -> Result<()> {
    let (schema, _) = Schema::read(schema, &Spelling::default()).map_err(Error::Grammar)?;
    schema.check(document).map_err(Error::Mismatch)
}

/// A failure of the engine, its words shortened.
fn fault(what: &str, why: &str) -> Error {
    const MAX_SHOWN: usize = 400;
    let first = why
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or_default();
    let shown: String = first.chars().take(MAX_SHOWN).collect();
    Error::Grammar(format!("{what}: {shown}; use a smaller or simpler grammar"))
}
