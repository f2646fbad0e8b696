//! The tools that a program gives the model.

use std::collections::HashSet;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::limits::{MAX_TOOL_NAME_BYTES, MAX_TOOLS, MAX_TOOLS_BYTES};

/// The tools that a program gives the model, as templates take them: each as
/// `{"type": "function", "function": {"name", "description", "parameters"}}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolList {
    tools: Value,
    names: Vec<String>,
    n_bytes: usize,
}

impl ToolList {
    /// Reads schemas, each a JSON text in one of three forms: `{"name", "description", "parameters"}`; the same within
    /// `{"type": "function", "function": ...}`; or that of the Model Context Protocol, whose parameters are called
    /// `inputSchema`.
    ///
    /// # Errors
    /// `invalid-argument`, which names the schema and what is wrong with it: it is not such an object, its name is not
    /// one that can stand in a call, two have the same name, or they are beyond the limits.
    pub fn parse<S: AsRef<str>>(schemas: &[S]) -> Result<Self> {
        if schemas.is_empty() {
            return Err(Error::Argument(
                "the list of tools is empty; give at least one schema".to_owned(),
            ));
        }
        if schemas.len() > MAX_TOOLS {
            return Err(Error::Argument(format!(
                "{} tools are more than the limit of {MAX_TOOLS}; give the model fewer",
                schemas.len()
            )));
        }
        let n_bytes: usize = schemas.iter().map(|schema| schema.as_ref().len()).sum();
        if n_bytes > MAX_TOOLS_BYTES {
            return Err(Error::Argument(format!(
                "the schemas of the tools have {n_bytes} bytes, and the limit is {MAX_TOOLS_BYTES}; give the model fewer, or shorten them"
            )));
        }
        let mut names = Vec::with_capacity(schemas.len());
        let mut tools = Vec::with_capacity(schemas.len());
        let mut seen = HashSet::new();
        for (place, schema) in schemas.iter().enumerate() {
            let (name, tool) = read(schema.as_ref())
                .map_err(|why| Error::Argument(format!("the schema of tool {place}: {why}")))?;
            if !seen.insert(name.clone()) {
                return Err(Error::Argument(format!(
                    "two tools are called {name:?}; give each a name of its own"
                )));
            }
            names.push(name);
            tools.push(tool);
        }
        let tools = Value::Array(tools);
        Ok(Self {
            n_bytes: tree_bytes(&tools),
            tools,
            names,
        })
    }

    /// About what it takes, in bytes.
    pub fn n_bytes(&self) -> usize {
        self.n_bytes
    }

    /// A hash of all tools.
    pub fn digest(&self) -> [u8; 32] {
        let mut hash = Hashing(Sha256::new());
        // A hash takes whatever is written, and a tree of JSON is always one.
        drop(serde_json::to_writer(&mut hash, &self.tools));
        hash.0.finalize().into()
    }

    /// The names, in order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The parameters of the tool of this place: a JSON schema.
    pub fn parameters(&self, place: usize) -> &Value {
        &self.tools[place]["function"]["parameters"]
    }

    /// Each tool as a JSON text, by which [`Self::of_texts`] reads it again.
    pub(crate) fn texts(&self) -> Vec<String> {
        let tools = self.tools.as_array().into_iter().flatten();
        tools.map(|tool| tool["function"].to_string()).collect()
    }

    /// The tools that were written by [`Self::texts`]: they have passed the limits of [`Self::parse`] before.
    ///
    /// # Errors
    /// What is wrong with them.
    pub(crate) fn of_texts(texts: &[String]) -> std::result::Result<Self, String> {
        if texts.is_empty() || texts.len() > MAX_TOOLS {
            return Err(format!("{} tools are not 1 to {MAX_TOOLS}", texts.len()));
        }
        let read: std::result::Result<Vec<_>, String> =
            texts.iter().map(|text| read(text)).collect();
        let (names, tools): (Vec<String>, Vec<Value>) = read?.into_iter().unzip();
        let tools = Value::Array(tools);
        Ok(Self {
            n_bytes: tree_bytes(&tools),
            tools,
            names,
        })
    }

