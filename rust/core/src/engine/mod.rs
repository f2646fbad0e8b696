//! The engine of one model: everything that the host keeps behind its lock.
//!
//! It has three parts: what is `owned` by users, what is `waiting` for the device, and the `device`.
//!
//! Calls of programs (`contexts`, `generators`) take effect at once and take microseconds. What waits for a batch is a
//! request (`requests`): it is entered (`submitting`, or `ahead` where it ran ahead), and its answer is taken
//! (`folding`). The driver's side is `next_batch` (`planning`: a `planner` has `admitting` give places, `displacing`
//! find pages, `writing` fill the arena, and `following` look a batch ahead), `complete` (`completing`: each pass goes
//! on by `advancing`, each token is judged by `judging`), and `abandon_overdue` (`abandoning`) where it hangs,
//! `lose_device` (`losing`) where it is gone.

mod abandoning;
mod admitting;
mod advancing;
mod ahead;
mod check;
mod completing;
mod contexts;
mod costs;
mod device;
mod displacing;
mod faults;
mod folding;
mod following;
mod forward;
mod generators;
mod histogram;
mod idle;
mod judging;
mod losing;
mod owned;
mod planner;
mod planning;
mod requests;
mod room;
mod snapshots;
mod stats;
mod submitting;
mod waiting;
mod working_pages;
mod writing;

use crate::budget::TokenBudget;
use crate::config::EngineConfig;
use crate::context::Pass;
use crate::errors::{Error, ErrorCode, Result};
use crate::generation::Seeds;
use crate::ids::{ProcessId, RequestId, UserId};
use crate::kv::PageStore;

use device::{Device, InFlight, Rider, Running};
pub use forward::{Forward, Input, RowRequest};
pub use histogram::Histogram;
use owned::{Owned, Process};
pub use planning::Plan;
use requests::RequestState;
pub use requests::{Answer, Progress, Submission};
pub use snapshots::Beside;
pub use stats::{Figure, Stats, UserStats};
use waiting::Waiting;
pub use working_pages::PageCounts;

/// The state of one model's contexts, generators and requests.
///
/// Pure: time and randomness are arguments, nothing blocks, and no call panics whatever a program or a driver does.
/// Tokens are a function of what the programs do and of their launch seeds, never of times, batches or chunks.
#[derive(Debug)]
pub struct Engine {
    config: EngineConfig,
    owned: Owned,
    waiting: Waiting,
    device: Device,
    /// Requests that became ready and were not yet drained.
    ready: Vec<RequestId>,
    /// Why nothing is asked of the driver, where nothing may be.
    refusal: Option<Error>,
    /// The latest time that was told.
    now_ns: u64,
    n_passes: u64,
    totals: stats::Totals,
}

impl Engine {
    /// An engine without processes.
    ///
    /// # Errors
    /// `invalid-config`, naming the setting, its value and the range.
    pub fn new(config: EngineConfig) -> Result<Self> {
        config.check()?;
        let config = config.within_driver();
        let driver = &config.driver;
        let store = PageStore::new(driver.page_size, driver.n_pages, driver.host_pages);
        let store = if config.prefix_cache {
            store
        } else {
            store.unsearched()
        };
        Ok(Self {
            owned: Owned::new(),
            waiting: Waiting::new(&config),
            device: Device::new(store),
            ready: Vec::new(),
            refusal: None,
            now_ns: 0,
            n_passes: 0,
            totals: stats::Totals::default(),
            config,
        })
    }

    /// What the engine was made with.
    pub const fn config(&self) -> &EngineConfig {
        &self.config
    }

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

    /// Ends a process: releases everything that it owns, which its snapshots are not, and cancels its requests, which
    /// nobody will take. An unknown process is none.
    pub fn end_process(&mut self, process: ProcessId) {
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
        let failed_of = |state: &RequestState| matches!(state, RequestState::Failed { process: owner, .. } if *owner == process);
        self.owned.requests.retain(|_, state| !failed_of(state));
        for generator in ended.generators {
            self.drop_generator(generator);
        }
        self.waiting.queue.forget(process);
    }

    /// The requests that became ready since they were last drained. Ask after every call.
    pub fn drain_ready(&mut self) -> Vec<RequestId> {
        std::mem::take(&mut self.ready)
    }
}
