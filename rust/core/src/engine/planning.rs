//! The driver asks for a batch.

use super::Engine;
use super::device::InFlight;
use super::planner::{Fates, Planner};
use super::waiting::Waiting;
use crate::batch::{Batch, SampleJobs};
use crate::command::DriverCommand;
use crate::errors::Error;
use crate::ids::{BatchId, PassId};
use crate::kv::PageDemand;
use crate::sched::{BatchRoom, Queue, Ticket};

/// What a driver should do next.
#[derive(Clone, Debug)]
pub enum NextWork {
    /// Run this.
    Batch(Batch),
    /// Carry this out; nothing else runs meanwhile.
    Command(DriverCommand),
    /// Nothing can run, or the driver hangs: ask again when a request was entered or a batch was completed.
    Idle,
    /// Programs are expected back: ask again at that time, or when a request was entered.
    HoldUntil(u64),
}

/// What came of an attempt to plan.
struct Attempt {
    batch: Option<Batch>,
    /// Requests whose contexts have outgrown the pool.
    doomed: Vec<(Ticket, Error)>,
    /// Passes of which everything was there already.
    n_done: usize,
    /// When pages may be had that programs expected back hold now.
    retry_ns: Option<u64>,
}

impl Engine {
    /// What a driver should do next. Requests that cannot be served at all become ready with an error.
    pub fn next_batch(&mut self, now_ns: u64) -> NextWork {
        self.now_ns = now_ns;
        if self.is_stuck() {
            return NextWork::Idle;
        }
        if let Some(plan) = self.plan_command(now_ns) {
            return plan;
        }
        self.totals.n_waiting_max = self
            .totals
            .n_waiting_max
            .max(self.waiting.queue.len() as u64);
        let before = self.enter_followers();
        let plan = self.plan_some(now_ns, before);
        if before.is_some() {
            self.waiting.queue.drop_followers();
        }
        match plan {
            NextWork::Batch(_) => {
                self.device.commands.note_batch();
                plan
            }
            _ => self.next_command(now_ns).unwrap_or(plan),
        }
    }

    fn plan_some(&mut self, now_ns: u64, before: Option<BatchId>) -> NextWork {
        let mut urgent = None;
        loop {
            if self.waiting.queue.len() == 0 {
                self.waiting.hold.release();
                return NextWork::Idle;
            }
            let full = self.waiting.queue.len()
                >= self.config.max_batch_seqs.min(self.config.max_batch_tokens) as usize;
            // What follows a batch that runs is not kept from the device.
            if !full
                && before.is_none()
                && let Some(until_ns) = self.waiting.hold.until(now_ns)
            {
                self.totals.n_holds += 1;
                return NextWork::HoldUntil(until_ns);
            }
            let attempt = self.plan(now_ns, urgent, before);
            let n_ended = attempt.doomed.len() + attempt.n_done;
            for (ticket, error) in attempt.doomed {
                self.waiting.queue.remove(ticket.pass);
                self.fail(ticket.context, ticket.pass, error);
            }
            if let Some(batch) = attempt.batch {
                self.waiting.hold.release();
                return NextWork::Batch(batch);
            }
            if !self.device.in_flight.is_empty() {
                // Asked again while the same batch runs: nobody was passed over by a batch.
                self.waiting.queue.forget_plan();
                return NextWork::Idle;
            }
            if n_ended > 0 {
                continue;
            }
            if let Some(retry_ns) = attempt.retry_ns {
                return NextWork::HoldUntil(retry_ns);
            }
            // Those that wait keep each other out: the oldest displaces every other, and since it fits it runs.
            let Some(stuck) = self.waiting.queue.oldest() else {
                return NextWork::Idle;
            };
            if urgent.replace(stuck.pass) != Some(stuck.pass) {
                continue;
            }
            self.waiting.queue.remove(stuck.pass);
            self.fail(
                stuck.context,
                stuck.pass,
                Error::internal("no request can run and nothing can be displaced"),
            );
        }
    }

