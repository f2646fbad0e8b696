//! Writes an arena.

use std::sync::Arc;

use super::layout::{FIELDS_AT, Field, HEADER_WORDS, MAGIC, VERSION};
use crate::ids::{BatchId, ContextId, PageId, RequestId};
use crate::sampling::{Key, Params};

/// The arrays of the batch that is being planned. Its memory serves one batch after the other.
#[derive(Debug)]
pub struct ArenaBuilder {
    page_size: u32,
    arrays: [Vec<u32>; Field::COUNT],
    words: Vec<u32>,
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
    /// The position of the first of them; the others follow.
    pub first_position: u32,
    /// The pages of the context, from its first token to its last in this batch.
    pub pages: &'a [PageId],
    /// A page to be used in place of the one at this index of `pages`.
    pub replaced: Option<(u32, PageId)>,
    /// Tokens in the pages after the batch.
    pub length: u32,
    /// The only token is in its slot already and must not be written.
    pub reread: bool,
}

impl ArenaBuilder {
    /// An empty batch of pages of `page_size` tokens.
    pub fn new(page_size: u32) -> Self {
        let mut builder = Self {
            page_size,
            arrays: Default::default(),
            words: Vec::new(),
        };
        builder.clear();
        builder
    }

    fn clear(&mut self) {
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

    /// Adds a sequence.
    pub fn add_sequence(&mut self, sequence: &Sequence<'_>) {
        let n_tokens = sequence.tokens.len();
        self.array(Field::Tokens).extend_from_slice(sequence.tokens);
        let end = sequence.first_position.saturating_add(n_tokens as u32);
        self.array(Field::Positions)
            .extend(sequence.first_position..end);
        let n_total = self.n_tokens() as u32;
        self.array(Field::QoIndptr).push(n_total);
        self.array(Field::MaskIndptr)
            .resize(n_total as usize + 1, 0);
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
        self.array(Field::SeqAdapter).extend([0; 2]);
        self.array(Field::SeqAdapterVersion).push(0);
        self.array(Field::SeqZoSeed).extend([0; 3]);
        self.array(Field::SeqMedia).extend([0; 2]);
        self.array(Field::SeqReread)
            .push(u32::from(sequence.reread));
    }

    /// Asks for the row of logits of the last token that was added.
    pub fn add_row(&mut self, params: &Params, key: Key) {
        let token = self.n_tokens().saturating_sub(1) as u32;
        self.array(Field::RowToken).push(token);
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
        self.array(Field::RowDraws).push(1);
        let end = self.arrays[Field::RowMaskRuns as usize].len() as u32;
        self.array(Field::RowMaskIndptr).push(end);
    }

    /// Has a page copied before anything is computed.
    pub fn add_copy(&mut self, src: PageId, dst: PageId) {
        self.array(Field::CopySrc).push(src.0);
        self.array(Field::CopyDst).push(dst.0);
    }

    /// The arena of the batch; the builder is empty afterwards.
    pub fn finish(&mut self, id: BatchId) -> Arc<[u32]> {
        let n_words = HEADER_WORDS + self.arrays.iter().map(Vec::len).sum::<usize>();
        let (n_tokens, n_sequences) = (self.n_tokens() as u32, self.n_sequences() as u32);
        let n_rows = self.arrays[Field::RowToken as usize].len() as u32;
        let [low, high] = halves(id.0);
        let words = &mut self.words;
        words.clear();
        words.extend([MAGIC, VERSION, n_words as u32, low, high, self.page_size]);
        words.extend([n_tokens, n_sequences, n_rows]);
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
