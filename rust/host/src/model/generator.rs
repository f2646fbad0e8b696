//! Generators as programs have them: one of the core, what it is charged with, and what constrains it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use pie_core::masks::TokenMask;
use pie_core::{Engine, ErrorCode, FinishReason, GeneratorId, RequestId, Sampler, Submission};
use pie_text::grammar::Matcher;
use pie_text::{ChatDecoder, ChatState, StopWatch};
use tokio::sync::oneshot;

use super::constraints::{Constraints, Marks, walk_bytes};
use super::conversation::Context;
use super::held_grammars::HeldCompiled;
use super::pass::Pass;
use super::stopping::{StopMark, Stopping};
use crate::Error;
use crate::budget::{Account, Charge, Purpose};
use crate::sync::lock;

/// The most copies of a token mask that the core and whoever drafts keep.
const MASK_COPIES: u64 = 3;

/// A generator of the core.
#[derive(Debug)]
pub(crate) struct Generator {
    pub(crate) context: Arc<Context>,
    pub(crate) id: GeneratorId,
    /// What it draws by.
    pub(crate) sampler: Sampler,
    /// For its options.
    charge: Mutex<Charge>,
    /// The step that was executed last, until its answer was taken or it was given up.
    step: Mutex<Option<RequestId>>,
    /// It may be charged with what was wanted of one step.
    has_own: AtomicBool,
    /// The program asked for a step of it, or for a run to its end.
    was_run: AtomicBool,
    /// What walks what it accepts. Whoever locks this and what follows locks this first.
    constraints: Mutex<Constraints>,
    /// The texts at which it stops.
    stopping: Mutex<Stopping>,
}

/// A run to the end, step by step, since matchers walk what each accepts, or stop texts are looked for in it: what
/// stood before it. It is kept or dropped.
#[derive(Debug)]
pub(crate) struct Collection {
    turns: ChatState,
    constraints: Marks,
    stopping: StopMark,
}

impl Generator {
    /// One that the core made to draw by `sampler`, charged with its options.
    pub(crate) fn new(
        context: Arc<Context>,
        id: GeneratorId,
        sampler: Sampler,
        charge: Charge,
    ) -> Self {
        Self {
            context,
            id,
            sampler,
            charge: Mutex::new(charge),
            step: Mutex::new(None),
            has_own: AtomicBool::new(false),
            was_run: AtomicBool::new(false),
            constraints: Mutex::default(),
            stopping: Mutex::default(),
        }
    }

    /// Runs `work` on the core and the generator of it.
    pub(crate) fn with_engine<T>(&self, work: impl FnOnce(&mut Engine, GeneratorId) -> T) -> T {
        let model = &self.context.model;
        model.with_engine(|engine| work(engine, self.id))
    }

    /// Charges it with the options that it has.
    ///
    /// # Errors
    /// `limit-engine-memory`, `generator-retired`.
    pub(crate) fn recharge(&self) -> Result<(), Error> {
        let n_bytes = self.with_engine(|engine, id| engine.option_bytes(id))?;
        lock(&self.charge).resize(n_bytes as u64)
    }

    /// Charges it with `n_bytes` more, until it is charged anew.
    ///
    /// # Errors
    /// `limit-engine-memory`.
    pub(crate) fn charge_more(&self, n_bytes: u64) -> Result<(), Error> {
        lock(&self.charge).grow(n_bytes)
    }

    /// Changes its options, which take `n_bytes` more at most: it is charged before, and a change that is refused
    /// leaves nothing.
    ///
    /// # Errors
    /// `limit-engine-memory`, and those of the change.
    pub(crate) fn change<T>(
        &self,
        n_bytes: u64,
        change: impl FnOnce(&mut Engine, GeneratorId) -> Result<T, Error>,
    ) -> Result<T, Error> {
        lock(&self.charge).grow(n_bytes)?;
        let changed = self.with_engine(change);
        self.recharge()?;
        changed
    }

    /// It has a token mask for all of its steps, or has none: beside one, no text is forced.
    pub(crate) fn note_mask(&self, has_mask: bool) {
        lock(&self.constraints).has_static_mask = has_mask;
    }

    /// Puts a token mask in place of the one that it was made with.
    ///
    /// # Errors
    /// `limit-engine-memory`; those of the core.
    pub(crate) fn set_mask(&self, mask: &[u32]) -> Result<(), Error> {
        let n_bytes = MASK_COPIES * size_of_val(mask) as u64;
        self.change(n_bytes, |engine, id| engine.set_token_mask(id, mask))?;
        self.note_mask(!mask.is_empty());
        Ok(())
    }

    /// The program runs it, or a call on it has failed.
    pub(crate) fn note_run(&self) {
        self.was_run.store(true, Ordering::Relaxed);
    }

