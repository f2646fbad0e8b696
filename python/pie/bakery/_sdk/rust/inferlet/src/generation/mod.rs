//! Generators: what turns a context into tokens.

mod machine;
mod output;
mod step;

use std::rc::Rc;

use crate::bindings::pie::core::generation as raw;
use crate::{ErrorCode, Result, errors};
pub(crate) use machine::{Machine, Plan};
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
///     if let chat::Event::Delta(text) = decoder.feed(&out.tokens)? {
///         inferlet::session::send(&text);
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
    pub(crate) fn new(machine: Rc<Machine>) -> Self {
        Self { machine }
    }

    /// Stops after `n` accepted tokens; after 0 nothing runs.
    pub fn max_tokens(self, n: usize) -> Self {
        // No context is that long, so that the largest number means the same.
        let n = u32::try_from(n).unwrap_or(u32::MAX);
        self.change(
            |plan| plan.options.max_tokens = Some(n),
            |made| made.set_max_tokens(n),
        )
    }

    /// Stops at these tokens too.
    pub fn stop(self, tokens: &[u32]) -> Self {
        self.change(
            |plan| plan.options.stop.extend_from_slice(tokens),
            |made| made.add_stop(tokens),
        )
    }

    /// Stops at these tokens too: another name of [`Generator::stop`].
    pub fn add_stop(self, tokens: &[u32]) -> Self {
        self.stop(tokens)
    }

    /// True stops at no token of the model and the template; false puts them back.
    pub fn ignore_eos(self, ignore: bool) -> Self {
        self.change(
            |plan| plan.ignore_eos = Some(ignore),
            |made| made.ignore_eos(ignore),
        )
    }

    /// Draws from this seed, as given, 0 included, in place of one derived from the launch seed and what the context holds.
    /// Once the generator has been used this is the error `invalid-argument`.
    pub fn seed(self, seed: u64) -> Self {
        let late = || {
            errors::text(
                ErrorCode::InvalidArgument,
                format_args!(
                    "seed {seed} comes after the generator was used; call seed() right after generate()"
                ),
            )
        };
        self.change(
            |plan| plan.options.seed = Some(seed),
            |_| Err::<(), String>(late()),
        )
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
            match machine.advance(raw::Until::Text).await? {
                raw::Event::Text(text) => Ok(text),
                other => Err(unasked(&other)),
            }
        }
    }

    /// Runs to the end, for the tokens that are left, a stop token included as the last.
    ///
    /// # Errors
    /// As [`Generator::collect_text`].
    pub fn collect_tokens(&self) -> impl Future<Output = Result<Vec<u32>>> + use<> {
        let machine = Rc::clone(&self.machine);
        async move {
            match machine.advance(raw::Until::Tokens).await? {
                raw::Event::Tokens(tokens) => Ok(tokens),
                other => Err(unasked(&other)),
            }
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

    /// Why it has ended; none while it can go on. None where the call fails: its error is kept.
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

    /// Changes the plan of a generator that the engine does not know yet, or the generator itself.
    fn change<E: Into<String>>(
        self,
        planned: impl FnOnce(&mut Plan),
        made: impl FnOnce(&raw::Generator) -> std::result::Result<(), E>,
    ) -> Self {
        self.machine.change(planned, made);
        self
    }
}

/// The engine answered something else than was asked for.
fn unasked(event: &raw::Event) -> String {
    errors::text(
        ErrorCode::Internal,
        format_args!(
            "the engine answered {event:?}, which this call did not ask for; engine and program are of different versions"
        ),
    )
}
