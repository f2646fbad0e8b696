//! `[parameters]` of a manifest: what a program takes, and whether an input fits.

use pie_core::ErrorCode;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use toml::de::DeValue;

use super::fields::{Fields, after_hint, did_you_mean, shown};
use crate::Error;

/// The longest name.
const MAX_NAME_BYTES: usize = 64;
/// The field in which a command line puts arguments without a name.
const POSITIONAL: &str = "_positional";
/// Where a name that is asked for would have to stand. A program carries what was written there.
const DECLARED: &str = "declared in [parameters] of its Pie.toml when it was built";
const FIELDS: &[&str] = &[
    "type",
    "optional",
    "default",
    "description",
    "choices",
    "min",
    "max",
];

/// What a program takes, in the order of the manifest.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Parameters(pub Vec<Parameter>);

/// One field of the input.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Parameter {
    /// The name of the field: letters, digits and underscores.
    pub name: String,
    /// What it holds.
    #[serde(rename = "type")]
    pub kind: Kind,
    /// Whether it may be left out; one with a default always may.
    pub optional: bool,
    /// What it is where it is left out.
    pub default: Option<Value>,
    /// For people.
    pub description: Option<String>,
    /// The values that it may have; empty: any of its type.
    pub choices: Vec<Value>,
    /// The least and the greatest number.
    pub min: Option<Value>,
    /// See `min`.
    pub max: Option<Value>,
}

/// What a parameter holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    String,
    /// A whole number.
    Int,
    /// Any number.
    Float,
    /// True or false.
    Bool,
    /// A list.
    Array,
    /// Names with values.
    Object,
}

impl Kind {
    const ALL: [Self; 6] = [
        Self::String,
        Self::Int,
        Self::Float,
        Self::Bool,
        Self::Array,
        Self::Object,
    ];

    /// As manifests write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Int => "int",
            Self::Float => "float",
            Self::Bool => "bool",
            Self::Array => "array",
            Self::Object => "object",
        }
    }

    /// For people.
    fn words(self) -> &'static str {
        match self {
            Self::String => "a string",
            Self::Int => "an integer",
            Self::Float => "a number",
            Self::Bool => "true or false",
            Self::Array => "an array",
            Self::Object => "an object",
        }
    }

    fn holds(self, value: &Value) -> bool {
        match self {
            Self::String => value.is_string(),
            Self::Int => value.is_i64() || value.is_u64(),
            Self::Float => value.is_number(),
            Self::Bool => value.is_boolean(),
            Self::Array => value.is_array(),
            Self::Object => value.is_object(),
        }
    }

    fn is_number(self) -> bool {
        matches!(self, Self::Int | Self::Float)
    }
}

impl Serialize for Kind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl Parameters {
    /// Reads the table.
    ///
    /// # Errors
    /// `invalid-manifest`, naming file, line, field, value and what is expected.
    pub(crate) fn read(table: &Fields<'_>) -> Result<Self, Error> {
        let read = |(name, value, _)| Parameter::read(table, name, value);
        table
            .entries()
            .map(read)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// The input with the defaults filled in. Null stands for no fields.
    ///
    /// # Errors
    /// `invalid-input`, naming the parameter, its value and what is expected.
    pub(crate) fn checked(&self, input: String) -> Result<String, Error> {
        let value: Value = serde_json::from_str(&input)
            .map_err(|error| invalid(format!("the input is not JSON: {error}")))?;
        let is_null = value.is_null();
        let mut fields = match value {
            Value::Object(fields) => fields,
            Value::Null => Map::new(),
            other => {
                return Err(invalid(format!(
                    "the input is {}; expected an object with {}",
                    shown(&other.to_string()),
                    self.names_in_words()
                )));
            }
        };
        self.check_names(&fields)?;
        let n_given = fields.len();
        for parameter in &self.0 {
            match (fields.get(&parameter.name), &parameter.default) {
                (Some(value), _) if parameter.takes(value) => (),
                (Some(value), _) => {
                    return Err(invalid(format!(
                        "the parameter {:?} is {}; expected {}",
                        parameter.name,
                        shown(&value.to_string()),
                        parameter.expected()
                    )));
                }
                (None, Some(default)) => {
                    fields.insert(parameter.name.clone(), default.clone());
                }
                (None, None) if parameter.optional => (),
                (None, None) => {
                    return Err(invalid(format!(
                        "the parameter {:?} is missing; expected {}",
                        parameter.name,
                        parameter.expected()
                    )));
                }
            }
        }
        if fields.len() == n_given && !is_null {
            return Ok(input);
        }
        Ok(Value::Object(fields).to_string())
    }

    /// Refuses arguments without a name where none are taken, and names of no parameter.
    fn check_names(&self, fields: &Map<String, Value>) -> Result<(), Error> {
        if let Some(words) = fields
            .get(POSITIONAL)
            .filter(|_| self.get(POSITIONAL).is_none())
        {
            return Err(invalid(format!(
                "the program takes no arguments without a name, and was given {}; it takes {}, {DECLARED}; write each as --name value",
                shown(&words.to_string()),
                self.names_in_words()
            )));
        }
        if let Some((unknown, value)) = fields.iter().find(|(name, _)| self.get(name).is_none()) {
            let names: Vec<&str> = self.0.iter().map(|one| one.name.as_str()).collect();
            let takes = format!("the program takes {}, {DECLARED}", self.names_in_words());
            return Err(invalid(format!(
                "there is no parameter {:?} (= {}){}",
                shown(unknown),
                shown(&value.to_string()),
                after_hint(&did_you_mean(unknown, &names), &takes)
            )));
        }
        Ok(())
    }

    fn get(&self, name: &str) -> Option<&Parameter> {
        self.0.iter().find(|parameter| parameter.name == name)
    }

    fn names_in_words(&self) -> String {
        if self.0.is_empty() {
            return "no parameters".to_owned();
        }
        let names: Vec<&str> = self.0.iter().map(|one| one.name.as_str()).collect();
        shown(&names.join(", "))
    }
}

impl Parameter {
    fn read(table: &Fields<'_>, name: &str, value: &DeValue<'_>) -> Result<Self, Error> {
        let is_name = name.len() <= MAX_NAME_BYTES
            && name
                .bytes()
                .next()
                .is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !is_name {
            return Err(table.wrong_field(
                name,
                "a name of letters, digits and underscores that begins with no digit, at most 64 of them",
            ));
        }
        if let DeValue::String(kind) = value {
            let kind = kind_of(kind).map_err(|expected| table.wrong_field(name, &expected))?;
            return Ok(Self::of_kind(name, kind));
        }
        let Some(fields) = table.table(name).ok().flatten() else {
            return Err(table.wrong_field(
                name,
                "a type such as \"string\", or a table such as { type = \"int\", default = 3 }",
            ));
        };
        fields.only(FIELDS)?;
        let kind = kind_of(fields.required_text("type", "string")?)
            .map_err(|expected| fields.wrong_field("type", &expected))?;
        let mut parameter = Self {
            optional: fields.flag("optional")?,
            description: fields.text("description")?.map(str::to_owned),
            ..Self::of_kind(name, kind)
        };
        parameter.read_range(&fields)?;
        parameter.read_choices(&fields)?;
        if let Some(default) = fields.json("default")? {
            if !parameter.takes(&default) {
                return Err(fields.wrong_field("default", &parameter.expected()));
            }
            parameter.default = Some(default);
            parameter.optional = true;
        }
        Ok(parameter)
    }

