//! The state of a text of which some things were known before, and were not looked for.
//!
//! A state that looks for less has smaller tables, and reaches a limit of the engine later; or sooner, for the engine
//! has fuel for each time that something is looked for. Neither may tell what others have walked before. So it is
//! counted what was left out, and where a limit could be near, or something fails, the text is walked anew by a state
//! that looks for everything: its answer counts. Such a walk costs what it would have cost without all knowledge.

use std::sync::Arc;

use llguidance::toktrie::{SimpleVob, TokenId};

use super::compiled::Compiled;
use super::engine::{Growth, State};
use super::fault;
use super::seen::TextNode;
use super::token_mask::TokenMask;
use crate::error::{Error, Result};

/// The state of one text, and the way to it.
#[derive(Debug, Clone)]
pub(super) struct Walk {
    compiled: Arc<Compiled>,
    state: State,
    /// Where it stands among the texts that were walked before; none: nothing is known of them.
    place: Option<TextNode>,
    /// The way from the beginning, as long as it may have to be walked anew.
    steps: Vec<Step>,
    /// What was asked where it stands.
    here: Asked,
    /// What looking for all that was known would have added, at most; none: everything was looked for.
    skipped: Option<Growth>,
}

/// What was asked at one place.
#[derive(Debug, Clone, Copy, Default)]
struct Asked {
    forced: bool,
    mask: bool,
}

/// What was asked, and the token that was taken.
#[derive(Debug, Clone, Copy)]
struct Step {
    asked: Asked,
    token: TokenId,
    /// It is one of those that had to follow.
    is_forced: bool,
}

impl Asked {
    /// Looks for it.
    fn ask(self, state: &mut State) -> Result<()> {
        if self.forced && !state.is_stopped() {
            state.forced()?;
        }
        if self.mask {
            look_for_mask(state)?;
        }
        Ok(())
    }
}

impl Step {
    /// Takes it again.
    fn take(self, state: &mut State) -> Result<()> {
        self.asked.ask(state)?;
        if !self.is_forced {
            state.allows(self.token)?;
        }
        state.consume(self.token)
    }
}

impl Walk {
    /// At the beginning of a text that one of the `stop` tokens may end.
    pub(super) fn new(compiled: &Arc<Compiled>, stop: &Arc<[u32]>) -> Self {
        Self {
            state: compiled.beginning(),
            place: compiled.seen().beginning(stop),
            compiled: compiled.clone(),
            steps: Vec::new(),
            here: Asked::default(),
            skipped: None,
        }
    }

    /// The stop tokens are others from here on.
    pub(super) fn set_stop(&mut self, stop: &Arc<[u32]>, is_at_beginning: bool) {
        self.place = is_at_beginning
            .then(|| self.compiled.seen().beginning(stop))
            .flatten();
    }

    /// The state, to be looked at.
    pub(super) fn state(&self) -> &State {
        &self.state
    }

    /// Makes a failure of the caller's that of the text.
    pub(super) fn give_up(&mut self, failure: &Error) {
        self.state.give_up(failure);
    }

    /// Whether the text may end here.
    ///
    /// # Errors
    /// `invalid-grammar` where finding out takes too much. So with the functions below.
    pub(super) fn is_accepting(&mut self) -> Result<bool> {
        self.run(State::is_accepting)
    }

    /// Whether a token of the vocabulary may follow.
    pub(super) fn allows(&mut self, token: TokenId) -> Result<bool> {
        self.run(|state| state.allows(token))
    }

    /// The tokens that must follow, as the tokenizer writes the text that must, up to one of the `stop` tokens.
    pub(super) fn forced(&mut self, stop: &[TokenId]) -> Result<Arc<[TokenId]>> {
        let known = self.place.and_then(|it| self.compiled.seen().forced(it));
        if let Some((forced, growth)) = known
            && self.skip(growth)?
        {
            self.here.forced = true;
            return Ok(forced);
        }
        let before = self.state.size();
        // A token that ends the text anywhere else is not forced: another spelling of the text is drawn then.
        let forced = self.run(State::forced)?.into_iter();
        let forced: Arc<[TokenId]> = forced.take_while(|it| !stop.contains(it)).collect();
        self.here.forced = true;
        if let Some(place) = self.kept_place() {
            let growth = self.state.size().beyond(before);
            let seen = self.compiled.seen();
            seen.keep_forced(place, forced.clone(), growth);
        }
        Ok(forced)
    }

