//! The filters, tests, functions and operators that a template has, each of which charges the rendering before it
//! works.
//!
//! The functions themselves are those of minijinja. An operator has a name that no template can spell, and stands where
//! the compiled template had an instruction of its own (see `instructions`).

use minijinja::value::{Rest, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State, Value, filters, functions, tests};

use super::budget::charge;
use super::prices::{charge_filter, charge_method, only_glances};
use super::weight::{
    ITEM_BYTES, check_storable, compared, gathered, glance, made, n_items, reached, sought, weigh,
};

/// What a macro takes that is made while a template runs, with what it encloses. Those of a template are made once.
const MACRO_BYTES: usize = 16 << 10;

/// Operators by the names that the instructions call them by.
pub(super) mod op {
    /// `a ~ b`
    pub(in crate::template) const CONCAT: &str = "~";
    /// Charges for `a + b`; gives both, the second first.
    pub(in crate::template) const BEFORE_ADD: &str = "+";
    /// Charges for `a * b`; gives both, the second first.
    pub(in crate::template) const BEFORE_MUL: &str = "*";
    /// Charges for a comparison; gives both, the second first.
    pub(in crate::template) const BEFORE_COMPARE: &str = "<>";
    /// Charges for `a[b:c:d]`; gives all four, the last first.
    pub(in crate::template) const BEFORE_SLICE: &str = "[:]";
    /// Charges for a value that an instruction made.
    pub(in crate::template) const MADE: &str = "[]";
    /// Charges for a list that holds items of others.
    pub(in crate::template) const GATHERED: &str = "[..]";
    /// `a[b]`
    pub(in crate::template) const ITEM: &str = "a[]";
    /// `{a: b}`
    pub(in crate::template) const MAP: &str = "{}";
    /// Charges for walking a value.
    pub(in crate::template) const WALK: &str = "()";
    /// Charges for a list that is unpacked.
    pub(in crate::template) const UNPACKED: &str = "a,b";
    /// What a namespace may keep.
    pub(in crate::template) const STORED: &str = "=";
    /// The items of several lists as one list.
    pub(in crate::template) const SPREAD: &str = "(*)";
    /// The entries of several maps as one map.
    pub(in crate::template) const SPREAD_NAMED: &str = "(**)";
    /// A macro that was made.
    pub(in crate::template) const MACRO: &str = "macro()";
    /// What a loop may remember: the arguments, the last first.
    pub(in crate::template) const REMEMBERED: &str = "loop()";
}

/// An environment with everything that templates call, and nothing else.
pub(super) fn environment() -> Environment<'static> {
    let mut environment = Environment::empty();
    add_filters(&mut environment);
    add_tests(&mut environment);
    add_operators(&mut environment);
    environment.add_function("range", functions::range);
    let dict = Value::from_function(functions::dict);
    environment.add_function("dict", move |state: &State, arguments: &[Value]| {
        for argument in arguments {
            let weight = weigh(argument)?;
            charge(weight.as_list())?;
        }
        made(dict.call(state, arguments)?)
    });
    let namespace = Value::from_function(functions::namespace);
    environment.add_function("namespace", move |state: &State, arguments: &[Value]| {
        arguments.iter().try_for_each(check_storable)?;
        charge(ITEM_BYTES)?;
        namespace.call(state, arguments)
    });
    environment.set_unknown_method_callback(method);
    environment
}

/// A method of Python's on a text, a list or a map.
fn method(state: &State, subject: &Value, name: &str, arguments: &[Value]) -> Result<Value, Error> {
    charge_method(name, subject, arguments)?;
    if name == "count" && arguments.first().and_then(Value::as_str) == Some("") {
        // Python finds the empty text before each character and at the end; minijinja would look for ever.
        if let Some(text) = subject.as_str() {
            return Ok(Value::from(text.chars().count() + 1));
        }
    }
    made(minijinja_contrib::pycompat::unknown_method_callback(
        state, subject, name, arguments,
    )?)
}

