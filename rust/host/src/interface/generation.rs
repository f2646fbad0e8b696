//! `pie:core/generation`: generators.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pie_core::masks::TokenMask;
use pie_core::{Engine, ErrorCode, GeneratorId, RequestId, Submission};
use pie_text::limits::MAX_QUEUED_EVENTS;
use pie_text::{Chat, ChatDecoder, ChatEvent};
use tokio::sync::oneshot;
use wasmtime::component::{Linker, Resource};
use wasmtime_wasi::p2::DynPollable;

use super::adapter::AdapterHandle;
use super::bindings::pie::core::generation::{
    self, Drafting, HostFutureOutput, HostFutureText, HostFutureTokens, HostGenerator,
};
use super::bindings::pie::core::sampling::{Probe, Sampler, Slot, Speculation};
use super::bindings::pie::core::types;
use super::context::ContextHandle;
use super::errors::CallResult;
use super::futures::host_future;
use super::grammar::MatcherHandle;
use super::sampling::{core_probe, core_sampler, slot_of};
use super::view::view;
use crate::Error;
use crate::budget::{Charge, Purpose};
use crate::errors::text_error;
use crate::futures::{Future, Operation};
use crate::limits::Limits;
use crate::model::constraints::Constraints;
use crate::model::conversation::Context;
use crate::model::draft_model::DraftModel;
use crate::model::pass::Pass;
use crate::process::handles::HandleTable;
use crate::process::joined::Joined;
use crate::process::record::ProcessRecord;
use crate::process::state::ProcessState;
use crate::process::surroundings::Surroundings;
use crate::sync::lock;

/// What stands behind a `generator` handle.
#[derive(Debug)]
pub struct GeneratorHandle(Arc<Generator>);

#[derive(Debug)]
struct Generator {
    context: Arc<Context>,
    id: GeneratorId,
    /// For its options.
    charge: Mutex<Charge>,
    /// The step that was executed last.
    step: Mutex<Option<RequestId>>,
    /// It may be charged with what was wanted of one step.
    has_own: AtomicBool,
    /// What walks what it accepts.
    constraints: Mutex<Constraints>,
}

impl Generator {
    /// Charges it with the options that it has.
    ///
    /// # Errors
    /// `limit-engine-memory`, `generator-retired`.
    fn recharge(&self) -> Result<(), Error> {
        let model = &self.context.model;
        let n_bytes = model.with_engine(|engine| engine.option_bytes(self.id))?;
        lock(&self.charge).resize(n_bytes as u64)
    }

    /// The open step is charged with what is wanted of it.
    fn note_own(&self) {
        self.has_own.store(true, Ordering::Relaxed);
    }

    /// A step was opened, which has what was wanted of the one before only where that one comes again.
    ///
    /// # Errors
    /// `generator-retired`.
    fn release_own(&self) -> Result<(), Error> {
        if self.has_own.swap(false, Ordering::Relaxed) {
            self.recharge()?;
        }
        Ok(())
    }

    /// Gives the mask of a step that was submitted, while it is computed. Where the program gives one of its own, it is
    /// kept until that is there.
    ///
    /// # Errors
    /// `invalid-grammar`, `grammar-mismatch`, and those of the core.
    fn constrain(&self, request: RequestId) -> Result<(), Error> {
        let mut constraints = lock(&self.constraints);
        if constraints.is_empty() {
            return Ok(());
        }
        let model = &self.context.model;
        let stop = model.with_engine(|engine| engine.stop_tokens(self.id))?;
        let mask = constraints.mask(&stop, model.vocab_size())?;
        if constraints.program_asks {
            constraints.keep_mask(mask);
            return Ok(());
        }
        drop(constraints);
        let mask = TokenMask::new(&mask, model.vocab_size());
        model.with_engine(|engine| engine.give_step_mask(request, mask))
    }

