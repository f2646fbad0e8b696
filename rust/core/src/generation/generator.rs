//! The state machine of a generator.

use std::sync::Arc;

use super::ahead_habit::AheadHabit;
use super::{
    Drafter, Drafting, FinishReason, Next, OwnSeed, RowProbe, Standing, StepOptions, StopSet,
    Template,
};
use crate::batch::{Adapter, Capabilities};
use crate::errors::{Error, ErrorCode, Result};
use crate::ids::{ContextId, ProcessId};
use crate::sampling::{Params, Probe};

/// Where the current step of a generator stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StepState {
    /// No step is open.
    Closed,
    /// Opened, and not yet run.
    Opened,
    /// A pass runs: a step, or a run to the end. Or a collection has ended that nobody has taken.
    Running,
    /// It was run, and cancelled or failed: it is opened again unchanged.
    Undone,
}

/// What retired a generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retirement {
    /// A newer generator of its context.
    Newer,
    /// A truncation of its context, or the release of pages of it.
    Truncation,
    /// The release of its context.
    Release,
}

impl Retirement {
    /// What it was, and what to do about it.
    const fn told(self) -> &'static str {
        match self {
            Self::Newer => {
                "by a newer one on its context; use the newest, or make another one. To generate several at once, fork \
                 the context for each of them"
            }
            Self::Truncation => {
                "by a truncation of its context; make another one, which goes on from what is left"
            }
            Self::Release => {
                "by the release of its context; make another one on a context that is kept. Where the end of a block \
                 released the context (`using`, `with`, in Rust its scope), await the result before that end"
            }
        }
    }
}

/// A generator. It belongs to a context, and draws with one method and one seed.
#[derive(Debug)]
pub(crate) struct Generator {
    pub(crate) process: ProcessId,
    pub(crate) context: ContextId,
    params: Params,
    pub(crate) seed: OwnSeed,
    /// The token mask of each of its steps may come late.
    masks_late: bool,
    /// The tokens that may be drawn in every step, as run lengths; none: any.
    pub(crate) mask: Option<Arc<[u32]>>,
    /// What is read of every step.
    pub(crate) probes: Option<Arc<[RowProbe]>>,
    /// Makes drafts for it.
    pub(crate) drafter: Option<Box<Drafter>>,
    /// Tokens that the program thinks it will become.
    pub(crate) horizon: Option<u32>,
    /// Each of its steps bids anew for pages; if not, what the program bade for one holds for all that follow.
    pub(crate) rebids: bool,
    pub(crate) max_tokens: Option<u32>,
    pub(crate) stop: StopSet,
    pub(crate) adapter: Adapter,
    pub(crate) state: StepState,
    /// What the program wants of the step that is open, or that was undone.
    pub(crate) step: StepOptions,
    /// The last step drew nothing, at the wish of the program, which has not said what follows.
    lacks_tokens: bool,
    pub(crate) retired: Option<Retirement>,
    /// The program dropped it. It ends when its pass is over.
    pub(crate) dropped: bool,
    /// Its context follows that of another model.
    pub(crate) drafts: bool,
    habit: AheadHabit,
    n_accepted: u32,
    n_steps: u32,
    finish: Option<FinishReason>,
}

/// Where a generator stands, apart from most of its options: what a collection brings it back to.
#[derive(Debug)]
pub(crate) struct Mark {
    state: StepState,
    step: StepOptions,
    masks_late: bool,
    seed: OwnSeed,
    n_accepted: u32,
    n_steps: u32,
    finish: Option<FinishReason>,
}

impl Mark {
    /// Tokens that it had accepted.
    pub(crate) const fn n_accepted(&self) -> u32 {
        self.n_accepted
    }
}

impl Generator {
    pub(crate) fn new(
        process: ProcessId,
        context: ContextId,
        params: Params,
        stop: StopSet,
    ) -> Self {
        Self {
            process,
            context,
            params,
            seed: OwnSeed::default(),
            masks_late: false,
            mask: None,
            probes: None,
            drafter: None,
            horizon: None,
            rebids: true,
            max_tokens: None,
            stop,
            adapter: Adapter {
                id: 0,
                version: 0,
                zo_seed: None,
            },
            state: StepState::Closed,
            step: StepOptions::default(),
            lacks_tokens: false,
            retired: None,
            dropped: false,
            drafts: false,
            habit: AheadHabit::default(),
            n_accepted: 0,
            n_steps: 0,
            finish: None,
        }
    }

