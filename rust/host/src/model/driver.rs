//! The side of the driver: batches to run, commands to carry out, and the answers to both.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pie_core::{CommandFailure, DriverAnswer, DriverCommand, DriverFailure, ErrorCode, NextWork};

use super::Model;
use super::inbox::Woken;
use crate::Error;

/// What a driver should do next.
#[derive(Debug)]
pub enum Work {
    /// Run this.
    Batch(Batch),
    /// Carry this out.
    Command(Command),
}

/// A batch that a driver runs. It is answered once: one that is dropped without an answer fails.
#[derive(Debug)]
pub struct Batch {
    batch: pie_core::Batch,
    handed: Handed,
}

/// A command that a driver carries out. It is answered once: one that is dropped without an answer fails.
#[derive(Debug)]
pub struct Command {
    command: DriverCommand,
    handed: Handed,
}

/// What a driver was handed by a model, and whether it was answered.
#[derive(Debug)]
struct Handed {
    model: Arc<Model>,
    answered: AtomicBool,
}

impl Handed {
    fn by(model: &Arc<Model>) -> Self {
        Self {
            model: model.clone(),
            answered: AtomicBool::new(false),
        }
    }

    /// True the first time.
    fn claim(&self) -> bool {
        !self.answered.swap(true, Ordering::AcqRel)
    }

    /// Refuses an answer to another model, and a second one. `what` names what is answered.
    fn check(&self, model: &Model, what: &str) -> Result<(), Error> {
        if !std::ptr::eq(model, Arc::as_ptr(&self.model)) {
            let (own, other) = (self.model.name(), model.name());
            let message = format!("{what} belongs to the model {own:?}, not to {other:?}");
            return Err(Error::new(ErrorCode::InvalidArgument, message));
        }
        if !self.claim() {
            return Err(Error::new(
                ErrorCode::InvalidArgument,
                format!("{what} was answered before; answer each once"),
            ));
        }
        Ok(())
    }
}

impl Batch {
    /// The number of the batch, counted from 1 in each model.
    pub fn id(&self) -> u64 {
        self.batch.id.0
    }

    /// What to compute, in the layout of `pie_core::batch`.
    pub fn arena(&self) -> &[u32] {
        &self.batch.arena
    }

    fn name(&self) -> String {
        format!("batch {}", self.id())
    }
}

impl Command {
    /// The number of the command, counted from 1 in each model.
    pub fn id(&self) -> u64 {
        self.command.id.0
    }

    /// What to do.
    pub fn command(&self) -> &pie_core::Command {
        &self.command.command
    }

    fn name(&self) -> String {
        format!("command {}", self.id())
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        if self.handed.claim() {
            let failure = DriverFailure {
                message: "the driver gave the batch up without an answer".to_owned(),
            };
            // A batch that the core does not know any more needs no answer.
            drop(self.handed.model.conclude(&self.batch, Err(failure)));
        }
    }
}

impl Drop for Command {
    fn drop(&mut self) {
        if self.handed.claim() {
            let failure = CommandFailure::Failed("it was given up without an answer".to_owned());
            // A command that the core does not know any more needs no answer.
            drop(
                self.handed
                    .model
                    .conclude_command(&self.command, Err(failure)),
            );
        }
    }
}

impl Model {
    /// What the driver should do next, waiting at most `timeout` for it. None: there is nothing, the driver has not
    /// answered what is overdue, or the model was stopped.
    pub fn next_work(self: &Arc<Self>, timeout: Duration) -> Option<Work> {
        let deadline = Instant::now() + timeout;
        loop {
            if self.is_stopped() {
                return None;
            }
            let now_ns = self.now_ns();
            let until = match self.with_engine(|engine| engine.next_batch(now_ns)) {
                NextWork::Batch(batch) => {
                    self.watch.begin();
                    let handed = Handed::by(self);
                    return Some(Work::Batch(Batch { batch, handed }));
                }
                NextWork::Command(command) => {
                    self.watch.begin();
                    let handed = Handed::by(self);
                    return Some(Work::Command(Command { command, handed }));
                }
                NextWork::Idle => deadline,
                NextWork::HoldUntil(ns) => deadline.min(self.started + Duration::from_nanos(ns)),
            };
            match self.inbox.wait(until) {
                Woken::Rung => {}
                Woken::TimedOut if until < deadline => {}
                Woken::TimedOut | Woken::Stopped => return None,
            }
        }
    }

