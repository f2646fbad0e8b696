//! Forward passes and working pages.

use pie_core::sampling::{Key, Params};
use pie_core::{
    Answer, ErrorCode, Forward, Input, PageCounts, Probe, RowOutput, RowRequest, Sampler,
    Submission,
};
use proptest::prelude::*;

use super::driving::{Outcome, Simulation};
use super::model::{Expected, Forwarded, Model, What};
use super::ops::{ForwardOp, RowOp, V};
use super::support::probing::{near, read};
use super::support::sampling::drawn;
use super::support::world::MODEL;
use super::support::{derived_seed, row_of, state_of, write};

impl Simulation {
    pub fn forward(&mut self, at: usize, op: &ForwardOp) -> Outcome {
        let (context, model) = self.contexts[at].clone();
        let n_indexed = match op.input.len() {
            0 => model.taken().len(),
            n => n,
        };
        let end = model.all().len() + op.input.len();
        let forward = Forward {
            input: op
                .input
                .iter()
                .map(|&(token, position)| Input { token, position })
                .collect(),
            masks: cut_masks(op, n_indexed, end)
                .iter()
                .map(|mask| runs(mask))
                .collect(),
            adapter: op.adapter,
            rows: op
                .rows
                .iter()
                .map(|row| RowRequest {
                    index: row.index,
                    sampler: row.sampler.map(|(method, seed)| Sampler { method, seed }),
                    probes: row.probes.clone(),
                    late_mask: row.late.is_some(),
                })
                .collect(),
            token_mask: runs(&op.token_mask),
            leaves_working_pages: op.leaves,
            read_masks: None,
        };
        let submitted = self
            .world
            .submit(Submission::Forward(context, Box::new(forward)));
        let predicted = self.predict_forward(&model, op, n_indexed);
        let forwarded = match predicted {
            Ok(forwarded) => forwarded,
            Err(codes) => {
                let code = submitted.unwrap_err().code;
                prop_assert!(codes.contains(&code), "{code:?} is none of {codes:?}");
                return Ok(());
            }
        };
        let request = submitted.unwrap();
        for (row, index) in op.rows.iter().zip(0..) {
            self.await_mask(request, index, row.late.as_ref());
        }
        self.entered(context, request, What::Forward(Box::new(forwarded)));
        Ok(())
    }

