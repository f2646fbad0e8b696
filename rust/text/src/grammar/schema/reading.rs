//! From the keywords of a schema to its shape.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use serde_json::{Map, Value};

use super::document::{Checked, Document, Place, Refusal, kind};
use super::formats;
use super::shape::{Arrays, Layer, Literal, Node, Numbers, Objects, Shape, Strings};
use super::validation;
use crate::grammar::number::Num;
use crate::grammar::pattern::Pattern;

/// The most alternatives that schemas which must hold together may have.
const MAX_ALTERNATIVES: usize = 2_000;
/// How deep schemas may refer to each other in place.
const MAX_DEPTH: usize = 100;
/// The most values of all enumerations.
pub(super) const MAX_ENUM_VALUES: usize = 10_000;
/// The most names of properties of one object.
const MAX_PROPERTIES: usize = 2_000;
/// The most steps of reading a schema.
const MAX_STEPS: u64 = 400_000;
/// The greatest count: of characters, items or properties.
pub(super) const MAX_COUNT: u64 = 10_000;
/// How deep values are looked into to tell that two schemas have nothing in common.
const MAX_PROBE: usize = 4;

type Object = Map<String, Value>;

/// Reads the shapes of a schema.
pub(super) struct Reading<'a> {
    pub(super) document: Document<'a>,
    root: &'a Value,
    shapes: RefCell<HashMap<Node, Rc<Shape>>>,
    under_way: RefCell<Vec<Literal>>,
    steps: Cell<u64>,
}

impl<'a> Reading<'a> {
    pub(super) fn new(root: &'a Value) -> Self {
        Self {
            document: Document::new(root),
            root,
            shapes: RefCell::default(),
            under_way: RefCell::default(),
            steps: Cell::new(0),
        }
    }

    /// The whole schema.
    pub(super) fn root(&self) -> Node {
        [holds(self.document.root())].into()
    }

    /// What a node allows.
    pub(super) fn shape(&self, node: &Node) -> Checked<Rc<Shape>> {
        if let Some(shape) = self.shapes.borrow().get(node) {
            return Ok(shape.clone());
        }
        let nowhere = node.contains(&holds(NOWHERE));
        let mut shape = if nowhere {
            Shape::default()
        } else {
            Shape::any()
        };
        for literal in node.iter().filter(|_| !nowhere) {
            shape = self.both(shape, self.of(*literal)?, literal.place)?;
        }
        let shape = Rc::new(shape);
        self.shapes.borrow_mut().insert(node.clone(), shape.clone());
        Ok(shape)
    }

    /// Counts work, so that a small schema does not make much of it.
    pub(super) fn charge(&self, n: usize, place: Place) -> Checked<()> {
        let steps = self.steps.get() + n as u64;
        self.steps.set(steps);
        if steps > MAX_STEPS {
            return Err(self.document.refusal(
                place,
                &[],
                &format!("reading it takes more than the limit of {MAX_STEPS} steps; use a smaller schema"),
            ));
        }
        Ok(())
    }

    /// What a place allows, or what it does not.
    fn of(&self, literal: Literal) -> Checked<Shape> {
        let place = literal.place;
        {
            let under_way = self.under_way.borrow();
            if under_way.contains(&literal) {
                return Err(self.document.refusal(
                    place,
                    &[],
                    "it refers to itself before any value is read ($ref cycle); refer to it from a property or an item",
                ));
            }
            if under_way.len() >= MAX_DEPTH {
                return Err(self.document.refusal(
                    place,
                    &[],
                    &format!("schemas refer to each other more than {MAX_DEPTH} deep; use fewer steps of $ref"),
                ));
            }
        }
        self.charge(1, place)?;
        self.under_way.borrow_mut().push(literal);
        let shape = if literal.negated {
            self.not(place)
        } else {
            self.is(place)
        };
        self.under_way.borrow_mut().pop();
        shape
    }

