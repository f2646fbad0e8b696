//! Reads the tables of a manifest field by field; what does not fit is told with its file, line, field, value and what
//! was expected.

use std::ops::Range;

use pie_core::ErrorCode;
use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::Error;

/// The longest value that a message shows, in characters.
const MAX_SHOWN_CHARS: usize = 80;
/// Names that are compared with one that is not known: a user may have ten thousand.
const MAX_COMPARED: usize = 100;
/// Names that are at least so much alike (Jaro-Winkler, 0 to 1) may be meant for each other.
const ALIKE: f64 = 0.75;

/// A table with its name, for messages.
#[derive(Clone)]
pub(crate) struct Fields<'a> {
    /// What is read.
    document: Document<'a>,
    /// As it is written, as in `package`; empty for the whole document.
    name: String,
    table: &'a DeTable<'a>,
}

/// What messages need to name a place.
#[derive(Clone, Copy)]
pub(crate) struct Document<'a> {
    pub(crate) file: &'a str,
    pub(crate) text: &'a str,
}

impl Document<'_> {
    /// An error at a place of the document.
    pub(crate) fn fault(&self, at: usize, message: impl std::fmt::Display) -> Error {
        let before = self.text.as_bytes().iter().take(at);
        let line = 1 + before.filter(|byte| **byte == b'\n').count();
        let message = format!("{}:{line}: {message}", self.file);
        Error::new(ErrorCode::InvalidManifest, message)
    }
}

impl<'a> Fields<'a> {
    /// The whole document.
    pub(crate) fn new(document: Document<'a>, table: &'a DeTable<'a>) -> Self {
        Self {
            document,
            name: String::new(),
            table,
        }
    }

    /// The fields in order: name, value and where the value stands.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&'a str, &'a DeValue<'a>, Range<usize>)> {
        self.table
            .iter()
            .map(|(key, value)| (key.get_ref().as_ref(), value.get_ref(), value.span()))
    }

    /// Refuses a field whose name is not among `known`.
    pub(crate) fn only(&self, known: &[&str]) -> Result<(), Error> {
        for key in self.table.keys() {
            let name = key.get_ref().as_ref();
            if known.contains(&name) {
                continue;
            }
            let place = self.path(&shown(name));
            let hint = did_you_mean(name, known);
            let expected = after_hint(&hint, &format!("expected {}", known.join(", ")));
            return Err(self.document.fault(
                key.span().start,
                format!("there is no field {place}{expected}"),
            ));
        }
        Ok(())
    }

    /// The table of a name; none where it is not given.
    pub(crate) fn table(&self, key: &str) -> Result<Option<Fields<'a>>, Error> {
        self.table
            .get(key)
            .map(|value| match value.get_ref() {
                DeValue::Table(table) => Ok(Fields {
                    document: self.document,
                    name: self.path(key),
                    table,
                }),
                _ => Err(self.wrong(key, value, "a table")),
            })
            .transpose()
    }

    /// The text of a name; none where it is not given.
    pub(crate) fn text(&self, key: &str) -> Result<Option<&'a str>, Error> {
        self.table
            .get(key)
            .map(|value| match value.get_ref() {
                DeValue::String(text) => Ok(text.as_ref()),
                _ => Err(self.wrong(key, value, "a string")),
            })
            .transpose()
    }

    /// The text of a name that has to be given.
    pub(crate) fn required_text(&self, key: &str, example: &str) -> Result<&'a str, Error> {
        self.text(key)?.ok_or_else(|| {
            let file = self.document.file;
            Error::new(
                ErrorCode::InvalidManifest,
                format!(
                    "{file}: {} is missing; add it, as in {key} = {example:?} under [{}]",
                    self.path(key),
                    self.name
                ),
            )
        })
    }

    /// The truth value of a name; false where it is not given.
    pub(crate) fn flag(&self, key: &str) -> Result<bool, Error> {
        match self.table.get(key) {
            None => Ok(false),
            Some(value) => match value.get_ref() {
                DeValue::Boolean(flag) => Ok(*flag),
                _ => Err(self.wrong(key, value, "true or false")),
            },
        }
    }

    /// The texts of a name; empty where it is not given.
    pub(crate) fn texts(&self, key: &str) -> Result<Vec<String>, Error> {
        let values = match self.json(key)? {
            None => return Ok(Vec::new()),
            Some(Value::Array(values)) => values,
            Some(_) => return Err(self.wrong_field(key, "an array of strings")),
        };
        let texts = values
            .into_iter()
            .map(|value| value.as_str().map(str::to_owned));
        texts
            .collect::<Option<_>>()
            .ok_or_else(|| self.wrong_field(key, "an array of strings"))
    }

    /// The value of a name as JSON; none where it is not given.
    pub(crate) fn json(&self, key: &str) -> Result<Option<Value>, Error> {
        self.table
            .get(key)
            .map(|value| json(value.get_ref()).map_err(|expected| self.wrong(key, value, expected)))
            .transpose()
    }

    /// An error about the value of a field that is given.
    pub(crate) fn wrong_field(&self, key: &str, expected: &str) -> Error {
        match self.table.get(key) {
            Some(value) => self.wrong(key, value, expected),
            None => self
                .document
                .fault(0, format!("{} is missing", self.path(key))),
        }
    }

    /// The name of a field in messages.
    pub(crate) fn path(&self, key: &str) -> String {
        if self.name.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.name)
        }
    }

    fn wrong(&self, key: &str, value: &Spanned<DeValue<'_>>, expected: &str) -> Error {
        let written = shown(self.document.text.get(value.span()).unwrap_or_default());
        self.document.fault(
            value.span().start,
            format!("{} = {written}; expected {expected}", self.path(key)),
        )
    }
}

