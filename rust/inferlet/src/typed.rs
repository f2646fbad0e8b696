//! Values of Rust types, from the documents that a model writes.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::{ErrorCode, Result, errors};

/// The JSON schema of a type, as text.
///
/// `Deserialize` drops what a struct has no field for. So that a model writes nothing in vain, an object is closed
/// where nothing says what else it may have.
pub(crate) fn schema_of<T: JsonSchema>() -> String {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.into_root_schema_for::<T>().to_value();
    join(&mut schema);
    close(&mut schema);
    schema.to_string()
}

/// The value of a whole document.
///
/// # Errors
/// `grammar-mismatch`: the type asks for more than its schema says.
pub(crate) fn value_of<T: DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| {
        let why = "the document does not fit what its type asks for beyond its JSON Schema";
        errors::text(
            ErrorCode::GrammarMismatch,
            format!("{why}: {error}; say so in the schema, or take a wider type"),
        )
    })
}

/// The error of a document that was cut. The text of the document begins behind the first line.
pub(crate) fn cut(text: &str, n_tokens: u32) -> String {
    let why = format!(
        "the document was cut after {n_tokens} tokens; raise max_tokens, or ask for a smaller document"
    );
    errors::text(ErrorCode::JsonCut, format!("{why}. Its text:\n{text}"))
}

/// Keywords that hold schemas of the same value as the one in which they stand.
const OF_THE_SAME: [&str; 8] = [
    "allOf",
    "anyOf",
    "oneOf",
    "if",
    "then",
    "else",
    "not",
    "dependentSchemas",
];
/// Keywords that hold schemas of what is inside the value.
const OF_PARTS: [&str; 6] = [
    "properties",
    "patternProperties",
    "additionalProperties",
    "prefixItems",
    "items",
    "contains",
];
/// Keywords of the schema of a struct that says no more than its fields.
const OF_A_STRUCT: [&str; 5] = ["type", "title", "description", "properties", "required"];
/// Keywords that say what an object has beside its `properties`.
const OF_OTHERS: [&str; 3] = [
    "additionalProperties",
    "patternProperties",
    "unevaluatedProperties",
];

/// Writes the fields of a struct beside the tag of its variant, in the place of a reference to them.
fn join(root: &mut Value) {
    let definitions = root.get("$defs").cloned().unwrap_or_default();
    each(root, &BTreeSet::new(), &mut |schema, _| {
        let Some(Value::String(target)) = schema.get("$ref") else {
            return;
        };
        let name = target.strip_prefix("#/$defs/").unwrap_or_default();
        let Some(Value::Object(fields)) = definitions.get(name) else {
            return;
        };
        let is_plain = |key: &String| OF_A_STRUCT.contains(&key.as_str());
        let Some(Value::Object(own)) = schema.get("properties") else {
            return;
        };
        let of_fields = fields.get("properties").and_then(Value::as_object);
        let is_apart = of_fields.is_some_and(|it| it.keys().all(|key| !own.contains_key(key)));
        if !is_apart || !fields.keys().all(is_plain) {
            return;
        }
        schema.remove("$ref");
        for (key, more) in fields {
            match (schema.get_mut(key), more) {
                (Some(Value::Object(own)), Value::Object(more)) => own.extend(more.clone()),
                (Some(Value::Array(own)), Value::Array(more)) => own.extend(more.clone()),
                (Some(_), _) => {}
                (None, more) => {
                    schema.insert(key.clone(), more.clone());
                }
            }
        }
    });
}

/// Closes the objects that one schema alone describes.
fn close(root: &mut Value) {
    // References to schemas that describe an object together with others. What these refer to may be of the kind too.
    let mut shared = BTreeSet::new();
    loop {
        let n_before = shared.len();
        each(root, &shared.clone(), &mut |schema, is_shared| {
            if let Some(Value::String(target)) = schema.get("$ref")
                && (is_shared || is_joined(schema))
            {
                shared.insert(target.clone());
            }
        });
        if shared.len() == n_before {
            break;
        }
    }
    each(root, &shared, &mut |schema, is_shared| {
        let is_alone = !is_shared && !is_joined(schema) && !schema.contains_key("$ref");
        if is_alone
            && schema.contains_key("properties")
            && !OF_OTHERS.iter().any(|key| schema.contains_key(*key))
        {
            schema.insert("additionalProperties".into(), false.into());
        }
    });
}

/// Whether several keywords of a schema describe the same object.
fn is_joined(schema: &Map<String, Value>) -> bool {
    OF_THE_SAME
        .into_iter()
        .chain(["$ref", "properties"])
        .filter(|key| schema.contains_key(*key))
        .count()
        > 1
}

/// Calls `change` for every schema of a document, and says whether the schema shares its object with others.
fn each(
    root: &mut Value,
    shared: &BTreeSet<String>,
    change: &mut impl FnMut(&mut Map<String, Value>, bool),
) {
    below(root, shared.contains("#"), change);
    if let Some(Value::Object(definitions)) = root.get_mut("$defs") {
        for (name, schema) in definitions {
            // References write other names in another way.
            let is_plain = name
                .chars()
                .all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
            below(
                schema,
                !is_plain || shared.contains(&format!("#/$defs/{name}")),
                change,
            );
        }
    }
}