    pub(crate) const fn n_accepted(&self) -> u32 {
        self.n_accepted
    }

    /// Why it has ended, by what it accepted, its cap, and the room in its context. None: it has not.
    pub(crate) fn end(&self, length: u32, max_context: u32) -> Option<FinishReason> {
        let full =
            length >= max_context || self.max_tokens.is_some_and(|cap| self.n_accepted >= cap);
        self.finish.or(full.then_some(FinishReason::Length))
    }

    /// Nothing may follow what it accepted, whether there was room for more or not.
    pub(crate) fn end_by_constraint(&mut self) {
        if self.finish != Some(FinishReason::Stop) {
            self.finish = Some(FinishReason::Constraint);
        }
    }

    /// What it accepted ends it as a stop token does, whether there was room for more or not.
    pub(crate) const fn end_by_stop(&mut self) {
        self.finish = Some(FinishReason::Stop);
    }

    /// It can no longer be used. One that had reached its cap has ended.
    pub(crate) fn retire(&mut self, by: Retirement) {
        self.finish = self.end(0, u32::MAX);
        self.retired = Some(by);
    }

    /// Why it ended, as the program sees it: a generator that had not ended when it was retired is closed.
    pub(crate) fn finish_reason(&self, length: u32, max_context: u32) -> Option<FinishReason> {
        if self.retired.is_some() {
            self.finish.or(Some(FinishReason::Closed))
        } else {
            self.end(length, max_context)
        }
    }

    /// What a pass draws by: as it drew before, or else by the given seed, or by a derived one. Nobody looks at what
    /// the steps of a run read.
    pub(crate) fn draws_by(&self, one_step: bool, derived: impl FnOnce() -> u64) -> Template {
        Template {
            params: self.params,
            seed: self.seed.known().unwrap_or_else(derived),
            mask: self.mask.clone(),
            masks_late: self.masks_late,
            probes: self.probes.clone().filter(|_| one_step),
        }
    }

    /// What the next step draws by if it is as every step; none before the first one succeeded.
    pub(crate) fn next_template(&self) -> Option<Template> {
        let seed = self.seed.known().filter(|_| self.seed.is_settled())?;
        Some(self.draws_by(true, || seed))
    }

    /// What makes drafts for it, unless its program is asked for the mask of each step.
    pub(crate) fn drafter(&mut self) -> Option<&mut Drafter> {
        self.drafter.as_deref_mut().filter(|_| !self.masks_late)
    }

    /// Whether drafts may be made for it.
    pub(crate) const fn has_drafter(&self) -> bool {
        self.drafter.is_some() && !self.masks_late
    }

    /// Whether drafts may be made for its token after the next one.
    pub(crate) fn may_draft(&self) -> bool {
        self.has_drafter()
            && self
                .drafter
                .as_ref()
                .is_some_and(|drafter| !drafter.rests())
    }

    /// Bytes of what its program gave it, of what its probes read by the rows of `driver`, and of what makes its
    /// drafts.
    pub(crate) fn held_bytes(&self, driver: &Capabilities) -> usize {
        let n_masks = self.drafter.as_ref().map_or(1, |it| it.n_masks());
        let mask = self.mask.as_ref().map_or(0, |mask| size_of_val(&**mask)) * n_masks;
        let every_step = self.probes.as_deref().unwrap_or_default();
        let every_step = every_step
            .iter()
            .map(|(_, probe)| probe_bytes(probe, true, driver));
        let own = self.step.probes.iter();
        let own = own.map(|(_, probe)| probe_bytes(probe, false, driver));
        let probes: usize = every_step.chain(own).sum();
        let drafter = self.drafter.as_ref().map_or(0, |it| it.n_bytes());
        let drafts = self.step.drafts.capacity() * size_of::<u32>();
        self.stop.held_bytes() + mask + probes + drafter + drafts
    }

    /// Bytes of whatever makes its drafts so, and of the copies of its mask that it needs.
    pub(crate) fn drafting_bytes(&self, drafting: Drafting) -> usize {
        let mask = self.mask.as_ref().map_or(0, |mask| size_of_val(&**mask));
        let bytes = |it: Drafter| it.n_bytes() + (it.n_masks() - 1) * mask;
        drafting.drafter().map_or(0, bytes)
    }

    /// Whether the token mask of each of its steps may come late.
    pub(crate) const fn masks_late(&self) -> bool {
        self.masks_late
    }

    /// The same, from the next step on. What ran ahead of it then draws by another template.
    pub(crate) const fn set_masks_late(&mut self, masks_late: bool) {
        self.masks_late = masks_late;
    }

