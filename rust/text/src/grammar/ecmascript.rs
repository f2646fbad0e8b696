//! From the regular expressions of ECMAScript to the syntax of `regex-syntax`.
//!
//! Both write most things alike. Within a class they do not: a hyphen beside a class escape is one of the characters in
//! ECMAScript without the flag `u`, and what `regex-syntax` takes for operators and nested classes is text. Outside of
//! classes each has groups that the other has not, and ECMAScript reads a brace that begins no count as a character.
//!
//! What is read is the syntax of ECMAScript 2024 without the flag `u`, with its Annex B, and from the flag `u` what the
//! patterns of JSON Schema need: `\p{...}`, `\P{...}` and `\u{...}`. Annex B reads any other letter behind a backslash
//! as that letter; where nearly everybody means something else by it, it is refused.

use std::iter::Peekable;
use std::str::Chars;

use super::properties::is_property;

const DIGITS: &str = "0-9";
const WORDS: &str = "0-9A-Za-z_";
const SPACES: &str =
    r"\t\n\x0B\x0C\r \u00A0\u1680\u2000-\u200A\u2028\u2029\u202F\u205F\u3000\uFEFF";

/// A pattern in the syntax of `regex-syntax`. In a schema `[]` is a class of nothing; elsewhere a bracket that stands
/// first in a class is one of its characters, as in most languages.
///
/// # Errors
/// What cannot be enforced.
pub(super) fn translated(source: &str, in_schema: bool) -> Result<String, String> {
    let mut translation = Translation {
        source,
        in_schema,
        rest: source.chars().peekable(),
        text: String::with_capacity(source.len() + 16),
        last: Last::Nothing,
        names: Vec::new(),
    };
    while let Some(character) = translation.rest.next() {
        translation.part(character)?;
    }
    Ok(translation.text)
}

struct Translation<'s> {
    source: &'s str,
    in_schema: bool,
    rest: Peekable<Chars<'s>>,
    text: String,
    last: Last,
    /// Of groups.
    names: Vec<String>,
}

/// What was read last, for what may be repeated.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    /// The begin of the pattern, of a group or of an alternative.
    Nothing,
    Atom,
    Anchor,
    Repeated,
}

/// A character, or an escape that stands for several.
struct Atom {
    text: String,
    is_class: bool,
}

