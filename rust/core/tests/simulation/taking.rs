//! Answers, and what a program sees of its contexts, compared with the model.

use std::collections::HashSet;

use pie_core::{Adapter, Answer, ErrorCode, ProcessId, RequestId};
use proptest::prelude::*;

use super::driving::{Outcome, Simulation};
use super::model::{Expected, What};
use super::support::probing::near;
use super::support::world::output;

impl Simulation {
    /// Takes an answer, if it is there, and compares it with what was predicted.
    pub fn take(&mut self, which: usize) -> Outcome {
        let (request, expected) = self.expected[which].clone();
        let Some(answer) = self.world.engine.take(request) else {
            return Ok(());
        };
        self.expected.remove(which);
        let (n_pages, page_size) = (
            self.config.driver.n_pages as usize,
            self.config.driver.page_size as usize,
        );
        let injected = self.failed.remove(&request);
        let tired = self.tired.remove(&request);
        let model = self.model(expected.context);
        model.request = None;
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                let possible = match error.code {
                    // Only who goes on by itself can outgrow the pool; others are refused at once.
                    ErrorCode::OutOfPages => {
                        matches!(&expected.what, What::Generation(it) if it.run && (model.all().len() + it.tokens.len() - 1).div_ceil(page_size) > n_pages)
                    }
                    ErrorCode::DriverFailed
                    | ErrorCode::DriverLost
                    | ErrorCode::ModelUnavailable
                    | ErrorCode::BadLogits => injected,
                    ErrorCode::LateMask => tired,
                    _ => false,
                };
                prop_assert!(possible, "{error}");
                return Ok(());
            }
        };
        let generation = match expected.what.clone() {
            What::Generation(generation) => generation,
            What::Forward(forwarded) => return self.forwarded(&expected, *forwarded, answer),
            What::Flush => {
                prop_assert_eq!(answer, Answer::Flushed);
                // With nothing to compute there is no pass, and working pages stay what they are.
                let is_pending = !self.model(expected.context).pending.is_empty();
                if is_pending || expected.n_buffered > 0 {
                    self.compute(&expected, &[], Adapter::default());
                }
                let page_size = self.config.driver.page_size;
                self.model(expected.context).settle(page_size);
                return Ok(());
            }
        };
        let output = output(answer);
        let generation = match generation.is_drafted && !generation.is_cleared {
            true => generation.cut(&output),
            false => generation,
        };
        prop_assert_eq!(&output.tokens, &generation.tokens);
        prop_assert_eq!(output.finish, generation.finish);
        let (found, wanted) = (&output.readings, &generation.readings);
        let mut both = found.iter().zip(wanted);
        prop_assert!(
            found.len() == wanted.len() && both.all(|(found, wanted)| near(found, wanted)),
            "{found:?} {wanted:?}"
        );
        if let Some((last, computed)) = generation.tokens.split_last().filter(|_| !generation.void)
        {
            let adapter = self.generators[&generation.generator].adapter;
            self.compute(&expected, computed, adapter);
            self.model(expected.context).pending = vec![*last];
        }
        if generation.is_cleared {
            let is_pending = !self.model(expected.context).pending.is_empty();
            if is_pending || expected.n_buffered > 0 {
                let adapter = self.generators[&generation.generator].adapter;
                self.compute(&expected, &[], adapter);
            }
        }
        if !generation.run && !generation.void {
            self.model(expected.context).provisional = Some(generation.tokens.len());
        }
        let generator = self.generators.get_mut(&generation.generator).unwrap();
        generator.undone = None;
        generator.n_accepted += generation.tokens.len() as u32;
        generator.n_steps += u32::from(!generation.void);
        generator.lacks_tokens = generation.is_cleared;
        generator.finish = generator.finish.or(generation.finish);
        if !generator.counted && !generation.void && !generation.is_cleared {
            generator.counted = true;
            generator.seed = Some(generation.seed);
            let counts = &mut self.processes[generator.process].counts;
            *counts.entry(generation.origin).or_insert(0) += 1;
        }
        Ok(())
    }

    /// What a pass took and drew was computed.
    fn compute(&mut self, expected: &Expected, drawn: &[u32], adapter: Adapter) {
        let model = self.model(expected.context);
        let mut tokens = model.pending.clone();
        tokens.extend(&model.buffer[..expected.n_buffered]);
        tokens.extend(drawn);
        let slots = model.written(&tokens, adapter);
        // Where nothing was pending or buffered, the last token was only read.
        model.take(slots, expected.n_buffered);
        model.n_final = model.slots.len();
    }

    /// Runs everything and takes every answer; all must be there as soon as their masks are, and no mask that is
    /// awaited keeps another request.
    pub fn take_all(&mut self) -> Outcome {
        self.rest()?;
        self.take_commands()?;
        prop_assert!(self.has_no_commands(), "a command was never given");
        self.forget_masks();
        let awaiting: HashSet<RequestId> = self.awaited.iter().map(|it| it.request).collect();
        let others = |(id, _): &(RequestId, Expected)| !awaiting.contains(id);
        while let Some(which) = self.expected.iter().position(others) {
            let n = self.expected.len();
            self.take(which)?;
            prop_assert_eq!(self.expected.len(), n - 1, "a request was never answered");
        }
        while !self.awaited.is_empty() {
            self.give_mask(0, false)?;
        }
        self.rest()?;
        while !self.expected.is_empty() {
            let n = self.expected.len();
            self.take(0)?;
            prop_assert_eq!(self.expected.len(), n - 1, "a request was never answered");
        }
        Ok(())
    }

    /// Everything that a program can read.
    pub fn compare(&self) -> Outcome {
        for (context, model) in &self.contexts {
            let engine = &self.world.engine;
            let all = model.all();
            prop_assert_eq!(engine.buffer(*context).unwrap(), model.buffer.clone());
            prop_assert_eq!(engine.length(*context).unwrap() as usize, all.len());
            prop_assert_eq!(
                engine.seq_len(*context).unwrap() as usize,
                all.len() - model.buffer.len()
            );
            prop_assert_eq!(engine.tail(*context, 5000).unwrap(), all.clone());
            prop_assert_eq!(
                engine.tail(*context, 2).unwrap(),
                all[all.len().saturating_sub(2)..].to_vec()
            );
            prop_assert_eq!(
                engine.page_counts(*context).unwrap(),
                self.page_counts(model)
            );
        }
        for process in &self.processes {
            let names = self.world.engine.snapshots(ProcessId(process.id)).unwrap();
            let kept = self.snapshots.keys();
            let kept: Vec<&String> = kept
                .filter(|(user, _)| *user == process.user)
                .map(|(_, name)| name)
                .collect();
            prop_assert_eq!(names.iter().collect::<Vec<_>>(), kept);
        }
        for (id, generator) in &self.generators {
            prop_assert_eq!(
                self.world.engine.tokens_generated(*id).unwrap(),
                generator.n_accepted
            );
        }
        Ok(())
    }
}
