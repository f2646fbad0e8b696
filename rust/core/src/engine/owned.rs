//! What there is of users: their processes, and the contexts, generators, requests and snapshots of those.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};

use super::kept::Snapshots;
use super::requests::RequestState;
use crate::budget::TokenBudget;
use crate::context::{Context, HeldBytes, PassBytes};
use crate::errors::{Error, ErrorCode, Result};
use crate::generation::{Generator, Seeds};
use crate::ids::{ContextId, GeneratorId, ProcessId, RequestId, UserId};
use crate::slab::Slab;

/// All that belongs to somebody.
#[derive(Debug)]
pub(super) struct Owned {
    pub(super) processes: HashMap<ProcessId, Process>,
    /// Those of the processes.
    pub(super) users: HashMap<UserId, User>,
    /// What they own together, but for their processes.
    all: User,
    pub(super) contexts: Slab<Context>,
    pub(super) generators: Slab<Generator>,
    pub(super) requests: HashMap<RequestId, RequestState>,
    pub(super) snapshots: Snapshots,
}

/// What a process owns.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) user: UserId,
    pub(super) seeds: Seeds,
    /// In their order, so that what happens at the end of the process depends on nothing else.
    pub(super) contexts: BTreeSet<ContextId>,
    pub(super) generators: BTreeSet<GeneratorId>,
    /// So many of the generators are on contexts that follow those of another model.
    pub(super) n_draft_generators: usize,
    /// Its requests that were entered and not yet taken. Those of contexts that follow do not count: when one is made
    /// depends on load, and what the program may enter does not.
    pub(super) n_requests: usize,
    /// What the passes of its contexts hold.
    pub(super) pass_bytes: PassBytes,
    /// None: any number of tokens may enter its contexts.
    pub(super) budget: Option<TokenBudget>,
}

/// What the processes of a user own together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct User {
    pub(super) n_processes: usize,
    pub(super) n_contexts: usize,
    pub(super) n_requests: usize,
}

impl Process {
    /// One that owns nothing yet.
    pub(super) fn new(user: UserId, seeds: Seeds) -> Self {
        Self {
            user,
            seeds,
            contexts: BTreeSet::new(),
            generators: BTreeSet::new(),
            n_draft_generators: 0,
            n_requests: 0,
            pass_bytes: PassBytes::default(),
            budget: None,
        }
    }
}

impl Owned {
    /// Nothing.
    pub(super) fn new() -> Self {
        Self {
            processes: HashMap::new(),
            users: HashMap::new(),
            all: User::default(),
            contexts: Slab::new(),
            generators: Slab::new(),
            requests: HashMap::new(),
            snapshots: Snapshots::default(),
        }
    }

    pub(super) fn process(&self, process: ProcessId) -> Result<&Process> {
        self.processes.get(&process).ok_or_else(|| {
            Error::new(
                ErrorCode::InvalidArgument,
                format!("{process:?} is unknown; add it first"),
            )
        })
    }

    /// What the processes of a user own.
    pub(super) fn user(&self, user: UserId) -> User {
        self.users.get(&user).copied().unwrap_or_default()
    }

    /// What the processes of all other users own, but for how many those are.
    pub(super) fn others(&self, user: UserId) -> User {
        let own = self.user(user);
        User {
            n_processes: 0,
            n_contexts: self.all.n_contexts.saturating_sub(own.n_contexts),
            n_requests: self.all.n_requests.saturating_sub(own.n_requests),
        }
    }

    /// Counts what a pass of a process holds; none where that is nothing, or the process unknown.
    pub(super) fn hold(&self, process: ProcessId, n_bytes: usize) -> Option<HeldBytes> {
        self.processes.get(&process)?.pass_bytes.hold(n_bytes)
    }

    /// What the passes of a process hold, added up: what its sum has to be.
    pub(super) fn added_up(&self, process: &Process) -> usize {
        let contexts = process.contexts.iter();
        let passes = contexts.filter_map(|context| self.contexts.get(context.0)?.pass.as_ref());
        let held = passes.filter_map(|pass| pass.held.as_ref());
        held.map(HeldBytes::n_bytes).sum()
    }

    /// The budget of a process that has one.
    pub(super) fn budget(&self, process: ProcessId) -> Option<&TokenBudget> {
        self.processes.get(&process)?.budget.as_ref()
    }

    /// The budget that the tokens of a context are charged to.
    pub(super) fn budget_of(&self, context: &Context) -> Option<&TokenBudget> {
        self.budget(context.process).filter(|_| !context.drafts)
    }

    /// A context that was not released.
    pub(super) fn live(&self, context: ContextId) -> Result<&Context> {
        let state = self.contexts.get(context.0);
        state.filter(|state| !state.released).ok_or_else(released)
    }

    /// The same, to be changed.
    pub(super) fn live_mut(&mut self, context: ContextId) -> Result<&mut Context> {
        let state = self.contexts.get_mut(context.0);
        state.filter(|state| !state.released).ok_or_else(released)
    }

