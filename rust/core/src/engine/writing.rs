//! What has a place is written into the arena.

use std::ops::Range;

use super::device::Running;
use super::planner::{Chunk, Planner};
use crate::batch::{
    Adapter, ArenaBuilder, LateRow, Masks, Pages, Positions, Read, Row, RowReads, Sequence,
};
use crate::context::{Context, Pass};
use crate::ids::{PageId, RequestId};
use crate::kv::{Content, PageStore, Traits};
use crate::sched::Ticket;

impl Planner<'_> {
    /// Writes a chunk of a context into the batch, which has its pages from now on.
    pub(super) fn add(&mut self, ticket: &Ticket, chunk: &Chunk<'_>) {
        let Some(context) = self.owned.contexts.get_mut(ticket.context.0) else {
            return self.totals.faults.count("what has a place has no context");
        };
        let Some(pass) = &context.pass else {
            return self.totals.faults.count("what has a place has no pass");
        };
        let (slots, copy) = (chunk.slots.clone(), chunk.copy);
        let mut sequence = sequence(ticket, pass, slots.clone());
        sequence.pages = list_pages(&mut self.last_pages, context, &self.device.store, slots.end);
        sequence.last_pages = &self.last_pages;
        sequence.reread = chunk.reread;
        sequence.replaced = copy.map(|(page_idx, copy)| (page_idx, copy.dst));
        let builder = &mut self.device.builder;
        let adapter = match chunk.content {
            None => {
                sequence.tokens = pass.tokens_at(slots.clone()).unwrap_or_default();
                builder.add_sequence(&sequence);
                pass.adapter()
            }
            Some(content) => {
                let content = content.part(0..slots.end - slots.start, slots.start);
                add_content(builder, sequence, &content, slots.start)
            }
        };
        if let Some((_, copy)) = copy {
            builder.add_copy(copy.src, copy.dst);
            self.totals.n_copies += 1;
        }
        // A token that is computed again with the adapter that it was written with is read by the next batch with that
        // of the pass.
        let is_read = adapter == pass.adapter();
        let read = if is_read { slots.clone() } else { 0..0 };
        let reads = pass.reads_within(read);
        let rows = add_reads(builder, &mut self.batch.reads, reads, slots.start);
        add_late(&mut self.batch.late, ticket, pass, reads, rows.start);
        if pass.counts_reads() {
            self.n_reads += reads.iter().map(Read::weight).sum::<u32>();
        }
        let ends = is_read && slots.end == context.end();
        context.lease = Some(self.demand.batch);
        if let Some(pass) = &mut context.pass {
            let starts = pass.start(ends);
            let faults = &mut self.totals.faults;
            faults.expect(starts, "what has a place does not wait");
            self.totals.waited(pass.asked_ns.take(), self.now_ns);
        }
        self.batch.work.add(slots.start, slots.end - slots.start);
        self.batch.sequences.push(Running {
            context: ticket.context,
            pass: ticket.pass,
            copy: copy.map(|(_, copy)| copy),
            length: slots.end,
            rows,
            follows: false,
        });
    }

    /// Writes the token of a context that a row of the batch before draws, whose slot is its next one.
    pub(super) fn add_follower(&mut self, ticket: &Ticket) {
        let Some(context) = self.owned.contexts.get_mut(ticket.context.0) else {
            return self.totals.faults.count("what follows has no context");
        };
        let slots = context.end()..context.end() + 1;
        let pass = context.pass.as_ref();
        let Some((pass, read)) = pass.and_then(|pass| Some((pass, pass.following_read()?))) else {
            return self.totals.faults.count("what follows draws nothing");
        };
        let pages = list_pages(&mut self.last_pages, context, &self.device.store, slots.end);
        self.device.builder.add_sequence(&Sequence {
            tokens: &[0],
            pages,
            last_pages: &self.last_pages,
            follows: ticket.follows,
            ..sequence(ticket, pass, slots.clone())
        });
        let builder = &mut self.device.builder;
        let rows = add_reads(builder, &mut self.batch.reads, &[read], slots.start);
        context.lease = Some(self.demand.batch);
        self.batch.work.add(slots.start, 1);
        self.totals.n_followers += 1;
        self.batch.sequences.push(Running {
            context: ticket.context,
            pass: ticket.pass,
            copy: None,
            length: slots.end,
            rows,
            follows: true,
        });
    }
}

/// The pages of a context up to `length`: those of full pages where they lie, and those behind them in `last`.
#[inline]
fn list_pages<'a>(
    last: &mut Vec<PageId>,
    context: &'a Context,
    store: &PageStore,
    length: u32,
) -> Pages<'a> {
    let n_pages = context.lane.n_pages_of(store, length);
    let n_full = n_pages.min(context.lane.n_full());
    let n_behind = (n_pages - n_full) as usize;
    context.lane.list_behind(store, n_behind, last);
    context.lane.full_pages(n_full)
}

