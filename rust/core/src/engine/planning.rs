//! The driver asks for a batch.

use std::collections::VecDeque;
use std::ops::Range;

use super::requests::never_fits;
use super::{Engine, Idle, InFlight, Rider, Running};
use crate::batch::{Adapter, ArenaBuilder, Batch, Masks, Positions, Row, SampleJobs, Sequence};
use crate::context::Context;
use crate::errors::Error;
use crate::ids::{BatchId, ContextId, PageId, RequestId};
use crate::kv::{Claim, Content, Moves, Obstacle, PageCopy, PageStore, Traits, pages_for};
use crate::sampling::Key;
use crate::sched::{Admission, Admit, Limits, Ticket};
use crate::slab::Slab;

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
        let mut urgent = None;
        loop {
            if self.queue.len() == 0 {
                self.hold.release();
                return Plan::Idle;
            }
            let full = self.queue.len()
                >= self.config.max_batch_seqs.min(self.config.max_batch_tokens) as usize;
            if !full && let Some(until_ns) = self.hold.until(now_ns) {
                self.totals.n_holds += 1;
                return Plan::HoldUntil(until_ns);
            }
            let attempt = self.plan(now_ns, urgent);
            let n_ended = attempt.doomed.len() + attempt.n_done;
            for (ticket, error) in attempt.doomed {
                self.queue.remove(ticket.arrival);
                self.fail(ticket.context, ticket.arrival, error);
            }
            if let Some(batch) = attempt.batch {
                self.hold.release();
                return Plan::Batch(batch);
            }
            if !self.in_flight.is_empty() {
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
            if urgent.replace(stuck.arrival) != Some(stuck.arrival) {
                continue;
            }
            self.queue.remove(stuck.arrival);
            self.fail(
                stuck.context,
                stuck.arrival,
                Error::internal("no request can run and nothing can be displaced"),
            );
        }
    }

    fn plan(&mut self, now_ns: u64, urgent: Option<u64>) -> Attempt {
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
            urgent,
            contexts: &mut self.contexts,
            store: &mut self.store,
            builder: &mut self.builder,
            idle: &mut self.idle,
            totals: &mut self.totals,
            moves: Moves::default(),
            running: Vec::new(),
            riders: Vec::new(),
            n_rows: 0,
            n_reads: 0,
            max_reads: self.config.max_batch_rows,
            pages: Vec::new(),
            doomed: Vec::new(),
            done: Vec::new(),
            retry_ns: None,
        };
        self.queue.urgent = urgent;
        self.queue
            .plan(limits, self.in_flight.is_empty(), &mut planner);
        let Planner {
            moves,
            running,
            riders,
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
        self.in_flight.push(InFlight {
            id,
            sequences: running,
            riders,
            moves,
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

/// A batch in the making: what the scheduler offers is given pages and written into the arena.
pub(super) struct Planner<'a> {
    pub(super) claim: Claim,
    pub(super) now_ns: u64,
    /// A request that displaces every other, where none can run.
    pub(super) urgent: Option<u64>,
    pub(super) contexts: &'a mut Slab<Context>,
    pub(super) store: &'a mut PageStore,
    builder: &'a mut ArenaBuilder,
    pub(super) idle: &'a mut VecDeque<Idle>,
    pub(super) totals: &'a mut super::stats::Totals,
    pub(super) moves: Moves,
    running: Vec<Running>,
    riders: Vec<Rider>,
    n_rows: u64,
    /// Rows of forward passes, and the most that there may be.
    n_reads: u32,
    max_reads: u32,
    /// The pages of the sequence that is added; its memory serves one after the other.
    pages: Vec<PageId>,
    doomed: Vec<(Ticket, Error)>,
    /// Passes of which nothing is left to compute, and contexts whose pass ran ahead in vain.
    done: Vec<(ContextId, Option<RequestId>)>,
    pub(super) retry_ns: Option<u64>,
}

impl Admit for Planner<'_> {
    /// The pages of all the tokens that the pass will compute are reserved with its first chunk, so that prefills do not block each other
    /// half-way.
    fn admit(&mut self, ticket: &Ticket, n: u32, others: &[Ticket]) -> Admission {
        let admission = self.try_admit(ticket, n, others);
        let runs = matches!(admission, Admission::Planned(n) if n > 0);
        if let Some(context) = self.contexts.get_mut(ticket.context.0).filter(|_| !runs)
            && context.lease.is_none()
            && context
                .lane
                .pinned()
                .any(|node| self.store.moving(node).is_some())
        {
            // Pages that it uses come back with this batch, though nothing of it is computed.
            context.lease = Some(self.claim.batch);
            self.riders.push(Rider {
                context: ticket.context,
                arrival: ticket.arrival,
            });
        }
        admission
    }

    fn n_tokens(&self, ticket: &Ticket) -> u32 {
        self.contexts
            .get(ticket.context.0)
            .map_or(1, Context::n_remaining)
    }
}

impl Planner<'_> {
    fn try_admit(&mut self, ticket: &Ticket, n: u32, others: &[Ticket]) -> Admission {
        let Some(context) = self.contexts.get(ticket.context.0) else {
            return Admission::NotYet;
        };
        if context.lease.is_some() || context.pass.is_none() {
            return Admission::NotYet;
        }
        let (end, n_pages) = (context.end(), self.store.n_pages());
        if context.is_steady()
            && context.lane.n_ready() < end
            && context.lane.is_exact(self.store, end)
        {
            if self.n_readable(context, end - 1..end) == 0 {
                return Admission::Refused;
            }
            self.totals.n_replayed += u64::from(context.lane.n_ready() < context.n_tokens());
            self.add(ticket, end - 1..end, false, None);
            return Admission::Planned(1);
        }
        if ticket.is_ahead && !context.is_steady() {
            self.forget_ahead(ticket.context);
            return Admission::Planned(0);
        }
        let needed = pages_for(end, self.store.page_size());
        if needed > n_pages {
            self.doomed.push((*ticket, never_fits(needed, n_pages)));
            return Admission::Refused;
        }
        let n_ready = context.lane.n_ready();
        if n_ready < end && self.n_readable(context, n_ready..end) == 0 {
            // Before anybody is displaced for it.
            return Admission::Refused;
        }
        let n_before = context.n_once_ready(self.store);
        let made = self.make_ready(ticket, others);
        let Some(context) = self.contexts.get_mut(ticket.context.0) else {
            return Admission::NotYet;
        };
        // Also where it has to wait: what it found then is its own from now on.
        let n_found = context.n_once_ready(self.store).saturating_sub(n_before);
        self.totals.n_hits += u64::from(n_found > 0);
        self.totals.n_reused += u64::from(n_found);
        if let Some(pass) = &mut context.pass {
            pass.n_found += n_found;
        }
        let copy = match made {
            Ok(copy) => copy,
            Err(Obstacle::Moving) => return Admission::NotYet,
            Err(Obstacle::Short) => return Admission::Refused,
        };
        let n_ready = context.lane.n_ready();
        let Some(pass) = context.pass.as_mut() else {
            return Admission::NotYet;
        };
        if n_ready == end && !pass.wants_rows() {
            pass.answer(None, false);
            self.totals.waited(pass.asked_ns.take(), self.now_ns);
            self.done.push((ticket.context, pass.request));
            return Admission::Planned(0);
        }
        let rereads = n_ready == end;
        let start = n_ready - u32::from(rereads);
        let wanted = start..start + n.min(end - start).max(1);
        let Some(context) = self.contexts.get(ticket.context.0) else {
            return Admission::NotYet;
        };
        let n = self
            .n_readable(context, wanted.clone())
            .min(context.n_alike(self.store, wanted));
        if n == 0 {
            // The room that this batch made is this batch's to use.
            if let Some(context) = self.contexts.get_mut(ticket.context.0) {
                context.lane.give_up_room(self.store, copy);
            }
            return Admission::Refused;
        }
        let length = start + n;
        self.totals.n_replayed +=
            u64::from(n_before.min(length).saturating_sub(start)) * u64::from(!rereads);
        self.add(
            ticket,
            start..length,
            rereads,
            copy.map(|copy| (n_ready / self.store.page_size(), copy)),
        );
        Admission::Planned(n)
    }

    /// What ran ahead has lost its pages: it is computed again when it is asked for, and not before.
    fn forget_ahead(&mut self, id: ContextId) {
        let Some(context) = self.contexts.get_mut(id.0) else {
            return;
        };
        if context
            .pass
            .take_if(|pass| pass.request.is_none())
            .is_some()
        {
            context.trim(self.store);
        } else if let Some(pass) = &mut context.pass {
            pass.stop_ahead();
            context.roll_back(self.store);
        }
        self.totals.n_ahead_dropped += 1;
        self.done.push((id, None));
    }

    /// How many of these tokens may be computed in this batch without there being too many rows.
    fn n_readable(&self, context: &Context, slots: Range<u32>) -> u32 {
        let reads = context.pass.as_ref().and_then(|pass| pass.reads.as_ref());
        let wanted = reads.map_or(&[][..], |reads| reads.within(slots.clone()));
        let left = self.max_reads.saturating_sub(self.n_reads);
        match wanted.get(left as usize) {
            Some(beyond) => beyond.slot - slots.start,
            None => slots.end - slots.start,
        }
    }

    /// Writes the tokens in these slots of a context into the batch. `copy` is made of the page at that index.
    fn add(
        &mut self,
        ticket: &Ticket,
        slots: Range<u32>,
        reread: bool,
        copy: Option<(u32, PageCopy)>,
    ) {
        let Some(context) = self.contexts.get_mut(ticket.context.0) else {
            return;
        };
        context.lease = Some(self.claim.batch);
        if let Some(pass) = &mut context.pass {
            pass.start();
            self.totals.waited(pass.asked_ns.take(), self.now_ns);
        }
        let context = &*context;
        let Some(pass) = &context.pass else { return };
        let length = slots.end;
        let n_pages = pages_for(length, self.store.page_size()) as usize;
        let full = context.lane.full_pages();
        self.pages.clear();
        self.pages
            .extend_from_slice(&full[..n_pages.min(full.len())]);
        let n_behind = n_pages.saturating_sub(full.len());
        self.pages
            .extend(context.lane.pages_behind(self.store).take(n_behind));
        let sequence = Sequence {
            context: ticket.context,
            request: pass.request.unwrap_or(RequestId(0)),
            tokens: &[],
            positions: Positions::From(slots.start),
            masks: Masks::Causal,
            adapter: pass.adapter(),
            media: 0,
            pages: &self.pages,
            replaced: copy.map(|(page_idx, copy)| (page_idx, copy.dst)),
            length,
            reread,
        };
        let adapter = match pass.tokens_at(slots.clone()) {
            Some(tokens) => {
                self.builder.add_sequence(&Sequence { tokens, ..sequence });
                pass.adapter()
            }
            None => {
                let content = context.content_at(self.store, slots.clone());
                add_content(self.builder, sequence, &content, slots.start)
            }
        };
        if let Some((_, copy)) = copy {
            self.builder.add_copy(copy.src, copy.dst);
            self.totals.n_copies += 1;
        }
        // A token that is computed again with the adapter that it was written with is read by the next batch with that of the pass.
        let is_read = length == context.end() && adapter == pass.adapter();
        if let Some(draws) = pass.draws.filter(|_| is_read) {
            let key = Key {
                seed: draws.seed,
                position: length,
                slot: 0,
                draw: 0,
            };
            self.builder.add_row(&Row {
                token_idx: length - slots.start - 1,
                params: draws.params,
                key,
                n_draws: 1,
                mask: &[],
                keep: false,
            });
            self.n_rows += 1;
        }
        if let Some(reads) = &pass.reads {
            let wanted = reads.within(slots.clone());
            for read in wanted {
                self.builder.add_row(&Row {
                    token_idx: read.slot - slots.start,
                    params: read.params,
                    key: read.key,
                    n_draws: read.n_draws,
                    mask: if read.n_draws > 0 {
                        &reads.token_mask
                    } else {
                        &[]
                    },
                    keep: read.keep,
                });
            }
            self.n_reads += wanted.len() as u32;
            self.n_rows += wanted.len() as u64;
        }
        let ends = length == context.end() && (pass.draws.is_none() || is_read);
        if let Some(context) = self.contexts.get_mut(ticket.context.0)
            && let Some(pass) = &mut context.pass
        {
            pass.is_partway = !ends;
        }
        self.running.push(Running {
            context: ticket.context,
            arrival: ticket.arrival,
            copy: copy.map(|(_, copy)| copy),
            length,
        });
    }
}

/// Adds a sequence whose tokens, alike in adapter and medium, are this content. The first of them lies at `slot`. Answers the adapter.
fn add_content(
    builder: &mut ArenaBuilder,
    sequence: Sequence<'_>,
    content: &Content,
    slot: u32,
) -> Adapter {
    let traits: Vec<Traits> = (0..content.len())
        .map(|index| content.traits(index, slot + index))
        .collect();
    let positions: Vec<u32> = traits.iter().map(|traits| traits.position).collect();
    let masks: Vec<&[u32]> = traits.iter().map(|traits| &*traits.mask).collect();
    let causal = masks.iter().all(|mask| mask.is_empty());
    let first = traits.first();
    let adapter = match first {
        Some(traits) if !sequence.reread => traits.adapter,
        // What is read again is read with the adapter of its pass.
        _ => sequence.adapter,
    };
    builder.add_sequence(&Sequence {
        tokens: content.tokens(),
        positions: Positions::List(&positions),
        masks: if causal {
            Masks::Causal
        } else {
            Masks::List(&masks)
        },
        adapter,
        media: first.map_or(0, |traits| traits.media),
        ..sequence
    });
    adapter
}
