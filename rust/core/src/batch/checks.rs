//! Whether the arrays of an arena fit together. What they name in a driver (tokens, pages, host slots) the driver
//! checks.

use super::layout::{Field, Keep, SAMPLER_WORDS};
use super::view::{ArenaView, SequenceView};
use crate::brle;

impl ArenaView<'_> {
    /// Checks every array; until then nothing else of the view may be called.
    pub(super) fn check(&self) -> Result<(), String> {
        self.check_lengths()?;
        self.check_sequences()?;
        self.check_masks()?;
        self.check_copies()?;
        self.check_rows()
    }

    fn check_lengths(&self) -> Result<(), String> {
        let (t, b, r) = (self.n_tokens(), self.n_sequences(), self.n_rows());
        let lengths = [
            (Field::Tokens, t),
            (Field::Positions, t),
            (Field::QoIndptr, b + 1),
            (Field::KvIndptr, b + 1),
            (Field::KvLastPageLen, b),
            (Field::SeqContext, 2 * b),
            (Field::SeqRequest, 2 * b),
            (Field::SeqAdapter, 2 * b),
            (Field::SeqAdapterVersion, b),
            (Field::SeqZoSeed, 3 * b),
            (Field::RowToken, r),
            (Field::MaskIndptr, t + 1),
            (Field::CopyDst, self.field(Field::CopySrc).len()),
            (Field::RowSampler, SAMPLER_WORDS * r),
            (Field::RowSlot, r),
            (Field::RowDraws, r),
            (Field::RowMaskIndptr, r + 1),
            (Field::SeqMedia, 2 * b),
            (Field::SeqReread, b),
            (Field::SwapOutDst, self.field(Field::SwapOutSrc).len()),
            (Field::SwapInDst, self.field(Field::SwapInSrc).len()),
            (Field::RowKeep, r),
            (Field::SeqFollows, b),
        ];
        for (field, length) in lengths {
            if self.field(field).len() != length {
                return Err(format!(
                    "{field:?} has {} words and should have {length}",
                    self.field(field).len()
                ));
            }
        }
        Ok(())
    }

    fn check_sequences(&self) -> Result<(), String> {
        check_indptr(
            Field::QoIndptr,
            self.field(Field::QoIndptr),
            self.n_tokens(),
            true,
        )?;
        check_indptr(
            Field::KvIndptr,
            self.field(Field::KvIndptr),
            self.field(Field::KvIndices).len(),
            true,
        )?;
        check_indptr(
            Field::MaskIndptr,
            self.field(Field::MaskIndptr),
            self.field(Field::MaskRuns).len(),
            false,
        )?;
        for (index, &slots) in self.field(Field::KvLastPageLen).iter().enumerate() {
            if slots == 0 || slots > self.page_size() {
                return Err(format!(
                    "sequence {index} uses {slots} slots of its last page of {}",
                    self.page_size()
                ));
            }
        }
        for (index, sequence) in self.sequences().enumerate() {
            if sequence.tokens.len() > sequence.length {
                return Err(format!(
                    "sequence {index} has {} tokens and {} slots",
                    sequence.tokens.len(),
                    sequence.length
                ));
            }
            if sequence.reread && sequence.tokens.len() != 1 {
                return Err(format!(
                    "sequence {index} re-reads {} tokens; one is possible",
                    sequence.tokens.len()
                ));
            }
            if let Some(row) = sequence.follows {
                check_follower(index, row, &sequence, self.before())?;
            }
        }
        Ok(())
    }

    fn check_masks(&self) -> Result<(), String> {
        if self.field(Field::MaskRuns).is_empty() {
            return Ok(());
        }
        for sequence in self.sequences() {
            for index in 0..sequence.tokens.len() {
                let token = sequence.first_token + index;
                let runs = self.mask(token);
                let n_seen = sequence.length - sequence.tokens.len() + index + 1;
                if brle::check(runs, sequence.length as u32).is_err() {
                    return Err(format!(
                        "the mask of token {token} covers more than the {} slots of its sequence",
                        sequence.length
                    ));
                }
                if brle::allowed(runs, n_seen as u32).next().is_none() {
                    return Err(format!(
                        "the mask of token {token} allows no slot that causality does"
                    ));
                }
            }
        }
        Ok(())
    }

    fn check_copies(&self) -> Result<(), String> {
        let copied = sorted(&[self.field(Field::CopyDst)]);
        let written = sorted(&[self.field(Field::CopyDst), self.field(Field::SwapInDst)]);
        let kept = sorted(&[self.field(Field::SwapOutDst)]);
        if let Some(page) = repeated(&written) {
            return Err(format!("page {page} is copied or swapped in to twice"));
        }
        if let Some(slot) = repeated(&kept) {
            return Err(format!("host slot {slot} is swapped out to twice"));
        }
        if let Some(page) = common(self.field(Field::CopySrc), &copied) {
            return Err(format!(
                "page {page} is both source and destination of a copy"
            ));
        }
        if let Some(slot) = common(self.field(Field::SwapInSrc), &kept) {
            return Err(format!("host slot {slot} is swapped out to and in from"));
        }
        Ok(())
    }

    fn check_rows(&self) -> Result<(), String> {
        check_indptr(
            Field::RowMaskIndptr,
            self.field(Field::RowMaskIndptr),
            self.field(Field::RowMaskRuns).len(),
            false,
        )?;
        let rows = self.field(Field::RowToken);
        if rows.windows(2).any(|pair| pair[0] > pair[1]) {
            return Err("RowToken descends".to_owned());
        }
        let kept = self.field(Field::RowKeep);
        if let Some(row) = kept.iter().position(|&keep| keep > Keep::Embedding as u32) {
            return Err(format!("RowKeep of row {row} is {}", kept[row]));
        }
        if let Some((row, _)) = self
            .rows()
            .enumerate()
            .find(|(_, row)| row.embeds && row.n_draws > 0)
        {
            return Err(format!("row {row} is a hidden state, and drawn from"));
        }
        match rows.last() {
            Some(&last) if last as usize >= self.n_tokens() => Err(format!(
                "RowToken holds {last} and the batch has {} tokens",
                self.n_tokens()
            )),
            _ => Ok(()),
        }
    }
}

