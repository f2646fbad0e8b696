//! The special tokens that a checkpoint names.

use std::path::Path;

use crate::error::Result;
use crate::files;
use crate::limits::MAX_SPECIAL_TOKEN_BYTES;

/// The special tokens that a checkpoint names: `bos_token`, `eos_token` and their like. A template sees them as
/// variables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SpecialTokens {
    tokens: Vec<(String, String)>,
}

/// The names under which a checkpoint declares special tokens.
const NAMES: [&str; 7] = [
    "bos_token",
    "eos_token",
    "unk_token",
    "sep_token",
    "pad_token",
    "cls_token",
    "mask_token",
];

impl SpecialTokens {
    /// Tokens by name, such as `("bos_token", "<s>")`.
    pub fn new<N: Into<String>, T: Into<String>>(tokens: impl IntoIterator<Item = (N, T)>) -> Self {
        Self {
            tokens: tokens
                .into_iter()
                .map(|(name, token)| (name.into(), token.into()))
                .collect(),
        }
    }

    /// Those of `tokenizer_config.json`, and those of `special_tokens_map.json` that it does not name.
    ///
    /// # Errors
    /// `invalid-model` for a damaged file.
    pub fn from_dir(dir: &Path) -> Result<Self> {
        let mut tokens: Vec<(String, String)> = Vec::new();
        for file in ["tokenizer_config.json", "special_tokens_map.json"] {
            let Some(config) = files::read_json(&dir.join(file))? else {
                continue;
            };
            let path = dir.join(file);
            for name in NAMES {
                // A text, or an object that describes the token.
                let token = config[name]
                    .as_str()
                    .or_else(|| config[name]["content"].as_str());
                if let Some(token) = token.filter(|token| token.len() > MAX_SPECIAL_TOKEN_BYTES) {
                    return Err(files::damaged(
                        &path,
                        &format!(
                            "its {name} has {} bytes, and the limit is {MAX_SPECIAL_TOKEN_BYTES}",
                            token.len()
                        ),
                    ));
                }
                if let Some(token) =
                    token.filter(|_| !tokens.iter().any(|(known, _)| known == name))
                {
                    tokens.push((name.to_owned(), token.to_owned()));
                }
            }
        }
        Ok(Self { tokens })
    }

    /// The text of a token by name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.tokens
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, token)| token.as_str())
    }

    /// Every token with its name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.tokens
            .iter()
            .map(|(name, token)| (name.as_str(), token.as_str()))
    }
}