impl Translation<'_> {
    /// Writes what begins with a character that was read, outside of a class.
    fn part(&mut self, character: char) -> Result<(), String> {
        match character {
            '*' | '+' | '?' => return self.repeat(&character.to_string()),
            '{' => match self.counts() {
                Some(counts) => return self.repeat(&counts),
                None => self.text.push_str(r"\{"),
            },
            '(' => return self.open(),
            '|' => {
                self.text.push('|');
                self.last = Last::Nothing;
                return Ok(());
            }
            '^' | '$' => {
                self.text.push(character);
                self.last = Last::Anchor;
                return Ok(());
            }
            '\\' => {
                let atom = self.escape(false)?;
                self.text.push_str(&atom.text);
            }
            '[' => self.class()?,
            '.' => self.text.push_str(r"[^\n\r\u2028\u2029]"),
            ']' | '}' => {
                self.text.push('\\');
                self.text.push(character);
            }
            _ => self.text.push(character),
        }
        self.last = Last::Atom;
        Ok(())
    }

    /// The counts behind a brace that was read; none where they are no counts, and the brace is a character.
    fn counts(&mut self) -> Option<String> {
        let mut rest = self.rest.clone();
        let mut text = "{".to_owned();
        loop {
            let next = rest.next()?;
            let is_right = match next {
                '0'..='9' => true,
                ',' => text.len() > 1 && !text.contains(','),
                '}' => text.len() > 1,
                _ => false,
            };
            if !is_right {
                return None;
            }
            text.push(next);
            if next == '}' {
                self.rest = rest;
                return Some(text);
            }
        }
    }

    /// Writes how often what was read last is repeated.
    fn repeat(&mut self, times: &str) -> Result<(), String> {
        match self.last {
            Last::Atom => {}
            Last::Repeated => {
                return Err(self.refused(
                    times,
                    "behind a repetition, which ECMAScript does not know; put what is repeated into (?:...)",
                ));
            }
            Last::Nothing | Last::Anchor => {
                return Err(self.refused(
                    times,
                    "and nothing before it to repeat; write a backslash before it for the character",
                ));
            }
        }
        self.text.push_str(times);
        // How much of a text a repetition takes changes no text that matches as a whole.
        self.text.extend(self.rest.next_if_eq(&'?'));
        self.last = Last::Repeated;
        Ok(())
    }

    /// Writes the begin of a group whose parenthesis was read.
    fn open(&mut self) -> Result<(), String> {
        self.last = Last::Nothing;
        if self.rest.next_if_eq(&'?').is_none() {
            self.text.push('(');
            return Ok(());
        }
        let next = self.rest.next();
        let looks = match (next, self.rest.peek().copied()) {
            (Some(':'), _) => {
                self.text.push_str("(?:");
                return Ok(());
            }
            (Some('<'), Some('=' | '!')) => self.rest.next().map(|sign| format!("(?<{sign}")),
            (Some('<'), _) => return self.named(),
            (Some(sign @ ('=' | '!')), _) => Some(format!("(?{sign}")),
            _ => None,
        };
        Err(match looks {
            Some(looks) => self.refused(
                &looks,
                "a look-around, which cannot be enforced; leave it out",
            ),
            None => self.refused(
                &format!("(?{}", next.map(String::from).unwrap_or_default()),
                "which begins no group of ECMAScript; write (...), (?:...) or (?<name>...), and no flags",
            ),
        })
    }

    /// Writes the begin of a group with a name.
    fn named(&mut self) -> Result<(), String> {
        let begun = self.rest.clone();
        let mut name = String::new();
        let mut ends = false;
        for character in self.rest.by_ref() {
            if character == '>' {
                ends = true;
                break;
            }
            name.push(character);
        }
        let is_word = |it: char| it.is_alphanumeric() || matches!(it, '_' | '$');
        let starts = name.chars().next().is_some_and(|it| !it.is_numeric());
        if ends && starts && name.chars().all(is_word) && !self.names.contains(&name) {
            self.names.push(name);
            self.text.push('(');
            return Ok(());
        }
        let why = "and no name of its own behind it; write a letter first, then letters and digits, and >";
        self.rest = begun;
        Err(self.refused("(?<", why))
    }

    /// Why a pattern is refused for what was read last. Its place is that of its first character, from 0.
    fn refused(&self, what: &str, why: &str) -> String {
        let n_read = self.source.chars().count() - self.rest.clone().count();
        let index = n_read.saturating_sub(what.chars().count());
        format!(
            "the pattern {} has {what} at character {index}, {why}",
            shown(self.source)
        )
    }

    /// Writes a class whose bracket was read.
    fn class(&mut self) -> Result<(), String> {
        let is_negated = self.rest.next_if_eq(&'^').is_some();
        if self.in_schema && self.rest.next_if_eq(&']').is_some() {
            // No character is in a class of nothing.
            let all = r"\x{0}-\x{10FFFF}";
            let outside = if is_negated { "" } else { "^" };
            self.text.push_str(&format!("[{outside}{all}]"));
            return Ok(());
        }
        self.text.push_str(if is_negated { "[^" } else { "[" });
        if self.rest.next_if_eq(&']').is_some() {
            self.text.push_str(r"\]");
        }
        while let Some(first) = self.atom()? {
            self.text.push_str(&first.text);
            if self.rest.next_if_eq(&'-').is_none() {
                continue;
            }
            let last = match self.rest.peek() {
                None | Some(']') => None,
                Some(_) => self.atom()?,
            };
            match last {
                Some(last) if !first.is_class && !last.is_class => {
                    self.text.push('-');
                    self.text.push_str(&last.text);
                }
                last => {
                    self.text.push_str(r"\-");
                    self.text.extend(last.map(|last| last.text));
                }
            }
        }
        self.text.push(']');
        Ok(())
    }

    /// The next part of a class; none at its end.
    fn atom(&mut self) -> Result<Option<Atom>, String> {
        let Some(character) = self.rest.next() else {
            return Err(format!(
                "the pattern {} has a class without its end; write ] behind it, or \\[ for the character",
                shown(self.source)
            ));
        };
        Ok(Some(match character {
            ']' => return Ok(None),
            '\\' => self.escape(true)?,
            '[' | '&' | '~' | '-' | '^' => Atom {
                text: format!("\\{character}"),
                is_class: false,
            },
            _ => Atom {
                text: character.into(),
                is_class: false,
            },
        }))
    }

    /// An escape whose backslash was read.
    fn escape(&mut self, in_class: bool) -> Result<Atom, String> {
        let Some(next) = self.rest.next() else {
            return Err(format!(
                "the pattern {} ends with a backslash; write \\\\ for the character",
                shown(self.source)
            ));
        };
        let class = |text: String| Atom {
            text,
            is_class: true,
        };
        let single = |text: String| Atom {
            text,
            is_class: false,
        };
        Ok(match next {
            'd' => class(format!("[{DIGITS}]")),
            'D' => class(format!("[^{DIGITS}]")),
            'w' => class(format!("[{WORDS}]")),
            'W' => class(format!("[^{WORDS}]")),
            's' => class(format!("[{SPACES}]")),
            'S' => class(format!("[^{SPACES}]")),
            'p' | 'P' => class(self.property(next)?),
            'x' => single(self.hexadecimal()?),
            'u' => single(self.code_point()?),
            'c' => single(self.control(in_class)),
            '0' if !self.rest.peek().is_some_and(char::is_ascii_digit) => {
                single(r"\x00".to_owned())
            }
            'b' | 'B' | 'A' | 'z' | '<' | '>' if !in_class => {
                return Err(self.refused(
                    &format!("\\{next}"),
                    "which cannot be enforced; leave it out",
                ));
            }
            '1'..='9' | 'k' => {
                return Err(self.refused(
                    &format!("\\{next}"),
                    "a back reference, which cannot be enforced; write what it refers to again",
                ));
            }
            'b' => single(r"\x08".to_owned()),
            // These mean something else to those who read the translation.
            '/' | 'a' | 'U' | '<' | '>' | 'B' | 'A' | 'z' => single(next.into()),
            't' | 'n' | 'v' | 'f' | 'r' => single(format!("\\{next}")),
            _ if next.is_ascii_alphanumeric() => {
                return Err(self.refused(
                    &format!("\\{next}"),
                    "which means nothing in ECMAScript; leave the backslash out for the character",
                ));
            }
            _ => single(written(u32::from(next))),
        })
    }

    /// A property of characters whose letter was read. Only what stands in braces is one, as with the flag `u`.
    fn property(&mut self, letter: char) -> Result<String, String> {
        let begun = self.rest.clone();
        if let Some(name) = self.braced().filter(|name| is_property(name)) {
            return Ok(format!("\\{letter}{{{name}}}"));
        }
        self.rest = begun;
        Err(self.refused(
            &format!("\\{letter}"),
            "and no property of ECMAScript behind it; write for example \\p{L}, \\p{Lu} or \\p{Script=Greek}",
        ))
    }

    /// The character of `\x`, which stands for itself where no two digits are behind it.
    fn hexadecimal(&mut self) -> Result<String, String> {
        if self.rest.peek() == Some(&'{') {
            let why = "and a brace behind it, which ECMAScript reads as a count of the letter; write \\u{...}";
            return Err(self.refused("\\x", why));
        }
        Ok(match self.digits(2) {
            Some(code) => written(code),
            None => "x".to_owned(),
        })
    }

    /// The character of `\u`, which stands for itself where neither four digits nor some in braces are behind it.
    fn code_point(&mut self) -> Result<String, String> {
        let begun = self.rest.clone();
        let code = match self.rest.peek() {
            Some('{') => {
                let digits = self.braced();
                let digits = digits.filter(|it| it.bytes().all(|it| it.is_ascii_hexdigit()));
                let code = digits.and_then(|digits| u32::from_str_radix(&digits, 16).ok());
                Some(code.filter(|code| char::from_u32(*code).is_some()))
            }
            _ => self.digits(4).map(|code| self.pair(code)),
        };
        match code {
            None => Ok("u".to_owned()),
            Some(Some(code)) => Ok(written(code)),
            Some(None) => {
                self.rest = begun;
                Err(self.refused("\\u", "and no character of a text behind it"))
            }
        }
    }

    /// The code of a character whose first half was read, where it has two; none where it has only one of them.
    fn pair(&mut self, code: u32) -> Option<u32> {
        if !(0xD800..0xE000).contains(&code) {
            return Some(code);
        }
        let mut rest = self.rest.clone();
        let is_escape = rest.next() == Some('\\') && rest.next() == Some('u');
        if !is_escape || code >= 0xDC00 {
            return None;
        }
        self.rest = rest;
        let low = self.digits(4)?.checked_sub(0xDC00)?;
        (low < 0x400).then_some(0x10000 + ((code - 0xD800) << 10) + low)
    }

    /// The control character of `\c`; the backslash itself where no letter is behind it.
    fn control(&mut self, in_class: bool) -> String {
        let is_letter =
            |it: &char| it.is_ascii_alphabetic() || in_class && (it.is_ascii_digit() || *it == '_');
        match self.rest.next_if(is_letter) {
            Some(letter) => written(u32::from(letter) % 32),
            None => r"\\c".to_owned(),
        }
    }

    /// The number of so many hexadecimal digits, which are read where all of them are there.
    fn digits(&mut self, n: usize) -> Option<u32> {
        let mut rest = self.rest.clone();
        let mut code = 0;
        for _ in 0..n {
            code = 16 * code + rest.next()?.to_digit(16)?;
        }
        self.rest = rest;
        Some(code)
    }

    /// What stands in braces, which are read; none where there are none.
    fn braced(&mut self) -> Option<String> {
        let mut rest = self.rest.clone();
        if rest.next() != Some('{') {
            return None;
        }
        let mut text = String::new();
        loop {
            match rest.next()? {
                '}' => break,
                character => text.push(character),
            }
        }
        self.rest = rest;
        Some(text)
    }
}