    /// What comes after the token that is the `n`-th which a pass draws from where it stands.
    pub(super) fn judge(&self, token: u32, n: u32, standing: &Standing<'_>) -> Next {
        if self.stop.contains(token, standing.end_tokens) {
            return Next::Done(FinishReason::Stop);
        }
        self.after_any(n, standing)
    }

    /// The same, whatever the token is that does not stop it.
    pub(crate) fn after_any(&self, n: u32, standing: &Standing<'_>) -> Next {
        let n_drawn = standing.n_drawn + n;
        let capped = self
            .max_tokens
            .is_some_and(|cap| self.n_accepted - standing.n_replaced + n_drawn >= cap);
        if capped || standing.length + n >= standing.max_context {
            return Next::Done(FinishReason::Length);
        }
        match standing.budget {
            Some(budget) if u64::from(n_drawn) >= budget => Next::OverBudget,
            _ => Next::Go,
        }
    }

    /// What ran ahead was of no use.
    pub(crate) fn ran_in_vain(&mut self) {
        self.habit.ran_in_vain();
    }

    /// What ran ahead is what its program asks for.
    pub(crate) const fn ran_of_use(&mut self) {
        self.habit.ran_of_use();
    }

    /// Whether its next token may be computed before its program asks.
    pub(crate) const fn runs_ahead(&self) -> bool {
        !self.habit.rests() && self.retired.is_none() && !self.dropped
    }

    /// Whether a program may use it. One that had ended before it was retired just stays at its end.
    pub(crate) fn check_usable(&self) -> Result<()> {
        if let Some(by) = self.retired
            && self.finish.is_none()
        {
            return Err(Error::new(
                ErrorCode::GeneratorRetired,
                format!(
                    "this generator was retired after {} tokens, {}",
                    self.n_accepted,
                    by.told()
                ),
            ));
        }
        Ok(())
    }

    /// Whether its options may change. They may not while a pass is under way, since its tokens would then depend on
    /// timing.
    pub(crate) fn check_idle(&self) -> Result<()> {
        self.check_usable()?;
        if self.state == StepState::Running {
            return Err(Error::new(
                ErrorCode::ContextBusy,
                "a step of this generator is under way; take or drop its result first. To generate several at once, \
                 fork the context for each of them before the first one begins",
            ));
        }
        Ok(())
    }

    /// Draws by this seed, unless the sampler has one of its own.
    pub(crate) fn set_seed(&mut self, seed: u64) -> Result<()> {
        self.check_unused(&format!("seed {seed}"))?;
        self.seed.give(seed);
        Ok(())
    }

    /// Draws only what this mask allows.
    pub(crate) fn set_mask(&mut self, mask: Option<Arc<[u32]>>) -> Result<()> {
        self.check_unused("a token mask")?;
        self.mask = mask;
        Ok(())
    }

    /// Has its drafts made so.
    pub(crate) fn set_drafting(&mut self, drafting: Drafting) -> Result<()> {
        self.check_unused("who drafts")?;
        self.drafter = drafting.drafter().map(Box::new);
        Ok(())
    }

    /// Nothing was opened yet that draws by what it was made with.
    fn check_unused(&self, what: &str) -> Result<()> {
        self.check_idle()?;
        if self.state == StepState::Closed && !self.seed.is_settled() {
            return Ok(());
        }
        Err(Error::new(
            ErrorCode::InvalidArgument,
            format!(
                "{what} comes after the first step was opened; give it before, or make another generator"
            ),
        ))
    }

    /// Opens the next step: its number, counted from 0, or none after the end. One that was undone has what was wanted
    /// of it before.
    pub(crate) fn open(&mut self, length: u32, max_context: u32) -> Result<Option<u32>> {
        self.check_idle()?;
        self.check_tokens_known()?;
        if self.state == StepState::Opened {
            return Err(self.step_pending(
                "was opened and never executed; execute it before opening the next one",
            ));
        }
        if self.state == StepState::Closed {
            if let Some(reason) = self.end(length, max_context) {
                // The program saw the end: what happens to the context later does not change it.
                self.finish = Some(reason);
                return Ok(None);
            }
            self.step = StepOptions::default();
        }
        self.state = StepState::Opened;
        Ok(Some(self.n_steps))
    }