fn check_follower(
    index: usize,
    row: u32,
    sequence: &SequenceView<'_>,
    before: Option<u64>,
) -> Result<(), String> {
    if before.is_none() {
        return Err(format!("sequence {index} follows row {row} of no batch"));
    }
    if sequence.tokens.len() != 1 || sequence.reread {
        return Err(format!(
            "sequence {index} follows row {row} and has {} tokens; one is possible, which is written",
            sequence.tokens.len()
        ));
    }
    Ok(())
}

/// The elements of both lists, ascending.
fn sorted(lists: &[&[u32]]) -> Vec<u32> {
    let mut all = lists.concat();
    all.sort_unstable();
    all
}

/// An element that a sorted list holds twice.
fn repeated(sorted: &[u32]) -> Option<u32> {
    let pair = sorted.windows(2).find(|pair| pair[0] == pair[1])?;
    Some(pair[0])
}

/// An element that a sorted list holds too.
fn common(list: &[u32], sorted: &[u32]) -> Option<u32> {
    let found = |element: &&u32| sorted.binary_search(element).is_ok();
    list.iter().find(found).copied()
}

fn check_indptr(field: Field, indptr: &[u32], total: usize, strict: bool) -> Result<(), String> {
    let ascends = indptr
        .windows(2)
        .all(|pair| pair[0] < pair[1] || (!strict && pair[0] == pair[1]));
    if ascends && indptr.first() == Some(&0) && indptr.last() == Some(&(total as u32)) {
        return Ok(());
    }
    Err(format!("{field:?} does not ascend from 0 to {total}"))
}
