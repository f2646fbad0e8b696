//! The scheduler offers a request a place in the batch: whether it gets one, and for how many of its tokens.

use std::ops::Range;

use super::device::{PageRestore, Running};
use super::planner::{Chunk, Planner};
use super::requests::never_fits;
use crate::batch::Step;
use crate::context::Context;
use crate::ids::{ContextId, RequestId};
use crate::kv::{Content, Obstacle, PageCopy, pages_for};
use crate::sched::{Admission, Admit, Ticket};

/// For how many times the time of computing again what it had lost a context keeps its pages.
const REPAID: u64 = 4;

impl Admit for Planner<'_> {
    /// The pages of all the tokens that the pass will compute are reserved with its first chunk, so that prefills do
    /// not block each other half-way.
    fn admit(&mut self, ticket: &Ticket, n: u32, others: &[Ticket]) -> Admission {
        if let Some(admission) = self.admit_step(ticket) {
            return admission;
        }
        let admission = self.try_admit(ticket, n, others);
        if matches!(admission, Admission::Planned(n) if n > 0) {
            return admission;
        }
        if let Some(context) = self.owned.contexts.get_mut(ticket.context.0)
            && context.lease.is_none()
            && context
                .lane
                .pinned()
                .any(|node| self.device.store.moving(node).is_some())
        {
            // Pages that it uses come back with this batch, though nothing of it is computed.
            context.lease = Some(self.demand.batch);
            self.batch.restores.push(PageRestore {
                context: ticket.context,
                pass: ticket.pass,
            });
        }
        admission
    }

    fn n_tokens(&self, ticket: &Ticket) -> u32 {
        self.owned
            .contexts
            .get(ticket.context.0)
            .map_or(1, Context::n_remaining)
    }
}

