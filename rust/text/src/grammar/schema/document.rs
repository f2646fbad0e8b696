//! A schema text: its places, its references, and the keywords that it may have.

use std::cell::RefCell;
use std::collections::HashMap;

use serde_json::{Map, Value};

/// Keywords that are enforced.
const ENFORCED: [&str; 35] = [
    "$ref",
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "if",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "nullable",
    "oneOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "properties",
    "required",
    "then",
    "type",
    "uniqueItems",
];

/// Keywords that say something about a schema without restricting anything.
const ANNOTATIONS: [&str; 20] = [
    "$anchor",
    "$comment",
    "$defs",
    "$id",
    "$schema",
    "contentEncoding",
    "contentMediaType",
    "default",
    "definitions",
    "deprecated",
    "description",
    "discriminator",
    "example",
    "examples",
    "externalDocs",
    "id",
    "readOnly",
    "strict",
    "title",
    "writeOnly",
];

/// The index of a place of a schema where a schema stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Place(pub(super) u32);

/// Why a schema is refused: where, and what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal(pub(super) String);

pub(super) type Checked<T> = Result<T, Refusal>;

/// A schema with its places.
pub(super) struct Document<'a> {
    root: &'a Value,
    places: RefCell<Places<'a>>,
}

#[derive(Default)]
struct Places<'a> {
    by_address: HashMap<*const Value, Place>,
    all: Vec<Located<'a>>,
}

/// A schema and where it stands. The pointers of all places would have more text than the schema, many times over.
struct Located<'a> {
    schema: &'a Value,
    /// The place that it stands below; none for the whole schema.
    above: Option<Place>,
    /// Its pointer from there on.
    path: Box<str>,
}

impl<'a> Document<'a> {
    pub(super) fn new(root: &'a Value) -> Self {
        Self {
            root,
            places: RefCell::default(),
        }
    }

    /// The place of the whole schema.
    pub(super) fn root(&self) -> Place {
        self.place(self.root, None, String::new)
    }

    /// The place of a schema below another place.
    pub(super) fn below(&self, place: Place, path: &[&str], schema: &'a Value) -> Place {
        self.place(schema, Some(place), || joined(path))
    }

    fn place(
        &self,
        schema: &'a Value,
        above: Option<Place>,
        path: impl FnOnce() -> String,
    ) -> Place {
        let address: *const Value = schema;
        if let Some(&place) = self.places.borrow().by_address.get(&address) {
            return place;
        }
        let mut places = self.places.borrow_mut();
        let place = Place(u32::try_from(places.all.len()).unwrap_or(u32::MAX));
        places.all.push(Located {
            schema,
            above,
            path: path().into(),
        });
        places.by_address.insert(address, place);
        place
    }

    /// The schema at a place.
    pub(super) fn schema(&self, place: Place) -> &'a Value {
        self.places.borrow().all[place.0 as usize].schema
    }

    /// The JSON pointer of something below a place, as a fragment that a message shows: `#/properties/a`.
    pub(super) fn at(&self, place: Place, path: &[&str]) -> String {
        let places = self.places.borrow();
        let mut parts = vec![joined(path)];
        let mut above = Some(place);
        while let Some(place) = above {
            let located = &places.all[place.0 as usize];
            parts.push(shortened(&located.path));
            above = located.above;
        }
        parts.push("#".to_owned());
        parts.reverse();
        shortened(&parts.concat())
    }

    /// A refusal of something below a place.
    pub(super) fn refusal(&self, place: Place, path: &[&str], why: &str) -> Refusal {
        Refusal(format!("the schema at {}: {why}", self.at(place, path)))
    }

    /// What a reference at a place refers to.
    pub(super) fn referred(&self, place: Place, reference: &str) -> Checked<Place> {
        let (schema, pointer) =
            refer(self.root, reference).map_err(|why| self.refusal(place, &["$ref"], &why))?;
        Ok(self.place(schema, None, || pointer))
    }

    /// The keywords of a place, checked; none where the schema is `true` or `false`.
    pub(super) fn keywords(&self, place: Place) -> Checked<Option<&'a Map<String, Value>>> {
        let schema = match self.schema(place) {
            Value::Bool(_) => return Ok(None),
            Value::Object(schema) => schema,
            other => {
                return Err(self.refusal(
                    place,
                    &[],
                    &format!(
                        "a schema is an object, true or false, and not {}",
                        kind(other)
                    ),
                ));
            }
        };
        for keyword in schema.keys() {
            let known = ENFORCED.contains(&keyword.as_str()) || is_annotation(keyword);
            if !known {
                return Err(self.cannot(place, keyword, "leave it out"));
            }
        }
        Ok(Some(schema))
    }

    /// A keyword that cannot be enforced.
    pub(super) fn cannot(&self, place: Place, keyword: &str, remedy: &str) -> Refusal {
        Refusal(format!(
            "the keyword `{}` at {} cannot be enforced; {remedy}",
            shortened(keyword),
            self.at(place, &[keyword])
        ))
    }
}

/// A path as part of a JSON pointer.
fn joined(path: &[&str]) -> String {
    let mut pointer = String::new();
    for part in path {
        pointer.push('/');
        pointer.push_str(&part.replace('~', "~0").replace('/', "~1"));
    }
    pointer
}

/// A text as a message shows it: the middle of a long one is left out.
pub(super) fn shortened(text: &str) -> String {
    const MAX_SHOWN: usize = 240;
    if text.len() <= MAX_SHOWN {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(MAX_SHOWN / 2);
    let tail = text.ceil_char_boundary(text.len() - MAX_SHOWN / 2);
    format!("{}...{}", &text[..head], &text[tail..])
}

/// Whether a keyword restricts nothing.
pub(super) fn is_annotation(keyword: &str) -> bool {
    ANNOTATIONS.contains(&keyword) || keyword.starts_with("x-")
}

/// The schema that a reference names, with its pointer.
pub(super) fn refer<'a>(root: &'a Value, reference: &str) -> Result<(&'a Value, String), String> {
    let Some(fragment) = reference.strip_prefix('#') else {
        return Err(format!(
            "{:?} refers to another document, which cannot be read; put its schemas into $defs",
            shortened(reference)
        ));
    };
    if !fragment.is_empty() && !fragment.starts_with('/') {
        return Err(format!(
            "{:?} is an anchor, which cannot be followed; use a pointer such as #/$defs/{}",
            shortened(reference),
            shortened(fragment)
        ));
    }
    let pointer = percent_decoded(fragment);
    match root.pointer(&pointer) {
        Some(schema) => Ok((schema, pointer)),
        None => Err(format!(
            "{:?} refers to nothing in this schema; name a place that is there",
            shortened(reference)
        )),
    }
}

/// `%25` is `%` in a fragment.
fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        let code = (byte == b'%')
            .then(|| tail.get(..2))
            .flatten()
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match code {
            Some(code) => {
                bytes.push(code);
                rest = &tail[2..];
            }
            None => {
                bytes.push(byte);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What a JSON value is, in a word.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
