use super::*;
use crate::program::manifest::Manifest;

const PACKAGE: &str = "[package]\nname = \"a\"\nversion = \"1\"\n[parameters]\n";

fn parameters(text: &str) -> Parameters {
    let manifest = Manifest::parse(&format!("{PACKAGE}{text}"), "Pie.toml").unwrap();
    manifest.parameters.unwrap()
}

fn fault(text: &str) -> String {
    let error = Manifest::parse(&format!("{PACKAGE}{text}"), "Pie.toml").unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidManifest);
    error.message
}

const SAMPLE: &str = r#"
prompt = { type = "string", description = "what to say" }
n = { type = "int", default = 3, min = 1, max = 9 }
temperature = { type = "float", optional = true, min = 0 }
style = { type = "string", default = "short", choices = ["short", "long"] }
loud = { type = "bool", optional = true }
words = { type = "array", optional = true }
extra = { type = "object", optional = true }
"#;

#[test]
fn an_input_that_fits_gets_the_defaults() {
    let parameters = parameters(SAMPLE);
    let checked = |input: &str| parameters.checked(input.to_owned()).unwrap();
    assert_eq!(
        checked(r#"{"prompt":"hi"}"#),
        r#"{"prompt":"hi","n":3,"style":"short"}"#
    );
    let whole = r#"{"prompt": "hi", "n": 9, "temperature": 1, "style": "long", "loud": false, "words": [1], "extra": {}}"#;
    let expected: Value = serde_json::from_str(whole).unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&checked(whole)).unwrap(),
        expected
    );
}

#[test]
fn an_input_with_everything_stays_as_it_was_written() {
    let parameters = parameters("a = \"float\"\n");
    let input = "{ \"a\": 1.50e1 }";
    assert_eq!(parameters.checked(input.to_owned()).unwrap(), input);
}

#[test]
fn null_stands_for_no_fields() {
    let parameters = parameters("a = { type = \"int\", default = 7 }\n");
    assert_eq!(parameters.checked("null".to_owned()).unwrap(), "{\"a\":7}");
    assert_eq!(
        Parameters::default().checked("null".to_owned()).unwrap(),
        "{}"
    );
}

#[test]
fn an_input_that_does_not_fit_is_named() {
    let parameters = parameters(SAMPLE);
    for (input, expected) in [
        (
            "{}",
            "the parameter \"prompt\" is missing; expected a string (what to say)",
        ),
        (
            "[1]",
            "the input is [1]; expected an object with prompt, n, temperature",
        ),
        (
            r#"{"prompt":7}"#,
            "the parameter \"prompt\" is 7; expected a string",
        ),
        (
            r#"{"prompt":null}"#,
            "the parameter \"prompt\" is null; expected a string",
        ),
        (
            r#"{"prompt":"","n":10}"#,
            "the parameter \"n\" is 10; expected an integer from 1 to 9",
        ),
        (
            r#"{"prompt":"","n":18446744073709551615}"#,
            "the parameter \"n\" is 18446744073709551615; expected",
        ),
        (
            r#"{"prompt":"","n":2.0}"#,
            "the parameter \"n\" is 2.0; expected an integer",
        ),
        (
            r#"{"prompt":"","temperature":-0.5}"#,
            "the parameter \"temperature\" is -0.5; expected a number of at least 0",
        ),
        (
            r#"{"prompt":"","style":"x"}"#,
            "the parameter \"style\" is \"x\"; expected a string, one of \"short\", \"long\"",
        ),
        (
            r#"{"prompt":"","loud":1}"#,
            "the parameter \"loud\" is 1; expected true or false",
        ),
        (
            r#"{"prompt":"","words":{}}"#,
            "the parameter \"words\" is {}; expected an array",
        ),
        (
            r#"{"prompt":"","extra":[]}"#,
            "the parameter \"extra\" is []; expected an object",
        ),
        (
            r#"{"promt":"hi"}"#,
            "there is no parameter \"promt\" (= \"hi\"); did you mean \"prompt\"? The program takes prompt, n, temperature, style, loud, words, extra, declared in [parameters] of its Pie.toml when it was built",
        ),
        (
            r#"{"prompt":"","_positional":["hi"]}"#,
            "the program takes no arguments without a name, and was given [\"hi\"]; it takes prompt, n, temperature, style, loud, words, extra, declared in [parameters] of its Pie.toml when it was built",
        ),
    ] {
        let error = parameters.checked(input.to_owned()).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidInput);
        assert!(
            error.message.starts_with(expected),
            "{input}: {}",
            error.message
        );
    }
}

#[test]
fn a_long_value_is_shortened() {
    let parameters = parameters("n = \"int\"\n");
    let input = format!("{{\"n\":\"{}\"}}", "x".repeat(100_000));
    assert!(parameters.checked(input).unwrap_err().message.len() < 300);
}

#[test]
fn a_parameter_that_cannot_be_is_named_with_its_line() {
    for (text, expected) in [
        (
            "n = \"integer\"",
            "Pie.toml:5: parameters.n = \"integer\"; expected one of string, int, float, bool, array, object; did you mean \"int\"?",
        ),
        (
            "n = 3",
            "Pie.toml:5: parameters.n = 3; expected a type such as",
        ),
        ("n = {}", "Pie.toml: parameters.n.type is missing"),
        (
            "n = { type = \"int\", defualt = 3 }",
            "Pie.toml:5: there is no field parameters.n.defualt; did you mean \"default\"?",
        ),
        (
            "n = { type = \"int\", default = \"3\" }",
            "Pie.toml:5: parameters.n.default = \"3\"; expected an integer",
        ),
        (
            "n = { type = \"int\", max = 2, default = 3 }",
            "Pie.toml:5: parameters.n.default = 3; expected an integer of at most 2",
        ),
        (
            "n = { type = \"int\", min = 3, max = 2 }",
            "Pie.toml:5: parameters.n.max = 2; expected at least min = 3",
        ),
        (
            "n = { type = \"string\", min = 3 }",
            "Pie.toml:5: parameters.n.min = 3; expected a number, and the type int or float",
        ),
        (
            "n = { type = \"string\", choices = [1] }",
            "Pie.toml:5: parameters.n.choices = [1]; expected an array of values",
        ),
        (
            "n = { type = \"string\", choices = [] }",
            "Pie.toml:5: parameters.n.choices = []; expected",
        ),
        (
            "n = { type = \"float\", default = nan }",
            "Pie.toml:5: parameters.n.default = nan; expected a finite number",
        ),
        (
            "n = { type = \"int\", optional = 1 }",
            "Pie.toml:5: parameters.n.optional = 1; expected true or false",
        ),
        (
            "n = { type = \"string\", default = 2026-01-01 }",
            "Pie.toml:5: parameters.n.default = 2026-01-01; expected a value that JSON has",
        ),
        (
            "max-tokens = \"int\"",
            "Pie.toml:5: parameters.max-tokens = \"int\"; expected a name of letters",
        ),
    ] {
        let message = fault(text);
        assert!(message.starts_with(expected), "{text}: {message}");
    }
}
