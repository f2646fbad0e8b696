//! Whether a document fits a schema: the keywords of [`super::document`], by their definitions.
//!
//! It shares nothing with what makes grammars of schemas but the patterns. So a finished document that a grammar let
//! through is checked by something else.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::document::{refer, shortened};
use super::equality::{canonical, same};
use super::formats;
use super::steps::Steps;
use crate::grammar::number::Num;
use crate::grammar::pattern::Pattern;

/// How deep a check may go: a document has at most 120 levels, and a schema takes a few steps in each.
const MAX_DEPTH: usize = 500;
/// The most steps of a check. Each is a keyword at a value, a value of an enumeration or an item, and 16 bytes of a
/// text that is looked at; see [`Pattern::n_steps`] too.
const MAX_STEPS: u64 = 4_000_000;

/// The patterns of a schema, by their source.
pub(super) type Patterns = HashMap<String, Pattern>;

/// Checks a document.
///
/// # Errors
/// The place in the document, and the keyword that it breaks.
pub(super) fn check(rules: Rules<'_>, document: &Value) -> Result<(), String> {
    let steps = Steps::new(MAX_STEPS);
    let checked = Check::new(rules, &steps).holds(rules.root, document, 0);
    if steps.is_over() {
        return Err(format!(
            "checking it takes more than the limit of {MAX_STEPS} steps or {MAX_DEPTH} levels; use a simpler schema, or \
             bound the lengths of its lists and texts"
        ));
    }
    checked
}

/// Whether a value fits a part of a schema. Where there are no more steps, `steps` says so, and what is returned means
/// nothing.
pub(super) fn fits(rules: Rules<'_>, steps: &Steps, schema: &Value, value: &Value) -> bool {
    Check::new(rules, steps).fits(schema, value, 0)
}

/// A schema that documents are checked by.
#[derive(Clone, Copy)]
pub(super) struct Rules<'a> {
    pub(super) root: &'a Value,
    pub(super) patterns: &'a Patterns,
}

struct Check<'a> {
    rules: Rules<'a>,
    /// The patterns of parts of the schema that no document of its grammar reaches.
    further: RefCell<HashMap<String, Option<Pattern>>>,
    /// Whether values fit options, by the addresses of both: without it, options that recur are looked at again for
    /// each way to them.
    known: RefCell<HashMap<(*const Value, *const Value), bool>>,
    path: RefCell<Vec<Segment<'a>>>,
    /// How many options are being tried in each other. Nobody is told why one of them does not hold.
    n_tried: Cell<usize>,
    steps: &'a Steps,
}

/// A step from a value to one within it.
#[derive(Clone, Copy)]
enum Segment<'a> {
    Key(&'a str),
    Item(usize),
}

/// A keyword of a schema.
#[derive(Clone, Copy)]
struct Rule<'a> {
    schema: &'a Map<String, Value>,
    keyword: &'a str,
    value: &'a Value,
}

impl<'a> Rule<'a> {
    fn list(&self) -> &'a [Value] {
        self.value.as_array().map(Vec::as_slice).unwrap_or_default()
    }

    fn entries(&self) -> impl Iterator<Item = (&'a String, &'a Value)> + use<'a> {
        self.value.as_object().into_iter().flatten()
    }
}

impl<'a> Check<'a> {
    fn new(rules: Rules<'a>, steps: &'a Steps) -> Self {
        Self {
            rules,
            further: RefCell::default(),
            known: RefCell::default(),
            path: RefCell::default(),
            n_tried: Cell::new(0),
            steps,
        }
    }

    fn holds(&self, schema: &'a Value, value: &'a Value, depth: usize) -> Result<(), String> {
        let schema = match schema {
            Value::Bool(true) => return Ok(()),
            Value::Object(schema) => schema,
            _ => return Err(self.broken("false")),
        };
        if depth > MAX_DEPTH {
            self.steps.give_up();
        }
        for (keyword, rule) in schema {
            let rule = Rule {
                schema,
                keyword,
                value: rule,
            };
            if !self.steps.make(1) || !self.keyword(rule, value, depth)? {
                return Err(self.broken(keyword));
            }
        }
        Ok(())
    }

