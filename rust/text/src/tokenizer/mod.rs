//! The tokenizer of a checkpoint: text to ids and back.

mod fence;
mod screen;
mod split_regex;
mod vocab;

use std::fmt;
use std::path::Path;

use tokenizers::{Model, OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer};

use crate::caught::caught;
use crate::error::{Error, Result};
use crate::files;
use crate::limits::{MAX_TEXT_BYTES, MAX_TOKENIZER_FILE_BYTES};
use crate::special::SpecialTokens;
use crate::utf8::REPLACEMENT_BYTES;

pub(crate) use fence::Fence;
use screen::{Bounded, screen};
use vocab::Vocab;

/// The tokenizer of a checkpoint, read from its `tokenizer.json`.
///
/// Its ids are those of the reference tokenizer with `add_special_tokens=False`: nothing is put before or behind the
/// text. It is immutable; share it in an [`Arc`](std::sync::Arc).
pub struct Tokenizer {
    inner: tokenizers::Tokenizer,
    /// How many bytes its normalizer makes of one at most.
    growth: usize,
    vocab: Vocab,
    /// Keeps content from becoming one of the tokens that the checkpoint declares special.
    fence: Fence,
    /// The id that stands for text that the model of the tokenizer does not know, if it has one: text may become it.
    unknown: Option<u32>,
    split_regex: String,
}

impl fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokenizer")
            .field("vocab_size", &self.vocab.size())
            .finish_non_exhaustive()
    }
}

impl Tokenizer {
    /// Reads `tokenizer.json` of a model directory. The tokens that its configuration names, such as `eos_token`, are
    /// control tokens too.
    ///
    /// `model_vocab_size` is the width V of the model's logits. It may exceed the tokenizer's own vocabulary
    /// (checkpoints pad their embeddings): the ids between have no text. 0 stands for "as the tokenizer says". Only
    /// added tokens may lie beyond it.
    ///
    /// # Errors
    /// `invalid-model` when the file is missing, too large, damaged, of another model, or of a kind whose tokens have
    /// no bytes of their own.
    pub fn from_dir(dir: &Path, model_vocab_size: u32) -> Result<Self> {
        let path = dir.join("tokenizer.json");
        let Some(bytes) = files::read(&path, MAX_TOKENIZER_FILE_BYTES)? else {
            return Err(Error::Model(format!(
                "{} is missing; {}",
                path.display(),
                files::REMEDY
            )));
        };
        let mut tokenizer =
            Self::parse(&bytes, model_vocab_size).map_err(|why| files::damaged(&path, &why))?;
        let named = SpecialTokens::from_dir(dir)?;
        let ids = named.iter().filter_map(|(_, token)| tokenizer.id_of(token));
        tokenizer.fence = tokenizer.fence_with(ids.collect::<Vec<_>>())?;
        Ok(tokenizer)
    }

    /// Reads the bytes of a `tokenizer.json`; see [`Tokenizer::from_dir`].
    ///
    /// # Errors
    /// `invalid-model` when they are damaged, or of a kind whose tokens have no bytes of their own.
    pub fn from_bytes(bytes: &[u8], model_vocab_size: u32) -> Result<Self> {
        Self::parse(bytes, model_vocab_size).map_err(|why| {
            Error::Model(format!(
                "tokenizer.json is damaged: {why}; {}",
                files::REMEDY
            ))
        })
    }

    fn parse(bytes: &[u8], model_vocab_size: u32) -> std::result::Result<Self, String> {
        caught(|| Self::build(bytes, model_vocab_size, screen(bytes)?))
            .unwrap_or_else(|| Err("its parts do not fit each other".to_owned()))
    }

    fn build(
        bytes: &[u8],
        model_vocab_size: u32,
        growth: usize,
    ) -> std::result::Result<Self, String> {
        let inner = tokenizers::Tokenizer::from_bytes(bytes).map_err(|error| error.to_string())?;
        let vocab = Vocab::new(&inner, model_vocab_size)?;
        let special = inner
            .get_added_tokens_decoder()
            .into_iter()
            .filter(|(_, token)| token.special)
            .map(|(id, _)| id);
        let fence = Fence::new(&inner, special)?;
        let unknown = fence::unknown_token(&inner);
        let split_regex = split_regex::of(&inner);
        Ok(Self {
            inner,
            growth,
            vocab,
            fence,
            unknown,
            split_regex,
        })
    }

