//! Lays an arena out: its header, then its fields, in their order.

use std::sync::Arc;

use super::layout::{FIELDS_AT, Field, HEADER_WORDS, MAGIC, SAMPLER_WORDS, VERSION, halves};
use crate::ids::BatchId;

/// What the fields that have an entry for each sequence say of one.
#[derive(Debug)]
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
    pub(super) arrays: &'a [Vec<u32>; Field::COUNT],
    pub(super) sequences: &'a [SequenceWords],
    pub(super) rows: &'a [RowWords],
}

impl ArenaWriter<'_> {
    /// The arena, written where it stays.
    pub(super) fn write(&self, id: BatchId, before: Option<BatchId>, page_size: u32) -> Arc<[u32]> {
        let n_fields: usize = Field::ALL.iter().map(|&field| self.len(field)).sum();
        let n_words = HEADER_WORDS + n_fields;
        let mut arena: Arc<[u32]> = (0..n_words).map(|_| 0).collect();
        let Some(words) = Arc::get_mut(&mut arena) else {
            debug_assert!(false, "somebody shares an arena that was just made");
            return arena;
        };
        let (header, mut rest) = words.split_at_mut(HEADER_WORDS);
        let [low, high] = halves(id.0);
        let [before_low, before_high] = halves(before.map_or(0, |before| before.0));
        let first = [
            MAGIC,
            VERSION,
            n_words as u32,
            low,
            high,
            page_size,
            self.arrays[Field::Tokens as usize].len() as u32,
            self.sequences.len() as u32,
            self.rows.len() as u32,
            before_low,
            before_high,
        ];
        header[..first.len()].copy_from_slice(&first);
        let mut offset = HEADER_WORDS;
        for field in Field::ALL {
            let (length, at) = (self.len(field), FIELDS_AT + 2 * field as usize);
            header[at..at + 2].copy_from_slice(&[offset as u32, length as u32]);
            offset += length;
            let (words, behind) = rest.split_at_mut(length);
            self.write_field(field, words);
            rest = behind;
        }
        arena
    }

    /// Words of a field.
    const fn len(&self, field: Field) -> usize {
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
            Field::RowSampler => SAMPLER_WORDS * n_rows,
            _ => self.arrays[field as usize].len(),
        }
    }

    fn write_field(&self, field: Field, words: &mut [u32]) {
        let (sequences, rows) = (self.sequences, self.rows);
        match field {
            Field::QoIndptr => fill(&mut words[1..], sequences, |it| [it.end]),
            Field::KvIndptr => fill(&mut words[1..], sequences, |it| [it.pages_end]),
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
