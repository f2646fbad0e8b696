//! The text of calls, without the markers around it.

use std::collections::HashSet;

use serde::de::IgnoredAny;
use serde_json::{Deserializer, Value};

use super::list::check_name;

/// The most calls of one body: what has more is not one.
pub(crate) const MAX_CALLS: usize = 256;
/// The fewest bytes of a call.
pub(crate) const MIN_CALL_BYTES: usize = 12;

/// A call that the model made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The tool.
    pub name: String,
    /// Its arguments: a JSON object, as the model wrote it.
    pub arguments: String,
    /// The id that the model gave the call.
    pub id: Option<String>,
}

impl Call {
    /// Bytes of its texts.
    pub(crate) fn n_bytes(&self) -> usize {
        self.name.len() + self.arguments.len() + self.id.as_ref().map_or(0, String::len)
    }
}

/// The calls of a text: one, several behind each other, or a list; none where any of it is none.
///
/// The forms, by what models are trained on:
/// - JSON: `{"name": ..., "arguments": ...}`, the arguments also as `parameters`, or as a text of JSON;
/// - `<function=NAME><parameter=KEY>VALUE</parameter></function>`;
/// - `NAME[ARGS]{...}`, with `[CALL_ID]ID` behind the name where there is one;
/// - `NAME<｜tool▁sep｜>{...}`, and `function<｜tool▁sep｜>NAME` before arguments in a code block.
pub(crate) fn calls(text: &str) -> Option<Vec<Call>> {
    let text = text.trim();
    let mut found = match text.chars().next()? {
        '[' => list(text)?,
        '{' => objects(text)?,
        '<' => vec![function(text)?],
        _ => vec![named(text)?],
    };
    let is_named = |call: &Call| check_name(&call.name).is_ok();
    if found.is_empty() || found.len() > MAX_CALLS || !found.iter().all(is_named) {
        return None;
    }
    // An id that cannot be answered is no help to anybody.
    for call in &mut found {
        call.id = call.id.take().filter(|id| check_name(id).is_ok());
    }
    Some(found)
}

/// Whether a text begins as the JSON of a call.
pub(crate) fn begins_as_call(text: &str) -> bool {
    let rest = text.trim_start().strip_prefix('{').map(str::trim_start);
    rest.is_some_and(|rest| rest.starts_with("\"name\""))
}

fn list(text: &str) -> Option<Vec<Call>> {
    let mut rest = text.strip_prefix('[')?.trim_start();
    let mut calls = Vec::new();
    loop {
        let (call, behind) = object(rest)?;
        calls.push(call);
        rest = behind.trim_start();
        match rest.strip_prefix(',') {
            Some(more) => rest = more.trim_start(),
            None => break,
        }
    }
    rest.strip_prefix(']')?.trim().is_empty().then_some(calls)
}

fn objects(text: &str) -> Option<Vec<Call>> {
    let mut rest = text;
    let mut calls = Vec::new();
    while !rest.is_empty() {
        let (call, behind) = object(rest)?;
        calls.push(call);
        rest = behind.trim_start_matches(|each: char| each.is_whitespace() || each == ';');
    }
    Some(calls)
}

/// The call of an object at the front of a text, and what stands behind it.
fn object(text: &str) -> Option<(Call, &str)> {
    object_within(text, true)
}

/// The same. `may_wrap` tells whether the call may be the `function` of the object: it may once.
fn object_within(text: &str, may_wrap: bool) -> Option<(Call, &str)> {
    let (fields, rest) = fields(text)?;
    let field = |key: &str| {
        fields
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, value)| *value)
    };
    let inner = field("function").filter(|value| may_wrap && value.starts_with('{'));
    if let Some(inner) = inner {
        let (mut call, behind) = object_within(inner, false)?;
        call.id = call.id.or_else(|| text_of(field("id")?));
        return behind.is_empty().then_some((call, rest));
    }
    let call = Call {
        name: text_of(field("name")?)?,
        arguments: arguments(field("arguments").or_else(|| field("parameters")))?,
        id: field("id").and_then(text_of),
    };
    Some((call, rest))
}

