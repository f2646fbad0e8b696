//! Grammars as programs give them: schemas, regular expressions, EBNF in both dialects, and lists of tools. They are
//! parsed in the engine, within the bounds of `pie_text::grammar`.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use arbitrary::Unstructured;
use pie_text::grammar::{Compiled, Grammar, Matcher, Source, Vocabulary};
use pie_text::{Chat, ToolChoice, ToolList};

use crate::written::{expanded, written};

/// The longest source that is written down: beyond what one may have.
const MAX_BYTES: usize = 1 << 20;
/// Pieces of a source that is made up.
const MAX_PIECES: usize = 60;
/// Tokens that are walked.
const MAX_STEPS: usize = 12;

const SCHEMA_PIECES: [&str; 44] = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"type\":",
    "\"string\"",
    "\"integer\"",
    "\"object\"",
    "\"array\"",
    "\"null\"",
    "\"properties\":{\"a\":",
    "\"additionalProperties\":",
    "\"required\":[\"a\"]",
    "\"items\":",
    "\"prefixItems\":[",
    "\"anyOf\":[",
    "\"oneOf\":[",
    "\"allOf\":[",
    "\"not\":",
    "\"enum\":[1,\"a\",null]",
    "\"const\":",
    "\"$ref\":\"#\"",
    "\"$ref\":\"#/$defs/a\"",
    "\"$defs\":{\"a\":",
    "\"pattern\":\"^a*$\"",
    "\"format\":\"date-time\"",
    "\"minLength\":3",
    "\"maxLength\":1000000",
    "\"minimum\":-1e9",
    "\"maximum\":18446744073709551616",
    "\"multipleOf\":0.1",
    "\"minItems\":2",
    "\"maxItems\":100000",
    "\"uniqueItems\":true",
    "\"propertyNames\":",
    "\"patternProperties\":{\"a+\":",
    "true",
    "false",
    "1",
    "-0.5e300",
    "\"\\ud800\"",
    "\"a\"",
];
const REGEX_PIECES: [&str; 32] = [
    "a",
    "b",
    ".",
    "*",
    "+",
    "?",
    "(",
    ")",
    "[",
    "]",
    "^",
    "$",
    "|",
    "\\d",
    "\\w",
    "\\s",
    "\\b",
    "\\u{1F600}",
    "\\p{L}",
    "\\p{Han}",
    "[^a-z]",
    "{2}",
    "{0,1000}",
    "{1000000}",
    "(?:",
    "(?i)",
    "(?=",
    "(?<name>",
    "\\1",
    "\\xff",
    "é",
    "\\",
];
const EBNF_PIECES: [&str; 36] = [
    "root ::= ",
    "start: ",
    "r ::= ",
    "r: ",
    "root",
    "r",
    "\n",
    " ",
    "|",
    "(",
    ")",
    "*",
    "+",
    "?",
    "{1,90}",
    "~3..9",
    "\"a\"",
    "\"\"",
    "'b'",
    "\"\\x00\"",
    "[a-z]",
    "[^\\n]",
    "/a+/",
    "/(a|b)*c/i",
    "A: /[0-9]/\n",
    "A",
    "%import common.NUMBER\n",
    "NUMBER",
    "%ignore \" \"\n",
    "%json {\"type\": \"string\"}",
    "<|im_start|>",
    "<[0-9]>",
    "# comment\n",
    "[max_tokens=3]",
    "@\"",
    "\"",
];

/// What sources are compiled for, as every engine has it.
struct Model {
    chat: Chat,
    vocabulary: Arc<Vocabulary>,
}

static MODEL: LazyLock<Model> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/pie/pie_tiny");
    let chat = Chat::from_dir(&folder, 4096).unwrap();
    let stop = chat.end_tokens().to_vec();
    let vocabulary = Vocabulary::new(chat.tokenizer().clone(), stop).unwrap();
    Model {
        chat,
        vocabulary: Arc::new(vocabulary),
    }
});

#[derive(Clone, Copy)]
enum Kind {
    Schema,
    Regex,
    Ebnf,
    Tools,
}

impl Kind {
    /// That of the letter before a text that is written down.
    fn of(letter: u8) -> Self {
        match letter {
            b's' => Self::Schema,
            b'r' => Self::Regex,
            b't' => Self::Tools,
            _ => Self::Ebnf,
        }
    }

    const fn pieces(self) -> &'static [&'static str] {
        match self {
            Self::Schema | Self::Tools => &SCHEMA_PIECES,
            Self::Regex => &REGEX_PIECES,
            Self::Ebnf => &EBNF_PIECES,
        }
    }
}