impl Planner<'_> {
    /// Gives the next token of a generation a place where it has all that it needs: most requests of most batches. It
    /// comes to what `try_admit` does, with one look at the context. None: it has to be looked at more closely.
    fn admit_step(&mut self, ticket: &Ticket) -> Option<Admission> {
        if ticket.follows.is_some() || self.row_room() == 0 {
            return None;
        }
        let (store, builder) = (&self.device.store, &mut self.device.builder);
        let context = self.owned.contexts.get_mut(ticket.context.0)?;
        let (lane, n_ready) = (&context.lane, context.lane.n_ready());
        let length = n_ready + 1;
        let is_step = context.lease.is_none() && context.end() == length;
        if !is_step || !lane.is_whole() || !lane.is_exact(store, length) {
            return None;
        }
        let last_page = lane.page_behind(store)?;
        let n_replayed = u32::from(context.n_tokens() > n_ready);
        let pass = context.pass.as_mut()?;
        let (token, read) = pass.step_at(n_ready)?;
        let row = builder.n_rows() as u32;
        builder.add_step(&Step {
            context: ticket.context,
            request: pass.request().unwrap_or(RequestId(0)),
            token,
            adapter: pass.adapter(),
            pages: lane.full_pages(lane.n_full()),
            last_page,
            length,
            read,
        });
        let starts = pass.start(true);
        let faults = &mut self.totals.faults;
        faults.expect(starts, "what has a place does not wait");
        self.totals.waited(pass.asked_ns.take(), self.now_ns);
        context.lease = Some(self.demand.batch);
        context.owe(n_replayed, 1);
        self.totals.n_replayed += u64::from(n_replayed);
        self.batch.work.add(n_ready, 1);
        self.batch.sequences.push(Running {
            context: ticket.context,
            pass: ticket.pass,
            copy: None,
            length,
            rows: row..row + 1,
            follows: false,
        });
        Some(Admission::Planned(1))
    }

    fn try_admit(&mut self, ticket: &Ticket, n: u32, others: &[Ticket]) -> Admission {
        if ticket.follows.is_some() {
            return self.follow(ticket);
        }
        let Some(context) = self.owned.contexts.get(ticket.context.0) else {
            self.totals.faults.count("what is queued has no context");
            return Admission::NotYet;
        };
        if context.lease.is_some() {
            return Admission::NotYet;
        }
        let (n_ready, end) = (context.lane.n_ready(), context.end());
        if context.is_steady() && n_ready < end && context.lane.is_exact(&self.device.store, end) {
            let slots = n_ready..end.min(n_ready + n);
            // Rows behind drafts may be too many for one batch.
            let n = self.n_readable(context, slots);
            if n == 0 {
                return Admission::Refused;
            }
            let slots = n_ready..n_ready + n;
            let n_tokens = slots.len() as u32;
            let n_replayed = context.n_tokens().saturating_sub(slots.start).min(n_tokens);
            let content = context.content_unless_plain(&self.device.store, slots.clone());
            self.note_computed(ticket.context, n_replayed, n_tokens);
            let chunk = Chunk {
                slots,
                content: content.as_ref(),
                ..Chunk::default()
            };
            self.add(ticket, &chunk);
            return Admission::Planned(n_tokens);
        }
        if ticket.is_ahead && !context.is_steady() {
            self.forget_ahead(ticket.context);
            return Admission::Planned(0);
        }
        let (needed, n_pages) = (
            pages_for(end, self.device.store.page_size()),
            self.device.store.n_pages(),
        );
        if needed > n_pages {
            self.fates
                .doomed
                .push((*ticket, never_fits(needed, n_pages, self.config)));
            return Admission::Refused;
        }
        if n_ready < end && self.n_readable(context, n_ready..end) == 0 {
            // Before anybody is displaced for it.
            return Admission::Refused;
        }
        let n_before = context.n_once_ready(&self.device.store);
        let made = self.make_ready(ticket, others);
        self.note_found(ticket.context, n_before);
        match made {
            Ok(copy) => self.admit_ready(ticket, n, n_before, copy),
            Err(Obstacle::Moving) => Admission::NotYet,
            Err(Obstacle::Short) => Admission::Refused,
        }
    }

    /// A context had `n_before` tokens and found more. Also where it has to wait: what it found then is its own from
    /// now on.
    fn note_found(&mut self, id: ContextId, n_before: u32) {
        let Some(context) = self.owned.contexts.get_mut(id.0) else {
            return self.totals.faults.count("what is queued has no context");
        };
        let n_found = context
            .n_once_ready(&self.device.store)
            .saturating_sub(n_before);
        self.totals.n_hits += u64::from(n_found > 0);
        self.totals.n_reused += u64::from(n_found);
        if let Some(pass) = &mut context.pass {
            pass.n_found += n_found;
        }
    }

    /// Gives the next `n` tokens of a request a place for which there is room. Of its context `n_before` tokens had
    /// been computed before.
    fn admit_ready(
        &mut self,
        ticket: &Ticket,
        n: u32,
        n_before: u32,
        copy: Option<PageCopy>,
    ) -> Admission {
        let Some(context) = self.owned.contexts.get_mut(ticket.context.0) else {
            self.totals.faults.count("what is queued has no context");
            return Admission::NotYet;
        };
        let (n_ready, end) = (context.lane.n_ready(), context.end());
        let Some(pass) = context.pass.as_mut() else {
            self.totals.faults.count("what is queued has no pass");
            return Admission::NotYet;
        };
        if n_ready == end && !pass.wants_rows() {
            return self.end_found(ticket);
        }
        let reread = n_ready == end;
        let start = n_ready - u32::from(reread);
        let wanted = start..start + n.min(end - start).max(1);
        let Some(context) = self.owned.contexts.get(ticket.context.0) else {
            self.totals.faults.count("what is queued has no context");
            return Admission::NotYet;
        };
        let content = context.content_unless_plain(&self.device.store, wanted.clone());
        let n_alike = content.as_ref().map_or(u32::MAX, Content::n_alike);
        let n = self.n_readable(context, wanted).min(n_alike);
        if n == 0 {
            // The room that this batch made is this batch's to use.
            if let Some(context) = self.owned.contexts.get_mut(ticket.context.0) {
                context.lane.give_up_room(&mut self.device.store, copy);
            }
            return Admission::Refused;
        }
        let slots = start..start + n;
        if !reread {
            let n_replayed = n_before.min(slots.end).saturating_sub(start);
            self.spare(ticket.context, n_replayed);
            self.note_computed(ticket.context, n_replayed, n);
        }
        let copy = copy.map(|copy| (n_ready / self.device.store.page_size(), copy));
        let chunk = Chunk {
            slots,
            reread,
            content: content.as_ref(),
            copy,
        };
        self.add(ticket, &chunk);
        Admission::Planned(n)
    }

    /// Of a pass nothing is left to compute: it is answered, or waits for token masks.
    fn end_found(&mut self, ticket: &Ticket) -> Admission {
        let context = self.owned.contexts.get_mut(ticket.context.0);
        let found = context.and_then(|context| {
            let n_tokens = context.n_tokens();
            Some((n_tokens, context.pass.as_mut()?, &mut context.lane))
        });
        let Some((n_tokens, pass, lane)) = found else {
            self.totals.faults.count("what is queued has no pass");
            return Admission::NotYet;
        };
        if !pass.drafts().is_empty() && !pass.draws() {
            // Somebody had computed the drafts of a step that draws nothing.
            self.totals.n_drafted += pass.drafts().len() as u64;
            pass.drop_drafts();
            lane.roll_back(&mut self.device.store, n_tokens + pass.n_computed());
        }
        let awaits = pass.n_late() > 0;
        let rests = if awaits {
            pass.await_masks()
        } else {
            pass.answer(None, false)
        };
        self.totals
            .faults
            .expect(rests, "a pass with nothing left to compute does not wait");
        self.totals.waited(pass.asked_ns.take(), self.now_ns);
        let answered = pass.request().filter(|_| !awaits);
        self.fates.done.push((ticket.context, answered));
        Admission::Planned(0)
    }

    /// A context computes again what it had lost: it keeps its pages for several times as long as that takes, or it
    /// might lose them again before it has come any further.
    fn spare(&mut self, id: ContextId, n_replayed: u32) {
        let repaid_ns = self.token_ns.saturating_mul(u64::from(n_replayed) * REPAID);
        let Some(context) = self.owned.contexts.get_mut(id.0) else {
            return self.totals.faults.count("what is queued has no context");
        };
        let from_ns = context.spared_until_ns.max(self.now_ns);
        context.spared_until_ns = from_ns.saturating_add(repaid_ns);
    }

    /// Of `n` tokens that a context computes `n_replayed` are not new: it owes as many, which new ones repay. One that
    /// loses its pages whenever it owes nothing has doubled each time, so it computes no more than its length again.
    pub(super) fn note_computed(&mut self, id: ContextId, n_replayed: u32, n: u32) {
        self.totals.n_replayed += u64::from(n_replayed);
        match self.owned.contexts.get_mut(id.0) {
            Some(context) => context.owe(n_replayed, n),
            None => self.totals.faults.count("what is queued has no context"),
        }
    }

    /// What ran ahead has lost its pages: it is computed again when it is asked for, and not before.
    fn forget_ahead(&mut self, id: ContextId) {
        let Some(context) = self.owned.contexts.get_mut(id.0) else {
            return self.totals.faults.count("what is queued has no context");
        };
        if context
            .pass
            .take_if(|pass| pass.request().is_none())
            .is_some()
        {
            context.trim(&mut self.device.store);
        } else if let Some(pass) = &mut context.pass {
            let stops = pass.stop_ahead();
            self.totals
                .faults
                .expect(stops, "what ran ahead has no answer");
            context.roll_back(&mut self.device.store);
        }
        self.totals.n_ahead_dropped += 1;
        self.fates.done.push((id, None));
    }

    /// How many of these tokens may be computed in this batch without there being too many rows.
    fn n_readable(&self, context: &Context, slots: Range<u32>) -> u32 {
        let Some(pass) = &context.pass else {
            return slots.end - slots.start;
        };
        let reads = pass.reads_within(slots.clone());
        let beyond = reads.get(self.row_room() as usize);
        let mut end = beyond.map_or(slots.end, |beyond| beyond.slot);
        if pass.counts_reads() {
            let mut left = self.config.max_batch_rows.saturating_sub(self.n_reads);
            let beyond = reads.iter().find(|read| {
                let (weight, fits) = (read.weight(), read.weight() <= left);
                left = left.saturating_sub(weight);
                !fits
            });
            if let Some(beyond) = beyond {
                // Where the rows of one token are more than a batch has room for, they have a batch for themselves.
                let is_alone = self.n_reads == 0 && beyond.slot == slots.start;
                end = end.min(beyond.slot + u32::from(is_alone));
            }
        }
        end - slots.start
    }

    /// How many rows more the driver takes in this batch.
    pub(super) fn row_room(&self) -> u32 {
        let most = self.config.driver.max_batch_tokens;
        most.saturating_sub(self.device.builder.n_rows() as u32)
    }
}