    /// What a forward pass must answer, or with which codes it may be refused.
    fn predict_forward(
        &self,
        model: &Model,
        op: &ForwardOp,
        n_indexed: usize,
    ) -> Result<Forwarded, Vec<ErrorCode>> {
        if model.request.is_some() {
            return Err(vec![ErrorCode::ContextBusy]);
        }
        let mut codes = Vec::new();
        let taken = model.taken();
        let n_skipped = if op.input.is_empty() { 0 } else { taken.len() };
        let (first, end) = (
            model.slots.len(),
            model.slots.len() + taken.len() + op.input.len(),
        );
        let limit = self.config.driver.max_positions;
        let mut refuse = |when: bool, code| {
            if when {
                codes.push(code);
            }
        };
        let invalid = ErrorCode::InvalidArgument;
        refuse(n_indexed == 0, invalid);
        refuse(end > limit as usize, ErrorCode::ContextFull);
        let positions = op.input.iter().filter_map(|&(_, position)| position);
        refuse(positions.clone().any(|position| position >= limit), invalid);
        refuse(
            op.rows.iter().any(|row| row.index as usize >= n_indexed),
            invalid,
        );
        let shows = |mask: &Vec<bool>| mask.iter().any(|&shown| shown);
        refuse(op.token_mask.len() > V as usize, invalid);
        refuse(!op.token_mask.is_empty() && !shows(&op.token_mask), invalid);
        let config = &self.config;
        let most = config.max_batch_rows.min(config.driver.max_batch_tokens) as usize;
        refuse(
            op.rows
                .iter()
                .filter(|row| row.probes.contains(&Probe::Logits))
                .count()
                > most,
            invalid,
        );
        for probe in op.rows.iter().flat_map(|row| &row.probes) {
            match probe {
                Probe::Distribution { temperature, k } => {
                    refuse(*temperature <= 0.0 || *k > V, ErrorCode::InvalidProbe);
                }
                Probe::Logprobs(tokens) => {
                    let foreign = tokens.iter().any(|&token| token >= V);
                    refuse(foreign, ErrorCode::InvalidToken);
                }
                Probe::Logits | Probe::Entropy | Probe::Embedding => {}
            }
        }
        let n_of = |index| {
            let rows: Vec<&RowOp> = op.rows.iter().filter(|row| row.index == index).collect();
            let n_draws = rows.iter().filter(|row| row.sampler.is_some()).count();
            let probes = || rows.iter().flat_map(|row| &row.probes);
            let embeds = probes().any(|probe| *probe == Probe::Embedding);
            let reads = probes().any(|probe| *probe != Probe::Embedding);
            usize::from(embeds) + n_draws.max(usize::from(reads))
        };
        refuse((0..8).any(|index| n_of(index) > most), invalid);
        refuse(
            end.div_ceil(self.config.driver.page_size as usize)
                > self.config.driver.n_pages as usize,
            ErrorCode::OutOfPages,
        );
        let methods = op.rows.iter().filter_map(|row| row.sampler);
        refuse(
            methods
                .clone()
                .any(|(method, _)| method.params_and_draws().is_err()),
            ErrorCode::InvalidSampler,
        );
        let draws = |row: &RowOp| {
            let drawn = row.sampler.map(|(method, _)| method.params_and_draws());
            drawn.is_some_and(|drawn| drawn.is_ok_and(|(_, n)| n > 0))
        };
        refuse(
            op.rows.iter().any(|row| row.late.is_some() && !draws(row)),
            invalid,
        );
        let masks = cut_masks(op, n_indexed, end);
        refuse(op.masks.is_some() && masks.len() < n_indexed, invalid);
        let mut seen: Vec<Vec<bool>> = (first..end).map(|slot| vec![true; slot + 1]).collect();
        for (mask, seen) in masks.iter().zip(seen.iter_mut().skip(n_skipped)) {
            if !mask.is_empty() {
                let allowed = |index| mask.get(index).copied().unwrap_or(false);
                *seen = (0..seen.len()).map(allowed).collect();
                refuse(mask.len() > end || !shows(seen), invalid);
            }
        }
        if !codes.is_empty() {
            return Err(codes);
        }
        let own = op.input.iter().copied();
        let all = taken.into_iter().map(|token| (token, None)).chain(own);
        let mut slots = model.slots.clone();
        for ((token, position), seen) in all.zip(seen) {
            let position = position.unwrap_or(slots.len() as u32);
            slots.push(write(&slots, token, position, seen, op.adapter));
        }
        let origin = (model.path, model.all());
        let process = &self.processes[model.process];
        let before = process.counts.get(&origin).copied().unwrap_or(0);
        let seed = derived_seed(process.launch_seed, origin.0, &origin.1, before);
        let mut n_sampled = 0;
        let mut rows = Vec::new();
        for row in &op.rows {
            let index = first + n_skipped + row.index as usize;
            let (logits, state) = (
                row_of(MODEL, V, &slots[index]),
                state_of(MODEL, V, &slots[index]),
            );
            let mut tokens = Vec::new();
            if let Some((method, own_seed)) = row.sampler {
                let (params, n_draws): (Params, u32) = method.params_and_draws().unwrap();
                let key = Key {
                    seed: own_seed.unwrap_or(seed),
                    position: index as u32 + 1,
                    slot: n_sampled,
                    draw: 0,
                };
                n_sampled += 1;
                let mask = row.late.as_ref().unwrap_or(&op.token_mask);
                let draw = |draw| drawn(&logits, &params, mask, Key { draw, ..key });
                tokens.extend((0..n_draws).map(|index| draw(index).unwrap()));
            }
            rows.push(RowOutput {
                tokens,
                readings: row
                    .probes
                    .iter()
                    .map(|probe| read(&logits, &state, probe))
                    .collect(),
            });
        }
        Ok(Forwarded {
            slots,
            n_given: op.input.len() as u32,
            rows,
            origin: (n_sampled > 0).then_some(origin),
            leaves: op.leaves,
        })
    }

    /// The answer to a forward pass came.
    pub fn forwarded(
        &mut self,
        expected: &Expected,
        forwarded: Forwarded,
        answer: Answer,
    ) -> Outcome {
        let Answer::Forwarded(rows) = answer else {
            return Err(TestCaseError::fail(format!("{answer:?}")));
        };
        prop_assert_eq!(rows.len(), forwarded.rows.len());
        for (row, wanted) in rows.iter().zip(&forwarded.rows) {
            prop_assert_eq!(&row.tokens, &wanted.tokens);
            prop_assert_eq!(row.readings.len(), wanted.readings.len());
            let mut both = row.readings.iter().zip(&wanted.readings);
            prop_assert!(both.all(|(a, b)| near(a, b)), "{row:?} against {wanted:?}");
        }
        let page_size = self.config.driver.page_size;
        let model = self.model(expected.context);
        model.take(forwarded.slots, expected.n_buffered);
        if !forwarded.leaves {
            model.n_final = model.slots.len();
        }
        model.settle(page_size);
        let process = model.process;
        if let Some(origin) = forwarded.origin {
            *self.processes[process].counts.entry(origin).or_insert(0) += 1;
        }
        Ok(())
    }

    pub fn reserve(&mut self, at: usize, n: u32) -> Outcome {
        let (page_size, limit) = (
            self.config.driver.page_size as usize,
            self.config.driver.n_pages as usize,
        );
        let (context, model) = &mut self.contexts[at];
        let reserved = self.world.engine.reserve_working_pages(*context, n);
        if model.request.is_some() {
            prop_assert_eq!(reserved.unwrap_err().code, ErrorCode::ContextBusy);
        } else if model.n_pages(page_size) + n as usize > limit {
            model.settle(page_size as u32);
            prop_assert_eq!(reserved.unwrap_err().code, ErrorCode::OutOfPages);
        } else {
            reserved.unwrap();
            model.settle(page_size as u32);
            model.n_reserved = model.n_pages(page_size) + n as usize;
        }
        Ok(())
    }

