//! The text of a grammar in EBNF as rules.

use std::collections::HashSet;

use super::rule::{Part, Rule};
use crate::grammar::pattern::{Pattern, check_weight};

/// How deep groups may stand in each other.
pub(super) const MAX_NESTING: usize = 100;
/// Counts right behind each other, as in `"a"?*`: each is a level of the rule.
const MAX_COUNTS: usize = 8;
/// Rules of a grammar, which bounds the search for rules from which no text follows.
const MAX_RULES: usize = 1000;

/// The length of what stands in quotes, quotes included; 1 where they are not closed on the line.
pub(super) fn skip_quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        match character {
            '\n' => return 1,
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            it if it == quote => return at + 1,
            _ => {}
        }
    }
    1
}

/// Reads the rules of a grammar.
pub(super) struct Reader<'a> {
    rest: &'a str,
    line: usize,
    is_lark: bool,
    /// Names that come from elsewhere.
    pub(super) imported: HashSet<String>,
}

impl<'a> Reader<'a> {
    /// Of a text in the dialect of Lark or in the other.
    pub(super) fn new(source: &'a str, is_lark: bool) -> Self {
        Self {
            rest: source,
            line: 1,
            is_lark,
            imported: HashSet::new(),
        }
    }

    /// All rules.
    ///
    /// # Errors
    /// What is wrong, and on which line.
    pub(super) fn rules(&mut self) -> Result<Vec<Rule>, String> {
        let mut rules: Vec<Rule> = Vec::new();
        loop {
            self.skip_blank(true);
            if self.rest.is_empty() {
                break;
            }
            if self.is_lark && self.rest.starts_with('%') {
                self.statement()?;
                continue;
            }
            let line = self.line;
            let Some(name) = self.head()? else {
                return Err(self.wrong("a rule begins with its name"));
            };
            if rules.iter().any(|it| it.name == name) {
                return Err(format!(
                    "line {line}: the rule {name:?} is there twice; name one of them otherwise"
                ));
            }
            if rules.len() == MAX_RULES {
                return Err(format!(
                    "line {line}: the grammar has more than {MAX_RULES} rules; write some of them into others"
                ));
            }
            let body = self.options(0)?;
            rules.push(Rule { name, line, body });
        }
        if rules.is_empty() {
            return Err("the grammar is empty; write a rule".to_owned());
        }
        Ok(rules)
    }

    fn wrong(&self, why: &str) -> String {
        let near: String = self.rest.chars().take(20).collect();
        format!("line {}: {why}, and here is {near:?}", self.line)
    }

    fn advance(&mut self, n_bytes: usize) {
        let (read, rest) = self.rest.split_at(n_bytes);
        self.line += read.matches('\n').count();
        self.rest = rest;
    }

    /// Skips blanks and comments; line ends too where `lines` says so.
    fn skip_blank(&mut self, lines: bool) {
        loop {
            let n_blank = self
                .rest
                .find(|it: char| !(it == ' ' || it == '\t' || it == '\r' || (lines && it == '\n')))
                .unwrap_or(self.rest.len());
            self.advance(n_blank);
            let comment = if self.is_lark {
                self.rest.starts_with("//") || self.rest.starts_with('#')
            } else {
                self.rest.starts_with('#')
            };
            if !comment {
                return;
            }
            let n_comment = self.rest.find('\n').unwrap_or(self.rest.len());
            self.advance(n_comment);
        }
    }

    /// `%import common.NAME`, `%ignore X` and their like.
    fn statement(&mut self) -> Result<(), String> {
        for refused in ["%json", "%llguidance", "%lark", "%regex"] {
            if self.rest.starts_with(refused) {
                return Err(self.wrong(&format!("{refused} cannot be used")));
            }
        }
        let n_line = self.rest.find('\n').unwrap_or(self.rest.len());
        let statement = &self.rest[..n_line];
        if statement.starts_with("%import") || statement.starts_with("%declare") {
            let words = statement.split(|it: char| !(it.is_alphanumeric() || it == '_'));
            self.imported.extend(words.map(str::to_owned));
        }
        self.advance(n_line);
        Ok(())
    }

