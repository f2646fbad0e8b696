//! The dummy driver: an oracle in place of a model. It reads nothing but the arena.
//!
//! In each slot it stores a hash of what was written there and of all that the write could see:
//!
//! ```text
//! h = fold of: token, position, adapter identity, adapter version, zo flag, zo seed, media,
//!              the h of each earlier slot that the mask shows, in order of storage,
//!              1 if the mask shows the slot itself, else 0              (starting from 0)
//! row[i]   = (mix(fold(h, hash of the model's name) + (i + 1) * GOLDEN) >> 40) * 2^-20 - 8
//! state[i] = (mix(fold(fold(h, hash of the model's name), 1) + (i + 1) * GOLDEN) >> 40) * 2^-20 - 8
//! ```
//!
//! with the functions of [`crate::hash`]; `state` is its hidden state, of 8 values at most. So one wrong page, mask,
//! position, adapter or stale slot changes every later token, and nothing else does. With a [`Script`] the rows come
//! from the script instead.

mod memory;
mod script;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use crate::batch::layout::Field;
use crate::batch::{
    ArenaView, Capabilities, DUMMY_EMBEDDINGS, DriverFailure, Keep, MAX_BATCH_TOKENS,
    MAX_POSITIONS, NOT_FINITE, SequenceView,
};
use crate::brle;
use crate::command::{AdapterName, Command, CommandFailure};
use crate::hash::{GOLDEN, fold, mix, of_text};
use crate::ids::PageId;
use crate::sampling::{Scratch, sample, sample_many};
use memory::{Memory, Slot};

pub use script::{Decode, Rule, Script};

/// The dummy driver of one model.
#[derive(Debug)]
pub struct Driver {
    model_hash: u64,
    vocab_size: u32,
    page_size: u32,
    memory: Memory,
    script: Option<Script>,
    /// The batch that ran last, for the next one to follow; none where no batch does.
    last: Option<Last>,
    follows: bool,
    /// Those that commands loaded. Its batches need none: the identity is all that it computes with.
    adapters: BTreeSet<AdapterName>,
}

/// Rows that are wanted.
#[derive(Clone, Copy, Debug)]
struct Rows<'a> {
    tokens: &'a [u32],
    kept: &'a [u32],
}

impl Rows<'_> {
    /// Takes the first of them off.
    fn take(&mut self, n: usize) -> Self {
        let ((tokens, others), (kept, kept_others)) =
            (self.tokens.split_at(n), self.kept.split_at(n));
        (self.tokens, self.kept) = (others, kept_others);
        Self { tokens, kept }
    }
}

/// A batch that ran, and its rows.
#[derive(Debug)]
struct Last {
    arena: Vec<u32>,
    logits: Vec<f32>,
}

/// What a batch came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Computed {
    /// Float32 `[R, V]`. Rows of sequences that failed are NaN.
    pub logits: Vec<f32>,
    /// Sequences that could not be computed, by index, with a reason each.
    pub failures: Vec<(u32, String)>,
}

/// What was drawn from the rows of a batch, in place of them: see [`crate::DriverAnswer::Drawn`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Drawn {
    /// Of one row after the other.
    pub tokens: Vec<u32>,
    /// The rows that are wanted themselves, float32 `[K, V]`.
    pub logits: Vec<f32>,
}

/// A row that a script gives: this to the chosen token, the other to all others. No temperature lets the others
/// through.
const CHOSEN: f32 = 0.0;
const OTHERS: f32 = -1e30;

impl Driver {
    /// A driver with memory for `n_pages` pages of `page_size` tokens, and none on its host.
    pub fn new(model: &str, vocab_size: u32, n_pages: u32, page_size: u32) -> Self {
        Self {
            model_hash: of_text(model),
            vocab_size,
            page_size,
            memory: Memory::new(n_pages, page_size),
            script: None,
            last: None,
            follows: false,
            adapters: BTreeSet::new(),
        }
    }

    /// The same, feeding what it draws into its next batch, or not.
    #[must_use]
    pub const fn following(mut self, follows: bool) -> Self {
        self.follows = follows;
        self
    }

    /// The same, with host memory for `host_pages` pages; it is taken when it is written.
    #[must_use]
    pub fn with_host_pages(mut self, host_pages: u32) -> Self {
        self.memory.set_host_pages(host_pages);
        self
    }

    /// The same, answering by a script.
    #[must_use]
    pub fn with_script(mut self, script: Script) -> Self {
        self.script = Some(script);
        self
    }

