//! Generators, and the tokens that each of their requests must draw.

use pie_core::sampling::Key;
use pie_core::{
    Drafting, ErrorCode, FinishReason, GeneratorId, GeneratorOptions, Probe, Reading, Submission,
};
use proptest::prelude::*;

use super::driving::{Outcome, Simulation};
use super::model::{Generation, GeneratorModel, Model, Wanted, What};
use super::ops::{self, END, V};
use super::support::sampling::drawn;
use super::support::world::MODEL;
use super::support::{Slot, derived_seed, fold, probing, row_of, state_of, write, write_plain};

/// How a generator goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum How {
    Step,
    Run,
}

/// Tokens that are drafted for a step at most.
pub const MAX_DRAFTED: usize = 9;

/// What steps read.
fn probe() -> Probe {
    Probe::Distribution {
        temperature: 1.0,
        k: 3,
    }
}

fn reading_of(slot: &Slot) -> Reading {
    let (logits, state) = (row_of(MODEL, V, slot), state_of(MODEL, V, slot));
    probing::read(&logits, &state, &probe())
}

impl Simulation {
    pub fn generate(&mut self, at: usize, made: GeneratorOptions) -> Outcome {
        let page_size = self.config.driver.page_size;
        let (context, model) = &mut self.contexts[at];
        let generator = self.world.engine.new_generator(*context, made.clone());
        if model.request.is_some() {
            prop_assert_eq!(generator.unwrap_err().code, ErrorCode::ContextBusy);
            return Ok(());
        }
        if model.all().is_empty() {
            prop_assert_eq!(generator.unwrap_err().code, ErrorCode::EmptyContext);
            return Ok(());
        }
        let generator = generator.unwrap();
        model.settle(page_size);
        if let Some(older) = model.generator.replace(generator)
            && self.generators[&older].finish.is_none()
            && self.generators[&older].max_tokens != Some(0)
        {
            prop_assert_eq!(
                self.world.engine.next_step(older).unwrap_err().code,
                ErrorCode::GeneratorRetired
            );
            prop_assert_eq!(
                self.world.engine.finish_reason(older).unwrap(),
                Some(FinishReason::Closed)
            );
        }
        let state = GeneratorModel {
            params: made.sampler.method.params().unwrap(),
            seed: made.seed,
            max_tokens: made.max_tokens,
            stop: made.stop,
            adapter: made.adapter,
            drafting: made.drafting,
            n_accepted: 0,
            finish: None,
            counted: false,
            n_steps: 0,
            lacks_tokens: false,
            process: model.process,
            late: false,
            undone: None,
        };
        self.generators.insert(generator, state);
        Ok(())
    }

    /// Says what is wanted of the step that is open, beside what was before.
    fn want(
        &mut self,
        id: GeneratorId,
        model: &Model,
        predicted: Option<&Generation>,
        asked: &Wanted,
    ) -> Outcome {
        if asked.is_cleared {
            self.world.engine.clear_sampler(id).unwrap();
        }
        for _ in 0..asked.n_probes {
            self.world.engine.probe(id, 0, probe()).unwrap();
        }
        self.draft(id, model, predicted, asked.drafts.as_ref())
    }

    /// Proposes tokens for the step that is open: some that are right, then others.
    fn draft(
        &mut self,
        id: GeneratorId,
        model: &Model,
        predicted: Option<&Generation>,
        drafts: Option<&(usize, Vec<u32>)>,
    ) -> Outcome {
        let Some((n_right, others)) = drafts else {
            return Ok(());
        };
        let right = predicted.map_or(&[][..], |it| &it.tokens);
        let mut tokens: Vec<u32> = right.iter().take(*n_right).copied().collect();
        tokens.extend(others);
        let first = model.all().len() as u32;
        let positions: Vec<u32> = (first..).take(tokens.len()).collect();
        let drafted = self.world.engine.draft(id, &tokens, &positions);
        if self.generators[&id].drafting == Drafting::NGram {
            prop_assert_eq!(drafted.unwrap_err().code, ErrorCode::InvalidArgument);
        } else {
            drafted.unwrap();
        }
        Ok(())
    }

