//! The matchers that walk what a generator accepts.
//!
//! Each step asks them for one mask, takes what was accepted on, and where one matcher alone says what may follow, adds
//! the text that it forces. So a program that declares a grammar has no part in a step.
//!
//! What the last step accepted may be replaced. A copy of a matcher is long, so not every step makes one: each matcher
//! has a copy that stands behind an earlier step, and what was walked since then, which has a bound.

use std::collections::VecDeque;
use std::sync::Arc;

use pie_core::masks;
use pie_text::grammar::Matcher;

use super::held_grammars::HeldCompiled;
use crate::Error;
use crate::budget::Charge;
use crate::errors::text_error;

/// Tokens between the copy of a matcher and the last step, about: that many are walked again where a step is replaced.
const MAX_SINCE: usize = 64;
/// Matchers for each that walks: itself, its copy, one while a step is replaced, and one before a collection.
const N_COPIES: u64 = 4;

/// The matchers of one generator.
#[derive(Debug, Default)]
pub(crate) struct Constraints {
    walks: Vec<Walk>,
    /// The program gives a mask of its own in each step.
    pub(crate) program_asks: bool,
    /// The options have a mask of their own.
    pub(crate) has_static_mask: bool,
    /// The mask of the step under way, until that of the program is there.
    mask: Option<Vec<u32>>,
}

/// A matcher, and the way back to where it stood before the last step.
#[derive(Debug)]
struct Walk {
    /// Behind all that was accepted.
    matcher: Matcher,
    /// Behind an earlier step.
    copy: Matcher,
    /// What was accepted between `copy` and the last step, by the parts in which it was.
    since: VecDeque<Vec<u32>>,
    n_since: usize,
    /// What the last step accepted, by its parts; none: no step was walked.
    last: Option<Vec<Vec<u32>>>,
    /// Where the generation stops, as the matcher knows; none: it was never told.
    stop: Option<Vec<u32>>,
    /// For what all of this takes.
    charge: Charge,
    /// For the grammar.
    _compiled: Arc<HeldCompiled>,
}

/// The matchers behind other tokens than those that the last step accepted; none for one that walked no step.
#[derive(Debug)]
pub(crate) struct Replacement {
    matchers: Vec<Option<Matcher>>,
    tokens: Vec<u32>,
}

/// Where matchers stood before a collection.
#[derive(Debug)]
pub(crate) struct Marks(Vec<(Matcher, Option<Vec<u32>>)>);

/// What a matcher that walks is charged with.
pub(crate) fn walk_bytes(matcher: &Matcher) -> u64 {
    let n_bytes = N_COPIES.saturating_mul(matcher.n_bytes() as u64);
    n_bytes + (2 * MAX_SINCE * size_of::<u32>()) as u64
}

impl Walk {
    fn new(matcher: Matcher, compiled: Arc<HeldCompiled>, charge: Charge) -> Self {
        Self {
            _compiled: compiled,
            copy: matcher.clone(),
            matcher,
            since: VecDeque::new(),
            n_since: 0,
            last: None,
            stop: None,
            charge,
        }
    }

    /// The copy stands where the matcher does.
    fn copy_anew(&mut self) {
        self.copy = self.matcher.clone();
        self.since.clear();
        self.n_since = 0;
        self.last = None;
    }

    /// What may follow, where a generation stops at the tokens of `stop`.
    fn mask(&mut self, stop: &[u32]) -> Result<Vec<u32>, Error> {
        if self.stop.as_deref() != Some(stop) {
            // Another end may have other text before it: what was found to be forced is forgotten, so this is not done
            // in each step.
            self.matcher.set_stop(stop);
            self.stop = Some(stop.to_vec());
            self.copy_anew();
        }
        self.charge.resize(walk_bytes(&self.matcher))?;
        Ok(self.matcher.mask().map_err(text_error)?.runs())
    }

    /// A step was taken: the one before it is final.
    fn begin(&mut self) {
        let last = self.last.replace(Vec::new()).unwrap_or_default();
        self.n_since += last.iter().map(Vec::len).sum::<usize>();
        self.since.extend(last);
        if self.n_since > MAX_SINCE {
            self.copy_anew();
            self.last = Some(Vec::new());
        }
    }

    fn go_on(&mut self, tokens: &[u32]) -> Result<(), Error> {
        // Token by token: of several at once a matcher makes a copy. Whoever has it walk takes back what fails.
        for &token in tokens {
            self.matcher.accept(&[token]).map_err(text_error)?;
        }
        if let Some(last) = self.last.as_mut().filter(|_| !tokens.is_empty()) {
            last.push(tokens.to_vec());
        }
        Ok(())
    }

