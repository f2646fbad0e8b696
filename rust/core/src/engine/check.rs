//! The invariants of an engine, verified from scratch. For tests and for support; it costs time with everything that
//! lives.

use std::collections::HashMap;

use super::Engine;
use super::command_queue::Transfer;
use super::device::InFlight;
use super::owned::User;
use super::requests::RequestState;
use crate::context::{Context, PassKind};
use crate::generation::StepState;
use crate::ids::{ContextId, PageId, ProcessId, UserId};
use crate::kv::{References, pages_for};

impl Engine {
    /// Verifies every invariant.
    ///
    /// # Errors
    /// A sentence that names the first that is broken: a fault of the engine.
    pub fn check(&self) -> Result<(), String> {
        let [pages, pool] = self.device.store.faults();
        for faults in [&self.totals.faults, pages, pool] {
            if let Some((n, first)) = faults.first() {
                return Err(format!(
                    "{n} times something was as it cannot be, first: {first}"
                ));
            }
        }
        self.check_pages()?;
        self.market.check()?;
        for (id, context) in self.owned.contexts.iter() {
            self.check_context(ContextId(id), context)
                .map_err(|broken| format!("{:?}: {broken}", ContextId(id)))?;
        }
        for (_, name, snapshot) in self.owned.snapshots.iter() {
            self.check_snapshot(&snapshot.context)
                .map_err(|broken| format!("snapshot {name:?}: {broken}"))?;
        }
        self.check_arenas()?;
        self.check_requests()?;
        self.check_commands()?;
        self.check_owners()
    }

    /// The pages that arenas have of the contexts that their batches run are those of their lanes.
    fn check_arenas(&self) -> Result<(), String> {
        for batch in &self.device.in_flight {
            let listed = self.device.builder.pages_of(batch.id).unwrap_or_default();
            for (running, listed) in batch.sequences.iter().zip(listed) {
                let context = self.owned.contexts.get(running.context.0);
                let Some(context) = context.filter(|it| it.lease == Some(batch.id)) else {
                    continue;
                };
                let written = |page: PageId| match running.copy {
                    Some(copy) if copy.src == page => copy.dst,
                    _ => page,
                };
                let pages = context.lane.pages(&self.device.store).map(written);
                let pages: Vec<PageId> = pages.take(listed.len()).collect();
                // What turned out to be a second copy of what somebody else has stays the batch's until it ends.
                let is_its = |(&listed, page): (&u32, &PageId)| {
                    listed == page.0 || batch.lent.contains(&PageId(listed))
                };
                let is_right = pages.len() == listed.len() && listed.iter().zip(&pages).all(is_its);
                if !is_right {
                    return Err(format!(
                        "{:?} runs {:?} on pages {listed:?}, and its lane has {pages:?}",
                        batch.id, running.context
                    ));
                }
            }
        }
        Ok(())
    }

    /// The store agrees with what contexts and batches refer to.
    fn check_pages(&self) -> Result<(), String> {
        let mut references = References::default();
        let live = self.owned.contexts.iter().map(|(_, context)| context);
        for context in live.chain(self.owned.snapshots.iter().map(|(.., it)| &it.context)) {
            references.add_lane(&context.lane);
        }
        for batch in &self.device.in_flight {
            let copies = batch.sequences.iter().filter_map(|sequence| sequence.copy);
            references.add_batch(batch.id, &batch.moves, copies, &batch.lent);
        }
        match self.device.commands.running.as_ref().map(|it| &it.transfer) {
            Some(Transfer::Out(lent)) => references.add_command(lent, std::iter::empty()),
            Some(Transfer::In(arrivals, _)) => {
                references.add_command(&[], arrivals.iter().map(|arrival| arrival.page));
            }
            Some(Transfer::Nothing) | None => {}
        }
        self.device.store.check(&references)
    }

    /// A snapshot holds what it needs, uses nothing, and takes part in nothing.
    fn check_snapshot(&self, context: &Context) -> Result<(), String> {
        if context.lane.is_resident() || context.lane.n_ready() > 0 {
            return Err("uses pages".to_owned());
        }
        if context.pass.is_some() || context.lease.is_some() || context.generator.is_some() {
            return Err("takes part in a pass".to_owned());
        }
        if context.length() > self.config.max_context() {
            return Err(format!("has {} tokens", context.length()));
        }
        context.check(&self.device.store)
    }