/// The arguments of a call: an object, as it is written, or in a text.
fn arguments(value: Option<&str>) -> Option<String> {
    match value {
        None | Some("null") => Some("{}".to_owned()),
        Some(object) if object.starts_with('{') => Some(object.to_owned()),
        Some(text) => {
            let text = text_of(text)?;
            let (_, rest) = fields(text.trim())?;
            rest.is_empty().then(|| text.trim().to_owned())
        }
    }
}

/// The fields of a JSON object at the front of a text, their values as they are written, and what stands behind it.
/// None where it is none, or a key stands in it twice.
fn fields(text: &str) -> Option<(Vec<(String, &str)>, &str)> {
    let mut rest = text.strip_prefix('{')?.trim_start();
    let mut fields: Vec<(String, &str)> = Vec::new();
    let mut keys = HashSet::new();
    if let Some(behind) = rest.strip_prefix('}') {
        return Some((fields, behind));
    }
    loop {
        let (key, behind) = value::<String>(rest)?;
        let behind = behind.trim_start().strip_prefix(':')?.trim_start();
        let (_, after) = value::<IgnoredAny>(behind)?;
        if !keys.insert(key.clone()) {
            return None;
        }
        fields.push((key, behind[..behind.len() - after.len()].trim_end()));
        rest = after.trim_start();
        match rest.strip_prefix(',') {
            Some(more) => rest = more.trim_start(),
            None => return Some((fields, rest.strip_prefix('}')?)),
        }
    }
}

/// The JSON value at the front of a text, and what stands behind it.
fn value<'t, T: serde::Deserialize<'t>>(text: &'t str) -> Option<(T, &'t str)> {
    let mut values = Deserializer::from_str(text).into_iter::<T>();
    let value = values.next()?.ok()?;
    Some((value, &text[values.byte_offset()..]))
}

/// The text of a JSON string.
fn text_of(value: &str) -> Option<String> {
    serde_json::from_str(value).ok()
}

fn function(text: &str) -> Option<Call> {
    let (name, mut rest) = text.strip_prefix("<function=")?.split_once('>')?;
    let mut arguments: Vec<String> = Vec::new();
    let mut keys = HashSet::new();
    loop {
        rest = rest.trim_start();
        if let Some(behind) = rest.strip_prefix("</function>") {
            return behind.trim().is_empty().then(|| Call {
                name: name.trim().to_owned(),
                arguments: format!("{{{}}}", arguments.join(",")),
                id: None,
            });
        }
        let (key, behind) = rest.strip_prefix("<parameter=")?.split_once('>')?;
        let (written, behind) = behind.split_once("</parameter>")?;
        let written = written.strip_prefix('\n').unwrap_or(written);
        let written = written.strip_suffix('\n').unwrap_or(written);
        if !keys.insert(key.trim()) {
            return None;
        }
        let key = Value::from(key.trim());
        arguments.push(format!("{key}:{}", value_of(written)));
        rest = behind;
    }
}

/// A value that is written without quotes, as JSON: what is JSON, unless that would be written in another way. A text
/// such as `1.10` stays one.
fn value_of(written: &str) -> String {
    let text = || Value::from(written).to_string();
    match value::<IgnoredAny>(written) {
        Some((_, "")) if written.starts_with(['[', '{']) => written.to_owned(),
        Some((_, "")) => {
            let read: Option<Value> = serde_json::from_str(written).ok();
            let again = read.map(|value| value.to_string());
            again.filter(|again| again == written).unwrap_or_else(text)
        }
        _ => text(),
    }
}

fn named(text: &str) -> Option<Call> {
    const ARGUMENTS: &str = "[ARGS]";
    const SEPARATOR: &str = "<｜tool▁sep｜>";
    // What comes first is the template's: the other may stand in the arguments.
    let place = |marker| text.find(marker).unwrap_or(text.len());
    let (name, id, rest) = if place(ARGUMENTS) < place(SEPARATOR) {
        let (head, rest) = text.split_once(ARGUMENTS)?;
        let (name, id) = match head.split_once("[CALL_ID]") {
            Some((name, id)) => (name, Some(id.trim().to_owned())),
            None => (head, None),
        };
        (name, id, rest)
    } else {
        let (head, rest) = text.split_once(SEPARATOR)?;
        match rest.split_once("```json") {
            Some((name, rest)) if head.trim() == "function" => {
                (name, None, rest.trim_end().strip_suffix("```")?)
            }
            _ => (head, None, rest),
        }
    };
    Some(Call {
        name: name.trim().to_owned(),
        arguments: object_of(rest)?,
        id,
    })
}

