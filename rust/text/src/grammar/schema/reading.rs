//! From the keywords of a schema to its shape.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::document::{Checked, Document, Place, Refusal};
use super::equality::Whole;
use super::shape::{Literal, Node, Numbers, Objects, Shape, Strings};
use super::steps::Steps;
use super::terminals::{matches_nothing, string_expression};
use super::validation::{self, Patterns, Rules};
use crate::grammar::number::Num;
use crate::grammar::pattern::Pattern;

/// The most alternatives that schemas which must hold together may have.
const MAX_ALTERNATIVES: usize = 2_000;
/// How deep schemas may refer to each other in place.
const MAX_DEPTH: usize = 100;
/// The most values of all enumerations.
pub(super) const MAX_ENUM_VALUES: usize = 10_000;
/// The most steps of reading a schema.
const MAX_STEPS: u64 = 400_000;
/// The most steps of looking whether values that are given whole fit other schemas.
const MAX_CHECKS: u64 = 1_000_000;
/// The most bytes of all patterns, compiled.
const MAX_PATTERNS_BYTES: usize = 24 << 20;
/// The greatest count: of characters, items or properties.
pub(super) const MAX_COUNT: u64 = 10_000;
/// How deep values are looked into to tell that two schemas have nothing in common.
const MAX_PROBE: usize = 4;

pub(super) type Object = Map<String, Value>;

/// Reads the shapes of a schema.
pub(super) struct Reading<'a> {
    pub(super) document: Document<'a>,
    root: &'a Value,
    shapes: RefCell<HashMap<Node, Rc<Shape>>>,
    under_way: RefCell<Vec<Literal>>,
    patterns: RefCell<Patterns>,
    pattern_bytes: Cell<usize>,
    /// Of strings with patterns, whether there are none, by the hashes of their expressions.
    known_strings: RefCell<HashMap<[u8; 32], bool>>,
    steps: Cell<u64>,
    checks: Steps,
}

impl<'a> Reading<'a> {
    pub(super) fn new(root: &'a Value) -> Self {
        Self {
            document: Document::new(root),
            root,
            shapes: RefCell::default(),
            under_way: RefCell::default(),
            patterns: RefCell::default(),
            pattern_bytes: Cell::new(0),
            known_strings: RefCell::default(),
            steps: Cell::new(0),
            checks: Steps::new(MAX_CHECKS),
        }
    }

    /// The patterns that were read.
    pub(super) fn into_patterns(self) -> Patterns {
        self.patterns.into_inner()
    }

    /// A pattern, compiled where it was not read before.
    pub(super) fn compiled(&self, place: Place, path: &[&str], source: &str) -> Checked<Pattern> {
        if let Some(pattern) = self.patterns.borrow().get(source) {
            return Ok(pattern.clone());
        }
        self.charge(100 + source.len(), place)?;
        let refused = |why: String| self.document.refusal(place, path, &why);
        let pattern = Pattern::search(source).map_err(refused)?;
        let n_bytes = self.pattern_bytes.get() + source.len() + pattern.n_bytes();
        if n_bytes > MAX_PATTERNS_BYTES {
            return Err(refused(format!(
                "the patterns of the schema take more than the limit of {MAX_PATTERNS_BYTES} bytes compiled; use fewer of \
                 them, with smaller counts and classes"
            )));
        }
        self.pattern_bytes.set(n_bytes);
        let mut patterns = self.patterns.borrow_mut();
        patterns.insert(source.to_owned(), pattern.clone());
        Ok(pattern)
    }

