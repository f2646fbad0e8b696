//! The types of a schema, and the keywords that restrict values of one type.

use std::collections::BTreeSet;
use std::rc::Rc;

use serde_json::Value;

use super::document::{Checked, Place, kind, shortened};
use super::equality::Whole;
use super::formats;
use super::reading::{MAX_ENUM_VALUES, Object, Reading, holds};
use super::shape::{Arrays, Layer, Node, Numbers, Objects, Shape, Strings};
use crate::grammar::number::Num;
use crate::grammar::pattern::Pattern;

/// The most names of properties of one object.
const MAX_PROPERTIES: usize = 2_000;

/// The bytes of a name that do not count as steps.
const USUAL_NAME_BYTES: usize = 64;

impl<'a> Reading<'a> {
    /// The types of a schema.
    pub(super) fn types(&self, place: Place, schema: &'a Object) -> Checked<Shape> {
        let mut shape = match schema.get("type") {
            None => return Ok(Shape::any()),
            Some(Value::String(name)) => self.named_type(place, name)?,
            Some(Value::Array(names)) => {
                let mut shape = Shape::default();
                for name in names {
                    let Some(name) = name.as_str() else {
                        return Err(self
                            .document
                            .refusal(place, &["type"], "a type is a string"));
                    };
                    shape.unite(self.named_type(place, name)?);
                }
                // A number may be an integer.
                if shape.numbers.iter().any(|it| !it.integer) {
                    shape.numbers = vec![Numbers::default()];
                }
                shape
            }
            Some(other) => {
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
        match schema.get("nullable") {
            None | Some(Value::Bool(false)) => {}
            Some(Value::Bool(true)) => shape.null = true,
            Some(_) => {
                return Err(self
                    .document
                    .refusal(place, &["nullable"], "it is true or false"));
            }
        }
        Ok(shape)
    }

    fn named_type(&self, place: Place, name: &str) -> Checked<Shape> {
        let any = Shape::any();
        Ok(match name {
            "null" => Shape {
                null: true,
                ..Shape::default()
            },
            "boolean" => Shape {
                booleans: [true, true],
                ..Shape::default()
            },
            "number" => Shape {
                numbers: any.numbers,
                ..Shape::default()
            },
            "integer" => Shape {
                numbers: vec![Numbers {
                    integer: true,
                    ..Numbers::default()
                }],
                ..Shape::default()
            },
            "string" => Shape {
                strings: any.strings,
                ..Shape::default()
            },
            "array" => Shape {
                arrays: any.arrays,
                ..Shape::default()
            },
            "object" => Shape {
                objects: any.objects,
                ..Shape::default()
            },
            _ => {
                return Err(self.document.refusal(
                    place,
                    &["type"],
                    &format!(
                        "{:?} is not a type; use null, boolean, integer, number, string, array or object",
                        shortened(name)
                    ),
                ));
            }
        })
    }

    /// Values that are given whole.
    pub(super) fn values(&self, place: Place, values: &[Value]) -> Checked<Shape> {
        if values.len() > MAX_ENUM_VALUES {
            return Err(self.document.refusal(
                place,
                &["enum"],
                &format!(
                    "it has {} values, and the limit is {MAX_ENUM_VALUES}; use a pattern, or fewer values",
                    values.len()
                ),
            ));
        }
        self.charge(values.len(), place)?;
        let mut shape = Shape::default();
        let mut texts = BTreeSet::new();
        let mut numbers = Vec::new();
        for value in values {
            match value {
                Value::Null => shape.null = true,
                Value::Bool(value) => shape.booleans[usize::from(*value)] = true,
                Value::Number(value) => numbers.push(Num::of(value)),
                Value::String(text) => {
                    self.charge(text.len() / 64, place)?;
                    texts.insert(text.clone());
                }
                Value::Array(_) | Value::Object(_) => {
                    shape.values.push(Rc::new(Whole::new(value.clone())));
                }
            }
        }
        if !texts.is_empty() {
            shape.strings.push(Strings {
                only: Some(texts),
                ..Strings::default()
            });
        }
        if !numbers.is_empty() {
            shape.numbers.push(Numbers {
                only: Some(numbers),
                ..Numbers::default()
            });
        }
        Ok(shape)
    }

    /// The numbers that the keywords for numbers allow, of those of a type.
    pub(super) fn numbers(
        &self,
        place: Place,
        schema: &'a Object,
        of_type: &Numbers,
    ) -> Checked<Numbers> {
        let mut numbers = of_type.clone();
        let bound = |keyword: &str| match schema.get(keyword) {
            None => Ok(None),
            Some(Value::Number(value)) => Ok(Some(Num::of(value))),
            // As drafts before 6 have them: beside the bound itself.
            Some(Value::Bool(_)) if keyword.starts_with("exclusive") => Ok(None),
            Some(other) => Err(self.document.refusal(
                place,
                &[keyword],
                &format!("it is a number, and not {}", kind(other)),
            )),
        };
        let flag = |keyword: &str| schema.get(keyword) == Some(&Value::Bool(true));
        let min = bound("minimum")?.map(|it| (it, flag("exclusiveMinimum")));
        let max = bound("maximum")?.map(|it| (it, flag("exclusiveMaximum")));
        let within = |min, max| Numbers {
            min,
            max,
            ..Numbers::default()
        };
        let open = within(
            bound("exclusiveMinimum")?.map(|it| (it, true)),
            bound("exclusiveMaximum")?.map(|it| (it, true)),
        );
        let nothing = || Numbers {
            only: Some(Vec::new()),
            ..Numbers::default()
        };
        for more in [within(min, max), open] {
            numbers = numbers.and(&more).unwrap_or_else(nothing);
        }
        if let Some(step) = bound("multipleOf")? {
            if step.as_f64() <= 0.0 {
                return Err(self
                    .document
                    .refusal(place, &["multipleOf"], "it is greater than 0"));
            }
            numbers.multiples.push(step);
        }
        if let Some(Value::String(format)) = schema.get("format")
            && let Some((least, most)) = formats::of_integer(format)
        {
            let bounds = within(
                Some((Num::Int(least), false)),
                Some((Num::Int(most), false)),
            );
            numbers = numbers.and(&bounds).unwrap_or_else(nothing);
        }
        Ok(numbers)
    }

    /// The strings that the keywords for strings allow.
    pub(super) fn strings(&self, place: Place, schema: &'a Object) -> Checked<Strings> {
        let mut strings = Strings {
            min: self.count(place, schema, "minLength")?.unwrap_or(0),
            max: self.count(place, schema, "maxLength")?,
            ..Strings::default()
        };
        strings.all.extend(self.pattern(place, schema)?);
        strings.all.extend(self.format(place, schema)?);
        Ok(strings)
    }

    fn pattern(&self, place: Place, schema: &'a Object) -> Checked<Option<Pattern>> {
        let Some(value) = schema.get("pattern") else {
            return Ok(None);
        };
        let Some(source) = value.as_str() else {
            return Err(self.document.refusal(place, &["pattern"], "it is a string"));
        };
        self.compiled(place, &["pattern"], source).map(Some)
    }

    fn format(&self, place: Place, schema: &'a Object) -> Checked<Option<Pattern>> {
        let format = match schema.get("format") {
            None => return Ok(None),
            Some(Value::String(format)) => format,
            Some(_) => return Err(self.document.refusal(place, &["format"], "it is a string")),
        };
        if formats::of_integer(format).is_some() || formats::is_of_number(format) {
            return Ok(None);
        }
        let Some(pattern) = formats::of_string(format) else {
            return Err(self.document.cannot(
                place,
                "format",
                &format!(
                    "{:?} is not one of {} and uuid; use one of them, or a pattern",
                    shortened(format),
                    formats::STRING_FORMATS.join(", ")
                ),
            ));
        };
        let pattern = self.compiled(place, &["format"], &pattern)?;
        Ok(Some(match formats::wide(format) {
            Some(wide) => pattern.of_format(wide),
            None => pattern,
        }))
    }

    /// The arrays that the keywords for arrays allow.
    pub(super) fn arrays(&self, place: Place, schema: &'a Object) -> Checked<Option<Arrays>> {
        let mut arrays = Arrays {
            min: self.count(place, schema, "minItems")?.unwrap_or(0),
            max: self.count(place, schema, "maxItems")?,
            ..Arrays::default()
        };
        // `items` was what `prefixItems` is where it is a list, and `additionalItems` what `items` is.
        let (prefix, rest) = match schema.get("items") {
            Some(Value::Array(_)) => ("items", "additionalItems"),
            _ => ("prefixItems", "items"),
        };
        if let Some(list) = schema.get(prefix) {
            let places = self.schemas(place, prefix, list)?;
            arrays.prefix = places.into_iter().map(|it| [holds(it)].into()).collect();
        }
        if let Some(inner) = schema.get(rest) {
            let inner = self.document.below(place, &[rest], inner);
            arrays.items = [holds(inner)].into();
        }
        match schema.get("uniqueItems") {
            None | Some(Value::Bool(false)) => {}
            Some(Value::Bool(true)) if arrays.max.is_some_and(|max| max <= 1) => {}
            _ => {
                return Err(self.document.cannot(
                    place,
                    "uniqueItems",
                    "leave it out, and remove what is doubled afterwards",
                ));
            }
        }
        Ok(arrays
            .max
            .is_none_or(|max| max >= arrays.min)
            .then_some(arrays))
    }

    /// The objects that the keywords for objects allow.
    pub(super) fn objects(&self, place: Place, schema: &'a Object) -> Checked<Option<Objects>> {
        let mut objects = Objects {
            min: self.count(place, schema, "minProperties")?.unwrap_or(0),
            max: self.count(place, schema, "maxProperties")?,
            ..Objects::default()
        };
        let mut layer = Layer {
            names: BTreeSet::new(),
            patterns: Vec::new(),
            additional: Node::new(),
        };
        if let Some(map) = schema.get("patternProperties") {
            for (source, inner) in self.map(place, "patternProperties", map)? {
                let path = ["patternProperties", source.as_str()];
                let pattern = self.compiled(place, &path, source)?;
                let inner = self.document.below(place, &path, inner);
                layer.patterns.push((pattern, [holds(inner)].into()));
            }
        }
        if let Some(inner) = schema.get("additionalProperties") {
            let inner = self.document.below(place, &["additionalProperties"], inner);
            layer.additional = [holds(inner)].into();
        }
        if let Some(map) = schema.get("properties") {
            objects.properties = self.properties(place, map, &mut layer)?;
        }
        if let Some(names) = schema.get("required") {
            // As drafts before 4 have it: beside the property.
            objects.required = match names {
                Value::Bool(_) => BTreeSet::new(),
                names => self
                    .names(place, &["required"], names)?
                    .into_iter()
                    .collect(),
            };
        }
        if !layer.patterns.is_empty() || !layer.additional.is_empty() {
            objects.layers.push(layer);
        }
        Ok(objects
            .max
            .is_none_or(|max| max >= objects.min)
            .then_some(objects))
    }

    /// The properties of an object that `properties` names, which `layer` learns.
    fn properties(
        &self,
        place: Place,
        map: &'a Value,
        layer: &mut Layer,
    ) -> Checked<Vec<(String, Node)>> {
        let map = self.map(place, "properties", map)?;
        if map.len() > MAX_PROPERTIES {
            return Err(self.document.refusal(
                place,
                &["properties"],
                &format!(
                    "it names {} properties, and the limit is {MAX_PROPERTIES}; use fewer",
                    map.len()
                ),
            ));
        }
        let mut properties = Vec::with_capacity(map.len());
        for (name, inner) in map {
            let inner = self.document.below(place, &["properties", name], inner);
            let mut node: Node = [holds(inner)].into();
            // The engine keeps a hundred bytes for each of a name.
            let n_long = name.len().saturating_sub(USUAL_NAME_BYTES);
            self.charge(name.len() / 64 + n_long, place)?;
            for (pattern, value) in &layer.patterns {
                self.charge(pattern.n_steps(name.len()), place)?;
                if pattern.matches(name) {
                    node.extend(value);
                }
            }
            properties.push((name.clone(), node));
            layer.names.insert(name.clone());
        }
        Ok(properties)
    }
}
