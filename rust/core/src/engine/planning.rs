//! The driver asks for a batch.

use super::requests::never_fits;
use super::{Engine, InFlight, Running};
use crate::batch::{Adapter, ArenaBuilder, Batch, Masks, Positions, Row, SampleJobs, Sequence};
use crate::context::Context;
use crate::errors::{Error, ErrorCode};
use crate::ids::{BatchId, RequestId};
use crate::kv::{PagePool, pages_for};
use crate::sampling::Key;
use crate::sched::{Admission, Limits, Ticket};
use crate::slab::Slab;

/// How often pages are looked for while there are none: programs release them without telling the driver.
const SHORTAGE_POLL_NS: u64 = 5_000_000;

/// What a driver should do next.
#[derive(Clone, Debug)]
pub enum Plan {
    /// Run this.
    Batch(Batch),
    /// Nothing can run: ask again when a request was entered or a batch was completed.
    Idle,
    /// Programs are expected back, or pages may come free: ask again at that time, or when a request was entered.
    HoldUntil(u64),
}

impl Engine {
    /// What a driver should do next. Requests that cannot be served at all become ready with an error.
    pub fn next_batch(&mut self, now_ns: u64) -> Plan {
        loop {
            if self.queue.len() == 0 {
                self.short_since_ns = None;
                self.hold.release();
                return Plan::Idle;
            }
            let full = self.queue.len()
                >= self.config.max_batch_seqs.min(self.config.max_batch_tokens) as usize;
            if !full && let Some(until_ns) = self.hold.until(now_ns) {
                self.totals.n_holds += 1;
                return Plan::HoldUntil(until_ns);
            }
            let (planned, doomed) = self.plan(now_ns);
            let n_doomed = doomed.len();
            for (request, error) in doomed {
                self.queue.remove(request);
                self.fail(request, error);
            }
            if let Some(batch) = planned {
                self.short_since_ns = None;
                self.hold.release();
                return Plan::Batch(batch);
            }
            if !self.in_flight.is_empty() {
                return Plan::Idle;
            }
            if n_doomed > 0 {
                continue;
            }
            if let Some(until_ns) = self.wait_for_pages(now_ns) {
                return Plan::HoldUntil(until_ns);
            }
        }
    }

    /// The next batch, if anything can run, and the requests whose contexts have outgrown the pool.
    fn plan(&mut self, now_ns: u64) -> (Option<Batch>, Vec<(RequestId, Error)>) {
        let id = BatchId(self.totals.n_batches + 1);
        let limits = Limits {
            n_tokens: self.config.max_batch_tokens,
            n_sequences: self.config.max_batch_seqs,
            prefill_chunk: self.config.prefill_chunk,
        };
        let mut planner = Planner {
            id,
            page_size: self.config.page_size,
            contexts: &mut self.contexts,
            pool: &mut self.pool,
            builder: &mut self.builder,
            running: Vec::new(),
            doomed: Vec::new(),
            n_rows: 0,
            n_copies: 0,
        };
        self.queue
            .plan(limits, self.in_flight.is_empty(), |ticket, n| {
                planner.admit(ticket, n)
            });
        let Planner {
            running,
            doomed,
            n_rows,
            n_copies,
            ..
        } = planner;
        if running.is_empty() {
            return (None, doomed);
        }
        let totals = &mut self.totals;
        totals.n_batches += 1;
        totals.n_sequences += running.len() as u64;
        totals.n_rows += n_rows;
        totals.n_tokens += self.builder.n_tokens() as u64;
        totals.n_copies += n_copies;
        self.in_flight.push(InFlight {
            id,
            sequences: running,
            since_ns: now_ns,
        });
        let arena = self.builder.finish(id);
        let jobs = SampleJobs::new(arena.clone(), self.config.vocab_size);
        (Some(Batch { id, arena, jobs }), doomed)
    }

