//! Chat turns as tokens, and the decoder of what the model says.

use rquickjs::class::Trace;
use rquickjs::{Class, Ctx, IntoJs, JsLifetime, Object, Result, TypedArray};

use super::error::{check, throw};
use super::model::ModelHandle;
use super::values;
use crate::bindings::pie::instruct::chat::{self, Decoder, Event, Role};

/// The role of that name.
pub(super) fn role(ctx: &Ctx<'_>, name: &str) -> Result<Role> {
    match name {
        "system" => Ok(Role::System),
        "user" => Ok(Role::User),
        "assistant" => Ok(Role::Assistant),
        other => Err(throw(
            ctx,
            "invalid-argument",
            format!("'{other}' is no role; the roles are system, user, assistant"),
        )),
    }
}

pub(super) fn message_tokens<'js>(
    ctx: Ctx<'js>,
    model: Class<'js, ModelHandle>,
    role_name: String,
    text: String,
) -> Result<TypedArray<'js, u32>> {
    let role = role(&ctx, &role_name)?;
    values::token_array(
        &ctx,
        check(
            &ctx,
            chat::message_tokens(&model.borrow().model, role, &text),
        )?,
    )
}

pub(super) fn cue_tokens<'js>(
    ctx: Ctx<'js>,
    model: Class<'js, ModelHandle>,
) -> Result<TypedArray<'js, u32>> {
    values::token_array(&ctx, check(&ctx, chat::cue_tokens(&model.borrow().model))?)
}

pub(super) fn seal_tokens<'js>(
    ctx: Ctx<'js>,
    model: Class<'js, ModelHandle>,
) -> Result<TypedArray<'js, u32>> {
    values::token_array(&ctx, check(&ctx, chat::seal_tokens(&model.borrow().model))?)
}

pub(super) fn stop_tokens<'js>(
    ctx: Ctx<'js>,
    model: Class<'js, ModelHandle>,
) -> Result<TypedArray<'js, u32>> {
    values::token_array(&ctx, check(&ctx, chat::stop_tokens(&model.borrow().model))?)
}

/// A decoder.
#[derive(Trace, JsLifetime)]
#[rquickjs::class]
pub(super) struct DecoderHandle {
    #[qjs(skip_trace)]
    decoder: Decoder,
}

pub(super) fn create_decoder<'js>(model: Class<'js, ModelHandle>) -> DecoderHandle {
    DecoderHandle {
        decoder: Decoder::create(&model.borrow().model),
    }
}

#[rquickjs::methods(rename_all = "camelCase")]
impl DecoderHandle {
    fn feed<'js>(&self, ctx: Ctx<'js>, tokens: TypedArray<'js, u32>) -> Result<Object<'js>> {
        match check(&ctx, self.decoder.feed(&values::tokens(&ctx, &tokens)?))? {
            Event::Idle => values::event(&ctx, "idle", None),
            Event::Delta(text) => values::event(&ctx, "delta", Some(("text", text.into_js(&ctx)?))),
            Event::Done(text) => values::event(&ctx, "done", Some(("text", text.into_js(&ctx)?))),
            Event::Interrupt(token) => {
                values::event(&ctx, "interrupt", Some(("token", token.into_js(&ctx)?)))
            }
        }
    }

    fn reset(&self) {
        self.decoder.reset();
    }
}