    /// Has the constraints walk what a step accepted. Text that they force is accepted with it, and where nothing may
    /// follow, the generation ends.
    ///
    /// # Errors
    /// `invalid-grammar`, and those of the core.
    fn walk(&self, output: &mut pie_core::Output) -> Result<(), Error> {
        let mut constraints = lock(&self.constraints);
        if constraints.is_empty() || output.tokens.is_empty() {
            return Ok(());
        }
        constraints.accept(&output.tokens)?;
        if output.finish.is_none() && !constraints.is_terminated() {
            let forced = constraints.forced()?;
            if !forced.is_empty() {
                let n_drawn = output.tokens.len();
                let all = [output.tokens.as_slice(), &forced].concat();
                output.tokens = self.context.accept(self.id, &all)?;
                constraints.go_on(output.tokens.get(n_drawn..).unwrap_or_default())?;
                let reason = |engine: &mut pie_core::Engine| engine.finish_reason(self.id);
                output.finish = self.context.model.with_engine(reason)?;
            }
        }
        if output.finish.is_none() && constraints.is_terminated() {
            let end = |engine: &mut pie_core::Engine| engine.end_by_constraint(self.id);
            self.context.model.with_engine(end)?;
            output.finish = Some(pie_core::FinishReason::Constraint);
        }
        Ok(())
    }

    /// Makes room for `n_tokens` more stop tokens.
    ///
    /// # Errors
    /// `limit-engine-memory`.
    fn make_room(&self, n_tokens: usize) -> Result<(), Error> {
        lock(&self.charge).grow(self.context.model.stop_bytes(n_tokens))
    }
}

impl Drop for Generator {
    fn drop(&mut self) {
        self.context
            .model
            .with_engine(|engine| engine.drop_generator(self.id));
    }
}

/// A run of a generator that a program waits for, for what `W` makes of it.
#[derive(Debug)]
pub struct Advance<W> {
    generator: Arc<Generator>,
    pass: Pass,
    wanted: PhantomData<W>,
}

/// What a program wants of a run.
pub trait Wanted: Send + 'static {
    /// What the program gets.
    type Answer;
    /// Whether one step is all.
    const IS_ONE_STEP: bool;

    /// Makes the answer of what the generator accepted.
    ///
    /// # Errors
    /// Those of decoding.
    fn answer(chat: &Arc<Chat>, output: pie_core::Output) -> Result<Self::Answer, Error>;
}

/// One step.
#[derive(Debug)]
pub struct Step;
/// The tokens that are left.
#[derive(Debug)]
pub struct Tokens;
/// The text of the tokens that are left.
#[derive(Debug)]
pub struct Text;

/// The future of [`Step`].
pub type FutureOutput = Future<Advance<Step>>;
/// The future of [`Tokens`].
pub type FutureTokens = Future<Advance<Tokens>>;
/// The future of [`Text`].
pub type FutureText = Future<Advance<Text>>;

impl Wanted for Step {
    type Answer = generation::Output;
    const IS_ONE_STEP: bool = true;

    fn answer(_chat: &Arc<Chat>, output: pie_core::Output) -> Result<Self::Answer, Error> {
        // A step whose sampler was cleared drew nothing, and has no slot for it.
        let is_read = !output.readings.is_empty();
        let drawn = Some(&output.tokens).filter(|tokens| is_read && !tokens.is_empty());
        let drawn = drawn.map(|tokens| Slot::Tokens(tokens.clone()));
        let slots = drawn.into_iter();
        let slots = slots.chain(output.readings.iter().map(slot_of)).collect();
        Ok(generation::Output {
            tokens: output.tokens,
            finish: output.finish.map(finish_reason),
            slots,
            speculation: Speculation {
                drafted: output.speculation.n_drafted,
                accepted: output.speculation.n_accepted,
            },
        })
    }
}

impl Wanted for Tokens {
    type Answer = Vec<u32>;
    const IS_ONE_STEP: bool = false;

    fn answer(_chat: &Arc<Chat>, output: pie_core::Output) -> Result<Self::Answer, Error> {
        Ok(output.tokens)
    }
}

impl Wanted for Text {
    type Answer = String;
    const IS_ONE_STEP: bool = false;

    fn answer(chat: &Arc<Chat>, output: pie_core::Output) -> Result<Self::Answer, Error> {
        let mut decoder = ChatDecoder::new(chat.clone());
        let mut text = String::new();
        let ended = output.finish.map(finish_reason);
        // In parts, since each token may be an event and the decoder's queue is bounded.
        for part in shown_tokens(&output.tokens, ended).chunks(MAX_QUEUED_EVENTS / 4) {
            let event = decoder.feed(part).map_err(text_error)?;
            drain(&mut decoder, event, &mut text)?;
        }
        let event = decoder.finish();
        drain(&mut decoder, event, &mut text)?;
        Ok(text)
    }
}