    /// The matcher behind `tokens` in place of what the last step accepted; none where it walked no step.
    fn replaced(&mut self, tokens: &[u32]) -> Result<Option<Matcher>, Error> {
        if self.last.is_none() {
            return Ok(None);
        }
        while let Some(part) = self.since.front() {
            walk_part(&mut self.copy, part)?;
            self.since.pop_front();
        }
        self.n_since = 0;
        let mut matcher = self.copy.clone();
        walk_part(&mut matcher, tokens)?;
        Ok(Some(matcher))
    }
}

/// Walks a part as it was walked first: what is forced is looked for before it.
fn walk_part(matcher: &mut Matcher, tokens: &[u32]) -> Result<(), Error> {
    if tokens.is_empty() {
        return Ok(());
    }
    matcher.forced().map_err(text_error)?;
    matcher.accept(tokens).map_err(text_error)
}

impl Constraints {
    /// Whether there are any.
    pub(crate) fn is_empty(&self) -> bool {
        self.walks.is_empty()
    }

    /// Adds one, charged with [`walk_bytes`]: it walks from the next step on.
    pub(crate) fn add(&mut self, matcher: Matcher, compiled: Arc<HeldCompiled>, charge: Charge) {
        self.walks.push(Walk::new(matcher, compiled, charge));
    }

    /// What all of them allow in the next step, as run lengths, where a generation stops at the tokens of `stop`.
    ///
    /// # Errors
    /// `invalid-grammar`, `grammar-mismatch`, `limit-engine-memory`.
    pub(crate) fn mask(&mut self, stop: &[u32], vocab_size: u32) -> Result<Vec<u32>, Error> {
        let mut all: Vec<Vec<u32>> = Vec::with_capacity(self.walks.len());
        for walk in &mut self.walks {
            let mut runs = walk.mask(stop)?;
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

    /// Takes what a step accepted on, which may be nothing.
    ///
    /// # Errors
    /// `grammar-mismatch`, `invalid-grammar`: some have walked a part of it, until [`Constraints::undo`].
    pub(crate) fn accept(&mut self, tokens: &[u32]) -> Result<(), Error> {
        self.walks.iter_mut().for_each(Walk::begin);
        self.go_on(tokens)
    }

    /// Takes more of the same step on.
    ///
    /// # Errors
    /// As [`Constraints::accept`].
    pub(crate) fn go_on(&mut self, tokens: &[u32]) -> Result<(), Error> {
        self.walks
            .iter_mut()
            .try_for_each(|walk| walk.go_on(tokens))
    }

    /// Where they stand with `tokens` in place of what the last step accepted. [`Constraints::put`] takes them there.
    ///
    /// # Errors
    /// `grammar-mismatch`, `invalid-grammar`: they stand where they stood.
    pub(crate) fn replaced(&mut self, tokens: &[u32]) -> Result<Replacement, Error> {
        let matchers = self.walks.iter_mut().map(|walk| walk.replaced(tokens));
        Ok(Replacement {
            matchers: matchers.collect::<Result<_, _>>()?,
            tokens: tokens.to_vec(),
        })
    }

    /// Takes back what the last step accepted.
    ///
    /// # Errors
    /// `invalid-grammar` where what was walked once cannot be walked again.
    pub(crate) fn undo(&mut self) -> Result<(), Error> {
        let before = self.replaced(&[])?;
        self.put(before);
        Ok(())
    }

    /// Where they stand, for [`Constraints::return_to`].
    pub(crate) fn marks(&self) -> Marks {
        let walks = self.walks.iter();
        Marks(
            walks
                .map(|it| (it.matcher.clone(), it.stop.clone()))
                .collect(),
        )
    }

    /// Takes back all that was walked and added since they stood there. No earlier step can be replaced then.
    pub(crate) fn return_to(&mut self, marks: Marks) {
        self.walks.truncate(marks.0.len());
        for (walk, (matcher, stop)) in self.walks.iter_mut().zip(marks.0) {
            walk.matcher = matcher;
            walk.stop = stop;
            walk.copy_anew();
        }
    }

    /// Puts other tokens in place of what the last step accepted.
    pub(crate) fn put(&mut self, replacement: Replacement) {
        let Replacement { matchers, tokens } = replacement;
        for (walk, matcher) in self.walks.iter_mut().zip(matchers) {
            if let Some(matcher) = matcher {
                walk.matcher = matcher;
                walk.last = Some(vec![tokens.clone()]);
            }
        }
    }

    /// Whether nothing may follow.
    pub(crate) fn is_terminated(&self) -> bool {
        let mut walks = self.walks.iter();
        walks.any(|walk| walk.matcher.is_terminated())
    }

    /// The tokens that must follow, where one matcher alone says so.
    ///
    /// # Errors
    /// `invalid-grammar`.
    pub(crate) fn forced(&mut self) -> Result<Vec<u32>, Error> {
        match self.walks.as_mut_slice() {
            [one] if !self.program_asks && !self.has_static_mask => {
                let forced = one.matcher.forced().map_err(text_error)?;
                Ok(forced.iter().copied().collect())
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