/// Makes a grammar of the bytes, compiles it and walks a text under it: each is done, or there is an error.
///
/// A text that is written down begins with the letter of its kind: `s` of a schema, `r` of a regular expression, `e` of
/// EBNF, `t` of the schema of a tool.
pub fn grammars(data: &[u8]) {
    if let Some((&letter, text)) = written(data).and_then(<[u8]>::split_first) {
        let text = expanded(text, MAX_BYTES);
        return try_out(Kind::of(letter), &String::from_utf8_lossy(&text), &[]);
    }
    let mut bytes = Unstructured::new(data);
    let Ok((kind, source)) = made_up(&mut bytes) else {
        return;
    };
    try_out(kind, &source, bytes.take_rest());
}

fn made_up(bytes: &mut Unstructured<'_>) -> arbitrary::Result<(Kind, String)> {
    let kind = *bytes.choose(&[Kind::Schema, Kind::Regex, Kind::Ebnf, Kind::Tools])?;
    let mut source = String::new();
    if matches!(kind, Kind::Schema | Kind::Tools) && bytes.ratio(3, 4)? {
        schema(bytes, &mut source, 5)?;
    } else {
        for _ in 0..bytes.int_in_range(1..=MAX_PIECES)? {
            source.push_str(bytes.choose(kind.pieces())?);
        }
    }
    if matches!(kind, Kind::Tools) {
        source = format!(r#"{{"name":"f","description":"d","parameters":{source}}}"#);
    }
    Ok((kind, source))
}

/// A schema that is whole, of keywords that may not fit each other.
fn schema(
    bytes: &mut Unstructured<'_>,
    source: &mut String,
    depth: usize,
) -> arbitrary::Result<()> {
    source.push('{');
    for at in 0..bytes.int_in_range(0..=4)? {
        if at > 0 {
            source.push(',');
        }
        let piece = *bytes.choose(&SCHEMA_PIECES[6..38])?;
        source.push_str(piece);
        if piece.ends_with(':') || piece.ends_with('[') {
            if depth == 0 {
                source.push_str("true");
            } else {
                schema(bytes, source, depth - 1)?;
            }
        }
        source.push_str(
            match piece.matches(['{', '[']).count() - piece.matches(['}', ']']).count() {
                0 => "",
                _ if piece.contains('{') => "}",
                _ => "]",
            },
        );
    }
    source.push('}');
    Ok(())
}

fn try_out(kind: Kind, source: &str, draws: &[u8]) {
    let read = match kind {
        Kind::Schema => Grammar::new(Source::JsonSchema(source)),
        Kind::Regex => Grammar::new(Source::Regex(source)),
        Kind::Ebnf => Grammar::new(Source::Ebnf(source)),
        Kind::Tools => return tools(source, draws),
    };
    match read {
        Ok(grammar) => walk(grammar, draws),
        Err(error) => refused(&error, "invalid-grammar"),
    }
}

fn tools(source: &str, draws: &[u8]) {
    let list = match ToolList::parse(&[source]) {
        Ok(list) => list,
        Err(error) => return refused(&error, "invalid-argument"),
    };
    let _any = MODEL.chat.equip_tokens(&list);
    if let Ok(Some(grammar)) = MODEL.chat.native_grammar(&list, &ToolChoice::Required) {
        walk(grammar, draws);
    }
}

/// What is wrong is told in few words, and by its code.
fn refused(error: &pie_text::Error, code: &str) {
    assert_eq!(error.code(), code, "{error}");
    assert!(error.to_string().chars().count() < 2000, "{error}");
}

/// Walks a text: what a mask allows is accepted, unless going on takes too much.
fn walk(grammar: Grammar, draws: &[u8]) {
    let vocabulary = MODEL.vocabulary.clone();
    let compiled = match Compiled::new(vocabulary, Arc::new(grammar)) {
        Ok(compiled) => Arc::new(compiled),
        Err(error) => return refused(&error, "invalid-grammar"),
    };
    let mut matcher = Matcher::new(&compiled, MODEL.chat.end_tokens().to_vec());
    for at in 0..MAX_STEPS {
        if matcher.is_terminated() {
            return;
        }
        let mask = match matcher.mask() {
            Ok(mask) => mask,
            Err(error) => return refused(&error, "invalid-grammar"),
        };
        let n_tokens = compiled.vocabulary().n_tokens();
        let draw = u32::from(draws.get(at).copied().unwrap_or(7)) * 16;
        let allowed = (0..n_tokens).map(|n| (draw + n) % n_tokens);
        let Some(token) = allowed.into_iter().find(|&token| mask.allows(token)) else {
            return;
        };
        if let Err(error) = matcher.accept(&[token]) {
            return refused(&error, "invalid-grammar");
        }
    }
}
