//! How deeply a TypeScript source nests, found without recursion before a parser that recurses gets it.
//!
//! A level is an open bracket, and every operator, call and reserved word since the statement or element that it stands in began:
//! whatever nests, with brackets or without (`a => a =>`, `!!x`, `a: a:`, `A<A<`, `if (a) if (b)`, `f()()`), has one of those for each
//! step. Where it cannot be told whether a slash divides or begins a regular expression, the source is refused: a wrong guess would
//! hide levels.

/// The most levels that are accepted.
pub(crate) const MAX_LEVELS: usize = 1000;

/// Levels that an open angle bracket counts for: the parser reads what follows it again and again.
const ANGLE_LEVELS: usize = 10;

/// Words that go on with what stood before them, on whatever line.
#[rustfmt::skip]
const CONTINUING: &[&str] = &[
    "as", "catch", "else", "extends", "finally", "from", "implements", "in", "instanceof", "is", "of", "satisfies", "while",
];
/// Reserved words before an operand or a statement.
#[rustfmt::skip]
const PREFIXES: &[&str] = &[
    "await", "case", "default", "delete", "do", "else", "extends", "in", "instanceof", "new", "return", "throw", "typeof", "void",
];
/// The other words of the language; some may be names too.
#[rustfmt::skip]
const WORDS: &[&str] = &[
    "abstract", "accessor", "as", "asserts", "async", "break", "catch", "class", "const", "continue", "debugger", "declare", "enum",
    "export", "finally", "for", "from", "function", "get", "global", "if", "implements", "import", "infer", "interface", "is", "keyof",
    "let", "module", "namespace", "of", "out", "override", "package", "private", "protected", "public", "readonly", "satisfies", "set",
    "static", "switch", "try", "type", "unique", "using", "var", "while", "with", "yield",
];
/// Words of statements that hold a statement: a comma does not end those.
const HOLDING: &[&str] = &["do", "else", "for", "if", "while", "with"];
/// Words whose parentheses are followed by a statement.
const CONTROL: &[&str] = &["for", "if", "while", "with"];

/// What stands before a token.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// The beginning, or what wants an operand or a statement next.
    Operator,
    /// The end of an operand.
    Operand,
    /// A closing brace: the end of an operand or of a statement.
    Brace,
    /// The dot before the name of a property.
    Dot,
    /// What may be an operator or the end of an operand.
    Either,
}

/// What an open bracket waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Close {
    File,
    /// The closing bracket.
    Bracket(u8),
    /// The parenthesis that a statement follows.
    Control,
    /// The parenthesis after `await`, which stands in `for await` too.
    Await,
    /// The brace in a template, whose text goes on behind it.
    Template,
}

/// One open bracket, or the whole file.
struct Level {
    close: Close,
    /// Operators and words that a comma ends.
    links: usize,
    /// Words of [`HOLDING`], which go on beyond a comma.
    held: usize,
    /// Levels of angle brackets that are open: they go on beyond a comma too.
    angles: usize,
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    line: usize,
    levels: Vec<Level>,
    /// The links and what is held, of all levels.
    n_links: usize,
    before: Before,
    /// The last token, where it was a word that is no property.
    word: &'a str,
    /// A line has ended since the last token.
    newline: bool,
    /// The last token was a semicolon: unless the statement goes on (`else`), its levels are over.
    separated: bool,
}

/// Checks that `source` nests at most [`MAX_LEVELS`] deep.
///
/// # Errors
/// The line, from 1, and what is wrong there.
pub(crate) fn check(source: &str) -> Result<(), (usize, String)> {
    let mut scanner = Scanner {
        text: source,
        at: 0,
        line: 1,
        levels: Vec::new(),
        n_links: 0,
        before: Before::Operator,
        word: "",
        newline: true,
        separated: false,
    };
    scanner.push(Close::File);
    scanner.run().map_err(|message| (scanner.line, message))
}

