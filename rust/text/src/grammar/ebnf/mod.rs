//! Grammars in EBNF: the dialect of Lark, and that of `root ::=`.
//!
//! A text is in the second where a `::=` stands outside of its strings and comments. Such a grammar has no lexer: each
//! of its characters becomes a lexeme of its own, so that what the engine accepts is what the grammar says. A grammar
//! that does not recur becomes one regular expression, which says the same and is quicker ([`writing`]).
//!
//! Grammars in the dialect of Lark go to the engine as they are. Before, both are read ([`reading`]) and looked through
//! ([`checking`]) for what the engine would tell late or not at all: rules that are missing, rules from which no text
//! follows, and counts without measure.

mod checking;
mod reading;
mod rule;
mod writing;

use reading::{Reader, skip_quoted};

/// The longest grammar, in bytes.
const MAX_GRAMMAR_BYTES: usize = 256 << 10;

/// A grammar in the dialect of the engine.
///
/// # Errors
/// What is wrong, and on which line.
pub(super) fn translated(source: &str) -> Result<String, String> {
    if source.len() > MAX_GRAMMAR_BYTES {
        return Err(format!(
            "the grammar has {} bytes, and the limit is {MAX_GRAMMAR_BYTES}; use a shorter one",
            source.len()
        ));
    }
    let is_lark = !is_root_dialect(source);
    let mut reader = Reader::new(source, is_lark);
    let rules = reader.rules()?;
    let start = if is_lark { "start" } else { "root" };
    checking::check(&rules, start, &reader.imported)?;
    if is_lark {
        return Ok(source.to_owned());
    }
    Ok(writing::translated(&rules, start))
}

/// Whether `::=` stands outside of strings and comments.
fn is_root_dialect(source: &str) -> bool {
    let mut rest = source;
    while let Some(at) = rest.find(['"', '#', '/', ':']) {
        let tail = &rest[at..];
        if tail.starts_with("::=") {
            return true;
        }
        let skipped = match tail.as_bytes()[0] {
            b'"' => skip_quoted(tail, '"'),
            b'#' => tail.find('\n').unwrap_or(tail.len()),
            b'/' if tail.starts_with("//") => tail.find('\n').unwrap_or(tail.len()),
            _ => 1,
        };
        rest = &tail[skipped..];
    }
    false
}
