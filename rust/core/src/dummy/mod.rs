//! The dummy driver: an oracle in place of a model. It reads nothing but the arena.
//!
//! In each slot it stores a hash of what was written there and of all that the write could see:
//!
//! ```text
//! h = fold of: token, position, adapter identity, adapter version, zo flag, zo seed, media,
//!              the h of each earlier slot that the mask shows, in order of storage,
//!              1 if the mask shows the slot itself, else 0              (starting from 0)
//! row[i] = (mix(fold(h, hash of the model's name) + (i + 1) * GOLDEN) >> 40) * 2^-20 - 8
//! ```
//!
//! with the functions of [`crate::hash`]. So one wrong page, mask, position, adapter or stale slot changes every later token, and
//! nothing else does. With a [`Script`] the rows come from the script instead.

mod script;
#[cfg(test)]
mod tests;

use crate::batch::layout::Field;
use crate::batch::{ArenaView, DriverFailure, SequenceView};
use crate::brle;
use crate::hash::{GOLDEN, fold, mix, of_text};

pub use script::{Decode, Rule, Script};

/// The dummy driver of one model.
#[derive(Debug)]
pub struct Driver {
    model_hash: u64,
    vocab_size: u32,
    page_size: u32,
    slots: Vec<Option<Slot>>,
    script: Option<Script>,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    hash: u64,
    token: u32,
}

/// A row that a script gives: this to the chosen token, the other to all others. No temperature lets the others through.
const CHOSEN: f32 = 0.0;
const OTHERS: f32 = -1e30;

impl Driver {
    /// A driver with memory for `n_pages` pages of `page_size` tokens.
    pub fn new(model: &str, vocab_size: u32, n_pages: u32, page_size: u32) -> Self {
        let slots = vec![None; n_pages as usize * page_size as usize];
        Self {
            model_hash: of_text(model),
            vocab_size,
            page_size,
            slots,
            script: None,
        }
    }

    /// The same, answering by a script.
    pub fn with_script(
        model: &str,
        vocab_size: u32,
        n_pages: u32,
        page_size: u32,
        script: Script,
    ) -> Self {
        Self {
            script: Some(script),
            ..Self::new(model, vocab_size, n_pages, page_size)
        }
    }

    /// Runs a batch. Answers logits, float32 `[R, V]`.
    ///
    /// # Errors
    /// When the arena is malformed, names a page that is not there, or has a token look at a slot that nobody wrote.
    pub fn run(&mut self, arena: &[u32]) -> Result<Vec<f32>, DriverFailure> {
        self.compute(arena)
            .map_err(|message| DriverFailure { message })
    }

    fn compute(&mut self, arena: &[u32]) -> Result<Vec<f32>, String> {
        let view = ArenaView::parse(arena)?;
        if view.page_size() != self.page_size {
            return Err(format!(
                "the batch has pages of {} tokens and the driver of {}",
                view.page_size(),
                self.page_size
            ));
        }
        for (src, dst) in view.copies() {
            let (src, dst) = (self.page(src)?, self.page(dst)?);
            self.slots.copy_within(src, dst.start);
        }
        let mut logits = Vec::with_capacity(view.n_rows() * self.vocab_size as usize);
        let mut rows = view.field(Field::RowToken).iter().peekable();
        for sequence in view.sequences() {
            let slots = self.slots_of(&sequence)?;
            for index in 0..sequence.tokens.len() {
                let token = sequence.first_token + index;
                let hash = self.hash_of(&sequence, index, &slots, view.mask(token))?;
                let at = slots[sequence.length - sequence.tokens.len() + index];
                if !sequence.reread {
                    self.slots[at] = Some(Slot {
                        hash,
                        token: sequence.tokens[index],
                    });
                }
                while rows.next_if(|&&row| row as usize == token).is_some() {
                    self.write_row(
                        hash,
                        &slots[..sequence.length - sequence.tokens.len() + index + 1],
                        &mut logits,
                    );
                }
            }
        }
        Ok(logits)
    }

    fn page(&self, page: u32) -> Result<std::ops::Range<usize>, String> {
        let (start, size) = (
            page as usize * self.page_size as usize,
            self.page_size as usize,
        );
        if start + size > self.slots.len() {
            return Err(format!(
                "page {page} is none of the {} pages",
                self.slots.len() / size
            ));
        }
        Ok(start..start + size)
    }

    /// Where the tokens of a sequence lie, in the order of storage.
    fn slots_of(&self, sequence: &SequenceView<'_>) -> Result<Vec<usize>, String> {
        let mut slots = Vec::with_capacity(sequence.pages.len() * self.page_size as usize);
        for &page in sequence.pages {
            slots.extend(self.page(page)?);
        }
        slots.truncate(sequence.length);
        Ok(slots)
    }

    /// The hash of the token at `index` of a sequence.
    fn hash_of(
        &self,
        sequence: &SequenceView<'_>,
        index: usize,
        slots: &[usize],
        mask: &[u32],
    ) -> Result<u64, String> {
        let own = sequence.length - sequence.tokens.len() + index;
        let token = sequence.tokens[index];
        if token >= self.vocab_size {
            return Err(format!(
                "token {token} is outside the vocabulary of {}",
                self.vocab_size
            ));
        }
        let identity = [
            u64::from(token),
            u64::from(sequence.positions[index]),
            sequence.adapter,
            u64::from(sequence.adapter_version),
            u64::from(sequence.zo_seed.is_some()),
            sequence.zo_seed.unwrap_or(0),
            sequence.media,
        ];
        let mut hash = identity.into_iter().fold(0, fold);
        let mut shows_itself = false;
        for range in brle::allowed(mask, sequence.length as u32) {
            let earlier = (range.start as usize).min(own)..(range.end as usize).min(own);
            for &slot in &slots[earlier] {
                let Some(seen) = self.slots[slot] else {
                    return Err(format!(
                        "token {index} of a sequence looks at a slot that nobody wrote"
                    ));
                };
                hash = fold(hash, seen.hash);
            }
            shows_itself |= (range.start as usize..range.end as usize).contains(&own);
        }
        Ok(fold(hash, u64::from(shows_itself)))
    }

    fn write_row(&self, hash: u64, slots: &[usize], logits: &mut Vec<f32>) {
        if let Some(script) = &self.script {
            let text: Vec<u32> = slots
                .iter()
                .filter_map(|&slot| self.slots[slot])
                .map(|slot| slot.token)
                .collect();
            let chosen = script.next_token(&text);
            logits.extend(
                (0..self.vocab_size).map(|token| if token == chosen { CHOSEN } else { OTHERS }),
            );
            return;
        }
        let base = fold(hash, self.model_hash);
        logits.extend((1..=u64::from(self.vocab_size)).map(|n| {
            let bits = mix(base.wrapping_add(n.wrapping_mul(GOLDEN))) >> 40;
            // 24 bits, a power of two, and a difference that needs no more bits: exact in float32.
            bits as f32 * (1.0 / 1_048_576.0) - 8.0
        }));
    }
}