    /// Text to ids. Control tokens in the text are parsed, as in the reference tokenizer.
    ///
    /// # Errors
    /// `invalid-argument` for a text longer than [`MAX_TEXT_BYTES`]; `invalid-model` when a damaged `tokenizer.json`
    /// shows only now.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>> {
        encoded(text, || {
            let added = self.inner.get_added_vocabulary();
            let normalizer = self.normalizer(text);
            let split = added.extract_and_normalize(Some(&normalizer), text);
            normalizer.check()?;
            self.ids(split, |normalized| {
                self.inner.get_model().tokenize(normalized)
            })
        })
    }

    /// Text to ids, where text that spells a control token stays text. Otherwise as [`Tokenizer::encode`].
    ///
    /// # Errors
    /// As [`Tokenizer::encode`].
    pub fn encode_content(&self, text: &str) -> Result<Vec<u32>> {
        self.encode_fenced(text, 0..text.len(), &self.fence)
    }

    /// Ids to text: control tokens are shown, and bytes that are not UTF-8 become U+FFFD.
    ///
    /// # Errors
    /// `invalid-token` for an id outside the vocabulary; `invalid-argument` for a text longer than [`MAX_TEXT_BYTES`].
    pub fn decode(&self, tokens: &[u32]) -> Result<String> {
        let mut bytes = Vec::new();
        for &id in tokens {
            self.check_token(id)?;
            let token = self.vocab.bytes(id).unwrap_or_default();
            if bytes.len() + token.len() > MAX_TEXT_BYTES {
                return Err(Error::Argument(format!(
                    "the text of {} tokens is longer than the limit of {MAX_TEXT_BYTES} bytes; decode them in parts",
                    tokens.len()
                )));
            }
            bytes.extend_from_slice(token);
        }
        let bytes = self.vocab.strip_lead(&bytes);
        Ok(String::from_utf8_lossy(bytes).into_owned())
    }

    /// The most bytes of text that tokens stand for: each of their bytes may become U+FFFD.
    pub fn text_bytes(&self, tokens: &[u32]) -> usize {
        let bytes = tokens.iter().filter_map(|&id| self.vocab.bytes(id));
        bytes.map(<[u8]>::len).sum::<usize>() * REPLACEMENT_BYTES
    }

    /// Every id that has a token, with its raw bytes, in id order. The bytes of a sequence of tokens, joined, are the
    /// UTF-8 of its text.
    pub fn vocabs(&self) -> (Vec<u32>, Vec<Vec<u8>>) {
        self.list(|_| true)
    }

    /// The control tokens with their bytes, in id order.
    pub fn special_tokens(&self) -> (Vec<u32>, Vec<Vec<u8>>) {
        self.list(|id| self.fence.holds(id))
    }

    /// The regular expression that splits text before byte-pair encoding; empty where the tokenizer has none.
    pub fn split_regex(&self) -> &str {
        &self.split_regex
    }

    /// Number of ids: the width of the model's logits, or the tokenizer's own count where that is larger.
    pub fn vocab_size(&self) -> u32 {
        self.vocab.size()
    }

    /// Bytes of the longest token.
    pub fn longest_token_bytes(&self) -> usize {
        self.vocab.longest_bytes()
    }

    /// The raw bytes of a token; `None` for an id without one.
    pub fn token_bytes(&self, id: u32) -> Option<&[u8]> {
        self.vocab.bytes(id)
    }

    /// Whether the checkpoint declares this id a special token.
    pub fn is_control(&self, id: u32) -> bool {
        self.fence.holds(id)
    }

    /// The special tokens by their ids, in order.
    pub(crate) fn control_tokens(&self) -> impl Iterator<Item = u32> + '_ {
        self.fence.ids()
    }

    /// `invalid-token` for an id outside the vocabulary.
    pub(crate) fn check_token(&self, id: u32) -> Result<()> {
        let vocab_size = self.vocab_size();
        if id < vocab_size {
            Ok(())
        } else {
            Err(Error::Token { id, vocab_size })
        }
    }

    /// The id of the token with this text.
    pub(crate) fn id_of(&self, token: &str) -> Option<u32> {
        self.inner.token_to_id(token)
    }

    /// The added tokens that `text` spells, whether special or not.
    pub(crate) fn added_tokens_in(&self, text: &str) -> Vec<u32> {
        fence::matches(
            &self.normalizer(text),
            self.inner.get_added_vocabulary(),
            text,
        )
        .into_iter()
        .map(|found| found.id)
        .collect()
    }

    /// A text split at the added tokens that it spells; the parts, joined, are the text.
    pub(crate) fn split_at_added<'t>(&self, text: &'t str) -> Vec<&'t str> {
        let mut parts = Vec::new();
        let mut done = 0;
        for found in fence::matches(
            &self.normalizer(text),
            self.inner.get_added_vocabulary(),
            text,
        ) {
            for end in [found.range.start, found.range.end] {
                parts.extend(text.get(done..end).filter(|part| !part.is_empty()));
                done = end;
            }
        }
        parts.extend(text.get(done..).filter(|part| !part.is_empty()));
        parts
    }

    /// Encodes pieces in order: added tokens by their ids, and texts that never become one of `fence`.
    pub(crate) fn encode_pieces(
        &self,
        pieces: &[(String, Option<u32>)],
        fence: &Fence,
    ) -> Result<Vec<u32>> {
        let text: String = pieces.iter().map(|(text, _)| text.as_str()).collect();
        encoded(&text, || {
            let normalizer = self.normalizer(&text);
            let split = fence::split_at(&normalizer, &text, &fence::found_in(pieces))?;
            normalizer.check()?;
            self.ids(split, |normalized| {
                let tokens = self.inner.get_model().tokenize(normalized)?;
                fence::defuse(&self.inner, tokens, normalized, |id| {
                    fence.holds(id) && Some(id) != self.unknown
                })
            })
        })
    }

    /// A text split at the added tokens that it spells, with their ids; the pieces, joined, are the text.
    pub(crate) fn pieces_of(&self, text: &str) -> Vec<(String, Option<u32>)> {
        let added = self.inner.get_added_vocabulary();
        let mut pieces = Vec::new();
        let mut done = 0;
        for found in fence::matches(&self.normalizer(text), added, text) {
            let before = text.get(done..found.range.start).unwrap_or_default();
            if !before.is_empty() {
                pieces.push((before.to_owned(), None));
            }
            let spelled = text.get(found.range.clone()).unwrap_or_default();
            pieces.push((spelled.to_owned(), Some(found.id)));
            done = found.range.end;
        }
        let rest = text.get(done..).unwrap_or_default();
        if !rest.is_empty() {
            pieces.push((rest.to_owned(), None));
        }
        pieces
    }

    /// A fence around further tokens besides those that the checkpoint declares special.
    pub(crate) fn fence_with(&self, further: impl IntoIterator<Item = u32>) -> Result<Fence> {
        Fence::new(&self.inner, self.fence.ids().chain(further)).map_err(Error::Model)
    }

    /// The part of a reply's text that stands for the space which the tokenizer puts before a text; see
    /// [`Vocab::strip_lead`].
    pub(crate) fn strip_lead<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        self.vocab.strip_lead(bytes)
    }

    /// Encodes a text of which the byte range `content` was written by someone who may not write control tokens.
    ///
    /// The text is encoded whole, so that the ids are those of the reference tokenizer, unless its content spells a
    /// token inside `fence`: then the text is split at the tokens outside the content, and what the content spells
    /// stays text.
    pub(crate) fn encode_fenced(
        &self,
        text: &str,
        content: std::ops::Range<usize>,
        fence: &Fence,
    ) -> Result<Vec<u32>> {
        encoded(text, || {
            let normalizer = self.normalizer(text);
            let split = fence::split(&self.inner, &normalizer, text, content, fence)?;
            normalizer.check()?;
            self.ids(split, |normalized| {
                let tokens = self.inner.get_model().tokenize(normalized)?;
                fence::defuse(&self.inner, tokens, normalized, |id| {
                    fence.holds(id) && Some(id) != self.unknown
                })
            })
        })
    }

    /// The second half of encoding: splits that hold no token yet are split further and given to `tokenize`.
    fn ids(
        &self,
        mut split: PreTokenizedString,
        tokenize: impl Fn(&str) -> tokenizers::Result<Vec<tokenizers::Token>>,
    ) -> tokenizers::Result<Vec<u32>> {
        if let Some(pre_tokenizer) = self.inner.get_pre_tokenizer() {
            pre_tokenizer.pre_tokenize(&mut split)?;
        }
        // One split after the other: the tokens of a long text, with their names, take ten times as much as their ids.
        let mut ids = Vec::new();
        for (normalized, _, tokens) in
            split.get_splits(OffsetReferential::Normalized, OffsetType::None)
        {
            match tokens {
                Some(tokens) => ids.extend(tokens.iter().map(|token| token.id)),
                None => ids.extend(tokenize(normalized)?.iter().map(|token| token.id)),
            }
        }
        Ok(ids)
    }

    /// The normalizer for one text.
    fn normalizer(&self, text: &str) -> Bounded<'_> {
        Bounded::new(self.inner.get_normalizer(), self.growth, text.len())
    }

    fn list(&self, keep: impl Fn(u32) -> bool) -> (Vec<u32>, Vec<Vec<u8>>) {
        (0..self.vocab_size())
            .filter(|&id| keep(id))
            .filter_map(|id| self.vocab.bytes(id).map(|bytes| (id, bytes.to_vec())))
            .unzip()
    }
}

/// The ids that `encode` gives for `text`. Any text can be encoded: where it fails, the file of the tokenizer is at
/// fault.
fn encoded(text: &str, encode: impl FnOnce() -> tokenizers::Result<Vec<u32>>) -> Result<Vec<u32>> {
    if text.len() > MAX_TEXT_BYTES {
        return Err(Error::Argument(format!(
            "a text of {} bytes is longer than the limit of {MAX_TEXT_BYTES} bytes; encode it in parts",
            text.len()
        )));
    }
    let why = match caught(encode) {
        Some(Ok(ids)) => return Ok(ids),
        Some(Err(error)) => error.to_string(),
        None => "its parts do not fit each other".to_owned(),
    };
    Err(Error::Model(format!(
        "tokenizer.json cannot encode a text: {why}; {}",
        files::REMEDY
    )))
}