    /// What a generation must draw from here.
    fn predict(&self, id: GeneratorId, model: &Model, how: How, wanted: &Wanted) -> Generation {
        let run = how == How::Run;
        let is_cleared = !run && wanted.is_cleared;
        let generator = &self.generators[&id];
        let mut sequence = model.all();
        let adapter = generator.adapter;
        let mut slots = model.written(&model.taken(), adapter);
        let mut read = slots.last().unwrap().clone();
        if model.taken().is_empty() {
            // It is read again, as it was written but for the adapter, and stays what it was.
            let before = &slots[..slots.len() - 1];
            read = write(before, read.token, read.position, read.seen, adapter);
        }
        let origin = (model.path, sequence.clone());
        let process = &self.processes[model.process];
        let before = process.counts.get(&origin).copied().unwrap_or(0);
        let seed = generator
            .seed
            .unwrap_or_else(|| derived_seed(process.launch_seed, model.path, &sequence, before));
        let (cap, limit) = (
            generator.max_tokens.unwrap_or(u32::MAX),
            self.config.driver.max_positions as usize,
        );
        let is_drafted = how == How::Step
            && !generator.late
            && (wanted.drafts.is_some() || generator.drafting == Drafting::NGram);
        let mut tokens = Vec::new();
        let full = |n_drawn: usize, length: usize| {
            generator.n_accepted as usize + n_drawn >= cap as usize || length >= limit
        };
        let mut finish = generator
            .finish
            .or(full(0, sequence.len()).then_some(FinishReason::Length));
        let void = finish.is_some();
        let n_read = match how {
            How::Step if !void => wanted.n_probes,
            _ => 0,
        };
        let readings = vec![reading_of(&read); n_read];
        let mask = (generator.late && how == How::Step && !is_cleared)
            .then(|| ops::late_mask(fold(seed, slots.len() as u64)));
        while finish.is_none() && !is_cleared {
            let key = Key {
                seed,
                position: slots.len() as u32,
                slot: 0,
                draw: 0,
            };
            let logits = row_of(MODEL, V, &read);
            let allowed = mask.as_deref().unwrap_or_default();
            let token = drawn(&logits, &generator.params, allowed, key).unwrap();
            read = write_plain(&slots, token, adapter);
            slots.push(read.clone());
            sequence.push(token);
            tokens.push(token);
            if token == END || generator.stop.contains(&token) {
                finish = Some(FinishReason::Stop);
            } else if full(tokens.len(), sequence.len()) {
                finish = Some(FinishReason::Length);
            } else if !run && (!is_drafted || tokens.len() > MAX_DRAFTED) || tokens.len() > 200 {
                break;
            }
        }
        Generation {
            generator: id,
            tokens,
            finish,
            seed,
            origin,
            run,
            void,
            is_cleared: is_cleared && !void,
            is_drafted: is_drafted && !void,
            mask: mask.filter(|_| !void),
            readings,
        }
    }

