//! Errors of the engine become exceptions of the SDK, which registers how they are made.

use std::cell::RefCell;

use rquickjs::{Ctx, Error, Exception, Function, IntoJs, JsLifetime, Persistent, Result, Value};

pub(crate) use crate::bindings::pie::core::types::Error as EngineError;

/// The SDK's function that makes an exception of `(code, message, details)`.
#[derive(JsLifetime)]
struct Factory(RefCell<Persistent<Function<'static>>>);

/// Takes the function that makes exceptions.
pub(crate) fn register<'js>(ctx: Ctx<'js>, factory: Function<'js>) -> Result<()> {
    let factory = Factory(RefCell::new(Persistent::save(&ctx, factory)));
    ctx.store_userdata(factory)
        .map(drop)
        .map_err(|_| Error::Unknown)
}

/// The exception of an error.
pub(crate) fn to_js<'js>(ctx: &Ctx<'js>, error: &EngineError) -> Result<Value<'js>> {
    let factory = ctx
        .userdata::<Factory>()
        .map(|factory| factory.0.borrow().clone());
    match factory {
        Some(factory) => {
            factory
                .restore(ctx)?
                .call((&*error.code, &*error.message, &*error.details))
        }
        // Only before the SDK's error module has run, which the runtime loads first.
        None => Exception::from_message(ctx.clone(), &error.message)?.into_js(ctx),
    }
}

/// Throws an error that this runtime found itself.
pub(crate) fn throw(ctx: &Ctx<'_>, code: &str, message: String) -> Error {
    throw_engine(
        ctx,
        &EngineError {
            code: code.to_owned(),
            message,
            details: "{}".to_owned(),
        },
    )
}

/// Throws an error of the engine.
pub(crate) fn throw_engine(ctx: &Ctx<'_>, error: &EngineError) -> Error {
    to_js(ctx, error).map_or_else(|error| error, |value| ctx.throw(value))
}
