//! What grammars allow, refuse and force.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::sync::{Arc, OnceLock};

use pie_text::grammar::{Compiled, Grammar, Matcher, Source, Vocabulary, check_document};
use pie_text::{Error, Tokenizer};
use serde_json::{Map, Value, json};

fn tokenizer() -> &'static Arc<Tokenizer> {
    static TOKENIZER: OnceLock<Arc<Tokenizer>> = OnceLock::new();
    TOKENIZER.get_or_init(|| {
        let bytes = include_bytes!("../../../python/pie/pie_tiny/tokenizer.json");
        Arc::new(Tokenizer::from_bytes(bytes, 0).unwrap())
    })
}

fn compiled(source: Source<'_>) -> Arc<Compiled> {
    static VOCABULARY: OnceLock<Arc<Vocabulary>> = OnceLock::new();
    let vocabulary =
        VOCABULARY.get_or_init(|| Arc::new(Vocabulary::new(tokenizer().clone(), []).unwrap()));
    let grammar = Arc::new(Grammar::new(source).unwrap());
    Arc::new(Compiled::new(vocabulary.clone(), grammar).unwrap())
}

fn stop() -> Vec<u32> {
    tokenizer().special_tokens().0
}

fn matcher(source: Source<'_>) -> Matcher {
    Matcher::new(&compiled(source), stop())
}

/// Whether a text is one of the grammar.
fn accepts(compiled: &Arc<Compiled>, text: &str) -> bool {
    let mut matcher = Matcher::new(compiled, stop());
    let tokens = tokenizer().encode_content(text).unwrap();
    match matcher.accept(&tokens) {
        Ok(()) => matcher.is_accepting().unwrap(),
        Err(Error::Mismatch(_)) => false,
        Err(other) => panic!("{other}"),
    }
}

/// A text drawn at random, each of its tokens allowed.
fn drawn(compiled: &Arc<Compiled>, seed: u64) -> Option<String> {
    let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random >> 33).unwrap()
    };
    let mut matcher = Matcher::new(compiled, stop());
    let mut tokens = Vec::new();
    while !matcher.is_terminated() {
        let mask = matcher.mask().unwrap();
        let allowed: Vec<u32> = (0..tokenizer().vocab_size())
            .filter(|&it| mask.allows(it))
            .collect();
        let ends: Vec<u32> = allowed.iter().copied().filter(|&it| ends(it)).collect();
        let from = if ends.is_empty() || next() % 3 > 0 {
            &allowed
        } else {
            &ends
        };
        let token = from[next() % from.len()];
        matcher.accept(&[token]).unwrap();
        tokens.push(token);
        if tokens.len() > 100 {
            return None;
        }
    }
    tokens.retain(|token| !stop().contains(token));
    Some(tokenizer().decode(&tokens).unwrap())
}

fn ends(token: u32) -> bool {
    let bytes = tokenizer().token_bytes(token).unwrap_or_default();
    stop().contains(&token) || matches!(bytes, b"\"" | b"}" | b"]" | b"\"}")
}

fn schema(schema: &Value) -> Arc<Compiled> {
    compiled(Source::JsonSchema(&schema.to_string()))
}

fn refused(source: Source<'_>) -> String {
    match Grammar::new(source) {
        Err(Error::Grammar(why)) => why,
        other => panic!("{other:?}"),
    }
}

