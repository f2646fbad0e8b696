//! What a schema does not allow: `not`, the other case of `if`, and options of `oneOf` that overlap.
//!
//! A value breaks a schema where it breaks one of its keywords. So what a schema does not allow is the union of what
//! each of its keywords does not allow.

use serde_json::{Map, Value};

use super::document::{Checked, Place, is_annotation, kind, shortened};
use super::reading::{Reading, holds, without};
use super::shape::{Arrays, Literal, Node, Numbers, Objects, Shape, Strings};
use crate::grammar::number::Num;

impl<'a> Reading<'a> {
    /// What a place does not allow.
    pub(super) fn not(&self, place: Place) -> Checked<Shape> {
        let Some(schema) = self.document.keywords(place)? else {
            let nothing = self.document.schema(place) == &Value::Bool(false);
            return Ok(if nothing {
                Shape::any()
            } else {
                Shape::default()
            });
        };
        let mut outside = Shape::default();
        for (keyword, value) in schema {
            outside.unite(self.not_keyword(place, schema, keyword, value)?);
        }
        Ok(outside)
    }

    fn not_keyword(
        &self,
        place: Place,
        schema: &'a Map<String, Value>,
        keyword: &str,
        value: &'a Value,
    ) -> Checked<Shape> {
        Ok(match keyword {
            "then" | "else" => Shape::default(),
            _ if is_annotation(keyword) => Shape::default(),
            "type" => self.not_type(place, schema, value)?,
            "nullable" if schema.contains_key("type") => Shape::default(),
            "const" => self.not_values(place, keyword, std::slice::from_ref(value))?,
            "enum" => self.not_values(place, keyword, self.list(place, keyword, value)?)?,
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => {
                self.not_bound(place, keyword, value)?
            }
            "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties"
            | "maxProperties" => not_count(keyword, self.count(place, schema, keyword)?),
            "pattern" => {
                let source = value.as_str().unwrap_or_default();
                let pattern = self.compiled(place, &[keyword], source)?;
                strings(Some(Strings {
                    none: vec![pattern],
                    ..Strings::default()
                }))
            }
            "prefixItems" => self.not_prefix(place, keyword, value)?,
            "additionalProperties" | "items" if value == &Value::Bool(true) => Shape::default(),
            "required" | "properties" | "dependentRequired" => {
                self.not_properties(place, keyword, value)?
            }
            "$ref" | "not" | "allOf" | "anyOf" => self.not_schemas(place, keyword, value)?,
            "if" => self.conditional(place, schema, true)?,
            _ => {
                return Err(self.document.cannot(
                    place,
                    keyword,
                    "its opposite is needed, for `not`, `if` or a `oneOf` whose options overlap; leave it out there",
                ));
            }
        })
    }

    /// What a keyword about the properties of an object does not allow.
    fn not_properties(&self, place: Place, keyword: &str, value: &'a Value) -> Checked<Shape> {
        if keyword == "required" {
            let names = self.names(place, &[keyword], value)?;
            return Ok(objects(names.iter().map(|name| without(name))));
        }
        let map = self.map(place, keyword, value)?;
        if keyword == "properties" {
            return Ok(objects(map.iter().map(|(name, inner)| {
                let inner = self.document.below(place, &[keyword, name], inner);
                with(name, [fails(inner)].into())
            })));
        }
        let mut outside = Vec::new();
        for (name, needed) in map {
            for absent in self.names(place, &[keyword, name], needed)? {
                let mut objects = without(&absent);
                objects.required.insert(name.clone());
                outside.push(objects);
            }
        }
        Ok(objects(outside))
    }

    /// What a keyword whose value is other schemas does not allow.
    fn not_schemas(&self, place: Place, keyword: &str, value: &'a Value) -> Checked<Shape> {
        match keyword {
            "$ref" => self.of_literal(fails(self.reference(place, value)?)),
            "not" => self.of_literal(holds(self.document.below(place, &[keyword], value))),
            "allOf" => {
                let mut outside = Shape::default();
                for inner in self.schemas(place, keyword, value)? {
                    outside.unite(self.of_literal(fails(inner))?);
                }
                Ok(outside)
            }
            _ => {
                let schemas = self.schemas(place, keyword, value)?.into_iter();
                let all: Node = schemas.map(fails).collect();
                Ok((*self.shape(&all)?).clone())
            }
        }
    }

    fn of_literal(&self, literal: Literal) -> Checked<Shape> {
        Ok((*self.shape(&[literal].into())?).clone())
    }