impl<'a> Scanner<'a> {
    fn run(&mut self) -> Result<(), String> {
        if self.text.starts_with("#!") {
            self.skip_line();
        }
        while let Some(next) = self.rest().chars().next() {
            if next.is_whitespace() || next == '\u{feff}' {
                self.line += usize::from(next == '\n');
                self.newline |= is_line_end(next);
                self.at += next.len_utf8();
            } else if self.is_next("//") {
                self.skip_line();
            } else if self.is_next("/*") {
                let comment = self.rest();
                let n_bytes = comment[2..].find("*/").map_or(comment.len(), |end| end + 4);
                self.newline |= comment[..n_bytes].contains(is_line_end);
                self.skip(n_bytes);
            } else {
                self.token(next)?;
                self.newline = false;
                if self.levels.len() + self.n_links > MAX_LEVELS {
                    return Err(format!(
                        "brackets and operators nest deeper than {MAX_LEVELS}; nest less deeply, or split the statement"
                    ));
                }
            }
        }
        Ok(())
    }

    fn token(&mut self, next: char) -> Result<(), String> {
        if is_word(next) {
            self.word_token();
            return Ok(());
        }
        if std::mem::take(&mut self.separated) {
            self.reset(true);
        }
        match next {
            '"' | '\'' => self.string(next),
            '`' => {
                self.called();
                self.skip(1);
                self.template();
            }
            '(' | '[' | '{' => self.open(next),
            ')' | ']' | '}' => self.close(next),
            '/' => self.slash()?,
            ',' => {
                self.reset(false);
                self.operator(1);
            }
            ';' => {
                self.separated = true;
                self.operator(1);
            }
            '\\' => {
                return Err(
                    "a backslash stands outside of texts; write names without escapes".to_owned(),
                );
            }
            _ if self.is_next("<!--") || (self.newline && self.is_next("-->")) => {
                return Err("a comment of HTML stands here; begin comments with //".to_owned());
            }
            _ => self.punctuator(next),
        }
        self.word = "";
        Ok(())
    }

    fn word_token(&mut self) {
        let rest = self.rest();
        let n_bytes = rest.find(|other| !is_word(other)).unwrap_or(rest.len());
        let word = &rest[..n_bytes];
        self.at += n_bytes;
        if self.before == Before::Dot {
            self.before = Before::Operand;
            self.word = "";
            return;
        }
        let over = if std::mem::take(&mut self.separated) {
            !matches!(word, "else" | "while")
        } else {
            let ended =
                self.before == Before::Brace || (self.before == Before::Operand && self.newline);
            ended && !CONTINUING.contains(&word)
        };
        if over {
            self.reset(true);
        }
        self.before = if PREFIXES.contains(&word) {
            Before::Operator
        } else if WORDS.contains(&word) {
            Before::Either
        } else {
            Before::Operand
        };
        if self.before != Before::Operand {
            self.link(HOLDING.contains(&word));
        }
        self.word = word;
    }

    fn punctuator(&mut self, next: char) {
        self.link(false);
        match next {
            // Behind an operand on the same line it asserts that the operand is there.
            '!' if self.before == Before::Operand && !self.newline => self.skip(1),
            '!' if self.before == Before::Either || self.before == Before::Brace => {
                self.skip(1);
                self.before = Before::Either;
            }
            '<' => {
                if let Some(level) = self.levels.last_mut() {
                    level.angles += ANGLE_LEVELS;
                    self.n_links += ANGLE_LEVELS;
                }
                self.operator(1);
            }
            '>' => {
                if let Some(level) = self.levels.last_mut().filter(|level| level.angles > 0) {
                    level.angles -= ANGLE_LEVELS;
                    self.n_links -= ANGLE_LEVELS;
                }
                self.operator(1);
                self.before = Before::Either;
            }
            '.' if self.is_next("...") => self.operator(3),
            '.' => {
                self.operator(1);
                self.before = Before::Dot;
            }
            '=' if self.is_next("=>") => self.operator(2),
            '+' | '-' if self.is_next("++") || self.is_next("--") => {
                self.operator(2);
                self.before = Before::Either;
            }
            _ => self.operator(next.len_utf8()),
        }
    }