    /// The name of a rule and the colon or `::=` behind it.
    fn head(&mut self) -> Result<Option<String>, String> {
        if self.is_lark {
            while self.rest.starts_with(['?', '!']) {
                self.advance(1);
            }
        }
        let Some(name) = self.name() else {
            return Ok(None);
        };
        self.skip_blank(false);
        if !self.is_lark {
            return match self.rest.strip_prefix("::=") {
                Some(_) => {
                    self.advance(3);
                    Ok(Some(name))
                }
                None => Err(self.wrong(&format!("::= follows the name {name:?}"))),
            };
        }
        // A priority, options and parameters.
        while let Some(close) = match self.rest.as_bytes().first() {
            Some(b'[') => Some(']'),
            Some(b'{') => Some('}'),
            _ => None,
        } {
            let Some(end) = self.rest.find(close) else {
                return Err(self.wrong("a bracket is not closed"));
            };
            self.advance(end + 1);
            self.skip_blank(false);
        }
        if let Some(tail) = self.rest.strip_prefix('.') {
            let n_digits = tail
                .find(|it: char| !it.is_ascii_digit())
                .unwrap_or(tail.len());
            self.advance(1 + n_digits);
            self.skip_blank(false);
        }
        if !self.rest.starts_with(':') {
            return Err(self.wrong(&format!("a colon follows the name {name:?}")));
        }
        self.advance(1);
        Ok(Some(name))
    }

    fn name(&mut self) -> Option<String> {
        let is_part = |it: char| it.is_alphanumeric() || it == '_' || (!self.is_lark && it == '-');
        let n_name = self.rest.find(|it| !is_part(it)).unwrap_or(self.rest.len());
        if n_name == 0 {
            return None;
        }
        let name = self.rest[..n_name].to_owned();
        self.advance(n_name);
        Some(name)
    }

    /// Whether a rule begins here, and the body of the one before ends.
    fn at_head(&self) -> bool {
        let mut probe = Reader {
            rest: self.rest,
            line: self.line,
            is_lark: self.is_lark,
            imported: HashSet::new(),
        };
        if self.is_lark && self.rest.starts_with('%') {
            return !["%json", "%regex", "%lark"]
                .iter()
                .any(|it| self.rest.starts_with(it));
        }
        matches!(probe.head(), Ok(Some(_)))
    }

    fn options(&mut self, depth: usize) -> Result<Part, String> {
        if depth > MAX_NESTING {
            return Err(self.wrong(&format!(
                "groups stand more than {MAX_NESTING} deep in each other"
            )));
        }
        let mut options = vec![self.sequence(depth)?];
        loop {
            self.skip_blank(true);
            if !self.rest.starts_with('|') {
                break;
            }
            self.advance(1);
            options.push(self.sequence(depth)?);
        }
        Ok(match options.pop() {
            Some(one) if options.is_empty() => one,
            Some(last) => {
                options.push(last);
                Part::Options(options)
            }
            None => Part::Sequence(Vec::new()),
        })
    }

    fn sequence(&mut self, depth: usize) -> Result<Part, String> {
        let mut parts = Vec::new();
        loop {
            let line = self.line;
            self.skip_blank(true);
            let new_line = self.line > line || self.rest.len() == self.rest.trim_start().len();
            if self.rest.is_empty() || self.rest.starts_with(['|', ')', ']']) {
                break;
            }
            if new_line && depth == 0 && self.at_head() {
                break;
            }
            if self.is_lark && self.rest.starts_with("->") {
                self.advance(2);
                self.skip_blank(false);
                self.name();
                continue;
            }
            // Both sides of `&` must match: as far as this reading goes, one after the other.
            if self.is_lark && self.rest.starts_with(['&', '~']) {
                self.advance(1);
                continue;
            }
            let part = self.part(depth)?;
            parts.push(self.counted(part)?);
        }
        Ok(Part::Sequence(parts))
    }

