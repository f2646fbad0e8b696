//! The checks of a batch: that its arrays fit together, and that what they name is there.

use super::{ArenaBounds, Batch};
use crate::error::{Error, Result};

/// Stands for no sequence.
const NOBODY: u32 = u32::MAX;

impl Batch<'_> {
    /// Checks everything; `counts` are T, B and R, and `users` has a word for each page of the pool.
    pub(super) fn check(
        &self,
        counts: [usize; 3],
        limits: &ArenaBounds,
        users: &mut [u32],
    ) -> Result<()> {
        self.check_lengths(counts)?;
        self.check_tokens(limits)?;
        self.check_sequences(limits)?;
        self.check_masks()?;
        self.check_copies(limits, users)?;
        self.check_page_users(limits, users)
    }

    fn check_lengths(&self, [n_tokens, n_seqs, n_rows]: [usize; 3]) -> Result<()> {
        let lengths = [
            ("tokens", self.tokens.len(), n_tokens),
            ("positions", self.positions.len(), n_tokens),
            ("qo_indptr", self.qo_indptr.len(), n_seqs + 1),
            ("kv_indptr", self.kv_indptr.len(), n_seqs + 1),
            ("kv_last_page_len", self.kv_last_page_len.len(), n_seqs),
            ("row_token", self.row_token.len(), n_rows),
            ("row_keep", self.row_keep.len(), n_rows),
            ("mask_indptr", self.mask_indptr.len(), n_tokens + 1),
            (
                "swap_out_dst",
                self.swap_outs.dst.len(),
                self.swap_outs.src.len(),
            ),
            (
                "swap_in_dst",
                self.swap_ins.dst.len(),
                self.swap_ins.src.len(),
            ),
            ("copy_dst", self.copies.dst.len(), self.copies.src.len()),
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
        self.check_adapters(n_seqs)?;
        check_indptr("qo_indptr", self.qo_indptr, self.tokens.len(), true)?;
        check_indptr("kv_indptr", self.kv_indptr, self.kv_indices.len(), true)?;
        check_indptr("mask_indptr", self.mask_indptr, self.mask_runs.len(), false)
    }

    /// The arrays of adapters are there for all sequences, or none is.
    fn check_adapters(&self, n_seqs: usize) -> Result<()> {
        let lengths = [
            ("seq_adapter", self.seq_adapter.len(), 2),
            ("seq_adapter_version", self.seq_adapter_version.len(), 1),
            ("seq_zo_seed", self.seq_zo_seed.len(), 3),
        ];
        let has_none = lengths.iter().all(|&(_, found, _)| found == 0);
        for (name, found, words) in lengths {
            if !has_none && found != words * n_seqs {
                return Err(Error::batch(format!(
                    "{name} has {found} words, not {}",
                    words * n_seqs
                )));
            }
        }
        Ok(())
    }

    fn check_tokens(&self, limits: &ArenaBounds) -> Result<()> {
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
        if self.row_token.windows(2).any(|pair| pair[0] > pair[1]) {
            return Err(Error::batch("row_token descends"));
        }
        check_below("page index in kv_indices", self.kv_indices, limits.n_pages)?;
        for (name, values) in [
            ("page index in swap_out_src", self.swap_outs.src),
            ("page index in swap_in_dst", self.swap_ins.dst),
            ("page index in copy_src", self.copies.src),
            ("page index in copy_dst", self.copies.dst),
        ] {
            check_below(name, values, limits.n_pages)?;
        }
        check_below(
            "host slot in swap_out_dst",
            self.swap_outs.dst,
            limits.host_pages,
        )?;
        check_below(
            "host slot in swap_in_src",
            self.swap_ins.src,
            limits.host_pages,
        )
    }

    fn check_sequences(&self, limits: &ArenaBounds) -> Result<()> {
        for seq_idx in 0..self.n_seqs() {
            let last = self.kv_last_page_len[seq_idx] as usize;
            if last == 0 || last > limits.page_size {
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
            if self.is_reread(seq_idx) && n_tokens != 1 {
                return Err(Error::batch(format!(
                    "sequence {seq_idx} re-reads {n_tokens} tokens; one is possible"
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

    /// What is copied to is copied to once, and a copy comes from what no copy of its kind goes to.
    fn check_copies(&self, limits: &ArenaBounds, users: &mut [u32]) -> Result<()> {
        users[..limits.n_pages].fill(NOBODY);
        for &page in self.copies.dst {
            if users[page as usize] != NOBODY {
                return Err(Error::batch(format!(
                    "page {page} is copied or swapped in to twice"
                )));
            }
            users[page as usize] = 0;
        }
        if let Some(page) = self
            .copies
            .src
            .iter()
            .find(|&&page| users[page as usize] != NOBODY)
        {
            return Err(Error::batch(format!("page {page} is copied to and from")));
        }
        for &page in self.swap_ins.dst {
            if users[page as usize] != NOBODY {
                return Err(Error::batch(format!(
                    "page {page} is copied or swapped in to twice"
                )));
            }
            users[page as usize] = 0;
        }
        let mut slots = self.swap_outs.dst.to_vec();
        slots.sort_unstable();
        if let Some(pair) = slots.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Error::batch(format!(
                "host slot {} is swapped out to twice",
                pair[0]
            )));
        }
        let both = |slot: &&u32| slots.binary_search(slot).is_ok();
        match self.swap_ins.src.iter().find(both) {
            Some(slot) => Err(Error::batch(format!(
                "host slot {slot} is swapped out to and in from"
            ))),
            None => Ok(()),
        }
    }

    /// A page that is written belongs to one sequence of the batch.
    fn check_page_users(&self, limits: &ArenaBounds, users: &mut [u32]) -> Result<()> {
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

fn check_indptr(name: &str, indptr: &[u32], end: usize, strict: bool) -> Result<()> {
    let ascends = indptr
        .windows(2)
        .all(|pair| pair[0] < pair[1] || (!strict && pair[0] == pair[1]));
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
