//! A generator of the engine, as its values in the program share it.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io::Write;
use std::rc::Rc;

use super::steering::Steering;
use crate::bindings::pie::core::generation as raw;
use crate::bindings::pie::core::types::Error;
use crate::constrain::Constrain;
use crate::handle::{Owner, SampleHandle};
use crate::kept::Keeper;
use crate::output::Slots;
use crate::sample::Seeded;
use crate::shared::Shared;
use crate::{ErrorCode, Model, Result, errors};

thread_local! {
    /// Whether the program was told of a generation that it collects twice.
    static IS_COLLECTED_TOLD: Cell<bool> = const { Cell::new(false) };
}

/// A generator of the engine with the context that it works on, which lives as long. Dropped in this order.
pub(super) struct Machine {
    /// The generator, or why the engine refused to make it: then every use of it returns that.
    made: Result<raw::Generator>,
    pub(super) context: Rc<Shared>,
    pub(super) model: Model,
    pub(super) keeper: Keeper,
    pub(super) steering: RefCell<Steering>,
    /// Whether the engine proposes tokens.
    pub(super) is_drafted: Cell<bool>,
    /// The owner of the handles of probes in every step, and how many there are.
    every_step: Owner,
    n_every_step: Cell<u32>,
    open: Cell<OpenStep>,
    /// The schema under which the last `collect_json` ran.
    pub(super) document: RefCell<Option<String>>,
    /// Whether a collector or a stream of texts was asked for.
    is_collected: Cell<bool>,
}

/// The step that was opened last.
#[derive(Clone, Copy, Debug)]
struct OpenStep {
    index: Option<u32>,
    /// The owner of the handles of its own probes.
    probes: Owner,
    sampler: Option<SampleHandle>,
}

impl OpenStep {
    fn new(index: Option<u32>) -> Self {
        Self {
            index,
            probes: Owner::new(),
            sampler: Some(SampleHandle::new(Owner::new(), 0)),
        }
    }
}

impl Machine {
    pub(super) fn new(context: Rc<Shared>, model: Model, sampler: Seeded) -> Self {
        let options = raw::Options {
            max_tokens: None,
            stop: Vec::new(),
            stop_texts: Vec::new(),
            seed: None,
            auto_flush: true,
            ignore_eos: false,
            logit_mask: Vec::new(),
            drafting: raw::Drafting::None,
        };
        let keeper = Keeper::new();
        let made = raw::Generator::create(&context.raw, sampler.into(), &options)
            .map_err(String::from)
            .inspect_err(|error| keeper.keep(error.clone()));
        Self {
            made,
            context,
            model,
            keeper,
            steering: RefCell::default(),
            is_drafted: Cell::new(false),
            every_step: Owner::new(),
            n_every_step: Cell::new(0),
            open: Cell::new(OpenStep::new(None)),
            document: RefCell::default(),
            is_collected: Cell::new(false),
        }
    }

    /// The generator in the engine, unless an error waits to be met.
    pub(super) fn generator(&self) -> Result<&raw::Generator> {
        self.context.keeper.meet()?;
        self.keeper.meet()?;
        self.made.as_ref().map_err(Clone::clone)
    }

    /// Tells, once, of a collector that comes when another one has given all that there is.
    pub(super) fn note_collected(&self, call: &str) {
        if !self.is_collected.replace(true) {
            return;
        }
        let made = self.made.as_ref().ok();
        let reason = made.and_then(|made| made.finish_reason().ok().flatten());
        // One that was retired is an error of the collector itself.
        let has_ended = reason.is_some_and(|reason| !matches!(reason, raw::FinishReason::Closed));
        if has_ended && !IS_COLLECTED_TOLD.replace(true) {
            // Where stderr is closed there is nobody to tell.
            let _ = writeln!(
                std::io::stderr(),
                "warning: the generation has ended and was collected already, so that {call} gives nothing; keep what \
                 the first call gave, or begin another generation by ctx.generate(...)"
            );
        }
    }

    /// The answer of a call that has no `Result`; the default where it fails, with the error kept.
    pub(super) fn ask<T: Default>(
        &self,
        call: impl FnOnce(&raw::Generator) -> std::result::Result<T, Error>,
    ) -> T {
        let made = self.made.as_ref().map_err(Clone::clone);
        self.keeper.value_of(made.and_then(|made| Ok(call(made)?)))
    }

