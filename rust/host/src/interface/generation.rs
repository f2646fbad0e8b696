//! `pie:core/generation`: generators.

use std::sync::Arc;

use pie_core::{Engine, ErrorCode, GeneratorId};
use pie_text::ChatDecoder;
use wasmtime::component::{Linker, Resource};
use wasmtime_wasi::p2::DynPollable;

use super::adapter::AdapterHandle;
use super::advancing::{Advance, FutureOutput, FutureText, FutureTokens, Wanted, finish_reason};
use super::bindings::pie::core::generation::{
    self, Drafting, HostFutureOutput, HostFutureText, HostFutureTokens, HostGenerator,
};
use super::bindings::pie::core::sampling::{Probe, Sampler};
use super::bindings::pie::core::types;
use super::context::ContextHandle;
use super::errors::CallResult;
use super::futures::host_future;
use super::grammar::MatcherHandle;
use super::sampling::{core_probe, core_sampler};
use super::view::view;
use crate::Error;
use crate::budget::Purpose;
use crate::futures::Future;
use crate::model::conversation::Context;
use crate::model::draft_model::DraftModel;
use crate::model::generator::Generator;
use crate::model::stopping::Stopping;
use crate::process::handles::HandleTable;
use crate::process::joined::Joined;
use crate::process::mistakes::Mistake;
use crate::process::record::ProcessRecord;
use crate::process::state::ProcessState;
use crate::process::surroundings::Surroundings;
use crate::sync::lock;

/// What stands behind a `generator` handle.
#[derive(Debug)]
pub struct GeneratorHandle(Arc<Generator>);

impl GeneratorHandle {
    /// A decoder of what it accepts from now on, which shows no stop text.
    pub(super) fn decoder(&self, hides_thoughts: bool, hides_calls: bool) -> ChatDecoder {
        self.0.decoder(hides_thoughts, hides_calls)
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
        Ok(heeded(generator, generator.with_engine(work))?)
    }

    /// Runs a generator, for what `W` makes of it.
    fn advance<W: Wanted>(
        &mut self,
        handle: &Resource<GeneratorHandle>,
    ) -> wasmtime::Result<Resource<Future<Advance<W>>>> {
        let generator = self.table.get(handle)?.0.clone();
        let record = self.record.clone();
        self.table
            .push_future(Advance::submit(generator, record, None))
    }

    /// The model that drafts for a generator on `context`, if one is to, by what it draws.
    ///
    /// # Errors
    /// `unknown-model`; `invalid-argument` where it has another vocabulary; those of a context of it.
    fn draft_model(
        &mut self,
        context: &Context,
        drafting: &Drafting,
        sampler: pie_core::Sampler,
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
        DraftModel::new(model, process, account, sampler).map(Some)
    }

    /// Changes what is wanted of the steps of a generator, which takes `n_bytes` more at most.
    fn attach<T>(
        &mut self,
        handle: &Resource<GeneratorHandle>,
        n_bytes: impl FnOnce(&Engine) -> usize,
        change: impl FnOnce(&mut Engine, GeneratorId) -> Result<T, Error>,
    ) -> CallResult<T> {
        let generator = &self.table.get(handle)?.0;
        let n_bytes = generator.with_engine(|engine, _| n_bytes(engine));
        Ok(heeded(generator, generator.change(n_bytes as u64, change))?)
    }

    /// Changes the stop tokens of a generator.
    fn change_stop(
        &mut self,
        handle: &Resource<GeneratorHandle>,
        tokens: Vec<u32>,
        change: impl FnOnce(&mut Engine, GeneratorId, &[u32]) -> Result<(), Error>,
    ) -> CallResult<()> {
        let generator = &self.table.get(handle)?.0;
        let model = &generator.context.model;
        let n_bytes = model.stop_bytes(tokens.len());
        let tokens = heeded(generator, model.stop_list(tokens))?;
        let changed = generator.change(n_bytes, |engine, id| change(engine, id, &tokens));
        Ok(heeded(generator, changed)?)
    }
}