/// Adds the visible text of an event, and of all that are queued behind it.
fn drain(decoder: &mut ChatDecoder, event: ChatEvent, text: &mut String) -> Result<(), Error> {
    let mut event = event;
    while event != ChatEvent::Idle {
        if let ChatEvent::Delta(delta) = event {
            text.push_str(&delta);
        }
        event = decoder.feed(&[]).map_err(text_error)?;
    }
    Ok(())
}

/// The accepted tokens that a text shows. A stop token ends the text and is never shown, even if the decoder would have
/// a text for it.
pub(super) fn shown_tokens(tokens: &[u32], finish: Option<generation::FinishReason>) -> &[u32] {
    match (finish, tokens.split_last()) {
        (Some(generation::FinishReason::Stop), Some((_, before))) => before,
        _ => tokens,
    }
}

impl<W: Wanted> Advance<W> {
    fn submit(generator: Arc<Generator>) -> Future<Self> {
        let submission = if W::IS_ONE_STEP {
            Submission::Step(generator.id)
        } else {
            Submission::Run(generator.id)
        };
        let (pass, mut receiver) = Pass::submit(&generator.context.model, submission);
        *lock(&generator.step) = Some(pass.request()).filter(|_| W::IS_ONE_STEP);
        if W::IS_ONE_STEP
            && let Err(error) = generator.constrain(pass.request())
        {
            // The step is given up, and its future tells why.
            pass.cancel();
            let (failed, told) = oneshot::channel();
            drop(failed.send(Err(error)));
            receiver = told;
        }
        Future::new(
            Self {
                generator,
                pass,
                wanted: PhantomData,
            },
            receiver,
        )
    }
}

impl<W: Wanted> Operation for Advance<W> {
    type Raw = ();
    type Answer = W::Answer;

    fn finish(&mut self, (): ()) -> Result<W::Answer, Error> {
        let context = &self.generator.context;
        let mut output = context.take_generated(&self.pass)?;
        if W::IS_ONE_STEP {
            self.generator.walk(&mut output)?;
        }
        W::answer(context.model.chat(), output)
    }

    fn abandon(&mut self, _answer: Option<Result<(), Error>>) {
        self.pass.cancel();
    }

    fn limit(&self, limits: &Limits) -> Option<Duration> {
        // A run to the end has no limit of time: it takes as long as its tokens.
        limits.pass.filter(|_| W::IS_ONE_STEP)
    }
}

view! {
    /// Generators, who pays for their options, and the models that may draft for them.
    Generators { table: HandleTable, joined: Joined, record: Arc<ProcessRecord>, surroundings: Arc<Surroundings> }
}

