//! What a program may import: `inferlet`, files as Node has them, and its own files by relative paths.
//!
//! Modules of the runtime itself have names that begin with `pie:`; the program's are paths from its folder.

use std::rc::Rc;

use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::module::Declared;
use rquickjs::{Ctx, Error, Module, Result};

use crate::bridge::HostModule;
use crate::builtins::load_builtin;
use crate::errors;
use crate::sources::Program;

/// Marks the runtime's own modules; no path of a program begins so.
const INTERNAL: &str = "pie:";

/// The native module, which only the SDK and the runtime may import.
const HOST: &str = "pie:host";

/// The SDK, and the names by which programs import it.
pub(crate) const SDK: &str = "pie:inferlet/index.js";
const SDK_NAMES: [&str; 2] = ["inferlet", "@pie-project/inferlet"];

/// What reads and writes files, and the names by which programs import it.
const FILES: &str = "pie:runtime/files.js";
const FILES_NAMES: [&str; 2] = ["node:fs/promises", "fs/promises"];

/// What QuickJS asks for the modules of a program.
pub(crate) fn loader(program: Rc<Program>) -> (ProgramResolver, ProgramLoader) {
    (ProgramResolver(Rc::clone(&program)), ProgramLoader(program))
}

/// Finds what an import names.
pub(crate) struct ProgramResolver(Rc<Program>);

impl Resolver for ProgramResolver {
    fn resolve<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        base: &str,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> Result<String> {
        if base.starts_with(INTERNAL) {
            return Ok(match name.strip_prefix("./") {
                Some(sibling) => format!(
                    "{}/{sibling}",
                    base.rsplit_once('/').map_or(base, |(folder, _)| folder)
                ),
                None => name.to_owned(),
            });
        }
        if SDK_NAMES.contains(&name) {
            return Ok(SDK.to_owned());
        }
        if FILES_NAMES.contains(&name) {
            return Ok(FILES.to_owned());
        }
        // The entry itself is asked for by its whole path, from no file.
        let found = if name.starts_with("./") || name.starts_with("../") {
            join(base, name).and_then(|path| self.0.find(&path))
        } else {
            (name == self.0.entry() && self.0.content(name).is_some()).then(|| name.to_owned())
        };
        found.ok_or_else(|| {
            let remedy = remedy(&self.0, base, name);
            let message = format!("cannot find the module '{name}' that {base} imports; {remedy}");
            errors::throw(ctx, "invalid-program", message)
        })
    }
}

/// Modules of Node that programs often ask for.
const NODE_MODULES: [&str; 24] = [
    "assert",
    "async_hooks",
    "buffer",
    "child_process",
    "crypto",
    "dns",
    "events",
    "fs",
    "http",
    "https",
    "module",
    "net",
    "os",
    "path",
    "perf_hooks",
    "process",
    "querystring",
    "readline",
    "stream",
    "timers",
    "tls",
    "url",
    "util",
    "worker_threads",
];

/// What to do about a module that is not there.
fn remedy(program: &Program, base: &str, name: &str) -> String {
    if name.starts_with("./") || name.starts_with("../") {
        return match join(base, name) {
            None => "it lies outside of the folder of the program, of which nothing is taken: copy it into the folder"
                .to_owned(),
            Some(path) => format!(
                "there is no file '{path}' in the folder of the program: check the path, which counts from {base}"
            ),
        };
    }
    let first = name.split('/').next().unwrap_or(name);
    if name.starts_with("node:") || NODE_MODULES.contains(&first) {
        return "of the modules of Node a program has 'node:fs/promises' alone; use what the Web has: fetch, URL, crypto, \
                TextEncoder, setTimeout"
            .to_owned();
    }
    if join(base, name).is_some_and(|path| program.find(&path).is_some()) {
        return format!("a file of the program is imported by a path: './{name}'");
    }
    "a program imports 'inferlet', 'node:fs/promises', and files of its own folder by paths that begin with './' or '../'. \
     A package of npm is named under `dependencies` of package.json, and is bundled where the folder is run or built: \
     `pie run .`"
        .to_owned()
}

/// The path that a relative one means in a file; none where it leaves the program's folder.
fn join(base: &str, relative: &str) -> Option<String> {
    let folder = base.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in relative.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// Compiles what was found.
pub(crate) struct ProgramLoader(Rc<Program>);

impl Loader for ProgramLoader {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        attributes: Option<ImportAttributes<'js>>,
    ) -> Result<Module<'js, Declared>> {
        if name == HOST {
            return Module::declare_def::<HostModule, _>(ctx.clone(), HOST);
        }
        if name.starts_with(INTERNAL) {
            return load_builtin(ctx, name);
        }
        let content = self
            .0
            .content(name)
            .ok_or_else(|| Error::new_loading(name))?;
        let text = std::str::from_utf8(content).map_err(|error| {
            let message = format!(
                "{name} is not UTF-8: byte {} begins no character",
                error.valid_up_to()
            );
            errors::throw(ctx, "invalid-program", message)
        })?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let kind = attributes.and_then(|attributes| attributes.get_type().ok().flatten());
        let declared = if name.ends_with(".json") || kind.as_deref() == Some("json") {
            declare_json(ctx, name, text)
        } else {
            Module::declare(ctx.clone(), name, text)
        };
        declared.map_err(|error| mark_invalid(ctx, error))
    }
}

/// A module whose default export is a JSON document.
fn declare_json<'js>(ctx: &Ctx<'js>, name: &str, text: &str) -> Result<Module<'js, Declared>> {
    // The document is parsed here once, so that what is wrong with it is an error of this import.
    if let Err(error) = ctx.json_parse(text) {
        let reason = ctx
            .catch()
            .into_exception()
            .and_then(|exception| exception.message())
            .unwrap_or(error.to_string());
        return Err(errors::throw(
            ctx,
            "invalid-program",
            format!("{name} is not JSON: {reason}"),
        ));
    }
    // A JSON text is not the same thing as a JavaScript literal (`__proto__`), but a string of JSON is one of
    // JavaScript.
    let literal = ctx
        .json_stringify(text)?
        .ok_or(Error::Unknown)?
        .to_string()?;
    Module::declare(
        ctx.clone(),
        name,
        format!("export default JSON.parse({literal});"),
    )
}

/// Gives the pending exception of a file that does not parse the code of a program that cannot be run.
fn mark_invalid(ctx: &Ctx<'_>, error: Error) -> Error {
    if !matches!(error, Error::Exception) {
        return error;
    }
    let thrown = ctx.catch();
    if let Some(object) = thrown.as_object()
        && let Err(error) = object.set("code", "invalid-program")
    {
        return error;
    }
    ctx.throw(thrown)
}
