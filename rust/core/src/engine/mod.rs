//! The engine of one model: everything that the host keeps behind its lock.
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
mod displacing;
mod faults;
mod folding;
mod following;
mod forward;
mod generators;
mod histogram;
mod judging;
mod losing;
mod planner;
mod planning;
mod requests;
mod room;
mod snapshots;
mod stats;
mod submitting;
mod working_pages;
mod writing;

use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::Range;

use crate::batch::ArenaBuilder;
use crate::budget::TokenBudget;
use crate::config::EngineConfig;
use crate::context::{Context, Pass};
use crate::errors::{Error, ErrorCode, Result};
use crate::generation::{Generator, Seeds};
use crate::ids::{BatchId, ContextId, GeneratorId, PageId, PassId, ProcessId, RequestId, UserId};
use crate::kv::{Moves, PageCopy, PageStore};
use crate::sched::{Hold, Pace, Queue, Work};
use crate::slab::Slab;

use costs::Costs;
pub use forward::{Forward, Input, RowRequest};
pub use histogram::Histogram;
pub use planning::Plan;
use requests::RequestState;
pub use requests::{Answer, Progress, Submission};
pub use snapshots::Beside;
use snapshots::Snapshots;
pub use stats::{Figure, Stats, UserStats};
pub use working_pages::PageCounts;

/// The state of one model's contexts, generators and requests.
///
/// Pure: time and randomness are arguments, nothing blocks, and no call panics whatever a program or a driver does.
/// Tokens are a function of what the programs do and of their launch seeds, never of times, batches or chunks.
#[derive(Debug)]
pub struct Engine {
    config: EngineConfig,
    store: PageStore,
    contexts: Slab<Context>,
    generators: Slab<Generator>,
    snapshots: Snapshots,
    processes: HashMap<ProcessId, Process>,
    /// Those of the processes.
    users: HashMap<UserId, User>,
    requests: HashMap<RequestId, RequestState>,
    /// Requests that became ready and were not yet drained.
    ready: Vec<RequestId>,
    queue: Queue,
    hold: Hold,
    builder: ArenaBuilder,
    in_flight: Vec<InFlight>,
    /// Contexts whose pass went, in that order: those that have none still are the first to give up their pages.
    idle: VecDeque<Idle>,
    n_idle_stamps: u64,
    costs: Costs,
    /// Why nothing is asked of the driver, where nothing may be.
    refusal: Option<Error>,
    /// The latest time that was told.
    now_ns: u64,
    n_passes: u64,
    totals: stats::Totals,
}

/// A context whose pass went.
#[derive(Clone, Copy, Debug)]
struct Idle {
    context: ContextId,
    /// That of the context, unless it had another pass since.
    stamp: u64,
    /// Until when it keeps its pages: its program is expected back.
    until_ns: u64,
}

/// What a process owns.
#[derive(Debug)]
struct Process {
    user: UserId,
    seeds: Seeds,
    contexts: HashSet<ContextId>,
    generators: HashSet<GeneratorId>,
    /// Its requests that were entered and not yet taken.
    n_requests: usize,
    /// None: any number of tokens may enter its contexts.
    budget: Option<TokenBudget>,
}

/// What the processes of a user own together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct User {
    n_processes: usize,
    n_contexts: usize,
    n_requests: usize,
}

/// A batch that a driver runs.
#[derive(Debug)]
struct InFlight {
    id: BatchId,
    sequences: Vec<Running>,
    /// Contexts whose pages it moves without computing anything of theirs.
    riders: Vec<Rider>,
    moves: Moves,
    work: Work,
    n_tokens: u32,
    /// The batch that some of its sequences follow.
    before: Option<BatchId>,
    /// Pages that it has in its arena, whoever else has done with them.
    lent: Vec<PageId>,
    /// When it was planned, or where its driver runs one batch after the other, when it was its turn.
    since_ns: u64,
    /// Its requests have failed, and the driver has not answered yet.
    abandoned: bool,
}