impl Generators<'_> {
    /// Runs `work` on the core and a generator of it.
    fn on_generator<T>(
        &mut self,
        handle: &Resource<GeneratorHandle>,
        work: impl FnOnce(&mut Engine, GeneratorId) -> Result<T, Error>,
    ) -> CallResult<T> {
        let generator = &self.table.get(handle)?.0;
        Ok(generator
            .context
            .model
            .with_engine(|engine| work(engine, generator.id))?)
    }

    /// Runs a generator, for what `W` makes of it.
    fn advance<W: Wanted>(
        &mut self,
        handle: &Resource<GeneratorHandle>,
    ) -> wasmtime::Result<Resource<Future<Advance<W>>>> {
        let generator = self.table.get(handle)?.0.clone();
        self.table.push_future(Advance::submit(generator))
    }

    /// The model that drafts for a generator on `context`, if one is to, with what it draws by.
    ///
    /// # Errors
    /// `unknown-model`; `invalid-argument` where it has another vocabulary; those of a context of it.
    fn draft_model(
        &mut self,
        context: &Context,
        drafting: &Drafting,
        draws: (pie_core::Sampler, &[u32]),
    ) -> Result<Option<DraftModel>, Error> {
        let Drafting::Model(name) = drafting else {
            return Ok(None);
        };
        let (model, own) = (self.surroundings.models.find(name)?, &context.model);
        if !model.shares_vocabulary(own) {
            return Err(Error::new(
                ErrorCode::InvalidArgument,
                format!(
                    "the draft model {:?} has another vocabulary ({} tokens) than the model of the context, {:?} ({} \
                     tokens); name one with the same tokenizer, or draft by n-grams",
                    model.name(),
                    model.vocab_size(),
                    own.name(),
                    own.vocab_size()
                ),
            ));
        }
        self.joined.join(&model)?;
        let (process, account) = (self.joined.process_id(), self.record.account.clone());
        let (sampler, mask) = draws;
        DraftModel::new(model, process, account, sampler, mask.to_vec()).map(Some)
    }

    /// Changes what is wanted of the steps of a generator, which takes `n_bytes` more at most: it is charged before,
    /// and a change that is refused leaves nothing.
    fn attach<T>(
        &mut self,
        handle: &Resource<GeneratorHandle>,
        n_bytes: impl FnOnce(&Engine) -> usize,
        change: impl FnOnce(&mut Engine, GeneratorId) -> Result<T, Error>,
    ) -> CallResult<T> {
        let generator = self.table.get(handle)?.0.clone();
        let model = &generator.context.model;
        let n_bytes = model.with_engine(|engine| n_bytes(engine));
        lock(&generator.charge).grow(n_bytes as u64)?;
        let changed = model.with_engine(|engine| change(engine, generator.id));
        generator.recharge()?;
        Ok(changed?)
    }

    /// Changes the stop tokens of a generator, charged before and after.
    fn change_stop(
        &mut self,
        handle: &Resource<GeneratorHandle>,
        tokens: &[u32],
        change: impl FnOnce(&mut Engine, GeneratorId, &[u32]) -> Result<(), Error>,
    ) -> CallResult<()> {
        let generator = self.table.get(handle)?.0.clone();
        generator.make_room(tokens.len())?;
        let model = &generator.context.model;
        let changed = model.with_engine(|engine| change(engine, generator.id, tokens));
        generator.recharge()?;
        Ok(changed?)
    }
}

impl generation::Host for Generators<'_> {}

