//! Constraints: who says in each step which tokens may be drawn.

use std::fmt;

use crate::bindings::pie::core::grammar as raw;
use crate::matcher::{Grammar, Matcher};
use crate::{Model, Result};

/// Restricts what a generator draws, step by step.
pub trait Constrain: Send {
    /// Takes what the step before accepted, nothing at first, and returns the mask of the tokens that may be drawn
    /// next, as run lengths ([`brle`](crate::brle)). An empty mask restricts nothing. It is called once in each step.
    fn step(&mut self, accepted: &[u32]) -> &[u32];

    /// The matcher that the engine may walk in place of asking for each step.
    #[doc(hidden)]
    fn matcher(&self) -> Option<&Matcher> {
        None
    }
}

/// What makes a constraint for a model, once for each generation.
pub trait Schema {
    /// A fresh constraint for a model, at the beginning of a text. One of the program's own becomes one by
    /// [`GrammarConstraint::of`].
    ///
    /// # Errors
    /// Whatever keeps it from being made.
    fn build_constraint(&self, model: &Model) -> Result<GrammarConstraint>;
}

/// One that is chosen while the program runs.
impl Constrain for Box<dyn Constrain> {
    fn step(&mut self, accepted: &[u32]) -> &[u32] {
        (**self).step(accepted)
    }

    fn matcher(&self) -> Option<&Matcher> {
        (**self).matcher()
    }
}

/// One that is chosen while the program runs.
impl Schema for Box<dyn Schema> {
    fn build_constraint(&self, model: &Model) -> Result<GrammarConstraint> {
        (**self).build_constraint(model)
    }
}

/// A constraint by a grammar. The engine walks it by itself: the program has no part in a step.
#[derive(Debug)]
pub struct GrammarConstraint(Kind);

enum Kind {
    Matcher { matcher: Matcher, mask: Vec<u32> },
    Own(Box<dyn Constrain>),
}

impl fmt::Debug for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Matcher { matcher, .. } => matcher.fmt(formatter),
            Self::Own(_) => formatter.write_str("Own"),
        }
    }
}

impl GrammarConstraint {
    /// A constraint that goes on from where a matcher stands.
    pub fn new(matcher: Matcher) -> Self {
        Self(Kind::Matcher {
            matcher,
            mask: Vec::new(),
        })
    }

    /// A constraint of the program's own, for a schema that makes it.
    pub fn of(constraint: impl Constrain + 'static) -> Self {
        Self(Kind::Own(Box::new(constraint)))
    }

    /// A constraint by a grammar that was checked.
    pub fn from_grammar(grammar: &Grammar, model: &Model) -> Self {
        Self::new(Matcher::new(grammar, model.tokenizer()))
    }

    /// A constraint to documents of any JSON.
    pub fn json(model: &Model) -> Self {
        match Grammar::json() {
            Ok(grammar) => Self::from_grammar(&grammar, model),
            Err(error) => Self::new(Matcher::of(Err::<raw::Matcher, _>(error))),
        }
    }

    /// A constraint to documents that fit a JSON Schema, given as its text.
    ///
    /// # Errors
    /// `invalid-grammar` for what cannot be enforced.
    pub fn from_json_schema(schema: &str, model: &Model) -> Result<Self> {
        Ok(Self::from_grammar(
            &Grammar::from_json_schema(schema)?,
            model,
        ))
    }

    /// A constraint to texts that match a regular expression as a whole.
    ///
    /// # Errors
    /// As [`GrammarConstraint::from_json_schema`].
    pub fn from_regex(pattern: &str, model: &Model) -> Result<Self> {
        Ok(Self::from_grammar(&Grammar::from_regex(pattern)?, model))
    }

    /// A constraint to texts of a grammar in EBNF: the dialect of Lark, or that of `root ::=`.
    ///
    /// # Errors
    /// As [`GrammarConstraint::from_json_schema`].
    pub fn from_ebnf(source: &str, model: &Model) -> Result<Self> {
        Ok(Self::from_grammar(&Grammar::from_ebnf(source)?, model))
    }
}

impl Constrain for GrammarConstraint {
    /// Goes on by what the step before accepted. Where the text cannot go on so, no token is allowed, and the step that
    /// asked returns why.
    fn step(&mut self, accepted: &[u32]) -> &[u32] {
        match &mut self.0 {
            Kind::Own(constraint) => constraint.step(accepted),
            Kind::Matcher { matcher, mask } => {
                *mask = match matcher.accept_tokens(accepted) {
                    Ok(()) => matcher.next_token_logit_mask(),
                    Err(error) => {
                        matcher.keep(error);
                        vec![1]
                    }
                };
                mask
            }
        }
    }

    fn matcher(&self) -> Option<&Matcher> {
        match &self.0 {
            Kind::Matcher { matcher, .. } => Some(matcher),
            Kind::Own(constraint) => constraint.matcher(),
        }
    }
}
