//! Contexts that are kept elsewhere: as values they leave the engine, and come back into this one or another.

use super::Engine;
use crate::brle;
use crate::context::{Context, ContextImage, SpecialSlot};
use crate::errors::{Error, ErrorCode, Result};
use crate::ids::{ContextId, ProcessId};

impl Engine {
    /// What a context says, as the next copy of it that is kept: [`Engine::count_saved`] counts it once it is. Its last
    /// step is final from now on, as behind [`Engine::save`].
    ///
    /// # Errors
    /// `context-busy`, `context-released`; `internal` where a page has no content.
    pub fn image(&mut self, context: ContextId) -> Result<ContextImage> {
        let page_size = self.config.driver.page_size;
        self.idle_context(context, "saved")?.settle(page_size);
        let state = self.owned.live(context)?;
        let image = state.image(&self.device.store);
        if image.tokens.len() == state.n_tokens() as usize {
            return Ok(image);
        }
        let what = "a page of a context has no content";
        self.totals.faults.count(what);
        Err(Error::internal(what))
    }

    /// The last image of a context was kept: it counts as a fork for the seeds of later forks. One that was released
    /// meanwhile has none.
    pub fn count_saved(&mut self, context: ContextId) {
        if let Ok(state) = self.owned.live_mut(context) {
            state.n_forks += 1;
        }
    }

    /// A context of the process that says what an image does. Its tokens count against the budget of the process, and
    /// its seeds are those of an opening, as in [`Engine::open_snapshot`]. Nothing is computed before its first pass.
    ///
    /// # Errors
    /// `context-full`, `invalid-token`, `invalid-argument` and `unsupported` for an image that is none of this model,
    /// or of one on another driver; `token-budget`, `limit-resources`; `invalid-argument` for an unknown process.
    pub fn open_image(&mut self, process: ProcessId, image: &ContextImage) -> Result<ContextId> {
        let user = self.check_room_for_context(process)?;
        self.check_image(image)?;
        if let Some(budget) = self.owned.budget(process) {
            budget.spend(image.length())?;
        }
        let context = Context::of_image(process, user, image, &mut self.device.store);
        Ok(self.own(process, context, image.path))
    }

    /// Whether a context of this model could say that.
    fn check_image(&self, image: &ContextImage) -> Result<()> {
        let (length, limit) = (image.length(), self.config.max_context());
        if length > limit as usize {
            return Err(Error::with_values(
                ErrorCode::ContextFull,
                format!(
                    "a context of {length} tokens does not fit: contexts of {} hold at most {limit}; open it where \
                     they are longer",
                    self.config.model
                ),
                &[("tokens", length as u64), ("limit", u64::from(limit))],
            ));
        }
        for tokens in [&image.tokens, &image.pending, &image.buffer] {
            self.check_tokens(tokens)?;
        }
        let ascend = |pair: &[SpecialSlot]| pair[0].slot < pair[1].slot;
        let n_tokens = image.tokens.len();
        let is_beyond = |it: &SpecialSlot| it.slot as usize >= n_tokens;
        let do_ascend = image.special.windows(2).all(ascend);
        if !do_ascend || image.special.last().is_some_and(is_beyond) {
            return Err(malformed(
                "slots that do not ascend, or lie behind its tokens",
            ));
        }
        let mut special = image.special.iter();
        special.try_for_each(|it| self.check_special(it))
    }

    /// Whether a token could be computed so.
    fn check_special(&self, special: &SpecialSlot) -> Result<()> {
        let (row, limit) = (special.slot + 1, self.config.max_context());
        if special.position >= limit {
            return Err(malformed("a position that the model does not know"));
        }
        brle::check(&special.mask, row)?;
        let is_shortest = brle::shortest(&special.mask, row) == special.mask[..];
        if !is_shortest || brle::allowed(&special.mask, row).next().is_none() {
            return Err(malformed(
                "an attention mask that shows nothing, or is not in its shortest form",
            ));
        }
        let served = &self.config.driver;
        for (what, wanted, is_served) in [
            ("attention masks", !special.mask.is_empty(), served.masks),
            (
                "positions",
                special.position != special.slot,
                served.positions,
            ),
            ("media", special.media != 0, served.media),
        ] {
            if wanted && !is_served {
                return Err(self.unsupported(what));
            }
        }
        self.check_adapter(special.adapter)
    }
}

fn malformed(what: &str) -> Error {
    Error::new(
        ErrorCode::InvalidArgument,
        format!("the image of a context has {what}; save the context again"),
    )
}
