//! What runs ahead of a program: a step goes on behind its answer, and becomes a pass of its own when that is taken.

use super::super::phase::Phase;
use super::{Pass, PassKind};
use crate::batch::{Read, Reads};
use crate::generation::Template;
use crate::ids::{GeneratorId, RequestId};

impl Pass {
    /// Whether what it waits for was not asked for yet.
    pub(crate) const fn is_ahead(&self) -> bool {
        !matches!(
            self.phase,
            Phase::Waiting(_) | Phase::Running(_) | Phase::Awaiting(_) | Phase::Drafting(_)
        )
    }

    /// Tokens that were drawn from the rows of one that runs ahead: they are its own, whatever the judge will say.
    pub(crate) fn n_drawn_ahead(&self) -> u32 {
        if self.is_ahead() {
            self.rows.reads.drawn().len() as u32
        } else {
            0
        }
    }

    /// Whether the token that it draws can be fed into the next batch: not where its mask may come late, where drafts
    /// decide how many are drawn, or where the row is read besides.
    pub(crate) fn can_be_followed(&self) -> bool {
        let is_late = |read: &Read| read.is_late || read.probes.is_some();
        self.tokens.n_drafts() == 0 && self.rows.last().is_some_and(|read| !is_late(read))
    }

    /// Forgets what ran ahead of the answer, and goes no further.
    pub(crate) fn stop_ahead(&mut self) -> bool {
        self.tokens.truncate(self.n_asked());
        let stops = self.phase.stop_ahead();
        if stops && self.kind.generator().is_some() {
            // A row that was kept for it is of no use.
            self.rows.reads = Reads::default();
        }
        stops
    }

    /// What runs ahead of an answer that is taken, as a pass of its own; none where nothing does.
    pub(crate) fn split(&mut self) -> Option<Self> {
        let phase = self.phase.split()?;
        let n_computed = self.n_computed();
        let tokens = self.tokens.split(n_computed, self.n_asked() - n_computed);
        Some(Self {
            rows: self.rows.split(),
            adapter: self.adapter,
            budget: self.budget.clone(),
            is_partway: self.is_partway,
            held: self.held.take(),
            ..Self::in_phase(self.id, phase, self.kind, tokens)
        })
    }

    /// Whether it runs ahead of a step of `generator` that draws by `template` behind `pending`.
    pub(crate) fn fits(
        &self,
        generator: GeneratorId,
        template: &Template,
        pending: &[u32],
    ) -> bool {
        matches!(self.phase, Phase::Ahead(_))
            && self.kind == PassKind::Step(generator)
            && self.rows.last().is_some_and(|read| template.makes(read))
            && self.tokens.not_drawn() == pending
    }

    /// A program asks for what ran ahead.
    pub(crate) fn promote(&mut self, request: RequestId) -> bool {
        self.phase.promote(request)
    }
}
