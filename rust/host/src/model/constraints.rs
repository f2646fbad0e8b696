//! The matchers that walk what a generator accepts.
//!
//! Each step asks them for one mask, takes what was accepted on, and where one matcher alone says what may follow, adds
//! the text that it forces. So a program that declares a grammar has no part in a step.

use pie_core::masks;
use pie_text::grammar::Matcher;

use crate::Error;
use crate::budget::Charge;
use crate::errors::text_error;

/// The matchers of one generator.
#[derive(Debug, Default)]
pub(crate) struct Constraints {
    matchers: Vec<Matcher>,
    /// For what they take.
    charges: Vec<Charge>,
    /// What they walked since the generator has them.
    walked: Vec<u32>,
    /// How many of these the last step accepted, which the program may still replace.
    n_last: usize,
    /// The program gives a mask of its own in each step.
    pub(crate) program_asks: bool,
    /// The options have a mask of their own.
    pub(crate) has_static_mask: bool,
    /// The mask of the step under way, until that of the program is there.
    mask: Option<Vec<u32>>,
}

impl Constraints {
    /// Whether there are any.
    pub(crate) fn is_empty(&self) -> bool {
        self.matchers.is_empty()
    }

    /// Adds one.
    pub(crate) fn add(&mut self, matcher: Matcher, charge: Charge) {
        self.matchers.push(matcher);
        self.charges.push(charge);
        self.walked.clear();
        self.n_last = 0;
    }

    /// What all of them allow in the next step, as run lengths, where a generation stops at the tokens of `stop`.
    ///
    /// # Errors
    /// `invalid-grammar`, `grammar-mismatch`.
    pub(crate) fn mask(&mut self, stop: &[u32], vocab_size: u32) -> Result<Vec<u32>, Error> {
        let mut all: Vec<Vec<u32>> = Vec::with_capacity(self.matchers.len());
        for matcher in &mut self.matchers {
            matcher.set_stop(stop);
            let mut runs = matcher.mask().map_err(text_error)?.runs();
            // A model may have fewer rows than the tokenizer has tokens.
            cut(&mut runs, vocab_size);
            all.push(runs);
        }
        match <[Vec<u32>; 1]>::try_from(all) {
            Ok([one]) => Ok(one),
            Err(all) => masks::intersection(&all, vocab_size),
        }
    }

    /// Keeps the mask of a step until that of the program is there.
    pub(crate) fn keep_mask(&mut self, mask: Vec<u32>) {
        self.mask = Some(mask);
    }

    /// The mask of the program with that of the step.
    ///
    /// # Errors
    /// `invalid-argument`.
    pub(crate) fn with_program(
        &mut self,
        mask: Vec<u32>,
        vocab_size: u32,
    ) -> Result<Vec<u32>, Error> {
        let Some(own) = &self.mask else {
            return Ok(mask);
        };
        let both = masks::intersection(&[own.clone(), mask], vocab_size)?;
        // One that is refused leaves it for the next.
        self.mask = None;
        Ok(both)
    }

    /// Takes what a step accepted on.
    ///
    /// # Errors
    /// `grammar-mismatch`, `invalid-grammar`.
    pub(crate) fn accept(&mut self, tokens: &[u32]) -> Result<(), Error> {
        self.n_last = 0;
        self.go_on(tokens)
    }

    /// Takes more of the same step on.
    ///
    /// # Errors
    /// As [`Constraints::accept`].
    pub(crate) fn go_on(&mut self, tokens: &[u32]) -> Result<(), Error> {
        for matcher in &mut self.matchers {
            matcher.accept(tokens).map_err(text_error)?;
        }
        self.walked.extend_from_slice(tokens);
        self.n_last += tokens.len();
        Ok(())
    }

    /// Puts tokens in place of what the last step accepted.
    ///
    /// # Errors
    /// `grammar-mismatch`, `invalid-grammar`.
    pub(crate) fn replace(&mut self, tokens: &[u32]) -> Result<(), Error> {
        if self.is_empty() {
            return Ok(());
        }
        self.walked.truncate(self.walked.len() - self.n_last);
        self.walked.extend_from_slice(tokens);
        self.n_last = tokens.len();
        for matcher in &mut self.matchers {
            matcher.reset();
            matcher.accept(&self.walked).map_err(text_error)?;
        }
        Ok(())
    }

    /// Whether nothing may follow.
    pub(crate) fn is_terminated(&self) -> bool {
        self.matchers.iter().any(Matcher::is_terminated)
    }

    /// The tokens that must follow, where one matcher alone says so.
    ///
    /// # Errors
    /// `invalid-grammar`.
    pub(crate) fn forced(&mut self) -> Result<Vec<u32>, Error> {
        match self.matchers.as_mut_slice() {
            [one] if !self.program_asks && !self.has_static_mask => {
                Ok(one.forced().map_err(text_error)?.iter().copied().collect())
            }
            _ => Ok(Vec::new()),
        }
    }
}

/// Leaves out what lies behind the vocabulary of the model.
fn cut(runs: &mut Vec<u32>, vocab_size: u32) {
    let mut end = 0u32;
    for at in 0..runs.len() {
        if end + runs[at] >= vocab_size {
            runs[at] = vocab_size - end;
            runs.truncate(at + 1);
            return;
        }
        end += runs[at];
    }
}
