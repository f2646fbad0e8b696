//! What can go wrong between text and tokens.

/// The result of this crate's calls.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of this crate. [`Error::code`] is stable; the message names the value, the limit and the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A file of the checkpoint is missing, damaged or of a kind that is not supported.
    #[error("{0}")]
    Model(String),
    /// The chat template is missing, does not parse, or refused the conversation.
    #[error("{0}")]
    Template(String),
    /// A token id lies outside the vocabulary.
    #[error("token id {id} is outside the vocabulary of {vocab_size} tokens; use ids from 0 to {}", vocab_size.saturating_sub(1))]
    Token {
        /// The id that was given.
        id: u32,
        /// The size of the vocabulary.
        vocab_size: u32,
    },
    /// A schema, a regular expression or a grammar cannot be enforced, does not parse, or takes too much.
    #[error("{0}")]
    Grammar(String),
    /// A token does not continue the text of a grammar.
    #[error("{0}")]
    Mismatch(String),
    /// An argument is out of its range.
    #[error("{0}")]
    Argument(String),
}

impl Error {
    /// The stable code, one of the list that the three languages share.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Model(_) => "invalid-model",
            Self::Template(_) => "template-error",
            Self::Token { .. } => "invalid-token",
            Self::Grammar(_) => "invalid-grammar",
            Self::Mismatch(_) => "grammar-mismatch",
            Self::Argument(_) => "invalid-argument",
        }
    }
}
