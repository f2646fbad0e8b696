//! JSON Schema: what a grammar enforces of it, and what finished documents are checked by.
//!
//! - [`document`]: the text, its places and references, the keywords that there are;
//! - [`shape`]: what a schema allows, type by type; [`reading`] and [`keywords`] make shapes of keywords,
//!   [`negation`] of their opposites;
//! - [`nodes`]: what a document may reach; [`writing`]: the grammar of it, by a [`Spelling`], of [`terminals`];
//! - [`validation`]: the check of a document, apart from all of these.

mod document;
mod formats;
mod keywords;
mod negation;
mod nodes;
mod reading;
mod shape;
mod size;
mod spelling;
mod terminals;
mod validation;
mod writing;

use serde_json::Value;

use document::Refusal;
use reading::Reading;
pub(super) use spelling::Spelling;

/// The longest schema, in bytes.
pub(super) const MAX_SCHEMA_BYTES: usize = 1 << 20;

/// A schema that was read.
#[derive(Debug, Clone)]
pub(super) struct Schema {
    root: Value,
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
        let grammar = {
            let reading = Reading::new(&root);
            writing::write(&reading, spelling).map_err(|Refusal(why)| why)?
        };
        Ok((Self { root }, grammar))
    }

    /// Checks a finished document.
    ///
    /// # Errors
    /// The place in the document, and the keyword that it breaks.
    pub(super) fn check(&self, document: &str) -> Result<(), String> {
        let value: Value =
            serde_json::from_str(document).map_err(|error| format!("it is not JSON: {error}"))?;
        validation::check(&self.root, &self.root, &value)
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
        of(&self.root)
    }
}
