//! The batch as the kernels see it: the arena's arrays, checked once against the plan, read in place.
//!
//! `pie-core` writes the arena and documents its arrays; only those that a model needs are looked at here. Every index
//! that an operation follows (token, position, page, row, slot) is checked before anything is computed, so a bad batch
//! changes nothing.

mod checks;
mod layout;

use std::ops::Range;

use layout::{FIELDS_AT, HEADER_WORDS, KEEP_EMBEDDING, MAGIC, VERSION, array, head};

use crate::error::{Error, Result};

/// What a batch may name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArenaBounds {
    pub(crate) vocab_size: usize,
    pub(crate) max_positions: usize,
    pub(crate) page_size: usize,
    pub(crate) n_pages: usize,
    /// Pages that the host memory holds.
    pub(crate) host_pages: usize,
    pub(crate) max_tokens: usize,
}

/// Where a token's key and value are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) page: u32,
    /// Slot inside the page.
    pub(crate) idx: usize,
}

/// Pages (or host slots) to copy, and where to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copies<'a> {
    src: &'a [u32],
    dst: &'a [u32],
}

impl Copies<'_> {
    /// The copies as pairs of source and destination.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (usize, usize)> {
        self.src
            .iter()
            .zip(self.dst)
            .map(|(&src, &dst)| (src as usize, dst as usize))
    }
}

/// The name of an adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AdapterKey {
    pub(crate) id: u64,
    pub(crate) version: u32,
}

/// What a sequence is computed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AdapterUse {
    pub(crate) key: AdapterKey,
    /// By what the adapter is perturbed.
    pub(crate) zo_seed: Option<u64>,
}

/// A checked batch: T tokens of B sequences.
#[derive(Debug)]
pub(crate) struct Batch<'a> {
    pub(crate) tokens: &'a [u32],
    pub(crate) positions: &'a [u32],
    pub(crate) row_token: &'a [u32],
    row_keep: &'a [u32],
    pub(crate) swap_outs: Copies<'a>,
    pub(crate) swap_ins: Copies<'a>,
    pub(crate) copies: Copies<'a>,
    qo_indptr: &'a [u32],
    kv_indptr: &'a [u32],
    kv_indices: &'a [u32],
    kv_last_page_len: &'a [u32],
    mask_indptr: &'a [u32],
    mask_runs: &'a [u32],
    seq_reread: &'a [u32],
    seq_adapter: &'a [u32],
    seq_adapter_version: &'a [u32],
    seq_zo_seed: &'a [u32],
    page_size: usize,
}

impl<'a> Batch<'a> {
    /// Reads and checks an arena. `users` has a word for each page of the pool; its contents do not matter.
    pub(crate) fn read(arena: &'a [u32], limits: &ArenaBounds, users: &mut [u32]) -> Result<Self> {
        let header = header(arena)?;
        let page_size = header[head::PAGE_SIZE] as usize;
        if page_size != limits.page_size {
            return Err(Error::batch(format!(
                "the batch has pages of {page_size} tokens, the plan of {}",
                limits.page_size
            )));
        }
        let array = |pair: usize| array_of(arena, header, pair);
        let batch = Self {
            tokens: array(array::TOKENS)?,
            positions: array(array::POSITIONS)?,
            row_token: array(array::ROW_TOKEN)?,
            row_keep: array(array::ROW_KEEP)?,
            swap_outs: Copies {
                src: array(array::SWAP_OUT_SRC)?,
                dst: array(array::SWAP_OUT_DST)?,
            },
            swap_ins: Copies {
                src: array(array::SWAP_IN_SRC)?,
                dst: array(array::SWAP_IN_DST)?,
            },
            copies: Copies {
                src: array(array::COPY_SRC)?,
                dst: array(array::COPY_DST)?,
            },
            qo_indptr: array(array::QO_INDPTR)?,
            kv_indptr: array(array::KV_INDPTR)?,
            kv_indices: array(array::KV_INDICES)?,
            kv_last_page_len: array(array::KV_LAST_PAGE_LEN)?,
            mask_indptr: array(array::MASK_INDPTR)?,
            mask_runs: array(array::MASK_RUNS)?,
            seq_reread: array(array::SEQ_REREAD)?,
            seq_adapter: array(array::SEQ_ADAPTER)?,
            seq_adapter_version: array(array::SEQ_ADAPTER_VERSION)?,
            seq_zo_seed: array(array::SEQ_ZO_SEED)?,
            page_size,
        };
        let counts = [head::TOKENS, head::SEQUENCES, head::ROWS].map(|word| header[word] as usize);
        batch.check(counts, limits, users)?;
        Ok(batch)
    }

    /// B.
    pub(crate) fn n_seqs(&self) -> usize {
        self.kv_last_page_len.len()
    }

    /// Tokens of a sequence in this batch, as indices into the token arrays.
    pub(crate) fn seq_tokens(&self, seq_idx: usize) -> Range<usize> {
        self.qo_indptr[seq_idx] as usize..self.qo_indptr[seq_idx + 1] as usize
    }