fn add_filters(environment: &mut Environment<'static>) {
    let all = [
        ("safe", Value::from_function(filters::safe)),
        ("escape", Value::from_function(filters::escape)),
        ("e", Value::from_function(filters::escape)),
        ("lower", Value::from_function(filters::lower)),
        ("upper", Value::from_function(filters::upper)),
        ("title", Value::from_function(filters::title)),
        ("capitalize", Value::from_function(filters::capitalize)),
        ("replace", Value::from_function(filters::replace)),
        ("length", Value::from_function(filters::length)),
        ("count", Value::from_function(filters::length)),
        ("dictsort", Value::from_function(filters::dictsort)),
        ("items", Value::from_function(filters::items)),
        ("reverse", Value::from_function(filters::reverse)),
        ("trim", Value::from_function(filters::trim)),
        ("join", Value::from_function(filters::join)),
        ("split", Value::from_function(filters::split)),
        ("lines", Value::from_function(filters::lines)),
        ("default", Value::from_function(filters::default)),
        ("d", Value::from_function(filters::default)),
        ("round", Value::from_function(filters::round)),
        ("abs", Value::from_function(filters::abs)),
        ("int", Value::from_function(filters::int)),
        ("float", Value::from_function(filters::float)),
        ("attr", Value::from_function(filters::attr)),
        ("first", Value::from_function(filters::first)),
        ("last", Value::from_function(filters::last)),
        ("min", Value::from_function(filters::min)),
        ("max", Value::from_function(filters::max)),
        ("sort", Value::from_function(filters::sort)),
        ("list", Value::from_function(filters::list)),
        ("string", Value::from_function(filters::string)),
        ("bool", Value::from_function(filters::bool)),
        ("batch", Value::from_function(filters::batch)),
        ("slice", Value::from_function(filters::slice)),
        ("sum", Value::from_function(filters::sum)),
        ("indent", Value::from_function(filters::indent)),
        ("select", Value::from_function(filters::select)),
        ("reject", Value::from_function(filters::reject)),
        ("selectattr", Value::from_function(filters::selectattr)),
        ("rejectattr", Value::from_function(filters::rejectattr)),
        ("map", Value::from_function(filters::map)),
        ("groupby", Value::from_function(filters::groupby)),
        ("unique", Value::from_function(filters::unique)),
        ("chain", Value::from_function(filters::chain)),
        ("zip", Value::from_function(filters::zip)),
        ("pprint", Value::from_function(filters::pprint)),
        ("format", Value::from_function(filters::format)),
    ];
    for (name, filter) in all {
        let given = only_glances(name);
        environment.add_filter(name, move |state: &State, arguments: &[Value]| {
            charge_filter(name, arguments)?;
            let result = filter.call(state, arguments)?;
            if given { Ok(result) } else { made(result) }
        });
    }
}

