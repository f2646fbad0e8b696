//! What has a place is written into the arena.

use std::ops::Range;

use super::Running;
use super::admitting::Planner;
use crate::batch::{Adapter, ArenaBuilder, Masks, Positions, Row, Sequence};
use crate::context::{Context, Draws, Pass};
use crate::ids::{PageId, RequestId};
use crate::kv::{Content, PageCopy, PageStore, Traits, pages_for};
use crate::sampling::Key;
use crate::sched::Ticket;

/// Tokens of a context that a batch computes.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    pub(super) slots: Range<u32>,
    /// The only token is in its slot already.
    pub(super) reread: bool,
    /// What stands in the slots, and perhaps behind them; none where they are plain tokens of the pass.
    pub(super) content: Option<Content>,
    /// A copy of a page, and the place in the context of what it replaces.
    pub(super) copy: Option<(u32, PageCopy)>,
}

impl Planner<'_> {
    /// Writes a chunk of a context into the batch, which has its pages from now on.
    pub(super) fn add(&mut self, ticket: &Ticket, chunk: Chunk) {
        let Some(context) = self.contexts.get_mut(ticket.context.0) else {
            return self.totals.faults.count("what has a place has no context");
        };
        let Some(pass) = &context.pass else {
            return self.totals.faults.count("what has a place has no pass");
        };
        let Chunk {
            slots,
            reread,
            content,
            copy,
        } = chunk;
        list_pages(&mut self.pages, context, self.store, slots.end);
        let sequence = Sequence {
            reread,
            replaced: copy.map(|(page_idx, copy)| (page_idx, copy.dst)),
            ..sequence(ticket, pass, slots.clone(), &self.pages)
        };
        let adapter = match content {
            None => {
                let tokens = pass.tokens_at(slots.clone()).unwrap_or_default();
                self.builder.add_sequence(&Sequence { tokens, ..sequence });
                pass.adapter()
            }
            Some(content) => {
                let content = content.part(0..slots.end - slots.start, slots.start);
                add_content(self.builder, sequence, &content, slots.start)
            }
        };
        if let Some((_, copy)) = copy {
            self.builder.add_copy(copy.src, copy.dst);
            self.totals.n_copies += 1;
        }
        let n_rows = self.builder.n_rows();
        let is_last = slots.end == context.end();
        // A token that is computed again with the adapter that it was written with is read by the next batch with that of the pass.
        let is_read = is_last && adapter == pass.adapter();
        let row = pass
            .draws
            .filter(|_| is_read)
            .map(|draws| add_draw(self.builder, &draws, slots.clone()));
        self.n_reads += add_reads(self.builder, pass, slots.clone());
        self.n_rows += (self.builder.n_rows() - n_rows) as u64;
        let ends = is_last && (pass.draws.is_none() || is_read);
        context.lease = Some(self.claim.batch);
        if let Some(pass) = &mut context.pass {
            let starts = pass.start(ends);
            let faults = &mut self.totals.faults;
            faults.expect(starts, "what has a place does not wait");
            self.totals.waited(pass.asked_ns.take(), self.now_ns);
        }
        self.work.add(slots.start, slots.end - slots.start);
        self.running.push(Running {
            context: ticket.context,
            pass: ticket.pass,
            copy: copy.map(|(_, copy)| copy),
            length: slots.end,
            row,
            follows: false,
        });
    }

    /// Writes the token of a context that a row of the batch before draws, whose slot is its next one.
    pub(super) fn add_follower(&mut self, ticket: &Ticket) {
        let Some(context) = self.contexts.get_mut(ticket.context.0) else {
            return self.totals.faults.count("what follows has no context");
        };
        let slots = context.end()..context.end() + 1;
        let drawing = context.pass.as_ref().map(|pass| (pass, pass.draws));
        let Some((pass, Some(draws))) = drawing else {
            return self.totals.faults.count("what follows draws nothing");
        };
        list_pages(&mut self.pages, context, self.store, slots.end);
        self.builder.add_sequence(&Sequence {
            tokens: &[0],
            follows: ticket.follows,
            ..sequence(ticket, pass, slots.clone(), &self.pages)
        });
        let row = add_draw(self.builder, &draws, slots.clone());
        context.lease = Some(self.claim.batch);
        self.work.add(slots.start, 1);
        self.n_rows += 1;
        self.totals.n_followers += 1;
        self.running.push(Running {
            context: ticket.context,
            pass: ticket.pass,
            copy: None,
            length: slots.end,
            row: Some(row),
            follows: true,
        });
    }
}

/// The pages of a context up to `length`.
fn list_pages(pages: &mut Vec<PageId>, context: &Context, store: &PageStore, length: u32) {
    let n_pages = pages_for(length, store.page_size()) as usize;
    let full = context.lane.full_pages();
    pages.clear();
    pages.extend_from_slice(&full[..n_pages.min(full.len())]);
    let n_behind = n_pages.saturating_sub(full.len());
    pages.extend(context.lane.pages_behind(store).take(n_behind));
}

/// A sequence without tokens, each of which is at its own position and sees all before it.
fn sequence<'a>(
    ticket: &Ticket,
    pass: &Pass,
    slots: Range<u32>,
    pages: &'a [PageId],
) -> Sequence<'a> {
    Sequence {
        context: ticket.context,
        request: pass.request().unwrap_or(RequestId(0)),
        tokens: &[],
        positions: Positions::From(slots.start),
        masks: Masks::Causal,
        adapter: pass.adapter(),
        media: 0,
        pages,
        replaced: None,
        length: slots.end,
        reread: false,
        follows: None,
    }
}

/// Asks for the token behind the last one of the sequence that was added last. Answers the row from which it is drawn.
fn add_draw(builder: &mut ArenaBuilder, draws: &Draws, slots: Range<u32>) -> u32 {
    let row = builder.n_rows() as u32;
    builder.add_row(&Row {
        token_idx: slots.end - slots.start - 1,
        params: draws.params,
        key: Key {
            seed: draws.seed,
            position: slots.end,
            slot: 0,
            draw: 0,
        },
        n_draws: 1,
        mask: &[],
        keep: false,
    });
    row
}

/// Asks for the rows that a forward pass wants of these slots. Answers how many there are.
fn add_reads(builder: &mut ArenaBuilder, pass: &Pass, slots: Range<u32>) -> u32 {
    let Some(reads) = &pass.reads else { return 0 };
    let wanted = reads.within(slots.clone());
    for read in wanted {
        builder.add_row(&Row {
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
    wanted.len() as u32
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