// rows: RS-130 RS-142 RS-149 RS-153
#[test]
fn documents_of_a_schema_are_accepted_and_no_others() {
    let cases = [
        (
            json!({"type": "integer", "minimum": -3, "exclusiveMaximum": 12}),
            vec!["-3", "0", "11"],
            vec!["-4", "12", "1.5", "03"],
        ),
        (
            json!({"type": "integer", "minimum": -3, "maximum": 0}),
            vec!["-3", "-1", "0"],
            vec!["-0", "-4", "1"],
        ),
        (
            json!({"type": "string", "pattern": "^a+$", "maxLength": 3}),
            vec![r#""a""#, r#""aaa""#],
            vec![r#""""#, r#""aaaa""#, r#""b""#],
        ),
        // A class of control characters lets none of them through as they are.
        (
            json!({"type": "string", "pattern": "^[\\x00-\\x1f]$"}),
            vec![r#""\n""#, r#""\u0001""#],
            vec!["\"\n\"", "\"\u{1}\""],
        ),
        // A hyphen beside a class escape is one of the characters, and so are two of them.
        (
            json!({"type": "string", "pattern": "^[+-\\d]+$"}),
            vec![r#""+1-2""#],
            vec![r#"",""#, r#""a""#],
        ),
        (
            json!({"type": "string", "pattern": "^[^+--]*$"}),
            vec![r#""a.b""#, r#""""#],
            vec![r#""-""#, r#"",""#, r#""+""#],
        ),
        // Integers that are only told apart as doubles.
        (
            json!({"type": "integer", "exclusiveMinimum": 1e30}),
            vec![
                "1000000000000000200000000000000",
                "9999999999999999999999999999999",
            ],
            vec![
                "1000000000000000019884624838656",
                "1000000000000000019884624838657",
                "5",
            ],
        ),
        // A key in another spelling is not another key.
        (
            json!({"properties": {"a": {"type": "integer"}}, "type": "object"}),
            vec![r#"{"a":1}"#, r#"{"b":"x"}"#],
            vec![r#"{"\u0061":"x"}"#, r#"{"a":1,"a":"x"}"#],
        ),
        (
            json!({"type": "string", "format": "date"}),
            vec![r#""2024-02-29""#, r#""2000-02-29""#],
            vec![r#""2023-02-29""#, r#""1900-02-29""#, r#""0000-01-01""#],
        ),
        (
            json!({"type": "string", "format": "time"}),
            vec![r#""23:59:59Z""#],
            vec![r#""23:59:60Z""#],
        ),
        (
            json!({"type": "string", "format": "ipv6"}),
            vec![r#""::1""#, r#""1:2:3:4:5:6:7:8""#, r#""1::8""#],
            vec![r#""1:2:3:4:5:6:7""#, r#"":::""#],
        ),
        // RFC 1123, and RFC 5890 for the hyphens in the third and fourth place.
        (
            json!({"type": "string", "format": "hostname"}),
            vec![
                r#""a""#,
                r#""pie.example.org""#,
                r#""a--b.c-d""#,
                r#""abc--d""#,
                r#""1host""#,
            ],
            vec![
                r#""""#,
                r#""-a""#,
                r#""a-""#,
                r#""a..b""#,
                r#""ab--c""#,
                r#""xn--x""#,
                r#""a_b""#,
            ],
        ),
        (
            json!({"type": "string", "format": "uri"}),
            vec![
                r#""https://pie.example.org:65535/a?b=1&c=2#d""#,
                r#""file:///etc/hosts""#,
                r#""urn:isbn:0""#,
            ],
            vec![
                r#""pie.example.org""#,
                r#""a:[b]""#,
                r#""a:b c""#,
                r#""a:%4""#,
                r#""a://b:c""#,
            ],
        ),
        (
            json!({"type": "string", "format": "duration"}),
            vec![r#""P1Y2M3DT4H5M6S""#, r#""PT0S""#, r#""P2W""#],
            vec![
                r#""P""#,
                r#""P1DT""#,
                r#""P1W1D""#,
                r#""P1M1Y""#,
                r#""PT1H1S""#,
                r#""P1.5D""#,
            ],
        ),
        (
            json!({"type": "string", "format": "date-time"}),
            vec![r#""2024-02-29T23:59:59.5-00:00""#],
            vec![
                r#""2023-02-29T00:00:00Z""#,
                r#""2024-01-01T00:00:00""#,
                r#""2024-01-01 00:00:00Z""#,
                r#""2024-01-01T24:00:00Z""#,
            ],
        ),
        (
            json!({"type": "object", "properties": {"t": {"enum": ["a", "b"]}, "x": {"type": "integer"}}, "required": ["t"], "additionalProperties": false,
                "if": {"properties": {"t": {"const": "a"}}}, "then": {"required": ["x"]}, "else": {"properties": {"x": false}}}),
            vec![r#"{"t":"a","x":1}"#, r#"{"t":"b"}"#],
            vec![r#"{"t":"a"}"#, r#"{"t":"b","x":1}"#],
        ),
        (
            json!({"type": "string", "not": {"enum": ["no", "never"]}}),
            vec![r#""yes""#, r#""nobody""#],
            vec![r#""no""#, r#""never""#],
        ),
        (
            json!({"type": "object", "properties": {"a": true, "b": true}, "dependentRequired": {"a": ["b"]}, "additionalProperties": false}),
            vec!["{}", r#"{"b":1}"#, r#"{"a":1,"b":2}"#],
            vec![r#"{"a":1}"#],
        ),
        (
            json!({"type": "object", "properties": {"a": {"const": 1}, "b": {"const": 2}, "c": {"const": 3}}, "minProperties": 1, "maxProperties": 2, "additionalProperties": false}),
            vec![r#"{"a":1}"#, r#"{"a":1,"c":3}"#, r#"{"b":2,"c":3}"#],
            vec!["{}", r#"{"a":1,"b":2,"c":3}"#],
        ),
        (
            json!({"oneOf": [{"type": "integer", "maximum": 5}, {"type": "integer", "minimum": 3}]}),
            vec!["2", "6"],
            vec!["3", "4", "5"],
        ),
        (
            json!({"oneOf": [{"const": "no host"}, {"type": "string", "format": "hostname"}]}),
            vec![r#""no host""#, r#""a.b""#],
            vec![r#""a b""#],
        ),
        (
            json!({"type": "string", "nullable": true, "maxLength": 1}),
            vec!["null", r#""x""#],
            vec!["1"],
        ),
        (
            json!({"type": "array", "prefixItems": [{"const": 1}], "items": {"type": "boolean"}, "minItems": 1, "maxItems": 3}),
            vec!["[1]", "[1,true,false]"],
            vec!["[]", "[true]", "[1,true,true,true]"],
        ),
        (
            json!({"type": "array", "prefixItems": [{"const": 1}], "items": {"type": "boolean"}, "maxItems": 2}),
            vec!["[]", "[1]", "[1,true]"],
            vec!["[true]", "[1,true,true]"],
        ),
        (
            json!({"type": "array", "items": {"type": "boolean"}, "maxItems": 1}),
            vec!["[]", "[true]"],
            vec!["[true,true]"],
        ),
        (
            json!({"type": "array", "items": {"type": "boolean"}, "maxItems": 0}),
            vec!["[]"],
            vec!["[true]"],
        ),
        (
            json!({"$ref": "#/$defs/t", "$defs": {"t": {"type": "array", "items": {"$ref": "#/$defs/t"}}}}),
            vec!["[]", "[[],[[]]]"],
            vec!["[1]", "{}"],
        ),
        (
            json!({"type": "integer", "multipleOf": 7}),
            vec!["0", "-7", "21"],
            vec!["8"],
        ),
        (
            json!(true),
            vec!["null", r#"{"a":[1,{}]}"#, "-1.5e3"],
            vec![" 1", "[1, 2]", "{\"a\": 1}", "01"],
        ),
    ];
    for (rule, good, bad) in cases {
        let grammar = schema(&rule);
        for text in good {
            assert!(accepts(&grammar, text), "{rule}: {text}");
            check_document(&rule.to_string(), text).unwrap();
        }
        for text in bad {
            assert!(!accepts(&grammar, text), "{rule}: {text}");
        }
        for seed in 0..5 {
            let Some(text) = drawn(&grammar, seed) else {
                continue;
            };
            check_document(&rule.to_string(), &text)
                .unwrap_or_else(|error| panic!("{rule}: {text}: {error}"));
        }
    }
}

// rows: RS-142 RS-153
#[test]
fn what_cannot_be_enforced_is_named_with_its_place() {
    let cases = [
        (
            json!({"properties": {"a/b": {"uniqueItems": true}}}),
            "`uniqueItems` at #/properties/a~1b/uniqueItems",
        ),
        (json!({"contains": {}}), "`contains` at #/contains"),
        (
            json!({"propertyNames": {}}),
            "`propertyNames` at #/propertyNames",
        ),
        (json!({"typ": "string"}), "`typ` at #/typ"),
        (
            json!({"type": "string", "format": "iri"}),
            "`format` at #/format",
        ),
        (
            json!({"oneOf": [{"type": "array", "items": {"type": "null"}}, {"type": "array"}]}),
            "#/oneOf/1",
        ),
        // These are hosts too, and times, though none is written so.
        (
            json!({"oneOf": [{"const": "a.b.c.d"}, {"type": "string", "format": "hostname"}]}),
            "#/oneOf/0",
        ),
        (
            json!({"oneOf": [{"properties": {"at": {"enum": ["now", "23:59:60Z"]}}, "required": ["at"], "type": "object"},
                {"properties": {"at": {"format": "time", "type": "string"}}, "required": ["at"], "type": "object"}]}),
            "`format` at #/oneOf/1/properties/at",
        ),
        (json!({"pattern": "a(?=b)"}), "#/pattern"),
        (
            json!({"$ref": "http://example.invalid/schema"}),
            "another document",
        ),
        (
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}),
            "$ref cycle",
        ),
        (
            json!({"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#"}}}),
            "no finite document",
        ),
        (
            json!({"type": "string", "pattern": "^a{5}$", "maxLength": 3}),
            "no finite document",
        ),
        (
            json!({"type": "string", "minLength": 1_000_000_000}),
            "the limit is 10000",
        ),
        (
            json!({"pattern": "((a{1,100}){1,100}){1,100}"}),
            "the limit is 20000",
        ),
        (
            json!({"enum": (0..100_000).collect::<Vec<u32>>()}),
            "100000 values",
        ),
        (
            json!({"type": "object", "minProperties": 3}),
            "`minProperties`",
        ),
        (
            json!({"properties": {"a": {"type": "integer", "minimum": 1, "maximum": 1, "not": {"const": 1}}},
                "required": ["a"], "type": "object"}),
            "no finite document",
        ),
        (
            json!({"type": "integer", "minimum": 1, "maximum": 3, "not": {"enum": [1, 2, 3]}}),
            "no finite document",
        ),
        (
            json!({"type": "integer", "minimum": 3, "maximum": 5, "multipleOf": 7}),
            "no finite document",
        ),
        (
            json!({"type": "string", "maxLength": 0, "not": {"const": ""}}),
            "no finite document",
        ),
        (json!({"type": "integer", "minimum": 1e40}), "beyond 2^127"),
    ];
    for (rule, wanted) in cases {
        let why = refused(Source::JsonSchema(&rule.to_string()));
        assert!(why.contains(wanted), "{why}");
    }
    let why = refused(Source::JsonSchema(r#"{"enum": [123456789012345678901]}"#));
    assert!(why.contains("the number 123456789012345678901"), "{why}");
    let kept = Grammar::new(Source::JsonSchema(
        r#"{"enum": [18446744073709551616, 1e30]}"#,
    ));
    kept.unwrap();
}

// rows: RS-132 RS-144 RS-147
#[test]
fn both_dialects_of_ebnf_are_told_apart() {
    let lark = compiled(Source::Ebnf(
        "start: expr\nexpr: expr \"+\" term | term\nterm: NUM\nNUM: /[0-9]+/",
    ));
    assert!(accepts(&lark, "1+22+3") && !accepts(&lark, "1+") && !accepts(&lark, "+1"));
    // The name of an alternative is none of what it consists of.
    let named = compiled(Source::Ebnf(
        "start: \"a\" -> start\n  | \"b\" start -> other",
    ));
    assert!(accepts(&named, "ba") && !accepts(&named, "b"));
    // A lexer that takes the longest match would not see the second.
    let root = compiled(Source::Ebnf(
        "root ::= (\"a\" | \"ab\") \"b\" # a comment ::=\n",
    ));
    assert!(accepts(&root, "ab") && accepts(&root, "abb") && !accepts(&root, "a"));
    let nested = compiled(Source::Ebnf("root ::= \"(\" root \")\" | [^()\\n]+"));
    assert!(accepts(&nested, "((x))") && !accepts(&nested, "((x)"));
}

// rows: RS-144 RS-147 RS-153
#[test]
fn grammars_that_say_nothing_are_refused() {
    let cases = [
        ("start: start", "line 1: no text follows"),
        ("start: a\na: b\nb: a", "no text follows"),
        ("root ::= \"a\" root", "no text follows"),
        ("", "empty"),
        ("start: x", "\"x\" is not a rule"),
        ("begin: \"a\"", "no rule \"start\""),
        ("start: (\"a\"{1,1000}){1,1000}", "the limit is 100000"),
        ("root ::= \"a", "not closed"),
        ("start: %json {}", "% cannot be used"),
        (
            "start: \"a\"\nstart: \"b\"",
            "line 2: the rule \"start\" is there twice",
        ),
    ];
    for (text, wanted) in cases {
        let why = refused(Source::Ebnf(text));
        assert!(why.contains(wanted), "{why}");
    }
    assert!(refused(Source::Regex(r"(a)\1")).contains("a back reference"));
    for sign in ["*", "?", "{2}"] {
        let deep = format!("root ::= \"a\"{}", sign.repeat(200_000 / sign.len()));
        let why = refused(Source::Ebnf(&deep));
        assert!(why.contains("more than 8 counts"), "{sign} {why}");
    }
    let chain = (0..2_000).map(|rule| format!("r{rule}: r{}\n", rule + 1));
    let chain = format!("start: r0\n{}r2000: \"a\"", chain.collect::<String>());
    let why = refused(Source::Ebnf(&chain));
    assert!(why.contains("more than 1000 rules"), "{why}");
}

// rows: RS-071
#[test]
fn a_stop_token_is_not_forced() {
    let rule = json!({"const": "Alice"}).to_string();
    let mut matcher = matcher(Source::JsonSchema(&rule));
    let forced: Vec<u32> = matcher.forced().unwrap().iter().copied().collect();
    matcher.set_stop(vec![forced[0]]);
    matcher.reset();
    assert!(matcher.forced().unwrap().is_empty());
    let error = matcher.mask().unwrap_err().to_string();
    assert!(error.contains("fewer stop tokens"), "{error}");
}

// rows: RS-071
#[test]
fn text_that_is_forced_is_written_as_the_tokenizer_writes_it() {
    let rule = json!({"type": "object", "properties": {"name": {"const": "Alice"}, "old": {"type": "boolean"}}, "required": ["name", "old"], "additionalProperties": false});
    let mut matcher = matcher(Source::JsonSchema(&rule.to_string()));
    let forced: Vec<u32> = matcher.forced().unwrap().iter().copied().collect();
    let text = r#"{"name":"Alice","old":"#;
    let canonical = tokenizer().encode_content(text).unwrap();
    assert!(
        forced.len() > 3 && canonical.starts_with(&forced),
        "{forced:?} {canonical:?}"
    );
    // One by one they are the same, and each of them is alone in its mask.
    for &token in &forced {
        let mask = matcher.mask().unwrap();
        assert_eq!(mask.runs(), [token, 1]);
        matcher.accept(&[token]).unwrap();
    }
    assert!(matcher.mask().unwrap().runs().len() > 2);
}

// rows: RS-149..151
#[test]
fn a_text_ends_by_a_stop_token_where_it_may_and_by_itself_where_nothing_follows() {
    let stop = stop();
    let mut digits = matcher(Source::Regex("[0-9]{2,3}"));
    assert!(stop.iter().all(|&it| !digits.mask().unwrap().allows(it)));
    let number = |text: &str| tokenizer().encode_content(text).unwrap();
    assert!(matches!(digits.accept(&stop[..1]), Err(Error::Mismatch(_))));
    digits.accept(&number("12")).unwrap();
    assert!(stop.iter().all(|&it| digits.mask().unwrap().allows(it)) && !digits.is_terminated());
    let mut third = digits.clone();
    digits.accept(&stop[..1]).unwrap();
    assert!(digits.is_terminated() && matches!(digits.mask(), Err(Error::Mismatch(_))));
    // The copy has gone on by itself.
    assert!(!third.is_terminated());
    third.accept(&number("3")).unwrap();
    assert!(third.is_terminated());
    third.reset();
    assert!(!third.is_terminated() && !third.is_accepting().unwrap());
}

// rows: RS-149
#[test]
fn a_token_that_does_not_fit_changes_nothing() {
    let mut it = matcher(Source::Regex("abc"));
    let tokens = |text: &str| tokenizer().encode_content(text).unwrap();
    let Err(Error::Mismatch(why)) = it.accept(&[tokens("a"), tokens("x")].concat()) else {
        panic!("it was accepted");
    };
    assert!(why.contains("does not continue"), "{why}");
    assert!(it.accept(&[u32::MAX]).is_err());
    it.accept(&tokens("a")).unwrap();
    it.accept(&tokens("bc")).unwrap();
    assert!(it.is_terminated());
}

#[test]
fn documents_that_cannot_be_checked_are_refused_where_they_become_so() {
    let any = schema(
        &json!({"$ref": "#/$defs/t", "$defs": {"t": {"type": "array", "items": {"$ref": "#/$defs/t"}}}}),
    );
    let tokens = |text: &str| tokenizer().encode_content(text).unwrap();
    let nested = |depth: usize| tokens(&("[".repeat(depth) + &"]".repeat(depth)));
    let mut matcher = Matcher::new(&any, stop());
    matcher.accept(&nested(120)).unwrap();
    assert!(matcher.is_terminated());
    matcher.reset();
    let error = matcher.accept(&nested(121)).unwrap_err().to_string();
    assert!(error.contains("the limit of 120 deep"), "{error}");
    let mut matcher = Matcher::new(&schema(&json!({"type": "string"})), stop());
    matcher.accept(&tokens("\"")).unwrap();
    let more = tokens(&"many words of a long text ".repeat(1000));
    let error = loop {
        if let Err(error) = more.iter().try_for_each(|token| matcher.accept(&[*token])) {
            break error;
        }
    };
    assert!(
        error.to_string().contains("the limit is 1048576"),
        "{error}"
    );
    // What failed is of no more use, and says so.
    assert_eq!(matcher.mask().unwrap_err(), error);
    assert_eq!(matcher.accept(&more[..1]).unwrap_err(), error);
    assert!(matcher.is_terminated());
}

#[test]
fn that_all_items_differ_is_found_at_once() {
    let rule = json!({"anyOf": [{"type": "array", "uniqueItems": true, "maxItems": 1},
        {"type": "array", "items": {"type": "integer"}}]});
    let items: Vec<u32> = (0..60_000).collect();
    check_document(&rule.to_string(), &json!(items).to_string()).unwrap();
    let unique = json!({"uniqueItems": true, "maxItems": 1}).to_string();
    for (document, is_unique) in [("[1]", true), ("[1,1.0]", false), ("[[1],[1]]", false)] {
        let checked = check_document(&unique, document);
        assert_eq!(checked.is_ok(), is_unique, "{document}");
    }
}

#[test]
fn values_of_enumerations_are_looked_at_a_bounded_number_of_times() {
    let names: Vec<String> = (0..26).map(|at| format!("d{at}")).collect();
    let both = |to: &String| json!({"$ref": format!("#/$defs/{to}")});
    let pairs = names.windows(2);
    let mut all: Map<String, Value> = pairs
        .map(|it| {
            (
                it[0].clone(),
                json!({"allOf": [both(&it[1]), both(&it[1])]}),
            )
        })
        .collect();
    all.insert(names[25].clone(), json!({"type": "integer"}));
    let values: Vec<[u32; 1]> = (0..9_999).map(|at| [at]).collect();
    let rule = json!({"enum": values, "items": {"$ref": "#/$defs/d0"}, "$defs": all});
    let why = refused(Source::JsonSchema(&rule.to_string()));
    assert!(why.contains("the limit of 1000000 steps"), "{why}");
    let one_by_one = json!({"enum": values[..1_500], "items": {"type": "integer"}}).to_string();
    Grammar::new(Source::JsonSchema(&one_by_one)).unwrap();
}

#[test]
fn checking_a_document_is_bounded() {
    // Each level is looked at by every option, and the last one fits none.
    let tree = json!({"anyOf": [
        {"type": "object", "properties": {"next": {"$ref": "#/$defs/t"}, "a": {"type": "null"}}, "required": ["next"]},
        {"type": "object", "properties": {"next": {"$ref": "#/$defs/t"}, "b": {"type": "null"}}, "required": ["next"]},
        {"type": "null"}
    ]});
    let rule = json!({"$ref": "#/$defs/t", "$defs": {"t": tree}}).to_string();
    let document = |last: &str| "{\"next\":".repeat(100) + last + &"}".repeat(100);
    check_document(&rule, &document("null")).unwrap();
    let error = check_document(&rule, &document("1"))
        .unwrap_err()
        .to_string();
    assert!(error.contains("anyOf"), "{error}");
    let many = json!({"type": "array", "items": {"enum": (0..9000).collect::<Vec<u32>>()}});
    let items: Vec<String> = (0..1000).map(|_| "8999".to_owned()).collect();
    let error = check_document(&many.to_string(), &format!("[{}]", items.join(",")));
    let error = error.unwrap_err().to_string();
    assert!(error.contains("the limit of 4000000 steps"), "{error}");
}

/// Walks a text at random, and tells all that can be seen on the way. What is asked at a place, and whether a token is
/// one of those that must follow, is drawn too.
fn told(matcher: &mut Matcher, seed: u64) -> Vec<(Vec<u32>, Vec<u32>, u32, bool)> {
    let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random >> 33).unwrap()
    };
    let mut told = Vec::new();
    while !matcher.is_terminated() && told.len() < 20 {
        let forced: Vec<u32> = match next() % 3 {
            0 => matcher.forced().unwrap().iter().copied().collect(),
            _ => Vec::new(),
        };
        let runs = match next() % 4 {
            0 => Vec::new(),
            _ => matcher.mask().unwrap().runs(),
        };
        // Another spelling of text that must follow goes on too.
        let mut from: Vec<u32> = Vec::new();
        for token in 0..tokenizer().vocab_size() {
            let is_letter = tokenizer()
                .token_bytes(token)
                .is_some_and(|it| it.len() == 1);
            if (is_letter || next() % 256 == 0) && matcher.clone().accept(&[token]).is_ok() {
                from.push(token);
            }
        }
        let token = match (from.len(), next() % 2) {
            (0, _) | (_, 0) => {
                let mask = matcher.clone().mask().unwrap();
                let all: Vec<u32> = (0..tokenizer().vocab_size())
                    .filter(|&it| mask.allows(it))
                    .collect();
                all[next() % all.len()]
            }
            _ => from[next() % from.len()],
        };
        matcher.accept(&[token]).unwrap();
        told.push((forced, runs, token, matcher.is_terminated()));
    }
    told
}

// rows: RS-147 RS-149
#[test]
fn what_is_known_of_texts_that_were_walked_before_changes_nothing() {
    let sources = [
        r#"{"type": "object", "properties": {"name": {"type": "string", "maxLength": 3}, "kind": {"enum": ["one", "two", 1]}}}"#,
        r#"{"type": "array", "items": {"anyOf": [{"const": "a long text"}, {"type": "integer"}]}, "maxItems": 3}"#,
    ];
    for source in sources {
        let source = Source::JsonSchema(source);
        let known = compiled(source);
        for round in 0..2 {
            for seed in 1..5 {
                for stop in [stop(), vec![stop()[0], 70]] {
                    let mut fresh = Matcher::new(&compiled(source), stop.clone());
                    let mut walked = Matcher::new(&known, stop);
                    assert_eq!(
                        told(&mut walked, seed),
                        told(&mut fresh, seed),
                        "{round} {seed}"
                    );
                }
            }
        }
    }
}

// rows: RS-149
#[test]
fn other_stop_tokens_amid_a_text_are_not_those_of_texts_before() {
    let known = compiled(Source::Regex("ab+"));
    let [a, b] = [b"a", b"b"].map(|text| {
        let ids = 0..tokenizer().vocab_size();
        ids.into_iter()
            .find(|&id| tokenizer().token_bytes(id) == Some(text))
            .unwrap()
    });
    let ends = stop()[0];
    for _ in 0..2 {
        let mut matcher = Matcher::new(&known, vec![ends]);
        matcher.accept(&[a]).unwrap();
        matcher.mask().unwrap();
        matcher.accept(&[b]).unwrap();
        assert!(matcher.mask().unwrap().allows(ends));
        matcher.set_stop(vec![]);
        assert!(!matcher.mask().unwrap().allows(ends));
        matcher.reset();
        assert!(!matcher.mask().unwrap().allows(ends));
    }
}
