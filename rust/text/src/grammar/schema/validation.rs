//! Whether a document fits a schema: the keywords of [`super::document`], by their definitions.
//!
//! It shares nothing with what makes grammars of schemas but the patterns. So a finished document that a grammar let
//! through is checked by something else.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use serde_json::{Map, Value};

use super::document::refer;
use super::formats;
use crate::grammar::number::Num;
use crate::grammar::pattern::Pattern;

/// How deep a check may go: a document has at most 120 levels, and a schema takes a few steps in each.
const MAX_DEPTH: usize = 500;
/// The most steps of a check. Each is a keyword at a value, a value of an enumeration or an item, and 16 bytes of a
/// text that a pattern looks at.
const MAX_STEPS: u64 = 4_000_000;

/// Checks a document.
///
/// # Errors
/// The place in the document, and the keyword that it breaks.
pub(super) fn check(root: &Value, schema: &Value, document: &Value) -> Result<(), String> {
    let check = Check {
        root,
        patterns: RefCell::default(),
        known: RefCell::default(),
        steps: Cell::new(0),
        is_too_long: Cell::new(false),
    };
    let checked = check.holds(schema, document, &mut Vec::new(), 0);
    if check.is_too_long.get() {
        return Err(format!(
            "checking it takes more than the limit of {MAX_STEPS} steps or {MAX_DEPTH} levels; use a simpler schema, or \
             bound the lengths of its lists and texts"
        ));
    }
    checked
}

/// Whether two JSON values are equal as JSON Schema has it: `1` and `1.0` are.
pub(super) fn same(one: &Value, two: &Value) -> bool {
    match (one, two) {
        (Value::Number(one), Value::Number(two)) => Num::of(one).compare(Num::of(two)).is_eq(),
        (Value::Array(one), Value::Array(two)) => {
            one.len() == two.len() && one.iter().zip(two).all(|(one, two)| same(one, two))
        }
        (Value::Object(one), Value::Object(two)) => {
            let mut entries = one.iter();
            one.len() == two.len()
                && entries
                    .all(|(name, value)| two.get(name).is_some_and(|other| same(value, other)))
        }
        _ => one == two,
    }
}

struct Check<'a> {
    root: &'a Value,
    /// Those of this check, by their source.
    patterns: RefCell<HashMap<String, Option<Pattern>>>,
    /// Whether arrays and objects fit options, by the addresses of both: without it, options that recur are looked at
    /// again for each way to them.
    known: RefCell<HashMap<(*const Value, *const Value), bool>>,
    steps: Cell<u64>,
    /// Whether the check was given up.
    is_too_long: Cell<bool>,
}

type Path = Vec<String>;

