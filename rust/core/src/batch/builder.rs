//! Writes an arena.

use std::sync::Arc;

use super::layout::{FIELDS_AT, Field, HEADER_WORDS, MAGIC, VERSION};
use crate::ids::{BatchId, ContextId, HostSlot, PageId, RequestId};
use crate::sampling::{Key, Params};

/// The arrays of the batch that is being planned. Its memory serves one batch after the other.
#[derive(Debug)]
pub struct ArenaBuilder {
    page_size: u32,
    /// The batch whose rows its sequences follow.
    before: Option<BatchId>,
    arrays: [Vec<u32>; Field::COUNT],
    words: Vec<u32>,
}

/// The positions of the tokens of a sequence, for rotary embeddings.
#[derive(Clone, Copy, Debug)]
pub enum Positions<'a> {
    /// That of the first token; the others follow.
    From(u32),
    /// One for each token. They may repeat, jump and reorder.
    List(&'a [u32]),
}

/// The attention masks of the tokens of a sequence: run lengths, forbidden first, 1 = allowed, over the slots `[0, length after the
/// batch)`, to be ANDed with causality.
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
    /// The pages of the context, from its first token to its last in this batch.
    pub pages: &'a [PageId],
    /// A page to be used in place of the one at this index of `pages`.
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
    /// Which of the sequence's tokens in this batch, counted from 0. Rows of a sequence are added in the order of their tokens.
    pub token_idx: u32,
    /// How tokens are drawn.
    pub params: Params,
    /// The key of the first draw; the others count `draw` on from 0.
    pub key: Key,
    /// Independent draws; 0 where the row alone is wanted.
    pub n_draws: u32,
    /// Token mask, as run lengths over the vocabulary; empty: no restriction.
    pub mask: &'a [u32],
    /// The row itself is wanted too.
    pub keep: bool,
}

impl ArenaBuilder {
    /// An empty batch of pages of `page_size` tokens.
    pub fn new(page_size: u32) -> Self {
        let mut builder = Self {
            page_size,
            before: None,
            arrays: Default::default(),
            words: Vec::new(),
        };
        builder.clear();
        builder
    }

    fn clear(&mut self) {
        self.before = None;
        self.arrays.iter_mut().for_each(Vec::clear);
        for field in [
            Field::QoIndptr,
            Field::KvIndptr,
            Field::MaskIndptr,
            Field::RowMaskIndptr,
        ] {
            self.array(field).push(0);
        }
    }

    fn array(&mut self, field: Field) -> &mut Vec<u32> {
        &mut self.arrays[field as usize]
    }

    /// Sequences added so far.
    pub fn n_sequences(&self) -> usize {
        self.arrays[Field::KvLastPageLen as usize].len()
    }

    /// Tokens added so far.
    pub fn n_tokens(&self) -> usize {
        self.arrays[Field::Tokens as usize].len()
    }

    /// Rows added so far.
    pub fn n_rows(&self) -> usize {
        self.arrays[Field::RowToken as usize].len()
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
        self.array(Field::QoIndptr).push(n_total);
        let positions = self.array(Field::Positions);
        match sequence.positions {
            Positions::From(first) => {
                positions.extend(first..first.saturating_add(n_tokens as u32))
            }
            Positions::List(list) => positions.extend_from_slice(list),
        }
        match sequence.masks {
            Masks::Causal => {
                let end = self.array(Field::MaskRuns).len() as u32;
                self.array(Field::MaskIndptr)
                    .resize(n_total as usize + 1, end);
            }
            Masks::List(masks) => {
                for runs in masks {
                    self.array(Field::MaskRuns).extend_from_slice(runs);
                    let end = self.array(Field::MaskRuns).len() as u32;
                    self.array(Field::MaskIndptr).push(end);
                }
            }
        }
        let pages = self.array(Field::KvIndices);
        let first = pages.len();
        pages.extend(sequence.pages.iter().map(|page| page.0));
        if let Some((page_idx, page)) = sequence.replaced
            && let Some(entry) = pages.get_mut(first + page_idx as usize)
        {
            *entry = page.0;
        }
        let n_pages = pages.len() as u32;
        self.array(Field::KvIndptr).push(n_pages);
        let last_page_len = sequence.length.saturating_sub(1) % self.page_size + 1;
        self.array(Field::KvLastPageLen).push(last_page_len);
        self.array(Field::SeqContext)
            .extend(halves(sequence.context.0));
        self.array(Field::SeqRequest)
            .extend(halves(sequence.request.0));
        let Adapter {
            id,
            version,
            zo_seed,
        } = sequence.adapter;
        self.array(Field::SeqAdapter).extend(halves(id));
        self.array(Field::SeqAdapterVersion).push(version);
        let [low, high] = halves(zo_seed.unwrap_or(0));
        self.array(Field::SeqZoSeed)
            .extend([u32::from(zo_seed.is_some()), low, high]);
        self.array(Field::SeqMedia).extend(halves(sequence.media));
        self.array(Field::SeqReread)
            .push(u32::from(sequence.reread));
        let followed = sequence.follows.map_or(0, |row| row + 1);
        self.array(Field::SeqFollows).push(followed);
    }

    /// Asks for a row of logits of the sequence that was added last.
    pub fn add_row(&mut self, row: &Row<'_>) {
        let first = self.arrays[Field::QoIndptr as usize]
            .iter()
            .rev()
            .nth(1)
            .copied()
            .unwrap_or(0);
        self.array(Field::RowToken).push(first + row.token_idx);
        let (params, key) = (&row.params, row.key);
        let [low, high] = halves(key.seed);
        self.array(Field::RowSampler).extend([
            u32::from(params.temperature > 0.0),
            params.temperature.to_bits(),
            params.top_k,
            params.top_p.to_bits(),
            params.min_p.to_bits(),
            low,
            high,
            key.position,
        ]);
        self.array(Field::RowSlot).push(key.slot);
        self.array(Field::RowDraws).push(row.n_draws);
        self.array(Field::RowMaskRuns).extend_from_slice(row.mask);
        let end = self.arrays[Field::RowMaskRuns as usize].len() as u32;
        self.array(Field::RowMaskIndptr).push(end);
        self.array(Field::RowKeep).push(u32::from(row.keep));
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

    /// The arena of the batch; the builder is empty afterwards.
    pub fn finish(&mut self, id: BatchId) -> Arc<[u32]> {
        let n_words = HEADER_WORDS + self.arrays.iter().map(Vec::len).sum::<usize>();
        let (n_tokens, n_sequences) = (self.n_tokens() as u32, self.n_sequences() as u32);
        let n_rows = self.n_rows() as u32;
        let [low, high] = halves(id.0);
        let words = &mut self.words;
        words.clear();
        words.extend([MAGIC, VERSION, n_words as u32, low, high, self.page_size]);
        words.extend([n_tokens, n_sequences, n_rows]);
        words.extend(halves(self.before.map_or(0, |before| before.0)));
        words.resize(FIELDS_AT, 0);
        let mut offset = HEADER_WORDS;
        for array in &self.arrays {
            words.extend([offset as u32, array.len() as u32]);
            offset += array.len();
        }
        words.resize(HEADER_WORDS, 0);
        for array in &self.arrays {
            words.extend_from_slice(array);
        }
        let arena = Arc::from(&words[..]);
        self.clear();
        arena
    }
}

const fn halves(value: u64) -> [u32; 2] {
    [value as u32, (value >> 32) as u32]
}
