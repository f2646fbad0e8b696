//! Names what ended a program: the limit that it hit, or the fault in its code.

use pie_core::ErrorCode;
use wasmtime::component::ResourceTableError;
use wasmtime::{Trap, WasmBacktrace};
use wasmtime_wasi::I32Exit;

use crate::Error;
use crate::Limits;
use crate::event::Failure;

/// How wasmtime says that a call carried too much; its type is private. A test meets this text with a real guest.
const MESSAGE_LIMIT_TEXT: &str = "fuel allocated for hostcalls has been exhausted";

/// How wasmtime begins to name the address of a fault; its type is private. A test meets this text with a real guest.
const FAULT_TEXT: &str = "memory fault at wasm address 0x";

/// Why memory was refused.
#[derive(Clone, Debug)]
pub(crate) enum Refused {
    /// The program would have had so many bytes.
    Limit(u64),
    /// The budget of the engine has no more for its user.
    Budget(Error),
}

impl Refused {
    /// The error of a program that could not run on without it.
    pub(crate) fn error(&self, limits: &Limits) -> Error {
        match self {
            Self::Limit(n_bytes) => memory_limit(*n_bytes, limits),
            Self::Budget(error) => error.clone(),
        }
    }
}

/// What an instance had when it was ended.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    /// The stack that it could use.
    pub(crate) stack_bytes: usize,
    /// Why memory was last refused, if it was.
    pub(crate) refused: Option<Refused>,
    /// Whether a language runtime ran: its functions say nothing of the program.
    pub(crate) is_source: bool,
    /// What the program said of a panic of its own, if it did.
    pub(crate) panic: Option<String>,
}

/// What ended an instance, with the functions of the program that led to it where the program has functions of its own.
pub(crate) fn describe(error: &wasmtime::Error, limits: &Limits, ended: Ended) -> Failure {
    let is_source = ended.is_source;
    let reason = match error.downcast_ref::<Error>() {
        Some(error) => error.clone(),
        None => reason(error, limits, ended),
    };
    Failure {
        traceback: if is_source {
            String::new()
        } else {
            functions(error)
        },
        ..Failure::from(reason)
    }
}

fn reason(error: &wasmtime::Error, limits: &Limits, ended: Ended) -> Error {
    let Ended {
        stack_bytes,
        refused,
        is_source,
        panic,
    } = ended;
    if let Some(exit) = error.downcast_ref::<I32Exit>() {
        return exited(exit.0, is_source);
    }
    if let Some(ResourceTableError::Full) = error.downcast_ref::<ResourceTableError>() {
        return handles_limit(limits);
    }
    if error
        .chain()
        .any(|cause| cause.to_string().contains(MESSAGE_LIMIT_TEXT))
    {
        return Error::new(
            ErrorCode::LimitMessage,
            format!(
                "a call carried more than limits.message_bytes = {} bytes; send less in one call, or raise the limit",
                limits.message_bytes
            ),
        );
    }
    match error.downcast_ref::<Trap>() {
        Some(Trap::StackOverflow) => Error::new(
            ErrorCode::LimitStack,
            format!(
                "the program recursed beyond engine.stack_bytes = {stack_bytes}; recurse less deeply, or start the engine with a larger one"
            ),
        ),
        Some(Trap::MemoryOutOfBounds) if ran_out_of_stack(error) => Error::new(
            ErrorCode::LimitStack,
            "the program recursed beyond the stack in its own memory; recurse less deeply, or build it with a larger stack (linker option -z stack-size)",
        ),
        _ => match refused {
            Some(refused) => refused.error(limits),
            None => trapped(error, is_source, panic),
        },
    }
}

/// The error of a fault in the code. A panic ends in an instruction that says nothing; the program has said more.
fn trapped(error: &wasmtime::Error, is_source: bool, panic: Option<String>) -> Error {
    let trap = error.downcast_ref::<Trap>();
    let message = match (trap, panic) {
        (Some(Trap::UnreachableCodeReached), Some(panic)) if !is_source => panic,
        _ => {
            let whose = if is_source {
                "the runtime of its language"
            } else {
                "its own code"
            };
            let cause = error.root_cause();
            format!("the program was stopped by a fault in {whose}: {cause}")
        }
    };
    Error::new(ErrorCode::Trap, message)
}

