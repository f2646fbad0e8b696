//! Contexts, with the chat turns that are written into them.

use std::rc::Rc;

use rquickjs::class::Trace;
use rquickjs::{Class, Ctx, Function, JsLifetime, Result, TypedArray, Value};

use super::error::{EngineError, check};
use super::model::ModelHandle;
use super::{chat, values};
use crate::bindings::pie::core::context::Context;
use crate::bindings::pie::core::futures::FutureUnit;
use crate::bindings::pie::instruct::chat as turns;
use crate::bindings::wasi::io::poll::Pollable;
use crate::event_loop::{self, Awaited, Kept, WaitHandle};

/// A context.
#[derive(Trace, JsLifetime)]
#[rquickjs::class]
pub(super) struct ContextHandle {
    #[qjs(skip_trace)]
    pub(super) context: Rc<Context>,
}

pub(super) fn create<'js>(ctx: Ctx<'js>, model: Class<'js, ModelHandle>) -> Result<ContextHandle> {
    let context = check(&ctx, Context::create(&model.borrow().model))?;
    Ok(ContextHandle {
        context: Rc::new(context),
    })
}

/// A context of a snapshot, which goes where it is taken; undefined where there is none of that name.
pub(super) fn open<'js>(
    ctx: Ctx<'js>,
    model: Class<'js, ModelHandle>,
    name: String,
    take: bool,
) -> Result<Option<ContextHandle>> {
    let model = &model.borrow().model;
    let opened = if take {
        Context::take(model, &name)
    } else {
        Context::open(model, &name)
    };
    if matches!(&opened, Err(error) if error.code == "snapshot-missing") {
        return Ok(None);
    }
    let context = Rc::new(check(&ctx, opened)?);
    Ok(Some(ContextHandle { context }))
}

pub(super) fn delete<'js>(
    ctx: Ctx<'js>,
    model: Class<'js, ModelHandle>,
    name: String,
) -> Result<()> {
    check(&ctx, Context::delete(&model.borrow().model, &name))
}

pub(super) fn names<'js>(ctx: Ctx<'js>, model: Class<'js, ModelHandle>) -> Result<Vec<String>> {
    check(&ctx, Context::snapshots(&model.borrow().model))
}

#[rquickjs::methods(rename_all = "camelCase")]
impl ContextHandle {
    fn fork(&self, ctx: Ctx<'_>) -> Result<ContextHandle> {
        let context = check(&ctx, self.context.fork())?;
        Ok(ContextHandle {
            context: Rc::new(context),
        })
    }

    fn save(&self, ctx: Ctx<'_>, name: String) -> Result<()> {
        check(&ctx, self.context.save(&name))
    }

    fn snapshot(&self, ctx: Ctx<'_>) -> Result<String> {
        check(&ctx, self.context.snapshot())
    }

    fn suspend(&self, ctx: Ctx<'_>) -> Result<()> {
        check(&ctx, self.context.suspend())
    }

    fn release(&self) {
        self.context.release();
    }

    fn append<'js>(&self, ctx: Ctx<'js>, tokens: TypedArray<'js, u32>) -> Result<()> {
        check(&ctx, self.context.append(&values::tokens(&ctx, &tokens)?))
    }

    fn append_text(&self, ctx: Ctx<'_>, text: String) -> Result<()> {
        check(&ctx, self.context.append_text(&text))
    }

    fn fill(&self, ctx: Ctx<'_>, role: String, text: String) -> Result<()> {
        check(
            &ctx,
            turns::fill(&self.context, chat::role(&ctx, &role)?, &text),
        )
    }

    fn cue(&self, ctx: Ctx<'_>) -> Result<()> {
        check(&ctx, turns::cue(&self.context))
    }

    fn seal(&self, ctx: Ctx<'_>) -> Result<()> {
        check(&ctx, turns::seal(&self.context))
    }

    fn flush<'js>(&self, ctx: Ctx<'js>, settle: Function<'js>) -> Result<WaitHandle> {
        let future = Box::new(Kept::new(self.context.flush(), self.context.clone()));
        event_loop::current(&ctx, |event_loop| event_loop.wait(&ctx, future, settle))
    }

    fn truncate(&self, ctx: Ctx<'_>, n_tokens: u32) -> Result<()> {
        check(&ctx, self.context.truncate(n_tokens))
    }

    fn seq_len(&self, ctx: Ctx<'_>) -> Result<u32> {
        check(&ctx, self.context.seq_len())
    }

    fn cached_tokens(&self, ctx: Ctx<'_>) -> Result<u32> {
        check(&ctx, self.context.cached_tokens())
    }

    fn page_size(&self) -> u32 {
        self.context.page_size()
    }

    fn buffer<'js>(&self, ctx: Ctx<'js>) -> Result<TypedArray<'js, u32>> {
        let tokens = check(&ctx, self.context.buffer())?;
        values::token_array(&ctx, tokens)
    }
}

impl Awaited for FutureUnit {
    fn pollable(&self) -> Pollable {
        FutureUnit::pollable(self)
    }

    fn take<'js>(
        &self,
        ctx: &Ctx<'js>,
    ) -> Option<Result<std::result::Result<Value<'js>, EngineError>>> {
        self.get()
            .map(|answer| Ok(answer.map(|()| Value::new_undefined(ctx.clone()))))
    }
}
