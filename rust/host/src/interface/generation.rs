//! `pie:core/generation`: generators.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use pie_core::{Answer, GeneratorId, Submission};
use pie_text::limits::MAX_QUEUED_EVENTS;
use pie_text::{ChatDecoder, ChatEvent};
use wasmtime::component::{Linker, Resource};
use wasmtime_wasi::p2::DynPollable;

use super::bindings::pie::core::generation::{
    self, Event, HostFutureEvent, HostGenerator, Method, Until,
};
use super::bindings::pie::core::types;
use super::context::ContextHandle;
use super::errors::CallResult;
use super::view::view;
use crate::Error;
use crate::budget::{Charge, Purpose};
use crate::errors::text_error;
use crate::futures::{Future, Source};
use crate::limits::Limits;
use crate::model::conversation::Context;
use crate::model::pass::Pass;
use crate::process::handles::HandleTable;
use crate::process::record::Record;
use crate::process::state::ProcessState;
use crate::sync::lock;

/// What stands behind a `generator` handle.
#[derive(Debug)]
pub struct GeneratorHandle(Arc<Generator>);

#[derive(Debug)]
struct Generator {
    context: Arc<Context>,
    id: GeneratorId,
    /// For its stop tokens.
    charge: Mutex<Charge>,
}

impl Generator {
    /// Charges it with the stop tokens that it has.
    ///
    /// # Errors
    /// `limit-engine-memory`, `generator-retired`.
    fn recharge(&self) -> Result<(), Error> {
        let model = &self.context.model;
        let n_bytes = model.with_engine(|engine| engine.stop_bytes(self.id))?;
        lock(&self.charge).resize(n_bytes as u64)
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

/// A run of a generator that a program waits for.
#[derive(Debug)]
pub struct Advance {
    generator: Arc<Generator>,
    pass: Pass,
    until: Until,
}

/// The future of [`Advance`].
pub type FutureEvent = Future<Advance>;

impl Advance {
    fn submit(generator: Arc<Generator>, until: Until) -> FutureEvent {
        let submission = match until {
            Until::Step => Submission::Step(generator.id),
            Until::Tokens | Until::Text => Submission::Run(generator.id),
        };
        let (pass, receiver) = Pass::submit(&generator.context.model, submission);
        Future::new(
            Self {
                generator,
                pass,
                until,
            },
            receiver,
        )
    }

    /// What the chat decoder shows of tokens that a generator accepted.
    fn text(&self, output: &pie_core::Output) -> Result<String, Error> {
        // A stop token ends the text and is never shown, also where the decoder would have a text for it.
        let shown = match (output.finish, output.tokens.split_last()) {
            (Some(pie_core::FinishReason::Stop), Some((_, before))) => before,
            _ => &output.tokens,
        };
        let mut decoder = ChatDecoder::new(self.generator.context.model.chat().clone());
        let mut text = String::new();
        // In parts, since each token may be an event and the decoder's queue is bounded.
        for part in shown.chunks(MAX_QUEUED_EVENTS / 4) {
            let mut event = decoder.feed(part).map_err(text_error)?;
            while event != ChatEvent::Idle {
                if let ChatEvent::Done(turn) = event {
                    text.push_str(&turn);
                }
                event = decoder.feed(&[]).map_err(text_error)?;
            }
        }
        text.push_str(&decoder.finish());
        Ok(text)
    }
}

impl Source for Advance {
    type Raw = ();
    type Answer = Event;

    fn finish(&mut self, (): ()) -> Result<Event, Error> {
        let context = &self.generator.context;
        let mut turns = lock(&context.turns);
        let Answer::Generated(output) = self.pass.take()? else {
            return Err(Error::internal("a generation was answered as another pass"));
        };
        // What the program appended meanwhile lies behind the kept tokens.
        let seq_len = context.seq_len()?;
        turns.on_generated(
            u32::try_from(output.tokens.len()).unwrap_or(u32::MAX),
            seq_len,
        );
        drop(turns);
        context.charge_generated(output.tokens.len(), seq_len)?;
        Ok(match self.until {
            Until::Step => Event::Step(generation::Output {
                tokens: output.tokens,
                finish: output.finish.map(finish_reason),
            }),
            Until::Tokens => Event::Tokens(output.tokens),
            Until::Text => Event::Text(self.text(&output)?),
        })
    }

    fn abandon(&mut self, _answer: Option<Result<(), Error>>) {
        self.pass.cancel();
    }

    fn limit(&self, limits: &Limits) -> Option<Duration> {
        // A run to the end takes as long as it is.
        limits.pass.filter(|_| self.until == Until::Step)
    }
}

view! {
    /// Generators, and who pays for their options.
    Generators { table: HandleTable, record: Arc<Record> }
}

impl Generators<'_> {
    /// Runs `work` on the core and a generator of it.
    fn on_generator<T>(
        &mut self,
        handle: &Resource<GeneratorHandle>,
        work: impl FnOnce(&mut pie_core::Engine, GeneratorId) -> Result<T, Error>,
    ) -> CallResult<T> {
        let generator = &self.table.get(handle)?.0;
        Ok(generator
            .context
            .model
            .with_engine(|engine| work(engine, generator.id))?)
    }
}

impl Generators<'_> {
    /// Changes the stop tokens of a generator, charged before and after.
    fn change_stop(
        &mut self,
        handle: &Resource<GeneratorHandle>,
        tokens: &[u32],
        change: impl FnOnce(&mut pie_core::Engine, GeneratorId, &[u32]) -> Result<(), Error>,
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
        sampler: generation::Sampler,
        options: generation::Options,
    ) -> CallResult<Resource<GeneratorHandle>> {
        let context = self.table.context(&context)?;
        let chat = context.model.chat().clone();
        let stop_bytes = context.model.stop_bytes(options.stop.len());
        let charge = self.record.account.charge(Purpose::Options, stop_bytes)?;
        // Without a template there is no turn to cue and no token that ends one.
        let template_stop = if options.auto_flush {
            chat.stop_tokens().unwrap_or_default().to_vec()
        } else {
            Vec::new()
        };
        let made = pie_core::GeneratorOptions {
            adapter: pie_core::Adapter::default(),
            sampler: core_sampler(&sampler),
            seed: options.seed,
            max_tokens: options.max_tokens,
            stop: options.stop,
            template_stop,
        };
        let id = context
            .model
            .with_engine(|engine| engine.new_generator(context.id, made))?;
        let generator = Generator {
            context,
            id,
            charge: Mutex::new(charge),
        };
        generator.recharge()?;
        // The cue comes second: a generator that cannot be made leaves the context as it was.
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
        self.change_stop(&this, &tokens, pie_core::Engine::set_stop)
    }