    fn check_context(&self, id: ContextId, context: &Context) -> Result<(), String> {
        let page_size = self.config.driver.page_size;
        if context.released {
            return if context.lease.is_some() {
                Ok(())
            } else {
                Err("is released and still there".to_owned())
            };
        }
        let n_held = context.lane.pages(&self.device.store).count() as u32;
        let (n_ready, end) = (context.lane.n_ready(), context.end());
        if n_held < pages_for(n_ready, page_size) {
            return Err(format!(
                "{n_ready} tokens lie in {n_held} pages of {page_size}"
            ));
        }
        if context.lease.is_none() && (n_ready > end || n_held > pages_for(end, page_size)) {
            return Err(format!(
                "{end} tokens have {n_ready} ready and hold {n_held} pages of {page_size}"
            ));
        }
        context.lane.check(&self.device.store)?;
        context.check(&self.device.store)?;
        if context.n_committed * page_size > context.n_tokens() {
            return Err(format!(
                "{} pages are committed and {} tokens computed",
                context.n_committed,
                context.n_tokens()
            ));
        }
        if context.length() > self.config.max_context() {
            return Err(format!(
                "has {} of {} tokens",
                context.length(),
                self.config.max_context()
            ));
        }
        if let Some(batch) = context.lease {
            let runs = |batch: &InFlight| {
                let sequences = batch.sequences.iter().map(|sequence| sequence.context);
                sequences
                    .chain(batch.restores.iter().map(|restore| restore.context))
                    .any(|running| running == id)
            };
            if !self
                .device
                .in_flight
                .iter()
                .any(|running| running.id == batch && runs(running))
            {
                return Err(format!("is leased to {batch:?}, which does not run it"));
            }
        }
        Ok(())
    }

    /// Every pass belongs to a request and the other way round; those that wait, and no others, are in the queue.
    fn check_requests(&self) -> Result<(), String> {
        let (n_waiting, n_asked) = self.check_passes()?;
        self.check_queue(n_waiting)?;
        let is_active = |state: &&RequestState| matches!(state, RequestState::Active(_));
        let n_active = self.owned.requests.values().filter(is_active).count();
        if n_asked != n_active {
            return Err(format!(
                "{n_active} requests are active and {n_asked} passes exist"
            ));
        }
        Ok(())
    }

    /// Every pass that somebody asked for is that of its request. Returns how many wait, and how many were asked for.
    fn check_passes(&self) -> Result<(usize, usize), String> {
        let (mut n_waiting, mut n_asked) = (0, 0);
        for (id, context) in self.owned.contexts.iter() {
            let Some(pass) = &context.pass else { continue };
            self.check_late(pass)?;
            n_waiting += usize::from(pass.is_waiting() && !context.awaits_pages());
            let Some(request) = pass.request() else {
                continue;
            };
            n_asked += 1;
            if !matches!(self.owned.requests.get(&request), Some(RequestState::Active(owner)) if owner.0 == id)
            {
                return Err(format!(
                    "{:?} has a pass of {:?}, which is unknown",
                    ContextId(id),
                    request
                ));
            }
            if let PassKind::Step(generator) | PassKind::Run(generator) = pass.kind
                && self
                    .owned
                    .generators
                    .get(generator.0)
                    .is_none_or(|generator| generator.state != StepState::Running)
            {
                return Err(format!("{generator:?} has a pass and does not run"));
            }
        }
        Ok((n_waiting, n_asked))
    }

    /// What is queued is what waits, as it is.
    fn check_queue(&self, n_waiting: usize) -> Result<(), String> {
        for ticket in self.waiting.queue.iter() {
            let waits = |context: &Context| {
                let pass = context.pass.as_ref();
                pass.is_some_and(|pass| pass.id == ticket.pass && pass.is_waiting())
                    && pass.is_some_and(|pass| pass.is_ahead() == ticket.is_ahead)
                    && context.n_remaining() == ticket.n_tokens
            };
            if !self.owned.contexts.get(ticket.context.0).is_some_and(waits) {
                return Err(format!("{:?} is queued and does not wait", ticket.context));
            }
        }
        if n_waiting != self.waiting.queue.len() {
            return Err(format!(
                "{n_waiting} passes wait and {} are queued",
                self.waiting.queue.len()
            ));
        }
        Ok(())
    }