    fn part(&mut self, depth: usize) -> Result<Part, String> {
        let line = self.line;
        let first = self.rest.chars().next().unwrap_or_default();
        match first {
            '(' => {
                self.advance(1);
                let inner = self.options(depth + 1)?;
                self.close(')')?;
                Ok(inner)
            }
            '[' if self.is_lark => {
                self.advance(1);
                let inner = self.options(depth + 1)?;
                self.close(']')?;
                Ok(Part::Repeated(Box::new(inner), 0, Some(1)))
            }
            '[' => self.class(),
            '.' if !self.is_lark => {
                self.advance(1);
                Ok(Part::Characters(vec![r"[^\n]".to_owned()]))
            }
            '"' | '\'' => self.literal(first),
            '/' if self.is_lark => {
                let n_pattern = self.pattern_len()?;
                let text = self.rest[..n_pattern].to_owned();
                self.check_pattern(&text)?;
                self.advance(n_pattern);
                Ok(Part::Terminal(text))
            }
            '<' if self.is_lark => {
                let Some(end) = self.rest.find('>') else {
                    return Err(self.wrong("a token is not closed by >"));
                };
                let text = self.rest[..=end].to_owned();
                self.advance(end + 1);
                Ok(Part::Terminal(text))
            }
            '%' => Err(self.wrong("% cannot be used within a rule")),
            _ => match self.name() {
                Some(name) => Ok(Part::Name(name, line)),
                None => Err(self.wrong("a string, a name or a group is wanted")),
            },
        }
    }

    fn close(&mut self, bracket: char) -> Result<(), String> {
        self.skip_blank(true);
        if !self.rest.starts_with(bracket) {
            return Err(self.wrong(&format!("{bracket} is wanted")));
        }
        self.advance(1);
        Ok(())
    }

    /// `*`, `+`, `?` and counts behind a part.
    fn counted(&mut self, part: Part) -> Result<Part, String> {
        let mut part = part;
        let mut n_counts = 0;
        loop {
            let (min, max, n_bytes) = match self.rest.as_bytes().first() {
                Some(b'*') => (0, None, 1),
                Some(b'+') => (1, None, 1),
                Some(b'?') => (0, Some(1), 1),
                Some(b'{') => {
                    let Some(end) = self.rest.find('}') else {
                        return Err(self.wrong("a count is not closed by }"));
                    };
                    let (min, max) = self.bounds(&self.rest[1..end], ',')?;
                    (min, max, end + 1)
                }
                Some(b'~') if self.is_lark => {
                    let tail = self.rest[1..].trim_start_matches([' ', '\t']);
                    let n_count = tail
                        .find(|it: char| !(it.is_ascii_digit() || it == '.'))
                        .unwrap_or(tail.len());
                    if n_count == 0 {
                        return Ok(part);
                    }
                    let (min, max) = self.bounds(&tail[..n_count].replace("..", ","), ',')?;
                    (min, max, self.rest.len() - tail.len() + n_count)
                }
                // A range of characters.
                Some(b'.') if self.is_lark && self.rest.starts_with("..") => {
                    self.advance(2);
                    let quote = self.rest.chars().next().unwrap_or_default();
                    self.literal(quote)?;
                    continue;
                }
                _ => return Ok(part),
            };
            n_counts += 1;
            if n_counts > MAX_COUNTS {
                return Err(self.wrong(&format!(
                    "more than {MAX_COUNTS} counts stand right behind each other"
                )));
            }
            self.advance(n_bytes);
            part = Part::Repeated(Box::new(part), min, max);
            // Blanks before `~`.
            if self.is_lark && self.rest.trim_start_matches(' ').starts_with('~') {
                self.skip_blank(false);
            }
        }
    }

    fn bounds(&self, text: &str, separator: char) -> Result<(u32, Option<u32>), String> {
        let number = |text: &str| {
            let number = text.trim().parse::<u32>();
            number.map_err(|_| self.wrong(&format!("a count is a number, and not {text:?}")))
        };
        let (min, max) = match text.split_once(separator) {
            None => {
                let times = number(text)?;
                (times, Some(times))
            }
            Some((min, max)) if max.trim().is_empty() => (number(min)?, None),
            Some((min, max)) if min.trim().is_empty() => (0, Some(number(max)?)),
            Some((min, max)) => (number(min)?, Some(number(max)?)),
        };
        if max.is_some_and(|max| max < min) {
            return Err(self.wrong("the second count is less than the first"));
        }
        Ok((min, max))
    }

