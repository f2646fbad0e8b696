//! What programs want of steps: what each is computed with and reads, and what the open one does.

use std::sync::Arc;

use super::Engine;
use super::forward::MAX_PROPOSED;
use super::forwarding::{check_allows, check_row_probes, refused};
use crate::batch::Adapter;
use crate::brle;
use crate::errors::{Error, ErrorCode, Result};
use crate::generation::{RowProbe, probe_bytes};
use crate::ids::GeneratorId;
use crate::masks;
use crate::sampling::Probe;

impl Engine {
    /// Computes every step from the next one on with an adapter.
    ///
    /// # Errors
    /// `unsupported` where the driver serves none; `generator-retired`; `context-busy` while a step is under way.
    pub fn set_adapter(&mut self, generator: GeneratorId, id: u64, version: u32) -> Result<()> {
        self.owned.check_idle(generator)?;
        self.check_adapter(Adapter {
            id,
            version,
            zo_seed: None,
        })?;
        let adapter = &mut self.owned.idle_generator(generator)?.adapter;
        (adapter.id, adapter.version) = (id, version);
        Ok(())
    }

    /// Perturbs the adapter by this seed. Without an adapter the next step fails with `invalid-argument`.
    ///
    /// # Errors
    /// `unsupported` where the driver serves no adapters; `generator-retired`; `context-busy` while a step is under
    /// way.
    pub fn set_zo_seed(&mut self, generator: GeneratorId, seed: u64) -> Result<()> {
        self.owned.check_idle(generator)?;
        self.check_adapters_served()?;
        self.owned.idle_generator(generator)?.adapter.zo_seed = Some(seed);
        Ok(())
    }

    /// How many tokens the generator is thought to draw: the bid by default for its pages follows from it. It never
    /// ends the generation.
    ///
    /// # Errors
    /// `invalid-argument` for 0; `generator-retired`; `context-busy` while a step is under way.
    pub fn set_horizon(&mut self, generator: GeneratorId, n: u32) -> Result<()> {
        let state = self.owned.idle_generator(generator)?;
        if n == 0 {
            return Err(refused("the horizon is 0 tokens; give 1 at least"));
        }
        state.horizon = Some(n);
        Ok(())
    }

    /// The horizon of a generator; none where none was set.
    ///
    /// # Errors
    /// `generator-retired` after it was dropped.
    pub fn horizon(&self, generator: GeneratorId) -> Result<Option<u32>> {
        Ok(self.owned.generator(generator)?.horizon)
    }

    /// Reads a row in every step: 0 is the one from which the step draws, or where tokens are drafted, the first from
    /// which it does. Returns which of the probes of a step it is. A run to the end reads nothing.
    ///
    /// # Errors
    /// `invalid-probe`, `invalid-token`, `unsupported` for what the driver has not; `invalid-argument` where too much
    /// is read of one row; `step-pending` where the open step has probes of its own; `generator-retired`;
    /// `context-busy` while a step is under way.
    pub fn probe_each_step(
        &mut self,
        generator: GeneratorId,
        index: u32,
        probe: Probe,
    ) -> Result<u32> {
        self.check_probe(&probe)?;
        let limit = self.config.max_batch_rows;
        let state = self.owned.idle_generator(generator)?;
        if !state.step.probes.is_empty() {
            return Err(Error::new(
                ErrorCode::StepPending,
                "the open step has probes of its own, which come behind those of every step; attach those of every \
                 step first",
            ));
        }
        let mut probes: Vec<RowProbe> = state.probes.as_deref().unwrap_or_default().to_vec();
        probes.push((index, probe));
        check_row_probes(&probes, limit)?;
        let place = probes.len() as u32 - 1;
        state.probes = Some(Arc::from(probes));
        Ok(place)
    }

