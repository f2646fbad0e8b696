//! Runs one program: its modules, its `main`, its answer.

use std::cell::RefCell;
use std::rc::Rc;

use rquickjs::promise::MaybePromise;
use rquickjs::{
    Context, Ctx, Error, FromJs, Function, JsLifetime, Object, Persistent, Runtime, Value,
};

use crate::bindings::exports::pie::inferlet::run::Failure;
use crate::bindings::pie::core::{http_server, runtime as engine};
use crate::bindings::wasi::cli::stderr::get_stderr;
use crate::errors;
use crate::event_loop::{self, EventLoop, Settled};
use crate::failure::{self, Fault};
use crate::sources::Program;
use crate::{builtins, globals, modules};

/// Deep enough for ordinary recursion; one deeper is a RangeError. The engine gives the instance's own stack 32 times
/// as much, so that this limit is the one that is met.
const STACK_BYTES: usize = 256 * 1024;

/// How much a program makes before unreachable cycles are first looked for.
const GC_STEP_BYTES: usize = 256 * 1024;

/// The module in whose name the entry is imported to be looked at.
const CHECK_MODULE: &str = "pie:check";

/// The module that halts.
const HALT_MODULE: &str = "pie:runtime/halt.js";

/// The module that knows what to do about common mistakes.
const HINTS_MODULE: &str = "pie:runtime/hints.js";

/// The module that knows which arguments a program does not read.
const UNUSED_MODULE: &str = "pie:runtime/unused.js";

/// The module that knows which timers `main` has left behind.
const LEFT_MODULE: &str = "pie:runtime/left-behind.js";

/// The module that knows which numbers of an input JavaScript does not hold.
const ROUNDED_MODULE: &str = "pie:runtime/rounded.js";

/// Whole numbers of fewer digits are all held by JavaScript.
const ROUNDED_DIGITS: usize = 16;

/// The part of the runtime that is JavaScript: importing it sets up the globals.
const RUNTIME_MODULE: &str = "pie:runtime/program.js";

/// Runs the program that came with the launch; input and answer are JSON texts. A failure's traceback also goes to
/// stderr.
pub(crate) fn run(input: &str) -> Result<String, Failure> {
    let answer = start(input);
    if let Err(failure) = &answer {
        let shown = if failure.traceback.is_empty() {
            &failure.message
        } else {
            &failure.traceback
        };
        globals::write_all(&get_stderr(), shown.trim_end());
        globals::write_all(&get_stderr(), "\n");
    }
    answer
}

/// Looks at the program that came with the launch without running any of it: whether every module that the entry
/// imports is there and parses, and whether the entry exports `main`, or what answers requests by HTTP as its default.
pub(crate) fn check() -> Result<(), String> {
    within(|ctx, support, entry| {
        let checked = |export: &str| {
            support.link(ctx, entry, export).map_err(|fault| {
                let failure = support.describe(ctx, fault);
                let absent = format!("Could not find export '{export}' in module '{entry}'");
                // What else the message says is where to look.
                (failure.message.starts_with(&absent), failure)
            })
        };
        match checked("main") {
            Err((true, mut failure)) => match checked("default") {
                Err((true, _)) => {
                    failure.message = no_main(ctx, entry);
                    Err(failure)
                }
                Err((false, failure)) => Err(failure),
                Ok(()) => Ok(()),
            },
            Err((false, failure)) => Err(failure),
            Ok(()) => Ok(()),
        }
    })
    .map_err(|failure| {
        if failure.code.as_deref() == Some("invalid-program") {
            failure.message
        } else {
            format!("{}: {}", failure.kind, failure.message)
        }
    })
}

fn start(input: &str) -> Result<String, Failure> {
    within(|ctx, support, entry| {
        support
            .run(ctx, entry, input)
            .map_err(|fault| support.describe(ctx, fault))
    })
}

/// A context in which everything stands that all programs have.
struct Ready {
    runtime: Runtime,
    context: Context,
    support: Persistent<Support<'static>>,
}

thread_local! {
    /// What `initialize` made, in the memory with which each instance begins.
    static READY: RefCell<Option<Ready>> = const { RefCell::new(None) };
}

/// Makes what all programs have: the globals and the SDK. It runs when the component is built.
#[unsafe(no_mangle)]
extern "C" fn initialize() {
    match Ready::make() {
        Ok(ready) => READY.set(Some(ready)),
        // The build ends with it; an abort is all that the builder could be told.
        Err(_) => std::process::abort(),
    }
}

