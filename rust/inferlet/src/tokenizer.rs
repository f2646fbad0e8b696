//! Text to token ids and back.

use std::cell::OnceCell;

use crate::Result;
use crate::bindings::pie::core::tokenizer as raw;

/// The tokenizer of a model, from [`Model::tokenizer`](crate::Model::tokenizer).
#[derive(Debug)]
pub struct Tokenizer {
    raw: raw::Tokenizer,
    split_regex: OnceCell<String>,
}

impl Tokenizer {
    pub(crate) fn new(raw: raw::Tokenizer) -> Self {
        Self {
            raw,
            split_regex: OnceCell::new(),
        }
    }

    pub(crate) fn raw(&self) -> &raw::Tokenizer {
        &self.raw
    }

    /// Token ids of a text. Control tokens in it are parsed; nothing is added at the front or the end. What
    /// [`Tokenizer::try_encode`] gives as an error ends the program here.
    pub fn encode(&self, text: &str) -> Vec<u32> {
        self.raw.encode(text)
    }

    /// Token ids of a text that may be too long.
    ///
    /// # Errors
    /// `limit-message`: a text of more than 4 MiB; `limit-engine-memory`, `limit-queue`.
    pub fn try_encode(&self, text: &str) -> Result<Vec<u32>> {
        Ok(self.raw.try_encode(text)?)
    }

    /// The text of token ids, control tokens included; bytes that are not UTF-8 become U+FFFD.
    ///
    /// # Errors
    /// `invalid-token`: an id outside the vocabulary.
    pub fn decode(&self, ids: &[u32]) -> Result<String> {
        Ok(self.raw.decode(ids)?)
    }

    /// How many ids there are: V, the width of a row of logits.
    pub fn vocab_size(&self) -> u32 {
        self.raw.vocab_size()
    }

    /// Every id and its raw bytes, as two lists of `[V]`, in id order.
    pub fn vocabs(&self) -> (Vec<u32>, Vec<Vec<u8>>) {
        self.raw.vocabs()
    }

    /// The control tokens and their bytes, as two lists of the same length, in id order.
    pub fn special_tokens(&self) -> (Vec<u32>, Vec<Vec<u8>>) {
        self.raw.special_tokens()
    }

    /// The regular expression that splits text before byte-pair encoding; empty where the tokenizer has none.
    pub fn split_regex(&self) -> &str {
        self.split_regex.get_or_init(|| self.raw.split_regex())
    }
}
