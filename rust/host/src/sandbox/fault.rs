//! Names what ended a program: the limit that it hit, or the fault in its code.

use pie_core::ErrorCode;
use wasmtime::component::ResourceTableError;
use wasmtime::{Trap, WasmBacktrace};
use wasmtime_wasi::I32Exit;

use crate::Limits;
use crate::process::event::Failure;
use crate::{Error, HostConfig};

/// How wasmtime says that a call carried too much; its type is private. A test meets this text with a real guest.
const MESSAGE_LIMIT_TEXT: &str = "fuel allocated for hostcalls has been exhausted";

/// What ended an instance, with the functions of the program that led to it. `refused_bytes` is the memory that it would have had
/// with the last growth that was refused.
pub(crate) fn describe(
    error: &wasmtime::Error,
    config: &HostConfig,
    refused_bytes: Option<u64>,
) -> Failure {
    let reason = match error.downcast_ref::<Error>() {
        Some(error) => error.clone(),
        None => reason(error, config, refused_bytes),
    };
    Failure {
        traceback: functions(error),
        ..Failure::from(reason)
    }
}

fn reason(error: &wasmtime::Error, config: &HostConfig, refused_bytes: Option<u64>) -> Error {
    let limits = &config.limits;
    if let Some(exit) = error.downcast_ref::<I32Exit>() {
        return Error::new(
            ErrorCode::ProgramError,
            format!(
                "the program exited with status {} instead of returning a value",
                exit.0
            ),
        );
    }
    if let Some(ResourceTableError::Full) = error.downcast_ref::<ResourceTableError>() {
        return Error::new(
            ErrorCode::LimitResources,
            format!(
                "the program holds limits.resources = {} handles (contexts, generators, futures, streams); release those that are done, or raise the limit",
                limits.resources
            ),
        );
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
                "the program recursed beyond stack_bytes = {}; recurse less deeply, or raise the limit",
                config.stack_bytes
            ),
        ),
        Some(Trap::Interrupt) => cpu_limit(limits),
        _ => match refused_bytes {
            Some(bytes) => memory_limit(bytes, limits),
            None => Error::new(
                ErrorCode::Trap,
                format!(
                    "the program was stopped by a fault in its own code: {}",
                    error.root_cause()
                ),
            ),
        },
    }
}

/// The error of a program that used up its processor time.
fn cpu_limit(limits: &Limits) -> Error {
    let limit = limits.cpu.unwrap_or_default().as_secs_f64();
    Error::new(
        ErrorCode::LimitCpu,
        format!(
            "the program used more than limits.cpu_s = {limit} s of processor time; compute less, or raise the limit"
        ),
    )
}

/// The error of a program that was refused memory and could not go on.
fn memory_limit(bytes: u64, limits: &Limits) -> Error {
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
    const SHOWN: usize = 8;
    const LONGEST: usize = 120;
    let Some(backtrace) = error.downcast_ref::<WasmBacktrace>() else {
        return String::new();
    };
    let names = backtrace
        .frames()
        .iter()
        .filter_map(|frame| frame.func_name())
        .take(SHOWN);
    let line = |name: &str| {
        let name = format!("{:#}", rustc_demangle::demangle(name));
        format!("  in {}\n", name.chars().take(LONGEST).collect::<String>())
    };
    names.map(line).collect()
}
