//! Regular expressions of schemas and programs, as the grammar engine takes them.
//!
//! The syntax is that of ECMAScript as far as a regular language goes: no look-around, no back references, no word
//! boundaries ([`ecmascript`](super::ecmascript)). `\d`, `\w` and `.` have the meaning of ECMAScript without the flag
//! `u`. A pattern is read once into the tree of `regex-syntax`, and written twice: for plain text, and for the inside
//! of a JSON string, where quotes, backslashes and control characters are escaped in the one form that the engine
//! writes.

use std::sync::Arc;

use regex_automata::meta::Regex;
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind, Look};

use super::ecmascript::{shown, translated};

/// The most characters of one pattern.
pub(super) const MAX_PATTERN_BYTES: usize = 16 << 10;
/// The most characters that a pattern may stand for with its counts written out.
pub(super) const MAX_PATTERN_WEIGHT: u64 = 20_000;
/// The most bytes of a compiled pattern.
const MAX_COMPILED_BYTES: usize = 4 << 20;
/// The most bytes of a pattern written for the engine: a class of one escape may stand for hundreds of ranges.
const MAX_WRITTEN_BYTES: usize = 1 << 20;
/// How deep groups may stand in each other.
const MAX_NESTING: u32 = 64;

/// One character of a JSON string as the engine writes it.
pub(super) const JSON_CHARACTER: &str = r#"(?:[^\x22\x5C\x00-\x1F\x7F]|\x5C(?:[\x22\x5Cbfnrt]|u00(?:0[0-7bBeEfF]|1[0-9a-fA-F]|7[fF])))"#;

/// A pattern whose whole match is meant, without anchors. A clone costs no more than references.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    /// For plain text.
    pub(super) plain: Arc<str>,
    /// For the inside of a JSON string.
    pub(super) quoted: Arc<str>,
    regex: Regex,
    /// Whether a text may be meant though the pattern does not match it, where the pattern is that of a format of which
    /// not every spelling is written.
    wide: Option<fn(&str) -> bool>,
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.plain == other.plain
    }
}

impl Pattern {
    /// A pattern that is looked for anywhere in a text, as the keyword `pattern` does.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn search(source: &str) -> Result<Self, String> {
        Self::read(source, true)
    }

    /// A pattern that the whole text matches.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn whole(source: &str) -> Result<Self, String> {
        Self::read(source, false)
    }

    /// Whether a text matches as a whole.
    pub(super) fn matches(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// The same pattern for a format of which it has not every spelling: what else may be one is told by `wide`.
    pub(super) fn of_format(self, wide: fn(&str) -> bool) -> Self {
        Self {
            wide: Some(wide),
            ..self
        }
    }

    /// Whether it is that of a format of which it has not every spelling.
    pub(super) fn is_narrow(&self) -> bool {
        self.wide.is_some()
    }

    /// Whether what the pattern stands for may have a text, which is not sure where [`Self::matches`] denies it.
    pub(super) fn may_match(&self, text: &str) -> bool {
        self.matches(text) || self.wide.is_some_and(|wide| wide(text))
    }

    /// About what it takes, in bytes.
    pub(super) fn n_bytes(&self) -> usize {
        // What matching keeps between two texts is as large as what is compiled.
        2 * self.regex.memory_usage() + self.plain.len() + self.quoted.len()
    }

    /// The steps of matching a text of so many bytes, where a step is 16 bytes for a small pattern. A large one may be
    /// at many of its places at once.
    pub(super) fn n_steps(&self, n_bytes: usize) -> usize {
        const SMALL_BYTES: usize = 8 << 10;
        (n_bytes / 16).saturating_mul(1 + self.regex.memory_usage() / SMALL_BYTES)
    }

    fn read(source: &str, anywhere: bool) -> Result<Self, String> {
        let hir = parse(source, anywhere)?;
        let branches = branches(&hir)?;
        let mut plain = Vec::with_capacity(branches.len());
        let mut quoted = Vec::with_capacity(branches.len());
        for branch in branches {
            let Branch { start, end, middle } = Branch::of(branch);
            let (start, end) = (start || !anywhere, end || !anywhere);
            for (texts, quote, any) in [
                (&mut plain, false, r"[\x{0}-\x{10FFFF}]"),
                (&mut quoted, true, JSON_CHARACTER),
            ] {
                let mut text = String::new();
                if !start {
                    text.push_str(&format!("(?:{any})*"));
                }
                for part in &middle {
                    write(part, quote, &mut text)?;
                }
                if !end {
                    text.push_str(&format!("(?:{any})*"));
                }
                texts.push(text);
            }
        }
        let plain = format!("(?:{})", plain.join("|"));
        // Automata that grow while they match would take more than what is counted.
        let limits = Regex::config()
            .nfa_size_limit(Some(MAX_COMPILED_BYTES))
            .hybrid(false)
            .dfa(false);
        let regex = Regex::builder()
            .configure(limits)
            .build(&format!("^{plain}$"))
            .map_err(|_| {
                format!(
                    "the pattern {} takes more than the limit of {MAX_COMPILED_BYTES} bytes compiled; use smaller counts and \
                     classes",
                    shown(source)
                )
            })?;
        Ok(Self {
            plain: plain.into(),
            quoted: format!("(?:{})", quoted.join("|")).into(),
            regex,
            wide: None,
        })
    }
}

