//! A pass under way: the tokens it took, and those it drew.

use std::ops::Range;
use std::sync::Arc;

use crate::batch::{Adapter, MaskFault, Read, Reads, RowResult};
use crate::budget::TokenBudget;
use crate::errors::Error;
use crate::generation::{FinishReason, RowProbe, Speculation, Template};
use crate::ids::{GeneratorId, PassId, RequestId};
use crate::kv::Content;
use crate::sampling::Reading;
use crate::sched::Wants;

use super::held_bytes::HeldBytes;
use super::phase::Phase;
use super::tokens::Tokens;

/// What a pass is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PassKind {
    Flush,
    /// One token.
    Step(GeneratorId),
    /// Tokens until the end.
    Run(GeneratorId),
    /// What a program puts together by itself. `commits` tells whether its full pages are committed.
    Forward {
        commits: bool,
    },
}

impl PassKind {
    /// The generator whose tokens it draws.
    pub(crate) const fn generator(self) -> Option<GeneratorId> {
        match self {
            Self::Step(generator) | Self::Run(generator) => Some(generator),
            Self::Flush | Self::Forward { .. } => None,
        }
    }
}

/// A pass that was submitted and not yet taken, or that runs ahead of the program. How far it is computed tells the
/// lane of its context, and where it stands its [`Phase`].
#[derive(Debug)]
pub(crate) struct Pass {
    pub(crate) id: PassId,
    pub(crate) kind: PassKind,
    /// The rows that it wants: in a flush none, in a generation the one behind its last token.
    reads: Reads,
    /// The key under which it counts for the seeds of later ones; none where it draws nothing, or its generator counts
    /// already.
    pub(crate) origin: Option<u64>,
    /// What its tokens are computed with, those that it draws included.
    adapter: Adapter,
    /// What its tokens are charged to, when they are taken.
    pub(crate) budget: Option<TokenBudget>,
    tokens: Tokens,
    /// What makes its rows, where it is a generation that has not ended.
    template: Option<Template>,
    /// The row of each of its probes, and what they read once it is answered.
    rows_probed: Vec<u32>,
    readings: Vec<Reading>,
    speculation: Speculation,
    /// Tokens that it may draw at most, where it is a step.
    n_drawn_most: u32,
    phase: Phase,
    /// It draws no token, though it is a step: the program says which ones follow.
    is_cleared: bool,
    /// Batches ran a part of it and none its end: what it holds is not taken away before one did.
    is_partway: bool,
    /// Since when it waits for its first batch at the wish of a program, in nanoseconds; none where it does not.
    pub(crate) asked_ns: Option<u64>,
    /// Of its tokens, those that were found computed.
    pub(crate) n_found: u32,
    /// What its masks and the rows that it keeps, or may have to, take; none where that is nothing.
    pub(crate) held: Option<HeldBytes>,
}

impl Pass {
    /// A pass that a program asks for, and that wants no row.
    pub(crate) fn new(id: PassId, request: RequestId, kind: PassKind, tokens: Tokens) -> Self {
        Self::in_phase(id, Phase::Waiting(request), kind, tokens)
    }

    fn in_phase(id: PassId, phase: Phase, kind: PassKind, tokens: Tokens) -> Self {
        Self {
            id,
            kind,
            reads: Reads::default(),
            origin: None,
            adapter: Adapter::default(),
            budget: None,
            tokens,
            template: None,
            rows_probed: Vec::new(),
            readings: Vec::new(),
            speculation: Speculation::default(),
            n_drawn_most: 1,
            phase,
            is_cleared: false,
            is_partway: false,
            asked_ns: None,
            n_found: 0,
            held: None,
        }
    }

    /// The same, of a step that draws nothing.
    pub(crate) fn cleared(self) -> Self {
        Self {
            is_cleared: true,
            ..self
        }
    }

    /// The same, with rows that are wanted.
    pub(crate) fn with_reads(self, reads: Reads) -> Self {
        Self { reads, ..self }
    }

    /// The same, computed with an adapter.
    pub(crate) fn with_adapter(self, adapter: Adapter) -> Self {
        Self {
            adapter,
            tokens: self.tokens.with_adapter(adapter),
            ..self
        }
    }