    /// Nothing runs and every waiting request lacks pages. Answers until when to wait for programs that hold pages without
    /// waiting for any; when there are none, or they took too long, the youngest request fails so that the others go on.
    fn wait_for_pages(&mut self, now_ns: u64) -> Option<u64> {
        let since_ns = *self.short_since_ns.get_or_insert(now_ns);
        let deadline_ns = since_ns.saturating_add(self.config.page_wait_ns);
        let held_idly = |context: &Context| {
            !context.table.pages().is_empty()
                && !context.pass.as_ref().is_some_and(|pass| pass.is_waiting())
        };
        if now_ns < deadline_ns && self.contexts.iter().any(|(_, context)| held_idly(context)) {
            return Some(deadline_ns.min(now_ns.saturating_add(SHORTAGE_POLL_NS)));
        }
        let youngest = self.queue.youngest()?;
        let (n_free, n_pages) = (self.pool.n_free(), self.pool.n_pages());
        let needed = self.contexts.get(youngest.context.0).map_or(0, |context| {
            let n_tokens =
                context.n_computed() + context.pass.as_ref().map_or(0, |pass| pass.n_tokens());
            pages_for(n_tokens, self.config.page_size)
        });
        let message = format!(
            "the context needs {needed} pages, {n_free} of {n_pages} are free, and nothing that runs would free more; release or shorten contexts, or start the engine with more pages"
        );
        let values = [
            ("needed", u64::from(needed)),
            ("free", u64::from(n_free)),
            ("limit", u64::from(n_pages)),
        ];
        self.queue.remove(youngest.request);
        self.fail(
            youngest.request,
            Error::with_values(ErrorCode::OutOfPages, message, &values),
        );
        self.totals.n_out_of_pages += 1;
        // What it held may let the others run; if not, the next one waits as long before it fails.
        self.short_since_ns = None;
        None
    }
}

/// A batch in the making: what the scheduler offers is given pages and written into the arena.
struct Planner<'a> {
    id: BatchId,
    page_size: u32,
    contexts: &'a mut Slab<Context>,
    pool: &'a mut PagePool,
    builder: &'a mut ArenaBuilder,
    running: Vec<Running>,
    doomed: Vec<(RequestId, Error)>,
    n_rows: u64,
    n_copies: u64,
}

impl Planner<'_> {
    /// Gives the next `n` tokens of a request a place in the batch. The pages of all the tokens that the pass will compute are
    /// reserved with its first chunk, so that prefills do not block each other half-way.
    fn admit(&mut self, ticket: &Ticket, n: u32) -> Admission {
        let Some(context) = self.contexts.get_mut(ticket.context.0) else {
            return Admission::NotYet;
        };
        if context.lease.is_some() {
            return Admission::NotYet;
        }
        let n_computed = context.n_computed();
        let Some(pass) = context.pass.as_mut() else {
            return Admission::NotYet;
        };
        let rereads = pass.rereads();
        let start = n_computed + pass.n_computed();
        let end = n_computed + pass.n_tokens();
        let copy = match context.table.reserve(self.pool, self.page_size, start, end) {
            Ok(copy) => copy,
            Err(shortage) => {
                if pages_for(end, self.page_size) > self.pool.n_pages() {
                    self.doomed.push((
                        ticket.request,
                        never_fits(
                            shortage.needed.max(pages_for(end, self.page_size)),
                            self.pool.n_pages(),
                        ),
                    ));
                }
                return Admission::Refused;
            }
        };
        let last = context.tokens.last().copied().unwrap_or(0);
        let (tokens, first_position, length) = if rereads {
            (std::slice::from_ref(&last), start.saturating_sub(1), start)
        } else {
            (pass.chunk(n), start, start + n)
        };
        let n_new = tokens.len() as u32;
        let n_pages = pages_for(length, self.page_size) as usize;
        let pages = context.table.pages();
        self.builder.add_sequence(&Sequence {
            context: ticket.context,
            request: ticket.request,
            tokens,
            positions: Positions::From(first_position),
            masks: Masks::Causal,
            adapter: Adapter::default(),
            media: 0,
            pages: &pages[..n_pages.min(pages.len())],
            replaced: copy.map(|copy| (copy.page_idx, copy.dst)),
            length,
            reread: rereads,
        });
        if let Some(copy) = copy {
            self.builder.add_copy(copy.src, copy.dst);
            self.n_copies += 1;
        }
        if let Some(draws) = pass.draws.filter(|_| pass.n_remaining() == n) {
            let key = Key {
                seed: draws.seed,
                position: end,
                slot: 0,
                draw: 0,
            };
            self.builder.add_row(&Row {
                token_idx: n_new.saturating_sub(1),
                params: draws.params,
                key,
                n_draws: 1,
                mask: &[],
                keep: false,
            });
            self.n_rows += 1;
        }
        pass.start(n);
        context.lease = Some(self.id);
        self.running.push(Running {
            context: ticket.context,
            request: ticket.request,
            copy,
        });
        Admission::Planned
    }
}
