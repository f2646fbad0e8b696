//! JSON Schema: what a grammar enforces of it, and what finished documents are checked by.
//!
//! - [`document`]: the text, its places and references, the keywords that there are;
//! - [`shape`]: what a schema allows, type by type; [`reading`] and [`keywords`] make shapes of keywords,
//!   [`negation`] of their opposites;
//! - [`nodes`]: what a document may reach, and [`productive`] what of it can be finished;
//! - [`writing`]: the grammar of it, by a [`Spelling`], of [`terminals`];
//! - [`validation`]: the check of a document, apart from all of these, with [`equality`] of values;
//! - [`steps`]: how much work there may be.

mod document;
mod equality;
mod formats;
mod keywords;
mod negation;
mod nodes;
mod productive;
mod reading;
mod shape;
mod size;
mod spelling;
mod steps;
mod terminals;
mod validation;
mod writing;

use serde_json::Value;

use document::{Refusal, shortened};
use reading::Reading;
pub(super) use spelling::Spelling;
use validation::{Patterns, Rules};

use super::number::altered_integer;

/// The longest schema, in bytes.
pub(super) const MAX_SCHEMA_BYTES: usize = 1 << 20;

/// A schema that was read.
#[derive(Debug, Clone)]
pub(super) struct Schema {
    root: Value,
    patterns: Patterns,
}

impl Schema {
    /// Reads a schema, and writes the grammar of its documents.
    ///
    /// # Errors
    /// Which keyword cannot be enforced, or what is wrong where.
    pub(super) fn read(text: &str, spelling: &Spelling) -> Result<(Self, String), String> {
        if text.len() > MAX_SCHEMA_BYTES {
            return Err(format!(
                "the schema has {} bytes, and the limit is {MAX_SCHEMA_BYTES}; use a smaller one",
                text.len()
            ));
        }
        let root: Value = serde_json::from_str(text)
            .map_err(|error| format!("the schema is not JSON: {error}"))?;
        if let Some(number) = altered_integer(text) {
            return Err(format!(
                "the schema has the number {}, which no double and no integer of 64 bits is exactly; use one between \
                 -2^63 and 2^64, or a text",
                shortened(number)
            ));
        }
        let (grammar, patterns) = {
            let reading = Reading::new(&root);
            let grammar = writing::write(&reading, spelling).map_err(|Refusal(why)| why)?;
            (grammar, reading.into_patterns())
        };
        Ok((Self { root, patterns }, grammar))
    }

    /// Checks a finished document.
    ///
    /// # Errors
    /// The place in the document, and the keyword that it breaks.
    pub(super) fn check(&self, document: &str) -> Result<(), String> {
        let value: Value =
            serde_json::from_str(document).map_err(|error| format!("it is not JSON: {error}"))?;
        let rules = Rules {
            root: &self.root,
            patterns: &self.patterns,
        };
        validation::check(rules, &value)
    }

    /// What it takes, in bytes.
    pub(super) fn n_bytes(&self) -> usize {
        fn of(value: &Value) -> usize {
            const VALUE_BYTES: usize = 96;
            VALUE_BYTES
                + match value {
                    Value::String(text) => text.len(),
                    Value::Array(items) => items.iter().map(of).sum(),
                    Value::Object(map) => {
                        map.iter().map(|(name, value)| name.len() + of(value)).sum()
                    }
                    _ => 0,
                }
        }
        let patterns = self.patterns.iter();
        of(&self.root)
            + patterns
                .map(|(source, it)| source.len() + it.n_bytes())
                .sum::<usize>()
    }
}