    /// What is wanted of the step that is open, to be changed.
    pub(crate) fn open_step(&mut self) -> Result<&mut StepOptions> {
        self.check_idle()?;
        if self.state != StepState::Opened {
            return Err(
                self.step_pending("is not open; open it before you say what is wanted of it")
            );
        }
        Ok(&mut self.step)
    }

    /// The program said what follows the last step, if it had to.
    fn check_tokens_known(&self) -> Result<()> {
        if !self.lacks_tokens {
            return Ok(());
        }
        let message = format!(
            "step {} of this generator drew nothing, since its sampler was cleared; say which tokens follow it by \
             accept, which may be none, right after the step, or make another generator",
            self.n_steps.saturating_sub(1)
        );
        Err(Error::new(ErrorCode::StepPending, message))
    }

    /// Checks that a pass may be submitted: of one step, or to the end.
    pub(crate) fn check_step(&self, one_step: bool) -> Result<()> {
        self.check_idle()?;
        self.check_tokens_known()?;
        match (one_step, self.state) {
            (true, StepState::Closed) => {
                Err(self.step_pending("is not open; open it before executing it"))
            }
            (false, StepState::Opened) => Err(self.step_pending(
                "was opened and never executed; execute it before running to the end",
            )),
            _ => Ok(()),
        }
    }

    /// The pass was cancelled or failed: restores the state before it.
    pub(crate) fn undo(&mut self, one_step: bool) {
        if self.state == StepState::Running {
            self.state = if one_step {
                StepState::Undone
            } else {
                StepState::Closed
            };
        }
        if let Some(drafter) = &mut self.drafter {
            drafter.undo();
        }
    }

    /// The first pass that drew succeeded: whatever is drawn later, it is by the same seed.
    pub(crate) fn settle_seed(&mut self) {
        self.seed.settle();
    }

    /// Folds the result of a pass in. `drew` tells whether anything was to be drawn.
    pub(crate) fn fold(&mut self, n_drawn: u32, finish: Option<FinishReason>, drew: bool) {
        self.n_accepted += n_drawn;
        self.n_steps += 1;
        self.habit.step();
        self.finish = self.finish.or(finish);
        self.state = StepState::Closed;
        self.lacks_tokens = !drew;
        if let Some(drafter) = &mut self.drafter {
            drafter.keep();
        }
    }

    /// In place of the last `n_before` tokens that it accepted stand `n` others, with what comes of them.
    pub(crate) fn refold(&mut self, n_before: u32, n: u32, finish: Option<FinishReason>) {
        self.n_accepted = self.n_accepted - n_before + n;
        self.finish = finish;
        self.lacks_tokens = false;
        if let Some(drafter) = &mut self.drafter {
            drafter.forget();
        }
    }

    /// A collection begins: a step that was undone is none of it, as it is none of a run.
    pub(crate) fn begin_collection(&mut self) -> Mark {
        Mark {
            state: std::mem::replace(&mut self.state, StepState::Closed),
            step: std::mem::take(&mut self.step),
            masks_late: self.masks_late,
            seed: self.seed,
            n_accepted: self.n_accepted,
            n_steps: self.n_steps,
            finish: self.finish,
        }
    }

    /// The collection makes no more steps: nothing is done with the generator until it was taken or given up.
    pub(crate) const fn rest(&mut self) {
        self.state = StepState::Running;
    }

    /// The collection was taken.
    pub(crate) const fn keep(&mut self) {
        self.state = StepState::Closed;
    }

    /// The collection was given up.
    pub(crate) fn return_to(&mut self, mark: Mark) {
        self.state = mark.state;
        self.step = mark.step;
        self.masks_late = mark.masks_late;
        self.seed = mark.seed;
        self.n_accepted = mark.n_accepted;
        self.n_steps = mark.n_steps;
        self.finish = mark.finish;
        if let Some(drafter) = &mut self.drafter {
            drafter.undo();
        }
    }

    fn step_pending(&self, what: &str) -> Error {
        let message = format!("step {} of this generator {what}", self.n_steps);
        Error::with_values(
            ErrorCode::StepPending,
            message,
            &[("step", u64::from(self.n_steps))],
        )
    }
}

/// Bytes of a probe of a generator, of every step or of one, and of what it reads. That of every step may be read ahead
/// while what it read before waits.
pub(crate) fn probe_bytes(probe: &Probe, every_step: bool, driver: &Capabilities) -> usize {
    let n_read = probe.n_bytes(driver.vocab_size, driver.embeddings);
    size_of::<RowProbe>() + probe.list_bytes() + n_read * (1 + usize::from(every_step))
}
