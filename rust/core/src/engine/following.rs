//! The batch after the one that runs.
//!
//! A driver that feeds what it draws into its next batch is given that one while one runs, so that it never waits for
//! the host. A sequence whose token is still to be drawn follows it then: everything else of it is known. One whose
//! token mask may come late does not follow: its token is not drawn before the mask is there. Where the token ends the
//! generation, or the batch fails, what followed is dropped like a pass that was cancelled under way.

use super::Engine;
use super::device::{InFlight, Running};
use super::judging::{runs_ahead, standing};
use super::planner::Planner;
use super::requests::ticket;
use crate::context::PassKind;
use crate::generation::Next;
use crate::ids::BatchId;
use crate::kv::pages_for;
use crate::sched::{Admission, Ticket};

impl Engine {
    /// Enters what can follow the batch that runs into the queue, for one plan. Returns that batch where anything can.
    pub(super) fn enter_followers(&mut self) -> Option<BatchId> {
        let [batch] = self.device.in_flight.as_slice() else {
            return None;
        };
        // Where the batch brings pages back, its failure would take them from what follows, which uses them.
        if !self.config.driver.follows || batch.abandoned || !batch.moves.ins.is_empty() {
            return None;
        }
        // A driver keeps the rows of its last batch alone.
        if batch.id.0 != self.totals.n_batches {
            return None;
        }
        let before = batch.id;
        let followers = batch.sequences.iter();
        let followers = followers.filter_map(|running| self.follower(batch, running));
        let followers: Vec<Ticket> = followers.collect();
        let is_followed = !followers.is_empty();
        for ticket in followers {
            self.waiting.queue.push(ticket);
        }
        is_followed.then_some(before)
    }

    /// The place of a sequence that runs in the batch after; none where it will or may not need one.
    fn follower(&self, batch: &InFlight, running: &Running) -> Option<Ticket> {
        let context = self.owned.contexts.get(running.context.0)?;
        let pass = context.pass.as_ref()?;
        let runs = context.lease == Some(batch.id)
            && !context.released
            && pass.id == running.pass
            && pass.is_running()
            && !pass.is_ahead()
            && pass.can_be_followed()
            && context.lane.is_whole();
        let id = pass.kind.generator()?;
        let row = running.rows.clone().next_back()?;
        let generator = self.owned.generators.get(id.0).filter(|_| runs)?;
        // Of what is drafted next nothing is known yet.
        let runs_alone = !generator.may_draft();
        let is_step = matches!(pass.kind, PassKind::Step(_));
        // Whatever the token is that is to be drawn.
        let goes_on = generator.after_any(1, &standing(&self.config, context, pass)) == Next::Go
            && (!is_step || runs_ahead(&self.config, generator));
        let fits = pages_for(context.end() + 1, self.config.driver.page_size)
            <= self.device.store.n_pages();
        let ticket = ticket(running.context, context, batch.id.0)?;
        (goes_on && fits && runs_alone).then_some(Ticket {
            n_tokens: 1,
            // Nobody has asked for it yet.
            is_ahead: is_step,
            follows: Some(row),
            ..ticket
        })
    }

    /// A batch is answered before the one that a sequence of it follows: what the sequence drew is dropped, and drawn
    /// again.
    pub(super) fn give_back(&mut self, sequence: &Running, before: BatchId) {
        match self.owned.contexts.get_mut(sequence.context.0) {
            Some(context) => context.lease = Some(before),
            None => self.totals.faults.count("what follows has no context"),
        }
        self.totals.n_followers_dropped += 1;
    }

    /// A batch was answered: a driver that runs one after the other begins the next one that it has.
    pub(super) fn begin_next(&mut self, answered: BatchId, now_ns: u64) {
        if !self.config.driver.follows {
            return;
        }
        let next = self
            .device
            .in_flight
            .iter_mut()
            .min_by_key(|batch| batch.id.0);
        if let Some(next) = next.filter(|next| next.id.0 > answered.0) {
            next.since_ns = now_ns;
        }
    }
}

impl Planner<'_> {
    /// Gives a sequence a place whose only token is drawn from a row of the batch that runs. Nothing is displaced for
    /// it.
    pub(super) fn follow(&mut self, ticket: &Ticket) -> Admission {
        if self.row_room() == 0 {
            return Admission::Refused;
        }
        let Some(context) = self.owned.contexts.get_mut(ticket.context.0) else {
            self.totals.faults.count("what follows has no context");
            return Admission::NotYet;
        };
        let (length, lane) = (context.end() + 1, &mut context.lane);
        if !lane.extend(
            &mut self.device.store,
            self.demand,
            &mut self.batch.moves,
            length,
        ) {
            return Admission::NotYet;
        }
        self.add_follower(ticket);
        self.note_computed(ticket.context, 0, 1);
        Admission::Planned(1)
    }
}
