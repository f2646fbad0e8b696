//! Writes an arena.

use std::sync::Arc;

use super::layout::{Field, Keep, SAMPLER_WORDS, halves};
use super::page_lists::{PageLists, Pages};
use super::reads::Read;
use super::view::ArenaView;
use super::writer::{ArenaWriter, RowWords, SequenceWords};
use crate::ids::{BatchId, ContextId, HostSlot, PageId, RequestId};
use crate::sampling::{Key, Params};

/// The arrays of the batch that is being planned. Its memory serves one batch after the other.
#[derive(Debug)]
pub struct ArenaBuilder {
    page_size: u32,
    /// The batch whose rows its sequences follow.
    before: Option<BatchId>,
    /// Fields whose length is not that of the sequences or rows.
    arrays: [Vec<u32>; Field::COUNT],
    pages: PageLists,
    /// All other fields of each sequence and of each row: one record is added faster than a word to each of many
    /// arrays.
    sequences: Vec<SequenceWords>,
    rows: Vec<RowWords>,
}

/// The positions of the tokens of a sequence, for rotary embeddings.
#[derive(Clone, Copy, Debug)]
pub enum Positions<'a> {
    /// That of the first token; the others follow.
    From(u32),
    /// One for each token. They may repeat, jump and reorder.
    List(&'a [u32]),
}

/// The attention masks of the tokens of a sequence: run lengths, forbidden first, 1 = allowed, over the slots `[0,
/// length after the batch)`, to be ANDed with causality.
#[derive(Clone, Copy, Debug)]
pub enum Masks<'a> {
    /// Causality alone, for every token.
    Causal,
    /// The runs of each token; no run: causality alone.
    List(&'a [&'a [u32]]),
}

/// The adapter of a sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Adapter {
    /// Its identity; 0 is none.
    pub id: u64,
    /// Its version: raised whenever its weights change.
    pub version: u32,
    /// Perturbs it, reproducibly.
    pub zo_seed: Option<u64>,
}

/// One sequence of a batch.
#[derive(Debug)]
pub struct Sequence<'a> {
    /// The context that it belongs to.
    pub context: ContextId,
    /// The request that it serves.
    pub request: RequestId,
    /// The tokens to compute, at least one.
    pub tokens: &'a [u32],
    /// Their positions.
    pub positions: Positions<'a>,
    /// Their attention masks.
    pub masks: Masks<'a>,
    /// The adapter that they are computed with.
    pub adapter: Adapter,
    /// Digest of the media that they stand for; 0 is none.
    pub media: u64,
    /// The pages of the context, from that of its first token on.
    pub pages: Pages<'a>,
    /// The pages behind those, up to that of its last token in this batch.
    pub last_pages: &'a [PageId],
    /// A page to be used in place of the one at this index of all of them.
    pub replaced: Option<(u32, PageId)>,
    /// Tokens in the pages after the batch.
    pub length: u32,
    /// The only token is in its slot already and must not be written.
    pub reread: bool,
    /// The only token is what is drawn from this row of the batch before; the one in `tokens` stands for it.
    pub follows: Option<u32>,
}

/// A row of logits that is wanted of a sequence, and what is drawn from it.
#[derive(Debug)]
pub struct Row<'a> {
    /// Which of the sequence's tokens in this batch, counted from 0. Rows of a sequence are added in the order of their
    /// tokens.
    pub token_idx: u32,
    /// How tokens are drawn.
    pub params: Params,
    /// The key of the first draw; the others count `draw` on from 0.
    pub key: Key,
    /// Independent draws; 0 where the row alone is wanted.
    pub n_draws: u32,
    /// Token mask, as run lengths over the vocabulary; empty: no restriction.
    pub mask: &'a [u32],
    /// What is wanted of the row itself.
    pub keep: Keep,
}

/// The next token of a generation, alone, with the row behind it: what most sequences of most batches are.
#[derive(Debug)]
pub(crate) struct Step<'a> {
    pub(crate) context: ContextId,
    pub(crate) request: RequestId,
    pub(crate) token: u32,
    pub(crate) adapter: Adapter,
    /// The full pages of the context.
    pub(crate) pages: Pages<'a>,
    /// The page behind those.
    pub(crate) last_page: PageId,
    /// Tokens in the pages after the batch: the last of them is this one, at its own position.
    pub(crate) length: u32,
    /// The row, from which one token is drawn.
    pub(crate) read: &'a Read,
}