    /// Whether patterns and lengths exclude each other.
    pub(super) fn matches_nothing(&self, strings: &Strings, place: Place) -> Checked<bool> {
        if strings.all.is_empty() && strings.none.is_empty() {
            return Ok(strings.is_empty());
        }
        let expression = string_expression(strings, &[]);
        self.charge(1 + expression.len() / 256, place)?;
        let key = Sha256::digest(expression.as_bytes()).into();
        if let Some(&nothing) = self.known_strings.borrow().get(&key) {
            return Ok(nothing);
        }
        let refused = |Refusal(why)| self.document.refusal(place, &[], &why);
        let (nothing, n_steps) = matches_nothing(strings).map_err(refused)?;
        self.charge(n_steps, place)?;
        self.known_strings.borrow_mut().insert(key, nothing);
        Ok(nothing)
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
        self.charge(cost_of_both(&one, &two), place)?;
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
        both.doubt = one.doubt || two.doubt;
        for (first, second) in pairs(&one.strings, &two.strings) {
            both.doubt |= first.doubts(second);
            both.strings.extend(first.and(second));
        }
        for (first, second) in pairs(&one.arrays, &two.arrays) {
            both.arrays.extend(first.and(second));
        }
        for (first, second) in pairs(&one.objects, &two.objects) {
            let names = first.properties.len() * second.properties.len();
            let n_bytes = first.name_bytes() + second.name_bytes();
            self.charge(names / 8 + n_bytes / 64, place)?;
            both.objects.extend(first.and(second));
        }
        let mut known = HashSet::new();
        for (shape, other) in [(&one, &two), (&two, &one)] {
            let listed: HashSet<&str> = texts(&other.values).collect();
            for whole in &shape.values {
                let is_new = known.insert(whole.canonical.as_str());
                let is_listed = listed.contains(whole.canonical.as_str());
                if is_new && (is_listed || self.admits(other, &whole.value, place)?) {
                    both.values.push(Rc::clone(whole));
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

    /// Whether an array or an object is allowed by what a shape says of such.
    fn admits(&self, shape: &Shape, value: &Value, place: Place) -> Checked<bool> {
        let patterns = self.patterns.borrow();
        let rules = Rules {
            root: self.root,
            patterns: &patterns,
        };
        let holds = |node: &Node, value: &Value| {
            self.checks.make(1)
                && node.iter().all(|literal| {
                    literal.place != NOWHERE && {
                        let schema = self.document.schema(literal.place);
                        let fits = validation::fits(rules, &self.checks, schema, value);
                        fits != literal.negated && !self.checks.is_over()
                    }
                })
        };
        let admits = match value {
            Value::Array(items) => shape.arrays.iter().any(|arrays| {
                self.checks.make(1)
                    && items.len() >= arrays.min
                    && arrays.max.is_none_or(|max| items.len() <= max)
                    && items
                        .iter()
                        .enumerate()
                        .all(|(at, item)| holds(arrays.item(at), item))
            }),
            Value::Object(entries) => shape.objects.iter().any(|objects| {
                self.checks.make(1 + objects.required.len())
                    && entries.len() >= objects.min
                    && objects.max.is_none_or(|max| entries.len() <= max)
                    && objects
                        .required
                        .iter()
                        .all(|name| entries.contains_key(name))
                    && entries.iter().all(|(name, value)| {
                        self.checks.make(objects.n_steps(name))
                            && holds(&objects.value(name), value)
                    })
            }),
            _ => false,
        };
        if self.checks.is_over() {
            return Err(self.document.refusal(
                place,
                &[],
                &format!(
                    "looking which values of `enum` and `const` fit takes more than the limit of {} steps; use fewer \
                     arrays and objects there, or schemas of fewer options beside them",
                    self.checks.most()
                ),
            ));
        }
        Ok(admits)
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
        !shape.doubt
            && !shape.null
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

/// The steps that the pairs of two unions and what they list cost.
fn cost_of_both(one: &Shape, two: &Shape) -> usize {
    let n_pairs = one.numbers.len() * two.numbers.len()
        + one.strings.len() * two.strings.len()
        + one.arrays.len() * two.arrays.len()
        + one.objects.len() * two.objects.len();
    let listed = |shape: &Shape| {
        let numbers = shape.numbers.iter().map(Numbers::n_listed).sum::<usize>();
        numbers + shape.strings.iter().map(Strings::n_listed).sum::<usize>()
    };
    let n_listed = listed(one) * (two.numbers.len() + two.strings.len())
        + listed(two) * (one.numbers.len() + one.strings.len());
    let n_values = one.values.len() + two.values.len();
    n_pairs + n_listed / 8 + n_values / 8 + 1
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

/// The canonical texts of values.
fn texts(values: &[Rc<Whole>]) -> impl Iterator<Item = &str> {
    values.iter().map(|it| it.canonical.as_str())
}

fn pairs<'v, T>(one: &'v [T], two: &'v [T]) -> impl Iterator<Item = (&'v T, &'v T)> {
    one.iter()
        .flat_map(move |first| two.iter().map(move |second| (first, second)))
}