    /// What its tokens are computed with.
    pub(crate) const fn adapter(&self) -> Adapter {
        self.adapter
    }

    /// The request that it serves; none where it runs ahead as a pass of its own.
    pub(crate) const fn request(&self) -> Option<RequestId> {
        self.phase.request()
    }

    /// Tokens of the buffer that it took.
    pub(crate) const fn n_buffered(&self) -> usize {
        self.tokens.n_buffered()
    }

    /// Its tokens with what they depend on.
    pub(crate) const fn content(&self) -> &Content {
        self.tokens.content()
    }

    /// Whether it drew no token so far.
    pub(crate) fn has_drawn_none(&self) -> bool {
        self.drawn().is_empty()
    }

    /// Tokens that it drew, without those that ran ahead of its answer.
    pub(crate) fn drawn(&self) -> &[u32] {
        self.tokens.drawn(self.n_asked())
    }

    /// Its tokens, without those that ran ahead of its answer.
    fn n_asked(&self) -> u32 {
        match self.phase {
            Phase::Answered { n_tokens, .. } => n_tokens,
            _ => self.tokens.len() - self.tokens.drafts().len() as u32,
        }
    }

    /// Its tokens: those taken, those drawn, and drafts.
    pub(crate) fn n_tokens(&self) -> u32 {
        self.tokens.len()
    }

    /// Tokens that are computed when it is done: all but the last one drawn.
    pub(crate) fn n_computed(&self) -> u32 {
        self.n_asked() - u32::from(!self.drawn().is_empty())
    }

    /// The last token drawn.
    pub(crate) fn uncomputed(&self) -> Option<u32> {
        self.drawn().last().copied()
    }

    /// Tokens that the context will hold beyond those that it shows: given to the pass, or as many as a step may draw.
    pub(crate) const fn n_to_come(&self) -> u32 {
        match self.kind {
            PassKind::Flush => 0,
            PassKind::Step(_) | PassKind::Run(_) => self.n_drawn_most,
            PassKind::Forward { .. } => self.tokens.n_given(),
        }
    }

    /// Tokens that enter the context with its result, beside those that were there.
    pub(crate) fn n_entering(&self) -> usize {
        self.tokens.n_given() as usize + self.drawn().len()
    }

    /// Whether the full pages that it leaves are committed when the program goes on.
    pub(crate) const fn commits(&self) -> bool {
        !matches!(self.kind, PassKind::Forward { commits: false })
    }