/// The JSON object that a text is.
pub(crate) fn object_of(text: &str) -> Option<String> {
    let text = text.trim();
    let (_, rest) = value::<IgnoredAny>(text)?;
    (text.starts_with('{') && rest.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // rows: RS-181 RS-184
    #[test]
    fn a_call_stands_in_one_function_and_in_no_more() {
        let call = r#"{"name":"f","arguments":{}}"#;
        let within = |n: usize| {
            let text = [&r#"{"function":"#.repeat(n), call, &"}".repeat(n)].concat();
            calls(&text).is_some()
        };
        assert!(within(0) && within(1));
        assert!(!within(2) && !within(100_000));
    }

    #[test]
    fn arguments_may_hold_the_markers_of_another_format() {
        let text = "function<｜tool▁sep｜>f\n```json\n{\"q\": \"[ARGS] ```json\"}\n```";
        let found = calls(text).unwrap();
        assert_eq!(found[0].arguments, r#"{"q": "[ARGS] ```json"}"#);
        let found = calls(r#"f[ARGS]{"q": "<｜tool▁sep｜>", "q": 2}"#).unwrap();
        assert_eq!(found[0].name, "f");
    }

    // rows: RS-181
    #[test]
    fn values_without_quotes_are_what_the_model_wrote() {
        let written = |value: &str| {
            let text = format!("<function=f><parameter=x>\n{value}\n</parameter></function>");
            calls(&text).unwrap().remove(0).arguments
        };
        for (value, json) in [
            ("1.10", r#""1.10""#),
            ("1", "1"),
            ("-2.5", "-2.5"),
            ("007", r#""007""#),
            ("123456789012345678901", r#""123456789012345678901""#),
            ("1e3", r#""1e3""#),
            ("true", "true"),
            ("null", "null"),
            ("[1.10, 2]", "[1.10, 2]"),
            (r#"{"a": 1e3}"#, r#"{"a": 1e3}"#),
            (r#""a""#, r#""a""#),
            ("say \"a\"", r#""say \"a\"""#),
            (" 1", r#"" 1""#),
        ] {
            assert_eq!(written(value), format!(r#"{{"x":{json}}}"#), "{value}");
        }
        let parameter = "<parameter=x>1</parameter>";
        let twice = format!("<function=f>{parameter}{parameter}</function>");
        assert_eq!(calls(&twice), None);
    }

    #[test]
    fn a_call_has_an_id_that_can_be_answered_or_none() {
        let id = |id: &str| {
            let text = json!({"name": "f", "arguments": {}, "id": id}).to_string();
            calls(&text).unwrap().remove(0).id
        };
        assert_eq!(id("a-1").as_deref(), Some("a-1"));
        assert_eq!(id("a b"), None);
        assert_eq!(id(""), None);
        assert_eq!(id(&"a".repeat(200)), None);
    }

    #[test]
    fn a_body_has_no_more_calls_than_its_limit() {
        let many = |n: usize| vec![r#"{"name":"f"}"#; n].join(",");
        let found = |n: usize| calls(&format!("[{}]", many(n))).map(|it| it.len());
        assert_eq!(found(MAX_CALLS), Some(MAX_CALLS));
        assert_eq!(found(MAX_CALLS + 1), None);
        assert_eq!(many(1).len(), MIN_CALL_BYTES);
    }

    #[test]
    fn keys_stand_once_however_many_there_are() {
        let keys = |last: usize| {
            let fields = (0..100_000).chain([last]).map(|key| format!("\"{key}\":0"));
            let fields = fields.collect::<Vec<String>>().join(",");
            calls(&format!(r#"{{"name":"f","arguments":{{}},{fields}}}"#)).is_some()
        };
        assert!(keys(100_000) && !keys(7));
    }
}