    /// What it serves: everything that an arena can ask for.
    pub fn capabilities(&self) -> Capabilities {
        Capabilities {
            backend: "dummy".to_owned(),
            vocab_size: self.vocab_size,
            max_positions: MAX_POSITIONS,
            page_size: self.page_size,
            n_pages: self.memory.n_pages() as u32,
            max_batch_tokens: MAX_BATCH_TOKENS,
            host_pages: self.memory.host_pages() as u32,
            copy_page_ns: 0,
            masks: true,
            positions: true,
            adapters: true,
            media: true,
            embeddings: self.n_embedded(),
            follows: self.follows,
            page_bytes: self.memory.page_bytes() as u64,
            pages_made_by: "dummy-1".to_owned(),
        }
    }

    /// A page as it is given away: what it holds, slot by slot.
    ///
    /// # Errors
    /// When there is no such page.
    pub fn export_page(&self, page: PageId) -> Result<Vec<u8>, CommandFailure> {
        let exported = self.memory.export_page(page.0);
        exported.map_err(CommandFailure::Failed)
    }

    /// Puts what was given away into a page.
    ///
    /// # Errors
    /// When there is no such page, or that is none; nothing has changed then.
    pub fn import_page(&mut self, page: PageId, bytes: &[u8]) -> Result<(), CommandFailure> {
        let imported = self.memory.import_page(page.0, bytes);
        imported.map_err(CommandFailure::Failed)
    }

    /// Values of a hidden state.
    fn n_embedded(&self) -> u32 {
        DUMMY_EMBEDDINGS.min(self.vocab_size)
    }

    /// Runs a batch. A sequence with a token that looks at a slot that nobody wrote fails alone.
    ///
    /// # Errors
    /// When the arena is malformed, or names a page, host slot or token that is not there; nothing has changed then.
    pub fn run(&mut self, arena: &[u32]) -> Result<Computed, DriverFailure> {
        self.compute(arena)
            .map_err(|message| DriverFailure { message })
    }

    /// Carries out a command. Paths are not read: pages are moved by [`Self::export_page`] and [`Self::import_page`].
    ///
    /// # Errors
    /// When an adapter is not loaded; nothing has changed then.
    pub fn command(&mut self, command: &Command) -> Result<(), CommandFailure> {
        let loaded = |adapter: &AdapterName| match self.adapters.contains(adapter) {
            true => Ok(()),
            false => Err(CommandFailure::Failed(format!(
                "adapter {} of version {} is not loaded",
                adapter.id, adapter.version
            ))),
        };
        match command {
            Command::LoadAdapter { adapter, .. } | Command::CreateAdapter { adapter, .. } => {
                self.adapters.insert(*adapter);
            }
            Command::CopyAdapter { from, to } | Command::ChangeAdapter { from, to, .. } => {
                loaded(from)?;
                self.adapters.insert(*to);
            }
            Command::DropAdapter { adapter } => {
                loaded(adapter)?;
                self.adapters.remove(adapter);
            }
            // Whoever runs the driver has the files.
            Command::ExportPages { .. } | Command::ImportPages { .. } => {}
        }
        Ok(())
    }

    fn compute(&mut self, arena: &[u32]) -> Result<Computed, String> {
        let view = ArenaView::parse(arena)?;
        if view.page_size() != self.page_size {
            return Err(format!(
                "the batch has pages of {} tokens and the driver of {}",
                view.page_size(),
                self.page_size
            ));
        }
        let tokens = view.field(Field::Tokens);
        if let Some(token) = tokens.iter().find(|&&token| token >= self.vocab_size) {
            return Err(format!(
                "token {token} is outside the vocabulary of {}",
                self.vocab_size
            ));
        }
        self.memory.check(&view)?;
        self.memory.copy(&view);
        let mut computed = Computed {
            logits: Vec::with_capacity(view.n_rows() * self.vocab_size as usize),
            failures: Vec::new(),
        };
        let mut rows = Rows {
            tokens: view.field(Field::RowToken),
            kept: view.field(Field::RowKeep),
        };
        let last = self.last.take();
        for (index, sequence) in view.sequences().enumerate() {
            let end = (sequence.first_token + sequence.tokens.len()) as u32;
            let own = rows.take(rows.tokens.partition_point(|&row| row < end));
            let first_logit = computed.logits.len();
            let outcome = match sequence.follows {
                None => self.sequence(&view, &sequence, own, &mut computed.logits),
                Some(row) => self
                    .draw(view.before(), row, last.as_ref())
                    .and_then(|token| {
                        let tokens = &[token];
                        let drawn = SequenceView { tokens, ..sequence };
                        self.sequence(&view, &drawn, own, &mut computed.logits)
                    }),
            };
            if let Err(reason) = outcome {
                computed.failures.push((index as u32, reason));
                computed.logits.truncate(first_logit);
                let n_logits = own.tokens.len() * self.vocab_size as usize;
                computed.logits.resize(first_logit + n_logits, f32::NAN);
            }
        }
        if self.follows {
            let (arena, logits) = (arena.to_vec(), computed.logits.clone());
            self.last = Some(Last { arena, logits });
        }
        Ok(computed)
    }