    fn plan(&mut self, now_ns: u64, urgent: Option<PassId>, before: Option<BatchId>) -> Attempt {
        let limits = BatchRoom {
            n_tokens: self.config.max_batch_tokens,
            n_sequences: self.config.max_batch_seqs,
            prefill_chunk: self.config.prefill_chunk,
        };
        self.waiting.queue.urgent = urgent;
        self.waiting.queue.pace.tell(now_ns, self.owned.users.len());
        let is_idle = self.device.in_flight.is_empty();
        let (mut planner, queue) = self.planner(urgent, now_ns);
        queue.plan(limits, is_idle, &mut planner);
        let Planner {
            batch,
            fates,
            auction,
            ..
        } = planner;
        self.waiting.queue.outbidding = fates.outbidding;
        let n_done = fates.done.len();
        for (context, request) in fates.done {
            self.ready.extend(request);
            self.keep_late(context, now_ns);
            self.rest(context);
        }
        if !batch.is_empty() {
            self.settle_market(auction.as_ref());
        }
        Attempt {
            batch: (!batch.is_empty()).then(|| self.launch(batch, before)),
            doomed: fates.doomed,
            n_done,
            retry_ns: fates.retry_ns,
        }
    }

    /// An empty batch in the making, and who is offered a place in it.
    fn planner(&mut self, urgent: Option<PassId>, now_ns: u64) -> (Planner<'_>, &mut Queue) {
        let (page_size, copy_page_ns) = (
            self.config.driver.page_size,
            self.config.driver.copy_page_ns,
        );
        let id = BatchId(self.totals.n_batches + 1);
        let Waiting {
            queue, idle, costs, ..
        } = &mut self.waiting;
        let mut batch = InFlight::new(id, now_ns);
        let most = self.config.max_batch_seqs as usize;
        batch.sequences.reserve(queue.len().min(most));
        let planner = Planner {
            demand: PageDemand {
                batch: id,
                displace: costs.displace(page_size, copy_page_ns),
            },
            now_ns,
            token_ns: costs.token_ns(),
            urgent,
            config: &self.config,
            owned: &mut self.owned,
            market: &self.market,
            idle,
            device: &mut self.device,
            totals: &mut self.totals,
            batch,
            n_reads: 0,
            last_pages: Vec::new(),
            fates: Fates::default(),
            auction: None,
        };
        (planner, queue)
    }

    /// A batch was made: it is in flight from now on. `before` is the one that some of its sequences may follow.
    fn launch(&mut self, mut batch: InFlight, before: Option<BatchId>) -> Batch {
        for out in &batch.moves.outs {
            self.device.builder.add_swap_out(out.page, out.slot);
        }
        for back in &batch.moves.ins {
            self.device.builder.add_swap_in(back.slot, back.page);
        }
        batch.n_tokens = self.device.builder.n_tokens() as u32;
        let (n_sequences, n_tokens) = (batch.sequences.len() as u64, u64::from(batch.n_tokens));
        let totals = &mut self.totals;
        totals.n_batches += 1;
        totals.n_sequences += n_sequences;
        totals.n_rows += self.device.builder.n_rows() as u64;
        totals.n_tokens += n_tokens;
        totals.batch_sequences.count(n_sequences);
        totals.batch_tokens.count(n_tokens);
        batch.before = before.filter(|_| batch.sequences.iter().any(|running| running.follows));
        if let Some(before) = batch.before {
            self.device.builder.follow(before);
        }
        let (id, late) = (batch.id, std::mem::take(&mut batch.late));
        let reads = std::mem::take(&mut batch.reads);
        self.device.in_flight.push(batch);
        let arena = self.device.builder.finish(id);
        Batch {
            id,
            jobs: SampleJobs::new(arena.clone(), &self.config.driver, reads),
            arena,
            late,
        }
    }
}