    pub fn commit(&mut self, at: usize, n: u32) -> Outcome {
        let page_size = self.config.driver.page_size as usize;
        let (context, model) = &mut self.contexts[at];
        let committed = self.world.engine.commit_working_pages(*context, n);
        if model.request.is_none() {
            model.settle(page_size as u32);
        }
        let n_full = model.slots.len() / page_size - model.n_committed / page_size;
        if model.request.is_some() {
            prop_assert_eq!(committed.unwrap_err().code, ErrorCode::ContextBusy);
        } else if n as usize > n_full {
            prop_assert_eq!(committed.unwrap_err().code, ErrorCode::InvalidArgument);
        } else {
            committed.unwrap();
            model.n_committed += n as usize * page_size;
        }
        Ok(())
    }

    pub fn release_pages(&mut self, at: usize, n: u32) -> Outcome {
        let page_size = self.config.driver.page_size as usize;
        let (context, model) = &mut self.contexts[at];
        let released = self.world.engine.release_working_pages(*context, n);
        if model.request.is_some() {
            prop_assert_eq!(released.unwrap_err().code, ErrorCode::ContextBusy);
            return Ok(());
        }
        released.unwrap();
        model.settle(page_size as u32);
        let n_pages = model.n_pages(page_size);
        let n_kept = n_pages
            .saturating_sub(n as usize)
            .max(model.n_committed / page_size);
        let most = if n_kept * page_size < model.slots.len() {
            n_kept * page_size
        } else {
            usize::MAX
        };
        model.n_reserved = n_kept;
        model.drop_tokens(model.seq_len() - model.seq_len().min(most));
        Ok(())
    }

    pub fn truncate_working(&mut self, at: usize, n: u32) -> Outcome {
        let page_size = self.config.driver.page_size as usize;
        let (context, model) = &mut self.contexts[at];
        let truncated = self.world.engine.truncate_working_page_tokens(*context, n);
        if model.request.is_some() {
            prop_assert_eq!(truncated.unwrap_err().code, ErrorCode::ContextBusy);
            return Ok(());
        }
        truncated.unwrap();
        model.settle(page_size as u32);
        model.n_reserved = model.n_pages(page_size);
        model.drop_tokens((n as usize).min(model.seq_len() - model.n_committed));
        Ok(())
    }

    pub fn drop_committed(&mut self, at: usize, n: u32) -> Outcome {
        let page_size = self.config.driver.page_size as usize;
        let (context, model) = &mut self.contexts[at];
        let dropped = self.world.engine.drop_committed_pages(*context, n);
        if model.request.is_some() {
            prop_assert_eq!(dropped.unwrap_err().code, ErrorCode::ContextBusy);
            return Ok(());
        }
        model.settle(page_size as u32);
        let n_committed = model.n_committed / page_size;
        if model.seq_len() > model.n_committed || n as usize > n_committed {
            prop_assert_eq!(dropped.unwrap_err().code, ErrorCode::TruncateRange);
            return Ok(());
        }
        dropped.unwrap();
        let n_reserved = model.n_pages(page_size) - n_committed;
        let n_left = n_committed - n as usize;
        (model.n_committed, model.n_reserved) = (n_left * page_size, n_left + n_reserved);
        model.drop_tokens(n as usize * page_size);
        Ok(())
    }

    pub fn page_counts(&self, model: &Model) -> PageCounts {
        let page_size = self.config.driver.page_size as usize;
        let n_working = model.slots.len() - model.n_committed;
        PageCounts {
            n_committed: (model.n_committed / page_size) as u32,
            n_working: (model.n_pages(page_size) - model.n_committed / page_size) as u32,
            n_last: (1..=page_size)
                .rev()
                .find(|&n| n <= n_working && (n_working - n).is_multiple_of(page_size))
                .unwrap_or(0) as u32,
        }
    }
}

/// The attention masks of a pass, one for each token, most often cut to the length of the context.
fn cut_masks(op: &ForwardOp, n_indexed: usize, end: usize) -> Vec<Vec<bool>> {
    let mut masks: Vec<Vec<bool>> = op.masks.iter().flatten().take(n_indexed).cloned().collect();
    if !op.overlong {
        masks.iter_mut().for_each(|mask| mask.truncate(end));
    }
    masks
}

/// Truth values as run lengths, forbidden first; none where there are none.
pub fn runs(bits: &[bool]) -> Vec<u32> {
    let (mut runs, mut allowed) = (Vec::new(), false);
    let mut rest = bits;
    while !rest.is_empty() {
        let n = rest.iter().take_while(|&&bit| bit == allowed).count();
        runs.push(n as u32);
        (rest, allowed) = (&rest[n..], !allowed);
    }
    runs
}