    fn slash(&mut self) -> Result<(), String> {
        let rest = &self.rest()[1..];
        let line = &rest[..rest.find(['\n', '\r']).unwrap_or(rest.len())];
        let divides = match self.before {
            Before::Operator => false,
            Before::Dot => true,
            Before::Operand if !self.newline => true,
            // A regular expression would end on this line.
            _ if !line.contains('/') => true,
            _ => {
                return Err("this slash may divide or begin a regular expression; put parentheses around the operands, or a semicolon before it".to_owned());
            }
        };
        if divides {
            self.link(false);
            self.operator(1);
            return Ok(());
        }
        let (mut n_bytes, mut escaped, mut class) = (line.len(), false, false);
        for (place, next) in line.char_indices() {
            match next {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '[' => class = true,
                ']' => class = false,
                '/' if !class => {
                    n_bytes = place + 1;
                    break;
                }
                _ => {}
            }
        }
        self.skip(n_bytes + 1);
        let flags = self.rest();
        self.skip(flags.find(|next| !is_word(next)).unwrap_or(flags.len()));
        self.before = Before::Operand;
        Ok(())
    }

    fn open(&mut self, bracket: char) {
        self.called();
        let close = match bracket {
            '(' if CONTROL.contains(&self.word) => Close::Control,
            '(' if self.word == "await" => Close::Await,
            '(' => Close::Bracket(b')'),
            '[' => Close::Bracket(b']'),
            _ => Close::Bracket(b'}'),
        };
        self.push(close);
        self.operator(1);
    }

    fn close(&mut self, bracket: char) {
        self.skip(1);
        let found = self.levels.last().map_or(Close::File, |level| level.close);
        let (closes, before) = match (found, bracket) {
            (Close::Control, ')') => (true, Before::Operator),
            (Close::Await, ')') => (true, Before::Either),
            (Close::Template, '}') => (true, Before::Operand),
            (Close::Bracket(b'}'), '}') => (true, Before::Brace),
            (Close::Bracket(close), _) => (char::from(close) == bracket, Before::Operand),
            _ => (false, Before::Operand),
        };
        self.before = before;
        // A bracket that closes nothing is the parser's to report.
        if let Some(level) = self.levels.pop_if(|_| closes) {
            self.n_links -= level.links + level.held + level.angles;
        }
        if closes && found == Close::Template {
            self.template();
        }
    }

    /// The text of a template, to its end or to the next expression in it.
    fn template(&mut self) {
        let bytes = self.rest().as_bytes();
        let mut n_bytes = 0;
        self.before = Before::Operand;
        while let Some(byte) = bytes.get(n_bytes) {
            n_bytes += 1;
            match byte {
                b'\\' => n_bytes += 1,
                b'`' => break,
                b'$' if bytes.get(n_bytes) == Some(&b'{') => {
                    n_bytes += 1;
                    self.push(Close::Template);
                    self.before = Before::Operator;
                    break;
                }
                _ => {}
            }
        }
        self.skip(n_bytes);
    }

    fn string(&mut self, quote: char) {
        let bytes = self.rest().as_bytes();
        let mut n_bytes = 1;
        while let Some(byte) = bytes.get(n_bytes) {
            n_bytes += 1;
            match byte {
                b'\\' if bytes[n_bytes..].starts_with(b"\r\n") => n_bytes += 2,
                b'\\' => n_bytes += 1,
                b'\n' | b'\r' => break,
                _ if char::from(*byte) == quote => break,
                _ => {}
            }
        }
        self.skip(n_bytes);
        self.before = Before::Operand;
    }

    /// A bracket or a template behind an operand calls it, indexes it or tags it.
    fn called(&mut self) {
        if self.before != Before::Operator {
            self.link(false);
        }
    }

    fn push(&mut self, close: Close) {
        self.levels.push(Level {
            close,
            links: 0,
            held: 0,
            angles: 0,
        });
    }

    fn link(&mut self, held: bool) {
        if let Some(level) = self.levels.last_mut() {
            level.held += usize::from(held);
            level.links += usize::from(!held);
            self.n_links += 1;
        }
    }