    fn of_kind(name: &str, kind: Kind) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            optional: false,
            default: None,
            description: None,
            choices: Vec::new(),
            min: None,
            max: None,
        }
    }

    fn read_range(&mut self, fields: &Fields<'_>) -> Result<(), Error> {
        for (key, bound) in [("min", &mut self.min), ("max", &mut self.max)] {
            *bound = fields.json(key)?;
            if bound
                .as_ref()
                .is_some_and(|bound| !(self.kind.is_number() && bound.is_number()))
            {
                return Err(fields.wrong_field(key, "a number, and the type int or float"));
            }
        }
        let (Some(min), Some(max)) = (&self.min, &self.max) else {
            return Ok(());
        };
        if is_at_most(min, max) {
            return Ok(());
        }
        Err(fields.wrong_field("max", &format!("at least min = {min}")))
    }

    fn read_choices(&mut self, fields: &Fields<'_>) -> Result<(), Error> {
        let Some(choices) = fields.json("choices")? else {
            return Ok(());
        };
        let fault = || {
            let expected = format!("an array of values, each one {}", self.expected());
            fields.wrong_field("choices", &expected)
        };
        match choices {
            Value::Array(choices)
                if !choices.is_empty() && choices.iter().all(|choice| self.takes(choice)) =>
            {
                self.choices = choices;
                Ok(())
            }
            _ => Err(fault()),
        }
    }

    /// Whether it may have the value.
    fn takes(&self, value: &Value) -> bool {
        self.kind.holds(value)
            && (self.choices.is_empty() || self.choices.contains(value))
            && self.min.as_ref().is_none_or(|min| is_at_most(min, value))
            && self.max.as_ref().is_none_or(|max| is_at_most(value, max))
    }

    /// What it may have, for people.
    fn expected(&self) -> String {
        let mut words = self.kind.words().to_owned();
        match (&self.min, &self.max) {
            (Some(min), Some(max)) => words += &format!(" from {min} to {max}"),
            (Some(min), None) => words += &format!(" of at least {min}"),
            (None, Some(max)) => words += &format!(" of at most {max}"),
            (None, None) => (),
        }
        if !self.choices.is_empty() {
            let choices: Vec<String> = self.choices.iter().map(Value::to_string).collect();
            words += &format!(", one of {}", shown(&choices.join(", ")));
        }
        if let Some(description) = &self.description {
            words += &format!(" ({})", shown(description));
        }
        words
    }
}

/// Whole numbers are compared exactly, others as floats.
fn is_at_most(low: &Value, high: &Value) -> bool {
    let whole = |value: &Value| {
        value
            .as_i64()
            .map(i128::from)
            .or_else(|| value.as_u64().map(i128::from))
    };
    match (whole(low), whole(high)) {
        (Some(low), Some(high)) => low <= high,
        _ => low.as_f64() <= high.as_f64(),
    }
}

fn kind_of(name: &str) -> Result<Kind, String> {
    let found = Kind::ALL.into_iter().find(|kind| kind.name() == name);
    found.ok_or_else(|| {
        let names = Kind::ALL.map(Kind::name);
        format!("one of {}{}", names.join(", "), did_you_mean(name, &names))
    })
}

fn invalid(message: String) -> Error {
    Error::new(ErrorCode::InvalidInput, message)
}

#[cfg(test)]
#[path = "parameters_tests.rs"]
mod tests;