/// The system interface of programs says whether they failed, and not by which status.
fn exited(status: i32, is_source: bool) -> Error {
    let failing = if is_source {
        "raise an exception"
    } else {
        "return an error from `main`"
    };
    let message = if status == 0 {
        format!(
            "the program exited as one that succeeded, without returning a value; return from `main`, or {failing}"
        )
    } else {
        format!(
            "the program exited as one that failed, without saying why (its status is not known outside of it); {failing}"
        )
    };
    Error::new(ErrorCode::ProgramError, message)
}

/// How many bytes below address 0 a stack may have grown when it is found out.
const BELOW_ZERO_BYTES: u64 = 64 << 20;
/// How often a function stands in the trace of a recursion, at least.
const RECURSIONS: usize = 3;

/// True where a program that keeps a stack in its own memory grew it below address 0.
///
/// Compilers for WebAssembly put that stack at the beginning of the memory (`wasm-ld --stack-first`), so that one which
/// overflows meets an address just below 0, from within a recursion.
fn ran_out_of_stack(error: &wasmtime::Error) -> bool {
    let below_zero = error.chain().any(|cause| {
        let text = cause.to_string();
        let address = text
            .strip_prefix(FAULT_TEXT)
            .and_then(|rest| rest.split_once(' '))
            .and_then(|(address, _)| u64::from_str_radix(address, 16).ok());
        // Offsets of loads and stores may carry the address past 2^32.
        address.is_some_and(|address| address >= (1 << 32) - BELOW_ZERO_BYTES)
    });
    let Some(trace) = error.downcast_ref::<WasmBacktrace>() else {
        return false;
    };
    let functions = || trace.frames().iter().map(wasmtime::FrameInfo::func_index);
    below_zero
        && functions()
            .any(|function| functions().filter(|other| *other == function).count() >= RECURSIONS)
}

/// The error of a program that used up its processor time.
pub(crate) fn cpu_limit(limits: &Limits) -> Error {
    let limit = limits.cpu.unwrap_or_default().as_secs_f64();
    Error::new(
        ErrorCode::LimitCpu,
        format!(
            "the program used more than limits.cpu_s = {limit} s of processor time; compute less, or raise the limit"
        ),
    )
}

/// The error of a program that made too many calls.
pub(crate) fn calls_limit(limits: &Limits) -> Error {
    Error::new(
        ErrorCode::LimitCalls,
        format!(
            "the program made more than limits.calls = {} calls to the engine; call less often, or raise the limit",
            limits.calls
        ),
    )
}

/// The error of a program that wrote too much.
pub(crate) fn output_limit(limits: &Limits) -> Error {
    Error::new(
        ErrorCode::LimitOutput,
        format!(
            "the program wrote more than limits.output_bytes = {} bytes; write less, or raise the limit",
            limits.output_bytes
        ),
    )
}

/// The error of a program that holds too many handles.
pub(crate) fn handles_limit(limits: &Limits) -> Error {
    Error::new(
        ErrorCode::LimitResources,
        format!(
            "the program holds limits.resources = {} handles (contexts, generators, futures, streams); release those that are done, or raise the limit",
            limits.resources
        ),
    )
}

/// The error of a program that polls too many pollables in one call.
pub(crate) fn poll_limit(n_pollables: usize, limits: &Limits) -> Error {
    Error::new(
        ErrorCode::LimitResources,
        format!(
            "the program polls {n_pollables} pollables in one call, more than limits.resources = {}; poll fewer at once, or raise the limit",
            limits.resources
        ),
    )
}

/// The error of a program that holds too many futures.
pub(crate) fn futures_limit(limits: &Limits) -> Error {
    Error::new(
        ErrorCode::LimitResources,
        format!(
            "the program waits for limits.futures = {} things at once; wait for fewer, or raise the limit",
            limits.futures
        ),
    )
}

