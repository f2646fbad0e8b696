//! One step of a generator.

use std::rc::Rc;

use super::machine::Machine;
use crate::handle::ProbeHandle;
use crate::output::Output;
use crate::probe::Probe;
use crate::{Result, task};

/// A step that [`Generator::next`](crate::Generator::next) opened. It does not borrow the generator.
#[derive(Debug)]
#[must_use = "a step that is opened and never executed is the error `step-pending` of the next one"]
pub struct GenStep {
    machine: Rc<Machine>,
    index: u32,
}

impl GenStep {
    /// Opens the next step; none after the end.
    pub(super) fn open(machine: &Rc<Machine>) -> Result<Option<Self>> {
        let index = machine.open()?;
        Ok(index.map(|index| Self {
            machine: Rc::clone(machine),
            index,
        }))
    }

    /// The number of the step, counted from 0.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Draws nothing in this step: read a probe, and say by [`Generator::accept`](crate::Generator::accept) which
    /// tokens follow.
    pub fn clear_sampler(&mut self) -> &mut Self {
        self.machine.clear_sampler(self.index);
        self
    }

    /// Reads a row in this step: 0 is the one from which the step draws, or where tokens are drafted, the first from
    /// which it does.
    pub fn probe<P: Probe>(&mut self, index: u32, probe: P) -> ProbeHandle<P> {
        let (owner, index) = self.machine.probe(self.index, index, &probe.to_raw());
        ProbeHandle::new(owner, index)
    }

    /// Runs one forward pass and accepts what it draws. Dropped before its end it is cancelled, and opened again, with
    /// its probes.
    ///
    /// # Errors
    /// A kept error; `context-busy`, `context-full`, `out-of-pages`, `driver-failed`, `bad-logits`, `late-mask`,
    /// `generator-retired`; `invalid-argument` for a mask or drafts that do not fit.
    pub async fn execute(self) -> Result<Output> {
        let future = self.machine.start(self.index)?;
        let answer = task::answer(future).await?;
        self.machine.steering.borrow_mut().take(&answer);
        Ok(Output::of_step(answer, self.machine.slots()))
    }
}
