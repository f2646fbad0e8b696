//! Lays an arena out: its header, then its fields, in their order.

use std::sync::Arc;

use super::layout::{FIELDS_AT, Field, HEADER_WORDS, Head, MAGIC, SAMPLER_WORDS, VERSION, halves};
use super::page_lists::PageLists;
use crate::ids::BatchId;

/// What the fields that have an entry for each sequence say of one.
#[derive(Debug, Default)]
pub(super) struct SequenceWords {
    /// The end of its tokens, among those of the batch.
    pub(super) end: u32,
    /// The end of its pages, among those of the batch.
    pub(super) pages_end: u32,
    pub(super) last_page_len: u32,
    pub(super) context: [u32; 2],
    pub(super) request: [u32; 2],
    pub(super) adapter: [u32; 2],
    pub(super) adapter_version: u32,
    pub(super) perturbs: u32,
    pub(super) zo_seed: [u32; 2],
    pub(super) media: [u32; 2],
    pub(super) reread: u32,
    pub(super) follows: u32,
}

/// What the fields that have an entry for each row say of one.
#[derive(Debug)]
pub(super) struct RowWords {
    pub(super) token: u32,
    pub(super) sampler: [u32; SAMPLER_WORDS],
    pub(super) slot: u32,
    pub(super) draws: u32,
    /// The end of its token mask, among those of the batch.
    pub(super) mask_end: u32,
    pub(super) keep: u32,
}

/// All that stands in an arena behind its header.
#[derive(Debug)]
pub(super) struct ArenaWriter<'a> {
    /// Fields that have entries of another number than sequences or rows.
    pub(super) pages: &'a mut PageLists,
    pub(super) arrays: &'a [Vec<u32>; Field::COUNT],
    pub(super) sequences: &'a [SequenceWords],
    pub(super) rows: &'a [RowWords],
}

impl ArenaWriter<'_> {
    /// The arena, written where it stays. It has the memory of one before where that is free and has the same fields.
    pub(super) fn write(
        &mut self,
        id: BatchId,
        before: Option<BatchId>,
        page_size: u32,
    ) -> Arc<[u32]> {
        let (n_words, spans) = self.spans();
        let taken = self.pages.take_arena(n_words, &spans);
        let mut arena = taken.unwrap_or_else(|| (0..n_words).map(|_| 0).collect());
        let Some(words) = Arc::get_mut(&mut arena) else {
            debug_assert!(false, "somebody shares an arena that was just made");
            return arena;
        };
        let (header, mut rest) = words.split_at_mut(HEADER_WORDS);
        for (word, value) in [
            (Head::Magic, MAGIC),
            (Head::Version, VERSION),
            (Head::Words, n_words as u32),
            (Head::PageSize, page_size),
            (
                Head::Tokens,
                self.arrays[Field::Tokens as usize].len() as u32,
            ),
            (Head::Sequences, self.sequences.len() as u32),
            (Head::Rows, self.rows.len() as u32),
        ] {
            header[word as usize] = value;
        }
        for (word, batch) in [
            (Head::BatchId, id.0),
            (Head::Before, before.map_or(0, |it| it.0)),
        ] {
            header[word as usize..][..2].copy_from_slice(&halves(batch));
        }
        header[FIELDS_AT..FIELDS_AT + spans.len()].copy_from_slice(&spans);
        for field in Field::ALL {
            let (words, behind) = rest.split_at_mut(self.len(field));
            self.write_field(field, words);
            rest = behind;
        }
        arena
    }

    /// Words of the arena, and for each field where it begins and how long it is.
    fn spans(&self) -> (usize, [u32; 2 * Field::COUNT]) {
        let (mut offset, mut spans) = (HEADER_WORDS, [0; 2 * Field::COUNT]);
        for field in Field::ALL {
            let (length, at) = (self.len(field), 2 * field as usize);
            spans[at..at + 2].copy_from_slice(&[offset as u32, length as u32]);
            offset += length;
        }
        (offset, spans)
    }

    /// Words of a field.
    fn len(&self, field: Field) -> usize {
        let (n_sequences, n_rows) = (self.sequences.len(), self.rows.len());
        match field {
            Field::QoIndptr | Field::KvIndptr => n_sequences + 1,
            Field::KvLastPageLen
            | Field::SeqAdapterVersion
            | Field::SeqReread
            | Field::SeqFollows => n_sequences,
            Field::SeqContext | Field::SeqRequest | Field::SeqAdapter | Field::SeqMedia => {
                2 * n_sequences
            }
            Field::SeqZoSeed => 3 * n_sequences,
            Field::RowToken | Field::RowSlot | Field::RowDraws | Field::RowKeep => n_rows,
            Field::RowMaskIndptr => n_rows + 1,
            Field::KvIndices => self.pages.n_ids(),
            Field::RowSampler => SAMPLER_WORDS * n_rows,
            _ => self.arrays[field as usize].len(),
        }
    }

    fn write_field(&self, field: Field, words: &mut [u32]) {
        let (sequences, rows) = (self.sequences, self.rows);
        match field {
            Field::QoIndptr => fill(&mut words[1..], sequences, |it| [it.end]),
            Field::KvIndptr => fill(&mut words[1..], sequences, |it| [it.pages_end]),
            Field::KvIndices => self.pages.write(words),
            Field::KvLastPageLen => fill(words, sequences, |it| [it.last_page_len]),
            Field::SeqContext => fill(words, sequences, |it| it.context),
            Field::SeqRequest => fill(words, sequences, |it| it.request),
            Field::SeqAdapter => fill(words, sequences, |it| it.adapter),
            Field::SeqAdapterVersion => fill(words, sequences, |it| [it.adapter_version]),
            Field::SeqZoSeed => fill(words, sequences, |it| {
                [it.perturbs, it.zo_seed[0], it.zo_seed[1]]
            }),
            Field::SeqMedia => fill(words, sequences, |it| it.media),
            Field::SeqReread => fill(words, sequences, |it| [it.reread]),
            Field::SeqFollows => fill(words, sequences, |it| [it.follows]),
            Field::RowToken => fill(words, rows, |it| [it.token]),
            Field::RowSampler => fill(words, rows, |it| it.sampler),
            Field::RowSlot => fill(words, rows, |it| [it.slot]),
            Field::RowDraws => fill(words, rows, |it| [it.draws]),
            Field::RowMaskIndptr => fill(&mut words[1..], rows, |it| [it.mask_end]),
            Field::RowKeep => fill(words, rows, |it| [it.keep]),
            _ => words.copy_from_slice(&self.arrays[field as usize]),
        }
    }
}

/// Writes `N` words of each record, one record after the other.
fn fill<T, const N: usize>(words: &mut [u32], records: &[T], of: impl Fn(&T) -> [u32; N]) {
    let (entries, _) = words.as_chunks_mut::<N>();
    for (entry, record) in entries.iter_mut().zip(records) {
        *entry = of(record);
    }
}
