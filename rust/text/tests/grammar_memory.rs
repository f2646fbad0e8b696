//! What matchers say that they take is what they take: their holders are charged by it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/measuring.rs"]
mod measuring;

use std::sync::Arc;

use measuring::{Table, alone, measured};
use pie_text::Tokenizer;
use pie_text::grammar::{Compiled, Grammar, Matcher, Source, Vocabulary};
use serde_json::{Map, Value, json};

fn vocabulary() -> (Arc<Tokenizer>, Arc<Vocabulary>) {
    let bytes = include_bytes!("../../../python/pie/pie_tiny/tokenizer.json");
    let tokenizer = Arc::new(Tokenizer::from_bytes(bytes, 0).unwrap());
    let vocabulary = Vocabulary::new(tokenizer.clone(), []).unwrap();
    (tokenizer, Arc::new(vocabulary))
}

const SCHEMA: &str = r##"{"$ref": "#/$defs/t", "$defs": {"t": {"type": "object", "properties": {"name": {"type": "string"},
    "at": {"type": "string", "format": "date-time"}, "n": {"type": "integer", "minimum": -40, "maximum": 90000},
    "all": {"type": "array", "items": {"$ref": "#/$defs/t"}}}, "required": ["name"], "additionalProperties": {"type": "number"}}}}"##;

