//! Work on what users supply, in a process of its own (`worker`): bounded in time and memory, and killed when nobody
//! wants it any more.

use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::confine::Lacking;
use super::single_flight::Shift;
use super::worker::{EXIT_INVALID, Order, put};
use crate::Error;

/// How often it is looked whether the work is still wanted.
const LOOK: Duration = Duration::from_millis(20);
/// How often it is looked whether a worker that has closed its output has ended.
const LOOK_AT_END: Duration = Duration::from_micros(200);
/// The most that is kept of what a worker says.
const MAX_SAID_BYTES: u64 = 2048;
/// What is read at once.
const CHUNK_BYTES: usize = 64 << 10;

/// How workers are started, and what they said of themselves.
#[derive(Debug)]
pub(crate) struct Workers {
    /// The program that calls [`crate::compile_worker`], and its arguments.
    command: Vec<String>,
    /// The bits of [`Lacking`] that were told.
    lacking: AtomicU8,
}

impl Workers {
    pub(crate) fn new(command: Vec<String>) -> Self {
        Self {
            command,
            lacking: AtomicU8::new(0),
        }
    }

    /// Which steps of their confinement the system has refused so far.
    pub(crate) fn lacking(&self) -> Lacking {
        Lacking::from_bits(self.lacking.load(Ordering::Relaxed))
    }

    /// One said what it lacks; what is new is logged.
    fn note(&self, lacking: Lacking) {
        let known = self.lacking.fetch_or(lacking.bits(), Ordering::Relaxed);
        for lack in Lacking::from_bits(lacking.bits() & !known).told() {
            tracing::warn!(
                "the system does not confine the processes that read programs as it should: {lack}; `pie doctor` shows what holds"
            );
        }
    }
}

/// One piece of work.
pub(crate) struct Job<'a> {
    pub(crate) workers: &'a Workers,
    pub(crate) order: Order,
    /// What the user supplied, in parts.
    pub(crate) supplied: &'a [&'a [u8]],
    /// How long it may take.
    pub(crate) wall: Duration,
    /// The most bytes that it may answer.
    pub(crate) most_bytes: usize,
}

/// How work ended.
#[derive(Debug)]
pub(crate) enum Ended {
    /// Its result.
    Done(Vec<u8>),
    /// Not well; with what it had answered.
    Failed(Fault, Vec<u8>),
    /// Its shift was over: it is begun anew later.
    Over,
}

/// Why work has no result.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// What was supplied is not valid, and why.
    Invalid(String),
    TooLong,
    /// It had little of the processor, and might have been done in time with more.
    Starved,
    TooMuchMemory,
    /// The worker ended by a signal, as where it has no more stack.
    Crashed,
    /// Something else, which is not the user's.
    Internal(String),
}

/// What ends work early.
pub(crate) struct Wanted {
    /// Changed, or without a sender, once the engine stops.
    pub(crate) stopping: watch::Receiver<()>,
    /// Set once nobody waits for the result.
    pub(crate) given_up: Arc<AtomicBool>,
    /// The turn in which it is done.
    pub(crate) shift: Shift,
}

/// Sets its flag when it is dropped: held by who waits for work.
pub(crate) struct GiveUp(Arc<AtomicBool>);

impl GiveUp {
    /// One that waits, and the flag.
    pub(crate) fn new() -> (Self, Arc<AtomicBool>) {
        let given_up = Arc::new(AtomicBool::new(false));
        (Self(given_up.clone()), given_up)
    }
}