    /// Whether the program has run it at all, or a call on it has failed.
    pub(crate) fn was_run(&self) -> bool {
        self.was_run.load(Ordering::Relaxed)
    }

    /// The open step is charged with what is wanted of it.
    pub(crate) fn note_own(&self) {
        self.has_own.store(true, Ordering::Relaxed);
    }

    /// A step was opened, which has what was wanted of the one before only where that one comes again.
    ///
    /// # Errors
    /// `generator-retired`.
    pub(crate) fn release_own(&self) -> Result<(), Error> {
        if self.has_own.swap(false, Ordering::Relaxed) {
            self.recharge()?;
        }
        Ok(())
    }

    /// Has a matcher walk what is generated, from the next step on.
    ///
    /// # Errors
    /// `limit-engine-memory`; those of the core.
    pub(crate) fn constrain(
        &self,
        matcher: &Matcher,
        compiled: &Arc<HeldCompiled>,
        account: &Account,
    ) -> Result<(), Error> {
        let charge = account.charge(Purpose::Options, walk_bytes(matcher))?;
        self.with_engine(|engine, id| engine.set_late_masks(id, true))?;
        lock(&self.constraints).add(matcher.clone(), compiled.clone(), charge);
        Ok(())
    }

    /// Whether the program gives a mask of its own in each step.
    ///
    /// # Errors
    /// Those of the core.
    pub(crate) fn ask_masks(&self, ask: bool) -> Result<(), Error> {
        let mut constraints = lock(&self.constraints);
        let late = ask || !constraints.is_empty();
        self.with_engine(|engine, id| engine.set_late_masks(id, late))?;
        constraints.program_asks = ask;
        Ok(())
    }

    /// Stops at the texts that it is made with, before it has run.
    pub(crate) fn stop_by(&self, stopping: Stopping) {
        *lock(&self.stopping) = stopping;
    }

    /// Stops at these texts in place of the template's stop tokens, and of those that it was given so before.
    ///
    /// # Errors
    /// `invalid-argument` for texts beyond the limits; `limit-engine-memory`; those of the core.
    pub(crate) fn set_stop_texts(
        &self,
        texts: Vec<String>,
        account: &Account,
    ) -> Result<(), Error> {
        self.with_engine(|engine, id| engine.check_changeable(id))?;
        lock(&self.stopping).set(self.context.model.chat(), texts, account)
    }

    /// Stops at these texts too.
    ///
    /// # Errors
    /// As [`Self::set_stop_texts`].
    pub(crate) fn add_stop_texts(
        &self,
        texts: Vec<String>,
        account: &Account,
    ) -> Result<(), Error> {
        self.with_engine(|engine, id| engine.check_changeable(id))?;
        lock(&self.stopping).add(self.context.model.chat(), texts, account)
    }

    /// Whether texts stand in place of the template's stop tokens.
    pub(crate) fn has_set_stop_texts(&self) -> bool {
        lock(&self.stopping).has_set()
    }

    /// What reads what it accepts for its stop texts; none where it has none.
    pub(crate) fn stop_watch(&self) -> Option<StopWatch> {
        lock(&self.stopping).watch()
    }

    /// A decoder of what it accepts from now on, which shows no stop text.
    pub(crate) fn decoder(&self, hides_thoughts: bool, hides_calls: bool) -> ChatDecoder {
        match self.stop_watch() {
            Some(watch) => ChatDecoder::stopping(watch, hides_thoughts, hides_calls),
            None => {
                let chat = self.context.model.chat().clone();
                ChatDecoder::hiding(chat, hides_thoughts, hides_calls)
            }
        }
    }

    /// Whether it runs to its end step by step, though no program has a part in them: matchers walk what it accepts, or
    /// stop texts are looked for in it.
    pub(crate) fn runs_by_steps(&self) -> bool {
        let constraints = lock(&self.constraints);
        let walks = !constraints.is_empty() && !constraints.program_asks;
        walks || !lock(&self.stopping).is_empty()
    }

    /// Opens the next step: its number, none after the end.
    ///
    /// # Errors
    /// Those of the core.
    pub(crate) fn open_step(&self) -> Result<Option<u32>, Error> {
        let opened = self.with_engine(Engine::next_step)?;
        self.release_own()?;
        Ok(opened)
    }

    /// Begins a collection, under a matcher of its own besides where there is one.
    ///
    /// # Errors
    /// Those of a run to the end, and of [`Self::constrain`]; nothing changes then.
    pub(crate) fn begin_collection(
        &self,
        document: Option<(&Matcher, &Arc<HeldCompiled>)>,
        account: &Account,
    ) -> Result<Collection, Error> {
        if lock(&self.constraints).program_asks {
            return Err(Error::new(
                ErrorCode::InvalidArgument,
                "the program gives a mask in each step of this generator, and it cannot run to its end by itself; step \
                 it, or ask for no masks",
            ));
        }
        let turns = self.context.begin_collection(self.id)?;
        let collection = Collection {
            turns,
            constraints: lock(&self.constraints).marks(),
            stopping: lock(&self.stopping).mark(),
        };
        if let Some((matcher, compiled)) = document
            && let Err(error) = self.constrain(matcher, compiled, account)
        {
            self.drop_collection(collection);
            return Err(error);
        }
        Ok(collection)
    }

