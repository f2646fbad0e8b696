//! Commands to the driver, and what each of them must answer.

use std::collections::{BTreeMap, BTreeSet};

use pie_core::{
    AdapterName, Answer, Command, DriverCommand, ErrorCode, ProcessId, RequestId, Submission,
};
use proptest::prelude::*;

use super::driving::{Outcome, Simulation};

/// A command that somebody waits for.
#[derive(Clone, Debug)]
pub struct Commanded {
    request: RequestId,
    process: Option<usize>,
    command: Command,
    stands: Stands,
}

/// Where a command stands, as whoever asked may know.
#[derive(Clone, Debug, PartialEq)]
enum Stands {
    Waiting,
    /// The driver has it, and may have had it for too long.
    Running {
        may_fail: bool,
    },
    Answered {
        error: Option<ErrorCode>,
        may_fail: bool,
    },
}

/// What the driver should have loaded, written naively.
pub type Loaded = BTreeSet<AdapterName>;

/// What a driver that has come in the place of another has to load again.
#[derive(Debug, Default)]
pub struct Again {
    missing: Loaded,
    /// Drivers in a row that were lost while they loaded an adapter.
    n_losses: BTreeMap<AdapterName, u32>,
}

/// The adapter that a command leaves in its last state; none for one that moves pages.
const fn named(command: &Command) -> Option<AdapterName> {
    match command {
        Command::LoadAdapter { adapter, .. }
        | Command::CreateAdapter { adapter, .. }
        | Command::DropAdapter { adapter } => Some(*adapter),
        Command::CopyAdapter { to, .. } | Command::ChangeAdapter { to, .. } => Some(*to),
        Command::ExportPages { .. } | Command::ImportPages { .. } => None,
    }
}

/// Whether a command succeeds.
fn carry_out(loaded: &mut Loaded, command: &Command) -> bool {
    match command {
        Command::LoadAdapter { adapter, .. } | Command::CreateAdapter { adapter, .. } => {
            loaded.insert(*adapter);
            true
        }
        Command::CopyAdapter { from, to } | Command::ChangeAdapter { from, to, .. } => {
            loaded.contains(from) && {
                loaded.insert(*to);
                true
            }
        }
        Command::DropAdapter { adapter } => loaded.remove(adapter),
        Command::ExportPages { .. } | Command::ImportPages { .. } => true,
    }
}

impl Simulation {
    pub fn command(&mut self, process: usize, command: Command) -> Outcome {
        let process = Some(process).filter(|&process| process < self.processes.len());
        let id = process.map(|process| ProcessId(self.processes[process].id));
        let submission = Submission::Command(id, command.clone());
        let request = self.world.submit(submission).unwrap();
        self.commands.push(Commanded {
            request,
            process,
            command,
            stands: Stands::Waiting,
        });
        Ok(())
    }

    pub fn cancel_command(&mut self, which: usize) {
        if !self.commands.is_empty() {
            let cancelled = self.commands.remove(which % self.commands.len());
            self.world.engine.cancel(cancelled.request);
        }
    }

    /// The commands of a process end with it.
    pub fn end_commands(&mut self, process: usize) {
        self.commands.retain(|it| it.process != Some(process));
    }

    /// The driver was perhaps given a command: the one that has waited for the longest, if anybody waits for it still.
    pub fn note_command(&mut self) -> Outcome {
        let running = |it: &Commanded| matches!(it.stands, Stands::Running { .. });
        let Some(given) = &self.world.command else {
            prop_assert!(!self.commands.iter().any(running));
            let is_idle = self.world.running.is_empty() || self.again.missing.is_empty();
            prop_assert!(is_idle, "a batch runs before adapters are loaded again");
            return Ok(());
        };
        if self.n_given == given.id.0 {
            return Ok(());
        }
        self.n_given = given.id.0;
        let named = named(&given.command);
        if given.again {
            prop_assert!(named.is_some_and(|adapter| self.again.missing.remove(&adapter)));
            return Ok(());
        }
        prop_assert!(self.again.missing.is_empty());
        if named.is_none() {
            return Ok(());
        }
        let mut waiting = self.commands.iter_mut();
        let first = waiting.find(|it| it.stands == Stands::Waiting).unwrap();
        prop_assert_eq!(&given.command, &first.command);
        first.stands = Stands::Running { may_fail: false };
        Ok(())
    }

    pub fn finish_command(&mut self) {
        let Some(command) = self.world.command.clone() else {
            return;
        };
        self.world.finish_command();
        let Some(adapter) = named(&command.command) else {
            return;
        };
        let succeeds = carry_out(&mut self.loaded, &command.command);
        if succeeds {
            self.again.n_losses.remove(&adapter);
        }
        for it in &mut self.commands {
            if let Stands::Running { may_fail } = it.stands {
                let error = (!succeeds).then_some(ErrorCode::DriverFailed);
                it.stands = Stands::Answered { error, may_fail };
            }
        }
    }

    /// The command that runs may be abandoned.
    pub fn commands_may_fail(&mut self) {
        for it in &mut self.commands {
            if let Stands::Running { may_fail } = &mut it.stands {
                *may_fail = true;
            }
        }
    }

    /// The device goes with its adapters, which the next one is given, unless several were lost over one.
    pub fn lose_adapters(&mut self, given: Option<&DriverCommand>) {
        let again = given.filter(|given| given.again);
        if let Some(adapter) = again.and_then(|again| named(&again.command)) {
            let n_losses = self.again.n_losses.entry(adapter).or_default();
            *n_losses += 1;
            if *n_losses == 3 {
                self.again.n_losses.remove(&adapter);
                self.loaded.remove(&adapter);
            }
        }
        self.again.missing = self.loaded.clone();
    }

    /// The device goes; what waits may be refused.
    pub fn lose_commands(&mut self, refuses: bool) {
        for it in &mut self.commands {
            let code = match it.stands {
                Stands::Running { .. } => ErrorCode::DriverLost,
                Stands::Waiting if refuses => ErrorCode::ModelUnavailable,
                _ => continue,
            };
            // One that was abandoned before has failed by that.
            let may_fail = it.stands == Stands::Running { may_fail: true };
            it.stands = Stands::Answered {
                error: Some(code),
                may_fail,
            };
        }
    }

    /// Takes the answers that must be there.
    pub fn take_commands(&mut self) -> Outcome {
        for it in std::mem::take(&mut self.commands) {
            let Stands::Answered { error, may_fail } = it.stands else {
                self.commands.push(it);
                continue;
            };
            let Some(answer) = self.world.engine.take(it.request) else {
                prop_assert!(false, "a command was never answered");
                return Ok(());
            };
            match answer {
                Ok(answer) => prop_assert!(answer == Answer::Commanded && error.is_none()),
                Err(found) => prop_assert!(
                    Some(found.code) == error || may_fail && found.code == ErrorCode::DriverFailed
                ),
            }
        }
        Ok(())
    }

    /// Whether nobody waits for a command.
    pub fn has_no_commands(&self) -> bool {
        self.commands.is_empty()
    }
}