    fn add_stop(&mut self, this: Resource<GeneratorHandle>, tokens: Vec<u32>) -> CallResult<()> {
        self.change_stop(&this, &tokens, pie_core::Engine::add_stop)
    }

    fn ignore_eos(&mut self, this: Resource<GeneratorHandle>, ignore: bool) -> CallResult<()> {
        self.on_generator(&this, |engine, id| engine.ignore_eos(id, ignore))
    }

    fn next_step(&mut self, this: Resource<GeneratorHandle>) -> CallResult<Option<u32>> {
        self.on_generator(&this, |engine, id| engine.next_step(id))
    }

    fn advance(
        &mut self,
        this: Resource<GeneratorHandle>,
        until: Until,
    ) -> wasmtime::Result<Resource<FutureEvent>> {
        let generator = self.table.get(&this)?.0.clone();
        self.table.push_future(Advance::submit(generator, until))
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

impl HostFutureEvent for Generators<'_> {
    fn pollable(&mut self, this: Resource<FutureEvent>) -> wasmtime::Result<Resource<DynPollable>> {
        self.table.future_pollable(this)
    }

    fn get(
        &mut self,
        this: Resource<FutureEvent>,
    ) -> wasmtime::Result<Option<Result<Event, types::Error>>> {
        self.table.future_get(&this)
    }

    fn drop(&mut self, this: Resource<FutureEvent>) -> wasmtime::Result<()> {
        self.table.future_drop(this)
    }
}

fn core_sampler(sampler: &generation::Sampler) -> pie_core::Sampler {
    let method = match sampler.method {
        Method::Argmax => pie_core::Method::Argmax,
        Method::TopP(top_p) => pie_core::Method::TopP {
            temperature: top_p.temperature,
            p: top_p.p,
        },
        Method::TopK(top_k) => pie_core::Method::TopK {
            temperature: top_k.temperature,
            k: top_k.k,
        },
        Method::MinP(min_p) => pie_core::Method::MinP {
            temperature: min_p.temperature,
            p: min_p.p,
        },
        Method::TopKTopP(both) => pie_core::Method::TopKTopP {
            temperature: both.temperature,
            k: both.k,
            p: both.p,
        },
        Method::Multinomial(free) => pie_core::Method::Multinomial {
            temperature: free.temperature,
            draws: free.draws,
        },
    };
    pie_core::Sampler {
        method,
        seed: sampler.seed,
    }
}

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
