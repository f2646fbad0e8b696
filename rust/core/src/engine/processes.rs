//! Processes begin, with what caps them, and end with all that they own.

use super::Engine;
use super::owned::Process;
use super::requests::RequestState;
use crate::budget::TokenBudget;
use crate::context::Pass;
use crate::errors::{Error, ErrorCode, Result};
use crate::generation::Seeds;
use crate::ids::{ProcessId, UserId};

impl Engine {
    /// Adds a process of a user. Seeds that nobody gives derive from its launch seed.
    ///
    /// # Errors
    /// `invalid-argument` when the process is known already.
    pub fn new_process(
        &mut self,
        process: ProcessId,
        user: UserId,
        launch_seed: u64,
    ) -> Result<()> {
        if self.owned.processes.contains_key(&process) {
            return Err(Error::new(
                ErrorCode::InvalidArgument,
                format!("{process:?} is known already; use a name that is new"),
            ));
        }
        self.owned.users.entry(user).or_default().n_processes += 1;
        let owner = Process::new(user, Seeds::new(launch_seed));
        self.owned.processes.insert(process, owner);
        Ok(())
    }

    /// Caps the tokens that enter the contexts of a process from now on. An unknown process is none.
    pub fn set_token_budget(&mut self, process: ProcessId, budget: TokenBudget) {
        if let Some(process) = self.owned.processes.get_mut(&process) {
            process.budget = Some(budget);
        }
    }

    /// Ends a process: closes its account, releases everything that it owns, which its snapshots are not, and cancels
    /// its requests, which nobody will take. An unknown process is none.
    pub fn end_process(&mut self, process: ProcessId) {
        self.market.close(process);
        let Some(ended) = self.owned.remove_process(process) else {
            return;
        };
        for context in ended.contexts {
            let state = self.owned.contexts.get(context.0);
            let pass = state.and_then(|state| state.pass.as_ref());
            if let Some(request) = pass.and_then(Pass::request) {
                self.cancel(request);
            }
            self.release(context);
        }
        let failed_of = |state: &RequestState| match state {
            RequestState::Active(_) => false,
            RequestState::Failed { process: owner, .. } => *owner == process,
            RequestState::Commanded { process: owner, .. } => *owner == Some(process),
        };
        self.owned.requests.retain(|_, state| !failed_of(state));
        self.forget_commands();
        for generator in ended.generators {
            self.drop_generator(generator);
        }
        self.waiting.queue.forget(process);
    }
}
