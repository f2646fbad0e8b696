//! What a grammar in EBNF consists of.

/// Part of a rule.
#[derive(Debug, Clone)]
pub(super) enum Part {
    /// An expression that matches some text, in the dialect of Lark.
    Terminal(String),
    /// A single character of the `root ::=` dialect, or of a class of it, as a regular expression.
    Characters(Vec<String>),
    /// A rule or a terminal, with the line where it is named.
    Name(String, usize),
    Sequence(Vec<Part>),
    Options(Vec<Part>),
    Repeated(Box<Part>, u32, Option<u32>),
}

/// A rule.
pub(super) struct Rule {
    pub(super) name: String,
    pub(super) line: usize,
    pub(super) body: Part,
}
