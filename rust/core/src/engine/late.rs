//! Token masks that come after the forward of their row was launched.
//!
//! A row of a forward pass, or of each step of a generator, may be asked for before its mask is known. Its forward is
//! planned, batched and run with all others. A mask that comes before the batch is answered is drawn by with the rest
//! of the batch. A row whose mask has not come by then is kept, and its batch ends without it; tokens are drawn from it
//! when the mask comes, apart from the engine and its lock ([`Engine::drain_draws`]). They are those that would have
//! been drawn had the mask been there before.
//!
//! Room for a row is taken when its pass is entered, so that it can always be kept. A step that runs ahead has the room
//! of the step before. A pass that waits for nothing but masks fails with `late-mask` after `late_mask_s`; the time
//! counts from when it is asked for and everything is computed. What runs ahead of a program ends without a word then.
//!
//! The mask belongs to the request: a step that is undone and asked for again needs it again, and what runs ahead gets
//! its mask once it was asked for. A generator whose masks come late runs ahead and follows no batch: the forward of
//! its next token waits for that token, and only the drawing from it for the mask.

use std::sync::Arc;

use super::Engine;
use super::forwarding::refused;
use super::judging::{Became, follow_verdict, judge};
use super::requests::RequestState;
use crate::batch::{LateDraw, LateDrawn, LateMask, LateRow, MaskFault};
use crate::config::nanoseconds;
use crate::context::Pass;
use crate::errors::{Error, ErrorCode, Result};
use crate::generation::Generator;
use crate::ids::{ContextId, GeneratorId, PassId, ProcessId, RequestId, UserId};
use crate::masks::TokenMask;

impl Engine {
    /// Has the token mask of each step of a generator come late, from the next step on: [`Engine::give_mask`] gives it.
    /// Such a generator is stepped; it does not run to its end by itself.
    ///
    /// # Errors
    /// `generator-retired`; `context-busy` while a step is under way.
    pub fn set_late_masks(&mut self, generator: GeneratorId, late: bool) -> Result<()> {
        self.owned.idle_generator(generator)?.set_masks_late(late);
        Ok(())
    }

    /// Gives the token mask of a row whose mask comes late: run lengths over the vocabulary, forbidden first; empty:
    /// any token. `row` is the index of the row in its forward pass, 0 in a step. A request that has failed takes no
    /// mask, and needs none. Ask [`Engine::drain_draws`] afterwards.
    ///
    /// # Errors
    /// `invalid-argument` for an unknown request or row, for a row whose mask does not come late or was given before,
    /// and for a mask that is malformed or allows nothing, with that of the generator; the row then waits for another
    /// one.
    pub fn give_mask(&mut self, request: RequestId, row: u32, mask: &[u32]) -> Result<()> {
        let context = match self.owned.requests.get(&request) {
            Some(RequestState::Active(context)) => *context,
            Some(_) => return Ok(()),
            None => return Err(ended()),
        };
        let mask = TokenMask::new(mask, self.config.driver.vocab_size)?;
        let mask = self.with_own_mask(context, mask)?;
        self.give_whole(context, row, &mask)
    }

    /// Gives a row its token mask, that of the generator included.
    fn give_whole(&mut self, context: ContextId, row: u32, mask: &TokenMask) -> Result<()> {
        let state = self.owned.contexts.get_mut(context.0);
        let Some(pass) = state.and_then(|state| state.pass.as_mut()) else {
            self.totals.faults.count("a request has no pass");
            return Ok(());
        };
        if pass.error().is_some() {
            return Ok(());
        }
        if pass.is_ready() {
            return Err(not_taken(row, MaskFault::Given));
        }
        pass.give_mask(row as usize, mask.runs().clone())
            .map_err(|fault| not_taken(row, fault))?;
        self.add_draws(context);
        Ok(())
    }

    /// Gives the token mask of a step that was asked for, which was made apart from the engine. One that is malformed
    /// or allows nothing, by itself or with that of the generator, fails the step, whose context is as it was before.
    /// A step that was refused or has failed takes no mask, since its own error tells more; nor does one that draws
    /// nothing, since its sampler was cleared or its generation had ended. The engine does not know one that was
    /// refused, and so whoever calls makes sure that the answer of the step was not taken.
    ///
    /// # Errors
    /// That of the mask; those of [`Engine::give_mask`].
    pub fn give_step_mask(&mut self, request: RequestId, mask: Result<TokenMask>) -> Result<()> {
        let id = match self.owned.requests.get(&request) {
            Some(RequestState::Active(id)) => *id,
            Some(_) | None => return mask.map(drop),
        };
        let state = self.owned.contexts.get(id.0);
        let Some(pass) = state.and_then(|state| state.pass.as_ref()) else {
            self.totals.faults.count("a request has no pass");
            return mask.map(drop);
        };
        let draws = pass.draws() && !(pass.is_ready() && pass.n_tokens() == 0);
        if !draws {
            return mask.map(drop);
        }
        let error = match mask.and_then(|mask| self.with_own_mask(id, mask)) {
            Ok(mask) => return self.give_whole(id, 0, &mask),
            Err(error) => error,
        };
        let context = self.owned.contexts.get(id.0);
        let pass = context.and_then(|context| context.pass.as_ref());
        if let Some(pass) = pass.filter(|pass| !pass.is_ready()).map(|pass| pass.id) {
            self.waiting.queue.remove(pass);
            self.fail(id, pass, error.clone());
        }
        Err(error)
    }

