//! What a checkpoint says of the model's answers: the `response_template` of its `tokenizer_config.json`, version 1, as
//! `transformers` checks it in `utils/chat_parsing/response_templates.py`.
//!
//! Each field is a part of an answer, between two anchors. An anchor is a text, a list of texts of which any will do,
//! or a pattern. A pattern is read where it stands for one text alone. A field with another pattern gives no markers:
//! what the chat template itself writes decides then, as where the checkpoint says nothing.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::limits::MAX_SPECIAL_TOKEN_BYTES;

/// The most fields, and the most texts of an anchor.
const MAX_ENTRIES: usize = 64;
const TOP_KEYS: [&str; 5] = [
    "version",
    "defaults",
    "fields",
    "start_anchor",
    "start_anchor_pattern",
];
const FIELD_KEYS: [&str; 11] = [
    "open",
    "open_pattern",
    "close",
    "close_pattern",
    "content",
    "content_args",
    "repeats",
    "join",
    "optional",
    "transform",
    "transform_each",
];
/// The ways in which `transformers` reads what stands between the anchors.
const CONTENTS: [&str; 7] = [
    "text",
    "int",
    "float",
    "bool",
    "json",
    "xml-inline",
    "kv-lines",
];

/// The parts of an answer by their names.
#[derive(Debug, Clone, Default)]
pub(super) struct ResponseTemplate {
    fields: BTreeMap<String, Field>,
}

#[derive(Debug, Clone)]
struct Field {
    open: Anchor,
    close: Anchor,
}

/// Where a part begins or ends.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Anchor {
    /// At any of these texts; without one it has no place of its own.
    Texts(Vec<String>),
    /// At a pattern that stands for more than one text.
    Pattern,
}

impl ResponseTemplate {
    /// Reads it; null says nothing.
    ///
    /// # Errors
    /// What is wrong with it, in words that follow its name.
    pub(super) fn read(given: &Value) -> Result<Self, String> {
        if given.is_null() {
            return Ok(Self::default());
        }
        let top = object(given, "it")?;
        known(top, &TOP_KEYS, "it")?;
        if let Some(version) = top.get("version")
            && version.as_u64() != Some(1)
        {
            return Err(format!("its version is {}; 1 is read", shown(version)));
        }
        anchor(top, "start_anchor", "it")?;
        let fields = object(top.get("fields").unwrap_or(&Value::Null), "`fields`")?;
        if fields.is_empty() || fields.len() > MAX_ENTRIES {
            return Err(format!(
                "it has {} fields; 1 to {MAX_ENTRIES} are read",
                fields.len()
            ));
        }
        let mut read = BTreeMap::new();
        for (name, field) in fields {
            read.insert(name.clone(), Field::read(name, field)?);
        }
        Ok(Self { fields: read })
    }

    /// The two markers around the first of these fields that has some. Of several texts it is the first that
    /// `is_known`, else the first.
    pub(super) fn markers(
        &self,
        names: &[&str],
        is_known: impl Fn(&str) -> bool,
    ) -> Option<(String, String)> {
        let pick = |anchor: &Anchor| {
            let Anchor::Texts(texts) = anchor else {
                return None;
            };
            let trimmed = || texts.iter().map(|text| text.trim());
            let known = trimmed().find(|text| !text.is_empty() && is_known(text));
            let first = || trimmed().find(|text| !text.is_empty());
            known.or_else(first).map(str::to_owned)
        };
        names.iter().find_map(|name| {
            let field = self.fields.get(*name)?;
            Some((pick(&field.open)?, pick(&field.close)?))
        })
    }
}

impl Field {
    fn read(name: &str, given: &Value) -> Result<Self, String> {
        let name: String = name.chars().take(60).collect();
        let place = format!("its field {name:?}");
        let field = object(given, &place)?;
        known(field, &FIELD_KEYS, &place)?;
        if let Some(content) = field.get("content")
            && !content.as_str().is_some_and(|it| CONTENTS.contains(&it))
        {
            let all = CONTENTS.join(", ");
            return Err(format!(
                "{place} has the content {}; it is one of {all}",
                shown(content)
            ));
        }
        Ok(Self {
            open: anchor(field, "open", &place)?,
            close: anchor(field, "close", &place)?,
        })
    }
}

/// The anchor under a key, or under the same key of patterns.
fn anchor(field: &Map<String, Value>, key: &str, place: &str) -> Result<Anchor, String> {
    let pattern_key = format!("{key}_pattern");
    match (field.get(key), field.get(&pattern_key)) {
        (None, None) => Ok(Anchor::Texts(Vec::new())),
        (Some(_), Some(_)) => Err(format!(
            "{place} has both `{key}` and `{pattern_key}`; it has one of them"
        )),
        (Some(Value::Array(texts)), None) if (1..=MAX_ENTRIES).contains(&texts.len()) => {
            let texts = texts.iter().map(|text| marker(text, key, place));
            Ok(Anchor::Texts(texts.collect::<Result<_, String>>()?))
        }
        (Some(text), None) => Ok(Anchor::Texts(vec![marker(text, key, place)?])),
        (None, Some(pattern)) => Ok(match only_text(&marker(pattern, &pattern_key, place)?) {
            Some(text) => Anchor::Texts(vec![text]),
            None => Anchor::Pattern,
        }),
    }
}