    /// Whether what stands within a value holds.
    fn holds_within(
        &self,
        segment: Segment<'a>,
        schema: &'a Value,
        value: &'a Value,
        depth: usize,
    ) -> Result<(), String> {
        self.path.borrow_mut().push(segment);
        let held = self.holds(schema, value, depth + 1);
        self.path.borrow_mut().pop();
        held
    }

    fn broken(&self, keyword: &str) -> String {
        if self.n_tried.get() > 0 {
            return String::new();
        }
        let mut pointer = String::new();
        for segment in &*self.path.borrow() {
            pointer.push('/');
            match segment {
                Segment::Key(key) => pointer.push_str(key),
                Segment::Item(at) => pointer.push_str(&at.to_string()),
            }
        }
        if pointer.is_empty() {
            pointer.push('/');
        }
        format!("the value at {} breaks `{keyword}`", shortened(&pointer))
    }

    /// A pattern; none where it does not parse.
    fn pattern(&self, source: &str) -> Option<Pattern> {
        if let Some(pattern) = self.rules.patterns.get(source) {
            return Some(pattern.clone());
        }
        if let Some(pattern) = self.further.borrow().get(source) {
            return pattern.clone();
        }
        if !self.steps.make(1_000 + source.len()) {
            return None;
        }
        let pattern = Pattern::search(source).ok();
        let n_bytes = pattern.as_ref().map_or(0, Pattern::n_bytes);
        self.steps.make(n_bytes / 64);
        self.further
            .borrow_mut()
            .insert(source.to_owned(), pattern.clone());
        pattern
    }

    fn matches(&self, pattern: &Pattern, text: &str) -> bool {
        self.steps.make(pattern.n_steps(text.len())) && pattern.matches(text)
    }

    fn of_string(&self, rule: Rule<'a>, text: &str) -> bool {
        self.steps.make(text.len() / 16);
        let matches = |source: &str| {
            self.pattern(source)
                .is_some_and(|it| self.matches(&it, text))
        };
        match rule.keyword {
            "minLength" => !fewer(text.chars().count(), rule.value),
            "maxLength" => !more(text.chars().count(), rule.value),
            "pattern" => rule.value.as_str().is_some_and(matches),
            "format" => {
                self.steps.make(16);
                let pattern = rule.value.as_str().and_then(formats::of_string);
                pattern.is_none_or(|pattern| matches(&pattern))
            }
            _ => true,
        }
    }

    fn same(&self, one: &Value, two: &Value) -> bool {
        same(one, two, &|n_steps| self.steps.make(n_steps))
    }

    fn fits(&self, schema: &'a Value, value: &'a Value, depth: usize) -> bool {
        /// What an answer takes to be kept, in steps: a check keeps no more than some megabytes.
        const KEPT_STEPS: usize = 8;
        let key = (std::ptr::from_ref(schema), std::ptr::from_ref(value));
        if let Some(&known) = self.known.borrow().get(&key) {
            return known;
        }
        self.n_tried.set(self.n_tried.get() + 1);
        let fits = self.steps.make(KEPT_STEPS) && self.holds(schema, value, depth + 1).is_ok();
        self.n_tried.set(self.n_tried.get() - 1);
        if !self.steps.is_over() {
            self.known.borrow_mut().insert(key, fits);
        }
        fits
    }

