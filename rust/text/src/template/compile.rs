//! From a template's source to instructions that charge for what they do.
//!
//! The parser and the code generator of minijinja descend as deep as a source is nested, and some of it they do not
//! count: a chain of `not`, of `+` or of `elif`. So the words of a source are counted first, by the lexer, which does
//! not descend, and what is within the limits is compiled on a thread whose stack holds the deepest source that they
//! admit.

use std::collections::BTreeMap;
use std::thread;

use minijinja::machinery::{CodeGenerator, Instructions, Token, WhitespaceConfig, parse, tokenize};
use minijinja::{Error, ErrorKind};
use yoke::{Yoke, Yokeable};

use super::instructions::charged;
use crate::limits::{MAX_TAG_WORDS, MAX_TEMPLATE_BYTES, MAX_TEMPLATE_TAGS, MAX_TEMPLATE_WORDS};

/// The name of the template; without a file extension, so that nothing is escaped.
const NAME: &str = "chat_template";
/// The stack of the thread that compiles. A word in one tag, or a tag, takes at most 3 KiB of it; only what is touched
/// takes memory.
const STACK_BYTES: usize = 128 << 20;
/// The longest text, in bytes, that the compiler may make of constants.
const MAX_FOLDED_BYTES: f64 = (64 << 10) as f64;
const WHITESPACE: WhitespaceConfig = WhitespaceConfig {
    keep_trailing_newline: false,
    lstrip_blocks: true,
    trim_blocks: true,
};

/// A compiled template.
#[derive(Yokeable)]
pub(super) struct Program<'s> {
    pub(super) instructions: Instructions<'s>,
    pub(super) blocks: BTreeMap<&'s str, Instructions<'s>>,
}

/// A compiled template with the source that it points into.
pub(super) type Compiled = Yoke<Program<'static>, Box<str>>;

/// Compiles a source within bounds of memory, depth and time.
///
/// # Errors
/// Where it does not parse, or is beyond a limit.
pub(super) fn compile(source: &str) -> Result<Compiled, Error> {
    if source.len() > MAX_TEMPLATE_BYTES {
        return Err(too_large(&format!(
            "it has {} bytes, and the limit is {MAX_TEMPLATE_BYTES}",
            source.len()
        )));
    }
    count(source)?;
    let source: Box<str> = source.into();
    let compiling = thread::Builder::new()
        .name("pie-template".to_owned())
        .stack_size(STACK_BYTES)
        .spawn(|| Compiled::try_attach_to_cart(source, generate))
        .map_err(|error| {
            let why = format!("no thread can be started to compile it: {error}");
            Error::new(ErrorKind::InvalidOperation, why)
        })?;
    compiling.join().unwrap_or_else(|_| {
        let why = "it cannot be compiled: it failed inside the template engine";
        Err(Error::new(ErrorKind::SyntaxError, why))
    })
}

fn generate(source: &str) -> Result<Program<'_>, Error> {
    let tree = parse(source, NAME, Default::default(), WHITESPACE)?;
    let mut generator = CodeGenerator::new(NAME, source);
    generator.compile_stmt(&tree);
    let (instructions, blocks) = generator.finish();
    Ok(Program {
        instructions: charged(&instructions, NAME, source)?,
        blocks: blocks
            .into_iter()
            .map(|(name, block)| Ok((name, charged(&block, name, source)?)))
            .collect::<Result<_, Error>>()?,
    })
}

/// What the words of a tag may make the compiler do.
#[derive(Default)]
struct Tag {
    n_words: usize,
    n_text_bytes: usize,
    n_products: usize,
    /// The product of all numbers in it, each as at least 2.
    numbers: f64,
    /// Whether an argument begins, where `*` and `**` multiply nothing.
    begins: bool,
}

impl Tag {
    fn word(&mut self, token: &Token<'_>) {
        self.n_words += 1;
        let begins = self.begins;
        self.begins = matches!(token, Token::ParenOpen | Token::Comma);
        let number = match token {
            Token::Mul | Token::Pow if begins => return,
            Token::Str(text) => {
                self.n_text_bytes += text.len();
                return;
            }
            Token::String(text) => {
                self.n_text_bytes += text.len();
                return;
            }
            // An item of a list, which can be multiplied too.
            Token::Comma | Token::BracketOpen => {
                self.n_text_bytes += 1;
                return;
            }
            Token::Mul => {
                self.n_products += 1;
                return;
            }
            Token::Pow => {
                self.n_products += 1;
                f64::INFINITY
            }
            Token::Int(number) => *number as f64,
            Token::Int128(number) => **number as f64,
            // What a number is divided by may be small.
            Token::Float(_) => f64::INFINITY,
            _ => return,
        };
        self.numbers = self.numbers.max(1.0) * number.max(2.0);
    }

    /// minijinja computes constant expressions while it compiles, so a product of a constant text must be small.
    fn check(&self, line: u16) -> Result<(), Error> {
        if self.n_words > MAX_TAG_WORDS {
            return Err(too_large(&format!(
                "the tag that ends in line {line} has {} words, and the limit is {MAX_TAG_WORDS}",
                self.n_words
            )));
        }
        if self.n_products > 0 && self.numbers * self.n_text_bytes as f64 > MAX_FOLDED_BYTES {
            return Err(too_large(&format!(
                "the product of constants in line {line} may be longer than {MAX_FOLDED_BYTES} bytes"
            )));
        }
        Ok(())
    }
}

/// Refuses a source whose words could take more memory, depth or time to compile than there is.
fn count(source: &str) -> Result<(), Error> {
    let (mut n_words, mut n_tags) = (0_usize, 0_usize);
    let mut tag = Tag::default();
    for word in tokenize(source, false, Default::default(), WHITESPACE) {
        let (token, span) = word?;
        n_words += 1;
        match &token {
            Token::VariableStart | Token::BlockStart => {
                n_tags += 1;
                tag = Tag::default();
            }
            Token::VariableEnd | Token::BlockEnd => tag.check(span.start_line)?,
            token => tag.word(token),
        }
        // A tag that never ends is not looked at to its end either.
        if tag.n_words > MAX_TAG_WORDS {
            tag.check(span.start_line)?;
        }
        if n_words > MAX_TEMPLATE_WORDS || n_tags > MAX_TEMPLATE_TAGS {
            return Err(too_large(&format!(
                "it has more than {MAX_TEMPLATE_WORDS} words or {MAX_TEMPLATE_TAGS} tags"
            )));
        }
    }
    Ok(())
}

fn too_large(why: &str) -> Error {
    Error::new(
        ErrorKind::SyntaxError,
        format!("it is too large: {why}; use a smaller template"),
    )
}