/// Sources with what they are walked by.
fn walks() -> Vec<(&'static str, Source<'static>, String)> {
    let object = r#"{"name":"Ada","at":"2024-02-29T10:11:12Z","n":815,"all":[],"k":1.5}"#;
    let list = [object; 60].join(",");
    vec![
        ("any JSON", Source::AnyJson, format!("[{list}]")),
        (
            "schema",
            Source::JsonSchema(SCHEMA),
            format!(r#"{{"name":"x","all":[{list}]}}"#),
        ),
        (
            "string",
            Source::JsonSchema(r#"{"type": "string"}"#),
            format!("\"{}\"", "many words of a text ".repeat(2000)),
        ),
        (
            "regex",
            Source::Regex("((a|b)*a(a|b){8}|c*)*"),
            "abbabaabbcc".repeat(200),
        ),
        (
            "ambiguous",
            Source::Ebnf("root ::= root root | \"a\" | root \"b\"?"),
            "a".repeat(300),
        ),
        (
            "left",
            Source::Ebnf("root ::= root \"+\" n | n\nn ::= [0-9]+"),
            "1+22+333+4".repeat(300),
        ),
        (
            "lark",
            Source::Ebnf("start: (A | B)*\nA: /[a-z]+/\nB: /[0-9 ]/"),
            "ab 12 cde 3 f".repeat(300),
        ),
        (
            "deep",
            Source::Ebnf("root ::= \"(\" root \")\" | \"x\""),
            "(".repeat(2000),
        ),
    ]
}

#[test]
fn matchers_say_what_they_take() {
    alone(|| {
        let (tokenizer, vocabulary) = vocabulary();
        for (name, source, text) in walks() {
            let grammar = Arc::new(Grammar::new(source).unwrap());
            let compiled = Arc::new(Compiled::new(vocabulary.clone(), grammar).unwrap());
            let mut matcher = Matcher::new(&compiled, vec![]);
            let tokens = tokenizer.encode_content(&text).unwrap();
            let mut most_in_step = 0;
            for (at, token) in tokens.iter().enumerate() {
                let before = matcher.n_bytes();
                let step = || {
                    let mask = matcher.mask();
                    mask.and_then(|_| matcher.accept(&[*token]))
                };
                let (taken, _, most) = measured(step);
                most_in_step = most_in_step.max(most);
                assert!(
                    matcher.n_bytes() <= before + Matcher::STEP_BYTES,
                    "{name}: {before} {}",
                    matcher.n_bytes()
                );
                if at % 97 == 0 || at + 1 == tokens.len() || taken.is_err() {
                    let (copy, held, _) = measured(|| matcher.clone());
                    let said = copy.n_bytes();
                    assert!(
                        said >= held,
                        "{name}: {held} bytes are said to be {said} behind {at} tokens"
                    );
                    assert!(
                        said <= 6 * held + (64 << 10),
                        "{name}: {held} bytes are said to be {said} behind {at} tokens"
                    );
                    if taken.is_err() || at + 1 == tokens.len() {
                        println!(
                            "{name}: {at} tokens, {held} bytes, said to be {said}, {most_in_step} in a step, {taken:?}"
                        );
                    }
                }
                if taken.is_err() {
                    break;
                }
            }
            assert!(
                most_in_step <= Matcher::STEP_BYTES,
                "{name}: {most_in_step}"
            );
        }
    });
}

/// A text that can be read in ever more ways ends with an error, and not with all of the memory.
#[test]
fn a_text_that_can_be_read_in_many_ways_is_bounded() {
    alone(|| {
        let (tokenizer, vocabulary) = vocabulary();
        let rules = (0..40).map(|n| {
            format!(
                "r{n} ::= root root | root \"a\" | \"a\" root{}",
                " | \"b\"".repeat(n % 3)
            )
        });
        let options: Vec<String> = (0..40).map(|n| format!("r{n}")).collect();
        let rules: Vec<String> = rules.collect();
        let source = format!(
            "root ::= {} | \"a\"\n{}",
            options.join(" | "),
            rules.join("\n")
        );
        let grammar = Arc::new(Grammar::new(Source::Ebnf(&source)).unwrap());
        let compiled = Arc::new(Compiled::new(vocabulary.clone(), grammar).unwrap());
        let (error, _, most) = measured(|| {
            let mut matcher = Matcher::new(&compiled, vec![]);
            let token = tokenizer.encode_content("a").unwrap()[0];
            let error = loop {
                if let Err(error) = matcher.accept(&[token]) {
                    break error;
                }
            };
            (error.to_string(), matcher.n_bytes()).0
        });
        println!("{most} bytes: {error}");
        assert!(most <= 80 << 20, "{most}");
        assert!(error.contains("the grammar cannot go on"), "{error}");
    });
}

/// What a program may give as a source of a grammar.
enum Definition {
    Schema(String),
    Regex(String),
    Ebnf(String),
}

impl Definition {
    fn source(&self) -> Source<'_> {
        match self {
            Self::Schema(text) => Source::JsonSchema(text),
            Self::Regex(text) => Source::Regex(text),
            Self::Ebnf(text) => Source::Ebnf(text),
        }
    }
}

fn schema(schema: &Value) -> Definition {
    Definition::Schema(schema.to_string())
}

fn regex(text: impl Into<String>) -> Definition {
    Definition::Regex(text.into())
}

fn ebnf(text: impl Into<String>) -> Definition {
    Definition::Ebnf(text.into())
}

/// Objects of optional properties, each the last of the one around it.
fn objects(n: usize, n_properties: usize) -> Value {
    (0..n).fold(json!({"type": "null"}), |inner, _| {
        let mut all: Map<String, Value> = (0..n_properties)
            .map(|at| (format!("p{at}"), json!({"type": "null"})))
            .collect();
        all.insert("inner".to_owned(), inner);
        json!({"type": "object", "properties": all, "additionalProperties": false})
    })
}

/// Rules, each within groups of the one before.
fn chain_of_groups(n: usize, n_groups: usize) -> String {
    let (open, close) = ("(".repeat(n_groups), ")".repeat(n_groups));
    let rules: String = (0..n)
        .map(|at| format!("r{at} ::= {open}r{}{close}\n", at + 1))
        .collect();
    format!("root ::= r0 \"b\" root?\n{rules}r{n} ::= \"a\" r{n}?\n")
}

/// Schemas that make much of little.
fn hostile_schemas() -> Vec<(&'static str, Definition)> {
    let chain = |n: usize| {
        let link = |at: usize| {
            (
                format!("d{at}"),
                json!({"$ref": format!("#/$defs/d{}", at + 1)}),
            )
        };
        let mut definitions: Map<String, Value> = (0..n).map(link).collect();
        definitions.insert(format!("d{n}"), json!({"type": "null"}));
        json!({"$ref": "#/$defs/d0", "$defs": definitions})
    };
    let nested = |n: usize| {
        (0..n).fold(
            json!({"const": 1}),
            |inner, _| json!({"type": "array", "items": inner}),
        )
    };
    let options = |n: usize| -> Vec<Value> {
        (0..n)
            .map(|at| json!({"properties": {format!("p{at}"): {"type": "integer"}}}))
            .collect()
    };
    let either: Vec<Value> = (0..12).map(|at| json!({"anyOf": [{"required": [format!("a{at}")]}, {"required": [format!("b{at}")]}]})).collect();
    let names: Map<String, Value> = (0..1_500)
        .map(|at| (format!("p{at}"), json!({"type": "string", "maxLength": 40})))
        .collect();
    let long_name = "n".repeat(300 << 10);
    let within: Map<String, Value> = (0..2_000)
        .map(|at| (format!("p{at}"), json!({"type": "null"})))
        .collect();
    let patterns: Map<String, Value> = (0..10_000)
        .map(|at| {
            (
                format!("p{at}"),
                json!({"type": "string", "pattern": format!("^[^a]{{0,1999}}b{at:04}$")}),
            )
        })
        .collect();
    let link = |at: usize| json!({"type": "object", "required": ["a"], "properties": {"a": {"$ref": format!("#/$defs/d{}", at + 1)}}});
    let mut links: Map<String, Value> = (0..4_900).map(|at| (format!("d{at}"), link(at))).collect();
    links.insert("d4900".to_owned(), json!({"type": "null"}));
    let bounded: Map<String, Value> = (0..5)
        .map(|n| {
            let names = (0..1_900).map(|at| (format!("p{n}{at}"), json!({"type": "null"})));
            let names: Map<String, Value> = names.collect();
            let required: Vec<&String> = names.keys().collect();
            let all = json!({"type": "object", "required": required, "maxProperties": 10_000, "additionalProperties": false, "properties": names});
            (format!("o{n}"), all)
        })
        .collect();
    let wide = r"\p{L}".repeat(3_000);
    vec![
        ("a property of a long name, with 2,000 within", schema(&json!({"type": "object", "properties": {&long_name: {"type": "object", "properties": within}}}))),
        ("a property of a name of 900 KiB", schema(&json!({"type": "object", "properties": {"n".repeat(900 << 10): {"type": "null"}}}))),
        ("a long name that is refused", schema(&json!({"type": "object", "properties": {&long_name: {"properties": {&long_name[..9]: {"contains": {}}}}}}))),
        ("10,000 large patterns", schema(&json!({"type": "object", "properties": patterns.iter().take(1_999).map(|(name, it)| (name.clone(), it.clone())).collect::<Map<String, Value>>(), "$defs": patterns}))),
        ("a pattern of wide classes", schema(&json!({"type": "string", "pattern": wide}))),
        ("a chain of 4,900 required references", schema(&json!({"$ref": "#/$defs/d0", "$defs": links}))),
        ("maxProperties of 10,000 over required ones", schema(&json!({"type": "object", "properties": bounded}))),
        ("100,000 values", schema(&json!({"enum": (0..100_000).collect::<Vec<u32>>()}))),
        ("9,999 long values", schema(&json!({"enum": (0..9_999).map(|at| format!("{at:060}")).collect::<Vec<String>>()}))),
        ("1,000 values that are objects", schema(&json!({"enum": (0..1_000).map(|at| json!({"a": at})).collect::<Vec<Value>>()}))),
        ("a chain of 90 references", schema(&chain(90))),
        ("a chain of 10,000 references", schema(&chain(10_000))),
        ("a cycle of references", schema(&json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}))),
        ("a schema that needs itself", schema(&json!({"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#"}}}))),
        ("100 lists in each other", schema(&nested(100))),
        ("200 lists in each other", schema(&nested(200))),
        ("100,000 brackets", Definition::Schema("[".repeat(100_000))),
        ("no JSON", Definition::Schema("{".to_owned())),
        ("a megabyte and more", Definition::Schema(format!("{{\"title\": \"{}\"}}", "x".repeat(1 << 20)))),
        ("12 pairs of alternatives that must hold together", schema(&json!({"allOf": either}))),
        ("oneOf of 60 objects", schema(&json!({"oneOf": options(60)}))),
        ("allOf of 500 objects", schema(&json!({"type": "object", "allOf": options(500)}))),
        ("1,500 optional properties", schema(&json!({"type": "object", "properties": names.clone(), "additionalProperties": false}))),
        ("10 objects of 480 optional properties in each other", schema(&objects(10, 480))),
        ("20 objects of 900 of them", schema(&objects(20, 900))),
        ("maxProperties over 1,500", schema(&json!({"type": "object", "properties": names, "additionalProperties": false, "maxProperties": 700}))),
        ("10,000 items", schema(&json!({"type": "array", "items": {"type": "string", "maxLength": 100}, "minItems": 9_999, "maxItems": 10_000}))),
        ("lengths of 10,000 in each other", schema(&json!({"type": "array", "minItems": 9_000, "items": {"type": "array", "minItems": 9_000, "items": {"type": "null"}}}))),
        ("a billion characters", schema(&json!({"type": "string", "minLength": 1_000_000_000}))),
        ("10,000 characters", schema(&json!({"type": "string", "minLength": 9_999, "maxLength": 10_000}))),
        ("patterns that exclude each other", schema(&json!({"type": "string", "allOf": [{"pattern": "^(a|b)*a(a|b){9}$"}, {"pattern": "^(a|b)*b(a|b){9}$"}]}))),
        ("eight patterns that must hold together", schema(&json!({"type": "string", "allOf": (1..9).map(|n| json!({"pattern": format!("^(a|b)*a(a|b){{{n}}}$")})).collect::<Vec<Value>>()}))),
        ("five patterns of keys", schema(&json!({"patternProperties": {"^a": {}, "b$": {}, "c": {}, "d": {}, "e": {}}}))),
        ("a fine multiple", schema(&json!({"type": "number", "multipleOf": 1e-9, "minimum": 0, "maximum": 1e15}))),
        ("bounds of 400 digits", Definition::Schema(format!("{{\"type\": \"integer\", \"minimum\": {0}, \"maximum\": {0}1}}", "9".repeat(400)))),
        ("nested not", schema(&(0..60).fold(json!({"type": "string"}), |inner, _| json!({"not": inner})))),
        ("nested if", schema(&(0..12).fold(json!({"required": ["z"]}), |inner, at| json!({"if": {"required": [format!("p{at}")]}, "then": inner.clone(), "else": inner})))),
        ("dependentRequired of 12", schema(&json!({"type": "object", "dependentRequired": (0..12).map(|at| (format!("p{at}"), json!([format!("q{at}")]))).collect::<Map<String, Value>>()}))),
    ]
}