    pub fn submit_generation(&mut self, at: usize, how: How, asked: &Wanted) -> Outcome {
        let run = how == How::Run;
        let (context, model) = self.contexts[at].clone();
        let Some(id) = model.generator else {
            return Ok(());
        };
        let wanted = asked.with(self.generators[&id].undone.as_ref());
        let mut generation = if model.request.is_none() {
            Some(self.predict(id, &model, how, &wanted))
        } else {
            None
        };
        // Runs without an end would go on until the context is full.
        if generation
            .as_ref()
            .is_some_and(|generation| run && generation.finish.is_none())
        {
            return Ok(());
        }
        if !run {
            match self.world.engine.next_step(id) {
                // At its end nothing is opened; a step that failed is opened again even there.
                Ok(None) => {
                    prop_assert!(generation.is_none_or(|generation| generation.void));
                    // The program saw the end, and it stays.
                    let seen = self.generators.entry(id);
                    seen.and_modify(|it| it.finish = it.finish.or(Some(FinishReason::Length)));
                    self.contexts[at].1.provisional = None;
                    return Ok(());
                }
                Ok(number) => {
                    prop_assert_eq!(number, Some(self.generators[&id].n_steps));
                    self.contexts[at].1.provisional = None;
                }
                Err(error) if self.generators[&id].lacks_tokens => {
                    prop_assert_eq!(error.code, ErrorCode::StepPending);
                    return Ok(());
                }
                Err(error) => {
                    prop_assert_eq!(error.code, ErrorCode::ContextBusy);
                    prop_assert!(model.request.is_some());
                    return Ok(());
                }
            }
        }
        if !run {
            // Where it is asked for in vain, it comes again as it is.
            self.want(id, &model, generation.as_ref(), asked)?;
            self.generators.get_mut(&id).unwrap().undone = Some(wanted);
        }
        let submission = if run {
            Submission::Run(id)
        } else {
            Submission::Step(id)
        };
        let submitted = self.world.submit(submission);
        if run && self.generators[&id].lacks_tokens {
            prop_assert_eq!(submitted.unwrap_err().code, ErrorCode::StepPending);
            return Ok(());
        }
        if model.request.is_some() {
            prop_assert_eq!(submitted.unwrap_err().code, ErrorCode::ContextBusy);
            return Ok(());
        }
        let generation = generation.take().unwrap();
        if run && self.generators[&id].late {
            prop_assert_eq!(submitted.unwrap_err().code, ErrorCode::InvalidArgument);
            return Ok(());
        }
        let n_pages = model
            .all()
            .len()
            .div_ceil(self.config.driver.page_size as usize);
        if !generation.void && n_pages > self.config.driver.n_pages as usize {
            prop_assert_eq!(submitted.unwrap_err().code, ErrorCode::OutOfPages);
            return Ok(());
        }
        let request = submitted.unwrap();
        if run {
            self.generators.get_mut(&id).unwrap().undone = None;
        }
        self.await_mask(request, 0, generation.mask.as_ref());
        self.entered(context, request, What::Generation(generation));
        Ok(())
    }

    /// Replaces what the last step accepted: the first `n_kept` tokens of it stay, and others follow.
    pub fn accept(&mut self, at: usize, n_kept: usize, tokens: &[u32]) -> Outcome {
        let (context, model) = self.contexts[at].clone();
        let Some(id) = model.generator else {
            return Ok(());
        };
        let seq_len = model.seq_len();
        let n_before = model.provisional.unwrap_or(0);
        let before = model.all()[seq_len - n_before..seq_len].to_vec();
        let mut said = before[..n_kept.min(n_before)].to_vec();
        said.extend(tokens);
        let accepted = self.world.engine.accept(id, &said);
        let Some(n_before) = model.provisional.filter(|_| model.request.is_none()) else {
            let code = accepted.unwrap_err().code;
            prop_assert!(
                code == ErrorCode::StepPending
                    || code == ErrorCode::ContextBusy && model.request.is_some()
            );
            return Ok(());
        };
        let generator = self.generators.get_mut(&id).unwrap();
        let n_others = generator.n_accepted as usize - n_before;
        let (mut kept, mut finish) = (Vec::new(), None);
        let (length, limit) = (
            model.all().len() - n_before,
            self.config.driver.max_positions,
        );
        for &token in &said {
            kept.push(token);
            let n = n_others + kept.len();
            if token == END || generator.stop.contains(&token) {
                finish = Some(FinishReason::Stop);
            } else if generator.max_tokens.is_some_and(|cap| n >= cap as usize)
                || length + kept.len() >= limit as usize
            {
                finish = Some(FinishReason::Length);
            }
            if finish.is_some() {
                break;
            }
        }
        prop_assert_eq!(&accepted.unwrap(), &kept);
        generator.n_accepted = (n_others + kept.len()) as u32;
        (generator.finish, generator.lacks_tokens) = (finish, false);
        // The newest token has no keys and values, whatever was computed.
        let n_computed = n_before - model.pending.len().min(n_before);
        let alike = before[..n_computed]
            .iter()
            .zip(&kept)
            .take_while(|(old, new)| old == new);
        let n_left = alike.count().min(kept.len().saturating_sub(1));
        let model = self.model(context);
        model
            .slots
            .truncate(model.slots.len() - (n_computed - n_left));
        model.n_final = model.n_final.min(model.slots.len());
        model.pending = kept.split_off(n_left);
        model.provisional = Some(n_left + model.pending.len());
        Ok(())
    }
}