    /// Asks something of the generator; keeps the error. Whether it worked.
    pub(super) fn set(
        &self,
        setting: impl FnOnce(&raw::Generator) -> std::result::Result<(), Error>,
    ) -> bool {
        self.ask(|made| setting(made).map(|()| true))
    }

    /// Adds a constraint; keeps the error. Of one by a grammar the engine walks a copy of its own.
    pub(super) fn constrain(&self, constraint: Box<dyn Constrain>) {
        let Some(matcher) = constraint.matcher() else {
            self.steering.borrow_mut().constrain(constraint);
            self.set(|made| made.ask_masks(true));
            return;
        };
        match matcher.raw() {
            Ok(raw) => {
                self.set(|made| made.constrain(raw));
            }
            Err(error) => self.keeper.keep(error),
        }
    }

    /// Opens the next step; its number, none after the end. One that was cancelled keeps its probes.
    pub(super) fn open(&self) -> Result<Option<u32>> {
        let index = self.generator()?.next_step()?;
        if self.open.get().index != index {
            self.open.set(OpenStep::new(index));
        }
        Ok(index)
    }

    /// Whether a step is the one that was opened last: the engine knows no other.
    ///
    /// # Errors
    /// `step-pending`.
    pub(super) fn check_newest(&self, index: u32) -> Result<()> {
        match self.open.get().index {
            Some(newest) if newest != index => Err(errors::text(
                ErrorCode::StepPending,
                format!(
                    "step {index} of this generator is over, since step {newest} was opened; use the newest step"
                ),
            )),
            _ => Ok(()),
        }
    }

    /// Runs the step that is open. Constraints are asked while the device works. Where one fails, or the speculator
    /// does, the step is given up, and opened again later.
    pub(super) fn start(&self, index: u32) -> Result<raw::FutureOutput> {
        let generator = self.generator()?;
        self.check_newest(index)?;
        let mut steering = self.steering.borrow_mut();
        if let Err(error) = steering.propose(generator) {
            drop(generator.step());
            return Err(error);
        }
        let future = generator.step();
        if steering.has_masks() {
            let vocab_size = || self.model.tokenizer().vocab_size();
            generator.give_mask(&steering.mask(vocab_size)?)?;
        }
        Ok(future)
    }

    /// Has the open step draw nothing; keeps the error.
    pub(super) fn clear_sampler(&self, index: u32) {
        let newest = self
            .keeper
            .value_of(self.check_newest(index).map(|()| true));
        if newest && self.ask(|made| made.clear_sampler().map(|()| true)) {
            self.open.set(OpenStep {
                sampler: None,
                ..self.open.get()
            });
        }
    }

    /// Reads a row in the open step: the owner of the handle, and its index. Where it fails the error is kept, and the
    /// handle is that of nothing.
    pub(super) fn probe(&self, step: u32, index: u32, probe: &raw::Probe) -> (Owner, u32) {
        let newest = self.keeper.value_of(self.check_newest(step).map(|()| true));
        let slot = match newest {
            true => self.ask(|made| made.probe(index, probe).map(Some)),
            false => None,
        };
        let open = self.open.get();
        let n_before = u32::from(open.sampler.is_some()) + self.n_every_step.get();
        slot.map_or_else(
            || (Owner::new(), 0),
            |slot| (open.probes, slot.saturating_sub(n_before)),
        )
    }

    /// Reads a row in every step: the owner of the handle, and its index. Where it fails the error is kept, and the
    /// handle is that of nothing.
    pub(super) fn probe_each_step(&self, index: u32, probe: &raw::Probe) -> (Owner, u32) {
        if !self.set(|made| made.probe_each_step(index, probe).map(drop)) {
            return (Owner::new(), 0);
        }
        let n = self.n_every_step.get();
        self.n_every_step.set(n + 1);
        (self.every_step, n)
    }

    /// Where the slots of the open step stand: the sampler of the generator, the probes of every step, those of this.
    pub(super) fn slots(&self) -> Slots {
        let open = self.open.get();
        let mut first = Vec::with_capacity(3);
        if let Some(sampler) = open.sampler {
            first.push((crate::handle::Handle::place(sampler).owner, 0));
        }
        let n_samplers = first.len();
        first.push((self.every_step, n_samplers));
        first.push((open.probes, n_samplers + self.n_every_step.get() as usize));
        Slots {
            auto_sampler: open.sampler,
            first,
        }
    }
}

impl fmt::Debug for Machine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Machine")
            .field("made", &self.made)
            .field("context", &self.context)
            .field("steering", &self.steering)
            .finish_non_exhaustive()
    }
}
