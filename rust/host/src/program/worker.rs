//! The other side of `compiler`: a process that compiles one component within limits, and ends.

#![expect(
    unsafe_code,
    reason = "sets limits, priority and the signal of a parent's death for this process through libc; only numbers and a live local cross"
)]

use std::io::{Read, Write};

use serde::{Deserialize, Serialize};

use super::artefact;
use super::compiler::n_threads;
use crate::sandbox::{priority, wasm_engine};
use crate::{Error, HostConfig};

/// How a worker ends that found the component not to be valid.
pub(crate) const EXIT_INVALID: i32 = 3;
/// How a worker ends that could not do its work.
const EXIT_FAILED: i32 = 4;
/// How much lower the priority of a worker is than the engine's.
const NICENESS: u8 = 10;

/// What a worker has to know, as JSON in its last argument. The component is its standard input, machine code its standard output.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    max_processes: u32,
    stack_bytes: usize,
    memory_bytes: u64,
    compile_s: u64,
    compile_bytes: u64,
}

impl Order {
    pub(crate) fn new(config: &HostConfig) -> Self {
        Self {
            max_processes: config.max_processes,
            stack_bytes: config.stack_bytes,
            memory_bytes: config.limits.memory_bytes,
            compile_s: config.limits.compile.as_secs().saturating_add(1),
            compile_bytes: config.limits.compile_bytes,
        }
    }

    /// The part of the host's configuration that machine code depends on.
    fn config(&self) -> HostConfig {
        let mut config = HostConfig {
            max_processes: self.max_processes,
            stack_bytes: self.stack_bytes,
            ..HostConfig::default()
        };
        config.limits.memory_bytes = self.memory_bytes;
        config
    }
}

/// The whole of a worker process: compiles the component on standard input as `order` says. Gives the exit code.
pub fn compile_worker(order: &str) -> i32 {
    let (code, message) = match work(order) {
        Ok(()) => return 0,
        Err(error) if error.code == pie_core::ErrorCode::InvalidProgram => {
            (EXIT_INVALID, error.message)
        }
        Err(error) => (EXIT_FAILED, error.to_string()),
    };
    // Nobody listens where this cannot be written.
    drop(writeln!(std::io::stderr(), "{message}"));
    code
}

fn work(order: &str) -> Result<(), Error> {
    let order: Order = serde_json::from_str(order).map_err(Error::internal)?;
    end_with_parent();
    priority::lower_this_thread(NICENESS);
    // Before the limits: its pools are address space, not memory.
    let engine = wasm_engine(&order.config())?;
    limit(libc::RLIMIT_CORE, 0)?;
    limit(
        libc::RLIMIT_CPU,
        order.compile_s.saturating_mul(n_threads() as u64),
    )?;
    limit(
        libc::RLIMIT_AS,
        address_space_bytes()?.saturating_add(order.compile_bytes),
    )?;
    let mut component = Vec::new();
    std::io::stdin()
        .read_to_end(&mut component)
        .map_err(Error::internal)?;
    let compiled = artefact::compile(&engine, &component)?;
    let code = compiled.serialize().map_err(Error::internal)?;
    std::io::stdout()
        .write_all(&code)
        .map_err(Error::internal)?;
    std::io::stdout().flush().map_err(Error::internal)
}

/// Lets the system kill this process when the thread that waits for it is gone.
fn end_with_parent() {
    // SAFETY: a plain system call on numbers.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
    }
}

fn limit(resource: libc::__rlimit_resource_t, most: u64) -> Result<(), Error> {
    let bound = libc::rlimit {
        rlim_cur: most,
        rlim_max: most,
    };
    // SAFETY: the pointer is to a live local of the type that the call reads.
    if unsafe { libc::setrlimit(resource, &raw const bound) } == 0 {
        return Ok(());
    }
    Err(Error::internal(format!(
        "the limit {resource} cannot be set to {most}: {}",
        std::io::Error::last_os_error()
    )))
}

/// What this process takes of its address space.
fn address_space_bytes() -> Result<u64, Error> {
    const PAGE_BYTES: u64 = 4096;
    let status = std::fs::read_to_string("/proc/self/statm").map_err(Error::internal)?;
    let n_pages: u64 = status
        .split_whitespace()
        .next()
        .and_then(|field| field.parse().ok())
        .ok_or_else(|| Error::internal("/proc/self/statm cannot be read"))?;
    Ok(n_pages.saturating_mul(PAGE_BYTES))
}
