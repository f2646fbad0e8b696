//! Generators that run: what programs wait for, a step or all that is left, and what they get.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use pie_core::Submission;
use pie_text::grammar::Matcher;
use pie_text::limits::MAX_QUEUED_EVENTS;
use pie_text::{Chat, ChatDecoder, ChatEvent, StopWatch};
use tokio::sync::oneshot::{self, Receiver};

use super::bindings::pie::core::generation;
use super::bindings::pie::core::sampling::{Slot, Speculation};
use super::sampling::slot_of;
use crate::Error;
use crate::errors::text_error;
use crate::futures::{Future, Operation};
use crate::limits::Limits;
use crate::model::generator::{Collection, Generator};
use crate::model::held_grammars::HeldCompiled;
use crate::model::pass::Pass;
use crate::process::record::ProcessRecord;

/// A run of a generator that a program waits for, for what `W` makes of it.
#[derive(Debug)]
pub struct Advance<W> {
    generator: Arc<Generator>,
    record: Arc<ProcessRecord>,
    run: Run,
    /// What read for stop texts before it; none: there are none.
    watch: Option<StopWatch>,
    wanted: PhantomData<W>,
}

/// What is submitted to the core.
#[derive(Debug)]
enum Run {
    /// One pass: a step, or all that is left.
    Pass(Pass),
    /// Step by step to the end, since matchers walk what each accepts, or stop texts are looked for in it. The program
    /// sleeps meanwhile.
    Steps(Box<Steps>),
}

/// A run by steps.
#[derive(Debug)]
struct Steps {
    /// None: it did not begin, or was taken or given up.
    collection: Option<Collection>,
    /// None: the generation had ended.
    step: Option<Pass>,
    tokens: Vec<u32>,
    /// How it ended, once it has.
    ended: Option<Result<Option<pie_core::FinishReason>, Error>>,
}

/// What a program wants of a run.
pub trait Wanted: Send + 'static {
    /// What the program gets.
    type Answer;
    /// Whether one step is all.
    const IS_ONE_STEP: bool;

    /// Makes the answer of what the generator accepted, where `watch` has read for its stop texts before.
    ///
    /// # Errors
    /// Those of decoding.
    fn answer(
        chat: &Arc<Chat>,
        watch: Option<StopWatch>,
        output: pie_core::Output,
    ) -> Result<Self::Answer, Error>;
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

    fn answer(
        _chat: &Arc<Chat>,
        _watch: Option<StopWatch>,
        output: pie_core::Output,
    ) -> Result<Self::Answer, Error> {
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

    fn answer(
        _chat: &Arc<Chat>,
        _watch: Option<StopWatch>,
        output: pie_core::Output,
    ) -> Result<Self::Answer, Error> {
        Ok(output.tokens)
    }
}

impl Wanted for Text {
    type Answer = String;
    const IS_ONE_STEP: bool = false;

