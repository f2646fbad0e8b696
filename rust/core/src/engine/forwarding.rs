//! A forward pass that a program put together is checked, and entered.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::Engine;
use super::forward::{Forward, MAX_PROPOSED, RowRequest};
use super::requests::Progress;
use crate::batch::{Adapter, Read, Reads};
use crate::brle;
use crate::context::{Context, Pass, PassKind, Tokens};
use crate::errors::{Error, ErrorCode, Result};
use crate::ids::{ContextId, RequestId};
use crate::kv::{Content, Traits};
use crate::masks;
use crate::sampling::{Key, Params, Probe};

/// The most rows of a forward pass.
pub const MAX_FORWARD_ROWS: usize = 65_536;
/// The most probes of one token, and the most distributions among them: each of those goes over the whole vocabulary,
/// while all others share one such pass.
const MAX_PROBES: usize = 1024;
const MAX_DISTRIBUTIONS: usize = 16;
/// The most tokens that a forward pass draws, of all its rows.
const MAX_PASS_DRAWS: u64 = 65_536;

impl Engine {
    /// The tokens of a forward pass with their positions and masks.
    fn content_of(&self, state: &Context, forward: &Forward) -> Result<Content> {
        let taken = state.pending.iter().chain(state.buffer.iter()).copied();
        let given = forward.input.iter().map(|input| input.token);
        let tokens: Vec<u32> = taken.chain(given).collect();
        let (first, n_tokens) = (state.n_tokens(), tokens.len() as u32);
        let plain =
            forward.masks.is_empty() && forward.input.iter().all(|input| input.position.is_none());
        if plain {
            return Ok(Content::plain(tokens));
        }
        let n_skipped = skipped(state, forward);
        let end = first + n_tokens;
        let mut traits: Vec<Traits> = (first..end).map(Traits::plain).collect();
        let n_before = n_tokens - forward.input.len() as u32;
        for (input, traits) in forward.input.iter().zip(&mut traits[n_before as usize..]) {
            if let Some(position) = input.position {
                traits.position = position;
            }
        }
        let masks = forward.masks_in(first + n_skipped..end)?;
        for (mask, traits) in masks.into_iter().zip(&mut traits[n_skipped as usize..]) {
            traits.mask = mask;
        }
        Ok(Content::new(tokens, traits, first))
    }

    /// The slots of the tokens that the masks of a forward pass are of, were it entered now.
    ///
    /// # Errors
    /// `context-released`.
    pub fn masked_slots(&self, context: ContextId, forward: &Forward) -> Result<Range<u32>> {
        let state = self.owned.live(context)?;
        let end = state.length().saturating_add(forward.input.len() as u32);
        Ok(state.n_tokens() + skipped(state, forward)..end)
    }

    /// Tokens of a context that its next pass takes: the pending ones and the buffer.
    ///
    /// # Errors
    /// `context-released`.
    pub fn n_to_take(&self, context: ContextId) -> Result<u32> {
        let state = self.owned.live(context)?;
        Ok(state.length() - state.n_tokens())
    }

    /// The rows of a forward pass whose first indexed token lies at `slot`, and the key under which it counts if it
    /// draws.
    fn reads_of(
        &self,
        context: ContextId,
        forward: &Forward,
        slot: u32,
    ) -> Result<(Reads, Option<u64>)> {
        let state = self.owned.live(context)?;
        let origin = state.origin(&self.device.store);
        let process = self.owned.process(state.process)?;
        let seed = process.seeds.seed(origin);
        let mask = brle::shortest(&forward.token_mask, self.config.driver.vocab_size);
        let mask: Option<Arc<[u32]>> = (!mask.is_empty()).then(|| Arc::from(mask));
        let mut n_sampled = 0;
        let mut reads = Vec::with_capacity(forward.rows.len());
        for row in &forward.rows {
            let (params, n_draws) = match &row.sampler {
                Some(sampler) => sampler.method.params_and_draws()?,
                None => (Params::ARGMAX, 0),
            };
            if row.late_mask && n_draws == 0 {
                return Err(refused(&format!(
                    "the row behind token {} waits for a token mask and nothing is drawn from it; give it a sampler \
                     that draws",
                    row.index
                )));
            }
            let slot = slot + row.index;
            reads.push(Read {
                slot,
                params,
                key: Key {
                    seed: row.sampler.and_then(|it| it.seed).unwrap_or(seed),
                    position: slot + 1,
                    slot: n_sampled,
                    draw: 0,
                },
                n_draws,
                mask: mask.clone().filter(|_| n_draws > 0 && !row.late_mask),
                is_late: row.late_mask,
                probes: (!row.probes.is_empty()).then(|| Arc::from(&row.probes[..])),
            });
            n_sampled += u32::from(n_draws > 0);
        }
        Ok((Reads::new(reads), (n_sampled > 0).then_some(origin)))
    }