/// The character of that code.
fn written(code: u32) -> String {
    format!("\\x{{{code:X}}}")
}

/// A pattern as a message shows it.
pub(super) fn shown(source: &str) -> String {
    const MAX_SHOWN: usize = 60;
    let short: String = source.chars().take(MAX_SHOWN).collect();
    if short.len() < source.len() {
        format!("{short:?}...")
    } else {
        format!("{short:?}")
    }
}

#[cfg(test)]
mod tests {
    use super::super::pattern::Pattern;

    /// The characters of ASCII that a class holds.
    fn held(class: &str) -> String {
        let pattern = Pattern::search(&format!("^{class}$")).unwrap();
        ('\0'..='\u{7F}')
            .filter(|it| pattern.matches(&it.to_string()))
            .collect()
    }

    // rows: RS-130
    #[test]
    fn classes_hold_what_ecmascript_has_in_them() {
        for (class, characters) in [
            (r"[+-\d]", "+-0123456789"),
            (r"[\d-x]", "-0123456789x"),
            (r"[\d-]", "-0123456789"),
            ("[-a]", "-a"),
            ("[a-]", "-a"),
            ("[+--]", "+,-"),
            ("[--/]", "-./"),
            ("[a-c-e]", "-abce"),
            ("[a&&b]", "&ab"),
            ("[a~~b]", "ab~"),
            ("[[a]", "[a"),
            ("[a^]", "^a"),
            (r"[\]\-\\]", r"-\]"),
            (r"[\x41-\u0043]", "ABC"),
            (r"[\b]", "\u{8}"),
            ("[]", ""),
        ] {
            assert_eq!(held(class), characters, "{class}");
        }
        assert_eq!(held("[^]").len(), 128);
        let without = held("[^+--]");
        assert!(without.len() == 125 && !without.contains(['+', ',', '-']));
        assert!(
            Pattern::search("[a")
                .unwrap_err()
                .contains("without its end")
        );
        assert!(Pattern::search("^[]a]$").is_ok_and(|it| !it.matches("]") && !it.matches("a")));
        assert!(Pattern::whole("[]a]").is_ok_and(|it| it.matches("]") && it.matches("a")));
        assert!(Pattern::whole("[^]a]").is_ok_and(|it| !it.matches("]") && it.matches("b")));
        assert!(Pattern::whole(r"\a[\a]").is_ok_and(|it| it.matches("aa")));
    }