impl HostGenerator for Generators<'_> {
    fn create(
        &mut self,
        context: Resource<ContextHandle>,
        sampler: Sampler,
        options: generation::Options,
    ) -> CallResult<Resource<GeneratorHandle>> {
        let sampler = core_sampler(&sampler)?;
        let context = self.table.context(&context)?;
        let draws = (sampler, &options.logit_mask[..]);
        let draft_model = self.draft_model(&context, &options.drafting, draws)?;
        let drafting = match options.drafting {
            Drafting::None => pie_core::Drafting::None,
            Drafting::NGram => pie_core::Drafting::NGram,
            Drafting::Model(_) => pie_core::Drafting::Host,
        };
        let chat = context.model.chat().clone();
        let stop_bytes = context.model.stop_bytes(options.stop.len());
        // Without a template there is no turn to cue and no token that ends one.
        let template_stop = if options.auto_flush {
            chat.stop_tokens().unwrap_or_default().to_vec()
        } else {
            Vec::new()
        };
        let mut constraints = Constraints::default();
        constraints.has_static_mask = !options.logit_mask.is_empty();
        let made = pie_core::GeneratorOptions {
            adapter: pie_core::Adapter::default(),
            sampler,
            seed: options.seed,
            max_tokens: options.max_tokens,
            stop: options.stop,
            template_stop,
            token_mask: options.logit_mask,
            drafting,
        };
        // Charged first, so that one that is refused leaves the context and its older generator as they were.
        let n_bytes = stop_bytes + made.n_bytes() as u64;
        let charge = self.record.account.charge(Purpose::Options, n_bytes)?;
        let id = context.model.with_engine(|engine| {
            let id = engine.new_generator(context.id, made)?;
            engine.ignore_eos(id, options.ignore_eos).map(|()| id)
        })?;
        let generator = Generator {
            context,
            id,
            charge: Mutex::new(charge),
            step: Mutex::new(None),
            has_own: AtomicBool::new(false),
            constraints: Mutex::new(constraints),
        };
        if let Some(drafts) = draft_model {
            let model = &generator.context.model;
            model.begin_drafting(id, drafts, &self.surroundings.foreground);
        }
        generator.recharge()?;
        // The cue is appended second, so that a generator that cannot be made leaves the context as it was.
        let needs_cue = options.auto_flush && lock(&generator.context.turns).needs_cue();
        if needs_cue {
            generator.context.add(|turns, at| chat.cue(turns, at))?;
        }
        Ok(self.table.push(GeneratorHandle(Arc::new(generator)))?)
    }

    fn set_max_tokens(&mut self, this: Resource<GeneratorHandle>, n: u32) -> CallResult<()> {
        self.on_generator(&this, |engine, id| engine.set_max_tokens(id, n))
    }

    fn set_stop(&mut self, this: Resource<GeneratorHandle>, tokens: Vec<u32>) -> CallResult<()> {
        self.change_stop(&this, &tokens, Engine::set_stop)
    }

    fn add_stop(&mut self, this: Resource<GeneratorHandle>, tokens: Vec<u32>) -> CallResult<()> {
        self.change_stop(&this, &tokens, Engine::add_stop)
    }

    fn ignore_eos(&mut self, this: Resource<GeneratorHandle>, ignore: bool) -> CallResult<()> {
        self.on_generator(&this, |engine, id| engine.ignore_eos(id, ignore))
    }

    fn set_adapter(
        &mut self,
        _this: Resource<GeneratorHandle>,
        adapter: Resource<AdapterHandle>,
    ) -> CallResult<()> {
        match *self.table.get(&adapter)? {}
    }

    fn set_zo_seed(&mut self, this: Resource<GeneratorHandle>, seed: i64) -> CallResult<()> {
        self.on_generator(&this, |engine, id| {
            engine.set_zo_seed(id, seed.cast_unsigned())
        })
    }

    fn set_horizon(&mut self, this: Resource<GeneratorHandle>, n: u32) -> CallResult<()> {
        self.on_generator(&this, |engine, id| engine.set_horizon(id, n))
    }

    fn probe_each_step(
        &mut self,
        this: Resource<GeneratorHandle>,
        index: u32,
        probe: Probe,
    ) -> CallResult<u32> {
        // The sampler of the generator is the slot before.
        let probe = core_probe(probe);
        let n_bytes = |engine: &Engine| engine.probe_bytes(&probe, true);
        self.attach(&this, n_bytes, |engine, id| {
            let place = engine.probe_each_step(id, index, probe.clone())?;
            Ok(place + 1)
        })
    }

    fn constrain(
        &mut self,
        this: Resource<GeneratorHandle>,
        matcher: Resource<MatcherHandle>,
    ) -> CallResult<()> {
        let matcher = self.table.get(&matcher)?.matcher.clone();
        let purpose = Purpose::Options;
        let charge = self
            .record
            .account
            .charge(purpose, matcher.n_bytes() as u64)?;
        self.on_generator(&this, |engine, id| engine.set_late_masks(id, true))?;
        lock(&self.table.get(&this)?.0.constraints).add(matcher, charge);
        Ok(())
    }

    fn ask_masks(&mut self, this: Resource<GeneratorHandle>, ask: bool) -> CallResult<()> {
        let generator = self.table.get(&this)?.0.clone();
        let mut constraints = lock(&generator.constraints);
        let late = ask || !constraints.is_empty();
        self.on_generator(&this, |engine, id| engine.set_late_masks(id, late))?;
        constraints.program_asks = ask;
        Ok(())
    }

    fn probe(
        &mut self,
        this: Resource<GeneratorHandle>,
        index: u32,
        probe: Probe,
    ) -> CallResult<u32> {
        let probe = core_probe(probe);
        self.table.get(&this)?.0.note_own();
        let n_bytes = |engine: &Engine| engine.probe_bytes(&probe, false);
        self.attach(&this, n_bytes, |engine, id| {
            let place = engine.probe(id, index, probe.clone())?;
            Ok(place + u32::from(!engine.is_cleared(id)?))
        })
    }

    fn clear_sampler(&mut self, this: Resource<GeneratorHandle>) -> CallResult<()> {
        self.on_generator(&this, |engine, id| engine.clear_sampler(id))
    }

    fn draft(
        &mut self,
        this: Resource<GeneratorHandle>,
        tokens: Vec<u32>,
        positions: Vec<u32>,
    ) -> CallResult<()> {
        self.table.get(&this)?.0.note_own();
        // A list that grows has room for four tokens at least.
        let n_bytes = (tokens.len() + 4) * size_of::<u32>();
        self.attach(
            &this,
            |_| n_bytes,
            |engine, id| engine.draft(id, &tokens, &positions),
        )
    }

    fn give_mask(&mut self, this: Resource<GeneratorHandle>, mask: Vec<u32>) -> CallResult<()> {
        let generator = &self.table.get(&this)?.0;
        let Some(request) = *lock(&generator.step) else {
            return Err(Error::new(
                ErrorCode::StepPending,
                "a mask is given and no step was executed; execute the step that it is for first",
            )
            .into());
        };
        let model = &generator.context.model;
        let mask = lock(&generator.constraints).with_program(mask, model.vocab_size())?;
        // Masks are long: they are read apart from the engine.
        let mask = TokenMask::new(&mask, model.vocab_size());
        Ok(model.with_engine(|engine| engine.give_step_mask(request, mask))?)
    }

    fn accept(
        &mut self,
        this: Resource<GeneratorHandle>,
        tokens: Vec<u32>,
    ) -> CallResult<Vec<u32>> {
        let generator = &self.table.get(&this)?.0;
        let kept = generator.context.accept(generator.id, &tokens)?;
        let mut constraints = lock(&generator.constraints);
        constraints.replace(&kept)?;
        if !constraints.is_empty() && constraints.is_terminated() {
            let model = &generator.context.model;
            model.with_engine(|engine| engine.end_by_constraint(generator.id))?;
        }
        Ok(kept)
    }

    fn next_step(&mut self, this: Resource<GeneratorHandle>) -> CallResult<Option<u32>> {
        let opened = self.on_generator(&this, Engine::next_step)?;
        self.table.get(&this)?.0.release_own()?;
        Ok(opened)
    }

    fn set_seed(&mut self, this: Resource<GeneratorHandle>, seed: u64) -> CallResult<()> {
        self.on_generator(&this, |engine, id| engine.set_seed(id, seed))
    }

    fn step(
        &mut self,
        this: Resource<GeneratorHandle>,
    ) -> wasmtime::Result<Resource<FutureOutput>> {
        self.advance(&this)
    }

    fn collect_tokens(
        &mut self,
        this: Resource<GeneratorHandle>,
    ) -> wasmtime::Result<Resource<FutureTokens>> {
        self.advance(&this)
    }

    fn collect_text(
        &mut self,
        this: Resource<GeneratorHandle>,
    ) -> wasmtime::Result<Resource<FutureText>> {
        self.advance(&this)
    }

    fn tokens_generated(&mut self, this: Resource<GeneratorHandle>) -> CallResult<u32> {
        self.on_generator(&this, |engine, id| engine.tokens_generated(id))
    }

    fn finish_reason(
        &mut self,
        this: Resource<GeneratorHandle>,
    ) -> CallResult<Option<generation::FinishReason>> {
        let reason = self.on_generator(&this, |engine, id| engine.finish_reason(id))?;
        Ok(reason.map(finish_reason))
    }

    fn drop(&mut self, this: Resource<GeneratorHandle>) -> wasmtime::Result<()> {
        self.table.delete(this)?;
        Ok(())
    }
}

host_future!(
    Generators<'_>,
    HostFutureOutput,
    FutureOutput,
    generation::Output
);
host_future!(Generators<'_>, HostFutureTokens, FutureTokens, Vec<u32>);
host_future!(Generators<'_>, HostFutureText, FutureText, String);

fn finish_reason(reason: pie_core::FinishReason) -> generation::FinishReason {
    match reason {
        pie_core::FinishReason::Stop => generation::FinishReason::Stop,
        pie_core::FinishReason::Length => generation::FinishReason::Length,
        pie_core::FinishReason::Constraint => generation::FinishReason::Constraint,
        pie_core::FinishReason::Closed => generation::FinishReason::Closed,
    }
}

/// Adds the interface to the linker.
pub(crate) fn add_to_linker(linker: &mut Linker<ProcessState>) -> wasmtime::Result<()> {
    generation::add_to_linker::<_, Generators<'static>>(linker, Generators::of)
}
