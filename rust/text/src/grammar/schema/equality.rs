//! When two JSON values are equal, as JSON Schema has it: `1` and `1.0` are, and the order of keys does not matter.

use serde_json::Value;

use crate::grammar::number::Num;

/// An array or an object that is given whole.
#[derive(Debug)]
pub(super) struct Whole {
    pub(super) value: Value,
    /// A text that equal values have in common, and no others.
    pub(super) canonical: String,
}

impl Whole {
    pub(super) fn new(value: Value) -> Self {
        Self {
            canonical: canonical(&value),
            value,
        }
    }
}

/// A text that equal values have in common, and no others.
pub(super) fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text
}

fn write(value: &Value, text: &mut String) {
    match value {
        Value::Number(number) => match Num::of(number) {
            Num::Int(value) => text.push_str(&value.to_string()),
            Num::Float(value) => text.push_str(&format!("{value:e}")),
        },
        Value::Array(items) => {
            text.push('[');
            for item in items {
                write(item, text);
                text.push(',');
            }
            text.push(']');
        }
        Value::Object(entries) => {
            let mut entries: Vec<(&String, &Value)> = entries.iter().collect();
            entries.sort_unstable_by_key(|(name, _)| *name);
            text.push('{');
            for (name, value) in entries {
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push(':');
                write(value, text);
                text.push(',');
            }
            text.push('}');
        }
        Value::Null | Value::Bool(_) | Value::String(_) => text.push_str(&value.to_string()),
    }
}

/// Whether two values are equal. `may_look` is told how much of them is looked at, and may end that: they count as
/// different then.
pub(super) fn same(one: &Value, two: &Value, may_look: &impl Fn(usize) -> bool) -> bool {
    let n_steps = match (one, two) {
        (Value::String(one), Value::String(two)) if one.len() == two.len() => 1 + one.len() / 16,
        _ => 1,
    };
    if !may_look(n_steps) {
        return false;
    }
    match (one, two) {
        (Value::Number(one), Value::Number(two)) => Num::of(one).compare(Num::of(two)).is_eq(),
        (Value::Array(one), Value::Array(two)) => {
            let mut pairs = one.iter().zip(two);
            one.len() == two.len() && pairs.all(|(one, two)| same(one, two, may_look))
        }
        (Value::Object(one), Value::Object(two)) => {
            let mut entries = one.iter();
            one.len() == two.len()
                && entries.all(|(name, value)| {
                    let other = two.get(name);
                    may_look(name.len() / 16)
                        && other.is_some_and(|other| same(value, other, may_look))
                })
        }
        _ => one == two,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // rows: RS-130
    #[test]
    fn equal_values_have_one_text_and_others_have_not() {
        let values = [
            json!({"a": 1, "b": [1.5, null]}),
            json!({"b": [1.5, null], "a": 1.0}),
            json!({"a": "1", "b": [1.5, null]}),
            json!([1, 2]),
            json!([[1], 2]),
            json!([1e30, 1e-7]),
            json!([1e30, 1.0e-7]),
            json!({"a,": true}),
            json!({"a": true}),
        ];
        for one in &values {
            for two in &values {
                let texts = [one, two].map(|it| Whole::new(it.clone()).canonical);
                assert_eq!(
                    texts[0] == texts[1],
                    same(one, two, &|_| true),
                    "{one} {two}"
                );
            }
        }
        assert!(!same(&values[0], &values[0], &|_| false));
    }
}