    // rows: RS-130
    #[test]
    fn what_ecmascript_reads_is_read_as_it_does() {
        for (pattern, texts, others) in [
            (r"\cA\cz", &["\u{1}\u{1A}"][..], &["cAcz", "A"][..]),
            (r"a\c1", &[r"a\c1"], &["a\u{11}"]),
            (r"[\c1\c_]", &["\u{11}", "\u{1F}"], &["1", "c", "_", "\\"]),
            (r"[\c*]", &["\\", "c", "*"], &["\u{A}"]),
            ("a{,3}", &["a{,3}"], &["", "a", "aaa"]),
            ("x{", &["x{"], &["x"]),
            ("x{}", &["x{}"], &["x"]),
            ("x{1", &["x{1"], &["x"]),
            ("x{1,2,3}", &["x{1,2,3}"], &["x"]),
            ("x{a}", &["x{a}"], &["x"]),
            ("x{2}?y{1,}", &["xxy", "xxyy"], &["xy"]),
            ("{a}]", &["{a}]"], &["a"]),
            ("(?<n>a|b)+", &["a", "abba"], &["", "n"]),
            (r"\x41\x4g\u0042\u{43}", &["Ax4gBC"], &["A"]),
            (
                r"\ud83d\ude00|\u{1F601}",
                &["\u{1F600}", "\u{1F601}"],
                &["u"],
            ),
            (r"\u12", &["u12"], &["\u{12}"]),
            (r"\p{L}\P{L}\p{Lu}", &["a1B", "é-É"], &["11B", "a1b"]),
            (r"[\p{Script=Greek}\p{Nd}]+", &["αβ1"], &["a"]),
            (
                r"\p{Uppercase_Letter}\p{Alphabetic}\p{gc=Nd}",
                &["Ab1"],
                &["ab1"],
            ),
            (r"\é\-\_\ ", &["é-_ "], &["e"]),
            ("a*?b+?c??", &["b", "aabbc"], &["a"]),
            ("(?:)|()", &[""], &["a"]),
        ] {
            let pattern_of = Pattern::whole(pattern);
            let found = pattern_of.unwrap_or_else(|why| panic!("{pattern}: {why}"));
            for text in texts {
                assert!(found.matches(text), "{pattern} does not match {text:?}");
            }
            for text in others {
                assert!(!found.matches(text), "{pattern} matches {text:?}");
            }
        }
    }