    fn not_type(
        &self,
        place: Place,
        schema: &'a Map<String, Value>,
        value: &Value,
    ) -> Checked<Shape> {
        let names: Vec<&str> = match value {
            Value::String(name) => vec![name],
            Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
            other => {
                return Err(self.document.refusal(
                    place,
                    &["type"],
                    &format!(
                        "a type is a string or a list of strings, and not {}",
                        kind(other)
                    ),
                ));
            }
        };
        let mut outside = Shape::any();
        for name in names {
            match name {
                "null" => outside.null = false,
                "boolean" => outside.booleans = [false, false],
                "number" => outside.numbers.clear(),
                "integer" => outside.numbers.iter_mut().for_each(|it| it.fraction = true),
                "string" => outside.strings.clear(),
                "array" => outside.arrays.clear(),
                "object" => outside.objects.clear(),
                _ => {
                    return Err(self.document.refusal(
                        place,
                        &["type"],
                        &format!("{:?} is not a type", shortened(name)),
                    ));
                }
            }
        }
        if schema.get("nullable") == Some(&Value::Bool(true)) {
            outside.null = false;
        }
        Ok(outside)
    }

    fn not_values(&self, place: Place, keyword: &str, values: &[Value]) -> Checked<Shape> {
        self.charge(values.len(), place)?;
        let mut outside = Shape::any();
        let mut numbers = Numbers::default();
        let mut strings = Strings::default();
        for value in values {
            match value {
                Value::Null => outside.null = false,
                Value::Bool(value) => outside.booleans[usize::from(*value)] = false,
                Value::Number(value) => numbers.except.push(Num::of(value)),
                Value::String(text) => {
                    strings.except.insert(text.clone());
                }
                Value::Array(_) | Value::Object(_) => {
                    return Err(self.document.cannot(
                        place,
                        keyword,
                        "arrays and objects cannot be excluded by their value; exclude strings, numbers or booleans",
                    ));
                }
            }
        }
        outside.numbers = vec![numbers];
        outside.strings = vec![strings];
        Ok(outside)
    }

    fn not_bound(&self, place: Place, keyword: &str, value: &Value) -> Checked<Shape> {
        let Value::Number(bound) = value else {
            return Err(self.document.cannot(place, keyword, "use a number"));
        };
        let bound = (Num::of(bound), !keyword.starts_with("exclusive"));
        let mut numbers = Numbers::default();
        if keyword.ends_with("inimum") {
            numbers.max = Some(bound);
        } else {
            numbers.min = Some(bound);
        }
        Ok(Shape {
            numbers: vec![numbers],
            ..Shape::default()
        })
    }

    /// Arrays that have an item that its place among the first does not allow.
    fn not_prefix(&self, place: Place, keyword: &str, value: &'a Value) -> Checked<Shape> {
        let places = self.schemas(place, keyword, value)?;
        Ok(arrays(places.into_iter().enumerate().map(|(at, inner)| {
            let mut prefix = vec![Node::new(); at];
            prefix.push([fails(inner)].into());
            Arrays {
                prefix,
                min: at + 1,
                ..Arrays::default()
            }
        })))
    }
}

/// A place that must not hold.
fn fails(place: Place) -> Literal {
    Literal {
        place,
        negated: true,
    }
}

/// Objects that have a property of a kind.
fn with(name: &str, node: Node) -> Objects {
    Objects {
        properties: vec![(name.to_owned(), node)],
        required: [name.to_owned()].into(),
        ..Objects::default()
    }
}

/// What a bound of the length of texts, lists or objects does not allow.
fn not_count(keyword: &str, count: Option<usize>) -> Shape {
    let Some((min, max)) = complement(keyword.starts_with("min"), count) else {
        return Shape::default();
    };
    if keyword.ends_with("Length") {
        strings(Some(Strings {
            min,
            max,
            ..Strings::default()
        }))
    } else if keyword.ends_with("Items") {
        arrays(Some(Arrays {
            min,
            max,
            ..Arrays::default()
        }))
    } else {
        objects(Some(Objects {
            min,
            max,
            ..Objects::default()
        }))
    }
}

/// The counts that a bound leaves out.
fn complement(is_min: bool, count: Option<usize>) -> Option<(usize, Option<usize>)> {
    match (is_min, count) {
        (true, Some(count)) => Some((0, Some(count.checked_sub(1)?))),
        (false, Some(count)) => Some((count + 1, None)),
        (_, None) => None,
    }
}

fn strings(all: impl IntoIterator<Item = Strings>) -> Shape {
    Shape {
        strings: all.into_iter().collect(),
        ..Shape::default()
    }
}

fn arrays(all: impl IntoIterator<Item = Arrays>) -> Shape {
    Shape {
        arrays: all.into_iter().collect(),
        ..Shape::default()
    }
}

fn objects(all: impl IntoIterator<Item = Objects>) -> Shape {
    Shape {
        objects: all.into_iter().collect(),
        ..Shape::default()
    }
}