/// A text of an anchor.
fn marker(given: &Value, key: &str, place: &str) -> Result<String, String> {
    match given.as_str() {
        Some(text) if (1..=MAX_SPECIAL_TOKEN_BYTES).contains(&text.len()) => Ok(text.to_owned()),
        _ => Err(format!(
            "{place} has {} as `{key}`; it is a text of 1 to {MAX_SPECIAL_TOKEN_BYTES} bytes, or a list of 1 to \
             {MAX_ENTRIES} such texts where it is not a pattern",
            shown(given)
        )),
    }
}

/// The one text that a pattern stands for; none where there are others.
fn only_text(pattern: &str) -> Option<String> {
    let mut text = String::with_capacity(pattern.len());
    let mut rest = pattern.chars();
    while let Some(character) = rest.next() {
        match character {
            '\\' => match rest.next()? {
                'n' => text.push('\n'),
                sign if sign.is_ascii_punctuation() || sign == ' ' => text.push(sign),
                _ => return None,
            },
            '.' | '^' | '$' | '*' | '+' | '?' | '{' | '}' | '[' | ']' | '(' | ')' | '|' => {
                return None;
            }
            _ => text.push(character),
        }
    }
    Some(text)
}

fn object<'a>(given: &'a Value, place: &str) -> Result<&'a Map<String, Value>, String> {
    given
        .as_object()
        .ok_or_else(|| format!("{place} is {}; it is an object", shown(given)))
}

fn known(given: &Map<String, Value>, keys: &[&str], place: &str) -> Result<(), String> {
    match given.keys().find(|key| !keys.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) => Err(format!(
            "{place} has the key {}, which nobody reads; there are {}",
            shown(&Value::from(key.as_str())),
            keys.join(", ")
        )),
    }
}

/// The beginning of a value.
fn shown(value: &Value) -> String {
    value.to_string().chars().take(60).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use serde_json::json;

    use super::*;

    fn markers(field: &Value) -> Option<(String, String)> {
        let given = json!({"start_anchor": "<a>", "fields": {"thinking": field, "content": {"close": "</a>"}}});
        let read = ResponseTemplate::read(&given).unwrap();
        assert_eq!(read.markers(&["content", "tool_calls"], |_| true), None);
        read.markers(&["tool_calls", "thinking"], |text| text.contains("known"))
    }

    #[test]
    fn markers_are_texts() {
        let pair = |open: &str, close: &str| Some((open.to_owned(), close.to_owned()));
        for (field, expected) in [
            (json!({"open": "<t>", "close": "</t>"}), pair("<t>", "</t>")),
            (
                json!({"open": "<t>\n", "close": "\n</t>", "repeats": true, "content": "json"}),
                pair("<t>", "</t>"),
            ),
            (
                json!({"open": ["<t>", "<s>"], "close": ["</t>"]}),
                pair("<t>", "</t>"),
            ),
            (
                json!({"open": ["<t>", "<known>"], "close": [" ", "</t>", "</known>"]}),
                pair("<known>", "</known>"),
            ),
            (
                json!({"open_pattern": r"<\|t\|>\n", "close_pattern": r"\[/t\]"}),
                pair("<|t|>", "[/t]"),
            ),
            (
                json!({"open_pattern": r"<t(?P<n>\d)>", "close": "</t>", "transform": "{n}"}),
                None,
            ),
            (json!({"open": "<t>", "close_pattern": "</t>|$"}), None),
            (json!({"open": "<t>"}), None),
            (json!({"open": " ", "close": "</t>"}), None),
        ] {
            assert_eq!(markers(&field), expected, "{field}");
        }
        assert_eq!(
            ResponseTemplate::read(&Value::Null)
                .unwrap()
                .markers(&["thinking"], |_| true),
            None
        );
    }

    #[test]
    fn what_is_not_one_says_what_is_wrong() {
        let field =
            |field: Value| json!({"start_anchor": "<a>", "fields": {"content": field, "x": {}}});
        let many: Vec<String> = (0..65).map(|n| n.to_string()).collect();
        for (given, why) in [
            (json!([]), "it is []; it is an object"),
            (json!("text"), "it is \"text\""),
            (
                json!({"version": 2, "fields": {"a": {}}}),
                "its version is 2; 1 is read",
            ),
            (json!({"feilds": {}}), "it has the key \"feilds\""),
            (json!({}), "`fields` is null"),
            (json!({"fields": {}}), "it has 0 fields"),
            (
                json!({"start_anchor": 5, "fields": {"a": {}}}),
                "it has 5 as `start_anchor`",
            ),
            (field(json!(5)), "its field \"content\" is 5"),
            (
                field(json!({"opens": "a"})),
                "its field \"content\" has the key \"opens\"",
            ),
            (
                field(json!({"open": "a", "open_pattern": "b"})),
                "both `open` and `open_pattern`",
            ),
            (field(json!({"open": ""})), "has \"\" as `open`"),
            (field(json!({"open": []})), "has [] as `open`"),
            (field(json!({"open": many})), "as `open`"),
            (field(json!({"close": ["a", 5]})), "has 5 as `close`"),
            (field(json!({"close_pattern": ["a"]})), "as `close_pattern`"),
            (field(json!({"content": "yaml"})), "the content \"yaml\""),
        ] {
            let refused = ResponseTemplate::read(&given).unwrap_err();
            assert!(refused.contains(why), "{given}: {refused}");
        }
    }
}