/// A text as a pattern that matches it alone.
pub(super) fn literal(text: &str, quoted: bool) -> String {
    let mut pattern = String::new();
    for character in text.chars() {
        write_character(character, quoted, &mut pattern);
    }
    pattern
}

/// What a pattern says between its anchors.
struct Branch<'a> {
    start: bool,
    end: bool,
    middle: Vec<&'a Hir>,
}

impl<'a> Branch<'a> {
    fn of(mut parts: Vec<&'a Hir>) -> Self {
        let is = |hir: &&Hir, look| matches!(hir.kind(), HirKind::Look(it) if *it == look);
        let n_start = parts.iter().take_while(|it| is(it, Look::Start)).count();
        let rest = parts.split_off(n_start);
        let n_end = rest.iter().rev().take_while(|it| is(it, Look::End)).count();
        let n_middle = rest.len() - n_end;
        Self {
            start: n_start > 0,
            end: n_end > 0,
            middle: rest.into_iter().take(n_middle).collect(),
        }
    }
}

/// The alternatives of a pattern, each as what stands one behind the other. Alternatives without anchors stay together.
fn branches(hir: &Hir) -> Result<Vec<Vec<&Hir>>, String> {
    const MAX_BRANCHES: usize = 256;
    if hir.properties().look_set().is_empty() {
        return Ok(vec![vec![hir]]);
    }
    let branches = match hir.kind() {
        HirKind::Capture(capture) => branches(&capture.sub)?,
        HirKind::Alternation(inner) => {
            let all: Result<Vec<_>, String> = inner.iter().map(branches).collect();
            all?.concat()
        }
        HirKind::Concat(inner) => {
            let mut all: Vec<Vec<&Hir>> = vec![Vec::new()];
            for part in inner {
                let options = branches(part)?;
                if all.len() * options.len() > MAX_BRANCHES {
                    return Err(format!(
                        "anchors stand in more than {MAX_BRANCHES} alternatives; write ^ and $ around all of them"
                    ));
                }
                let mut longer = Vec::with_capacity(all.len() * options.len());
                for before in &all {
                    for option in &options {
                        longer.push([before.as_slice(), option].concat());
                    }
                }
                all = longer;
            }
            all
        }
        _ => vec![vec![hir]],
    };
    Ok(branches)
}

/// Bounds the counts of an expression that the engine itself reads. One that does not parse is left to it.
///
/// # Errors
/// What is too much.
pub(super) fn check_weight(source: &str) -> Result<(), String> {
    if source.len() > MAX_PATTERN_BYTES {
        return Err(too_long(source));
    }
    let parser = ParserBuilder::new()
        .nest_limit(MAX_NESTING)
        .build()
        .parse(source);
    match parser {
        Ok(hir) => check_counts(source, &hir),
        Err(_) => Ok(()),
    }
}

