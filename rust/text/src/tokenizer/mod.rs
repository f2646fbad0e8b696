//! The tokenizer of a checkpoint.
use crate::error::Result;
use std::path::Path;

/// The tokenizer of a checkpoint, read from its `tokenizer.json`. `Send + Sync`; share it in an `Arc`.
pub struct Tokenizer {}

impl Tokenizer {
    /// Reads `tokenizer.json` of a model directory. `model_vocab_size` is the number of rows of the model's logits, which may be larger than
    /// the tokenizer's vocabulary: the ids between have no text.
    pub fn from_dir(_dir: &Path, _model_vocab_size: u32) -> Result<Self> {
        todo!()
    }
    /// From the bytes of a `tokenizer.json`.
    pub fn from_bytes(_bytes: &[u8], _model_vocab_size: u32) -> Result<Self> {
        todo!()
    }
    /// Text to ids; control tokens in the text are parsed; nothing is added.
    pub fn encode(&self, _text: &str) -> Result<Vec<u32>> {
        todo!()
    }
    /// Text to ids; text never becomes a control token.
    pub fn encode_content(&self, _text: &str) -> Result<Vec<u32>> {
        todo!()
    }
    /// Ids to text, control tokens included; bytes that are not UTF-8 become U+FFFD.
    pub fn decode(&self, _tokens: &[u32]) -> Result<String> {
        todo!()
    }
    /// Every id that has a token, with its raw bytes, in id order.
    pub fn vocabs(&self) -> (Vec<u32>, Vec<Vec<u8>>) {
        todo!()
    }
    /// The control tokens with their bytes, in id order.
    pub fn special_tokens(&self) -> (Vec<u32>, Vec<Vec<u8>>) {
        todo!()
    }
    /// The regular expression that splits text before byte-pair encoding; empty where there is none.
    pub fn split_regex(&self) -> &str {
        todo!()
    }
    /// Number of ids: the larger of the tokenizer's and the model's.
    pub fn vocab_size(&self) -> u32 {
        todo!()
    }
    /// The raw bytes of a token; `None` for an id without a token.
    pub fn token_bytes(&self, _id: u32) -> Option<&[u8]> {
        todo!()
    }
    /// Whether the id is a control token.
    pub fn is_control(&self, _id: u32) -> bool {
        todo!()
    }
}