impl ArenaBuilder {
    /// An empty batch of pages of `page_size` tokens.
    pub fn new(page_size: u32) -> Self {
        Self {
            page_size,
            before: None,
            arrays: Default::default(),
            pages: PageLists::default(),
            sequences: Vec::new(),
            rows: Vec::new(),
        }
    }

    fn clear(&mut self) {
        self.before = None;
        self.arrays.iter_mut().for_each(Vec::clear);
        self.sequences.clear();
        self.rows.clear();
    }

    fn array(&mut self, field: Field) -> &mut Vec<u32> {
        &mut self.arrays[field as usize]
    }

    /// Sequences added so far.
    pub fn n_sequences(&self) -> usize {
        self.sequences.len()
    }

    /// Tokens added so far.
    pub fn n_tokens(&self) -> usize {
        self.arrays[Field::Tokens as usize].len()
    }

    /// Rows added so far.
    pub fn n_rows(&self) -> usize {
        self.rows.len()
    }

    /// Whether nothing was added: neither a sequence nor a copy of a page.
    pub fn is_empty(&self) -> bool {
        [
            Field::Tokens,
            Field::CopySrc,
            Field::SwapOutSrc,
            Field::SwapInSrc,
        ]
        .iter()
        .all(|&field| self.arrays[field as usize].is_empty())
    }

    /// Names the batch whose rows sequences of this one follow.
    pub const fn follow(&mut self, before: BatchId) {
        self.before = Some(before);
    }

    /// Adds a sequence. Lists of positions or masks are as long as its tokens.
    pub fn add_sequence(&mut self, sequence: &Sequence<'_>) {
        let n_tokens = sequence.tokens.len();
        self.array(Field::Tokens).extend_from_slice(sequence.tokens);
        let n_total = self.n_tokens() as u32;
        let positions = self.array(Field::Positions);
        match sequence.positions {
            Positions::From(first) => {
                positions.extend(first..first.saturating_add(n_tokens as u32))
            }
            Positions::List(list) => positions.extend_from_slice(list),
        }
        match sequence.masks {
            // `mask_indptr` is filled up where the next mask comes, or the batch ends: few batches have any.
            Masks::Causal => {}
            Masks::List(masks) => {
                self.fill_masks(n_total as usize - n_tokens);
                for runs in masks {
                    self.array(Field::MaskRuns).extend_from_slice(runs);
                    let end = self.array(Field::MaskRuns).len() as u32;
                    self.array(Field::MaskIndptr).push(end);
                }
            }
        }
        let (pages, last) = (sequence.pages, sequence.last_pages);
        let pages_end = match sequence.replaced {
            None => self.pages.add(pages, last),
            Some(replaced) => self.pages.add_with(pages, last, replaced),
        };
        self.sequences.push(SequenceWords {
            end: n_total,
            pages_end,
            last_page_len: self.last_page_len(sequence.length, pages.n + last.len()),
            media: halves(sequence.media),
            reread: u32::from(sequence.reread),
            follows: sequence.follows.map_or(0, |row| row + 1),
            ..words_of(sequence.context, sequence.request, sequence.adapter)
        });
    }

    /// Adds a sequence of one token and its row, as `add_sequence` and `add_row` do.
    pub(crate) fn add_step(&mut self, step: &Step<'_>) {
        let read = step.read;
        self.array(Field::Tokens).push(step.token);
        self.array(Field::Positions).push(step.length - 1);
        let n_tokens = self.n_tokens() as u32;
        let n_pages = step.pages.n + 1;
        let pages_end = self.pages.add(step.pages, &[step.last_page]);
        self.sequences.push(SequenceWords {
            end: n_tokens,
            pages_end,
            last_page_len: self.last_page_len(step.length, n_pages),
            ..words_of(step.context, step.request, step.adapter)
        });
        if let Some(mask) = &read.mask {
            self.array(Field::RowMaskRuns).extend_from_slice(mask);
        }
        self.rows.push(RowWords {
            token: n_tokens - 1,
            sampler: sampler_words(&read.params, read.key),
            slot: read.key.slot,
            draws: read.n_draws,
            mask_end: self.arrays[Field::RowMaskRuns as usize].len() as u32,
            keep: Keep::Draws as u32,
        });
    }

