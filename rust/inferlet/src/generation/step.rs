//! One step of a generator.

use std::rc::Rc;

use super::machine::Machine;
use super::output::Output;
use crate::{Result, task};

/// A step that [`Generator::next`](crate::Generator::next) opened. It does not borrow the generator.
#[derive(Debug)]
#[must_use = "a step that is opened and never executed is the error `step-pending` of the next one"]
pub struct GenStep {
    machine: Rc<Machine>,
    index: u32,
}

impl GenStep {
    pub(super) fn new(machine: Rc<Machine>, index: u32) -> Self {
        Self { machine, index }
    }

    /// Its number, counted from 0.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Runs one forward pass and accepts what it draws. Dropped before its end it is cancelled, and opened again.
    ///
    /// # Errors
    /// `context-busy`, `context-full`, `out-of-pages`, `driver-failed`, `bad-logits`, `generator-retired`.
    pub async fn execute(self) -> Result<Output> {
        let output = self.machine.generator()?.step();
        Ok(task::answer(output).await?.into())
    }
}
