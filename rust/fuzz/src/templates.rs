//! Chat templates, as they stand in anyone's model folder.

use arbitrary::Unstructured;
use pie_text::{Chat, ChatTemplate, Role, SpecialTokens, Tokenizer};

use crate::written::{expanded, written};

/// How deep expressions are made up.
const MAX_DEPTH: usize = 5;
/// The most statements of one template.
const MAX_STATEMENTS: usize = 24;
/// The longest template that is written down: twice what one may have.
const MAX_BYTES: usize = 2 << 20;

const NAMES: [&str; 10] = [
    "ns.a",
    "ns.b",
    "ns.a",
    "x",
    "i",
    "loop",
    "messages",
    "messages[0].content",
    "bos_token",
    "f",
];
const CONSTANTS: [&str; 14] = [
    "0",
    "1",
    "-1",
    "2",
    "60",
    "100000",
    "10000000000",
    "1.5",
    "''",
    "'a'",
    "'ab, c\\n'",
    "true",
    "none",
    "[1, 2]",
];
const OPERATORS: [&str; 21] = [
    "~", "~", "+", "+", "*", "*", "-", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">=",
    "in", "not in", "and", "or",
];
const FILTERS: [&str; 38] = [
    "tojson",
    "length",
    "list",
    "string",
    "trim",
    "upper",
    "title",
    "lower",
    "capitalize",
    "reverse",
    "first",
    "last",
    "sort",
    "unique",
    "items",
    "dictsort",
    "sum",
    "min",
    "max",
    "pprint",
    "escape",
    "lines",
    "split",
    "abs",
    "int",
    "float",
    "round",
    "bool",
    "replace",
    "join",
    "indent",
    "format",
    "batch",
    "slice",
    "map",
    "select",
    "chain",
    "zip",
];
const METHODS: [&str; 20] = [
    "strip",
    "lstrip",
    "split",
    "splitlines",
    "replace",
    "join",
    "format",
    "count",
    "find",
    "upper",
    "title",
    "startswith",
    "items",
    "keys",
    "values",
    "get",
    "changed",
    "cycle",
    "isdigit",
    "rstrip",
];

/// Makes a template of the bytes and has it say something: it does, or there is an error.
pub fn templates(data: &[u8]) {
    if let Some(text) = written(data) {
        return try_out(&String::from_utf8_lossy(&expanded(text, MAX_BYTES)));
    }
    let mut bytes = Unstructured::new(data);
    let mut source = "{% set ns = namespace(a='ab', b=[1, 2]) %}".to_owned();
    for _ in 0..MAX_STATEMENTS {
        if bytes.is_empty() || statement(&mut bytes, &mut source, MAX_DEPTH).is_err() {
            break;
        }
    }
    source.push_str("{% for m in messages %}{{ m.content }}{% endfor %}");
    try_out(&source);
}

fn try_out(source: &str) {
    let special = SpecialTokens::new([("bos_token", "<s>"), ("eos_token", "</s>")]);
    let Ok(template) = ChatTemplate::at_time(source, special, 0) else {
        return;
    };
    let file = include_bytes!("../../text/tests/data/byte_level.json");
    let tokenizer = Tokenizer::from_bytes(file, 0).unwrap();
    let chat = Chat::new(tokenizer, Some(template), Vec::new());
    for role in [Role::User, Role::System, Role::Assistant] {
        let _any = chat.message_tokens(role, "hello\nworld");
    }
    let _any = chat.cue_tokens();
}

fn statement(
    bytes: &mut Unstructured<'_>,
    source: &mut String,
    depth: usize,
) -> arbitrary::Result<()> {
    let kind = if depth == 0 {
        0
    } else {
        bytes.int_in_range(0..=9_u8)?
    };
    match kind {
        0 | 1 => tag(bytes, source, ["{{ ", " }}"], depth)?,
        2 => tag(bytes, source, ["{% set ns.a = ", " %}"], depth)?,
        3 => tag(bytes, source, ["{% set ns.b = ", " %}"], depth)?,
        4 => tag(bytes, source, ["{% set x = ", " %}"], depth)?,
        5 => {
            source.push_str("{% for i in ");
            source.push_str(bytes.choose(&[
                "range(60)",
                "range(100000)",
                "ns.a",
                "ns.b",
                "[[1], [2]] recursive",
            ])?);
            source.push_str(" %}");
            body(bytes, source, depth)?;
            source.push_str("{% endfor %}");
        }
        6 => {
            tag(bytes, source, ["{% if ", " %}"], depth)?;
            body(bytes, source, depth)?;
            source.push_str("{% else %}");
            body(bytes, source, depth)?;
            source.push_str("{% endif %}");
        }
        7 => {
            source.push_str("{% macro f(x=1) %}");
            body(bytes, source, depth)?;
            source.push_str("{% endmacro %}{{ f(ns.a) }}");
        }
        8 => {
            source.push_str("{% set x %}");
            body(bytes, source, depth)?;
            source.push_str("{% endset %}");
        }
        _ => {
            tag(bytes, source, ["{% set x, y = ", " %}"], depth)?;
            tag(bytes, source, ["{{ f(*", ") }}"], depth)?;
        }
    }
    Ok(())
}

fn body(bytes: &mut Unstructured<'_>, source: &mut String, depth: usize) -> arbitrary::Result<()> {
    for _ in 0..bytes.int_in_range(1..=3)? {
        statement(bytes, source, depth - 1)?;
    }
    Ok(())
}

fn tag(
    bytes: &mut Unstructured<'_>,
    source: &mut String,
    around: [&str; 2],
    depth: usize,
) -> arbitrary::Result<()> {
    let [before, behind] = around;
    let text = expression(bytes, depth)?;
    source.push_str(&format!("{before}{text}{behind}"));
    Ok(())
}

fn expression(bytes: &mut Unstructured<'_>, depth: usize) -> arbitrary::Result<String> {
    let kind = if depth == 0 {
        bytes.int_in_range(0..=1)?
    } else {
        bytes.int_in_range(0..=11_u8)?
    };
    let mut inner = || expression(bytes, depth.saturating_sub(1));
    Ok(match kind {
        0 => (*bytes.choose(&NAMES)?).to_owned(),
        1 => (*bytes.choose(&CONSTANTS)?).to_owned(),
        2..=4 => {
            let (left, right) = (inner()?, inner()?);
            format!("({left} {} {right})", bytes.choose(&OPERATORS)?)
        }
        5 => format!("({})|{}", inner()?, bytes.choose(&FILTERS)?),
        6 => {
            let (subject, argument) = (inner()?, inner()?);
            format!("({subject})|{}({argument})", bytes.choose(&FILTERS)?)
        }
        7 => {
            let (subject, argument) = (inner()?, inner()?);
            format!("({subject}).{}({argument})", bytes.choose(&METHODS)?)
        }
        8 => format!("[{}, {}]", inner()?, inner()?),
        9 => format!("{{{}: {}}}", inner()?, inner()?),
        10 => format!("({})[{}]", inner()?, inner()?),
        _ => format!("({})[{}:{}:{}]", inner()?, inner()?, inner()?, inner()?),
    })
}