    /// Answers a batch: with rows of `vocab_size` numbers, or with what was drawn and the rows that are wanted; and
    /// with the sequences that failed, and their reasons. An answer that comes after the requests of the batch have
    /// failed is dropped.
    ///
    /// # Errors
    /// `invalid-argument` for a batch that was answered before, or that belongs to another model.
    pub fn complete(
        &self,
        batch: &Batch,
        answer: DriverAnswer<'_>,
        failures: &[(u32, String)],
    ) -> Result<(), Error> {
        batch.handed.check(self, &batch.name())?;
        let (jobs, late) = (&batch.batch.jobs, &batch.batch.late);
        let masks = match late.is_empty() {
            true => Vec::new(),
            false => self.with_engine(|engine| engine.late_masks(late)),
        };
        // Sampling takes the time; it runs outside the lock.
        let sampled = jobs.conclude(answer, &masks, failures);
        self.conclude(&batch.batch, Ok(sampled))
    }

    /// Answers a batch with the reason why it could not be run; each of its passes fails with it.
    ///
    /// # Errors
    /// `invalid-argument` for a batch that was answered before, or that belongs to another model.
    pub fn fail(&self, batch: &Batch, message: &str) -> Result<(), Error> {
        batch.handed.check(self, &batch.name())?;
        let message = message.to_owned();
        self.conclude(&batch.batch, Err(DriverFailure { message }))
    }

    /// Answers a command: it was carried out, or why not. An answer that comes after it has failed is dropped.
    ///
    /// # Errors
    /// `invalid-argument` for a command that was answered before, or that belongs to another model.
    pub fn complete_command(
        &self,
        command: &Command,
        outcome: Result<(), CommandFailure>,
    ) -> Result<(), Error> {
        command.handed.check(self, &command.name())?;
        self.conclude_command(&command.command, outcome)
    }

    /// The driver is gone, with all pages. The requests of the batches that run fail, each with the error
    /// `driver-lost`, and so does a command; those that wait go on with the driver that comes next, which is
    /// given the adapters first. What it had is not answered: it is dropped.
    pub fn lose_device(&self, message: &str) {
        let now_ns = self.now_ns();
        let given_up = self.with_engine(|engine| engine.lose_device(message, now_ns));
        if let Some(adapter) = given_up {
            tracing::error!(
                model = self.name(),
                ?adapter,
                "drivers are lost while they load the adapter; it is not loaded again"
            );
        }
    }

    fn conclude(
        &self,
        batch: &pie_core::Batch,
        sampled: Result<pie_core::Sampled, DriverFailure>,
    ) -> Result<(), Error> {
        let now_ns = self.now_ns();
        let concluded = self.with_engine(|engine| engine.complete(batch.id, sampled, now_ns));
        self.inbox.ring();
        concluded
    }

    fn conclude_command(
        &self,
        command: &DriverCommand,
        outcome: Result<(), CommandFailure>,
    ) -> Result<(), Error> {
        let is_load = matches!(command.command, pie_core::Command::LoadAdapter { .. });
        if let (true, Err(failure)) = (command.again && is_load, &outcome) {
            let (model, command) = (self.name(), &command.command);
            tracing::error!(
                model,
                ?command,
                ?failure,
                "the adapter could not be loaded again"
            );
        }
        let now_ns = self.now_ns();
        let concluded =
            self.with_engine(|engine| engine.complete_command(command.id, outcome, now_ns));
        self.inbox.ring();
        concluded
    }
}