    /// No more steps of a collection come.
    pub(crate) fn end_collection(&self) {
        self.with_engine(Engine::end_collection);
    }

    /// The result of a collection is taken.
    ///
    /// # Errors
    /// `context-released`.
    pub(crate) fn keep_collection(&self) -> Result<(), Error> {
        self.with_engine(Engine::keep_collection)
    }

    /// Gives a collection up, of which no step is under way: the context, the generator, its constraints and its stop
    /// texts are as they were before it.
    pub(crate) fn drop_collection(&self, collection: Collection) {
        lock(&self.constraints).return_to(collection.constraints);
        lock(&self.stopping).return_to(collection.stopping);
        self.context.drop_collection(self.id, collection.turns);
    }

    /// Submits one step, with its mask where matchers alone say what it is. Where they fail, the step is given up, and
    /// its receiver tells why.
    pub(crate) fn submit_step(&self) -> (Pass, oneshot::Receiver<Result<(), Error>>) {
        let submission = Submission::Step(self.id);
        let (pass, receiver) = Pass::submit(&self.context.model, submission);
        *lock(&self.step) = Some(pass.request());
        let Err(error) = self.give_own_mask(pass.request()) else {
            return (pass, receiver);
        };
        self.cancel(&pass);
        let (failed, told) = oneshot::channel();
        drop(failed.send(Err(error)));
        (pass, told)
    }