    /// The tokens that may follow where none must. The `stop` tokens are among them only where the text may end.
    ///
    /// # Errors
    /// Also where no token may follow.
    pub(super) fn mask(&mut self, stop: &[TokenId]) -> Result<Arc<TokenMask>> {
        let known = self.place.and_then(|it| self.compiled.seen().allowed(it));
        if let Some((mask, growth)) = known
            && self.skip(growth)?
        {
            self.here.mask = true;
            return Ok(mask);
        }
        let before = self.state.size();
        let mask = Arc::new(self.find_mask(stop)?);
        self.here.mask = true;
        if mask.is_empty() {
            return Err(fault(
                "the grammar cannot go on",
                "no token of the vocabulary continues the text; allow more of it, or use fewer stop tokens",
            ));
        }
        // What is known of a text that nothing continues is kept with its state.
        if let Some(place) = self.kept_place() {
            let growth = self.state.size().beyond(before);
            self.compiled.seen().keep_allowed(place, &mask, growth);
        }
        Ok(mask)
    }

    fn find_mask(&mut self, stop: &[TokenId]) -> Result<TokenMask> {
        let (is_accepting, words) = self.run(look_for_mask)?;
        let vocabulary = self.compiled.vocabulary();
        let words = words.map(|words| words.as_slice().to_vec());
        let mut mask = TokenMask::new(words.unwrap_or_default(), vocabulary.n_tokens());
        for &(first, twin) in vocabulary.twins() {
            if mask.allows(first) {
                mask.allow(twin);
            }
        }
        for &token in stop {
            if is_accepting {
                mask.allow(token);
            } else {
                mask.forbid(token);
            }
        }
        Ok(mask)
    }

    /// Goes on by a token that may follow. `is_forced`: it is one of those that must, and `is_amid`: more of those are
    /// to come.
    pub(super) fn consume(&mut self, token: TokenId, is_forced: bool, is_amid: bool) -> Result<()> {
        self.run(|state| state.consume(token))?;
        let asked = std::mem::take(&mut self.here);
        // What others found behind a place where this one was not asked for a mask may build on that mask.
        let is_usual = is_forced || asked.mask;
        let place = self.place.take().filter(|_| is_usual);
        self.place = place.and_then(|it| self.compiled.seen().next(it, token, is_amid));
        if self.place.is_some() || self.skipped.is_some() {
            self.steps.push(Step {
                asked,
                token,
                is_forced,
            });
        } else {
            self.steps = Vec::new();
        }
        Ok(())
    }

    /// About what it takes, in bytes.
    pub(super) fn n_bytes(&self) -> usize {
        self.state.n_bytes() + self.steps.capacity() * size_of::<Step>()
    }

    /// Where what was found may be kept.
    fn kept_place(&self) -> Option<TextNode> {
        self.place.filter(|_| self.state.is_plain())
    }

    /// Something is known, and is not looked for, which would add this at most. False: a limit could be met there, and
    /// everything before was looked for.
    fn skip(&mut self, growth: Growth) -> Result<bool> {
        if let Some(failure) = self.state.failure() {
            return Err(failure.clone());
        }
        let skipped = self.skipped.unwrap_or_default().and(growth);
        if self.state.has_room_for(skipped) {
            self.skipped = Some(skipped);
            return Ok(true);
        }
        self.walk_anew()?;
        Ok(false)
    }

    /// Runs `work` on the state. Where things were left out before, and it fails or comes near a limit, what counts is
    /// how it ends on a state that looked for everything.
    fn run<T>(&mut self, work: impl Fn(&mut State) -> Result<T>) -> Result<T> {
        if let Some(failure) = self.state.failure() {
            return Err(failure.clone());
        }
        let done = work(&mut self.state);
        let Some(skipped) = self.skipped else {
            return done;
        };
        if done.is_ok() && self.state.has_room_for(skipped) {
            return done;
        }
        self.walk_anew()?;
        work(&mut self.state)
    }

    /// Goes the way from the beginning again, and looks for everything that was asked, from here on too.
    fn walk_anew(&mut self) -> Result<()> {
        self.state = self.compiled.beginning();
        (self.place, self.skipped) = (None, None);
        for step in std::mem::take(&mut self.steps) {
            step.take(&mut self.state)?;
        }
        self.here.ask(&mut self.state)
    }
}

/// Whether the text may end, and the tokens with which it may go on.
fn look_for_mask(state: &mut State) -> Result<(bool, Option<SimpleVob>)> {
    let is_accepting = state.is_stopped() || state.is_accepting()?;
    let mask = if state.is_stopped() {
        None
    } else {
        state.mask()?
    };
    Ok((is_accepting, mask))
}
