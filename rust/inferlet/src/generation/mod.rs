//! Generators: what turns a context into tokens.

mod machine;
mod output;
mod step;

use std::rc::Rc;

use crate::bindings::pie::core::generation as raw;
use crate::bindings::pie::core::types::Error;
use crate::kept::Keeper;
use crate::sample::Seeded;
use crate::shared::Shared;
use crate::{Result, task};
use machine::Machine;
pub use output::{FinishReason, Output};
pub use step::GenStep;

/// Continues a context, by [`Context::generate`](crate::Context::generate). It runs nothing by itself: drive it with a
/// collector, or step by step.
///
/// ```no_run
/// # use inferlet::prelude::*;
/// # async fn stream(ctx: &Context, model: &Model) -> Result<()> {
/// let mut g = ctx.generate(Sampler::TopP { temperature: 0.6, p: 0.95 }).max_tokens(256);
/// let mut decoder = chat::Decoder::new(model);
/// while let Some(step) = g.next()? {
///     let out = step.execute().await?;
///     for event in decoder.output_events(&out) {
///         if let chat::Event::Delta(text) = event? {
///             inferlet::session::send(&text);
///         }
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Generator {
    machine: Rc<Machine>,
}

impl Generator {
    pub(crate) fn new(context: Rc<Shared>, sampler: Seeded) -> Self {
        let options = raw::Options {
            max_tokens: None,
            stop: Vec::new(),
            seed: None,
            auto_flush: true,
            ignore_eos: false,
            logit_mask: Vec::new(),
            drafting: raw::Drafting::None,
        };
        let keeper = Keeper::new();
        let made = raw::Generator::create(&context.raw, sampler.into(), &options)
            .map_err(String::from)
            .inspect_err(|error| keeper.keep(error.clone()));
        Self {
            machine: Rc::new(Machine {
                made,
                context,
                keeper,
            }),
        }
    }

    /// Stops after `n` accepted tokens; after 0 nothing runs.
    pub fn max_tokens(self, n: usize) -> Self {
        // No context is that long, so that the largest number means the same.
        let n = u32::try_from(n).unwrap_or(u32::MAX);
        self.change(|made| made.set_max_tokens(n))
    }

    /// Stops at these tokens too.
    pub fn stop(self, tokens: &[u32]) -> Self {
        self.change(|made| made.add_stop(tokens))
    }

    /// Stops at these tokens too: another name of [`Generator::stop`].
    pub fn add_stop(self, tokens: &[u32]) -> Self {
        self.stop(tokens)
    }

    /// True stops at no token of the model and the template; false puts them back.
    pub fn ignore_eos(self, ignore: bool) -> Self {
        self.change(|made| made.ignore_eos(ignore))
    }

    /// Draws from this seed, as given, 0 included, in place of one derived from the launch seed and what the context
    /// holds. Once a step was opened this is the error `invalid-argument`.
    pub fn seed(self, seed: u64) -> Self {
        self.change(|made| made.set_seed(seed))
    }

    /// Opens the next step, or ends the loop. A step that was cancelled is opened again.
    ///
    /// # Errors
    /// A kept error; `step-pending` where the step before was never executed; `empty-context`, `invalid-sampler`,
    /// `generator-retired`.
    #[allow(
        clippy::should_implement_trait,
        reason = "an iterator has no place for the error"
    )]
    pub fn next(&mut self) -> Result<Option<GenStep>> {
        let index = self.machine.generator()?.next_step()?;
        Ok(index.map(|index| GenStep::new(Rc::clone(&self.machine), index)))
    }

    /// Runs to the end, for the text of the tokens that are left, as the template's chat decoder shows it.
    ///
    /// # Errors
    /// As [`Generator::next`]; `context-busy`, `out-of-pages`, `driver-failed`.
    pub fn collect_text(&self) -> impl Future<Output = Result<String>> + use<> {
        let machine = Rc::clone(&self.machine);
        async move {
            let text = machine.generator()?.collect_text();
            task::answer(text).await
        }
    }

    /// Runs to the end, for the tokens that are left, a stop token included as the last.
    ///
    /// # Errors
    /// As [`Generator::collect_text`].
    pub fn collect_tokens(&self) -> impl Future<Output = Result<Vec<u32>>> + use<> {
        let machine = Rc::clone(&self.machine);
        async move {
            let tokens = machine.generator()?.collect_tokens();
            task::answer(tokens).await
        }
    }

    /// Whether it has ended. False where the call fails: its error is kept.
    pub fn is_done(&self) -> bool {
        self.finish_reason().is_some()
    }

    /// Tokens accepted so far. 0 where the call fails: its error is kept.
    pub fn tokens_generated(&self) -> usize {
        self.machine.ask(raw::Generator::tokens_generated) as usize
    }

    /// Why it has ended; none while it has not. None where the call fails: its error is kept.
    pub fn finish_reason(&self) -> Option<FinishReason> {
        self.machine
            .ask(raw::Generator::finish_reason)
            .map(Into::into)
    }

    /// Returns the error that an earlier call kept, once.
    ///
    /// # Errors
    /// That error.
    pub fn check(&self) -> Result<()> {
        self.machine.generator().map(drop)
    }

    /// Changes the generator, and keeps the error.
    fn change(
        self,
        change: impl FnOnce(&raw::Generator) -> std::result::Result<(), Error>,
    ) -> Self {
        self.machine.ask(change);
        self
    }
}
