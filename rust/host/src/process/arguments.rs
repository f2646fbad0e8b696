//! Arguments as the input of a program: what the command line makes of those behind `--` (`pie.cli.arguments`), for a
//! child that is given arguments and no input.

use std::collections::HashMap;

use serde_json::Value;

/// Where those stand that belong to no name.
const POSITIONAL: &str = "_positional";

/// Folds `--key v`, `--key=v`, `-k v` and `--flag` into one object, a JSON text; the rest stands in `_positional`, in
/// order. Hyphens in a name become underscores, a flag without a value is true, and a minus followed by a digit begins
/// a value. The last of several equal names wins. The values of names that are texts (`is_text`) stay as they were
/// given.
pub(crate) fn folded(args: &[String], is_text: impl Fn(&str) -> bool) -> String {
    let mut named = Named::default();
    let mut positional = Vec::new();
    let mut rest = args.iter().peekable();
    while let Some(argument) = rest.next() {
        if !is_name(argument) {
            positional.push(value_of(argument));
            continue;
        }
        let (name, given) = match argument.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (argument.as_str(), None),
        };
        let key = name.trim_start_matches('-').replace('-', "_");
        let given = given.or_else(|| rest.next_if(|next| !is_name(next)).map(String::as_str));
        let value = match given {
            None => "true".to_owned(),
            Some(text) if is_text(&key) => text_of(text),
            Some(text) => value_of(text),
        };
        named.set(key, value);
    }
    if !positional.is_empty() {
        let list = format!("[{}]", positional.join(","));
        named.set(POSITIONAL.to_owned(), list);
    }
    named.into_json()
}

/// JSON texts by names, in the order in which the names came first.
#[derive(Default)]
struct Named {
    values: Vec<(String, String)>,
    places: HashMap<String, usize>,
}

impl Named {
    fn set(&mut self, key: String, value: String) {
        match self.places.get(&key) {
            Some(place) => self.values[*place].1 = value,
            None => {
                self.places.insert(key.clone(), self.values.len());
                self.values.push((key, value));
            }
        }
    }

    fn into_json(self) -> String {
        let values = self.values.into_iter();
        let fields: Vec<String> = values
            .map(|(key, value)| format!("{}:{value}", text_of(&key)))
            .collect();
        format!("{{{}}}", fields.join(","))
    }
}

/// What an argument stands for: a JSON number, boolean, array or object where it is one, with all its digits; else the
/// text itself.
fn value_of(text: &str) -> String {
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Null | Value::String(_)) | Err(_) => text_of(text),
        Ok(_) => text.trim().to_owned(),
    }
}

fn text_of(text: &str) -> String {
    Value::from(text).to_string()
}

/// True for an argument that begins with a name.
fn is_name(argument: &str) -> bool {
    let Some(rest) = argument.strip_prefix('-') else {
        return false;
    };
    let digits = rest.strip_prefix('.').unwrap_or(rest);
    !rest.is_empty() && rest != "-" && !digits.starts_with(|first: char| first.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(args: &[&str], expected: &str) {
        let args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
        assert_eq!(folded(&args, |name| name == "word"), expected, "{args:?}");
    }

    /// The cases of `tests/cli/test_arguments.py`.
    #[test]
    fn arguments_become_one_object() {
        check(&["--name", "Ann"], r#"{"name":"Ann"}"#);
        check(&["--name=a=b"], r#"{"name":"a=b"}"#);
        check(&["--name="], r#"{"name":""}"#);
        check(&["--max-tokens", "5"], r#"{"max_tokens":5}"#);
        check(&["-n", "5"], r#"{"n":5}"#);
        check(&["--verbose", "--n", "1"], r#"{"verbose":true,"n":1}"#);
        check(&["--offset", "-3"], r#"{"offset":-3}"#);
        check(&["--offset", "-.5"], r#"{"offset":"-.5"}"#);
        check(&["--flag", "false"], r#"{"flag":false}"#);
        check(&["--list", "[1, 2]"], r#"{"list":[1, 2]}"#);
        check(&["--object", r#"{"a": 1}"#], r#"{"object":{"a": 1}}"#);
        check(&["--broken", r#"{"a": 1"#], r#"{"broken":"{\"a\": 1"}"#);
        check(&["--text", r#""quoted""#], r#"{"text":"\"quoted\""}"#);
        check(&["--none", "null"], r#"{"none":"null"}"#);
        check(&["--x", "NaN"], r#"{"x":"NaN"}"#);
        check(&["--x", "1e999"], r#"{"x":"1e999"}"#);
        check(
            &["one", "2", "--k", "v", "three"],
            r#"{"k":"v","_positional":["one",2,"three"]}"#,
        );
        check(&["-"], r#"{"_positional":["-"]}"#);
        check(&["--a", "1", "--b", "1", "--a", "2"], r#"{"a":2,"b":1}"#);
        check(&["--name", "-"], r#"{"name":"-"}"#);
        check(&["--"], r#"{"_positional":["--"]}"#);
    }

    #[test]
    fn texts_stay_and_numbers_keep_their_digits() {
        check(&["--word", "1"], r#"{"word":"1"}"#);
        let number = "123456789012345678901234567890";
        check(&["--x", number], &format!(r#"{{"x":{number}}}"#));
        let deep = "[".repeat(100_000);
        check(&["--x", &deep], &format!(r#"{{"x":"{deep}"}}"#));
    }
}
