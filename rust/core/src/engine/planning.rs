//! The driver asks for a batch.

use super::admitting::Planner;
use super::{Engine, InFlight};
use crate::batch::{Batch, SampleJobs};
use crate::errors::Error;
use crate::ids::{BatchId, PassId};
use crate::kv::{Claim, Moves};
use crate::sched::{Limits, Ticket, Work};

/// What a driver should do next.
#[derive(Clone, Debug)]
pub enum Plan {
    /// Run this.
    Batch(Batch),
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
    pub fn next_batch(&mut self, now_ns: u64) -> Plan {
        self.now_ns = now_ns;
        if self.is_stuck() {
            return Plan::Idle;
        }
        self.totals.n_waiting_max = self.totals.n_waiting_max.max(self.queue.len() as u64);
        let before = self.enter_followers();
        let plan = self.plan_some(now_ns, before);
        if before.is_some() {
            self.queue.drop_followers();
        }
        plan
    }

    fn plan_some(&mut self, now_ns: u64, before: Option<BatchId>) -> Plan {
        let mut urgent = None;
        loop {
            if self.queue.len() == 0 {
                self.hold.release();
                return Plan::Idle;
            }
            let full = self.queue.len()
                >= self.config.max_batch_seqs.min(self.config.max_batch_tokens) as usize;
            // What follows a batch that runs is not kept from the device.
            if !full
                && before.is_none()
                && let Some(until_ns) = self.hold.until(now_ns)
            {
                self.totals.n_holds += 1;
                return Plan::HoldUntil(until_ns);
            }
            let attempt = self.plan(now_ns, urgent, before);
            let n_ended = attempt.doomed.len() + attempt.n_done;
            for (ticket, error) in attempt.doomed {
                self.queue.remove(ticket.pass);
                self.fail(ticket.context, ticket.pass, error);
            }
            if let Some(batch) = attempt.batch {
                self.hold.release();
                return Plan::Batch(batch);
            }
            if !self.in_flight.is_empty() {
                // Asked again while the same batch runs: nobody was passed over by a batch.
                self.queue.forget_plan();
                return Plan::Idle;
            }
            if n_ended > 0 {
                continue;
            }
            if let Some(retry_ns) = attempt.retry_ns {
                return Plan::HoldUntil(retry_ns);
            }
            // Those that wait keep each other out: the oldest displaces every other, and since it fits it runs.
            let Some(stuck) = self.queue.oldest() else {
                return Plan::Idle;
            };
            if urgent.replace(stuck.pass) != Some(stuck.pass) {
                continue;
            }
            self.queue.remove(stuck.pass);
            self.fail(
                stuck.context,
                stuck.pass,
                Error::internal("no request can run and nothing can be displaced"),
            );
        }
    }

    fn plan(&mut self, now_ns: u64, urgent: Option<PassId>, before: Option<BatchId>) -> Attempt {
        let id = BatchId(self.totals.n_batches + 1);
        let limits = Limits {
            n_tokens: self.config.max_batch_tokens,
            n_sequences: self.config.max_batch_seqs,
            prefill_chunk: self.config.prefill_chunk,
        };
        let mut planner = Planner {
            claim: Claim {
                batch: id,
                displace: self
                    .costs
                    .displace(self.config.page_size, self.config.copy_page_ns),
            },
            now_ns,
            token_ns: self.costs.token_ns(),
            urgent,
            contexts: &mut self.contexts,
            store: &mut self.store,
            builder: &mut self.builder,
            idle: &mut self.idle,
            totals: &mut self.totals,
            moves: Moves::default(),
            running: Vec::new(),
            riders: Vec::new(),
            work: Work::default(),
            n_rows: 0,
            n_reads: 0,
            max_reads: self.config.max_batch_rows,
            pages: Vec::new(),
            doomed: Vec::new(),
            done: Vec::new(),
            retry_ns: None,
        };
        self.queue.urgent = urgent;
        self.queue.pace.tell(now_ns, self.users.len());
        self.queue
            .plan(limits, self.in_flight.is_empty(), &mut planner);
        let Planner {
            moves,
            running,
            riders,
            work,
            n_rows,
            doomed,
            done,
            retry_ns,
            ..
        } = planner;
        let n_done = done.len();
        for (context, request) in done {
            self.ready.extend(request);
            self.rest(context);
        }
        let mut attempt = Attempt {
            batch: None,
            doomed,
            n_done,
            retry_ns,
        };
        if running.is_empty() && moves.is_empty() {
            return attempt;
        }
        for out in &moves.outs {
            self.builder.add_swap_out(out.page, out.slot);
        }
        for back in &moves.ins {
            self.builder.add_swap_in(back.slot, back.page);
        }
        let totals = &mut self.totals;
        totals.n_batches += 1;
        totals.n_sequences += running.len() as u64;
        totals.n_rows += n_rows;
        totals.n_tokens += self.builder.n_tokens() as u64;
        totals.batch_sequences.count(running.len() as u64);
        totals.batch_tokens.count(self.builder.n_tokens() as u64);
        let before = before.filter(|_| running.iter().any(|running| running.follows));
        if let Some(before) = before {
            self.builder.follow(before);
        }
        self.in_flight.push(InFlight {
            id,
            before,
            lent: Vec::new(),
            sequences: running,
            riders,
            moves,
            work,
            n_tokens: self.builder.n_tokens() as u32,
            since_ns: now_ns,
            abandoned: false,
        });
        let arena = self.builder.finish(id);
        attempt.batch = Some(Batch {
            id,
            jobs: SampleJobs::new(arena.clone(), self.config.vocab_size),
            arena,
        });
        attempt
    }
}