    /// The variable `tools` of a template.
    pub(crate) fn value(&self) -> &Value {
        &self.tools
    }

    /// The same with other names: words that no template writes itself.
    pub(crate) fn with_marks(&self) -> Self {
        let mut marked = self.clone();
        let tools = marked.tools.as_array_mut().into_iter().flatten();
        for (place, (tool, name)) in tools.zip(&mut marked.names).enumerate() {
            *name = format!("QtoolZ{place:04}Q");
            tool["function"]["name"] = json!(name);
        }
        marked
    }

    /// The same with other texts: every key and every text that a program wrote passes through `change`.
    pub(crate) fn with_texts(&self, change: impl Fn(&str) -> String + Copy) -> Self {
        Self {
            tools: changed(&self.tools, change),
            names: self.names.clone(),
            n_bytes: self.n_bytes,
        }
    }
}

/// Hashes what is written.
struct Hashing(Sha256);

impl std::io::Write for Hashing {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// About what a tree of JSON takes, in bytes.
fn tree_bytes(value: &Value) -> usize {
    /// What a key takes besides its text and its value.
    const KEY_BYTES: usize = 48;
    let parts = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(tree_bytes).sum(),
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| KEY_BYTES + key.len() + tree_bytes(value))
            .sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    size_of::<Value>() + parts
}

/// A name that can stand in a call of any format, and in a header of any template.
///
/// # Errors
/// `invalid-argument`.
pub(crate) fn check_name(name: &str) -> std::result::Result<(), String> {
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':' | b'/');
    if !name.is_empty() && name.len() <= MAX_TOOL_NAME_BYTES && name.bytes().all(is_plain) {
        return Ok(());
    }
    let shown: String = name.chars().take(MAX_TOOL_NAME_BYTES).collect();
    Err(format!(
        "its name {shown:?} cannot stand in a call; use 1 to {MAX_TOOL_NAME_BYTES} of the characters a-z A-Z 0-9 _ - . : /"
    ))
}

/// The name and the wrapped form of a schema.
fn read(schema: &str) -> std::result::Result<(String, Value), String> {
    const FORMS: &str =
        "give an object with a name, a description and parameters, or with inputSchema";
    let schema: Value =
        serde_json::from_str(schema).map_err(|error| format!("it is not JSON: {error}"))?;
    let Value::Object(mut object) = schema else {
        return Err(format!("it is not an object; {FORMS}"));
    };
    if let Some(Value::Object(inner)) = object.remove("function") {
        object = inner;
    }
    let name = match object.get("name") {
        Some(Value::String(name)) => name.clone(),
        Some(_) => return Err(format!("its name is not a text; {FORMS}")),
        None => return Err(format!("it has no name; {FORMS}")),
    };
    check_name(&name)?;
    let mut function = Map::new();
    function.insert("name".to_owned(), json!(name));
    match object.remove("description") {
        None | Some(Value::Null) => {}
        Some(Value::String(text)) => {
            function.insert("description".to_owned(), Value::String(text));
        }
        Some(_) => return Err(format!("the description of {name:?} is not a text")),
    }
    let parameters = object
        .remove("parameters")
        .or_else(|| object.remove("inputSchema"))
        .or_else(|| object.remove("input_schema"));
    let parameters = match parameters {
        None | Some(Value::Null) => json!({"type": "object", "properties": {}}),
        Some(Value::Object(parameters)) => Value::Object(parameters),
        Some(_) => {
            return Err(format!(
                "the parameters of {name:?} are not a JSON schema object"
            ));
        }
    };
    if parameters
        .get("type")
        .is_some_and(|kind| kind.as_str() != Some("object"))
    {
        return Err(format!(
            "the parameters of {name:?} are of type {}; arguments are an object, so use \"type\": \"object\"",
            parameters["type"]
        ));
    }
    function.insert("parameters".to_owned(), parameters);
    Ok((name, json!({"type": "function", "function": function})))
}

fn changed(value: &Value, change: impl Fn(&str) -> String + Copy) -> Value {
    match value {
        Value::String(text) => Value::String(change(text)),
        Value::Array(items) => items.iter().map(|item| changed(item, change)).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| (change(key), changed(value, change)))
            .collect::<Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}