    /// Keeps everybody from making masks while this is held.
    #[cfg(test)]
    pub(super) fn hold_constraints(&self) -> std::sync::MutexGuard<'_, Constraints> {
        lock(&self.constraints)
    }

    /// Gives the mask of a step that was submitted, while it is computed. Where the program gives one of its own, it is
    /// kept until that is there.
    fn give_own_mask(&self, request: RequestId) -> Result<(), Error> {
        let mut constraints = lock(&self.constraints);
        if constraints.is_empty() {
            return Ok(());
        }
        let vocab_size = self.context.model.vocab_size();
        let stop = self.with_engine(|engine, id| engine.stop_tokens(id))?;
        let mask = constraints.mask(&stop, vocab_size)?;
        if constraints.program_asks {
            constraints.keep_mask(mask);
            return Ok(());
        }
        drop(constraints);
        let mask = TokenMask::new(&mask, vocab_size);
        self.with_engine(|engine, _| engine.give_step_mask(request, mask))
    }

    /// Gives the mask of the program for the step that runs.
    ///
    /// # Errors
    /// `step-pending` where none runs; those of [`Engine::give_step_mask`].
    pub(crate) fn give_mask(&self, mask: Vec<u32>) -> Result<(), Error> {
        let Some(request) = *lock(&self.step) else {
            return Err(Error::new(
                ErrorCode::StepPending,
                "a mask is given and no step runs: none was executed, or its answer was taken; give a mask once the \
                 step was executed, before its answer is taken",
            ));
        };
        let vocab_size = self.context.model.vocab_size();
        let mask = lock(&self.constraints).with_program(mask, vocab_size)?;
        // Masks are long: they are read apart from the engine.
        let mask = TokenMask::new(&mask, vocab_size);
        self.with_engine(|engine, _| engine.give_step_mask(request, mask))
    }

    /// Takes the answer of a step, which the constraints walk. Text that they force is accepted with it, and where
    /// nothing may follow, the generation ends. So it does behind the token that completes a stop text.
    ///
    /// # Errors
    /// Those of the pass, `limit-engine-memory`; `invalid-grammar`. The context, the generator and its constraints are
    /// as they were before the step then, which comes again.
    pub(crate) fn take_step(&self, pass: &Pass) -> Result<pie_core::Output, Error> {
        self.forget_step(pass);
        let mut constraints = lock(&self.constraints);
        if constraints.is_empty() {
            let output = self.context.take_generated(pass)?;
            return self.stop_at_text(output);
        }
        let request = pass.request();
        let drawn = self.with_engine(|engine, _| {
            let (tokens, finish) = engine.drawn(request)?;
            Some((tokens.to_vec(), finish))
        });
        // Where nothing was drawn, its error tells why.
        let Some((drawn, finish)) = drawn else {
            return self.context.take_generated(pass);
        };
        let walked = self.walk(request, &drawn, finish, &mut constraints);
        let taken = walked.and_then(|forced| {
            let output = self.context.take_with_room(pass, forced.len())?;
            Ok((output, forced))
        });
        match taken {
            Ok((output, forced)) => {
                let output = self.end_step(output, &forced, &constraints)?;
                self.stop_at_text(output)
            }
            Err(error) => {
                pass.cancel();
                constraints.undo()?;
                Err(error)
            }
        }
    }

    /// Gives a step or a run up: the context is as it was before.
    pub(crate) fn cancel(&self, pass: &Pass) {
        self.forget_step(pass);
        pass.cancel();
    }

    fn forget_step(&self, pass: &Pass) {
        lock(&self.step).take_if(|request| *request == pass.request());
    }

    /// Has the constraints walk what a step drew, and what they force behind it: returns so much of that as is kept.
    /// None is where it may not enter, as beyond a token budget: the steps behind draw the text token by token then, as
    /// long as they may.
    fn walk(
        &self,
        request: RequestId,
        drawn: &[u32],
        finish: Option<FinishReason>,
        constraints: &mut Constraints,
    ) -> Result<Vec<u32>, Error> {
        constraints.accept(drawn)?;
        // A step that drew nothing is one that can be replaced.
        if drawn.is_empty() || finish.is_some() || constraints.is_terminated() {
            return Ok(Vec::new());
        }
        let mut forced = constraints.forced()?;
        let n_kept = self.with_engine(|engine, _| engine.n_to_follow(request, &forced));
        forced.truncate(n_kept);
        constraints.go_on(&forced)?;
        Ok(forced)
    }

    /// A step was taken, behind which this text is forced.
    fn end_step(
        &self,
        mut output: pie_core::Output,
        forced: &[u32],
        constraints: &Constraints,
    ) -> Result<pie_core::Output, Error> {
        if output.tokens.is_empty() {
            return Ok(output);
        }
        if !forced.is_empty() {
            let all = [output.tokens.as_slice(), forced].concat();
            output.tokens = self.context.accept(self.id, &all)?;
            output.finish = self.with_engine(|engine, id| engine.finish_reason_within(id))?;
        }
        // A text that is whole is, whether there was room for more or not.
        if output.finish != Some(FinishReason::Stop) && constraints.is_terminated() {
            self.end_by_constraint()?;
            output.finish = Some(FinishReason::Constraint);
        }
        Ok(output)
    }

    /// A step was taken: where what it accepted completes a stop text, the generation ends behind that token.
    fn stop_at_text(&self, mut output: pie_core::Output) -> Result<pie_core::Output, Error> {
        let Some(n_kept) = lock(&self.stopping).take(&output.tokens) else {
            return Ok(output);
        };
        let n_cut = output.tokens.len() - n_kept;
        if n_cut > 0 {
            output.tokens = self.context.accept(self.id, &output.tokens[..n_kept])?;
            // Drafts beyond it were not accepted.
            let most = u32::try_from(n_kept).unwrap_or(u32::MAX);
            let n_accepted = &mut output.speculation.n_accepted;
            *n_accepted = most.min(*n_accepted);
        }
        self.with_engine(|engine, id| engine.end_by_stop(id, n_cut))?;
        output.finish = Some(FinishReason::Stop);
        Ok(output)
    }

    fn end_by_constraint(&self) -> Result<(), Error> {
        self.with_engine(|engine, id| engine.end_by_constraint(id))
    }

    /// Puts tokens in place of those that the last step accepted, for the constraints and the stop texts too. Returns
    /// those that are kept.
    ///
    /// # Errors
    /// Those of the core; `grammar-mismatch`, `invalid-grammar`; `limit-engine-memory`. Nothing changes then.
    pub(crate) fn accept(&self, tokens: &[u32]) -> Result<Vec<u32>, Error> {
        let mut constraints = lock(&self.constraints);
        let mut stopping = lock(&self.stopping);
        if constraints.is_empty() && stopping.is_empty() {
            return self.context.accept(self.id, tokens);
        }
        // The matchers come first, apart from the lock of the core: they take long, and may refuse.
        let n_kept = self.with_engine(|engine, id| engine.n_acceptable(id, tokens))?;
        let tokens = tokens.get(..n_kept).unwrap_or(tokens);
        let reread = stopping.reread(tokens);
        let stops = reread.n_kept.is_some();
        let n_kept = reread.n_kept.unwrap_or(n_kept);
        let tokens = tokens.get(..n_kept).unwrap_or(tokens);
        let replacement = constraints.replaced(tokens)?;
        let kept = self.context.accept(self.id, tokens)?;
        constraints.put(replacement);
        stopping.put(reread);
        if stops {
            self.with_engine(|engine, id| engine.end_by_stop(id, 0))?;
        } else if constraints.is_terminated() {
            self.end_by_constraint()?;
        }
        Ok(kept)
    }
}

impl Drop for Generator {
    fn drop(&mut self) {
        self.with_engine(Engine::drop_generator);
    }
}