    /// What a driver answers that draws by itself, in place of all rows: the tokens of the batch, and the rows that are
    /// wanted themselves.
    pub fn draw_all(&self, arena: &[u32], computed: &Computed) -> Result<Drawn, DriverFailure> {
        let view = ArenaView::parse(arena).map_err(|message| DriverFailure { message })?;
        let (width, mut scratch) = (self.vocab_size as usize, Scratch::default());
        let mut drawn = Drawn::default();
        for (index, row) in view.rows().enumerate() {
            let logits = computed.logits.get(index * width..(index + 1) * width);
            let logits = logits.unwrap_or_default();
            let n_before = drawn.tokens.len();
            // What cannot be drawn from is told in place of its tokens.
            let tokens = &mut drawn.tokens;
            let (params, key) = (&row.params, row.key);
            if sample_many(
                logits,
                params,
                row.mask,
                key,
                row.n_draws,
                &mut scratch,
                tokens,
            )
            .is_err()
            {
                drawn
                    .tokens
                    .resize(n_before + row.n_draws as usize, NOT_FINITE);
            }
            if row.keep {
                drawn.logits.extend_from_slice(logits);
            }
        }
        Ok(drawn)
    }

    /// The token that is drawn from a row of the batch that ran last.
    fn draw(&self, before: Option<u64>, row: u32, last: Option<&Last>) -> Result<u32, String> {
        let Some(Last { arena, logits }) = last else {
            return Err(format!("row {row} of {before:?} is followed and not kept"));
        };
        let view = ArenaView::parse(arena)?;
        let width = self.vocab_size as usize;
        let at = row as usize * width;
        let (Some(wanted), Some(logits)) =
            (view.rows().nth(row as usize), logits.get(at..at + width))
        else {
            return Err(format!(
                "row {row} is followed and the last batch has {}",
                view.n_rows()
            ));
        };
        if before != Some(view.batch_id()) {
            return Err(format!(
                "a row of {before:?} is followed and batch {} ran last",
                view.batch_id()
            ));
        }
        sample(
            logits,
            &wanted.params,
            wanted.mask,
            wanted.key,
            &mut Scratch::default(),
        )
        .map_err(|fault| format!("nothing can be drawn from row {row}: {fault:?}"))
    }

    /// Computes a sequence, of which the rows of some tokens are wanted.
    fn sequence(
        &mut self,
        view: &ArenaView<'_>,
        sequence: &SequenceView<'_>,
        mut rows: Rows<'_>,
        logits: &mut Vec<f32>,
    ) -> Result<(), String> {
        let slots = self.memory.slots_of(sequence);
        let first = sequence.length - sequence.tokens.len();
        for index in 0..sequence.tokens.len() {
            let token = sequence.first_token + index;
            let hash = self.hash_of(sequence, index, &slots, view.mask(token))?;
            if !sequence.reread {
                let token = sequence.tokens[index];
                self.memory
                    .write(slots[first + index], Slot { hash, token });
            }
            let n_own = rows.tokens.iter().take_while(|&&row| row as usize == token);
            for &keep in rows.take(n_own.count()).kept {
                if keep == Keep::Embedding as u32 {
                    self.write_state(hash, logits);
                } else {
                    self.write_row(hash, &slots[..=first + index], logits);
                }
            }
        }
        Ok(())
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
        let identity = [
            u64::from(sequence.tokens[index]),
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
                let Some(seen) = self.memory.read(slot) else {
                    return Err(format!("token {index} looks at a slot that nobody wrote"));
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
                .filter_map(|&slot| self.memory.read(slot))
                .map(|slot| slot.token)
                .collect();
            let chosen = script.next_token(&text);
            logits.extend(
                (0..self.vocab_size).map(|token| if token == chosen { CHOSEN } else { OTHERS }),
            );
            return;
        }
        let base = fold(hash, self.model_hash);
        logits.extend((1..=u64::from(self.vocab_size)).map(|n| value(base, n)));
    }

    fn write_state(&self, hash: u64, logits: &mut Vec<f32>) {
        let (base, n) = (fold(fold(hash, self.model_hash), 1), self.n_embedded());
        logits.extend((1..=u64::from(n)).map(|n| value(base, n)));
        logits.extend((n..self.vocab_size).map(|_| 0.0));
    }
}

/// The `n`th value of a row.
fn value(base: u64, n: u64) -> f32 {
    let bits = mix(base.wrapping_add(n.wrapping_mul(GOLDEN))) >> 40;
    // 24 bits, a power of two, and a difference that needs no more bits: exact in float32.
    bits as f32 * (1.0 / 1_048_576.0) - 8.0
}
