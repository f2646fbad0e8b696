//! Compiling what users supply: in a process of its own, with limits on its time and its memory, so that no program can
//! hold up the engine or make it run out of memory by how it is built.

use pie_core::ErrorCode;

use super::apart::{Ended, Fault, Job, Wanted, Workers};
use super::artefact::invalid;
use super::worker::{Order, Work};
use crate::{Error, HostConfig};

/// Bytes of machine code, at most, for a byte of a component; and what is allowed beside.
const CODE_GROWTH: usize = 32;
const CODE_SLACK_BYTES: usize = 16 << 20;
/// The most that is allowed, whatever the component.
const MAX_CODE_BYTES: usize = 1 << 30;

/// The machine code of a component, compiled by a worker; none where its shift was over. Blocks.
///
/// # Errors
/// `invalid-program` for one that is damaged, `limit-compile` for one that takes too much, `engine-stopped` where
/// nobody wants it.
pub(crate) fn compile_apart(
    workers: &Workers,
    config: &HostConfig,
    bytes: &[u8],
    wanted: &Wanted,
) -> Result<Option<Vec<u8>>, Error> {
    let n_threads = n_threads();
    let limits = &config.limits;
    let cpu_s = limits.compile.as_secs().saturating_add(1);
    let job = Job {
        workers,
        order: Order {
            work: Work::Compile {
                n_threads,
                max_processes: config.max_processes,
                stack_bytes: config.stack_bytes,
                memory_bytes: limits.memory_bytes,
            },
            cpu_s: cpu_s.saturating_mul(n_threads as u64),
            memory_bytes: config.compile_bytes(),
        },
        supplied: &[bytes],
        wall: limits.compile,
        most_bytes: bytes
            .len()
            .saturating_mul(CODE_GROWTH)
            .saturating_add(CODE_SLACK_BYTES)
            .min(MAX_CODE_BYTES),
    };
    match job.run(wanted)? {
        Ended::Done(code) => Ok(Some(code)),
        Ended::Over => Ok(None),
        Ended::Failed(fault, _) => Err(match fault {
            Fault::Invalid(why) => invalid(why),
            Fault::TooLong => took_too_long("compiling the program", config),
            Fault::Starved => starved("compiling the program", config),
            Fault::TooMuchMemory => took_too_much("compiling the program", config.compile_bytes()),
            Fault::Crashed => invalid(
                "the compiler ended by a fault of its own over the component; build it again, or make it simpler"
                    .to_owned(),
            ),
            Fault::Internal(what) => Error::internal(what),
        }),
    }
}

/// Threads of one compilation.
fn n_threads() -> usize {
    const MOST: usize = 4;
    std::thread::available_parallelism().map_or(1, |n| n.get().min(MOST))
}

/// The error of work that took too long.
pub(crate) fn took_too_long(what: &str, config: &HostConfig) -> Error {
    Error::new(
        ErrorCode::LimitCompile,
        format!(
            "{what} took longer than limits.compile_s = {} s; make it smaller, or raise the limit",
            config.limits.compile.as_secs_f64()
        ),
    )
}

/// The error of work that had too little of the processor. It is not remembered: it says nothing of what was supplied,
/// and the next launch tries again. That is bounded by the turns: each try waits for a turn of its user, is counted
/// there by the time that it took, and so comes after the work of users who have used less.
pub(crate) fn starved(what: &str, config: &HostConfig) -> Error {
    let message = format!(
        "{what} had less than half of the processor's time within limits.compile_s = {} s, since the machine is busy; try again",
        config.limits.compile.as_secs_f64()
    );
    Error::new(ErrorCode::LimitQueue, message)
}

/// The error of work that took more memory than `most_bytes`.
pub(crate) fn took_too_much(what: &str, most_bytes: u64) -> Error {
    Error::new(
        ErrorCode::LimitCompile,
        format!(
            "{what} took more memory than the {most_bytes} bytes that limits.compile_bytes, engine.memory_bytes and engine.max_compilations leave for it; \
             make it smaller, or change these"
        ),
    )
}
