//! The batch as the kernels see it: the arena's arrays, checked once against the plan, read in place.
//!
//! `pie-core` writes the arena and documents its arrays; only those that a model needs are looked at here. Every index that an
//! operation follows (token, position, page, row, slot) is checked before anything is computed, so a bad batch changes nothing.

use std::ops::Range;

use crate::error::{Error, Result};

const MAGIC: u32 = 0x4245_4950;
const LAYOUT_VERSION: u32 = 2;
const HEADER_WORDS: usize = 96;
/// Word of the header where the (offset, length) pairs of the arrays begin.
const FIRST_PAIR: usize = 16;

/// Arrays of the arena, by the index of their pair in the header.
mod array {
    pub(super) const TOKENS: usize = 0;
    pub(super) const POSITIONS: usize = 1;
    pub(super) const QO_INDPTR: usize = 2;
    pub(super) const KV_INDPTR: usize = 3;
    pub(super) const KV_INDICES: usize = 4;
    pub(super) const KV_LAST_PAGE_LEN: usize = 5;
    pub(super) const ROW_TOKEN: usize = 11;
    pub(super) const MASK_INDPTR: usize = 12;
    pub(super) const MASK_RUNS: usize = 13;
    pub(super) const COPY_SRC: usize = 14;
    pub(super) const COPY_DST: usize = 15;
    pub(super) const SEQ_REREAD: usize = 22;
}

/// What a batch may name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) vocab_size: usize,
    pub(crate) max_positions: usize,
    pub(crate) page_size: usize,
    pub(crate) n_pages: usize,
    pub(crate) max_tokens: usize,
}

/// Where a token's key and value are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) page: u32,
    /// Slot inside the page.
    pub(crate) idx: usize,
}

/// A checked batch: T tokens of B sequences.
#[derive(Debug)]
pub(crate) struct Batch<'a> {
    pub(crate) tokens: &'a [u32],
    pub(crate) positions: &'a [u32],
    pub(crate) row_token: &'a [u32],
    pub(crate) copy_src: &'a [u32],
    pub(crate) copy_dst: &'a [u32],
    qo_indptr: &'a [u32],
    kv_indptr: &'a [u32],
    kv_indices: &'a [u32],
    kv_last_page_len: &'a [u32],
    mask_indptr: &'a [u32],
    mask_runs: &'a [u32],
    seq_reread: &'a [u32],
    page_size: usize,
}

impl<'a> Batch<'a> {
    /// Reads and checks an arena. `users` has a word for each page of the pool; its contents do not matter.
    pub(crate) fn read(arena: &'a [u32], limits: &Limits, users: &mut [u32]) -> Result<Self> {
        let header = header(arena)?;
        let page_size = header[5] as usize;
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
            copy_src: array(array::COPY_SRC)?,
            copy_dst: array(array::COPY_DST)?,
            qo_indptr: array(array::QO_INDPTR)?,
            kv_indptr: array(array::KV_INDPTR)?,
            kv_indices: array(array::KV_INDICES)?,
            kv_last_page_len: array(array::KV_LAST_PAGE_LEN)?,
            mask_indptr: array(array::MASK_INDPTR)?,
            mask_runs: array(array::MASK_RUNS)?,
            seq_reread: array(array::SEQ_REREAD)?,
            page_size,
        };
        let counts = [header[6], header[7], header[8]].map(|n| n as usize);
        batch.check_lengths(counts)?;
        batch.check_tokens(limits)?;
        batch.check_sequences(limits)?;
        batch.check_masks()?;
        batch.check_page_users(limits, users)?;
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

    fn check_lengths(&self, [n_tokens, n_seqs, n_rows]: [usize; 3]) -> Result<()> {
        let lengths = [
            ("tokens", self.tokens.len(), n_tokens),
            ("positions", self.positions.len(), n_tokens),
            ("qo_indptr", self.qo_indptr.len(), n_seqs + 1),
            ("kv_indptr", self.kv_indptr.len(), n_seqs + 1),
            ("kv_last_page_len", self.kv_last_page_len.len(), n_seqs),
            ("row_token", self.row_token.len(), n_rows),
            ("mask_indptr", self.mask_indptr.len(), n_tokens + 1),
            ("copy_dst", self.copy_dst.len(), self.copy_src.len()),
        ];
        for (name, found, expected) in lengths {
            if found != expected {
                return Err(Error::batch(format!(
                    "{name} has {found} elements, not {expected}"
                )));
            }
        }
        if !self.seq_reread.is_empty() && self.seq_reread.len() != n_seqs {
            return Err(Error::batch(format!(
                "seq_reread has {} elements, neither 0 nor {n_seqs}",
                self.seq_reread.len()
            )));
        }
        check_indptr("qo_indptr", self.qo_indptr, self.tokens.len())?;
        check_indptr("kv_indptr", self.kv_indptr, self.kv_indices.len())?;
        check_indptr("mask_indptr", self.mask_indptr, self.mask_runs.len())
    }

    fn check_tokens(&self, limits: &Limits) -> Result<()> {
        if self.tokens.len() > limits.max_tokens {
            return Err(Error::batch(format!(
                "{} tokens in a batch; the plan takes {}",
                self.tokens.len(),
                limits.max_tokens
            )));
        }
        if self.row_token.len() > limits.max_tokens {
            return Err(Error::batch(format!(
                "{} rows of logits in a batch; the plan takes {}",
                self.row_token.len(),
                limits.max_tokens
            )));
        }
        check_below("token", self.tokens, limits.vocab_size)?;
        check_below("position", self.positions, limits.max_positions)?;
        check_below("row_token", self.row_token, self.tokens.len())?;
        check_below("page index in kv_indices", self.kv_indices, limits.n_pages)?;
        check_below("page index in copy_src", self.copy_src, limits.n_pages)?;
        check_below("page index in copy_dst", self.copy_dst, limits.n_pages)
    }