    fn answer(
        chat: &Arc<Chat>,
        watch: Option<StopWatch>,
        output: pie_core::Output,
    ) -> Result<Self::Answer, Error> {
        let mut decoder = match watch {
            Some(watch) => ChatDecoder::stopping(watch, false, false),
            None => ChatDecoder::new(chat.clone()),
        };
        let mut text = String::new();
        let ended = output.finish.map(finish_reason);
        let tokens = if decoder.ends_by_text(&output.tokens) {
            output.tokens.as_slice()
        } else {
            shown_tokens(&output.tokens, ended)
        };
        // In parts, since each token may be an event and the decoder's queue is bounded.
        for part in tokens.chunks(MAX_QUEUED_EVENTS / 4) {
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
    /// Begins a run, where it is to the end under this matcher too.
    pub(super) fn submit(
        generator: Arc<Generator>,
        record: Arc<ProcessRecord>,
        document: Option<(&Matcher, &Arc<HeldCompiled>)>,
    ) -> Future<Self> {
        generator.note_run();
        // One step has no text to make.
        let watch = if W::IS_ONE_STEP {
            None
        } else {
            generator.stop_watch()
        };
        let (run, receiver) = if W::IS_ONE_STEP {
            let (pass, receiver) = generator.submit_step();
            (Run::Pass(pass), receiver)
        } else if document.is_some() || generator.runs_by_steps() {
            let begun = generator.begin_collection(document, &record.account);
            let (steps, receiver) = Steps::begin(&generator, begun);
            (Run::Steps(Box::new(steps)), receiver)
        } else {
            let submission = Submission::Run(generator.id);
            let (pass, receiver) = Pass::submit(&generator.context.model, submission);
            (Run::Pass(pass), receiver)
        };
        Future::new(
            Self {
                generator,
                record,
                run,
                watch,
                wanted: PhantomData,
            },
            receiver,
        )
    }
}

/// Submits the next step of a generator, where there is one.
fn submit_next(generator: &Generator) -> (Option<Pass>, Receiver<Result<(), Error>>) {
    let opened = match generator.open_step() {
        Ok(Some(_)) => {
            let (pass, receiver) = generator.submit_step();
            return (Some(pass), receiver);
        }
        Ok(None) => Ok(()),
        Err(error) => Err(error),
    };
    (None, told(opened))
}

/// Something that has arrived.
fn told(arrived: Result<(), Error>) -> Receiver<Result<(), Error>> {
    let (told, receiver) = oneshot::channel();
    // It is read below: who waits for it has the other end.
    drop(told.send(arrived));
    receiver
}

impl Steps {
    fn begin(
        generator: &Generator,
        begun: Result<Collection, Error>,
    ) -> (Self, Receiver<Result<(), Error>>) {
        let (collection, (step, receiver)) = match begun {
            Ok(collection) => (Some(collection), submit_next(generator)),
            Err(error) => (None, (None, told(Err(error)))),
        };
        let steps = Self {
            collection,
            step,
            tokens: Vec::new(),
            ended: None,
        };
        (steps, receiver)
    }

    /// A step arrived, or why there is none. Returns what comes next; none at the end.
    fn go_on(
        &mut self,
        arrived: &Result<(), Error>,
        generator: &Generator,
        record: &ProcessRecord,
    ) -> Option<Receiver<Result<(), Error>>> {
        let ended = match (arrived, self.step.take()) {
            (Err(error), step) => {
                self.step = step;
                Err(error.clone())
            }
            (Ok(()), None) => generator.with_engine(|engine, id| engine.finish_reason_within(id)),
            (Ok(()), Some(pass)) => match generator.take_step(&pass) {
                Ok(output) => {
                    self.tokens.extend(output.tokens);
                    if output.finish.is_none() && is_within_limits(record) {
                        let (next, receiver) = submit_next(generator);
                        self.step = next;
                        return Some(receiver);
                    }
                    Ok(output.finish)
                }
                Err(error) => Err(error),
            },
        };
        match &ended {
            Ok(_) => generator.end_collection(),
            Err(_) => self.give_up(generator),
        }
        self.ended = Some(ended);
        None
    }

    /// The program takes the result.
    fn take(&mut self, generator: &Generator) -> Result<pie_core::Output, Error> {
        let finish = self.ended.take().unwrap_or(Ok(None))?;
        if self.collection.take().is_some() {
            generator.keep_collection()?;
        }
        Ok(pie_core::Output {
            finish,
            tokens: std::mem::take(&mut self.tokens),
            readings: Vec::new(),
            speculation: pie_core::Speculation::default(),
        })
    }

    fn give_up(&mut self, generator: &Generator) {
        if let Some(pass) = self.step.take() {
            generator.cancel(&pass);
        }
        if let Some(collection) = self.collection.take() {
            generator.drop_collection(collection);
        }
    }
}

/// Checks the limits of a process whose step was taken while its program slept, where no tick meets it. One that is
/// beyond them ends.
fn is_within_limits(record: &ProcessRecord) -> bool {
    let checked = record.check_slice();
    checked.map_err(|error| record.stop(error)).is_ok()
}

impl<W: Wanted> Operation for Advance<W> {
    type Raw = ();
    type Answer = W::Answer;

    fn go_on(&mut self, arrived: &Result<(), Error>) -> Option<Receiver<Result<(), Error>>> {
        match &mut self.run {
            Run::Pass(_) => None,
            Run::Steps(steps) => steps.go_on(arrived, &self.generator, &self.record),
        }
    }

    fn finish(&mut self, (): ()) -> Result<W::Answer, Error> {
        let context = &self.generator.context;
        let output = match &mut self.run {
            Run::Pass(pass) if W::IS_ONE_STEP => self.generator.take_step(pass)?,
            Run::Pass(pass) => context.take_generated(pass)?,
            Run::Steps(steps) => steps.take(&self.generator)?,
        };
        W::answer(context.model.chat(), self.watch.take(), output)
    }

    fn abandon(&mut self, _answer: Option<Result<(), Error>>) {
        match &mut self.run {
            Run::Pass(pass) => self.generator.cancel(pass),
            Run::Steps(steps) => steps.give_up(&self.generator),
        }
    }

    fn limit(&self, limits: &Limits) -> Option<Duration> {
        // A run to the end has no limit of time: it takes as long as its tokens.
        limits.pass.filter(|_| W::IS_ONE_STEP)
    }
}

/// Why a generation ended, as programs get it.
pub(super) fn finish_reason(reason: pie_core::FinishReason) -> generation::FinishReason {
    match reason {
        pie_core::FinishReason::Stop => generation::FinishReason::Stop,
        pie_core::FinishReason::Length => generation::FinishReason::Length,
        pie_core::FinishReason::Constraint => generation::FinishReason::Constraint,
        pie_core::FinishReason::Closed => generation::FinishReason::Closed,
    }
}

#[cfg(test)]
mod tests {
    use pie_core::ErrorCode;
    use wasmtime_wasi::p2::Pollable;

    use super::*;
    use crate::budget::Budget;
    use crate::model::grammars::OwnedSource;
    use crate::model::testing::Driven;
    use crate::process::testing;

    #[tokio::test]
    async fn a_run_under_a_grammar_meets_the_limit_of_processor_time_at_its_next_step() {
        let driven = Driven::new(None);
        let account = Budget::new(1 << 34, Some(1 << 34)).account("ada");
        let limits = Limits {
            cpu: Some(Duration::from_nanos(1)),
            ..Limits::default()
        };
        let record = testing::record(1, limits, false);
        let context = driven.context(&account, 20);
        let generator = Arc::new(driven.generator(&context, &account));
        let endless = OwnedSource::Regex("[a-z]*".to_owned());
        driven.constrain(&generator, &endless, &account);
        let mut future = Advance::<Tokens>::submit(generator.clone(), record.clone(), None);
        // The program sleeps. Its process ends after one step, long before the context is full.
        tokio::select! {
            () = future.ready() => {}
            error = record.stopped() => assert_eq!(error.code, ErrorCode::LimitCpu),
        }
        assert_eq!(record.stopped().await.code, ErrorCode::LimitCpu);
        let seen = |generator: &Generator| {
            generator.with_engine(|engine, id| {
                let length = engine.seq_len_within(generator.context.id).unwrap();
                (engine.tokens_generated(id).unwrap(), length)
            })
        };
        // What it has accepted counts once its result is taken.
        assert_eq!(seen(&generator), (0, 21));
        drop(future);
        assert_eq!(seen(&generator), (0, 0));
    }
}