    /// Both of two unions.
    fn both(&self, one: Shape, two: Shape, place: Place) -> Checked<Shape> {
        let n_pairs = one.numbers.len() * two.numbers.len()
            + one.strings.len() * two.strings.len()
            + one.arrays.len() * two.arrays.len()
            + one.objects.len() * two.objects.len();
        self.charge(n_pairs + 1, place)?;
        let mut both = Shape {
            null: one.null && two.null,
            booleans: [
                one.booleans[0] && two.booleans[0],
                one.booleans[1] && two.booleans[1],
            ],
            ..Shape::default()
        };
        for (first, second) in pairs(&one.numbers, &two.numbers) {
            both.numbers.extend(first.and(second));
        }
        for (first, second) in pairs(&one.strings, &two.strings) {
            both.strings.extend(first.and(second));
        }
        for (first, second) in pairs(&one.arrays, &two.arrays) {
            both.arrays.extend(first.and(second));
        }
        for (first, second) in pairs(&one.objects, &two.objects) {
            let names = first.properties.len() * second.properties.len();
            self.charge(names / 8, place)?;
            both.objects.extend(first.and(second));
        }
        for (values, other) in [(&one.values, &two), (&two.values, &one)] {
            for value in values {
                let known = both.values.iter().any(|it| validation::same(it, value));
                if !known && self.admits(other, value) {
                    both.values.push(value.clone());
                }
            }
        }
        if both.len() > MAX_ALTERNATIVES {
            return Err(self.document.refusal(
                place,
                &[],
                &format!(
                    "its parts together have more than the limit of {MAX_ALTERNATIVES} alternatives; use fewer options \
                     in anyOf and oneOf that must hold together"
                ),
            ));
        }
        Ok(both)
    }

    /// Whether an array or an object is allowed by a shape.
    fn admits(&self, shape: &Shape, value: &Value) -> bool {
        let holds = |node: &Node, value: &Value| {
            node.iter().all(|literal| {
                if literal.place == NOWHERE {
                    return false;
                }
                let schema = self.document.schema(literal.place);
                validation::check(self.root, schema, value).is_ok() != literal.negated
            })
        };
        if shape.values.iter().any(|it| validation::same(it, value)) {
            return true;
        }
        match value {
            Value::Array(items) => shape.arrays.iter().any(|arrays| {
                items.len() >= arrays.min
                    && arrays.max.is_none_or(|max| items.len() <= max)
                    && items
                        .iter()
                        .enumerate()
                        .all(|(at, item)| holds(arrays.item(at), item))
            }),
            Value::Object(entries) => shape.objects.iter().any(|objects| {
                entries.len() >= objects.min
                    && objects.max.is_none_or(|max| entries.len() <= max)
                    && objects
                        .required
                        .iter()
                        .all(|name| entries.contains_key(name))
                    && entries
                        .iter()
                        .all(|(name, value)| holds(&objects.value(name), value))
            }),
            _ => false,
        }
    }

    /// Whether two shapes are known to have nothing in common.
    fn disjoint(&self, one: &Shape, two: &Shape, place: Place) -> Checked<bool> {
        let both = self.both(one.clone(), two.clone(), place)?;
        Ok(self.is_empty(&both, MAX_PROBE))
    }

    /// Whether a shape is known to allow nothing. Where that cannot be told, it is taken to allow something.
    fn is_empty(&self, shape: &Shape, depth: usize) -> bool {
        let node_is_empty = |node: &Node| {
            depth > 0
                && !node.is_empty()
                && self
                    .shape(node)
                    .is_ok_and(|shape| self.is_empty(&shape, depth - 1))
        };
        !shape.null
            && !shape.booleans[0]
            && !shape.booleans[1]
            && shape.numbers.iter().all(Numbers::is_empty)
            && shape.strings.iter().all(Strings::is_empty)
            && shape.values.is_empty()
            && shape
                .arrays
                .iter()
                .all(|arrays| (0..arrays.min.min(8)).any(|at| node_is_empty(arrays.item(at))))
            && shape.objects.iter().all(|objects| {
                let mut required = objects.required.iter();
                required.any(|name| node_is_empty(&objects.value(name)))
            })
    }