/// Regular expressions and grammars that do.
fn hostile_texts() -> Vec<(&'static str, Definition)> {
    let chain = |n: usize, last: &str| {
        (0..n)
            .map(|at| format!("r{at} ::= r{}\n", at + 1))
            .collect::<String>()
            + &format!("r{n} ::= {last}\n")
    };
    vec![
        ("nested quantifiers", regex("((((a*)*)*)*)*b")),
        ("counts in each other", regex("((a{1,100}){1,100}){1,100}")),
        ("a huge count", regex("a{1000000}")),
        ("a count of 9,000", regex("(ab?){9000}")),
        ("an automaton of 2^20 states", regex("(a|b)*a(a|b){20}")),
        (
            "alternatives that overlap",
            regex(format!(
                "({})*",
                (1..60)
                    .map(|n| "a".repeat(n))
                    .collect::<Vec<String>>()
                    .join("|")
            )),
        ),
        (
            "all of Unicode, 4,000 times",
            regex("[\\u{0}-\\u{10FFFF}]{4000}"),
        ),
        ("20,000 characters", regex("a".repeat(20_000))),
        (
            "100 groups in each other",
            regex("(".repeat(100) + "a" + &")".repeat(100)),
        ),
        ("a bracket that is not closed", regex("(a")),
        ("look-around", regex("(?=a)b")),
        ("back references", regex("(a)\\1")),
        ("bytes that are not UTF-8", regex("(?-u:\\xff)")),
        ("an empty grammar", ebnf("")),
        ("a grammar of blanks", ebnf(" \n\t# nothing\n")),
        ("left recursion without an end", ebnf("root ::= root \"a\"")),
        ("a rule of itself", ebnf("root ::= root")),
        ("a circle of rules", ebnf("root ::= a\na ::= b\nb ::= root")),
        (
            "hidden left recursion",
            ebnf("root ::= \"\" root \"a\" | \"b\""),
        ),
        (
            "900 rules",
            ebnf(format!("root ::= r0\n{}", chain(900, "\"a\""))),
        ),
        ("990 rules of 90 groups", ebnf(chain_of_groups(990, 90))),
        ("990 rules of 8 groups", ebnf(chain_of_groups(990, 8))),
        (
            "2,000 rules",
            ebnf(format!("root ::= r0\n{}", chain(2_000, "\"a\""))),
        ),
        (
            "rules that double",
            ebnf(format!(
                "root ::= r0\n{}",
                (0..60)
                    .map(|at| format!("r{at} ::= r{0} r{0}\n", at + 1))
                    .collect::<String>()
                    + "r60 ::= \"a\""
            )),
        ),
        (
            "groups in each other",
            ebnf(format!(
                "root ::= {}\"a\"{}",
                "(".repeat(50_000),
                ")".repeat(50_000)
            )),
        ),
        (
            "counts behind each other",
            ebnf(format!("root ::= \"a\"{}", "*".repeat(200_000))),
        ),
        (
            "counts in each other, of rules",
            ebnf("root ::= ((\"a\"{1,90}){1,90}){1,90}"),
        ),
        (
            "a grammar that is too long",
            ebnf(format!("root ::= \"{}\"", "a".repeat(300_000))),
        ),
        (
            "200,000 characters",
            ebnf(format!("root ::= \"{}\"", "a".repeat(200_000))),
        ),
        (
            "30,000 options",
            ebnf(format!(
                "start: {}",
                (0..30_000)
                    .map(|at| format!("\"{at}\""))
                    .collect::<Vec<String>>()
                    .join(" | ")
            )),
        ),
        ("a rule that is missing", ebnf("start: missing")),
        ("a string that is not closed", ebnf("root ::= \"a")),
        (
            "JSON within a grammar",
            ebnf("start: %json {\"type\": \"string\"}"),
        ),
        (
            "an import that there is none",
            ebnf("%import common.NOTHING\nstart: NOTHING"),
        ),
        ("a control token", ebnf("start: <|im_start|> \"a\"")),
        (
            "a control token that there is none",
            ebnf("start: <|nothing|> \"a\""),
        ),
        (
            "tokens beyond the vocabulary",
            ebnf("start: <[4000000]> \"a\""),
        ),
        ("a zero byte", ebnf("root ::= \"\\x00\" \u{0}")),
        (
            "a great ambiguity",
            ebnf("root ::= root root | root root root | \"a\"?"),
        ),
    ]
}

/// Each is answered with a grammar or an error that says what is wrong, within 64 MiB. Prints how long each takes.
#[test]
fn hostile_sources_are_answered_within_bounds() {
    alone(|| {
        let (_, vocabulary) = vocabulary();
        let mut table = Table::default();
        for (name, given) in hostile_schemas().into_iter().chain(hostile_texts()) {
            let work = || {
                let grammar = Arc::new(Grammar::new(given.source())?);
                let compiled = Compiled::new(vocabulary.clone(), grammar)?;
                let mut matcher = Matcher::new(&Arc::new(compiled), vec![]);
                matcher.mask().map(|_| matcher.n_bytes())
            };
            let said = |answer: &Result<usize, pie_text::Error>| match answer {
                Ok(n_bytes) => format!("a grammar, whose matcher takes {n_bytes} bytes"),
                Err(error) => error.to_string(),
            };
            if let Err(error) = table.line(name, work, said) {
                let said = error.to_string();
                assert_eq!(error.code(), "invalid-grammar", "{name}");
                assert!(said.len() < 1_000 && said.len() > 20, "{name}: {said}");
            }
        }
        table.end();
    });
}