impl Drop for GiveUp {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

impl Job<'_> {
    /// Does the work. Blocks; the process is gone when this returns.
    ///
    /// # Errors
    /// `internal` where it cannot be started, `engine-stopped` where nobody wants it any more.
    pub(crate) fn run(&self, wanted: &Wanted) -> Result<Ended, Error> {
        let mut worker = self.start().map_err(|error| {
            Error::internal(format!(
                "the compiler {:?} cannot be started: {error}",
                self.workers.command
            ))
        })?;
        let order = serde_json::to_vec(&self.order).map_err(Error::internal)?;
        thread::scope(|scope| {
            let streams = (
                worker.0.stdin.take(),
                worker.0.stdout.take(),
                worker.0.stderr.take(),
            );
            let (Some(mut stdin), Some(stdout), Some(stderr)) = streams else {
                return Err(Error::internal("a worker has no streams"));
            };
            let write = move || {
                let mut head = Vec::new();
                put(&mut head, &order);
                // A worker that has ended says why by itself.
                drop(stdin.write_all(&head));
                for part in self.supplied {
                    drop(stdin.write_all(part));
                }
            };
            let (closed, is_closed) = mpsc::channel::<()>();
            let read = move || {
                let answer = read_answer(stdout, self.most_bytes);
                // Dropped, it says that there is no more.
                drop(closed);
                answer
            };
            let begin = || thread::Builder::new().name("pie-worker-io".to_owned());
            let begun = begin().spawn_scoped(scope, write).and_then(|_| {
                let said = begin().spawn_scoped(scope, move || read_some(stderr))?;
                Ok((said, begin().spawn_scoped(scope, read)?))
            });
            let (said, answer) = begun.map_err(|error| {
                // The system has no thread left. Those that there are end with the worker.
                worker.end();
                Error::internal(format!("a worker cannot be spoken with: {error}"))
            })?;
            let waited = worker.wait(self.wall, wanted, &is_closed);
            // What reads and writes ends with the process.
            worker.end();
            let (lacking, answer) = answer
                .join()
                .map_err(|_| Error::internal("reading ended in a panic"))?;
            self.workers.note(lacking);
            let said = said.join().unwrap_or_default();
            Ok(self.ended(waited?, answer, said))
        })
    }

    /// How the work ended, by what its process answered and said.
    fn ended(&self, waited: Waited, answer: Vec<u8>, said: String) -> Ended {
        let status = match waited {
            Waited::Exit(status) => status,
            Waited::Over => return Ended::Over,
            Waited::TooLong(fault) => return Ended::Failed(fault, answer),
        };
        if answer.len() > self.most_bytes {
            return Ended::Failed(Fault::TooMuchMemory, Vec::new());
        }
        match fault(status, said) {
            None => Ended::Done(answer),
            Some(fault) => Ended::Failed(fault, answer),
        }
    }

    fn start(&self) -> std::io::Result<Worker> {
        let (program, arguments) = self.workers.command.split_first().ok_or_else(|| {
            std::io::Error::new(std::io::ErrorKind::InvalidInput, "the command is empty")
        })?;
        Command::new(program)
            .args(arguments)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A group of its own: Ctrl-C is for us to answer.
            .process_group(0)
            .spawn()
            .map(Worker)
    }
}

/// A worker that does not outlive this.
struct Worker(Child);

enum Waited {
    Exit(ExitStatus),
    TooLong(Fault),
    Over,
}

impl Worker {
    /// Waits for the end of the worker, which closes its output with it.
    fn wait(
        &mut self,
        wall: Duration,
        wanted: &Wanted,
        is_closed: &Receiver<()>,
    ) -> Result<Waited, Error> {
        let deadline = Instant::now() + wall;
        let mut has_closed = false;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if has_closed {
                thread::sleep(LOOK_AT_END);
            } else {
                has_closed =
                    is_closed.recv_timeout(LOOK.min(left)) != Err(RecvTimeoutError::Timeout);
            }
            if has_closed && let Some(status) = self.0.try_wait().map_err(Error::internal)? {
                return Ok(Waited::Exit(status));
            }
            if left.is_zero() {
                let computed = self.computed().unwrap_or(wall);
                let fault = if computed < wall / 2 {
                    Fault::Starved
                } else {
                    Fault::TooLong
                };
                return Ok(Waited::TooLong(fault));
            }
            if wanted.given_up.load(Ordering::Acquire)
                || !matches!(wanted.stopping.has_changed(), Ok(false))
            {
                return Err(crate::errors::stopped());
            }
            if !has_closed && wanted.shift.is_over() {
                return Ok(Waited::Over);
            }
        }
    }

    /// For how long it has computed on all its threads, where the system tells.
    fn computed(&self) -> Option<Duration> {
        const TICK: Duration = Duration::from_millis(10);
        let told = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id())).ok()?;
        // The name of the command may hold anything; the times are the 12th and 13th field after its parenthesis.
        let (_, fields) = told.rsplit_once(')')?;
        let ticks = fields.split_whitespace().skip(11).take(2);
        let ticks: u32 = ticks.filter_map(|n| n.parse::<u32>().ok()).sum();
        Some(TICK * ticks)
    }

    fn end(&mut self) {
        // One that has ended cannot be killed.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.end();
    }
}

/// What a worker says of itself, which is nothing where it did not come so far, and its answer.
fn read_answer(mut from: impl Read, most_bytes: usize) -> (Lacking, Vec<u8>) {
    let mut bits = [0];
    // What cannot be read is missing at the end, which is looked at.
    drop(from.read_exact(&mut bits));
    (Lacking::from_bits(bits[0]), read_all(from, most_bytes))
}

