//! Keeping content from becoming control tokens.
//!
//! The reference tokenizer looks for added tokens before anything else, whoever wrote the text. A fence names the
//! tokens that only the owner of a template, or a program that encodes on purpose, may write.

use std::collections::BTreeSet;
use std::ops::Range;

use tokenizers::{
    AddedToken, AddedVocabulary, Model, Normalizer, OffsetReferential, OffsetType,
    PreTokenizedString, Token, Tokenizer,
};

use super::screen::Bounded;

/// A set of added tokens that content may not become.
pub(crate) struct Fence {
    ids: BTreeSet<u32>,
    /// The added tokens of the tokenizer, set to leave those inside the fence alone.
    outside: AddedVocabulary,
}

impl Fence {
    /// A fence around added tokens of `tokenizer`; other ids are ignored, since no text is parsed as them.
    pub(crate) fn new(
        tokenizer: &Tokenizer,
        ids: impl IntoIterator<Item = u32>,
    ) -> Result<Self, String> {
        let added = tokenizer.get_added_tokens_decoder();
        let fenced: Vec<(u32, AddedToken)> = ids
            .into_iter()
            .filter_map(|id| Some((id, added.get(&id)?.clone())))
            .collect();
        let mut outside = tokenizer.get_added_vocabulary().clone();
        outside
            .add_special_tokens(
                fenced.iter().map(|(_, token)| token.clone().special(true)),
                tokenizer.get_model(),
                tokenizer.get_normalizer(),
            )
            .map_err(|error| error.to_string())?;
        outside.set_encode_special_tokens(true);
        Ok(Self {
            ids: fenced.into_iter().map(|(id, _)| id).collect(),
            outside,
        })
    }

    /// Whether the fence keeps content from this token.
    pub(crate) fn holds(&self, id: u32) -> bool {
        self.ids.contains(&id)
    }

    /// The tokens inside, in id order.
    pub(crate) fn ids(&self) -> impl Iterator<Item = u32> + '_ {
        self.ids.iter().copied()
    }
}

/// An added token that a text spells.
pub(crate) struct Match {
    /// Its id.
    pub(crate) id: u32,
    /// The bytes of the text that it takes up, spaces that it swallows included.
    pub(crate) range: Range<usize>,
}

/// The added tokens of `added` that a text spells, in order.
pub(super) fn matches(normalizer: &Bounded<'_>, added: &AddedVocabulary, text: &str) -> Vec<Match> {
    matches_of(&added.extract_and_normalize(Some(normalizer), text))
}

fn matches_of(split: &PreTokenizedString) -> Vec<Match> {
    let id = |tokens: &Option<Vec<Token>>| Some(tokens.as_ref()?.first()?.id);
    split
        .get_splits(OffsetReferential::Original, OffsetType::Byte)
        .into_iter()
        .filter_map(|(_, (start, end), tokens)| {
            Some(Match {
                id: id(tokens)?,
                range: start..end,
            })
        })
        .collect()
}

/// The first half of encoding: `text` split at its added tokens and normalized, where the byte range `content` holds
/// none of the fence.
pub(super) fn split(
    tokenizer: &Tokenizer,
    normalizer: &Bounded<'_>,
    text: &str,
    content: Range<usize>,
    fence: &Fence,
) -> tokenizers::Result<PreTokenizedString> {
    let whole = tokenizer
        .get_added_vocabulary()
        .extract_and_normalize(Some(normalizer), text);
    normalizer.check()?;
    // Each text is counted anew.
    let normalizer = &normalizer.again();
    let touches = |found: &Match| {
        // Spaces that a token of the template swallows may be the content's.
        let spelled = text.get(found.range.clone()).unwrap_or_default();
        let start = found.range.start + (spelled.len() - spelled.trim_start().len());
        let end = start + spelled.trim().len();
        start < content.end && content.start < end
    };
    if !matches_of(&whole)
        .iter()
        .any(|found| fence.holds(found.id) && touches(found))
    {
        return Ok(whole);
    }
    let parts = [
        (0..content.start, tokenizer.get_added_vocabulary()),
        (content.clone(), &fence.outside),
        (content.end..text.len(), tokenizer.get_added_vocabulary()),
    ];
    let mut found = Vec::new();
    for (part, added) in parts {
        for each in matches(
            normalizer,
            added,
            text.get(part.clone()).unwrap_or_default(),
        ) {
            found.push(Match {
                id: each.id,
                range: part.start + each.range.start..part.start + each.range.end,
            });
        }
    }
    normalizer.check()?;
    split_at(&normalizer.again(), text, &found)
}

/// Where the tokens among pieces stand in the text of all of them.
pub(super) fn found_in(pieces: &[(String, Option<u32>)]) -> Vec<Match> {
    let mut found = Vec::new();
    let mut start = 0;
    for (text, id) in pieces {
        let range = start..start + text.len();
        start = range.end;
        if let Some(id) = *id {
            found.push(Match { id, range });
        }
    }
    found
}

/// `text` with the tokens of `found` set in their places and the rest normalized.
pub(super) fn split_at(
    normalizer: &Bounded<'_>,
    text: &str,
    found: &[Match],
) -> tokenizers::Result<PreTokenizedString> {
    let mut split = PreTokenizedString::from(text);
    split.split(|_, whole| {
        let mut pieces = Vec::with_capacity(2 * found.len() + 1);
        let mut done = 0;
        let slice = |range: Range<usize>| {
            whole
                .slice(tokenizers::normalizer::Range::Original(range))
                .ok_or("an added token ends inside a character")
        };
        for each in found {
            if done < each.range.start {
                pieces.push((slice(done..each.range.start)?, None));
            }
            let piece = slice(each.range.clone())?;
            let spelled = piece.get().to_owned();
            let len = spelled.len();
            pieces.push((piece, Some(vec![Token::new(each.id, spelled, (0, len))])));
            done = each.range.end;
        }
        if done < text.len() {
            pieces.push((slice(done..text.len())?, None));
        }
        Ok(pieces)
    })?;
    split.normalize(|piece| normalizer.normalize(piece))?;
    Ok(split)
}

/// `tokens` of `text` without any of `forbidden`.
///
/// Some tokenizers (Unigram, byte-pair encoding with `ignore_merges`) hold their control tokens in the vocabulary of
/// text too, so that a plain text can become one. Such a text is encoded character by character instead.
pub(crate) fn defuse(
    tokenizer: &Tokenizer,
    tokens: Vec<Token>,
    text: &str,
    forbidden: impl Fn(u32) -> bool,
) -> tokenizers::Result<Vec<Token>> {
    if !tokens.iter().any(|token| forbidden(token.id)) {
        return Ok(tokens);
    }
    let mut single = Vec::with_capacity(text.len());
    for (start, character) in text.char_indices() {
        let end = start + character.len_utf8();
        for token in tokenizer.get_model().tokenize(&text[start..end])? {
            if forbidden(token.id) {
                return Err(format!("the character {character:?} is a control token").into());
            }
            single.push(Token::new(token.id, token.value, (start, end)));
        }
    }
    Ok(single)
}

/// The token that stands for text which the model of the tokenizer does not know.
pub(crate) fn unknown_token(tokenizer: &Tokenizer) -> Option<u32> {
    // A noncharacter is in no vocabulary. A tokenizer that falls back to bytes gives several tokens, or one byte's.
    let tokens = tokenizer.get_model().tokenize("\u{10FFFE}").ok()?;
    match tokens.as_slice() {
        [only] => Some(only.id),
        _ => None,
    }
}