    /// Whether it is a generation that draws its next token.
    pub(crate) const fn draws(&self) -> bool {
        self.kind.generator().is_some() && !self.is_cleared
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

    /// Tokens that a step of it computes where nothing was accepted with the step before: the newest one, and drafts
    /// that are judged with it.
    pub(crate) fn n_of_step(&self) -> u32 {
        match self.wants() {
            Wants::Draw { .. } => 1 + self.tokens.n_drafts(),
            Wants::Tokens | Wants::Rows => 1,
        }
    }

    /// Whether batches have to compute it though all of its tokens are ready: rows are wanted.
    pub(crate) fn wants_rows(&self) -> bool {
        !self.reads.is_done()
    }

    /// Rows that a batch has to answer which computes these slots.
    pub(crate) fn reads_within(&self, slots: Range<u32>) -> &[Read] {
        self.reads.within(slots)
    }

    /// The token in this slot and the row behind it, where that is all that it wants of the next batch: a plain token,
    /// and a row from which one is drawn.
    pub(crate) fn step_at(&self, slot: u32) -> Option<(u32, &Read)> {
        let read = self.reads.only().filter(|read| read.slot == slot)?;
        Some((self.tokens.plain_at(slot)?, read))
    }

    /// Whether its rows count against those that a batch may have: the one of a generation does not, unless
    /// distributions are read of it.
    pub(crate) fn counts_reads(&self) -> bool {
        let is_heavy = || self.reads.last().is_some_and(|read| read.weight() > 1);
        self.kind.generator().is_none() || self.reads.n_rows() > 1 || is_heavy()
    }

    /// Rows whose masks come late and that were not drawn from yet.
    pub(crate) const fn n_late(&self) -> usize {
        self.reads.n_late()
    }

    /// Rows that batches answered.
    pub(crate) fn n_reads_answered(&self) -> usize {
        self.reads.n_answered()
    }

    /// The next row that was kept, whose mask has come and from which nobody draws.
    pub(crate) fn next_draw(&mut self) -> Option<(usize, Arc<[f32]>, &Read)> {
        self.reads.next_draw()
    }

    /// Whether the token that it draws can be fed into the next batch: not where its mask may come late, where drafts
    /// decide how many are drawn, or where the row is read besides.
    pub(crate) fn can_be_followed(&self) -> bool {
        let is_late = |read: &Read| read.is_late || read.probes.is_some();
        self.tokens.n_drafts() == 0 && self.reads.last().is_some_and(|read| !is_late(read))
    }

    /// The row that the next batch but one answers, where its next token is drawn by the next one.
    pub(crate) fn following_read(&self) -> Option<Read> {
        self.kind.generator()?;
        self.reads.last().map(Read::following)
    }

    /// Tokens from this slot on have to be computed, though somebody else has done so: rows of theirs are wanted. The
    /// last token of a generation is read again instead, unless rows behind drafts are wanted with it.
    pub(crate) fn first_read(&self) -> u32 {
        let slot = match self.kind.generator() {
            Some(_) if self.tokens.n_drafts() == 0 => None,
            _ => self.reads.next_slot(),
        };
        slot.unwrap_or(u32::MAX)
    }

    /// Tokens that were drawn from the rows of one that runs ahead: they are its own, whatever the judge will say.
    pub(crate) fn n_drawn_ahead(&self) -> u32 {
        if self.is_ahead() {
            self.reads.drawn().len() as u32
        } else {
            0
        }
    }

    /// The tokens that were drawn from its rows, where all of them were answered.
    pub(crate) fn rows_drawn(&self) -> &[u32] {
        if self.reads.is_done() {
            self.reads.drawn()
        } else {
            &[]
        }
    }

    /// Tokens of which nobody knows yet whether they will be drawn.
    pub(crate) fn drafts(&self) -> &[u32] {
        self.tokens.drafts()
    }

    /// What was drafted and accepted so far.
    pub(crate) const fn speculation(&self) -> Speculation {
        self.speculation
    }

    /// Its tokens in these slots, where all of them are its own and plain.
    pub(crate) fn tokens_at(&self, slots: Range<u32>) -> Option<&[u32]> {
        self.tokens.at(slots)
    }

    /// Whether it waits for a batch.
    pub(crate) const fn is_waiting(&self) -> bool {
        self.phase.is_waiting()
    }

    /// Whether a batch runs it.
    pub(crate) const fn is_running(&self) -> bool {
        self.phase.is_running()
    }

    /// Whether batches ran a part of it, and none its end yet.
    pub(crate) const fn is_partway(&self) -> bool {
        self.is_partway
    }

    /// Whether a program asked for it, and nothing is missing but token masks.
    pub(crate) const fn is_awaiting(&self) -> bool {
        self.phase.is_awaiting()
    }

    /// Whether nothing is missing but token masks, asked for or not.
    pub(crate) fn awaits_masks(&self) -> bool {
        self.phase.awaits_masks()
    }

    /// Whether the mask of a row has not come.
    pub(crate) fn lacks_mask(&self) -> bool {
        self.reads.lacks_mask()
    }

    /// Whether it goes on when it has its drafts.
    pub(crate) const fn is_drafting(&self) -> bool {
        self.phase.is_drafting()
    }

    /// The seed by which it draws, where it is a generation that has not ended.
    pub(crate) fn seed(&self) -> Option<u64> {
        self.template.as_ref().map(|template| template.seed)
    }

    /// The mask of a row that comes late, by its place; none where it has not come.
    pub(crate) fn mask_at(&self, place: usize) -> Option<Arc<[u32]>> {
        self.reads.mask_at(place)
    }

    /// Whether what it waits for was not asked for yet.
    pub(crate) const fn is_ahead(&self) -> bool {
        !matches!(
            self.phase,
            Phase::Waiting(_) | Phase::Running(_) | Phase::Awaiting(_) | Phase::Drafting(_)
        )
    }

    /// Whether its answer or its error can be taken.
    pub(crate) const fn is_ready(&self) -> bool {
        matches!(self.phase, Phase::Answered { .. } | Phase::Failed(..))
    }

    /// Why it failed, if it did: what it computed does not count then.
    pub(crate) fn error(&self) -> Option<&Error> {
        match &self.phase {
            Phase::Failed(_, error) => Some(error),
            _ => None,
        }
    }

    /// Why the generation ended, where the answer is ready and it did.
    pub(crate) const fn finish(&self) -> Option<FinishReason> {
        match self.phase {
            Phase::Answered { finish, .. } => finish,
            _ => None,
        }
    }

    /// What it has to say of its rows.
    pub(crate) fn into_reads(self) -> Reads {
        self.reads
    }

    /// Tokens of an answer that is ready that are computed: they are the context's to keep.
    pub(crate) fn n_kept(&self) -> u32 {
        match self.phase {
            Phase::Answered { .. } => self.n_computed(),
            _ => 0,
        }
    }
}

/// The transitions of its phase: see there. Each returns false, and changes nothing, where the phase does not have it.
impl Pass {
    /// A batch runs it. `ends` tells whether to its end.
    pub(crate) fn start(&mut self, ends: bool) -> bool {
        let starts = self.phase.start();
        if starts {
            self.is_partway = !ends;
        }
        starts
    }

