//! Tools: what the model is given, the calls that it makes, and their answers.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::bindings::pie::instruct::tools as raw;
use crate::decoding::decoder;
use crate::kept::Keeper;
use crate::matcher::{Grammar, Matcher};
use crate::{Model, Result};

/// What the tokens of one [`Decoder::feed`] meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Nothing of a call.
    Idle,
    /// A call begins.
    Start,
    /// A whole call: the tool, and its arguments as a JSON object.
    Call(String, String),
    /// What began as a call and is none: its text, as it was written.
    Malformed(String),
}

decoder! {
    /// Finds the calls of tools in what the model says, inside thoughts too. Of a model whose template writes no calls
    /// every event is [`Event::Idle`].
    raw::ToolDecoder, event
}

fn event(event: raw::ToolEvent) -> Event {
    match event {
        raw::ToolEvent::Idle => Event::Idle,
        raw::ToolEvent::Start => Event::Start,
        raw::ToolEvent::Call(call) => Event::Call(call.name, call.args),
        raw::ToolEvent::Malformed(text) => Event::Malformed(text),
    }
}

/// What a program gives the model: a function under `#[inferlet::tool]`, or the JSON text of a schema.
pub trait Tool {
    /// The schema: `{"name", "description", "parameters"}`, the same within `{"type": "function", "function"}`, or with
    /// `inputSchema` in the place of `parameters`.
    fn schema(&self) -> String;
}

impl<S: AsRef<str> + ?Sized> Tool for S {
    fn schema(&self) -> String {
        self.as_ref().to_owned()
    }
}

/// The tokens that give the model tools, behind other messages and before a question. On an empty context use
/// [`Context::equip`](crate::Context::equip), which begins the conversation.
///
/// # Errors
/// `invalid-argument` for a schema of another form, a name that cannot stand in a call, and two tools of one name;
/// `template-error`: the template has no place for tools.
pub fn equip_prefix<S: AsRef<str>>(model: &Model, schemas: &[S]) -> Result<Vec<u32>> {
    let schemas: Vec<String> = schemas
        .iter()
        .map(|each| each.as_ref().to_owned())
        .collect();
    Ok(raw::equip_tokens(model.raw(), &schemas)?)
}

/// The tokens of the answer of a tool, behind a turn whose end is not written yet. Empty where the call fails: its
/// error fails the program at its end.
pub fn answer_prefix(model: &Model, name: &str, result_json: &str) -> Vec<u32> {
    Keeper::new().value_of(raw::answer_tokens(model.raw(), name, result_json, None))
}

/// The tool and the arguments of the first call in a finished text; none where it has none.
pub fn parse_call(model: &Model, text: &str) -> Option<(String, String)> {
    let call = Keeper::new().value_of(raw::parse_call(model.raw(), text))?;
    Some((call.name, call.args))
}

/// Whether the model is to call a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// As it likes: what it says may end with calls.
    Auto,
    /// It calls none.
    None,
    /// It calls one at least, and says nothing else but its thoughts.
    Required,
    /// It calls the tool of this name once, and says nothing else but its thoughts.
    Named(String),
}

impl Choice {
    pub(crate) fn raw(&self) -> raw::ToolChoice {
        match self {
            Self::Auto => raw::ToolChoice::Auto,
            Self::None => raw::ToolChoice::None,
            Self::Required => raw::ToolChoice::Required,
            Self::Named(name) => raw::ToolChoice::Named(name.clone()),
        }
    }
}

/// The grammar of what the model may say where it was given these tools and is to call some: no call in it is
/// malformed. A call is one of the tools, its arguments fit their schema, and it is written as the template of the
/// model writes calls, several where the template writes several. None where the template has no way that can be
/// enforced, and where this function fails: its error fails the program at its end. See [`native_grammar_for`].
pub fn native_grammar<S: AsRef<str>>(model: &Model, schemas: &[S]) -> Option<Grammar> {
    Keeper::new().value_of(native_grammar_for(model, schemas, &Choice::Required))
}

/// A matcher of [`native_grammar`], for a [`GrammarConstraint`](crate::GrammarConstraint).
pub fn native_matcher<S: AsRef<str>>(model: &Model, schemas: &[S]) -> Option<Matcher> {
    let grammar = native_grammar(model, schemas)?;
    Some(Matcher::new(&grammar, model.tokenizer()))
}