    /// A token mask that came late, with that of the generator.
    fn with_own_mask(&mut self, context: ContextId, mask: TokenMask) -> Result<TokenMask> {
        match self.mask_of_generator(context) {
            Some(own) => mask.and(&own, self.config.driver.vocab_size),
            None => Ok(mask),
        }
    }

    /// The token mask of the generator of a step under way, which restricts it beside that of the step.
    fn mask_of_generator(&mut self, id: ContextId) -> Option<Arc<[u32]>> {
        let context = self.owned.contexts.get(id.0);
        let Some(pass) = context.and_then(|context| context.pass.as_ref()) else {
            self.totals.faults.count("a request has no pass");
            return None;
        };
        let Some(generator) = self.owned.generators.get(pass.kind.generator()?.0) else {
            self.totals.faults.count("a generation has no generator");
            return None;
        };
        generator.mask.clone()
    }

    /// The masks that have come of late rows of a batch, in the order of the rows. A driver that draws by itself gets
    /// none of these rows to draw from, so they are fetched when the batch is answered.
    pub fn late_masks(&self, late: &[LateRow]) -> Vec<LateMask> {
        let mask = |row: &LateRow| {
            let context = self.owned.contexts.get(row.context.0)?;
            let pass = context.pass.as_ref().filter(|pass| pass.id == row.pass)?;
            Some(LateMask {
                row: row.row,
                n_draws: row.n_draws,
                mask: pass.mask_at(row.place)?,
            })
        };
        late.iter().filter_map(mask).collect()
    }

    /// The rows that were kept and whose masks have come, each of which is to be drawn from and answered by
    /// [`Engine::complete_draw`]. Ask after every call, as for [`Engine::drain_ready`].
    pub fn drain_draws(&mut self) -> Vec<LateDraw> {
        std::mem::take(&mut self.draws)
    }

    /// Takes what was drawn from a row that was kept. A pass that has ended in the meantime takes nothing.
    pub fn complete_draw(&mut self, drawn: LateDrawn, now_ns: u64) {
        self.now_ns = now_ns;
        let id = drawn.context;
        let Some(context) = self.owned.contexts.get_mut(id.0) else {
            // It was released since.
            return;
        };
        let pass = context.pass.as_mut().filter(|pass| pass.id == drawn.pass);
        let Some(pass) = pass.filter(|pass| pass.error().is_none()) else {
            return;
        };
        let tokens = match drawn.tokens {
            Ok(tokens) => tokens,
            Err(error) => {
                self.waiting.queue.remove(drawn.pass);
                return self.fail(id, drawn.pass, error);
            }
        };
        if pass.read_late(drawn.place, &tokens) && pass.is_awaiting() && pass.n_late() == 0 {
            self.resume(id, drawn.pass, now_ns);
        }
    }

    /// The last mask of a pass came: it is judged and answered.
    fn resume(&mut self, id: ContextId, pass: PassId, now_ns: u64) {
        let faults = &mut self.totals.faults;
        let Some(context) = self.owned.contexts.get_mut(id.0) else {
            return faults.count("what got its last mask has no context");
        };
        let judged = judge(&self.config, &self.owned.generators, context);
        let Some(state) = context.pass.as_mut() else {
            return faults.count("what got its last mask has no pass");
        };
        let hold = &mut self.waiting.hold;
        hold.returned(id, &mut context.mask_habit, now_ns);
        let resumes = state.resume(judged.n_accepted);
        faults.expect(resumes, "what got its last mask does not await it");
        let became = match judged.next {
            Some(next) => follow_verdict(state, next, judged.runs_ahead, faults),
            None => {
                let answers = state.answer(None, false);
                faults.expect(answers, "what got its last mask is answered already");
                Became::Answered {
                    finish: None,
                    runs_ahead: false,
                }
            }
        };
        let served = self.totals.n_batches;
        self.go_by(id, pass, became, served, now_ns);
    }