    // rows: RS-130
    #[test]
    fn what_is_not_ecmascript_is_refused_with_its_place() {
        for (pattern, why) in [
            ("ab(?i)c", "has (?i at character 2, which begins no group"),
            ("(?i:c)", "has (?i at character 0, which begins no group"),
            ("(?P<n>a)", "has (?P at character 0, which begins no group"),
            ("(?#a)", "has (?# at character 0"),
            ("(?>a)", "has (?> at character 0"),
            ("a(?", "has (? at character 1"),
            ("(?<1>a)", "has (?< at character 0, and no name"),
            ("(?<n>a)(?<n>b)", "has (?< at character 7, and no name"),
            ("(?<n", "has (?< at character 0, and no name"),
            ("a++", "has + at character 2, behind a repetition"),
            ("é*+", "has + at character 2, behind a repetition"),
            ("a{2}{3}", "has {3} at character 4, behind a repetition"),
            ("a{2}??", "has ? at character 5, behind a repetition"),
            ("*a", "has * at character 0, and nothing before it"),
            ("a|+", "has + at character 2, and nothing before it"),
            ("({1}a)", "has {1} at character 1, and nothing before it"),
            ("^*a", "has * at character 1, and nothing before it"),
            ("a(?=b)", "has (?= at character 1, a look-around"),
            ("(?<!b)a", "has (?<! at character 0, a look-around"),
            (r"(a)\1", r"has \1 at character 3, a back reference"),
            (r"(?<n>a)\k<n>", r"has \k at character 7, a back reference"),
            (r"a\b", r"has \b at character 1, which cannot be enforced"),
            (r"\h", r"has \h at character 0, which means nothing"),
            (r"\pL", r"has \p at character 0, and no property"),
            (r"a\p{l}", "and no property"),
            (r"\p{Greek}", "and no property"),
            (r"\p{^L}", "and no property"),
            (r"\p{L", r"has \p at character 0, and no property"),
            (r"\x{41}", r"has \x at character 0, and a brace"),
            (r"\ud83d", r"has \u at character 0, and no character"),
            (r"\ud83d\u0041", r"has \u at character 0, and no character"),
            (r"\u{110000}", r"has \u at character 0, and no character"),
            ("a{3,2}", "does not parse"),
            ("(a", "does not parse"),
            ("a)", "does not parse"),
        ] {
            let refused = Pattern::whole(pattern).expect_err(pattern);
            assert!(refused.contains(why), "{pattern}: {refused}");
        }
    }
}
