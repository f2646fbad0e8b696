//! From the regular expressions of ECMAScript to the syntax of `regex-syntax`.
//!
//! Both write most things alike. Within a class they do not: a hyphen beside a class escape is one of the characters in
//! ECMAScript without the flag `u`, and what `regex-syntax` takes for operators and nested classes is text.

use std::iter::Peekable;
use std::str::Chars;

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
    };
    while let Some(character) = translation.rest.next() {
        match character {
            '\\' => {
                let atom = translation.escape(false)?;
                translation.text.push_str(&atom.text);
            }
            '[' => translation.class()?,
            '.' => translation.text.push_str(r"[^\n\r\u2028\u2029]"),
            _ => translation.text.push(character),
        }
    }
    Ok(translation.text)
}

struct Translation<'s> {
    source: &'s str,
    in_schema: bool,
    rest: Peekable<Chars<'s>>,
    text: String,
}

/// A character, or an escape that stands for several.
struct Atom {
    text: String,
    is_class: bool,
}

impl Translation<'_> {
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
            'p' | 'P' => class(format!("\\{next}{}", self.braced(1))),
            'x' => single(format!("\\x{}", self.braced(2))),
            'u' => single(format!("\\u{}", self.braced(4))),
            '0' if !self.rest.peek().is_some_and(char::is_ascii_digit) => {
                single(r"\x00".to_owned())
            }
            'b' | 'B' | 'A' | 'z' | '<' | '>' if !in_class => {
                return Err(format!(
                    "the pattern {} has \\{next}, which cannot be enforced; leave it out",
                    shown(self.source)
                ));
            }
            'b' => single(r"\x08".to_owned()),
            // These mean something else to those who read the translation.
            '/' | 'a' | 'U' | '<' | '>' | 'B' | 'A' | 'z' => single(next.into()),
            _ => single(format!("\\{next}")),
        })
    }

    /// What stands behind an escape: so many letters and digits, or what is within braces, with them.
    fn braced(&mut self, n_most: usize) -> String {
        let mut text = String::new();
        if self.rest.peek() == Some(&'{') {
            for character in self.rest.by_ref() {
                text.push(character);
                if character == '}' {
                    break;
                }
            }
            return text;
        }
        while text.len() < n_most
            && let Some(character) = self.rest.next_if(char::is_ascii_alphanumeric)
        {
            text.push(character);
        }
        text
    }
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
}
