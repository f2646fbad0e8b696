//! What a pass wants of the batches that run it: rows, and what is read of them.

use std::ops::Range;

use super::{Pass, PassKind};
use crate::batch::{Read, Reads, RowResult};
use crate::generation::{RowProbe, Template};
use crate::sampling::Reading;
use crate::sched::Wants;

impl Pass {
    /// The same, with rows that are wanted.
    pub(crate) fn with_reads(mut self, reads: Reads) -> Self {
        self.rows.reads = reads;
        self
    }

    /// What it wants of the batches that run it.
    pub(crate) fn wants(&self) -> Wants {
        match self.kind {
            PassKind::Flush => Wants::Tokens,
            PassKind::Step(_) if self.is_cleared => Wants::Rows,
            PassKind::Step(_) | PassKind::Run(_) => Wants::Draw {
                n_drafts: self.tokens.n_drafts() + self.tokens.n_forced(),
            },
            PassKind::Forward { .. } => Wants::Rows,
        }
    }

    /// Whether batches have to compute it though all of its tokens are ready: rows are wanted.
    pub(crate) fn wants_rows(&self) -> bool {
        !self.rows.reads.is_done()
    }

    /// Rows that a batch has to answer which computes these slots.
    pub(crate) fn reads_within(&self, slots: Range<u32>) -> &[Read] {
        self.rows.reads.within(slots)
    }

    /// The token in this slot and the row behind it, where that is all that it wants of the next batch: a plain token,
    /// and a row from which one is drawn.
    pub(crate) fn step_at(&self, slot: u32) -> Option<(u32, &Read)> {
        let read = self.rows.reads.only().filter(|read| read.slot == slot)?;
        Some((self.tokens.plain_at(slot)?, read))
    }

    /// Whether its rows count against those that a batch may have: the one of a generation does not, unless
    /// distributions are read of it.
    pub(crate) fn counts_reads(&self) -> bool {
        let is_heavy = || self.rows.last().is_some_and(|read| read.weight() > 1);
        self.kind.generator().is_none() || self.rows.reads.n_rows() > 1 || is_heavy()
    }

    /// Rows that batches answered.
    pub(crate) fn n_reads_answered(&self) -> usize {
        self.rows.reads.n_answered()
    }

    /// The row that the next batch but one answers, where its next token is drawn by the next one.
    pub(crate) fn following_read(&self) -> Option<Read> {
        self.kind.generator()?;
        self.rows.last().map(Read::following)
    }

    /// Tokens from this slot on have to be computed, though somebody else has done so: rows of theirs are wanted. The
    /// last token of a generation is read again instead, unless rows behind drafts are wanted with it.
    pub(crate) fn first_read(&self) -> u32 {
        let slot = match self.kind.generator() {
            Some(_) if self.tokens.n_drafts() == 0 => None,
            _ => self.rows.reads.next_slot(),
        };
        slot.unwrap_or(u32::MAX)
    }

    /// The tokens that were drawn from its rows, where all of them were answered.
    pub(crate) fn rows_drawn(&self) -> &[u32] {
        if self.rows.reads.is_done() {
            self.rows.reads.drawn()
        } else {
            &[]
        }
    }

    /// What it has to say of its rows.
    pub(crate) fn into_reads(self) -> Reads {
        self.rows.reads
    }
}

/// Rows are answered, and the next ones wanted.
impl Pass {
    /// The batch answered the next of its rows.
    pub(crate) fn read<'a>(&mut self, rows: impl Iterator<Item = RowResult<'a>>) {
        self.rows.reads.answer(rows);
    }

    /// What its probes read, where it is answered.
    pub(crate) fn readings(&mut self) -> Vec<Reading> {
        std::mem::take(&mut self.rows.readings)
    }

    /// It wants the row behind its last token, drawn as the one before. False: it had none.
    pub(crate) fn want_following(&mut self) -> bool {
        let slot = self.tokens.end().checked_sub(1);
        slot.is_some_and(|slot| self.rows.follow(slot))
    }

    /// It wants the row behind its last token, and those behind drafts, with probes of its own.
    pub(crate) fn want_next(&mut self, template: Template, drafts: &[u32], probes: &[RowProbe]) {
        let n_drafts = drafts.len() as u32;
        if let Some(slot) = self.tokens.end().checked_sub(1) {
            self.rows.reads = if self.is_cleared {
                template.reads_only(slot, probes)
            } else {
                template.reads(slot, n_drafts, probes)
            };
        }
        self.rows.make_by(template, probes);
        self.n_drawn_most = 1 + n_drafts;
        self.speculation.n_drafted += n_drafts;
        self.tokens.add_drafts(drafts, self.adapter);
    }

    /// The seed by which it draws, where it is a generation that has not ended.
    pub(crate) fn seed(&self) -> Option<u64> {
        self.rows.template.as_ref().map(|template| template.seed)
    }
}
