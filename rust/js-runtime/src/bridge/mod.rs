//! The module `pie:host`: the engine, as thinly as it can be lent to the SDK. Its types are in `js/inferlet/src/host.d.ts`.

mod chat;
mod context;
mod engine;
mod generation;
mod model;
mod session;
mod values;

use rquickjs::module::{Declarations, Exports, ModuleDef};
use rquickjs::{Ctx, Function, Result};

use crate::{errors as error, globals};

/// Every export: its name, and how it is made.
type Export = (
    &'static str,
    for<'js> fn(&Ctx<'js>) -> Result<Function<'js>>,
);

/// Names a Rust function as an export.
macro_rules! export {
    ($name:literal, $function:path) => {
        ($name, |ctx| {
            Function::new(ctx.clone(), $function)?.with_name($name)
        })
    };
}

const EXPORTS: &[Export] = &[
    export!("registerErrors", error::register),
    export!("models", engine::models),
    export!("version", engine::version),
    export!("instanceId", engine::instance_id),
    export!("username", engine::username),
    export!("args", engine::args),
    export!("launchSeed", engine::launch_seed),
    export!("loadModel", model::load),
    export!("newContext", context::create),
    export!("openSnapshot", context::open),
    export!("deleteSnapshot", context::delete),
    export!("snapshotNames", context::names),
    export!("newGenerator", generation::create),
    export!("messageTokens", chat::message_tokens),
    export!("cueTokens", chat::cue_tokens),
    export!("sealTokens", chat::seal_tokens),
    export!("stopTokens", chat::stop_tokens),
    export!("newDecoder", chat::create_decoder),
    export!("send", session::send),
    export!("receive", session::receive),
    export!("sendFile", session::send_file),
    export!("receiveFile", session::receive_file),
    export!("startTimer", globals::start_timer),
    export!("stopTimer", globals::stop_timer),
    export!("monotonicMs", globals::monotonic_ms),
    export!("randomBytes", globals::random_bytes),
    export!("randomUnit", globals::random_unit),
    export!("write", globals::write),
    export!("encodeUtf8", globals::encode_utf8),
    export!("decodeUtf8", globals::decode_utf8),
    export!("importNow", globals::import_now),
];

/// The native module.
pub(crate) struct HostModule;

impl ModuleDef for HostModule {
    fn declare(declarations: &Declarations<'_>) -> Result<()> {
        for (name, _) in EXPORTS {
            declarations.declare(*name)?;
        }
        Ok(())
    }

    fn evaluate<'js>(ctx: &Ctx<'js>, exports: &Exports<'js>) -> Result<()> {
        for (name, function) in EXPORTS {
            exports.export(*name, function(ctx)?)?;
        }
        Ok(())
    }
}
