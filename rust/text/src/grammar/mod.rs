//! Grammars: what a model may write, token by token.
//!
//! - [`Source`]: a JSON Schema, any JSON, a regular expression, an EBNF text, or a text that the engine wrote itself;
//! - [`Grammar`]: a source that was checked, without a model. A keyword of a schema is enforced or refused by its name
//!   and place, and everything is bounded, so that no source takes a second or 64 MB;
//! - [`Vocabulary`]: the tokens of a model as a tree; [`Compiled::new`] compiles a [`Grammar`] for it;
//! - [`Matcher`]: walks a text by tokens, says which may follow ([`TokenMask`]), which must, and when it has ended.
//!
//! llguidance is the engine below. What it is known to let through is closed here: strings of documents are written in
//! one spelling, so that no key escapes its property; formats are patterns of our own; and a finished document is
//! checked by [`schema::validation`](schema), which shares nothing with the grammar.

mod compiled;
mod ebnf;
mod matcher;
mod number;
mod pattern;
mod schema;
mod vocabulary;

use sha2::{Digest, Sha256};

use crate::error::{Error, Result};

pub use compiled::Compiled;
pub use matcher::{Matcher, TokenMask};
pub use vocabulary::Vocabulary;

use schema::Schema;

/// What a grammar is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source<'a> {
    /// Documents that fit a JSON Schema, without white space between their signs.
    JsonSchema(&'a str),
    /// Any JSON, without white space between its signs.
    AnyJson,
    /// Texts that match a regular expression as a whole.
    Regex(&'a str),
    /// Texts of a grammar in EBNF: the dialect of Lark, or that of `root ::=`.
    Ebnf(&'a str),
    /// Texts of a grammar in the dialect of the engine, written by the engine itself: it is not checked.
    Own(&'a str),
}

/// A grammar that was checked. It belongs to no model.
#[derive(Debug)]
pub struct Grammar {
    text: String,
    schema: Option<Schema>,
    digest: [u8; 32],
}

impl Grammar {
    /// Checks a source.
    ///
    /// # Errors
    /// `invalid-grammar`: what is wrong, where, and what to do.
    pub fn new(source: Source<'_>) -> Result<Self> {
        let (kind, text) = match source {
            Source::JsonSchema(text) => ("json-schema", text),
            Source::AnyJson => ("json-schema", "true"),
            Source::Regex(text) => ("regex", text),
            Source::Ebnf(text) => ("ebnf", text),
            Source::Own(text) => ("own", text),
        };
        let refused = |why: String| Error::Grammar(why);
        let (text, schema) = match kind {
            "json-schema" => {
                let (schema, grammar) = Schema::read(text, "").map_err(refused)?;
                (grammar, Some(schema))
            }
            "regex" => {
                let pattern = pattern::Pattern::whole(text).map_err(refused)?;
                (format!("start: /{}/\n", pattern.plain), None)
            }
            "ebnf" => (ebnf::translated(text).map_err(refused)?, None),
            _ => (text.to_owned(), None),
        };
        let grammar = Self {
            digest: digest(source),
            text,
            schema,
        };
        if matches!(source, Source::Ebnf(_)) {
            grammar.check_text()?;
        }
        Ok(grammar)
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
        match crate::caught::caught(read) {
            Some(Ok(())) => Ok(()),
            // Control tokens are known to vocabularies alone.
            Some(Err(error)) if error.to_string().contains("special token") => Ok(()),
            Some(Err(error)) => Err(fault("the grammar does not parse", &error.to_string())),
            None => Err(fault(
                "the grammar does not parse",
                "the engine failed on it",
            )),
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

    pub(in crate::grammar) fn schema(&self) -> Option<&Schema> {
        self.schema.as_ref()
    }
}

/// The hash of a source: of its kind and its text.
pub fn digest(source: Source<'_>) -> [u8; 32] {
    let (kind, text) = match source {
        Source::JsonSchema(text) => (0u8, text),
        Source::AnyJson => (1, ""),
        Source::Regex(text) => (2, text),
        Source::Ebnf(text) => (3, text),
        Source::Own(text) => (4, text),
    };
    let mut hash = Sha256::new();
    hash.update([kind]);
    hash.update(text.as_bytes());
    hash.finalize().into()
}

/// The rules of a JSON Schema, to be put into a text for [`Source::Own`]. They begin with `prefix`, lower-case letters,
/// digits and underscores; `{prefix}start` is the whole document.
///
/// # Errors
/// `invalid-grammar`, as for [`Grammar::new`].
pub fn rules_of_schema(schema: &str, prefix: &str) -> Result<String> {
    let (_, rules) = Schema::read(schema, prefix).map_err(Error::Grammar)?;
    Ok(rules)
}

/// Checks a JSON text against a JSON Schema.
///
/// # Errors
/// `invalid-grammar` for the schema; `grammar-mismatch` for a text that breaks it, with the place and the keyword.
pub fn check_document(schema: &str, document: &str) -> Result<()> {
    let (schema, _) = Schema::read(schema, "").map_err(Error::Grammar)?;
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