/// The grammar of what the model may say where it was given these tools, by a choice; none where the template has no
/// way to write calls that can be enforced.
///
/// # Errors
/// `invalid-argument` for a choice that is not among the tools, and as [`equip_prefix`]; `invalid-grammar` for
/// parameters that cannot be enforced.
pub fn native_grammar_for<S: AsRef<str>>(
    model: &Model,
    schemas: &[S],
    choice: &Choice,
) -> Result<Option<Grammar>> {
    let schemas: Vec<String> = schemas
        .iter()
        .map(|each| each.as_ref().to_owned())
        .collect();
    let grammar = raw::native_grammar(model.raw(), &schemas, &choice.raw())?;
    Ok(grammar.map(Grammar::from_raw))
}

/// A type that can be a parameter of a function under `#[inferlet::tool]`.
pub trait Parameter: DeserializeOwned {
    /// The JSON schema of the type.
    fn schema() -> Value;

    /// The value where the model gave none; none where one is needed.
    fn absent() -> Option<Self> {
        None
    }
}

macro_rules! parameter {
    ($($kind:literal: $($type:ty),+;)+) => {
        $($(impl Parameter for $type {
            fn schema() -> Value {
                json!({ "type": $kind })
            }
        })+)+
    };
}

parameter! {
    "string": String, char;
    "boolean": bool;
    "number": f32, f64;
    "integer": i8, i16, i32, i64, u8, u16, u32, u64, isize, usize;
    "object": Map<String, Value>;
}

impl Parameter for Value {
    fn schema() -> Value {
        json!({})
    }
}

impl<T: Parameter> Parameter for Vec<T> {
    fn schema() -> Value {
        json!({"type": "array", "items": T::schema()})
    }
}

impl<T: Parameter> Parameter for Option<T> {
    fn schema() -> Value {
        T::schema()
    }

    fn absent() -> Option<Self> {
        Some(None)
    }
}

/// The arguments of a call, taken one after the other by what `#[inferlet::tool]` expands to.
#[derive(Debug)]
pub struct Arguments {
    tool: &'static str,
    given: Map<String, Value>,
}

impl Arguments {
    /// Takes the arguments of a call, the text of a JSON object.
    ///
    /// # Errors
    /// `invalid-argument` where the text is not one.
    pub fn parse(tool: &'static str, arguments: &str) -> Result<Self> {
        match serde_json::from_str(arguments) {
            Ok(Value::Object(given)) => Ok(Self { tool, given }),
            Ok(_) => Err(refused(tool, "the arguments are not an object")),
            Err(error) => Err(refused(
                tool,
                &format!("the arguments are not JSON: {error}"),
            )),
        }
    }

    /// The argument of this name.
    ///
    /// # Errors
    /// `invalid-argument` where it is missing, or of another type.
    pub fn take<T: Parameter>(&mut self, name: &str) -> Result<T> {
        match self.given.remove(name) {
            Some(value) => serde_json::from_value(value)
                .map_err(|error| refused(self.tool, &format!("the argument {name:?}: {error}"))),
            None => T::absent()
                .ok_or_else(|| refused(self.tool, &format!("the argument {name:?} is missing"))),
        }
    }

    /// Checks that all were taken.
    ///
    /// # Errors
    /// `invalid-argument` naming one that the tool does not have.
    pub fn end(self) -> Result<()> {
        match self.given.keys().next() {
            Some(name) => Err(refused(
                self.tool,
                &format!("there is no argument {name:?}"),
            )),
            None => Ok(()),
        }
    }
}

fn refused(tool: &str, why: &str) -> String {
    format!(
        "[invalid-argument] the call of {tool}: {why}; tell the model so, and let it call again"
    )
}

/// What a tool answers: a text as it is, anything else as JSON.
///
/// # Errors
/// `invalid-argument` for what JSON cannot hold.
pub fn answer_text<T: Serialize>(tool: &str, answer: &T) -> Result<String> {
    match serde_json::to_value(answer) {
        Ok(Value::String(text)) => Ok(text),
        Ok(value) => Ok(value.to_string()),
        Err(error) => Err(format!(
            "[invalid-argument] what {tool} answers is not JSON: {error}; return a text, numbers, lists or structs"
        )),
    }
}

/// The schema of a tool, of its parameters with their schemas and whether they are needed.
#[doc(hidden)]
pub fn tool_schema(name: &str, description: &str, parameters: &[(&str, Value, bool)]) -> String {
    let properties: Map<String, Value> = parameters
        .iter()
        .map(|(name, schema, _)| ((*name).to_owned(), schema.clone()))
        .collect();
    let needed = parameters.iter().filter(|(.., is_needed)| *is_needed);
    let required: Vec<&str> = needed.map(|(name, ..)| *name).collect();
    let parameters = json!({"type": "object", "properties": properties, "required": required});
    json!({"name": name, "description": description, "parameters": parameters}).to_string()
}