    /// What a place allows.
    fn is(&self, place: Place) -> Checked<Shape> {
        let Some(schema) = self.document.keywords(place)? else {
            let anything = self.document.schema(place) == &Value::Bool(true);
            return Ok(if anything {
                Shape::any()
            } else {
                Shape::default()
            });
        };
        let mut shape = self.types(place, schema)?;
        for numbers in &mut shape.numbers {
            *numbers = self.numbers(place, schema, numbers)?;
        }
        shape.numbers.retain(|it| !it.is_empty());
        if !shape.strings.is_empty() {
            shape.strings = vec![self.strings(place, schema)?];
            shape.strings.retain(|it| !it.is_empty());
        }
        if !shape.arrays.is_empty() {
            shape.arrays = self.arrays(place, schema)?.into_iter().collect();
        }
        if !shape.objects.is_empty() {
            shape.objects = self.objects(place, schema)?.into_iter().collect();
        }
        for keyword in schema.keys() {
            if let Some(more) = self.in_place(place, schema, keyword)? {
                shape = self.both(shape, more, place)?;
            }
        }
        Ok(shape)
    }

    /// What a keyword that applies to the same value allows.
    fn in_place(&self, place: Place, schema: &'a Object, keyword: &str) -> Checked<Option<Shape>> {
        let Some(value) = schema.get(keyword) else {
            return Ok(None);
        };
        Ok(Some(match keyword {
            "const" => self.values(place, std::slice::from_ref(value))?,
            "enum" => self.values(place, self.list(place, keyword, value)?)?,
            "$ref" => self.of(holds(self.reference(place, value)?))?,
            "not" => self.of(Literal {
                place: self.document.below(place, &["not"], value),
                negated: true,
            })?,
            "allOf" => {
                let mut all = Shape::any();
                for inner in self.schemas(place, keyword, value)? {
                    all = self.both(all, self.of(holds(inner))?, place)?;
                }
                all
            }
            "anyOf" => {
                let mut any = Shape::default();
                for inner in self.schemas(place, keyword, value)? {
                    any.unite(self.of(holds(inner))?);
                }
                any
            }
            "oneOf" => self.one_of(place, value)?,
            "if" => self.conditional(place, schema, false)?,
            "dependentRequired" => {
                let mut all = Shape::any();
                for (name, needed) in self.map(place, keyword, value)? {
                    let needed = self.names(place, &[keyword, name], needed)?;
                    let either = either_without(name, |objects| objects.required.extend(needed));
                    all = self.both(all, either, place)?;
                }
                all
            }
            "dependentSchemas" => {
                let mut all = Shape::any();
                for (name, inner) in self.map(place, keyword, value)? {
                    let inner = self.document.below(place, &[keyword, name], inner);
                    let with = self.of(holds(inner))?;
                    let with = self.both(with, with_property(name), place)?;
                    let mut either = either_without(name, |_| {});
                    either.objects.truncate(1);
                    either.unite(with);
                    all = self.both(all, either, place)?;
                }
                all
            }
            _ => return Ok(None),
        }))
    }

    /// Exactly one of the options of `oneOf`.
    fn one_of(&self, place: Place, value: &'a Value) -> Checked<Shape> {
        let options = self.schemas(place, "oneOf", value)?;
        let shapes: Vec<Shape> = options
            .iter()
            .map(|&option| self.of(holds(option)))
            .collect::<Checked<_>>()?;
        let mut one = Shape::default();
        for (at, shape) in shapes.iter().enumerate() {
            let mut alone = shape.clone();
            for (other, further) in shapes.iter().enumerate() {
                if other == at || self.disjoint(&alone, further, place)? {
                    continue;
                }
                let outside = self.of(Literal {
                    place: options[other],
                    negated: true,
                });
                let Ok(outside) = outside else {
                    let index = at.to_string();
                    return Err(self.document.refusal(
                        place,
                        &["oneOf", &index],
                        &format!(
                            "it and option {other} of the keyword `oneOf` may both hold, which cannot be enforced; make \
                             the options differ in a required property, or use anyOf"
                        ),
                    ));
                };
                alone = self.both(alone, outside, place)?;
            }
            one.unite(alone);
        }
        Ok(one)
    }