    /// Pages of a sequence in storage order.
    pub(crate) fn seq_pages(&self, seq_idx: usize) -> &'a [u32] {
        &self.kv_indices[self.kv_indptr[seq_idx] as usize..self.kv_indptr[seq_idx + 1] as usize]
    }

    /// Slots of a sequence once this batch has been written.
    pub(crate) fn kv_len(&self, seq_idx: usize) -> usize {
        match self.seq_pages(seq_idx).len() {
            0 => 0,
            n_pages => (n_pages - 1) * self.page_size + self.kv_last_page_len[seq_idx] as usize,
        }
    }

    /// The most slots of a sequence.
    pub(crate) fn longest(&self) -> usize {
        (0..self.n_seqs())
            .map(|seq_idx| self.kv_len(seq_idx))
            .max()
            .unwrap_or(0)
    }

    /// The slot of a token in its sequence.
    #[inline]
    pub(crate) fn slot_of(&self, seq_idx: usize, token_idx: usize) -> usize {
        self.kv_len(seq_idx) - (self.qo_indptr[seq_idx + 1] as usize - token_idx)
    }

    /// Where the key and value of each token are to be written, in token order; None where they stand already.
    pub(crate) fn slots_to_write(&self) -> Vec<Option<Slot>> {
        let mut slots = Vec::with_capacity(self.tokens.len());
        for seq_idx in 0..self.n_seqs() {
            let pages = self.seq_pages(seq_idx);
            for token_idx in self.seq_tokens(seq_idx) {
                let slot = self.slot_of(seq_idx, token_idx);
                slots.push((!self.is_reread(seq_idx)).then(|| Slot {
                    page: pages[slot / self.page_size],
                    idx: slot % self.page_size,
                }));
            }
        }
        slots
    }

    /// Whether the slots of a sequence's tokens hold their keys and values already.
    fn is_reread(&self, seq_idx: usize) -> bool {
        self.seq_reread.get(seq_idx).is_some_and(|&flag| flag != 0)
    }

    /// What a sequence is computed with; none: the model as it is.
    fn adapter(&self, seq_idx: usize) -> Option<AdapterUse> {
        let [low, high] = *self.seq_adapter.as_chunks::<2>().0.get(seq_idx)?;
        let [perturbs, seed_low, seed_high] = *self.seq_zo_seed.as_chunks::<3>().0.get(seq_idx)?;
        let id = u64_of(low, high);
        (id != 0).then(|| AdapterUse {
            key: AdapterKey {
                id,
                version: self.seq_adapter_version[seq_idx],
            },
            zo_seed: (perturbs != 0).then(|| u64_of(seed_low, seed_high)),
        })
    }

    /// The tokens that are computed with an adapter, in order, each with it.
    pub(crate) fn adapted_tokens(&self) -> Vec<(AdapterUse, u32)> {
        if !self.seq_adapter.iter().any(|&word| word != 0) {
            return Vec::new();
        }
        let seqs = (0..self.n_seqs()).filter_map(|idx| Some((idx, self.adapter(idx)?)));
        let tokens = seqs.flat_map(|(seq_idx, adapter)| {
            let tokens = self.seq_tokens(seq_idx);
            tokens.map(move |token_idx| (adapter, token_idx as u32))
        });
        tokens.collect()
    }

    /// The rows in whose place the hidden state of their token is wanted.
    pub(crate) fn embedded_rows(&self) -> impl Iterator<Item = usize> {
        let rows = self.row_keep.iter().enumerate();
        rows.filter_map(|(row, &keep)| (keep == KEEP_EMBEDDING).then_some(row))
    }

    /// Whether a token has an attention row of its own beside causality.
    #[inline]
    pub(crate) fn is_masked(&self, token_idx: usize) -> bool {
        self.mask_indptr[token_idx] != self.mask_indptr[token_idx + 1]
    }

    /// The slots below `limit` that a token sees, as ascending ranges.
    #[inline]
    pub(crate) fn allowed(&self, token_idx: usize, limit: usize) -> AllowedSlots<'a> {
        let runs = &self.mask_runs
            [self.mask_indptr[token_idx] as usize..self.mask_indptr[token_idx + 1] as usize];
        AllowedSlots {
            runs,
            next: 0,
            limit,
            whole: runs.is_empty(),
        }
    }
}

/// Ranges of allowed slots of a row: alternating runs, forbidden first; beyond the last run, forbidden.
#[derive(Clone)]
pub(crate) struct AllowedSlots<'a> {
    runs: &'a [u32],
    next: usize,
    limit: usize,
    whole: bool,
}

impl Iterator for AllowedSlots<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        if std::mem::take(&mut self.whole) {
            return (self.limit > 0).then_some(0..self.limit);
        }
        while let [forbidden, allowed, rest @ ..] = self.runs {
            self.runs = rest;
            let start = self.next + *forbidden as usize;
            self.next = start + *allowed as usize;
            let run = start..self.next.min(self.limit);
            if !run.is_empty() {
                return Some(run);
            }
        }
        None
    }
}

fn u64_of(low: u32, high: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

fn header(arena: &[u32]) -> Result<&[u32]> {
    let Some(header) = arena.get(..HEADER_WORDS) else {
        return Err(Error::batch(format!(
            "a batch of {} words has no header of {HEADER_WORDS}",
            arena.len()
        )));
    };
    if header[head::MAGIC] != MAGIC || header[head::VERSION] != VERSION {
        return Err(Error::batch(format!(
            "not a batch of layout {VERSION}: magic {:#010x}, layout {}; the engine and its kernels are of different versions",
            header[head::MAGIC],
            header[head::VERSION]
        )));
    }
    if header[head::WORDS] as usize != arena.len() {
        return Err(Error::batch(format!(
            "the header says {} words, the batch has {}",
            header[head::WORDS],
            arena.len()
        )));
    }
    Ok(header)
}

fn array_of<'a>(arena: &'a [u32], header: &[u32], pair: usize) -> Result<&'a [u32]> {
    let (offset, len) = (
        header[FIELDS_AT + 2 * pair] as usize,
        header[FIELDS_AT + 2 * pair + 1] as usize,
    );
    if len == 0 {
        return Ok(&[]);
    }
    arena
        .get(offset..)
        .and_then(|rest| rest.get(..len))
        .ok_or_else(|| {
            Error::batch(format!(
                "array {pair} (offset {offset}, length {len}) leaves the batch of {} words",
                arena.len()
            ))
        })
}

#[cfg(test)]
mod tests;