    pub(super) fn generator(&self, generator: GeneratorId) -> Result<&Generator> {
        self.generators.get(generator.0).ok_or_else(dropped)
    }

    /// Whether a generator may change: no step of it is under way.
    pub(super) fn check_idle(&self, generator: GeneratorId) -> Result<()> {
        self.generator(generator)?.check_idle()
    }

    /// A generator that may change, as [`Self::check_idle`] says, to be changed.
    pub(super) fn idle_generator(&mut self, generator: GeneratorId) -> Result<&mut Generator> {
        let state = self.generators.get_mut(generator.0).ok_or_else(dropped)?;
        state.check_idle()?;
        Ok(state)
    }

    /// Tokens in the context of a generator; 0 when either is gone.
    pub(super) fn length_of(&self, generator: GeneratorId) -> u32 {
        let state = self.generators.get(generator.0);
        let context = state.and_then(|state| self.contexts.get(state.context.0));
        context.map_or(0, Context::length)
    }

    /// Adds a context to its process.
    pub(super) fn add_context(&mut self, context: Context) -> ContextId {
        let process = context.process;
        let id = ContextId(self.contexts.insert(context));
        if let Some(owner) = self.processes.get_mut(&process) {
            owner.contexts.insert(id);
            self.users.entry(owner.user).or_default().n_contexts += 1;
            self.all.n_contexts += 1;
        }
        id
    }

    /// A context is no longer among those of its process.
    pub(super) fn disown(&mut self, context: ContextId, process: ProcessId) {
        if let Some(owner) = self.processes.get_mut(&process) {
            owner.contexts.remove(&context);
            if let Some(user) = self.users.get_mut(&owner.user) {
                user.n_contexts = user.n_contexts.saturating_sub(1);
                self.all.n_contexts = self.all.n_contexts.saturating_sub(1);
            }
        }
    }

    /// A request of the process was entered.
    pub(super) fn add_request(
        &mut self,
        request: RequestId,
        context: ContextId,
        process: ProcessId,
    ) {
        self.requests.insert(request, RequestState::Active(context));
        let context = self.contexts.get(context.0);
        if context.is_some_and(Context::counts_requests) {
            self.count_request(process);
        }
    }

    /// A command of a process, or of nobody's, was entered.
    pub(super) fn add_command(&mut self, request: RequestId, process: Option<ProcessId>) {
        let answer = None;
        let state = RequestState::Commanded { process, answer };
        self.requests.insert(request, state);
        if let Some(process) = process {
            self.count_request(process);
        }
    }

    fn count_request(&mut self, process: ProcessId) {
        if let Some(owner) = self.processes.get_mut(&process) {
            owner.n_requests += 1;
            self.users.entry(owner.user).or_default().n_requests += 1;
            self.all.n_requests += 1;
        }
    }

    /// Removes a request, which its process then no longer waits for.
    pub(super) fn forget_request(&mut self, request: RequestId) -> Option<RequestState> {
        let state = self.requests.remove(&request)?;
        let process = match &state {
            RequestState::Active(context) => {
                let context = self.contexts.get(context.0);
                let counted = context.filter(|context| context.counts_requests());
                counted.map(|context| context.process)
            }
            RequestState::Failed {
                process, counts, ..
            } => counts.then_some(*process),
            RequestState::Commanded { process, .. } => *process,
        };
        if let Some(owner) = process.and_then(|process| self.processes.get_mut(&process)) {
            owner.n_requests = owner.n_requests.saturating_sub(1);
            if let Some(user) = self.users.get_mut(&owner.user) {
                user.n_requests = user.n_requests.saturating_sub(1);
                self.all.n_requests = self.all.n_requests.saturating_sub(1);
            }
        }
        Some(state)
    }

    /// A process ends; returns all that it owned. None: it is unknown.
    pub(super) fn remove_process(&mut self, process: ProcessId) -> Option<Process> {
        let ended = self.processes.remove(&process)?;
        if let Entry::Occupied(mut entry) = self.users.entry(ended.user) {
            let user = entry.get_mut();
            user.n_processes = user.n_processes.saturating_sub(1);
            user.n_contexts = user.n_contexts.saturating_sub(ended.contexts.len());
            user.n_requests = user.n_requests.saturating_sub(ended.n_requests);
            let all = &mut self.all;
            all.n_contexts = all.n_contexts.saturating_sub(ended.contexts.len());
            all.n_requests = all.n_requests.saturating_sub(ended.n_requests);
            if user.n_processes == 0 {
                entry.remove();
            }
        }
        Some(ended)
    }
}

/// The error of a context that is gone.
pub(super) fn released() -> Error {
    Error::new(
        ErrorCode::ContextReleased,
        "this context was released; make another one, or fork it before releasing it. Where the end of a block \
         released it (`using`, `with`, in Rust its scope), await what it generates before that end: \
         `return await ...`, in Rust `.await?`",
    )
}

fn dropped() -> Error {
    Error::new(
        ErrorCode::GeneratorRetired,
        "this generator was dropped; make another one on its context",
    )
}