fn too_long(source: &str) -> String {
    format!(
        "the pattern has {} bytes, and the limit is {MAX_PATTERN_BYTES}; use a shorter one",
        source.len()
    )
}

fn check_counts(source: &str, hir: &Hir) -> Result<(), String> {
    let weight = weight(hir);
    if weight > MAX_PATTERN_WEIGHT {
        return Err(format!(
            "the pattern {} stands for {weight} characters with its counts written out, and the limit is \
             {MAX_PATTERN_WEIGHT}; use smaller counts",
            shown(source)
        ));
    }
    Ok(())
}

/// Reads a pattern.
fn parse(source: &str, in_schema: bool) -> Result<Hir, String> {
    if source.len() > MAX_PATTERN_BYTES {
        return Err(too_long(source));
    }
    let translated = translated(source, in_schema)?;
    let hir = ParserBuilder::new()
        .nest_limit(MAX_NESTING)
        .build()
        .parse(&translated)
        .map_err(|error| explained(source, &error))?;
    check_counts(source, &hir)?;
    Ok(hir)
}

/// The kind of a mistake in a pattern, in one line.
fn explained(source: &str, error: &regex_syntax::Error) -> String {
    let why = match error {
        regex_syntax::Error::Parse(error) => error.kind().to_string(),
        regex_syntax::Error::Translate(error) => error.kind().to_string(),
        _ => "it does not parse".to_owned(),
    };
    format!(
        "the pattern {} is not regular or does not parse: {why}; look-around, back references and word boundaries \
         cannot be enforced",
        shown(source)
    )
}

/// How many characters a pattern stands for with its counts written out.
fn weight(hir: &Hir) -> u64 {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => 0,
        HirKind::Literal(literal) => literal.0.len() as u64,
        HirKind::Class(_) => 1,
        HirKind::Capture(capture) => weight(&capture.sub),
        HirKind::Concat(inner) | HirKind::Alternation(inner) => inner
            .iter()
            .fold(0, |sum, it| sum.saturating_add(weight(it))),
        HirKind::Repetition(repetition) => {
            let times = repetition.max.unwrap_or(repetition.min).max(1);
            // Each turn is a state even where it reads nothing.
            weight(&repetition.sub)
                .max(1)
                .saturating_mul(u64::from(times))
        }
    }
}

/// Writes a part of a pattern without anchors.
fn write(hir: &Hir, quoted: bool, text: &mut String) -> Result<(), String> {
    if text.len() > MAX_WRITTEN_BYTES {
        return Err(format!(
            "the pattern has more than the limit of {MAX_WRITTEN_BYTES} bytes with its classes written out; use smaller \
             counts and classes"
        ));
    }
    match hir.kind() {
        HirKind::Empty => {}
        HirKind::Literal(literal) => {
            let literal = std::str::from_utf8(&literal.0)
                .map_err(|_| "the pattern matches bytes that are not UTF-8".to_owned())?;
            for character in literal.chars() {
                write_character(character, quoted, text);
            }
        }
        HirKind::Class(Class::Unicode(class)) => {
            let ranges: Vec<(char, char)> = class.iter().map(|it| (it.start(), it.end())).collect();
            write_class(&ranges, quoted, text);
        }
        HirKind::Class(Class::Bytes(class)) => {
            let ranges: Vec<(char, char)> = class
                .iter()
                .map(|it| (char::from(it.start()), char::from(it.end())))
                .collect();
            write_class(&ranges, quoted, text);
        }
        HirKind::Look(_) => {
            return Err(
                "an anchor stands inside of the pattern, which cannot be enforced; use ^ and $ at the ends of its \
                 alternatives"
                    .to_owned(),
            );
        }
        HirKind::Capture(capture) => write(&capture.sub, quoted, text)?,
        HirKind::Concat(inner) => {
            for part in inner {
                write(part, quoted, text)?;
            }
        }
        HirKind::Alternation(inner) => {
            text.push_str("(?:");
            for (index, part) in inner.iter().enumerate() {
                if index > 0 {
                    text.push('|');
                }
                write(part, quoted, text)?;
            }
            text.push(')');
        }
        HirKind::Repetition(repetition) => {
            text.push_str("(?:");
            write(&repetition.sub, quoted, text)?;
            text.push(')');
            write_times(repetition.min, repetition.max, text);
        }
    }
    Ok(())
}