    /// An element of this level has ended, or a statement.
    fn reset(&mut self, statement: bool) {
        if let Some(level) = self.levels.last_mut() {
            self.n_links -= std::mem::take(&mut level.links);
            if statement {
                self.n_links -= std::mem::take(&mut level.held);
                self.n_links -= std::mem::take(&mut level.angles);
            }
        }
    }

    fn operator(&mut self, n_bytes: usize) {
        self.skip(n_bytes);
        self.before = Before::Operator;
    }

    fn skip_line(&mut self) {
        let rest = self.rest();
        self.skip(rest.find(is_line_end).unwrap_or(rest.len()));
    }

    /// Goes on by `n_bytes`, or a little further where that is inside of a character.
    fn skip(&mut self, n_bytes: usize) {
        let start = self.at;
        self.at = self.text.ceil_char_boundary(start + n_bytes);
        let skipped = &self.text.as_bytes()[start..self.at];
        self.line += skipped.iter().filter(|byte| **byte == b'\n').count();
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn is_next(&self, text: &str) -> bool {
        self.rest().starts_with(text)
    }
}

fn is_line_end(character: char) -> bool {
    matches!(character, '\n' | '\r' | '\u{2028}' | '\u{2029}')
}

fn is_word(character: char) -> bool {
    character.is_ascii_alphanumeric()
        || matches!(character, '_' | '$' | '#')
        || (!character.is_ascii() && !character.is_whitespace() && character != '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_nests_is_bounded() {
        let n = MAX_LEVELS + 1;
        for step in [
            "(",
            "[",
            "{",
            "`${",
            "(/*)*/",
            "(')',",
            "A<",
            "A<B,A<",
            "let x: A<",
            "!",
            "- ",
            "typeof ",
            "a=>",
            "a=",
            "a**",
            "a?b:",
            "a?",
            "a:",
            "if(a)",
            "if(a);else ",
            "if(a)b,c;else ",
            "if(a)b>c>d,e;else ",
            "if(a){}else\n",
            "if(a)do x;while(1);else ",
            "for(;;)",
            "while(1)\n",
            "do ",
            "1+",
            "a.",
            "f\u{a0}=>",
            "else\u{a0}",
            "keyof ",
            "new ",
            "await\n",
            "class extends ",
            "({}) =>",
            "{}=",
            "(/[)/]/,",
        ] {
            assert!(check(&step.repeat(n)).is_err(), "{step}");
        }
        for step in ["()", "[0]", "``", "!", "[]", ".a", "?.a", " as A", " in a"] {
            assert!(check(&format!("a{}", step.repeat(n))).is_err(), "{step}");
        }
    }

    #[test]
    fn what_is_long_but_flat_is_accepted() {
        for line in [
            "const x = f(a, { b: [1, 2] }).c;",
            "const x = a < b\n",
            "call(`${a} and ${b.c()}`)\n",
            "function f(a: string): void { if (a) { g(); } else { h(); } }",
            "if (a) b();\n",
            "x = a / b / c // of d/e\n",
            "x = /[(/]\\((/.test(y) && !/\\(/g.test(z)\n",
            "import { a } from 'b'\n",
            "export const f = async (a: Map<string, B[]>) => { for await (const b of a) { c(b) } }\n",
            "class A<T> extends B<T> { a = 1; b(): C<T> { return this.a! / 2 } }\n",
            "type A = { b: string; c?: D<E, F> } | null;\n",
            "label: for (const a of b) { continue label }\n",
        ] {
            assert_eq!(check(&line.repeat(2 * MAX_LEVELS)), Ok(()), "{line}");
        }
        let table = format!(
            "const x = [{}];",
            "{ a: -1.5, b: new Map<A, B>(), c: '((' },\n".repeat(5000)
        );
        assert_eq!(check(&table), Ok(()));
    }

    #[test]
    fn a_slash_that_may_be_both_is_refused_with_its_line() {
        for source in ["a\n;{}\n/(/.b", "a\n++\n/(/.b", "import 'a'\n\n/(/.test(b)"] {
            let (line, message) = check(source).unwrap_err();
            assert_eq!(line, 3);
            assert!(message.contains("slash"), "{message}");
        }
    }
}