impl InFlight {
    /// One that computes nothing yet.
    fn new(id: BatchId, since_ns: u64) -> Self {
        Self {
            id,
            sequences: Vec::new(),
            riders: Vec::new(),
            moves: Moves::default(),
            work: Work::default(),
            n_tokens: 0,
            before: None,
            lent: Vec::new(),
            since_ns,
            abandoned: false,
        }
    }
}

/// A context whose pages a batch brings back for a pass, without computing anything of it.
#[derive(Clone, Copy, Debug)]
struct Rider {
    context: ContextId,
    pass: PassId,
}

/// A sequence of a batch that a driver runs.
#[derive(Debug)]
struct Running {
    context: ContextId,
    pass: PassId,
    copy: Option<PageCopy>,
    /// Tokens that are ready when it is done.
    length: u32,
    /// The rows that it wants, among those of the batch.
    rows: Range<u32>,
    /// It follows a sequence of the batch before.
    follows: bool,
}

impl Engine {
    /// An engine without processes.
    ///
    /// # Errors
    /// `invalid-config`, naming the setting, its value and the range.
    pub fn new(config: EngineConfig) -> Result<Self> {
        config.check()?;
        let store = PageStore::new(config.page_size, config.n_pages, config.host_slots);
        Ok(Self {
            store: if config.prefix_cache {
                store
            } else {
                store.unsearched()
            },
            contexts: Slab::new(),
            generators: Slab::new(),
            snapshots: Snapshots::default(),
            processes: HashMap::new(),
            users: HashMap::new(),
            requests: HashMap::new(),
            ready: Vec::new(),
            queue: Queue::new(Pace::new(config.shared_step_ns)),
            hold: Hold::new(config.hold_ns),
            builder: ArenaBuilder::new(config.page_size),
            in_flight: Vec::new(),
            idle: VecDeque::new(),
            n_idle_stamps: 0,
            costs: Costs::default(),
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
        if self.processes.contains_key(&process) {
            return Err(Error::new(
                ErrorCode::InvalidArgument,
                format!("{process:?} is known already; use a name that is new"),
            ));
        }
        let seeds = Seeds::new(launch_seed);
        self.users.entry(user).or_default().n_processes += 1;
        self.processes.insert(
            process,
            Process {
                user,
                seeds,
                contexts: HashSet::new(),
                generators: HashSet::new(),
                n_requests: 0,
                budget: None,
            },
        );
        Ok(())
    }

    /// Caps the tokens that enter the contexts of a process from now on. An unknown process is none.
    pub fn set_token_budget(&mut self, process: ProcessId, budget: TokenBudget) {
        if let Some(process) = self.processes.get_mut(&process) {
            process.budget = Some(budget);
        }
    }

    /// The budget of a process that has one.
    fn budget(&self, process: ProcessId) -> Option<&TokenBudget> {
        self.processes.get(&process)?.budget.as_ref()
    }

    /// Ends a process: releases everything that it owns, which its snapshots are not, and cancels its requests, which
    /// nobody will take. An unknown process is none.
    pub fn end_process(&mut self, process: ProcessId) {
        let Some(ended) = self.processes.remove(&process) else {
            return;
        };
        self.leave(&ended);
        let Process {
            contexts,
            generators,
            ..
        } = ended;
        for context in contexts {
            let pass = self
                .contexts
                .get(context.0)
                .and_then(|context| context.pass.as_ref());
            if let Some(request) = pass.and_then(Pass::request) {
                self.cancel(request);
            }
            self.release(context);
        }
        self.requests.retain(
            |_, state| !matches!(state, RequestState::Failed { process: owner, .. } if *owner == process),
        );
        for generator in generators {
            self.drop_generator(generator);
        }
        self.queue.forget(process);
    }

    /// The requests that became ready since they were last drained. Ask after every call.
    pub fn drain_ready(&mut self) -> Vec<RequestId> {
        std::mem::take(&mut self.ready)
    }
}