/// Writes how often a part is repeated.
fn write_times(min: u32, max: Option<u32>, text: &mut String) {
    match (min, max) {
        (0, None) => text.push('*'),
        (1, None) => text.push('+'),
        (0, Some(1)) => text.push('?'),
        (min, None) => text.push_str(&format!("{{{min},}}")),
        (min, Some(max)) => text.push_str(&format!("{{{min},{max}}}")),
    }
}

/// Writes a character.
fn write_character(character: char, quoted: bool, text: &mut String) {
    match escaped(character).filter(|_| quoted) {
        Some(escape) => text.push_str(&escape),
        None if character.is_ascii_alphanumeric() => text.push(character),
        None => text.push_str(&format!(r"\x{{{:X}}}", u32::from(character))),
    }
}

/// How a JSON string writes a character that does not stand for itself, as a pattern.
fn escaped(character: char) -> Option<String> {
    let short = match character {
        '"' => r"\x22",
        '\\' => r"\x5C",
        '\u{8}' => "b",
        '\u{C}' => "f",
        '\n' => "n",
        '\r' => "r",
        '\t' => "t",
        '\0'..='\u{1F}' | '\u{7F}' => {
            let code = u32::from(character);
            return Some(format!(r"\x5Cu00(?:{code:02x}|{code:02X})"));
        }
        _ => return None,
    };
    Some(format!(r"\x5C{short}"))
}

/// Writes one character out of ranges.
fn write_class(ranges: &[(char, char)], quoted: bool, text: &mut String) {
    let holds = |character: char| {
        ranges
            .iter()
            .any(|(start, end)| (*start..=*end).contains(&character))
    };
    let special = ('\0'..='\u{7F}').filter(|&it| quoted && escaped(it).is_some());
    let escapes: Vec<String> = special
        .filter(|&it| holds(it))
        .filter_map(escaped)
        .collect();
    let mut class = String::new();
    for &(start, end) in ranges {
        let mut from = u32::from(start);
        let end = u32::from(end);
        while from <= end {
            // The stretch from here on that no escape interrupts.
            let is_special =
                |code: u32| quoted && char::from_u32(code).is_some_and(|it| escaped(it).is_some());
            if from < 0x80 && is_special(from) {
                from += 1;
                continue;
            }
            let stop = if from < 0x80 {
                (from..0x80.min(end + 1))
                    .find(|&code| is_special(code))
                    .map_or(end, |code| code - 1)
            } else {
                end
            };
            class.push_str(&format!(r"\x{{{from:X}}}-\x{{{stop:X}}}"));
            from = stop + 1;
        }
    }
    let mut options = escapes;
    if !class.is_empty() {
        options.insert(0, format!("[{class}]"));
    }
    match options.as_slice() {
        // A class of nothing: a pattern that no text matches.
        [] => text.push_str(r"[^\x{0}-\x{10FFFF}]"),
        [one] => text.push_str(one),
        _ => text.push_str(&format!("(?:{})", options.join("|"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // rows: RS-130
    #[test]
    fn what_a_pattern_takes_counts_each_of_its_spellings() {
        let pattern = Pattern::whole(&"ab".repeat(500)).unwrap();
        let compiled = 2 * pattern.regex.memory_usage();
        assert_eq!(
            pattern.n_bytes(),
            compiled + pattern.plain.len() + pattern.quoted.len()
        );
        assert!(pattern.plain.len() >= 1000 && pattern.quoted.len() >= 1000);
    }
}