impl Ready {
    fn make() -> rquickjs::Result<Self> {
        let runtime = Runtime::new()?;
        runtime.set_max_stack_size(STACK_BYTES);
        let (resolver, loader) = modules::loader(Rc::new(Program::default()));
        runtime.set_loader(resolver, loader);
        runtime.set_host_promise_rejection_tracker(Some(Box::new(
            |ctx, promise, reason, handled| {
                // Without its loop a context has no program yet, and so nothing to reject.
                let _ = event_loop::current(&ctx, |event_loop| {
                    event_loop.track_rejection(&ctx, promise, reason, handled)
                });
            },
        )));
        let context = Context::full(&runtime)?;
        let support = context.with(|ctx| {
            ctx.store_userdata(EventLoop::default())
                .map_err(|_| Error::Unknown)?;
            let sdk = builtins::import_now(&ctx, modules::SDK)?;
            let support = Support::load(&ctx, &sdk)?;
            Ok::<_, Error>(Persistent::save(&ctx, support))
        })?;
        runtime.run_gc();
        // A collection writes to every object, and so takes the pages from those that all instances share: the next one
        // waits until a program has made something.
        let used = usize::try_from(runtime.memory_usage().malloc_size).unwrap_or(0);
        runtime.set_gc_threshold(used + GC_STEP_BYTES);
        Ok(Self {
            runtime,
            context,
            support,
        })
    }
}

/// Does `work` in the context, with the path of the entry.
fn within<T>(
    work: impl for<'js> FnOnce(&Ctx<'js>, &Support<'js>, &str) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let ready = match READY.take() {
        Some(ready) => ready,
        None => Ready::make().map_err(failure::internal)?,
    };
    globals::begin();
    let program = Program::load();
    let entry = program.entry().to_owned();
    let (resolver, loader) = modules::loader(program);
    ready.runtime.set_loader(resolver, loader);
    let answer = ready.context.with(|ctx| {
        let support = ready
            .support
            .clone()
            .restore(&ctx)
            .map_err(failure::internal)?;
        work(&ctx, &support, &entry)
    });
    // The engine throws the whole instance away; taking the heap apart first would only delay the answer.
    std::mem::forget(ready);
    answer
}

fn no_main(ctx: &Ctx<'_>, entry: &str) -> String {
    let message = format!(
        "{entry} exports no function `main`; add `export async function main(input) {{ ... }}`, which the engine calls, or \
         for a program that serves HTTP `export default {{ fetch(request) {{ ... }} }}`"
    );
    let meant: rquickjs::Result<Option<String>> = builtins::import_now(ctx, HINTS_MODULE)
        .and_then(|hints| hints.get::<_, Function>("meantAsMain")?.call((entry,)));
    match meant {
        Ok(Some(meant)) => format!("{message}; {meant}"),
        Ok(None) => message,
        // The message stands without it, and nobody shall meet what went wrong here.
        Err(_) => {
            drop(ctx.catch());
            message
        }
    }
}

/// What to do about a module that exports no `main`, by what its default export is.
fn without_main<'js>(
    ctx: &Ctx<'js>,
    entry: &str,
    module: &Object<'js>,
) -> rquickjs::Result<String> {
    if http_server::is_serving() {
        return Ok(no_main(ctx, entry));
    }
    let default: Value = module.get("default")?;
    let is_function = default.is_function();
    if let Some(handler) = default.into_object() {
        let fetch: Value = handler.get("fetch")?;
        if fetch.is_function() {
            return Ok(format!(
                "{entry} exports no function `main`; its default export answers requests by HTTP: serve it with --port, \
                 as in `pie run {entry} --port 8000`"
            ));
        }
    }
    if is_function {
        return Ok(format!(
            "{entry} exports a function as its default, and the engine calls the export `main`: leave `default` out, as \
             in `export async function main(input) {{ ... }}`"
        ));
    }
    Ok(no_main(ctx, entry))
}

/// What to say of an argument that nothing in the program reads.
fn unread<'js>(
    ctx: &Ctx<'js>,
    entry: &str,
    main: &Function<'js>,
    input: &Value<'js>,
) -> rquickjs::Result<Option<String>> {
    let unread: Function = builtins::import_now(ctx, UNUSED_MODULE)?.get("unread")?;
    unread.call((entry, main.clone(), input.clone()))
}

