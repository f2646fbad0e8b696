//! Texts of a program inside what a template writes.
//!
//! The schemas of tools stand in the middle of a template's own text, which holds control tokens. So that none comes
//! from a schema, the characters of its texts at which control tokens begin and end are exchanged for private ones
//! before the template is evaluated. What spells a control token then is the template's, and the characters are put
//! back where text is made tokens.

use std::collections::BTreeSet;

use crate::error::{Error, Result};

use super::list::ToolList;

/// Where the private characters begin that stand for those of the basic plane.
const BASE: u32 = 0xF_0000;

/// Exchanges characters for private ones.
#[derive(Debug, Clone, Default)]
pub(crate) struct Mask {
    characters: BTreeSet<char>,
}

impl Mask {
    /// A mask for the characters at which these tokens begin and end. Letters and digits stay: a template may compare
    /// them.
    pub(crate) fn new<'a>(tokens: impl Iterator<Item = &'a [u8]>) -> Self {
        let ends = tokens
            .filter_map(|token| std::str::from_utf8(token).ok())
            .flat_map(|token| {
                token
                    .trim()
                    .chars()
                    .take(1)
                    .chain(token.trim().chars().last())
            });
        Self {
            characters: ends
                .filter(|each| !each.is_alphanumeric() && !each.is_whitespace())
                .filter(|&each| u32::from(each) < 0x1_0000)
                .collect(),
        }
    }

    /// The tools with their texts exchanged.
    ///
    /// # Errors
    /// `invalid-argument` for a text that holds such a private character itself.
    pub(crate) fn tools(&self, tools: &ToolList) -> Result<ToolList> {
        if holds_private(&tools.value().to_string()) {
            return Err(Error::Argument(
                "the schema of a tool has a character between U+F0000 and U+FFFFF, which are reserved; leave it out"
                    .to_owned(),
            ));
        }
        Ok(tools.with_texts(|text| text.chars().map(|each| self.exchanged(each)).collect()))
    }

    fn exchanged(&self, character: char) -> char {
        if !self.characters.contains(&character) {
            return character;
        }
        char::from_u32(BASE + u32::from(character)).unwrap_or(character)
    }
}

impl ToolList {
    /// The tools with the characters of their texts put back.
    pub(crate) fn unmasked(&self) -> Self {
        self.with_texts(unmasked)
    }
}

/// Whether a text holds private characters.
pub(crate) fn holds_private(text: &str) -> bool {
    // In UTF-8 they begin with the bytes F3 B0 to F3 BF.
    text.as_bytes()
        .windows(2)
        .any(|pair| pair[0] == 0xF3 && pair[1] >= 0xB0)
}

/// The text with the characters put back.
pub(crate) fn unmasked(text: &str) -> String {
    let back = |character: char| {
        u32::from(character)
            .checked_sub(BASE)
            .filter(|&code| code < 0x1_0000)
            .and_then(char::from_u32)
            .unwrap_or(character)
    };
    text.chars().map(back).collect()
}