    pub(super) fn submit_forward(
        &mut self,
        request: RequestId,
        context: ContextId,
        forward: &Forward,
        now_ns: u64,
    ) -> Result<Progress> {
        self.check_room_for_request(context)?;
        self.idle_context(context, "passed through the model")?;
        let state = self.owned.live(context)?;
        self.check_forward(state, forward)?;
        let n_bytes = forward.n_bytes(&self.config.driver);
        self.check_room_for_forward(state.process, n_bytes)?;
        let n_late = forward.rows.iter().filter(|row| row.late_mask).count();
        self.check_room_for_late(state.process, n_late)?;
        let held = self.owned.hold(state.process, n_bytes);
        let (first, n_given) = (state.n_tokens(), forward.input.len() as u32);
        let n_skipped = skipped(state, forward);
        let kind = PassKind::Forward {
            commits: !forward.leaves_working_pages,
        };
        let (content, n_buffered) = (self.content_of(state, forward)?, state.buffer.len());
        let tokens = Tokens::given(first, content, n_buffered, n_given);
        let pass = Pass::new(self.next_pass(), request, kind, tokens);
        let mut pass = pass.with_adapter(forward.adapter);
        pass.held = held;
        if !forward.rows.is_empty() {
            let (reads, origin) = self.reads_of(context, forward, first + n_skipped)?;
            pass = pass.with_reads(reads);
            pass.origin = origin;
        }
        self.enter(context, pass, now_ns)
    }

    /// Everything that can be said of a forward pass before it is entered, apart from its masks and samplers.
    fn check_forward(&self, state: &Context, forward: &Forward) -> Result<()> {
        let (n_taken, n_given) = (
            state.length() - state.n_tokens(),
            forward.input.len() as u32,
        );
        let n_indexed = if n_given > 0 { n_given } else { n_taken };
        if n_indexed == 0 {
            return Err(refused(
                "a forward pass has no tokens: none of its own, and nothing is pending or buffered; give it some",
            ));
        }
        self.check_input(state, forward)?;
        let n_masks = forward.masks.len();
        if n_masks > 0 && n_masks != n_indexed as usize {
            return Err(refused(&format!(
                "a forward pass of {n_indexed} tokens has {n_masks} attention masks; give one for each token"
            )));
        }
        if let Some(row) = forward.rows.iter().find(|row| row.index >= n_indexed) {
            return Err(refused(&format!(
                "a row behind token {} is wanted and the pass has {n_indexed} tokens; give indices below {n_indexed}",
                row.index
            )));
        }
        masks::check(&forward.token_mask, self.config.driver.vocab_size)?;
        check_allows(&forward.token_mask, self.config.driver.vocab_size)?;
        let probes = forward.rows.iter().flat_map(|row| &row.probes);
        for probe in probes {
            self.check_probe(probe)?;
        }
        self.check_served(forward)?;
        check_rows(forward, self.config.max_batch_rows)
    }