/// What to say of a whole number of the input that JavaScript rounds.
fn rounded(ctx: &Ctx<'_>, input: &str) -> rquickjs::Result<Option<String>> {
    let mut runs = input.as_bytes().split(|byte| !byte.is_ascii_digit());
    if !runs.any(|digits| digits.len() >= ROUNDED_DIGITS) {
        return Ok(None);
    }
    let rounded: Function = builtins::import_now(ctx, ROUNDED_MODULE)?.get("rounded")?;
    rounded.call((input,))
}

/// What to say of timers that `main` has left behind.
fn left_timers(ctx: &Ctx<'_>) -> rquickjs::Result<Option<String>> {
    if !event_loop::current(ctx, EventLoop::has_timers)? {
        return Ok(None);
    }
    let left: Function = builtins::import_now(ctx, LEFT_MODULE)?.get("leftTimers")?;
    left.call(())
}

/// Warns of what was found, if anything was.
fn warn(ctx: &Ctx<'_>, found: rquickjs::Result<Option<String>>) {
    match found {
        Ok(Some(message)) => {
            globals::write_all(&get_stderr(), &format!("warning: {message}\n"));
        }
        Ok(None) => {}
        // The program runs without the warning, and shall not meet what went wrong here.
        Err(_) => drop(ctx.catch()),
    }
}

/// What answers requests by HTTP, where the program was launched to do so and has such a thing as its default export.
fn serving<'js>(module: &Object<'js>) -> rquickjs::Result<Option<Object<'js>>> {
    if !http_server::is_serving() {
        return Ok(None);
    }
    let entry: Value = module.get("default")?;
    let Some(entry) = entry.into_object() else {
        return Ok(None);
    };
    let fetch: Value = entry.get("fetch")?;
    Ok(fetch.is_function().then_some(entry))
}

/// The functions of the runtime that are JavaScript.
#[derive(Clone, JsLifetime)]
struct Support<'js> {
    /// `describe(thrown) -> { kind, message, code, traceback }`
    describe: Function<'js>,
    /// `toAnswer(value) -> JSON text`
    to_answer: Function<'js>,
    /// `doubt(entry, main, input) -> a warning, or undefined`
    doubt: Function<'js>,
    /// `serve(handler)` of the SDK, which answers requests by HTTP
    serve: Function<'js>,
}

impl<'js> Support<'js> {
    fn load(ctx: &Ctx<'js>, sdk: &Object<'js>) -> rquickjs::Result<Self> {
        let module = builtins::import_now(ctx, RUNTIME_MODULE)?;
        Ok(Self {
            describe: module.get("describe")?,
            to_answer: module.get("toAnswer")?,
            doubt: module.get("doubt")?,
            serve: sdk.get::<_, Object>("httpServer")?.get("serve")?,
        })
    }

    /// Imports the entry, calls `main` with the input, and returns what it gave as a JSON text.
    fn run(&self, ctx: &Ctx<'js>, entry: &str, input: &str) -> Result<String, Fault<'js>> {
        let value = match ctx.json_parse(input) {
            Ok(value) => value,
            Err(Error::Exception) => {
                let reason = ctx
                    .catch()
                    .into_exception()
                    .and_then(|exception| exception.message())
                    .unwrap_or_default();
                let message = format!("the input is not JSON: {reason}; pass a JSON text");
                return Err(failure::raise(ctx, "invalid-input", message));
            }
            Err(error) => return Err(Fault::Internal(error)),
        };
        let loading = rquickjs::Module::import(ctx, entry)?;
        let module = Object::from_js(ctx, self.wait(ctx, loading)?)?;
        let answer: Value = match serving(&module)? {
            Some(handler) => self.serve.call((handler,))?,
            None => {
                warn(ctx, rounded(ctx, input));
                self.call_main(ctx, entry, &module, value)?
            }
        };
        let answer = match MaybePromise::from_value(answer.clone())
            .as_value()
            .as_promise()
        {
            Some(promise) => self.wait(ctx, promise.clone())?,
            None => answer,
        };
        // Jobs that a synchronous `main` left behind may still reject or handle promises.
        while ctx.execute_pending_job() {}
        // Written first: whatever handles the rejections below may change what `main` returned.
        let answer = self.answer(ctx, answer);
        event_loop::current(ctx, |event_loop| event_loop.reject_unawaited(ctx))??;
        let unhandled = event_loop::current(ctx, |event_loop| event_loop.unhandled_rejection(ctx))?;
        if let Some(reason) = unhandled {
            return Err(Fault::Thrown(reason));
        }
        let answer = answer?;
        warn(ctx, left_timers(ctx));
        Ok(answer)
    }

    /// What `main` returned, as a JSON text.
    fn answer(&self, ctx: &Ctx<'js>, value: Value<'js>) -> Result<String, Fault<'js>> {
        let written = self.to_answer.call::<_, String>((value,));
        written.map_err(|error| match error {
            Error::Exception => Fault::Thrown(ctx.catch()),
            error => Fault::Internal(error),
        })
    }