fn below(
    schema: &mut Value,
    is_shared: bool,
    change: &mut impl FnMut(&mut Map<String, Value>, bool),
) {
    let Value::Object(schema) = schema else {
        return;
    };
    change(schema, is_shared);
    let is_joined = is_shared || is_joined(schema);
    for (key, value) in schema {
        let is_choice = matches!(key.as_str(), "anyOf" | "oneOf");
        let is_of_same = OF_THE_SAME.contains(&key.as_str());
        if !is_of_same && !OF_PARTS.contains(&key.as_str()) {
            continue;
        }
        let is_shared = is_of_same && (is_joined || !is_choice);
        let is_by_name = matches!(
            key.as_str(),
            "properties" | "patternProperties" | "dependentSchemas"
        );
        match value {
            Value::Array(items) => items
                .iter_mut()
                .for_each(|item| below(item, is_shared, change)),
            Value::Object(named) if is_by_name => {
                named
                    .values_mut()
                    .for_each(|item| below(item, is_shared, change));
            }
            one => below(one, is_shared, change),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    /// The schema of a type without its title and its dialect.
    fn schema<T: JsonSchema>() -> Value {
        let mut schema: Value = serde_json::from_str(&schema_of::<T>()).unwrap();
        let root = schema.as_object_mut().unwrap();
        root.retain(|key, _| key != "title" && key != "$schema");
        schema
    }

    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code, reason = "its schema alone is read")]
    struct Point {
        x: u8,
    }

    // rows: RS-067
    #[test]
    fn what_a_struct_has_no_field_for_is_not_written() {
        assert_eq!(schema::<Point>()["additionalProperties"], false);
        let nested = schema::<Vec<Option<Point>>>();
        assert_eq!(nested["$defs"]["Point"]["additionalProperties"], false);
        assert_eq!(nested.get("additionalProperties"), None);
    }

    #[test]
    fn what_an_object_may_have_besides_stays() {
        #[derive(JsonSchema)]
        #[allow(dead_code, reason = "its schema alone is read")]
        struct Open {
            x: u8,
            #[schemars(flatten)]
            others: BTreeMap<String, u8>,
        }
        assert_eq!(schema::<Open>()["additionalProperties"]["type"], "integer");
        assert_eq!(
            schema::<BTreeMap<String, u8>>()["additionalProperties"]["type"],
            "integer"
        );
    }

    #[test]
    fn an_object_that_others_describe_too_is_not_closed() {
        #[derive(JsonSchema)]
        #[schemars(tag = "kind")]
        #[allow(dead_code, reason = "its schema alone is read")]
        enum Shape {
            Dot(Point),
            Line { from: Point },
        }
        let shape = schema::<Shape>();
        // The tag and the fields of the point stand in one schema.
        let dot = &shape["oneOf"][0];
        let names: Vec<_> = dot["properties"]
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        assert_eq!((names, dot.get("$ref")), (vec!["kind", "x"], None));
        assert_eq!(dot["required"], serde_json::json!(["kind", "x"]));
        let closed: Vec<_> = shape["oneOf"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one.get("additionalProperties"))
            .collect();
        assert_eq!(closed, [Some(&Value::Bool(false)); 2]);

        #[derive(JsonSchema)]
        #[allow(dead_code, reason = "its schema alone is read")]
        struct Named {
            name: String,
            #[schemars(flatten)]
            shape: Shape,
        }
        let named = schema::<Named>();
        assert_eq!(named.get("additionalProperties"), None);
        assert!(
            named["oneOf"]
                .as_array()
                .unwrap()
                .iter()
                .all(|one| one.get("additionalProperties").is_none())
        );
    }

    // rows: RS-067
    #[test]
    fn what_is_referred_to_beside_fields_is_not_closed() {
        let fields = json!({ "properties": { "x": true } });
        let mut root = json!({
            "$ref": "#/$defs/Either",
            "properties": { "kind": { "const": "a" } },
            "$defs": {
                "Either": { "anyOf": [{ "$ref": "#/$defs/One" }, { "type": "null" }] },
                "One": fields,
                "Alone": fields,
            },
        });
        close(&mut root);
        assert_eq!(root["$defs"]["One"], fields);
        assert_eq!(root["$defs"]["Alone"]["additionalProperties"], false);
    }

    #[test]
    fn what_only_a_type_asks_for_is_said() {
        let error = value_of::<std::num::NonZeroU8>("0").unwrap_err();
        assert_eq!(crate::error_code(&error), Some(ErrorCode::GrammarMismatch));
        assert_eq!(value_of::<u8>("7"), Ok(7));
        let error = cut("{\"a\n", 2);
        assert_eq!(crate::error_code(&error), Some(ErrorCode::JsonCut));
        assert_eq!(error.split_once('\n').map(|(_, text)| text), Some("{\"a\n"));
    }
}
