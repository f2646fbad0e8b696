//! Finding a checkpoint's template.

use std::path::Path;

use serde_json::Value as Json;

use crate::error::{Error, Result};
use crate::files;

use super::response::ResponseTemplate;

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

/// What the checkpoint says of the model's answers.
pub(super) fn response_template(dir: &Path) -> Result<ResponseTemplate> {
    let path = dir.join("tokenizer_config.json");
    let config = files::read_json(&path)?.unwrap_or_default();
    ResponseTemplate::read(&config["response_template"]).map_err(|why| {
        Error::Template(format!(
            "the response_template of {} cannot be used: {why}; correct it, or take it out",
            path.display()
        ))
    })
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

/// The source with its `{% generation %}` blocks turned into blocks that always apply: they only mark what the model
/// says, for training.
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