    fn keyword(&self, rule: Rule<'a>, value: &'a Value, depth: usize) -> Result<bool, String> {
        Ok(match rule.keyword {
            "type" => has_type(rule.value, rule.schema.get("nullable"), value),
            "const" => self.same(rule.value, value),
            "enum" => rule.list().iter().any(|it| self.same(it, value)),
            "$ref" => self.refers(rule.value, value, depth)?,
            "allOf" => {
                for inner in rule.list() {
                    self.holds(inner, value, depth + 1)?;
                }
                true
            }
            "anyOf" => rule.list().iter().any(|it| self.fits(it, value, depth)),
            "oneOf" => {
                let options = rule.list().iter();
                options.filter(|it| self.fits(it, value, depth)).count() == 1
            }
            "not" => !self.fits(rule.value, value, depth),
            "if" => {
                let holds = self.fits(rule.value, value, depth);
                if let Some(inner) = rule.schema.get(if holds { "then" } else { "else" }) {
                    self.holds(inner, value, depth + 1)?;
                }
                true
            }
            _ => match value {
                Value::Number(number) => of_number(rule, Num::of(number)),
                Value::String(text) => self.of_string(rule, text),
                Value::Array(items) => self.of_array(rule, items, depth)?,
                Value::Object(map) => self.of_object(rule, value, map, depth)?,
                Value::Null | Value::Bool(_) => true,
            },
        })
    }

    fn refers(&self, reference: &Value, value: &'a Value, depth: usize) -> Result<bool, String> {
        let reference = reference.as_str().unwrap_or_default();
        if !self.steps.make(reference.len() / 16) {
            return Ok(false);
        }
        match refer(self.rules.root, reference) {
            Ok((inner, _)) => self.holds(inner, value, depth + 1).map(|()| true),
            Err(_) => Ok(false),
        }
    }

    fn of_array(&self, rule: Rule<'a>, items: &'a [Value], depth: usize) -> Result<bool, String> {
        let schema = rule.schema;
        let n_prefix = |list: Option<&Value>| list.and_then(Value::as_array).map_or(0, Vec::len);
        let (rules, rest, from) = match (rule.keyword, rule.value) {
            ("minItems", _) => return Ok(!fewer(items.len(), rule.value)),
            ("maxItems", _) => return Ok(!more(items.len(), rule.value)),
            ("uniqueItems", Value::Bool(true)) => {
                let mut seen = HashSet::new();
                return Ok(items
                    .iter()
                    .map(canonical)
                    .all(|text| self.steps.make(1 + text.len() / 16) && seen.insert(text)));
            }
            ("prefixItems" | "items", Value::Array(rules)) => (rules.as_slice(), None, 0),
            ("items", rest) => (&[][..], Some(rest), n_prefix(schema.get("prefixItems"))),
            ("additionalItems", rest) if schema.get("items").is_some_and(Value::is_array) => {
                (&[][..], Some(rest), n_prefix(schema.get("items")))
            }
            _ => return Ok(true),
        };
        for (at, item) in items.iter().enumerate() {
            if !self.steps.make(1) {
                return Ok(false);
            }
            let inner = match rest {
                Some(rest) if at >= from => rest,
                None if at < rules.len() => &rules[at],
                _ => continue,
            };
            self.holds_within(Segment::Item(at), inner, item, depth)?;
        }
        Ok(true)
    }

    fn of_object(
        &self,
        rule: Rule<'a>,
        whole: &'a Value,
        map: &'a Map<String, Value>,
        depth: usize,
    ) -> Result<bool, String> {
        let has = |name: &str| self.steps.make(1 + name.len() / 16) && map.contains_key(name);
        let has_all = |names: &Value| {
            let names = names.as_array().map(Vec::as_slice).unwrap_or_default();
            names.iter().filter_map(Value::as_str).all(has)
        };
        Ok(match rule.keyword {
            "minProperties" => !fewer(map.len(), rule.value),
            "maxProperties" => !more(map.len(), rule.value),
            "required" => has_all(rule.value),
            "dependentRequired" => rule
                .entries()
                .filter(|(name, _)| has(name))
                .all(|(_, names)| has_all(names)),
            "dependentSchemas" => {
                for (_, inner) in rule.entries().filter(|(name, _)| has(name)) {
                    self.holds(inner, whole, depth + 1)?;
                }
                true
            }
            "properties" => {
                for (name, value) in map {
                    if !self.steps.make(1 + name.len() / 16) {
                        return Ok(false);
                    }
                    if let Some(inner) = rule.value.get(name) {
                        self.holds_within(Segment::Key(name), inner, value, depth)?;
                    }
                }
                true
            }
            "patternProperties" | "additionalProperties" => self.of_other_keys(rule, map, depth)?,
            _ => true,
        })
    }