    /// The batch answered the next of its rows.
    pub(crate) fn read<'a>(&mut self, rows: impl Iterator<Item = RowResult<'a>>) {
        self.reads.answer(rows);
    }

    /// The batch is done. The first `n_accepted` of the tokens that were drawn from its rows are its own.
    pub(crate) fn stop(&mut self, n_accepted: u32) -> bool {
        if n_accepted == 0 || self.reads.drawn().len() < n_accepted as usize {
            return self.phase.stop();
        }
        let draws = self.phase.draw();
        if draws {
            self.push_drawn(n_accepted);
        }
        draws
    }

    /// Whether a batch runs it that draws the next token of a run to the end, which nothing is drafted for.
    pub(crate) const fn runs_on(&self) -> bool {
        self.phase.is_asked_and_running()
            && matches!(self.kind, PassKind::Run(_))
            && self.reads.only().is_some()
            && self.tokens.n_drafts() == 0
    }

    /// The batch is done, and drew this token: the run goes on behind it. It is what `read`, `stop` and
    /// `want_following` come to. False: it does not run on.
    pub(crate) fn run_on(&mut self, token: u32) -> bool {
        if !self.runs_on() || !self.phase.draw() {
            return false;
        }
        let slot = self.tokens.end();
        self.tokens.push(token, self.adapter);
        self.reads.follow(slot)
    }

    /// The mask of a row came.
    pub(crate) fn give_mask(&mut self, row: usize, mask: Arc<[u32]>) -> Result<(), MaskFault> {
        self.reads.give_mask(row, mask)
    }

    /// Tokens were drawn from a row that was kept. False: it is not kept.
    pub(crate) fn read_late(&mut self, place: usize, tokens: &[u32]) -> bool {
        self.reads.answer_late(place, tokens)
    }

    /// Nothing is missing but token masks.
    pub(crate) fn await_masks(&mut self) -> bool {
        self.phase.await_masks()
    }

    /// Its last masks came. The first `n_accepted` of the tokens that were drawn are its own.
    pub(crate) fn resume(&mut self, n_accepted: u32) -> bool {
        let resumes = self.phase.resume();
        if resumes {
            self.push_drawn(n_accepted);
        }
        resumes
    }

