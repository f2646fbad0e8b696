//! The other side of `apart`: a process that does one piece of work on what a user supplied, within bounds, and ends.
//!
//! | on standard input | |
//! |---|---|
//! | length of the order, 4 bytes | little-endian |
//! | the order | JSON, of the engine |
//! | what the user supplied | to the end; read once the process is confined |
//!
//! Standard output takes a byte, [`confine::Lacking`], once the process is confined, and then the result: machine code,
//! or of each script an [`Answer`]. Standard error takes what went wrong.

use std::io::{Read, Write};
use std::thread;

use serde::{Deserialize, Serialize};

use super::artefact;
use super::confine;
use super::typescript;
use crate::sandbox::{priority, wasm_engine};
use crate::{Error, HostConfig};

/// How a worker ends that found the component not to be valid.
pub(crate) const EXIT_INVALID: i32 = 3;
/// How a worker ends that could not do its work.
const EXIT_FAILED: i32 = 4;
/// How much lower the priority of a worker is than the engine's.
const NICENESS: u8 = 10;
/// Bytes of stack for the work; what nests deeper than fits ends the worker.
const STACK_BYTES: usize = 64 << 20;
/// Bytes of stack of each thread that compiles functions.
const THREAD_STACK_BYTES: usize = 16 << 20;
/// The longest order.
const MAX_ORDER_BYTES: usize = 64 << 10;

/// What a worker has to know.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) work: Work,
    /// Seconds of processor time.
    pub(crate) cpu_s: u64,
    /// Bytes of memory, beside its stack and its code.
    pub(crate) memory_bytes: u64,
}

/// What is done.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Work {
    /// Compiles a component, with so many threads, for the part of the host's configuration that machine code depends
    /// on.
    Compile {
        n_threads: usize,
        max_processes: u32,
        stack_bytes: usize,
        memory_bytes: u64,
    },
    /// Removes the types from scripts: of each come path and content, both as [`put`] writes them.
    Strip,
}

/// What a worker says of a script: a byte, and for the last two a text as [`put`] writes it.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Answer {
    /// There are no types in it.
    Same,
    /// The script without its types follows.
    Changed,
    /// It cannot be read, for the reason that follows.
    Refused,
}

/// Adds bytes and, before them, their number as 4 bytes.
pub(crate) fn put(to: &mut Vec<u8>, bytes: &[u8]) {
    let n_bytes = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    to.extend_from_slice(&n_bytes.to_le_bytes());
    to.extend_from_slice(bytes);
}

/// Takes what [`put`] added from the beginning of `bytes`; none where it is not whole.
pub(crate) fn get<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (n_bytes, rest) = bytes.split_first_chunk()?;
    let (taken, rest) = rest.split_at_checked(u32::from_le_bytes(*n_bytes) as usize)?;
    *bytes = rest;
    Some(taken)
}

/// The whole of a worker process: does what the order on standard input says, and ends the process.
pub fn compile_worker() -> ! {
    let code = match prepared() {
        Ok(()) => 0,
        Err(error) => failed(&error),
    };
    confine::exit(code)
}

fn failed(error: &Error) -> i32 {
    let (code, message) = if error.code == pie_core::ErrorCode::InvalidProgram {
        (EXIT_INVALID, error.message.clone())
    } else {
        (EXIT_FAILED, error.to_string())
    };
    // Nobody listens where this cannot be written.
    drop(writeln!(std::io::stderr(), "{message}"));
    code
}

/// Makes ready what the work needs and can only have before the process is confined, and does the work.
fn prepared() -> Result<(), Error> {
    let lacking = confine::leave();
    let order = read_order()?;
    priority::lower_this_thread(NICENESS);
    let engine = match order.work {
        Work::Compile { n_threads, .. } => {
            start_threads(n_threads)?;
            // Its pools are address space, not memory.
            Some(wasm_engine(&order.work.config())?)
        }
        Work::Strip => None,
    };
    let work = move || {
        confine::limit(order.cpu_s, order.memory_bytes)?;
        let mut lacking = lacking;
        lacking.note(confine::Step::Calls, confine::filter()?);
        answer(&[lacking.bits()])?;
        let mut supplied = Vec::new();
        std::io::stdin()
            .read_to_end(&mut supplied)
            .map_err(Error::internal)?;
        match &engine {
            Some(engine) => answer(&artefact::precompile(engine, &supplied)?),
            None => strip(&supplied),
        }
    };
    // The limits count the stack of this thread as there already; the process ends with its work.
    let thread = thread::Builder::new()
        .stack_size(STACK_BYTES)
        .spawn(move || {
            confine::exit(match work() {
                Ok(()) => 0,
                Err(error) => failed(&error),
            })
        })
        .map_err(Error::internal)?;
    thread
        .join()
        .map_err(|_| Error::internal("the work ended in a panic"))
}

impl Work {
    fn config(&self) -> HostConfig {
        let mut config = HostConfig::default();
        if let Self::Compile {
            max_processes,
            stack_bytes,
            memory_bytes,
            ..
        } = *self
        {
            config.max_processes = max_processes;
            config.stack_bytes = stack_bytes;
            config.limits.memory_bytes = memory_bytes;
        }
        config
    }
}

fn read_order() -> Result<Order, Error> {
    let mut stdin = std::io::stdin().lock();
    let mut length = [0; 4];
    stdin.read_exact(&mut length).map_err(Error::internal)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > MAX_ORDER_BYTES {
        return Err(Error::internal(format!(
            "an order has {length} bytes, more than {MAX_ORDER_BYTES}"
        )));
    }
    let mut order = vec![0; length];
    stdin.read_exact(&mut order).map_err(Error::internal)?;
    serde_json::from_slice(&order).map_err(Error::internal)
}

/// Starts the threads that compile functions.
fn start_threads(n_threads: usize) -> Result<(), Error> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(n_threads)
        .stack_size(THREAD_STACK_BYTES)
        .build_global()
        .map_err(Error::internal)
}

/// Answers script by script, so that the engine knows which one a worker ends over.
fn strip(scripts: &[u8]) -> Result<(), Error> {
    let damaged = || Error::internal("the scripts of an order are cut off");
    let mut rest = scripts;
    while !rest.is_empty() {
        let path = get(&mut rest).ok_or_else(damaged)?;
        let content = get(&mut rest).ok_or_else(damaged)?;
        let path = std::str::from_utf8(path).map_err(Error::internal)?;
        let content = std::str::from_utf8(content).map_err(Error::internal)?;
        let stripped = typescript::strip_types(path, content.to_owned());
        let (kind, text) = match &stripped {
            Ok(stripped) if stripped == content => {
                answer(&[Answer::Same as u8])?;
                continue;
            }
            Ok(stripped) => (Answer::Changed, stripped),
            Err(message) => (Answer::Refused, message),
        };
        let mut said = vec![kind as u8];
        put(&mut said, text.as_bytes());
        answer(&said)?;
        if kind == Answer::Refused {
            break;
        }
    }
    Ok(())
}

fn answer(bytes: &[u8]) -> Result<(), Error> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(bytes).map_err(Error::internal)?;
    stdout.flush().map_err(Error::internal)
}