    fn check_sequences(&self, limits: &Limits) -> Result<()> {
        for seq_idx in 0..self.n_seqs() {
            let last = self.kv_last_page_len[seq_idx] as usize;
            let has_pages = !self.seq_pages(seq_idx).is_empty();
            if has_pages && (last == 0 || last > limits.page_size) {
                return Err(Error::batch(format!(
                    "sequence {seq_idx}: its last page holds {last} tokens of {}",
                    limits.page_size
                )));
            }
            let (n_tokens, kv_len) = (self.seq_tokens(seq_idx).len(), self.kv_len(seq_idx));
            if n_tokens > kv_len {
                return Err(Error::batch(format!(
                    "sequence {seq_idx}: {n_tokens} new tokens, but {kv_len} slots"
                )));
            }
        }
        Ok(())
    }

    fn check_masks(&self) -> Result<()> {
        for seq_idx in 0..self.n_seqs() {
            for token_idx in self
                .seq_tokens(seq_idx)
                .filter(|&token_idx| self.is_masked(token_idx))
            {
                let runs = &self.mask_runs[self.mask_indptr[token_idx] as usize
                    ..self.mask_indptr[token_idx + 1] as usize];
                let covered: u64 = runs.iter().map(|&run| u64::from(run)).sum();
                if covered > self.kv_len(seq_idx) as u64 {
                    let kv_len = self.kv_len(seq_idx);
                    return Err(Error::batch(format!(
                        "token {token_idx}: its attention row covers {covered} slots of {kv_len}"
                    )));
                }
                if self
                    .allowed(token_idx, self.slot_of(seq_idx, token_idx) + 1)
                    .next()
                    .is_none()
                {
                    return Err(Error::batch(format!(
                        "token {token_idx}: its attention row allows no slot that causality does"
                    )));
                }
            }
        }
        Ok(())
    }

    /// A page that is written belongs to one sequence of the batch; a page that is copied to is copied to once and from never.
    fn check_page_users(&self, limits: &Limits, users: &mut [u32]) -> Result<()> {
        const NOBODY: u32 = u32::MAX;
        users[..limits.n_pages].fill(NOBODY);
        for &page in self.copy_dst {
            if users[page as usize] != NOBODY {
                return Err(Error::batch(format!("page {page} is copied to twice")));
            }
            users[page as usize] = 0;
        }
        if let Some(page) = self
            .copy_src
            .iter()
            .find(|&&page| users[page as usize] != NOBODY)
        {
            return Err(Error::batch(format!("page {page} is copied to and from")));
        }
        users[..limits.n_pages].fill(NOBODY);
        let written = |seq_idx: usize| {
            let n_tokens = if self.is_reread(seq_idx) {
                0
            } else {
                self.seq_tokens(seq_idx).len()
            };
            let (kv_len, pages) = (self.kv_len(seq_idx), self.seq_pages(seq_idx));
            if n_tokens == 0 {
                pages.len()..pages.len()
            } else {
                (kv_len - n_tokens) / self.page_size..pages.len()
            }
        };
        for seq_idx in 0..self.n_seqs() {
            for &page in &self.seq_pages(seq_idx)[written(seq_idx)] {
                if users[page as usize] != NOBODY {
                    return Err(Error::batch(format!("page {page} is written twice")));
                }
                users[page as usize] = seq_idx as u32;
            }
        }
        for seq_idx in 0..self.n_seqs() {
            for &page in self.seq_pages(seq_idx) {
                let user = users[page as usize];
                if user != NOBODY && user != seq_idx as u32 {
                    return Err(Error::batch(format!(
                        "page {page} is written by sequence {user} and used by sequence {seq_idx}"
                    )));
                }
            }
        }
        Ok(())
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

fn header(arena: &[u32]) -> Result<&[u32]> {
    let Some(header) = arena.get(..HEADER_WORDS) else {
        return Err(Error::batch(format!(
            "a batch of {} words has no header of {HEADER_WORDS}",
            arena.len()
        )));
    };
    if header[0] != MAGIC || header[1] != LAYOUT_VERSION {
        return Err(Error::batch(format!(
            "not a batch of layout {LAYOUT_VERSION}: magic {:#010x}, layout {}; the engine and its kernels are of different versions",
            header[0], header[1]
        )));
    }
    if header[2] as usize != arena.len() {
        return Err(Error::batch(format!(
            "the header says {} words, the batch has {}",
            header[2],
            arena.len()
        )));
    }
    Ok(header)
}

fn array_of<'a>(arena: &'a [u32], header: &[u32], pair: usize) -> Result<&'a [u32]> {
    let (offset, len) = (
        header[FIRST_PAIR + 2 * pair] as usize,
        header[FIRST_PAIR + 2 * pair + 1] as usize,
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

fn check_indptr(name: &str, indptr: &[u32], end: usize) -> Result<()> {
    let ascends = indptr.windows(2).all(|pair| pair[0] <= pair[1]);
    if indptr.first() != Some(&0)
        || indptr.last().is_none_or(|&last| last as usize != end)
        || !ascends
    {
        return Err(Error::batch(format!(
            "{name} does not ascend from 0 to {end}"
        )));
    }
    Ok(())
}

fn check_below(name: &str, values: &[u32], limit: usize) -> Result<()> {
    match values.iter().find(|&&value| value as usize >= limit) {
        Some(value) => Err(Error::batch(format!("{name} {value} is not below {limit}"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