fn add_tests(environment: &mut Environment<'static>) {
    let all = [
        ("undefined", Value::from_function(tests::is_undefined)),
        ("defined", Value::from_function(tests::is_defined)),
        ("none", Value::from_function(tests::is_none)),
        ("safe", Value::from_function(tests::is_safe)),
        ("escaped", Value::from_function(tests::is_safe)),
        ("boolean", Value::from_function(tests::is_boolean)),
        ("odd", Value::from_function(tests::is_odd)),
        ("even", Value::from_function(tests::is_even)),
        ("divisibleby", Value::from_function(tests::is_divisibleby)),
        ("number", Value::from_function(tests::is_number)),
        ("integer", Value::from_function(tests::is_integer)),
        ("int", Value::from_function(tests::is_integer)),
        ("float", Value::from_function(tests::is_float)),
        ("string", Value::from_function(tests::is_string)),
        ("sequence", Value::from_function(tests::is_sequence)),
        ("iterable", Value::from_function(tests::is_iterable)),
        ("mapping", Value::from_function(tests::is_mapping)),
        ("startingwith", Value::from_function(tests::is_startingwith)),
        ("endingwith", Value::from_function(tests::is_endingwith)),
        ("lower", Value::from_function(tests::is_lower)),
        ("upper", Value::from_function(tests::is_upper)),
        ("sameas", Value::from_function(tests::is_sameas)),
        ("true", Value::from_function(tests::is_true)),
        ("false", Value::from_function(tests::is_false)),
        ("filter", Value::from_function(tests::is_filter)),
        ("test", Value::from_function(tests::is_test)),
        ("eq", Value::from_function(tests::is_eq)),
        ("equalto", Value::from_function(tests::is_eq)),
        ("==", Value::from_function(tests::is_eq)),
        ("ne", Value::from_function(tests::is_ne)),
        ("!=", Value::from_function(tests::is_ne)),
        ("lt", Value::from_function(tests::is_lt)),
        ("lessthan", Value::from_function(tests::is_lt)),
        ("<", Value::from_function(tests::is_lt)),
        ("le", Value::from_function(tests::is_le)),
        ("<=", Value::from_function(tests::is_le)),
        ("gt", Value::from_function(tests::is_gt)),
        ("greaterthan", Value::from_function(tests::is_gt)),
        (">", Value::from_function(tests::is_gt)),
        ("ge", Value::from_function(tests::is_ge)),
        (">=", Value::from_function(tests::is_ge)),
        ("in", Value::from_function(tests::is_in)),
    ];
    for (name, test) in all {
        environment.add_test(name, move |state: &State, arguments: &[Value]| {
            charge_test(name, arguments)?;
            Ok::<bool, Error>(test.call(state, arguments)?.is_true())
        });
    }
}

/// Charges what a test looks at.
fn charge_test(name: &str, arguments: &[Value]) -> Result<(), Error> {
    match arguments {
        // A test that is not one of texts or lists looks only at the kind of its value.
        _ if !tests_compare(name) => Ok(()),
        [value, place] if name == "in" => sought(value, place),
        [a, b] => compared(a, b),
        _ => arguments.iter().try_for_each(|it| weigh(it).map(drop)),
    }
}

/// Whether a test looks into what it is given.
fn tests_compare(name: &str) -> bool {
    !matches!(
        name,
        "undefined"
            | "defined"
            | "none"
            | "safe"
            | "escaped"
            | "boolean"
            | "number"
            | "integer"
            | "int"
            | "float"
            | "string"
            | "sequence"
            | "iterable"
            | "mapping"
            | "true"
            | "false"
    )
}

fn add_operators(environment: &mut Environment<'static>) {
    environment.add_filter(op::CONCAT, |a: &Value, b: &Value| {
        let text = match (a.as_str(), b.as_str()) {
            (Some(a), Some(b)) => {
                charge(a.len().saturating_add(b.len()))?;
                [a, b].concat()
            }
            _ => {
                charge(weigh(a)?.as_text().saturating_add(weigh(b)?.as_text()))?;
                format!("{a}{b}")
            }
        };
        Ok::<Value, Error>(Value::from(text))
    });
    environment.add_filter(op::BEFORE_ADD, |a: &Value, b: &Value| {
        charge(both(a, b)?)?;
        Ok::<Value, Error>(Value::from(vec![b.clone(), a.clone()]))
    });
    environment.add_filter(op::BEFORE_MUL, |a: &Value, b: &Value| {
        let n_times = a.as_usize().or_else(|| b.as_usize()).unwrap_or(1);
        if !(a.is_number() && b.is_number()) {
            charge(both(a, b)?.saturating_mul(n_times))?;
        }
        Ok::<Value, Error>(Value::from(vec![b.clone(), a.clone()]))
    });
    environment.add_filter(op::BEFORE_COMPARE, |a: &Value, b: &Value| {
        compared(a, b)?;
        sought(a, b)?;
        Ok::<Value, Error>(Value::from(vec![b.clone(), a.clone()]))
    });
    environment.add_filter(op::BEFORE_SLICE, |slice: &[Value]| {
        if let Some(subject) = slice.first() {
            // Backwards its characters are put in a list first.
            let characters = subject
                .as_str()
                .map_or(0, |text| text.len().saturating_mul(5));
            let items = n_items(subject).unwrap_or(0).saturating_mul(ITEM_BYTES);
            charge(characters.saturating_add(items))?;
        }
        Ok::<Value, Error>(Value::from(slice.iter().rev().cloned().collect::<Vec<_>>()))
    });
    environment.add_filter(op::MADE, |value: Value| made(value));
    environment.add_filter(op::GATHERED, |value: Value| gathered(value));
    environment.add_filter(op::ITEM, |subject: &Value, key: &Value| {
        weigh(key)?;
        reached(subject)?;
        subject.get_item(key)
    });
    environment.add_filter(op::MAP, |entries: &[Value]| {
        for key in entries.iter().step_by(2) {
            weigh(key)?;
        }
        let pairs = entries.chunks_exact(2).filter_map(|pair| match pair {
            [key, value] => Some((key.clone(), value.clone())),
            _ => None,
        });
        made(pairs.collect::<Value>())
    });
    add_walks(environment);
}