    /// Has whoever drains them draw from the rows of a pass that were kept and have their masks.
    pub(super) fn add_draws(&mut self, id: ContextId) {
        let context = self.owned.contexts.get_mut(id.0);
        let Some(pass) = context.and_then(|context| context.pass.as_mut()) else {
            return self.totals.faults.count("what has late rows has no pass");
        };
        let name = pass.id;
        while let Some((place, logits, read)) = pass.next_draw() {
            self.draws.push(LateDraw {
                context: id,
                pass: name,
                place,
                logits,
                params: read.params,
                key: read.key,
                n_draws: read.n_draws,
                mask: read.mask.clone().unwrap_or_default(),
            });
        }
    }

    /// When the pass that has waited the longest for nothing but masks is overdue; none where none waits.
    pub(super) fn late_due_ns(&self) -> Option<u64> {
        let awaiting = self.waiting.late.awaiting(&self.owned.contexts);
        let since_ns = awaiting.map(|(.., since_ns)| since_ns).min()?;
        Some(since_ns.saturating_add(nanoseconds(self.config.late_mask)))
    }

    /// When the first pass is overdue of those that began to wait for nothing but masks since this was last asked; none
    /// where none did. Whoever fails what is overdue may not know of them.
    pub fn take_late_due_ns(&mut self) -> Option<u64> {
        let since_ns = self.waiting.late.take_begun_ns()?;
        Some(since_ns.saturating_add(nanoseconds(self.config.late_mask)))
    }

    /// Fails every pass whose masks are overdue. Returns how many there were.
    pub fn fail_overdue_masks(&mut self, now_ns: u64) -> usize {
        self.now_ns = now_ns;
        let limit_ns = nanoseconds(self.config.late_mask);
        let awaiting = self.waiting.late.awaiting(&self.owned.contexts);
        let overdue: Vec<(PassId, ContextId)> = awaiting
            .filter(|(.., since_ns)| since_ns.saturating_add(limit_ns) <= now_ns)
            .map(|(pass, context, _)| (pass, context))
            .collect();
        for &(pass, context) in &overdue {
            self.totals.n_late_masks += 1;
            self.fail(context, pass, overdue_mask(limit_ns));
        }
        overdue.len()
    }

    /// Rows that wait for their masks, or may have to.
    pub(super) fn n_late_rows(&self) -> usize {
        let live = self.waiting.late.live(&self.owned.contexts);
        live.map(|(.., pass)| pass.n_late()).sum()
    }

    /// The same, with those of a process and of a user among them.
    pub(super) fn late_rows_beside(&self, process: ProcessId, user: UserId) -> LateRows {
        let mut rows = LateRows::default();
        for (_, _, owner, pass) in self.waiting.late.live(&self.owned.contexts) {
            let n = pass.n_late();
            rows.of_all += n;
            if owner == process {
                rows.of_process += n;
            }
            if self.owned.processes.get(&owner).map(|owner| owner.user) == Some(user) {
                rows.of_user += n;
            }
        }
        rows
    }

    /// Bytes for the row of a step whose mask comes late, for which there has to be room.
    pub(super) fn room_for_late_step(&self, generator: &Generator) -> Result<usize> {
        if !generator.masks_late() {
            return Ok(0);
        }
        let n_bytes = self.config.row_bytes() as usize;
        self.check_room_for_late(generator.process, 1)?;
        self.check_room_for_forward(generator.process, n_bytes)?;
        Ok(n_bytes)
    }

    /// Every pass that may have to wait for masks is known, and one that waits for nothing else has a row to wait for.
    pub(super) fn check_late(&self, pass: &Pass) -> std::result::Result<(), String> {
        if pass.n_late() > 0 && pass.error().is_none() && !self.waiting.late.has(pass.id) {
            return Err(format!("{:?} has late rows and no room for them", pass.id));
        }
        if pass.awaits_masks() && pass.n_late() == 0 {
            return Err(format!("{:?} awaits masks and has no late row", pass.id));
        }
        Ok(())
    }
}

/// Rows that wait for their masks, or may have to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LateRows {
    pub(super) of_process: usize,
    pub(super) of_user: usize,
    pub(super) of_all: usize,
}

fn ended() -> Error {
    refused(
        "the pass that the token mask is for has ended; give a mask while its pass is under way",
    )
}

fn not_taken(row: u32, fault: MaskFault) -> Error {
    refused(&match fault {
        MaskFault::NoRow => {
            format!("the request has no row {row}; give the index of one that it asked for")
        }
        MaskFault::NotLate => {
            format!("the token mask of row {row} does not come late; ask for it with a late mask")
        }
        MaskFault::Given => format!("the token mask of row {row} was given before; give it once"),
    })
}

fn overdue_mask(limit_ns: u64) -> Error {
    Error::with_values(
        ErrorCode::LateMask,
        format!(
            "the token masks of the pass did not come within {} s; the context is as it was, give them sooner, or \
             raise late_mask_s",
            limit_ns as f64 / 1e9
        ),
        &[("limit_ms", limit_ns / 1_000_000)],
    )
}