    fn check_owners(&self) -> Result<(), String> {
        self.check_owned_contexts()?;
        self.check_request_counts()?;
        self.check_users()?;
        self.check_pass_bytes()?;
        self.check_owned_counts()
    }

    /// Every process counts what its passes hold right.
    fn check_pass_bytes(&self) -> Result<(), String> {
        for (id, process) in &self.owned.processes {
            let (n_counted, n_held) = (process.pass_bytes.n_held(), self.owned.added_up(process));
            if n_counted != n_held {
                return Err(format!(
                    "{id:?} counts {n_counted} bytes of its passes, and they hold {n_held}"
                ));
            }
        }
        Ok(())
    }

    /// Every context is among those of its process, and names a generator of its own.
    fn check_owned_contexts(&self) -> Result<(), String> {
        for (id, context) in self
            .owned
            .contexts
            .iter()
            .filter(|(_, context)| !context.released)
        {
            if !self
                .owned
                .processes
                .get(&context.process)
                .is_some_and(|owner| owner.contexts.contains(&ContextId(id)))
            {
                return Err(format!(
                    "{:?} is not among those of {:?}",
                    ContextId(id),
                    context.process
                ));
            }
            if let Some(generator) = context.generator
                && self
                    .owned
                    .generators
                    .get(generator.0)
                    .is_none_or(|state| state.retired.is_some() || state.context.0 != id)
            {
                return Err(format!(
                    "{:?} names {generator:?}, which is not its own",
                    ContextId(id)
                ));
            }
        }
        Ok(())
    }

    /// Processes own all contexts and generators, and count those that draft right.
    fn check_owned_counts(&self) -> Result<(), String> {
        let n_contexts = self
            .owned
            .contexts
            .iter()
            .filter(|(_, context)| !context.released)
            .count();
        let n_owned: usize = self
            .owned
            .processes
            .values()
            .map(|process| process.contexts.len())
            .sum();
        let n_generators: usize = self
            .owned
            .processes
            .values()
            .map(|process| process.generators.len())
            .sum();
        for (id, process) in &self.owned.processes {
            let generators = process.generators.iter();
            let drafting = generators.filter(|id| {
                let generator = self.owned.generators.get(id.0);
                generator.is_some_and(|generator| generator.drafts)
            });
            let (n_counted, n_drafting) = (process.n_draft_generators, drafting.count());
            if n_counted != n_drafting {
                return Err(format!(
                    "{id:?} counts {n_counted} generators that draft and has {n_drafting}"
                ));
            }
        }
        if n_contexts != n_owned || n_generators != self.owned.generators.len() {
            return Err(format!(
                "{n_owned} of {n_contexts} contexts and {n_generators} of {} generators have owners",
                self.owned.generators.len()
            ));
        }
        Ok(())
    }

    /// Every user counts what the processes own right.
    fn check_users(&self) -> Result<(), String> {
        let mut users: HashMap<UserId, User> = HashMap::new();
        for process in self.owned.processes.values() {
            let user = users.entry(process.user).or_default();
            user.n_processes += 1;
            user.n_contexts += process.contexts.len();
            user.n_requests += process.n_requests;
        }
        if users == self.owned.users {
            return Ok(());
        }
        Err(format!(
            "users count {:?} and own {users:?}",
            self.owned.users
        ))
    }

    /// Every process counts its requests right.
    fn check_request_counts(&self) -> Result<(), String> {
        let mut counts: HashMap<ProcessId, usize> = HashMap::new();
        for state in self.owned.requests.values() {
            let process = match state {
                RequestState::Active(context) => {
                    let context = self.owned.contexts.get(context.0);
                    let context = context.ok_or("a request is active and its context is gone")?;
                    context.counts_requests().then_some(context.process)
                }
                RequestState::Failed {
                    process, counts, ..
                } => counts.then_some(*process),
                RequestState::Commanded { process, .. } => *process,
            };
            if let Some(process) = process {
                *counts.entry(process).or_insert(0) += 1;
            }
        }
        for (process, owner) in &self.owned.processes {
            let n_requests = counts.get(process).copied().unwrap_or(0);
            if owner.n_requests != n_requests {
                return Err(format!(
                    "{process:?} counts {} requests and has {n_requests}",
                    owner.n_requests
                ));
            }
        }
        Ok(())
    }
}
