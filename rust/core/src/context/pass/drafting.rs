//! Drafts of a pass: tokens of which nobody knows yet whether they will be drawn. They are computed with the token
//! before them, and judged with it.

use super::Pass;
use crate::generation::{RowProbe, Speculation};
use crate::sched::Wants;

impl Pass {
    /// Tokens of which nobody knows yet whether they will be drawn.
    pub(crate) fn drafts(&self) -> &[u32] {
        self.tokens.drafts()
    }

    /// What was drafted and accepted so far.
    pub(crate) const fn speculation(&self) -> Speculation {
        self.speculation
    }

    /// Tokens that a step of it computes where nothing was accepted with the step before: the newest one, and drafts
    /// that are judged with it.
    pub(crate) fn n_of_step(&self) -> u32 {
        match self.wants() {
            Wants::Draw { .. } => 1 + self.tokens.n_drafts(),
            Wants::Tokens | Wants::Rows => 1,
        }
    }

    /// Whether it goes on when it has its drafts.
    pub(crate) const fn is_drafting(&self) -> bool {
        self.phase.is_drafting()
    }

    /// The first `n_accepted` of the tokens that were drawn from its rows are its own, in the place of drafts.
    pub(super) fn push_drawn(&mut self, n_accepted: u32) {
        let drafts = self.tokens.drafts();
        if !drafts.is_empty() {
            let drawn = self.rows.reads.drawn().iter().take(n_accepted as usize);
            let alike = drafts.iter().zip(drawn);
            let n_alike = alike.take_while(|(draft, token)| draft == token).count();
            self.speculation.n_accepted += n_alike as u32;
            self.tokens.drop_drafts();
        }
        for &token in self.rows.reads.drawn().iter().take(n_accepted as usize) {
            self.tokens.push(token, self.adapter);
        }
    }

    /// It wants the rows behind drafts too, which follow its last token, with probes of its own.
    pub(crate) fn draft(&mut self, drafts: &[u32], probes: &[RowProbe]) {
        if let Some(template) = self.rows.template.take() {
            self.want_next(template, drafts, probes);
        }
    }

    /// It goes on when it has its drafts, `n_drafts` at most.
    pub(crate) fn await_drafts(&mut self, n_drafts: u32) -> bool {
        let awaits = self.phase.await_drafts();
        if awaits {
            // There has to be room for them, whatever the program appends meanwhile.
            self.n_drawn_most = 1 + n_drafts;
        }
        awaits
    }

    /// It goes on with drafts, or without any.
    pub(crate) fn end_drafting(&mut self, drafts: &[u32], probes: &[RowProbe]) -> bool {
        let ends = self.phase.end_drafting();
        if ends {
            self.n_drawn_most = 1;
            if !drafts.is_empty() {
                self.draft(drafts, probes);
            }
        }
        ends
    }

    /// Drops the drafts of a step that draws nothing.
    pub(crate) fn drop_drafts(&mut self) {
        self.tokens.drop_drafts();
    }
}