    fn push_drawn(&mut self, n_accepted: u32) {
        let drafts = self.tokens.drafts();
        if !drafts.is_empty() {
            let drawn = self.reads.drawn().iter().take(n_accepted as usize);
            let alike = drafts.iter().zip(drawn);
            let n_alike = alike.take_while(|(draft, token)| draft == token).count();
            self.speculation.n_accepted += n_alike as u32;
            self.tokens.drop_drafts();
        }
        for &token in self.reads.drawn().iter().take(n_accepted as usize) {
            self.tokens.push(token, self.adapter);
        }
    }

    /// It wants the row behind its last token, drawn as the one before. False: it had none.
    pub(crate) fn want_following(&mut self) -> bool {
        let slot = self.tokens.end().checked_sub(1);
        let (Some(slot), Some(template)) = (slot, &self.template) else {
            return false;
        };
        if !self.reads.follow(slot) {
            self.rows_probed = template.rows_probed(&[]).collect();
            self.reads = template.reads(slot, 0, &[]);
        }
        true
    }

    /// It wants the row behind its last token, and those behind drafts, with probes of its own.
    pub(crate) fn want_next(&mut self, template: Template, drafts: &[u32], probes: &[RowProbe]) {
        let n_drafts = drafts.len() as u32;
        if let Some(slot) = self.tokens.end().checked_sub(1) {
            self.reads = if self.is_cleared {
                template.reads_only(slot, probes)
            } else {
                template.reads(slot, n_drafts, probes)
            };
        }
        self.rows_probed = template.rows_probed(probes).collect();
        self.template = Some(template);
        self.n_drawn_most = 1 + n_drafts;
        self.speculation.n_drafted += n_drafts;
        self.tokens.add_drafts(drafts, self.adapter);
    }

    /// It wants the rows behind drafts too, which follow its last token, with probes of its own.
    pub(crate) fn draft(&mut self, drafts: &[u32], probes: &[RowProbe]) {
        if let Some(template) = self.template.take() {
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

    /// The answer is ready. `goes_ahead` tells whether the pass goes on.
    pub(crate) fn answer(&mut self, finish: Option<FinishReason>, goes_ahead: bool) -> bool {
        let answers = self.phase.answer(self.tokens.len(), finish, goes_ahead);
        if answers && !self.rows_probed.is_empty() {
            self.readings = self.take_readings();
        }
        answers
    }

    /// What its probes read, in their order.
    fn take_readings(&mut self) -> Vec<Reading> {
        let rows = std::mem::take(&mut self.reads).into_outputs();
        let mut rows: Vec<_> = rows
            .into_iter()
            .map(|row| row.readings.into_iter())
            .collect();
        let probed = std::mem::take(&mut self.rows_probed).into_iter();
        probed
            .filter_map(|row| rows.get_mut(row as usize)?.next())
            .collect()
    }

    /// What its probes read, where it is answered.
    pub(crate) fn readings(&mut self) -> Vec<Reading> {
        std::mem::take(&mut self.readings)
    }

    /// Forgets what ran ahead of the answer, and goes no further.
    pub(crate) fn stop_ahead(&mut self) -> bool {
        self.tokens.truncate(self.n_asked());
        let stops = self.phase.stop_ahead();
        if stops && self.kind.generator().is_some() {
            // A row that was kept for it is of no use.
            self.reads = Reads::default();
        }
        stops
    }

    /// What runs ahead of an answer that is taken, as a pass of its own; none where nothing does.
    pub(crate) fn split(&mut self) -> Option<Self> {
        let phase = self.phase.split()?;
        let n_computed = self.n_computed();
        let tokens = self.tokens.split(n_computed, self.n_asked() - n_computed);
        Some(Self {
            reads: std::mem::take(&mut self.reads),
            template: self.template.take(),
            rows_probed: std::mem::take(&mut self.rows_probed),
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
            && self.reads.last().is_some_and(|read| template.makes(read))
            && self.tokens.not_drawn() == pending
    }

    /// A program asks for what ran ahead.
    pub(crate) fn promote(&mut self, request: RequestId) -> bool {
        self.phase.promote(request)
    }

    /// Ends the pass with an error: what it computed does not count.
    pub(crate) fn fail(&mut self, error: Error) -> bool {
        self.phase.fail(error)
    }
}