    /// What `main` answers. The engine calls it with one value: of another parameter nothing would ever come.
    fn call_main(
        &self,
        ctx: &Ctx<'js>,
        entry: &str,
        module: &Object<'js>,
        input: Value<'js>,
    ) -> Result<Value<'js>, Fault<'js>> {
        let main: Value = module.get("main")?;
        let Some(main) = main.as_function() else {
            let message = without_main(ctx, entry, module)?;
            return Err(failure::raise(ctx, "invalid-program", message));
        };
        let n_parameters: u32 = main.get("length")?;
        if n_parameters > 1 {
            let message = format!(
                "main in {entry} takes {n_parameters} parameters; the engine calls it with one, the input: take its parts by \
                 name, as in `main({{ name, n }})`"
            );
            return Err(failure::raise(ctx, "invalid-program", message));
        }
        let doubt = self.doubt.call((entry, main.clone(), input.clone()));
        warn(ctx, doubt);
        if !engine::args().is_empty() {
            warn(ctx, unread(ctx, entry, main, &input));
        }
        Ok(main.call((input,))?)
    }

    /// Links the entry with what it imports. The first import of the module that does so halts its evaluation, which
    /// begins after everything is linked, so that no module of the program runs.
    fn link(&self, ctx: &Ctx<'js>, entry: &str, export: &str) -> Result<(), Fault<'js>> {
        let path = ctx
            .json_stringify(entry)?
            .ok_or(Error::Unknown)?
            .to_string()?;
        let source = format!("import '{HALT_MODULE}'; import {{ {export} as _ }} from {path};");
        let name = format!("{CHECK_MODULE}/{export}");
        let loading = rquickjs::Module::declare(ctx.clone(), name, source)?.eval()?;
        let (_, finished) = loading;
        match self.wait(ctx, finished) {
            Err(Fault::Thrown(halted)) if halted.is_null() && !failure::is_out_of_memory() => {
                Ok(())
            }
            Err(fault) => Err(fault),
            Ok(_) => Err(Fault::Internal(Error::Unknown)),
        }
    }

    /// Runs the event loop until the promise is settled.
    fn wait(
        &self,
        ctx: &Ctx<'js>,
        promise: rquickjs::Promise<'js>,
    ) -> Result<Value<'js>, Fault<'js>> {
        let event_loop = ctx.userdata::<EventLoop>().ok_or(Error::Unknown)?;
        match event_loop.settle(ctx, &promise)? {
            Settled::Fulfilled(value) => Ok(value),
            Settled::Rejected(reason) => Err(Fault::Thrown(reason)),
            Settled::Deadlock => {
                let mut message = "the program waits for a promise that nothing can settle: no call of the engine and no \
                                   timer is under way; await something that the engine, a timer or the client can complete"
                    .to_owned();
                if let Some(reason) = event_loop.unhandled_rejection(ctx) {
                    let rejection = self.describe(ctx, Fault::Thrown(reason));
                    message.push_str(&format!(
                        " (a rejected promise was never handled: {}: {})",
                        rejection.kind, rejection.message
                    ));
                }
                Err(failure::raise(ctx, "deadlock", message))
            }
        }
    }

    /// The record of a failure.
    fn describe(&self, ctx: &Ctx<'js>, fault: Fault<'js>) -> Failure {
        let thrown = match fault {
            Fault::Thrown(value) => value,
            Fault::Internal(Error::Exception) => ctx.catch(),
            Fault::Internal(error) => {
                match errors::to_js(ctx, &failure::engine_error("internal", error.to_string())) {
                    Ok(value) => value,
                    Err(error) => return failure::internal(error),
                }
            }
        };
        // With no memory for an error object, QuickJS throws null in its place.
        if thrown.is_null() && failure::is_out_of_memory() {
            return failure::out_of_memory();
        }
        let described = self.describe.call((thrown,)).and_then(|record: Object| {
            Ok(Failure {
                kind: record.get("kind")?,
                message: record.get("message")?,
                code: record.get("code")?,
                traceback: record.get("traceback")?,
            })
        });
        described.unwrap_or_else(|_| failure::indescribable(&ctx.catch()))
    }
}
