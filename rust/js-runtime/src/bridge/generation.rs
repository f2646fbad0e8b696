//! Generators.

use std::rc::Rc;

use rquickjs::class::Trace;
use rquickjs::convert::List;
use rquickjs::{Class, Ctx, Function, IntoJs, JsLifetime, Object, Result, TypedArray, Value};

use super::context::ContextHandle;
use super::error::{EngineError, check, throw};
use super::values;
use crate::bindings::pie::core::context::Context;
use crate::bindings::pie::core::generation::{
    Event, FinishReason, FutureEvent, Generator, Method, MinP, Multinomial, Options, Sampler, TopK,
    TopKTopP, TopP, Until,
};
use crate::bindings::wasi::io::poll::Pollable;
use crate::event_loop::{self, Awaited, Kept, WaitHandle};

/// A generator.
#[derive(Trace, JsLifetime)]
#[rquickjs::class]
pub(super) struct GeneratorHandle {
    #[qjs(skip_trace)]
    held: Rc<Held>,
}

/// A generator with the context that it continues, which lives as long: a program may keep nothing but the generator, or nothing but a
/// promise of it. Dropped in this order.
struct Held {
    generator: Generator,
    _context: Rc<Context>,
}

pub(super) fn create<'js>(
    ctx: Ctx<'js>,
    context: Class<'js, ContextHandle>,
    sampler: Object<'js>,
    options: Object<'js>,
) -> Result<GeneratorHandle> {
    let options = Options {
        max_tokens: options.get("maxTokens")?,
        stop: values::tokens(&ctx, &options.get("stop")?)?,
        seed: values::seed(options.get("seed")?)?,
        auto_flush: options.get("autoFlush")?,
    };
    let context = context.borrow().context.clone();
    let generator = check(
        &ctx,
        Generator::create(&context, read_sampler(&ctx, &sampler)?, &options),
    )?;
    Ok(GeneratorHandle {
        held: Rc::new(Held {
            generator,
            _context: context,
        }),
    })
}

/// Reads what the SDK's `Sampler` holds: a kind and the parameters of that kind.
fn read_sampler<'js>(ctx: &Ctx<'js>, sampler: &Object<'js>) -> Result<Sampler> {
    let single = |name: &str| sampler.get::<_, f64>(name).map(|value| value as f32);
    let whole = |name: &str| sampler.get::<_, u32>(name);
    let kind: String = sampler.get("kind")?;
    let method = match kind.as_str() {
        "argmax" => Method::Argmax,
        "top-p" => Method::TopP(TopP {
            temperature: single("temperature")?,
            p: single("p")?,
        }),
        "top-k" => Method::TopK(TopK {
            temperature: single("temperature")?,
            k: whole("k")?,
        }),
        "min-p" => Method::MinP(MinP {
            temperature: single("temperature")?,
            p: single("p")?,
        }),
        "top-k-top-p" => Method::TopKTopP(TopKTopP {
            temperature: single("temperature")?,
            k: whole("k")?,
            p: single("p")?,
        }),
        "multinomial" => Method::Multinomial(Multinomial {
            temperature: single("temperature")?,
            draws: whole("draws")?,
        }),
        other => {
            return Err(throw(
                ctx,
                "invalid-sampler",
                format!("'{other}' is no kind of sampler"),
            ));
        }
    };
    Ok(Sampler {
        method,
        seed: values::seed(sampler.get("seed")?)?,
    })
}

#[rquickjs::methods(rename_all = "camelCase")]
impl GeneratorHandle {
    fn set_max_tokens(&self, ctx: Ctx<'_>, n_tokens: u32) -> Result<()> {
        check(&ctx, self.held.generator.set_max_tokens(n_tokens))
    }

    fn set_stop<'js>(&self, ctx: Ctx<'js>, tokens: TypedArray<'js, u32>) -> Result<()> {
        check(
            &ctx,
            self.held
                .generator
                .set_stop(&values::tokens(&ctx, &tokens)?),
        )
    }

    fn add_stop<'js>(&self, ctx: Ctx<'js>, tokens: TypedArray<'js, u32>) -> Result<()> {
        check(
            &ctx,
            self.held
                .generator
                .add_stop(&values::tokens(&ctx, &tokens)?),
        )
    }

    fn ignore_eos(&self, ctx: Ctx<'_>, ignore: bool) -> Result<()> {
        check(&ctx, self.held.generator.ignore_eos(ignore))
    }

    fn next_step(&self, ctx: Ctx<'_>) -> Result<Option<u32>> {
        check(&ctx, self.held.generator.next_step())
    }

    /// `until` is `step`, `tokens` or `text`; the answer is tokens with the reason to finish, tokens, or text.
    fn advance<'js>(
        &self,
        ctx: Ctx<'js>,
        until: String,
        settle: Function<'js>,
    ) -> Result<WaitHandle> {
        let until = match until.as_str() {
            "step" => Until::Step,
            "tokens" => Until::Tokens,
            "text" => Until::Text,
            other => {
                return Err(throw(
                    &ctx,
                    "invalid-argument",
                    format!("a generator cannot run until '{other}'"),
                ));
            }
        };
        let future = Box::new(Kept::new(
            self.held.generator.advance(until),
            self.held.clone(),
        ));
        event_loop::current(&ctx, |event_loop| event_loop.wait(&ctx, future, settle))
    }

    fn tokens_generated(&self, ctx: Ctx<'_>) -> Result<u32> {
        check(&ctx, self.held.generator.tokens_generated())
    }

    fn finish_reason(&self, ctx: Ctx<'_>) -> Result<Option<&'static str>> {
        let reason = check(&ctx, self.held.generator.finish_reason())?;
        Ok(reason.map(reason_name))
    }
}

fn reason_name(reason: FinishReason) -> &'static str {
    match reason {
        FinishReason::Stop => "stop",
        FinishReason::Length => "length",
        FinishReason::Constraint => "constraint",
        FinishReason::Closed => "closed",
    }
}

impl Awaited for FutureEvent {
    fn pollable(&self) -> Pollable {
        FutureEvent::pollable(self)
    }

    fn take<'js>(
        &self,
        ctx: &Ctx<'js>,
    ) -> Option<Result<std::result::Result<Value<'js>, EngineError>>> {
        let event = match self.get()? {
            Ok(event) => event,
            Err(error) => return Some(Ok(Err(error))),
        };
        let value = match event {
            Event::Step(output) => values::token_array(ctx, output.tokens)
                .and_then(|tokens| List((tokens, output.finish.map(reason_name))).into_js(ctx)),
            Event::Tokens(tokens) => values::token_array(ctx, tokens).map(TypedArray::into_value),
            Event::Text(text) => text.into_js(ctx),
        };
        Some(value.map(Ok))
    }
}