impl Check<'_> {
    fn holds(
        &self,
        schema: &Value,
        value: &Value,
        path: &mut Path,
        depth: usize,
    ) -> Result<(), String> {
        let schema = match schema {
            Value::Bool(true) => return Ok(()),
            Value::Object(schema) => schema,
            _ => return Err(broken(path, "false")),
        };
        if depth > MAX_DEPTH {
            self.is_too_long.set(true);
        }
        for (keyword, rule) in schema {
            if self.is_over(1) {
                return Err(broken(path, keyword));
            }
            if !self.keyword(schema, keyword, rule, value, path, depth)? {
                return Err(broken(path, keyword));
            }
        }
        Ok(())
    }

    /// Counts work; whether there was too much of it.
    fn is_over(&self, n_steps: usize) -> bool {
        let steps = self.steps.get() + n_steps as u64;
        self.steps.set(steps);
        if steps > MAX_STEPS {
            self.is_too_long.set(true);
        }
        self.is_too_long.get()
    }

    /// A pattern; none where it does not parse.
    fn pattern(&self, source: &str) -> Option<Pattern> {
        if let Some(pattern) = self.patterns.borrow().get(source) {
            return pattern.clone();
        }
        let pattern = Pattern::search(source).ok();
        self.patterns
            .borrow_mut()
            .insert(source.to_owned(), pattern.clone());
        pattern
    }

    fn of_string(&self, keyword: &str, rule: &Value, text: &str) -> bool {
        self.is_over(text.len() / 16);
        let matches = |source: &str| self.pattern(source).is_some_and(|it| it.matches(text));
        match keyword {
            "minLength" => !fewer(text.chars().count(), rule),
            "maxLength" => !more(text.chars().count(), rule),
            "pattern" => rule.as_str().is_some_and(matches),
            "format" => {
                let pattern = rule.as_str().and_then(formats::of_string);
                pattern.is_none_or(|pattern| matches(&pattern))
            }
            _ => true,
        }
    }

    fn fits(&self, schema: &Value, value: &Value, path: &mut Path, depth: usize) -> bool {
        let key = (std::ptr::from_ref(schema), std::ptr::from_ref(value));
        if let Some(&known) = self.known.borrow().get(&key) {
            return known;
        }
        let len = path.len();
        let fits = self.holds(schema, value, path, depth + 1).is_ok();
        path.truncate(len);
        if value.is_array() || value.is_object() {
            self.known.borrow_mut().insert(key, fits);
        }
        fits
    }

    #[allow(clippy::too_many_arguments)]
    fn keyword(
        &self,
        schema: &Map<String, Value>,
        keyword: &str,
        rule: &Value,
        value: &Value,
        path: &mut Path,
        depth: usize,
    ) -> Result<bool, String> {
        let list = || rule.as_array().map(Vec::as_slice).unwrap_or_default();
        Ok(match keyword {
            "type" => has_type(rule, schema.get("nullable"), value),
            "const" => same(rule, value),
            "enum" => {
                self.is_over(list().len());
                list().iter().any(|it| same(it, value))
            }
            "$ref" => match refer(self.root, rule.as_str().unwrap_or_default()) {
                Ok((inner, _)) => {
                    self.holds(inner, value, path, depth + 1)?;
                    true
                }
                Err(_) => false,
            },
            "allOf" => {
                for inner in list() {
                    self.holds(inner, value, path, depth + 1)?;
                }
                true
            }
            "anyOf" => list().iter().any(|it| self.fits(it, value, path, depth)),
            "oneOf" => {
                let mut n_fitting = 0;
                for inner in list() {
                    n_fitting += usize::from(self.fits(inner, value, path, depth));
                }
                n_fitting == 1
            }
            "not" => !self.fits(rule, value, path, depth),
            "if" => {
                let case = if self.fits(rule, value, path, depth) {
                    "then"
                } else {
                    "else"
                };
                match schema.get(case) {
                    Some(inner) => {
                        self.holds(inner, value, path, depth + 1)?;
                        true
                    }
                    None => true,
                }
            }
            _ => match value {
                Value::Number(number) => of_number(schema, keyword, rule, Num::of(number)),
                Value::String(text) => self.of_string(keyword, rule, text),
                Value::Array(items) => self.of_array(schema, keyword, rule, items, path, depth)?,
                Value::Object(map) => {
                    self.of_object(schema, keyword, rule, (value, map), path, depth)?
                }
                Value::Null | Value::Bool(_) => true,
            },
        })
    }

    #[allow(clippy::too_many_arguments)]
    fn of_array(
        &self,
        schema: &Map<String, Value>,
        keyword: &str,
        rule: &Value,
        items: &[Value],
        path: &mut Path,
        depth: usize,
    ) -> Result<bool, String> {
        let n_prefix = |list: Option<&Value>| list.and_then(Value::as_array).map_or(0, Vec::len);
        let (rules, rest, from) = match (keyword, rule) {
            ("minItems", _) => return Ok(!fewer(items.len(), rule)),
            ("maxItems", _) => return Ok(!more(items.len(), rule)),
            ("uniqueItems", Value::Bool(true)) => {
                self.is_over(items.len().saturating_mul(items.len()) / 2);
                let doubled =
                    |(at, item): (usize, &Value)| items[..at].iter().any(|it| same(it, item));
                return Ok(!items.iter().enumerate().any(doubled));
            }
            ("prefixItems" | "items", Value::Array(rules)) => (rules.as_slice(), None, 0),
            ("items", _) => (&[][..], Some(rule), n_prefix(schema.get("prefixItems"))),
            ("additionalItems", _) if schema.get("items").is_some_and(Value::is_array) => {
                (&[][..], Some(rule), n_prefix(schema.get("items")))
            }
            _ => return Ok(true),
        };
        for (at, item) in items.iter().enumerate() {
            let inner = match rest {
                Some(rest) if at >= from => rest,
                None if at < rules.len() => &rules[at],
                _ => continue,
            };
            path.push(at.to_string());
            self.holds(inner, item, path, depth + 1)?;
            path.pop();
        }
        Ok(true)
    }

    #[allow(clippy::too_many_arguments)]
    fn of_object(
        &self,
        schema: &Map<String, Value>,
        keyword: &str,
        rule: &Value,
        (whole, map): (&Value, &Map<String, Value>),
        path: &mut Path,
        depth: usize,
    ) -> Result<bool, String> {
        let named = |name: &str| {
            let names = schema.get("properties").and_then(Value::as_object);
            names.is_some_and(|names| names.contains_key(name))
        };
        let rules = rule.as_object();
        match keyword {
            "minProperties" => return Ok(!fewer(map.len(), rule)),
            "maxProperties" => return Ok(!more(map.len(), rule)),
            "required" => {
                let names = rule.as_array().map(Vec::as_slice).unwrap_or_default();
                let mut names = names.iter().filter_map(Value::as_str);
                return Ok(names.all(|name| map.contains_key(name)));
            }
            "dependentRequired" => {
                let needed = rules.into_iter().flatten();
                let mut needed = needed.filter(|(name, _)| map.contains_key(*name));
                return Ok(needed.all(|(_, names)| {
                    let names = names.as_array().map(Vec::as_slice).unwrap_or_default();
                    let mut names = names.iter().filter_map(Value::as_str);
                    names.all(|name| map.contains_key(name))
                }));
            }
            "dependentSchemas" => {
                for (_, inner) in rules
                    .into_iter()
                    .flatten()
                    .filter(|(name, _)| map.contains_key(*name))
                {
                    self.holds(inner, whole, path, depth + 1)?;
                }
                return Ok(true);
            }
            "properties" | "patternProperties" | "additionalProperties" => {}
            _ => return Ok(true),
        }
        let patterns = schema.get("patternProperties").and_then(Value::as_object);
        let patterns: Vec<(Pattern, &Value)> = match keyword {
            "properties" => Vec::new(),
            _ => patterns
                .into_iter()
                .flatten()
                .filter_map(|(source, inner)| Some((self.pattern(source)?, inner)))
                .collect(),
        };
        for (name, value) in map {
            path.push(name.clone());
            match keyword {
                "properties" => {
                    if let Some(inner) = rules.and_then(|rules| rules.get(name)) {
                        self.holds(inner, value, path, depth + 1)?;
                    }
                }
                "patternProperties" => {
                    for (_, inner) in patterns.iter().filter(|(pattern, _)| pattern.matches(name)) {
                        self.holds(inner, value, path, depth + 1)?;
                    }
                }
                _ => {
                    let matched = patterns.iter().any(|(pattern, _)| pattern.matches(name));
                    if !named(name) && !matched {
                        self.holds(rule, value, path, depth + 1)?;
                    }
                }
            }
            path.pop();
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

fn of_number(schema: &Map<String, Value>, keyword: &str, rule: &Value, value: Num) -> bool {
    let flag = |keyword: &str| schema.get(keyword) == Some(&Value::Bool(true));
    let Some(bound) = rule.as_number().map(Num::of) else {
        return match (keyword, rule) {
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
    match keyword {
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

fn broken(path: &[String], keyword: &str) -> String {
    format!("the value at /{} breaks `{keyword}`", path.join("/"))
}
