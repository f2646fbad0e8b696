//! Generators: what turns a context into tokens.

mod machine;
mod steering;
mod step;
mod texts;

use std::rc::Rc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::adapter::Adapter;
use crate::bindings::pie::core::generation as raw;
use crate::bindings::pie::core::types::Error;
use crate::bindings::pie::instruct::tools::choice_grammar;
use crate::constrain::{Constrain, GrammarConstraint, Schema};
use crate::handle::ProbeHandle;
use crate::matcher::{Grammar, Matcher};
pub use crate::output::{FinishReason, Output, RawOutput};
use crate::probe::Probe;
use crate::sample::Seeded;
use crate::shared::Shared;
use crate::spec::Speculator;
use crate::tools::Choice;
use crate::{ErrorCode, Model, Result, brle, chat, errors, grammar, task, typed};
use machine::Machine;
pub use step::GenStep;
pub use texts::TextStream;

/// Continues a context, by [`Context::generate`](crate::Context::generate). It runs nothing by itself: drive it with a
/// collector, or step by step.
///
/// ```no_run
/// # use inferlet::prelude::*;
/// # async fn stream(ctx: &Context) -> Result<()> {
/// let g = ctx.generate(Sampler::top_p(0.6, 0.95)).max_tokens(256).stop_texts(["\n\n"]);
/// let mut texts = g.texts();
/// while let Some(text) = texts.next().await {
///     inferlet::session::send(&text?);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Generator {
    machine: Rc<Machine>,
}

impl Generator {
    pub(crate) fn new(context: Rc<Shared>, model: Model, sampler: Seeded) -> Self {
        Self {
            machine: Rc::new(Machine::new(context, model, sampler)),
        }
    }

    /// Stops after `n` accepted tokens; after 0 nothing runs.
    pub fn max_tokens(self, n: usize) -> Self {
        // No context is that long, so that the largest number means the same.
        let n = u32::try_from(n).unwrap_or(u32::MAX);
        self.set(|made| made.set_max_tokens(n))
    }

    /// Adds stop tokens to those that it has.
    pub fn stop(self, tokens: &[u32]) -> Self {
        self.set(|made| made.add_stop(tokens))
    }

    /// Adds stop tokens: another name of [`Generator::stop`].
    pub fn add_stop(self, tokens: &[u32]) -> Self {
        self.stop(tokens)
    }

    /// Stops at these texts too: at the token that completes one of them the generation ends, and its text ends before
    /// it. There may be 64 of them, of 1 to 256 bytes each.
    pub fn stop_texts<T: AsRef<str>>(self, texts: impl IntoIterator<Item = T>) -> Self {
        let texts: Vec<String> = texts
            .into_iter()
            .map(|text| text.as_ref().to_owned())
            .collect();
        self.set(|made| made.add_stop_texts(&texts))
    }

    /// True stops at no token of the model and the template; false puts them back.
    pub fn ignore_eos(self, ignore: bool) -> Self {
        self.set(|made| made.ignore_eos(ignore))
    }

    /// Draws from this seed, as given, 0 included, in place of one derived from the launch seed and what the context
    /// holds. Once a step was opened this is the error `invalid-argument`.
    pub fn seed(self, seed: u64) -> Self {
        self.set(|made| made.set_seed(seed))
    }

    /// The tokens that may be drawn in every step, as run lengths ([`brle`](crate::brle)). Once a step was opened this
    /// is the error `invalid-argument`.
    pub fn logit_mask(self, mask: &[u32]) -> Self {
        match brle::check_runs(mask, brle::MAX_ROW) {
            Ok(()) => self.set(|made| made.set_logit_mask(mask)),
            Err(error) => {
                self.machine.keeper.keep(error);
                self
            }
        }
    }

