//! The families of templates: `tests/text/write_families.py` writes their files.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use pie_text::{Chat, ChatTemplate, SpecialTokens};
use serde::Deserialize;
use serde_json::{Value, json};

use super::tokenizer;

#[derive(Deserialize)]
pub(crate) struct Family {
    bos_token: Option<String>,
    eos_token: String,
    pub(crate) ends: Vec<String>,
    pub(crate) special: Vec<String>,
    pub(crate) markers: Vec<String>,
    pub(crate) calls: usize,
}

pub(crate) const NAMES: [&str; 9] = [
    "llama3",
    "qwen25",
    "qwen3",
    "mistral",
    "gemma",
    "phi3",
    "phi4",
    "deepseek_r1",
    "harmony",
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/families")
}

fn read(name: &str) -> Vec<u8> {
    std::fs::read(folder().join(name)).unwrap()
}

pub(crate) fn json_of(name: &str) -> Value {
    serde_json::from_slice(&read(name)).unwrap()
}

pub(crate) static FAMILIES: LazyLock<HashMap<String, Family>> =
    LazyLock::new(|| serde_json::from_slice(&read("families.json")).unwrap());

impl Family {
    /// The base tokenizer with the tokens of the family added.
    fn tokenizer(&self) -> Value {
        let mut base = json_of("base.json");
        let start = base["model"]["vocab"].as_object().unwrap().len();
        let special = self.special.iter().map(|token| (token, true));
        let markers = self.markers.iter().map(|token| (token, false));
        base["added_tokens"] = special
            .chain(markers)
            .enumerate()
            .map(|(place, (token, special))| {
                json!({"id": start + place, "content": token, "single_word": false, "lstrip": false, "rstrip": false,
                    "normalized": false, "special": special})
            })
            .collect();
        base
    }

    pub(crate) fn template(&self, name: &str) -> ChatTemplate {
        let source = String::from_utf8(read(&format!("{name}.jinja"))).unwrap();
        let bos = self
            .bos_token
            .iter()
            .map(|token| ("bos_token", token.as_str()));
        let special = SpecialTokens::new(bos.chain([("eos_token", self.eos_token.as_str())]));
        ChatTemplate::new(&source, special).unwrap()
    }
}

/// The chat of a family.
pub(crate) fn chat_of(name: &str) -> Arc<Chat> {
    let family = &FAMILIES[name];
    let tokenizer = tokenizer(&family.tokenizer());
    let ends = family
        .ends
        .iter()
        .flat_map(|end| tokenizer.encode(end).unwrap())
        .collect();
    Arc::new(Chat::new(tokenizer, Some(family.template(name)), ends))
}