/// The error of a program that holds too many timers.
pub(crate) fn timers_limit(limits: &Limits) -> Error {
    Error::new(
        ErrorCode::LimitTimers,
        format!(
            "the program holds limits.timers = {} timers at once; let some end first, or raise the limit",
            limits.timers
        ),
    )
}

/// The error of a program that was refused memory and could not run on.
pub(crate) fn memory_limit(bytes: u64, limits: &Limits) -> Error {
    Error::new(
        ErrorCode::LimitMemory,
        format!(
            "the program asked for {bytes} bytes of memory, more than limits.memory_bytes = {}; hold less at once, or raise the limit",
            limits.memory_bytes
        ),
    )
}

/// The functions of the program that led to the fault, innermost first, one a line; empty where they have no names.
fn functions(error: &wasmtime::Error) -> String {
    let Some(backtrace) = error.downcast_ref::<WasmBacktrace>() else {
        return String::new();
    };
    let names = backtrace
        .frames()
        .iter()
        .filter_map(|frame| frame.func_name())
        .map(beginning);
    shown_functions(&names.collect::<Vec<_>>())
}

/// The beginning of the name of a function: a few bytes that are demangled may become a million.
fn beginning(name: &str) -> String {
    const LONGEST: usize = 120;
    let whole = format!("{:#}", rustc_demangle::demangle(name));
    whole.chars().take(LONGEST).collect()
}

/// The first of these functions, one a line. Those of the standard library of Rust are left out, as the dozen that a
/// panic goes through: they say nothing of the program. They are shown where there are no others.
fn shown_functions(names: &[String]) -> String {
    const SHOWN: usize = 8;
    let are_all_of_library = names.iter().all(|name| is_of_library(name));
    names
        .iter()
        .filter(|name| are_all_of_library || !is_of_library(name))
        .take(SHOWN)
        .map(|name| format!("  in {name}\n"))
        .collect()
}

/// Whether a function is one of the standard library of Rust, by its name. A method of a trait of the library that the
/// program implements is not one: its name begins with the type.
fn is_of_library(name: &str) -> bool {
    const CRATES: [&str; 5] = ["std::", "core::", "alloc::", "panic_abort::", "dlmalloc::"];
    const SYMBOLS: [&str; 3] = ["__rust", "__rdl_", "__rg_"];
    const NAMES: [&str; 3] = ["abort", "rust_begin_unwind", "rust_panic"];
    let inner = name.trim_start_matches(['<', '&', '[', '(']);
    NAMES.contains(&name)
        || CRATES.iter().any(|start| inner.starts_with(start))
        || SYMBOLS.iter().any(|start| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(names: &[&str]) -> String {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        shown_functions(&names)
    }

    #[test]
    fn a_panic_shows_the_functions_of_the_program() {
        let machinery = [
            "abort",
            "__rustc::__rust_abort",
            "panic_abort::__rust_start_panic",
            "rust_panic",
            "std::panicking::rust_panic_with_hook",
            "std::panicking::begin_panic_handler::{{closure}}",
            "std::sys::backtrace::__rust_end_short_backtrace",
            "rust_begin_unwind",
            "core::panicking::panic_fmt",
            "core::panicking::panic_bounds_check",
            "<alloc::vec::Vec<T> as core::ops::index::Index<I>>::index",
        ];
        let own = [
            "rust_poet::line",
            "<poet::Line as core::fmt::Display>::fmt",
            "poet::main",
        ];
        let names: Vec<&str> = machinery.into_iter().chain(own).collect();
        assert_eq!(
            shown(&names),
            "  in rust_poet::line\n  in <poet::Line as core::fmt::Display>::fmt\n  in poet::main\n"
        );
        // What is all that there is says more than nothing.
        assert_eq!(shown(&machinery).lines().count(), 8);
        assert_eq!(shown(&[]), "");
    }

    #[test]
    fn many_functions_and_long_names_are_cut() {
        let long = beginning(&"f".repeat(500));
        let text = shown(&[long.as_str(); 20]);
        assert_eq!(text.lines().count(), 8);
        assert!(text.lines().all(|line| line.len() < 130));
    }
}
