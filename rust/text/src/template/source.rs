//! Finding a checkpoint's template and the special tokens that it may use.

use std::path::Path;

use minijinja::Value;
use serde_json::Value as Json;

use crate::error::{Error, Result};
use crate::files;

/// The special tokens that a template sees as variables: `bos_token`, `eos_token` and their like.
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
            for name in NAMES {
                // A text, or an object that describes the token.
                let token = config[name]
                    .as_str()
                    .or_else(|| config[name]["content"].as_str());
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

    /// As variables of a template.
    pub(super) fn variables(&self) -> Value {
        self.tokens
            .iter()
            .map(|(name, token)| (name.as_str(), token.as_str()))
            .collect()
    }
}

/// The template's source; `None` when the directory has none.
pub(super) fn from_dir(dir: &Path) -> Result<Option<String>> {
    if let Some(source) = files::read_text(&dir.join("chat_template.jinja"))? {
        return Ok(Some(source));
    }
    for file in ["tokenizer_config.json", "chat_template.json"] {
        let path = dir.join(file);
        let Some(config) = files::read_json(&path)? else {
            continue;
        };
        match &config["chat_template"] {
            Json::Null => {}
            Json::String(source) => return Ok(Some(source.clone())),
            Json::Array(named) => return default_of(&path, named).map(Some),
            _ => {
                return Err(files::damaged(
                    &path,
                    "its chat_template is neither a text nor a list of named texts",
                ));
            }
        }
    }
    Ok(None)
}

/// The template called `default` of a list of named ones.
fn default_of(path: &Path, named: &[Json]) -> Result<String> {
    let default = named
        .iter()
        .find(|each| each["name"].as_str() == Some("default"));
    match default.and_then(|each| each["template"].as_str()) {
        Some(source) => Ok(source.to_owned()),
        None => {
            let names: Vec<&str> = named
                .iter()
                .filter_map(|each| each["name"].as_str())
                .collect();
            Err(Error::Template(format!(
                "{} names the chat templates {names:?}, none of them `default`; name the one to use `default`",
                path.display()
            )))
        }
    }
}

/// The source with its `{% generation %}` blocks turned into blocks that always apply: they only mark what the model says, for training.
pub(super) fn without_generation_tags(source: &str) -> String {
    let mut result = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(start) = rest.find("{%") {
        let (before, tag) = rest.split_at(start);
        let Some(length) = tag[2..].find("%}") else {
            break;
        };
        let (tag, after) = tag.split_at(length + 4);
        result.push_str(before);
        match tag[2..length + 2].trim_matches(['-', '+']).trim() {
            "generation" => result.push_str(&tag.replacen("generation", "if true", 1)),
            "endgeneration" => result.push_str(&tag.replacen("endgeneration", "endif", 1)),
            _ => result.push_str(tag),
        }
        rest = after;
    }
    result.push_str(rest);
    result
}