/// A value as JSON; else what is expected in its place.
fn json(value: &DeValue<'_>) -> Result<Value, &'static str> {
    match value {
        DeValue::String(text) => Ok(text.as_ref().into()),
        DeValue::Boolean(flag) => Ok((*flag).into()),
        DeValue::Integer(integer) => i64::from_str_radix(integer.as_str(), integer.radix())
            .map(Value::from)
            .map_err(|_| "an integer of at most 64 bits"),
        DeValue::Float(float) => float
            .as_str()
            .parse()
            .ok()
            .and_then(serde_json::Number::from_f64)
            .map(Value::Number)
            .ok_or("a finite number"),
        DeValue::Array(values) => values.iter().map(|value| json(value.get_ref())).collect(),
        DeValue::Table(table) => table
            .iter()
            .map(|(key, value)| Ok((key.get_ref().to_string(), json(value.get_ref())?)))
            .collect(),
        DeValue::Datetime(_) => Err("a value that JSON has; write the date as a string"),
    }
}

/// What follows in a message that may have asked what was meant: a sentence of its own behind the question.
pub(crate) fn after_hint(hint: &str, rest: &str) -> String {
    if hint.is_empty() {
        return format!("; {rest}");
    }
    let mut letters = rest.chars();
    let first: String = letters
        .next()
        .into_iter()
        .flat_map(char::to_uppercase)
        .collect();
    format!("{hint} {first}{}", letters.as_str())
}

/// What may be meant by a name that is not known, of the first hundred that are.
pub fn did_you_mean(name: &str, known: &[&str]) -> String {
    // A name of megabytes is not compared as a whole.
    let name = name.chars().take(MAX_SHOWN_CHARS);
    let name: String = name.flat_map(char::to_lowercase).collect();
    let likeness = |known: &str| strsim::jaro_winkler(&name, known);
    let nearest = known
        .iter()
        .take(MAX_COMPARED)
        .map(|known| (likeness(known), known))
        .filter(|(likeness, _)| *likeness >= ALIKE)
        .max_by(|one, other| one.0.total_cmp(&other.0));
    nearest.map_or_else(String::new, |(_, known)| {
        format!("; did you mean {known:?}?")
    })
}

/// The beginning of a text, for a message.
pub(crate) fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(MAX_SHOWN_CHARS).collect();
    if shown.len() < text.len() {
        shown.push_str("...");
    }
    shown.replace('\n', " ")
}