    /// Whether the tokens that a pass brings are some, may enter the context, and stand at positions that there are.
    fn check_input(&self, state: &Context, forward: &Forward) -> Result<()> {
        let (length, limit) = (state.length(), self.config.max_context());
        let room = limit.saturating_sub(length);
        if forward.input.len() as u64 > u64::from(room) {
            return Err(super::contexts::context_full(
                forward.input.len(),
                length,
                limit,
            ));
        }
        let tokens: Vec<u32> = forward.input.iter().map(|input| input.token).collect();
        self.check_tokens(&tokens)?;
        let n_given = tokens.len() as u64;
        if let Some(budget) = self.owned.budget(state.process)
            && n_given > budget.left()
        {
            return Err(budget.exhausted(n_given));
        }
        let mut positions = forward.input.iter().filter_map(|input| input.position);
        match positions.find(|&position| position >= limit) {
            Some(position) => Err(refused(&format!(
                "position {position} is beyond those that the model knows; give positions below {limit}"
            ))),
            None => Ok(()),
        }
    }

    /// Whether the driver serves what the pass needs.
    fn check_served(&self, forward: &Forward) -> Result<()> {
        let masks = forward.masks.iter().any(|mask| !mask.is_empty());
        let positions = forward.input.iter().any(|input| input.position.is_some());
        let served = &self.config.driver;
        for (what, wanted, is_served) in [
            ("attention masks", masks, served.masks),
            ("positions", positions, served.positions),
        ] {
            if wanted && !is_served {
                return Err(self.unsupported(what));
            }
        }
        self.check_adapter(forward.adapter)
    }

    /// Whether a row can be read so.
    pub(super) fn check_probe(&self, probe: &Probe) -> Result<()> {
        probe.check(self.config.driver.vocab_size)?;
        match probe {
            Probe::Embedding if self.config.driver.embeddings == 0 => {
                Err(self.unsupported("embeddings"))
            }
            _ => Ok(()),
        }
    }

    /// Whether tokens can be computed with an adapter.
    pub(super) fn check_adapter(&self, adapter: Adapter) -> Result<()> {
        if let Some(seed) = adapter.zo_seed.filter(|_| adapter.id == 0) {
            return Err(refused(&format!(
                "zo_seed {} perturbs an adapter, and there is none; give the adapter too, or leave zo_seed out",
                seed.cast_signed()
            )));
        }
        if adapter != Adapter::default() {
            self.check_adapters_served()?;
        }
        Ok(())
    }

    /// Whether the driver serves adapters.
    pub(super) fn check_adapters_served(&self) -> Result<()> {
        if self.config.driver.adapters {
            return Ok(());
        }
        Err(self.unsupported("adapters"))
    }

    pub(super) fn unsupported(&self, what: &str) -> Error {
        Error::new(
            ErrorCode::Unsupported,
            format!(
                "the driver of {} does not serve {what}; leave them out, or run the model on another driver",
                self.config.model
            ),
        )
    }
}

/// Tokens of the pass that indices and masks do not count.
fn skipped(state: &Context, forward: &Forward) -> u32 {
    if forward.input.is_empty() {
        0
    } else {
        state.length() - state.n_tokens()
    }
}

/// Whether a token mask allows a token at least.
pub(super) fn check_allows(mask: &[u32], vocab_size: u32) -> Result<()> {
    if brle::allowed(mask, vocab_size).next().is_some() {
        return Ok(());
    }
    Err(refused(
        "the token mask allows nothing; allow at least one token",
    ))
}

/// Checks that the rows of each token fit a batch, and that the work behind each of them is bounded.
fn check_rows(forward: &Forward, limit: u32) -> Result<()> {
    if forward.rows.len() > MAX_FORWARD_ROWS {
        return Err(too_many_rows(
            "wanted by",
            forward.rows.len(),
            MAX_FORWARD_ROWS as u32,
        ));
    }
    let kept = |row: &RowRequest| row.probes.contains(&Probe::Logits);
    let n_kept = forward.rows.iter().filter(|row| kept(row)).count();
    if n_kept > limit as usize {
        return Err(too_many_rows("kept by", n_kept, limit));
    }
    let mut of_tokens: BTreeMap<u32, TokenRows> = BTreeMap::new();
    for row in &forward.rows {
        of_tokens.entry(row.index).or_default().add(row);
    }
    check_of_tokens(&of_tokens, limit)?;
    check_draws(forward)
}