    /// Adds a constraint to those that it has: what all of them allow may be drawn.
    pub fn constrain<C: Constrain + 'static>(self, constraint: C) -> Self {
        self.machine.constrain(Box::new(constraint));
        self
    }

    /// Adds the constraint that a schema makes.
    ///
    /// # Errors
    /// What the schema returns.
    pub fn constrain_with<S: Schema>(self, schema: S) -> Result<Self> {
        let constraint = schema.build_constraint(&self.machine.model)?;
        Ok(self.constrain(constraint))
    }

    /// Adds the constraint to documents of a type, by the schema under which [`Generator::collect_json`] runs. The text
    /// stays a text: this is for who reads it as it comes, or joins a type with another constraint.
    ///
    /// # Errors
    /// `invalid-grammar` for a schema that cannot be enforced.
    pub fn constrain_to<T: JsonSchema>(self) -> Result<Self> {
        let schema = typed::schema_of::<T>();
        self.constrain_with(grammar::JsonSchema(&schema))
    }

    /// Whether the model is to call one of the tools that it was given in the context. No call is malformed then. Where
    /// a call is asked for and cannot be enforced, it is the error `invalid-argument`, as is a tool that it was not
    /// given.
    pub fn tool_choice(self, choice: Choice) -> Self {
        let grammar = choice_grammar(&self.machine.context.raw, &choice.raw());
        match grammar {
            Ok(None) => self,
            Ok(Some(grammar)) => {
                let grammar = Grammar::from_raw(grammar);
                let constraint = GrammarConstraint::from_grammar(&grammar, &self.machine.model);
                self.constrain(constraint)
            }
            Err(error) => {
                self.machine.keeper.keep(error);
                self
            }
        }
    }

    /// Has a speculator propose tokens in each step. It never changes a token, and excludes
    /// [`Generator::system_speculation`].
    pub fn speculator<S: Speculator + 'static>(self, speculator: S) -> Self {
        if self.machine.is_drafted.get() {
            self.refuse(BOTH_PROPOSE);
        } else {
            let mut steering = self.machine.steering.borrow_mut();
            steering.speculate(Box::new(speculator));
        }
        self
    }

    /// Has the engine propose tokens, from what stood in the context before. It never changes a token. Once a step was
    /// opened this is the error `invalid-argument`.
    pub fn system_speculation(self) -> Self {
        self.draft_by(&raw::Drafting::NGram)
    }

    /// Has a smaller model with the same vocabulary propose tokens, by its name: as
    /// [`Generator::system_speculation`] otherwise.
    pub fn draft_model(self, name: &str) -> Self {
        self.draft_by(&raw::Drafting::Model(name.to_owned()))
    }

    /// Computes every step with an adapter.
    pub fn adapter(self, adapter: &Adapter) -> Self {
        self.set(|made| made.set_adapter(adapter.raw()?))
    }

    /// Perturbs the adapter by this seed; without an adapter the next step fails with `invalid-argument`.
    pub fn zo_seed(self, seed: i64) -> Self {
        self.set(|made| made.set_zo_seed(seed))
    }

    /// How long the text is thought to become, at least 1: the bid by default for its pages follows from it. It never
    /// ends the generation.
    pub fn horizon(self, n: usize) -> Self {
        let n = u32::try_from(n).unwrap_or(u32::MAX);
        self.set(|made| made.set_horizon(n))
    }

    /// Whether each step bids anew for pages, as it does at first. If not, a bid that
    /// [`Context::set_bid`](crate::Context::set_bid) gave holds for all steps that follow.
    pub fn rebid_each_step(self, rebid: bool) -> Self {
        self.set(|made| made.rebid_each_step(rebid))
    }

    /// Reads a row in every step: 0 is the one from which the step draws, or where tokens are drafted, the first from
    /// which it does. The handle is for the output of each step; collectors show nothing of it.
    pub fn probe_each_step<P: Probe>(&mut self, index: u32, probe: P) -> ProbeHandle<P> {
        let (owner, index) = self.machine.probe_each_step(index, &probe.to_raw());
        ProbeHandle::new(owner, index)
    }

    /// Puts these tokens in place of what the last step accepted, until the next one is opened. Returns the tokens that
    /// are kept: cut behind a stop token, and at the cap. Constraints see those. Empty where the call fails: its error
    /// is kept.
    pub fn accept(&self, tokens: &[u32]) -> Vec<u32> {
        let kept = self.machine.ask(|made| made.accept(tokens).map(Some));
        if let Some(kept) = &kept {
            self.machine.steering.borrow_mut().replace(kept);
        }
        kept.unwrap_or_default()
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
        GenStep::open(&self.machine)
    }

    /// The text that is left to generate, in pieces as they come. All of them together are what
    /// [`Generator::collect_text`] returns. The methods of [`StreamExt`](crate::StreamExt) fit it.
    pub fn texts(&self) -> TextStream {
        self.machine.note_collected("texts()");
        TextStream::new(Rc::clone(&self.machine))
    }

    /// A decoder of what it accepts from now on, for a program that goes step by step. It knows the stop texts that the
    /// generator has now, and shows none of them.
    ///
    /// # Errors
    /// A kept error; why the generator could not be made.
    pub fn decoder(&self) -> Result<chat::Decoder> {
        self.decoder_hiding(false, false)
    }

    /// The same without thoughts, calls of tools, or both: see [`chat::Decoder::hiding`].
    ///
    /// # Errors
    /// As [`Generator::decoder`].
    pub fn decoder_hiding(&self, thoughts: bool, calls: bool) -> Result<chat::Decoder> {
        let generator = self.machine.generator()?;
        Ok(chat::Decoder::of_generator(generator, thoughts, calls))
    }

    /// Runs to the end, for the text of the tokens that are left, as the template's chat decoder shows it.
    ///
    /// # Errors
    /// As [`Generator::next`]; `context-busy`, `out-of-pages`, `driver-failed`.
    pub fn collect_text(&self) -> impl Future<Output = Result<String>> + use<> {
        let machine = Rc::clone(&self.machine);
        async move {
            machine.note_collected("collect_text()");
            collect_text(&machine, None).await
        }
    }

    /// Runs to the end under the JSON Schema of `T`, beside what constrains it already; the value of the document.
    ///
    /// The schema is that of [`schemars`](crate::schemars). An object has no other properties than those of its struct,
    /// unless its schema says so. For `serde_json::Value` the document is any JSON. One that is dropped before its end
    /// leaves no trace: the schema is no constraint of the generator then.
    ///
    /// ```no_run
    /// # use inferlet::prelude::*;
    /// use inferlet::schemars::{self, JsonSchema};
    /// use serde::Deserialize;
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct City {
    ///     name: String,
    ///     population: Option<u32>,
    /// }
    ///
    /// # async fn ask(ctx: &Context) -> Result<City> {
    /// ctx.generate(Sampler::Argmax).max_tokens(100).collect_json::<City>().await
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Generator::collect_text`]; `invalid-grammar` for a schema that cannot be enforced; `json-cut` where
    /// `max_tokens` cut the document, with its text behind the first line; `grammar-mismatch` where `T` takes less than
    /// its schema allows.
    pub fn collect_json<T: JsonSchema + DeserializeOwned>(
        &self,
    ) -> impl Future<Output = Result<T>> + use<T> {
        let machine = Rc::clone(&self.machine);
        async move {
            machine.generator()?;
            let schema = typed::schema_of::<T>();
            let text = collect_document(&machine, schema).await?;
            let generator = machine.generator()?;
            match generator.finish_reason()?.map(FinishReason::from) {
                Some(FinishReason::Constraint | FinishReason::Stop) => typed::value_of(&text),
                _ => Err(typed::cut(&text, generator.tokens_generated()?)),
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
            machine.note_collected("collect_tokens()");
            if machine.steering.borrow().is_asked() {
                return Ok(collect(&machine).await?.0);
            }
            let tokens = machine.generator()?.collect_tokens();
            task::answer(tokens).await
        }
    }

    /// Whether it has ended. False where the call fails: its error is kept.
    pub fn is_done(&self) -> bool {
        self.finish_reason().is_some()
    }

    /// How many tokens were accepted so far. 0 where the call fails: its error is kept.
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

    fn set(self, setting: impl FnOnce(&raw::Generator) -> std::result::Result<(), Error>) -> Self {
        self.machine.set(setting);
        self
    }

    fn draft_by(self, drafting: &raw::Drafting) -> Self {
        if self.machine.steering.borrow().has_speculator() {
            self.refuse(BOTH_PROPOSE);
        } else if self.machine.set(|made| made.set_drafting(drafting)) {
            self.machine.is_drafted.set(true);
        }
        self
    }

    fn refuse(&self, message: &str) {
        let error = errors::text(ErrorCode::InvalidArgument, message);
        self.machine.keeper.keep(error);
    }
}

const BOTH_PROPOSE: &str =
    "speculator() and system_speculation() both propose tokens; give one of them";

/// Collects a text under a schema, which the document before may have had already.
async fn collect_document(machine: &Rc<Machine>, schema: String) -> Result<String> {
    let is_known = machine.document.borrow().as_ref() == Some(&schema);
    if is_known {
        return collect_text(machine, None).await;
    }
    let constraint = GrammarConstraint::from_json_schema(&schema, &machine.model)?;
    if machine.steering.borrow().is_asked() {
        machine.constrain(Box::new(constraint));
        machine.document.replace(Some(schema));
        return collect_text(machine, None).await;
    }
    let text = collect_text(machine, constraint.matcher()).await?;
    machine.document.replace(Some(schema));
    Ok(text)
}

/// Collects a text, under a matcher of its own besides where there is one.
async fn collect_text(machine: &Rc<Machine>, document: Option<&Matcher>) -> Result<String> {
    if machine.steering.borrow().is_asked() {
        let mut decoder = chat::Decoder::of_generator(machine.generator()?, false, false);
        let (tokens, finish) = collect(machine).await?;
        return chat::visible_text(&mut decoder, &tokens, finish);
    }
    let generator = machine.generator()?;
    let text = match document {
        Some(matcher) => generator.collect_document(matcher.raw()?),
        None => generator.collect_text(),
    };
    task::answer(text).await
}

/// Runs to the end step by step, because the program has a part in each.
async fn collect(machine: &Rc<Machine>) -> Result<(Vec<u32>, Option<FinishReason>)> {
    let _collecting = machine.context.begin_collecting();
    let (mut tokens, mut finish) = (Vec::new(), None);
    while let Some(step) = GenStep::open(machine)? {
        let output = step.execute().await?;
        tokens.extend(output.tokens);
        finish = output.finish_reason;
    }
    Ok((tokens, finish))
}