    /// Reads a row in the open step. Returns which of the probes of the step it is.
    ///
    /// # Errors
    /// Those of [`Engine::probe_each_step`]; `step-pending` where no step is open.
    pub fn probe(&mut self, generator: GeneratorId, index: u32, probe: Probe) -> Result<u32> {
        self.check_probe(&probe)?;
        let limit = self.config.max_batch_rows;
        let state = self.owned.idle_generator(generator)?;
        state.open_step()?;
        let mut probes: Vec<RowProbe> = state.probes.as_deref().unwrap_or_default().to_vec();
        probes.extend(state.step.probes.iter().cloned());
        probes.push((index, probe.clone()));
        check_row_probes(&probes, limit)?;
        state.open_step()?.probes.push((index, probe));
        Ok(probes.len() as u32 - 1)
    }

    /// Bytes that a probe takes with what it reads, of every step or of one.
    pub fn probe_bytes(&self, probe: &Probe, every_step: bool) -> usize {
        probe_bytes(probe, every_step, &self.config.driver)
    }

    /// The open step draws nothing: it computes what there is, and [`Engine::accept`] is to say which tokens follow.
    ///
    /// # Errors
    /// `step-pending` where no step is open; `generator-retired`; `context-busy` while a step is under way.
    pub fn clear_sampler(&mut self, generator: GeneratorId) -> Result<()> {
        let state = self.owned.idle_generator(generator)?;
        state.open_step()?.is_cleared = true;
        Ok(())
    }

    /// Whether the sampler of the open step was cleared.
    ///
    /// # Errors
    /// `generator-retired` after it was dropped.
    pub fn is_cleared(&self, generator: GeneratorId) -> Result<bool> {
        Ok(self.owned.generator(generator)?.step.is_cleared)
    }

    /// Proposes tokens for the open step, at consecutive positions behind all tokens of the context. They are computed
    /// with it, and accepted while they are what the sampler draws: no token changes. So many are left out as could not
    /// be of use, and all of them beside masks that come late, and where no other token is left to compute. Tokens
    /// that were proposed before are replaced.
    ///
    /// # Errors
    /// `invalid-token`; `invalid-argument` for positions of any other form, too many tokens, and a generator for which
    /// the engine drafts; `step-pending` where no step is open; `generator-retired`; `context-busy` while a step is
    /// under way.
    pub fn draft(&mut self, id: GeneratorId, tokens: &[u32], positions: &[u32]) -> Result<()> {
        self.check_tokens(tokens)?;
        let length = self.owned.length_of(id);
        let generator = self.owned.idle_generator(id)?;
        let has_drafter = generator.drafter.is_some();
        let step = generator.open_step()?;
        if has_drafter {
            return Err(refused(
                "the engine drafts for this generator; draft yourself, or let the engine do so, and not both",
            ));
        }
        let (n_tokens, n_positions) = (tokens.len(), positions.len());
        if n_tokens != n_positions {
            return Err(refused(&format!(
                "{n_tokens} drafts have {n_positions} positions; give one for each"
            )));
        }
        if n_tokens > MAX_PROPOSED {
            return Err(refused(&format!(
                "{n_tokens} tokens are drafted for one step, which may have {MAX_PROPOSED}; draft fewer"
            )));
        }
        let mut expected = (length..).zip(positions);
        if let Some((expected, position)) = expected.find(|(expected, found)| expected != *found) {
            return Err(refused(&format!(
                "a draft has position {position} and would stand at {expected}; draft at consecutive positions from \
                 {length} on"
            )));
        }
        step.drafts.clear();
        step.drafts.extend_from_slice(tokens);
        Ok(())
    }

    /// The token mask of a generator, in its shortest form; none where it allows everything.
    pub(super) fn token_mask(&self, mask: &[u32]) -> Result<Option<Arc<[u32]>>> {
        let vocab_size = self.config.driver.vocab_size;
        masks::check(mask, vocab_size)?;
        check_allows(mask, vocab_size)?;
        let mask = brle::shortest(mask, vocab_size);
        Ok((!mask.is_empty()).then(|| Arc::from(mask)))
    }
}