/// All of an output, and one byte more where it has more than it may.
fn read_all(mut from: impl Read, most_bytes: usize) -> Vec<u8> {
    let mut all = Vec::new();
    let most = (most_bytes as u64).saturating_add(1);
    // What cannot be read is missing at the end, which is looked at.
    drop(from.by_ref().take(most).read_to_end(&mut all));
    all
}

/// The beginning of an output. The rest is read and dropped, so that its writer does not wait.
fn read_some(mut from: impl Read) -> String {
    let mut said = Vec::new();
    let mut rest = vec![0; CHUNK_BYTES];
    // What cannot be read is left out of the message.
    drop(from.by_ref().take(MAX_SAID_BYTES).read_to_end(&mut said));
    while from.read(&mut rest).is_ok_and(|n_bytes| n_bytes > 0) {}
    String::from_utf8_lossy(&said).trim().to_owned()
}

/// What an end says.
fn fault(status: ExitStatus, said: String) -> Option<Fault> {
    if status.success() {
        return None;
    }
    if status.code() == Some(EXIT_INVALID) {
        return Some(Fault::Invalid(said));
    }
    // An allocation that is refused aborts; a thread that gets no memory for its stack panics.
    if said.contains("memory allocation of") || said.contains("Cannot allocate memory") {
        return Some(Fault::TooMuchMemory);
    }
    Some(match status.signal() {
        Some(libc::SIGXCPU) => Fault::TooLong,
        // Says nothing of what it worked at, so it is tried again when it is asked for again.
        Some(libc::SIGKILL) => Fault::Internal(
            "the compiler was killed, perhaps for want of memory; try again".to_owned(),
        ),
        Some(libc::SIGSEGV | libc::SIGBUS | libc::SIGABRT | libc::SIGILL) => Fault::Crashed,
        _ => Fault::Internal(format!("the compiler ended with {status}: {said}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_worker_says_what_was_wrong() {
        for (status, said, expected) in [
            (0, "", None),
            (
                EXIT_INVALID << 8,
                "no",
                Some(Fault::Invalid("no".to_owned())),
            ),
            (libc::SIGXCPU, "", Some(Fault::TooLong)),
            (libc::SIGSEGV, "", Some(Fault::Crashed)),
            (
                libc::SIGABRT,
                "thread has overflowed its stack",
                Some(Fault::Crashed),
            ),
            (
                libc::SIGABRT,
                "memory allocation of 9 bytes failed",
                Some(Fault::TooMuchMemory),
            ),
        ] {
            assert_eq!(
                fault(ExitStatus::from_raw(status), said.to_owned()),
                expected,
                "{status}"
            );
        }
        let killed = fault(ExitStatus::from_raw(libc::SIGKILL), String::new());
        assert!(matches!(killed, Some(Fault::Internal(_))), "{killed:?}");
        let unknown = fault(ExitStatus::from_raw(libc::SIGSYS), String::new());
        assert!(matches!(unknown, Some(Fault::Internal(_))), "{unknown:?}");
    }

    #[test]
    fn a_worker_says_first_what_it_lacks() {
        assert_eq!(
            read_answer(&b"\x00ab"[..], 5),
            (Lacking::default(), b"ab".to_vec())
        );
        assert_eq!(read_answer(&b""[..], 5), (Lacking::default(), Vec::new()));
        let workers = Workers::new(Vec::new());
        workers.note(read_answer(&b"\x04"[..], 5).0);
        workers.note(read_answer(&b"\x00"[..], 5).0);
        assert_eq!(
            workers.lacking().told().collect::<Vec<_>>(),
            ["they run as root (setresuid)"]
        );
    }

    #[test]
    fn who_no_longer_waits_says_so() {
        let (waits, given_up) = GiveUp::new();
        assert!(!given_up.load(Ordering::Acquire));
        drop(waits);
        assert!(given_up.load(Ordering::Acquire));
    }

    #[test]
    fn an_output_is_read_to_its_bound() {
        assert_eq!(read_all(&b"12345"[..], 5), b"12345");
        assert_eq!(read_all(&b"123456789"[..], 5), b"123456");
        let long = vec![b'x'; 3 * CHUNK_BYTES];
        assert_eq!(read_some(&long[..]).len() as u64, MAX_SAID_BYTES);
    }
}