/// Checks that a pass draws no more than a batch has time for and an answer has room for.
fn check_draws(forward: &Forward) -> Result<()> {
    let n_draws = forward.n_draws();
    if n_draws <= MAX_PASS_DRAWS {
        return Ok(());
    }
    Err(Error::with_values(
        ErrorCode::InvalidArgument,
        format!(
            "a forward pass draws {n_draws} tokens, and may draw at most {MAX_PASS_DRAWS}; draw fewer in one pass"
        ),
        &[("draws", n_draws), ("limit", MAX_PASS_DRAWS)],
    ))
}

/// Checks the same of the rows of a step, each of which may be drawn from. There are few of them, so that attaching one
/// more is fast.
pub(super) fn check_row_probes(probes: &[(u32, Probe)], limit: u32) -> Result<()> {
    if probes.len() > MAX_PROBES {
        return Err(refused(&format!(
            "a step has {} probes, and may have at most {MAX_PROBES}; read fewer in one step",
            probes.len()
        )));
    }
    let far = probes.iter().map(|(index, _)| *index);
    if let Some(index) = far.max().filter(|&index| index > MAX_PROPOSED as u32) {
        return Err(refused(&format!(
            "row {index} of a step is read, and a step has at most {} rows; read row 0, or one behind a draft",
            MAX_PROPOSED + 1
        )));
    }
    let mut of_tokens: BTreeMap<u32, TokenRows> = BTreeMap::new();
    for (index, probe) in probes {
        let rows = of_tokens.entry(*index).or_default();
        rows.n_draws = 1;
        rows.add_probe(probe);
    }
    check_of_tokens(&of_tokens, limit)
}

/// Checks that what is wanted of each token fits a batch of at most `limit` rows.
fn check_of_tokens(of_tokens: &BTreeMap<u32, TokenRows>, limit: u32) -> Result<()> {
    for (&index, rows) in of_tokens {
        rows.check(index)?;
        if rows.n() > limit as usize {
            return Err(too_many_rows("wanted of one token by", rows.n(), limit));
        }
    }
    Ok(())
}

/// What is wanted of one token.
#[derive(Debug, Default)]
struct TokenRows {
    n_draws: usize,
    n_probes: usize,
    n_distributions: usize,
    n_embeddings: usize,
}

impl TokenRows {
    fn add(&mut self, row: &RowRequest) {
        self.n_draws += usize::from(row.sampler.is_some());
        row.probes.iter().for_each(|probe| self.add_probe(probe));
    }

    fn add_probe(&mut self, probe: &Probe) {
        self.n_probes += 1;
        match probe {
            Probe::Distribution { .. } => self.n_distributions += 1,
            Probe::Embedding => self.n_embeddings += 1,
            _ => {}
        }
    }

    /// Rows of the batch: one for each way of drawing, or for what is read of the logits alone, and one for the hidden
    /// state.
    fn n(&self) -> usize {
        let embeds = self.n_embeddings > 0;
        let reads = self.n_probes > self.n_embeddings;
        self.n_draws.max(usize::from(reads || !embeds)) + usize::from(embeds)
    }

    /// Whether the work behind it is bounded.
    fn check(&self, index: u32) -> Result<()> {
        for (n, limit, what) in [
            (self.n_probes, MAX_PROBES, "probes"),
            (self.n_distributions, MAX_DISTRIBUTIONS, "distributions"),
        ] {
            if n > limit {
                return Err(refused(&format!(
                    "{n} {what} of the row behind token {index} are wanted, and one token may have at most {limit}; \
                     read the others in another pass"
                )));
            }
        }
        Ok(())
    }
}

fn too_many_rows(what: &str, n: usize, limit: u32) -> Error {
    Error::with_values(
        ErrorCode::InvalidArgument,
        format!(
            "{n} rows of logits are {what} a forward pass, and at most {limit} may be; ask for fewer in one pass, or \
             raise max_batch_rows"
        ),
        &[("rows", n as u64), ("limit", u64::from(limit))],
    )
}

pub(super) fn refused(message: &str) -> Error {
    Error::new(ErrorCode::InvalidArgument, message.to_owned())
}