    /// Slots of the last of so many pages that hold tokens. Mostly the others are full, and nothing is divided.
    const fn last_page_len(&self, length: u32, n_pages: usize) -> u32 {
        let n_before = (n_pages as u32).saturating_sub(1) * self.page_size;
        match length.saturating_sub(n_before) {
            slots if slots > 0 && slots <= self.page_size => slots,
            _ => length.saturating_sub(1) % self.page_size + 1,
        }
    }

    /// The tokens up to `n` that have no mask have none.
    fn fill_masks(&mut self, n: usize) {
        let end = self.array(Field::MaskRuns).len() as u32;
        self.array(Field::MaskIndptr).resize(n + 1, end);
    }

    /// Asks for a row of logits of the sequence that was added last.
    pub fn add_row(&mut self, row: &Row<'_>) {
        let before = self.sequences.len().checked_sub(2);
        let before = before.and_then(|index| self.sequences.get(index));
        let first = before.map_or(0, |before| before.end);
        let runs = self.array(Field::RowMaskRuns);
        runs.extend_from_slice(row.mask);
        let words = RowWords {
            token: first + row.token_idx,
            sampler: sampler_words(&row.params, row.key),
            slot: row.key.slot,
            draws: row.n_draws,
            mask_end: runs.len() as u32,
            keep: row.keep as u32,
        };
        self.rows.push(words);
    }

    /// Has a page copied, after all swaps and before anything is computed.
    pub fn add_copy(&mut self, src: PageId, dst: PageId) {
        self.array(Field::CopySrc).push(src.0);
        self.array(Field::CopyDst).push(dst.0);
    }

    /// Has a page copied to host memory as it is before the batch.
    pub fn add_swap_out(&mut self, page: PageId, slot: HostSlot) {
        self.array(Field::SwapOutSrc).push(page.0);
        self.array(Field::SwapOutDst).push(slot.0);
    }

    /// Has a page copied back from host memory, after all swap-outs and before all page copies.
    pub fn add_swap_in(&mut self, slot: HostSlot, page: PageId) {
        self.array(Field::SwapInSrc).push(slot.0);
        self.array(Field::SwapInDst).push(page.0);
    }

    /// The pages of each sequence of a batch, as its arena has them, where that is kept.
    pub(crate) fn pages_of(&self, id: BatchId) -> Option<Vec<&[u32]>> {
        let view = ArenaView::built(self.pages.arena_of(id)?);
        Some(view.sequences().map(|sequence| sequence.pages).collect())
    }

    /// The arena of the batch; the builder is empty afterwards.
    pub fn finish(&mut self, id: BatchId) -> Arc<[u32]> {
        self.fill_masks(self.n_tokens());
        let mut writer = ArenaWriter {
            pages: &mut self.pages,
            arrays: &self.arrays,
            sequences: &self.sequences,
            rows: &self.rows,
        };
        let arena = writer.write(id, self.before, self.page_size);
        self.pages.keep(arena.clone());
        self.clear();
        arena
    }
}

/// The words of a sequence that say whose it is and what it is computed with. The others stand for nothing.
fn words_of(context: ContextId, request: RequestId, adapter: Adapter) -> SequenceWords {
    SequenceWords {
        context: halves(context.0),
        request: halves(request.0),
        adapter: halves(adapter.id),
        adapter_version: adapter.version,
        perturbs: u32::from(adapter.zo_seed.is_some()),
        zo_seed: halves(adapter.zo_seed.unwrap_or(0)),
        ..SequenceWords::default()
    }
}

/// An entry of [`Field::RowSampler`].
const fn sampler_words(params: &Params, key: Key) -> [u32; SAMPLER_WORDS] {
    let [low, high] = halves(key.seed);
    [
        (params.temperature > 0.0) as u32,
        params.temperature.to_bits(),
        params.top_k,
        params.top_p.to_bits(),
        params.min_p.to_bits(),
        low,
        high,
        key.position,
    ]
}