/// What a call on a generator gave. Where it failed, the program that drops the generator has a reason for that.
fn heeded<T>(generator: &Generator, outcome: Result<T, Error>) -> Result<T, Error> {
    outcome.inspect_err(|_| generator.note_run())
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
        let draft_model = self.draft_model(&context, &options.drafting, sampler)?;
        let drafting = core_drafting(&options.drafting);
        let chat = context.model.chat().clone();
        let stop_bytes = context.model.stop_bytes(options.stop.len());
        // Without a template there is no turn to cue and no token that ends one.
        let template_stop = if options.auto_flush {
            chat.stop_tokens().unwrap_or_default().to_vec()
        } else {
            Vec::new()
        };
        let has_static_mask = !options.logit_mask.is_empty();
        let stop = context.model.stop_list(options.stop)?;
        let made = pie_core::GeneratorOptions {
            adapter: pie_core::Adapter::default(),
            sampler,
            seed: options.seed,
            max_tokens: options.max_tokens,
            stop,
            template_stop,
            token_mask: options.logit_mask,
            drafting,
        };
        // Charged and checked first: one that is refused leaves the context and its older generator as they were.
        let n_bytes = stop_bytes + made.n_bytes() as u64;
        let charge = self.record.account.charge(Purpose::Options, n_bytes)?;
        let stopping = Stopping::of(&chat, options.stop_texts, &self.record.account)?;
        let (model, threads) = (&context.model, &self.surroundings.foreground);
        let id = match draft_model {
            Some(drafts) => model.new_drafted_generator(context.id, made, drafts, threads)?,
            None => model.with_engine(|engine| engine.new_generator(context.id, made))?,
        };
        let generator = Generator::new(context, id, sampler, charge);
        generator.stop_by(stopping);
        generator.note_mask(has_static_mask);
        generator.with_engine(|engine, id| engine.ignore_eos(id, options.ignore_eos))?;
        generator.recharge()?;
        // The cue is appended second, so that a generator that cannot be made leaves the context as it was.
        let needs_cue = options.auto_flush && lock(&generator.context.turns).needs_cue();
        if needs_cue {
            if lock(&generator.context.turns).has_only_instructions() {
                self.record.warn(Mistake::OnlyInstructions);
            }
            generator.context.add(|turns, at| chat.cue(turns, at))?;
        }
        Ok(self.table.push(GeneratorHandle(Arc::new(generator)))?)
    }

    fn set_max_tokens(&mut self, this: Resource<GeneratorHandle>, n: u32) -> CallResult<()> {
        self.on_generator(&this, |engine, id| engine.set_max_tokens(id, n))
    }

    fn set_stop(&mut self, this: Resource<GeneratorHandle>, tokens: Vec<u32>) -> CallResult<()> {
        let has_texts = self.table.get(&this)?.0.has_set_stop_texts();
        self.change_stop(&this, tokens, |engine, id, tokens| {
            engine.set_stop(id, tokens)?;
            if has_texts {
                engine.keep_end_tokens(id)?;
            }
            Ok(())
        })
    }

    fn set_stop_texts(
        &mut self,
        this: Resource<GeneratorHandle>,
        texts: Vec<String>,
    ) -> CallResult<()> {
        let generator = &self.table.get(&this)?.0;
        Ok(generator.set_stop_texts(texts, &self.record.account)?)
    }

    fn add_stop_texts(
        &mut self,
        this: Resource<GeneratorHandle>,
        texts: Vec<String>,
    ) -> CallResult<()> {
        let generator = &self.table.get(&this)?.0;
        Ok(generator.add_stop_texts(texts, &self.record.account)?)
    }

    fn add_stop(&mut self, this: Resource<GeneratorHandle>, tokens: Vec<u32>) -> CallResult<()> {
        self.change_stop(&this, tokens, Engine::add_stop)
    }

    fn ignore_eos(&mut self, this: Resource<GeneratorHandle>, ignore: bool) -> CallResult<()> {
        self.on_generator(&this, |engine, id| engine.ignore_eos(id, ignore))
    }

    fn set_adapter(
        &mut self,
        this: Resource<GeneratorHandle>,
        adapter: Resource<AdapterHandle>,
    ) -> CallResult<()> {
        let context = self.table.get(&this)?.0.context.clone();
        let user = &self.record.username;
        let version = (self.table.get(&adapter)?).version(&context.model, user)?;
        let name = version.name;
        context.hold(version)?;
        self.on_generator(&this, |engine, id| {
            engine.set_adapter(id, name.id, name.version)
        })
    }

    fn set_zo_seed(&mut self, this: Resource<GeneratorHandle>, seed: i64) -> CallResult<()> {
        self.on_generator(&this, |engine, id| {
            engine.set_zo_seed(id, seed.cast_unsigned())
        })
    }

    fn set_horizon(&mut self, this: Resource<GeneratorHandle>, n: u32) -> CallResult<()> {
        self.on_generator(&this, |engine, id| engine.set_horizon(id, n))
    }

    fn rebid_each_step(&mut self, this: Resource<GeneratorHandle>, rebid: bool) -> CallResult<()> {
        self.on_generator(&this, |engine, id| engine.rebid_each_step(id, rebid))
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
        let generator = self.table.get(&this)?.0.clone();
        let MatcherHandle {
            matcher, compiled, ..
        } = self.table.get(&matcher)?;
        let constrained = generator.constrain(matcher, compiled, &self.record.account);
        Ok(heeded(&generator, constrained)?)
    }

    fn ask_masks(&mut self, this: Resource<GeneratorHandle>, ask: bool) -> CallResult<()> {
        Ok(self.table.get(&this)?.0.ask_masks(ask)?)
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
        Ok(self.table.get(&this)?.0.give_mask(mask)?)
    }

    fn accept(
        &mut self,
        this: Resource<GeneratorHandle>,
        tokens: Vec<u32>,
    ) -> CallResult<Vec<u32>> {
        Ok(self.table.get(&this)?.0.accept(&tokens)?)
    }

    fn next_step(&mut self, this: Resource<GeneratorHandle>) -> CallResult<Option<u32>> {
        let generator = &self.table.get(&this)?.0;
        generator.note_run();
        Ok(generator.open_step()?)
    }

    fn set_seed(&mut self, this: Resource<GeneratorHandle>, seed: u64) -> CallResult<()> {
        self.on_generator(&this, |engine, id| engine.set_seed(id, seed))
    }

    fn set_logit_mask(
        &mut self,
        this: Resource<GeneratorHandle>,
        mask: Vec<u32>,
    ) -> CallResult<()> {
        Ok(self.table.get(&this)?.0.set_mask(&mask)?)
    }

    fn set_drafting(
        &mut self,
        this: Resource<GeneratorHandle>,
        drafting: Drafting,
    ) -> CallResult<()> {
        let generator = self.table.get(&this)?.0.clone();
        let (context, sampler) = (&generator.context, generator.sampler);
        let drafts = self.draft_model(context, &drafting, sampler)?;
        let drafting = core_drafting(&drafting);
        // The mask may be kept as often as whoever drafts needs it.
        let n_bytes = generator.with_engine(|engine, id| engine.drafting_bytes(id, drafting))?;
        generator.charge_more(n_bytes as u64)?;
        let threads = &self.surroundings.foreground;
        let set = context
            .model
            .set_drafting(generator.id, drafting, drafts, threads);
        generator.recharge()?;
        Ok(set?)
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

    fn collect_document(
        &mut self,
        this: Resource<GeneratorHandle>,
        matcher: Resource<MatcherHandle>,
    ) -> wasmtime::Result<Resource<FutureText>> {
        let generator = self.table.get(&this)?.0.clone();
        let MatcherHandle {
            matcher, compiled, ..
        } = self.table.get(&matcher)?;
        let future = Advance::submit(generator, self.record.clone(), Some((matcher, compiled)));
        self.table.push_future(future)
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
        let GeneratorHandle(generator) = self.table.delete(this)?;
        if !generator.was_run() {
            self.record.note_unrun_generator();
        }
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

/// Who drafts, as the core has it: another model is whoever drives it.
const fn core_drafting(drafting: &Drafting) -> pie_core::Drafting {
    match drafting {
        Drafting::None => pie_core::Drafting::None,
        Drafting::NGram => pie_core::Drafting::NGram,
        Drafting::Model(_) => pie_core::Drafting::Host,
    }
}

/// Adds the interface to the linker.
pub(crate) fn add_to_linker(linker: &mut Linker<ProcessState>) -> wasmtime::Result<()> {
    generation::add_to_linker::<_, Generators<'static>>(linker, Generators::of)
}