    /// A string.
    fn literal(&mut self, quote: char) -> Result<Part, String> {
        let n_quoted = skip_quoted(self.rest, quote);
        if n_quoted == 1 {
            return Err(self.wrong("a string is not closed on its line"));
        }
        let text = self.rest[..n_quoted].to_owned();
        self.advance(n_quoted);
        if self.is_lark {
            if self.rest.starts_with('i') {
                self.advance(1);
            }
            return Ok(Part::Terminal(text));
        }
        let mut characters = Vec::new();
        let mut inner = text[1..text.len() - 1].chars();
        while let Some(character) = inner.next() {
            let character = if character == '\\' {
                self.escape(&mut inner)?
            } else {
                character
            };
            characters.push(one(character));
        }
        Ok(Part::Characters(characters))
    }

    /// What stands behind a backslash in the `root ::=` dialect.
    fn escape(&self, text: &mut std::str::Chars<'_>) -> Result<char, String> {
        match text.next() {
            Some('n') => Ok('\n'),
            Some('r') => Ok('\r'),
            Some('t') => Ok('\t'),
            Some('x') => self.code(text, 2),
            Some('u') => self.code(text, 4),
            Some('U') => self.code(text, 8),
            Some(other) if !other.is_alphanumeric() => Ok(other),
            _ => Err(self
                .wrong("a backslash is followed by one of n r t x u U, or by a punctuation mark")),
        }
    }

    fn code(&self, text: &mut std::str::Chars<'_>, n_digits: usize) -> Result<char, String> {
        let digits: String = text.take(n_digits).collect();
        let code = u32::from_str_radix(&digits, 16)
            .ok()
            .filter(|_| digits.len() == n_digits);
        code.and_then(char::from_u32)
            .ok_or_else(|| self.wrong(&format!("{digits:?} is not the code of a character")))
    }

    /// A class of the `root ::=` dialect.
    fn class(&mut self) -> Result<Part, String> {
        let mut class = String::from("[");
        let inside = &self.rest[1..];
        let mut characters = inside.chars();
        let mut is_first = true;
        let mut dash = false;
        loop {
            let Some(character) = characters.next() else {
                return Err(self.wrong("a class is not closed by ]"));
            };
            match character {
                ']' if !is_first => break,
                '\n' => return Err(self.wrong("a class is not closed on its line")),
                '^' if is_first => {
                    class.push('^');
                    is_first = false;
                    continue;
                }
                '-' if !is_first && !characters.as_str().starts_with(']') && !dash => {
                    class.push('-');
                    dash = true;
                    is_first = false;
                    continue;
                }
                _ => {}
            }
            let character = if character == '\\' {
                self.escape(&mut characters)?
            } else {
                character
            };
            class.push_str(&format!(r"\x{{{:X}}}", u32::from(character)));
            dash = false;
            is_first = false;
        }
        class.push(']');
        let n_class = 1 + inside.len() - characters.as_str().len();
        // Ranges that run backwards are mistakes. Code points in braces are of ECMAScript by another letter.
        Pattern::whole(&class.replace(r"\x{", r"\u{")).map_err(|why| self.wrong(&why))?;
        self.advance(n_class);
        Ok(Part::Characters(vec![class]))
    }

    /// The length of a regular expression of Lark with its flags.
    fn pattern_len(&self) -> Result<usize, String> {
        let n_quoted = skip_quoted(self.rest, '/');
        if n_quoted <= 2 {
            return Err(self.wrong("a regular expression is not closed on its line"));
        }
        let flags = &self.rest[n_quoted..];
        let n_flags = flags
            .find(|it: char| !"imslux".contains(it))
            .unwrap_or(flags.len());
        Ok(n_quoted + n_flags)
    }

    /// Bounds the counts of a regular expression of Lark; the engine reads it.
    fn check_pattern(&self, text: &str) -> Result<(), String> {
        let end = text.rfind('/').unwrap_or(0);
        let source = text.get(1..end).unwrap_or_default().replace("\\/", "/");
        check_weight(&source).map_err(|why| self.wrong(&why))
    }
}

/// A character as a regular expression.
fn one(character: char) -> String {
    format!(r"\x{{{:X}}}", u32::from(character))
}