/// A sequence without tokens and pages, each of whose tokens is at its own position and sees all before it.
fn sequence<'a>(ticket: &Ticket, pass: &Pass, slots: Range<u32>) -> Sequence<'a> {
    Sequence {
        context: ticket.context,
        request: pass.request().unwrap_or(RequestId(0)),
        tokens: &[],
        positions: Positions::From(slots.start),
        masks: Masks::Causal,
        adapter: pass.adapter(),
        media: 0,
        pages: Pages::default(),
        last_pages: &[],
        replaced: None,
        length: slots.end,
        reread: false,
        follows: None,
    }
}

/// Asks for rows of the sequence that was added last, whose first token in this batch lies at `slot`, and notes in
/// `others` what comes of them besides draws. Returns where they stand among those of the batch.
fn add_reads(
    builder: &mut ArenaBuilder,
    others: &mut Vec<RowReads>,
    reads: &[Read],
    slot: u32,
) -> Range<u32> {
    let first = builder.n_rows() as u32;
    for (row, read) in (first..).zip(reads) {
        // What cannot be drawn yet is wanted itself.
        let awaits_mask = read.awaits_mask();
        if awaits_mask || read.probes.is_some() {
            others.push(RowReads {
                row,
                probes: read.probes.clone(),
                awaits_mask,
            });
        }
        builder.add_row(&Row {
            token_idx: read.slot - slot,
            params: read.params,
            key: read.key,
            n_draws: if awaits_mask { 0 } else { read.n_draws },
            mask: read.mask.as_deref().unwrap_or_default(),
            keep: read.kept(),
        });
    }
    first..builder.n_rows() as u32
}

/// Adds those of the rows of a pass whose masks have not come. The first of the rows is that row of the batch.
fn add_late(late: &mut Vec<LateRow>, ticket: &Ticket, pass: &Pass, reads: &[Read], first: u32) {
    if pass.n_late() == 0 {
        return;
    }
    let place = pass.n_reads_answered();
    let awaiting = (first..).zip(reads).enumerate();
    let awaiting = awaiting.filter(|(_, (_, read))| read.awaits_mask());
    late.extend(awaiting.map(|(index, (row, read))| LateRow {
        row,
        context: ticket.context,
        pass: ticket.pass,
        place: place + index,
        n_draws: read.n_draws,
    }));
}

/// Adds a sequence whose tokens, alike in adapter and medium, are this content. The first of them lies at `slot`.
/// Returns the adapter.
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::batch::ArenaView;
    use crate::ids::{BatchId, ContextId};
    use crate::sampling::{Key, Params, Probe};

    #[test]
    fn each_row_has_its_own_mask_key_and_draws() {
        let read = |slot, seed, n_draws, mask: &[u32]| Read {
            slot,
            params: Params::ARGMAX,
            key: Key {
                seed,
                position: slot + 1,
                slot: 0,
                draw: 0,
            },
            n_draws,
            mask: (!mask.is_empty()).then(|| Arc::from(mask)),
            is_late: false,
            probes: (n_draws == 0).then(|| Arc::from([Probe::Logits])),
        };
        let reads = [
            read(4, 1, 1, &[2, 3]),
            read(4, 2, 0, &[]),
            read(5, 3, 2, &[0, 1]),
        ];
        let mut builder = ArenaBuilder::new(4);
        for (first, reads) in [(4, &reads[..]), (5, &reads[2..])] {
            builder.add_sequence(&Sequence {
                context: ContextId(1),
                request: RequestId(1),
                tokens: &[7, 8],
                positions: Positions::From(first),
                masks: Masks::Causal,
                adapter: Adapter::default(),
                media: 0,
                pages: Pages {
                    list: 0,
                    ids: &vec![PageId(0)],
                    n: 1,
                },
                last_pages: &[PageId(1)],
                replaced: None,
                length: first + 2,
                reread: false,
                follows: None,
            });
            let before = builder.n_rows() as u32;
            let mut others = Vec::new();
            let rows = add_reads(&mut builder, &mut others, reads, first);
            assert_eq!(rows, before..before + reads.len() as u32);
            let probed = others.iter().map(|other| (other.row, other.awaits_mask));
            let n_before = if first == 4 {
                vec![(before + 1, false)]
            } else {
                vec![]
            };
            assert_eq!(probed.collect::<Vec<_>>(), n_before);
        }
        let words = builder.finish(BatchId(1));
        let view = ArenaView::parse(&words).expect("the arena is well-formed");
        let wanted = [&reads[..], &reads[2..]].concat();
        let tokens = [0, 0, 1, 2];
        for ((row, read), token) in view.rows().zip(&wanted).zip(tokens) {
            assert_eq!(row.token, token);
            assert_eq!(row.mask, read.mask.as_deref().unwrap_or_default());
            assert_eq!((row.key.seed, row.n_draws), (read.key.seed, read.n_draws));
            assert_eq!(row.keep, read.probes.is_some());
            assert!(!row.embeds);
        }
        assert_eq!(view.rows().count(), wanted.len());
    }
}