    /// `if`, `then` and `else`, or what they do not allow.
    pub(super) fn conditional(
        &self,
        place: Place,
        schema: &'a Object,
        negated: bool,
    ) -> Checked<Shape> {
        let Some(condition) = schema.get("if") else {
            return Ok(Shape::any());
        };
        let condition = self.document.below(place, &["if"], condition);
        let mut either = Shape::default();
        for (keyword, without) in [("then", false), ("else", true)] {
            let case = Literal {
                place: condition,
                negated: without,
            };
            let consequence = match schema.get(keyword) {
                Some(inner) => self.of(Literal {
                    place: self.document.below(place, &[keyword], inner),
                    negated,
                })?,
                // What is not there allows everything.
                None if negated => continue,
                None => Shape::any(),
            };
            let case = self.of(case).map_err(|Refusal(why)| {
                Refusal(format!(
                    "the keyword `if` at {} cannot be enforced: {why}",
                    self.document.at(place, &["if"])
                ))
            })?;
            either.unite(self.both(case, consequence, place)?);
        }
        Ok(either)
    }

    /// The types of a schema.
    fn types(&self, place: Place, schema: &'a Object) -> Checked<Shape> {
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
                        "{name:?} is not a type; use null, boolean, integer, number, string, array or object"
                    ),
                ));
            }
        })
    }

    /// Values that are given whole.
    fn values(&self, place: Place, values: &[Value]) -> Checked<Shape> {
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
                    texts.insert(text.clone());
                }
                Value::Array(_) | Value::Object(_) => shape.values.push(value.clone()),
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
    fn numbers(&self, place: Place, schema: &'a Object, of_type: &Numbers) -> Checked<Numbers> {
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
    fn strings(&self, place: Place, schema: &'a Object) -> Checked<Strings> {
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
        self.charge(source.len(), place)?;
        let pattern = Pattern::search(source);
        let pattern = pattern.map_err(|why| self.document.refusal(place, &["pattern"], &why))?;
        Ok(Some(pattern))
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
                    "{format:?} is not one of {} and uuid; use one of them, or a pattern",
                    formats::STRING_FORMATS.join(", ")
                ),
            ));
        };
        self.charge(1_000, place)?;
        let pattern = Pattern::search(&pattern);
        let pattern = pattern.map_err(|why| self.document.refusal(place, &["format"], &why))?;
        Ok(Some(pattern))
    }

    /// The arrays that the keywords for arrays allow.
    fn arrays(&self, place: Place, schema: &'a Object) -> Checked<Option<Arrays>> {
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
    fn objects(&self, place: Place, schema: &'a Object) -> Checked<Option<Objects>> {
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
                self.charge(source.len(), place)?;
                let pattern = Pattern::search(source);
                let pattern = pattern.map_err(|why| self.document.refusal(place, &path, &why))?;
                let inner = self.document.below(place, &path, inner);
                layer.patterns.push((pattern, [holds(inner)].into()));
            }
        }
        if let Some(inner) = schema.get("additionalProperties") {
            let inner = self.document.below(place, &["additionalProperties"], inner);
            layer.additional = [holds(inner)].into();
        }
        if let Some(map) = schema.get("properties") {
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
            for (name, inner) in map {
                let inner = self.document.below(place, &["properties", name], inner);
                let mut node: Node = [holds(inner)].into();
                for (pattern, value) in &layer.patterns {
                    if pattern.matches(name) {
                        node.extend(value);
                    }
                }
                objects.properties.push((name.clone(), node));
                layer.names.insert(name.clone());
            }
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

    pub(super) fn count(
        &self,
        place: Place,
        schema: &Object,
        keyword: &str,
    ) -> Checked<Option<usize>> {
        let Some(value) = schema.get(keyword) else {
            return Ok(None);
        };
        let count = match value {
            Value::Number(number) => match Num::of(number) {
                Num::Int(value) => u64::try_from(value).ok(),
                Num::Float(_) => None,
            },
            _ => None,
        };
        match count {
            Some(count) if count <= MAX_COUNT => Ok(usize::try_from(count).ok()),
            // Longer than any text: a bound that nothing reaches.
            Some(_) if keyword.starts_with("max") => Ok(None),
            Some(count) => Err(self.document.refusal(
                place,
                &[keyword],
                &format!("it is {count}, and the limit is {MAX_COUNT}; use a smaller count"),
            )),
            None => Err(self
                .document
                .refusal(place, &[keyword], "it is an integer of at least 0")),
        }
    }

    pub(super) fn reference(&self, place: Place, value: &Value) -> Checked<Place> {
        let Some(reference) = value.as_str() else {
            return Err(self.document.refusal(place, &["$ref"], "it is a string"));
        };
        self.document.referred(place, reference)
    }

    pub(super) fn list<'v>(
        &self,
        place: Place,
        keyword: &str,
        value: &'v Value,
    ) -> Checked<&'v [Value]> {
        match value.as_array() {
            Some(list) => Ok(list),
            None => Err(self.document.refusal(place, &[keyword], "it is a list")),
        }
    }

    pub(super) fn map<'v>(
        &self,
        place: Place,
        keyword: &str,
        value: &'v Value,
    ) -> Checked<&'v Object> {
        match value.as_object() {
            Some(map) => Ok(map),
            None => Err(self.document.refusal(place, &[keyword], "it is an object")),
        }
    }

    /// The places of a list of schemas.
    pub(super) fn schemas(
        &self,
        place: Place,
        keyword: &str,
        value: &'a Value,
    ) -> Checked<Vec<Place>> {
        let list = self.list(place, keyword, value)?;
        if list.is_empty() && keyword != "prefixItems" && keyword != "items" {
            return Err(self
                .document
                .refusal(place, &[keyword], "it has at least one schema"));
        }
        let below = |(at, inner): (usize, &'a Value)| {
            self.document
                .below(place, &[keyword, &at.to_string()], inner)
        };
        Ok(list.iter().enumerate().map(below).collect())
    }

    pub(super) fn names(&self, place: Place, path: &[&str], value: &Value) -> Checked<Vec<String>> {
        let list = value.as_array();
        let names = list.map(|list| list.iter().map(|name| name.as_str().map(str::to_owned)));
        match names.and_then(Iterator::collect) {
            Some(names) => Ok(names),
            None => Err(self
                .document
                .refusal(place, path, "it is a list of strings")),
        }
    }
}