/// Operators that give what they were given.
fn add_walks(environment: &mut Environment<'static>) {
    environment.add_filter(op::WALK, |value: Value| {
        glance(&value)?;
        Ok::<Value, Error>(value)
    });
    environment.add_filter(op::UNPACKED, |value: Value| {
        match n_items(&value) {
            Some(n_items) => charge(n_items.saturating_mul(ITEM_BYTES))?,
            None => weigh(&value).map(drop)?,
        }
        Ok::<Value, Error>(value)
    });
    environment.add_filter(op::STORED, |value: Value| {
        check_storable(&value)?;
        Ok::<Value, Error>(value)
    });
    environment.add_filter(op::SPREAD, |lists: Rest<Value>| {
        let mut all = Vec::new();
        for list in lists.iter() {
            charge(listed(list)?)?;
            all.extend(list.try_iter()?);
        }
        Ok::<Value, Error>(Value::from(all))
    });
    environment.add_filter(op::SPREAD_NAMED, |maps: Rest<Value>| {
        let mut all = Vec::new();
        for map in maps.iter() {
            charge(weigh(map)?.as_list())?;
            let pairs = map.as_object().filter(|_| map.kind() == ValueKind::Map);
            let Some(pairs) = pairs.and_then(|object| object.try_iter_pairs()) else {
                return Err(Error::new(
                    ErrorKind::InvalidOperation,
                    format!(
                        "attempted to apply keyword arguments from non map (got {})",
                        map.kind()
                    ),
                ));
            };
            all.extend(pairs);
        }
        Ok(all.into_iter().collect::<Value>())
    });
    environment.add_filter(op::MACRO, |value: Value| {
        charge(MACRO_BYTES)?;
        Ok::<Value, Error>(value)
    });
    environment.add_filter(op::REMEMBERED, |arguments: &[Value]| {
        for argument in arguments.iter().skip(1) {
            check_storable(argument)?;
        }
        Ok::<Value, Error>(Value::from(
            arguments.iter().rev().cloned().collect::<Vec<_>>(),
        ))
    });
}

/// What two texts or lists take, put together.
fn both(a: &Value, b: &Value) -> Result<usize, Error> {
    Ok(listed(a)?.saturating_add(listed(b)?))
}

/// What a text or the items of a list take.
fn listed(value: &Value) -> Result<usize, Error> {
    Ok(match value.as_str() {
        Some(text) => text.len(),
        None => match n_items(value) {
            Some(n_items) => n_items.saturating_mul(ITEM_BYTES),
            None if value.as_object().is_some() => weigh(value)?.as_list(),
            None => 0,
        },
    })
}
