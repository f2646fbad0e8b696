//! The stop texts of a generator.
//!
//! A text may begin in one step and end in another, so every token that is accepted is read. The steps before the last
//! are final; what the last one accepted may be replaced, and is then read anew.

use std::sync::Arc;

use pie_text::{Chat, StopTexts, StopWatch};

use crate::Error;
use crate::budget::{Account, Charge, Purpose};
use crate::errors::text_error;

/// The stop texts of one generator, and what it accepted as far as they go by it.
#[derive(Debug, Default)]
pub(crate) struct Stopping {
    /// Those in place of the template's stop tokens.
    set: Vec<String>,
    /// Those beside others.
    added: Vec<String>,
    reading: Option<Reading>,
}

/// Watches over what is accepted. Where there are no stop texts nobody reads.
#[derive(Debug)]
struct Reading {
    /// Behind all that was accepted.
    watch: StopWatch,
    /// Behind the step before the last one.
    before: StopWatch,
    /// For the texts.
    _charge: Charge,
}

/// Where a generator stood, as its stop texts go by it.
#[derive(Debug)]
pub(crate) struct StopMark(Option<(StopWatch, StopWatch)>);

/// What was read in place of the last step: see [`Stopping::put`].
#[derive(Debug)]
pub(crate) struct Reread {
    watch: Option<StopWatch>,
    /// The tokens up to the one that completes a stop text; none: no token does.
    pub(crate) n_kept: Option<usize>,
}

impl Stopping {
    /// Those that a generator is made with, beside others.
    ///
    /// # Errors
    /// `invalid-argument`, `limit-engine-memory`.
    pub(crate) fn of(
        chat: &Arc<Chat>,
        texts: Vec<String>,
        account: &Account,
    ) -> Result<Self, Error> {
        let mut stopping = Self::default();
        stopping.add(chat, texts, account)?;
        Ok(stopping)
    }

    /// Puts texts in place of those that were put so before.
    ///
    /// # Errors
    /// `invalid-argument`, `limit-engine-memory`. Nothing changes then.
    pub(crate) fn set(
        &mut self,
        chat: &Arc<Chat>,
        texts: Vec<String>,
        account: &Account,
    ) -> Result<(), Error> {
        self.look_for(chat, &[texts.as_slice(), &self.added].concat(), account)?;
        self.set = texts;
        Ok(())
    }

    /// Adds texts.
    ///
    /// # Errors
    /// `invalid-argument`, `limit-engine-memory`. Nothing changes then.
    pub(crate) fn add(
        &mut self,
        chat: &Arc<Chat>,
        texts: Vec<String>,
        account: &Account,
    ) -> Result<(), Error> {
        let added = [self.added.as_slice(), &texts].concat();
        self.look_for(chat, &[self.set.as_slice(), &added].concat(), account)?;
        self.added = added;
        Ok(())
    }

    /// Whether texts stand in place of the template's stop tokens.
    pub(crate) fn has_set(&self) -> bool {
        !self.set.is_empty()
    }

    /// Whether there are any.
    pub(crate) fn is_empty(&self) -> bool {
        self.reading.is_none()
    }

    /// The watch behind all that was accepted; none where there are no stop texts.
    pub(crate) fn watch(&self) -> Option<StopWatch> {
        self.reading.as_ref().map(|reading| reading.watch.clone())
    }

    /// A step accepted these tokens. How many go up to the end of a stop text; none: no stop text ended.
    pub(crate) fn take(&mut self, tokens: &[u32]) -> Option<usize> {
        let reading = self.reading.as_mut()?;
        reading.before = reading.watch.clone();
        reading.watch.take_until(tokens)
    }

    /// Reads tokens in place of those that the last step accepted. Nothing changes before [`Stopping::put`].
    pub(crate) fn reread(&self, tokens: &[u32]) -> Reread {
        let mut watch = self.reading.as_ref().map(|reading| reading.before.clone());
        let n_kept = watch.as_mut().and_then(|watch| watch.take_until(tokens));
        Reread { watch, n_kept }
    }

    /// Other tokens stand in place of those that the last step accepted.
    pub(crate) fn put(&mut self, reread: Reread) {
        if let Some((reading, watch)) = self.reading.as_mut().zip(reread.watch) {
            reading.watch = watch;
        }
    }

    /// Where it stands, for [`Stopping::return_to`].
    pub(crate) fn mark(&self) -> StopMark {
        let reading = self.reading.as_ref();
        StopMark(reading.map(|it| (it.watch.clone(), it.before.clone())))
    }

    /// Takes back what was read since. The texts are the same.
    pub(crate) fn return_to(&mut self, mark: StopMark) {
        if let Some((reading, (watch, before))) = self.reading.as_mut().zip(mark.0) {
            (reading.watch, reading.before) = (watch, before);
        }
    }

    /// Looks for all of these texts from here on.
    fn look_for(
        &mut self,
        chat: &Arc<Chat>,
        texts: &[String],
        account: &Account,
    ) -> Result<(), Error> {
        let texts = StopTexts::new(texts).map_err(text_error)?;
        if texts.is_empty() {
            self.reading = None;
            return Ok(());
        }
        let fresh = || StopWatch::new(chat.clone(), texts.clone());
        let (watch, before) = match &self.reading {
            Some(reading) => (
                reading.watch.with_texts(texts.clone()),
                reading.before.with_texts(texts.clone()),
            ),
            None => (fresh(), fresh()),
        };
        let n_bytes = watch.n_bytes() + before.n_bytes() + texts.n_bytes();
        let charge = account.charge(Purpose::Options, n_bytes as u64)?;
        self.reading = Some(Reading {
            watch,
            before,
            _charge: charge,
        });
        Ok(())
    }
}
