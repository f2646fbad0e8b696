//! Schemas that the SDK knows: what a model may write, by a JSON Schema, a regular expression or an EBNF text.

use crate::constrain::{GrammarConstraint, Schema};
use crate::matcher::Grammar;
use crate::{Model, Result};

/// Documents of any JSON, for [`Generator::constrain_with`](crate::Generator::constrain_with).
#[derive(Clone, Copy, Debug)]
pub struct AnyJson;

/// Documents that fit a JSON Schema, given as its text, for
/// [`Generator::constrain_with`](crate::Generator::constrain_with).
#[derive(Clone, Copy, Debug)]
pub struct JsonSchema<'a>(pub &'a str);

/// Texts that match a regular expression as a whole, for
/// [`Generator::constrain_with`](crate::Generator::constrain_with).
#[derive(Clone, Copy, Debug)]
pub struct Regex<'a>(pub &'a str);

/// Texts of a grammar in EBNF, the dialect of Lark or that of `root ::=`, for
/// [`Generator::constrain_with`](crate::Generator::constrain_with).
#[derive(Clone, Copy, Debug)]
pub struct Ebnf<'a>(pub &'a str);

impl Schema for AnyJson {
    fn build_constraint(&self, model: &Model) -> Result<GrammarConstraint> {
        Ok(GrammarConstraint::json(model))
    }
}

impl Schema for JsonSchema<'_> {
    fn build_constraint(&self, model: &Model) -> Result<GrammarConstraint> {
        GrammarConstraint::from_json_schema(self.0, model)
    }
}

impl Schema for Regex<'_> {
    fn build_constraint(&self, model: &Model) -> Result<GrammarConstraint> {
        GrammarConstraint::from_regex(self.0, model)
    }
}

impl Schema for Ebnf<'_> {
    fn build_constraint(&self, model: &Model) -> Result<GrammarConstraint> {
        GrammarConstraint::from_ebnf(self.0, model)
    }
}

impl Schema for &Grammar {
    fn build_constraint(&self, model: &Model) -> Result<GrammarConstraint> {
        Ok(GrammarConstraint::from_grammar(self, model))
    }
}
