//! The module `pie:host`: the engine, as thinly as it can be lent to the SDK.
//!
//! `engine` and its types, `js/inferlet/src/host.d.ts`, are generated from the WIT; `resource` and `values` are what
//! it is made of.

mod engine;
mod exports;
mod resource;
mod values;

use rquickjs::module::{Declarations, Exports, ModuleDef};
use rquickjs::{Ctx, Function, Result};

use self::exports::{Export, export};
pub(crate) use self::values::{byte_array, bytes_of};
use crate::{addresses, base64, digests, errors, files, globals, sources};

/// What the runtime lends beside the engine. Its types are in `js/inferlet/src/host-runtime.d.ts`.
const EXPORTS: &[Export] = &[
    export!("registerErrors", errors::register),
    export!("startTimer", globals::start_timer),
    export!("stopTimer", globals::stop_timer),
    export!("elapsedMs", globals::elapsed_ms),
    export!("randomBytes", globals::random_bytes),
    export!("randomUnit", globals::random_unit),
    export!("write", globals::write),
    export!("encodeUtf8", globals::encode_utf8),
    export!("decodeUtf8", globals::decode_utf8),
    export!("importNow", globals::import_now),
    export!("programFile", sources::text),
    export!("programPaths", sources::paths),
    export!("parseUrl", addresses::parse),
    export!("changeUrl", addresses::change),
    export!("parseForm", addresses::parse_form),
    export!("writeForm", addresses::write_form),
    export!("encodeBase64", base64::encode),
    export!("decodeBase64", base64::decode),
    export!("digest", digests::digest),
    export!("openFile", files::open),
    export!("statPath", files::stat),
    export!("makeFolder", files::make_folder),
    export!("removeFolder", files::remove_folder),
    export!("removeFile", files::remove_file),
    export!("readLink", files::read_link),
    export!("makeLink", files::make_link),
    export!("renamePath", files::rename),
];

fn every_export() -> impl Iterator<Item = &'static Export> {
    engine::EXPORTS.iter().chain(EXPORTS)
}

/// The native module.
pub(crate) struct HostModule;

impl ModuleDef for HostModule {
    fn declare(declarations: &Declarations<'_>) -> Result<()> {
        for (name, _) in every_export() {
            declarations.declare(*name)?;
        }
        Ok(())
    }

    fn evaluate<'js>(ctx: &Ctx<'js>, exports: &Exports<'js>) -> Result<()> {
        for (name, function) in every_export() {
            exports.export(*name, function(ctx)?)?;
        }
        Ok(())
    }
}