    /// The values of keys that match patterns, or of those that nothing names.
    fn of_other_keys(
        &self,
        rule: Rule<'a>,
        map: &'a Map<String, Value>,
        depth: usize,
    ) -> Result<bool, String> {
        let names = rule.schema.get("properties").and_then(Value::as_object);
        let is_named = |name: &str| names.is_some_and(|names| names.contains_key(name));
        let patterns = rule.schema.get("patternProperties");
        let patterns = patterns.and_then(Value::as_object).into_iter().flatten();
        let patterns: Vec<(Pattern, &'a Value)> = patterns
            .filter_map(|(source, inner)| Some((self.pattern(source)?, inner)))
            .collect();
        for (name, value) in map {
            if !self.steps.make(1 + name.len() / 16) {
                return Ok(false);
            }
            let mut matched = patterns.iter().filter(|(it, _)| self.matches(it, name));
            if rule.keyword == "patternProperties" {
                for (_, inner) in matched {
                    self.holds_within(Segment::Key(name), inner, value, depth)?;
                }
            } else if !is_named(name) && matched.next().is_none() {
                self.holds_within(Segment::Key(name), rule.value, value, depth)?;
            }
        }
        Ok(true)
    }
}

fn has_type(rule: &Value, nullable: Option<&Value>, value: &Value) -> bool {
    let is = |name: &str| match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "number" => value.is_number(),
        "integer" => value.as_number().is_some_and(|it| Num::of(it).is_integer()),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    };
    let listed = match rule {
        Value::String(name) => is(name),
        Value::Array(names) => names.iter().filter_map(Value::as_str).any(is),
        _ => false,
    };
    listed || (nullable == Some(&Value::Bool(true)) && value.is_null())
}

fn of_number(rule: Rule<'_>, value: Num) -> bool {
    let flag = |keyword: &str| rule.schema.get(keyword) == Some(&Value::Bool(true));
    let Some(bound) = rule.value.as_number().map(Num::of) else {
        return match (rule.keyword, rule.value) {
            ("format", Value::String(format)) => {
                formats::of_integer(format).is_none_or(|(least, most)| {
                    let above = value.compare(Num::Int(least)).is_ge();
                    above && value.compare(Num::Int(most)).is_le()
                })
            }
            _ => true,
        };
    };
    let order = value.compare(bound);
    match rule.keyword {
        "minimum" if flag("exclusiveMinimum") => order.is_gt(),
        "maximum" if flag("exclusiveMaximum") => order.is_lt(),
        "minimum" => order.is_ge(),
        "maximum" => order.is_le(),
        "exclusiveMinimum" => order.is_gt(),
        "exclusiveMaximum" => order.is_lt(),
        "multipleOf" => value.is_multiple_of(bound),
        _ => true,
    }
}

/// Whether a count is below a bound.
fn fewer(count: usize, bound: &Value) -> bool {
    let bound = bound.as_number().map(Num::of);
    bound.is_some_and(|bound| Num::Int(count as i128).compare(bound).is_lt())
}

/// Whether a count is above a bound.
fn more(count: usize, bound: &Value) -> bool {
    let bound = bound.as_number().map(Num::of);
    bound.is_some_and(|bound| Num::Int(count as i128).compare(bound).is_gt())
}