/// A place that must hold.
pub(super) fn holds(place: Place) -> Literal {
    Literal {
        place,
        negated: false,
    }
}

/// Everything where a property is there.
fn with_property(name: &str) -> Shape {
    let mut shape = Shape {
        objects: vec![Objects::default()],
        ..Shape::default()
    };
    shape.objects[0].required.insert(name.to_owned());
    shape
}

/// Everything, where an object either lacks a property or has what `change` asks for.
fn either_without(name: &str, change: impl FnOnce(&mut Objects)) -> Shape {
    let mut with = Objects::default();
    with.required.insert(name.to_owned());
    change(&mut with);
    let mut shape = Shape::any();
    shape.objects = vec![without(name), with];
    shape
}

/// Objects that lack a property.
pub(super) fn without(name: &str) -> Objects {
    Objects {
        properties: vec![(name.to_owned(), never())],
        ..Objects::default()
    }
}

/// A node that allows nothing.
pub(super) fn never() -> Node {
    [holds(NOWHERE)].into()
}

/// A place that is in no schema, and allows nothing.
const NOWHERE: Place = Place(u32::MAX);

fn pairs<'v, T>(one: &'v [T], two: &'v [T]) -> impl Iterator<Item = (&'v T, &'v T)> {
    one.iter()
        .flat_map(move |first| two.iter().map(move |second| (first, second)))
}
