//! Generators that run: what programs wait for, a step or all that is left, and what they get.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use pie_core::Submission;
use pie_text::limits::MAX_QUEUED_EVENTS;
use pie_text::{Chat, ChatDecoder, ChatEvent};

use super::bindings::pie::core::generation;
use super::bindings::pie::core::sampling::{Slot, Speculation};
use super::sampling::slot_of;
use crate::Error;
use crate::errors::text_error;
use crate::futures::{Future, Operation};
use crate::limits::Limits;
use crate::model::generator::Generator;
use crate::model::pass::Pass;

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
    pub(super) fn submit(generator: Arc<Generator>) -> Future<Self> {
        let (pass, receiver) = if W::IS_ONE_STEP {
            generator.submit_step()
        } else {
            Pass::submit(&generator.context.model, Submission::Run(generator.id))
        };
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
        let output = if W::IS_ONE_STEP {
            self.generator.take_step(&self.pass)?
        } else {
            context.take_generated(&self.pass)?
        };
        W::answer(context.model.chat(), output)
    }

    fn abandon(&mut self, _answer: Option<Result<(), Error>>) {
        self.generator.cancel(&self.pass);
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
