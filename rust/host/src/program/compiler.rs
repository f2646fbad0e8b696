//! Compiling what users supply: in a process of its own, with limits on its time and its memory, so that no program can hold up the
//! engine or make it run out of memory by how it is built.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use pie_core::ErrorCode;
use tokio::sync::watch;

use super::artefact::invalid;
use super::worker::{EXIT_INVALID, Order};
use crate::{Error, HostConfig};

/// How often the worker is looked at.
const LOOK: Duration = Duration::from_millis(5);
/// The most that is read of what a worker says.
const MAX_SAID_BYTES: u64 = 2048;

/// A worker that is killed when its order is given up.
struct Worker {
    child: Child,
    code: File,
    said: File,
}

/// The machine code of a component, compiled by `command` in a process of its own. Blocks; ends early when `stopping` changes or has no sender left.
///
/// # Errors
/// `invalid-program` for one that is damaged, `limit-compile` for one that takes too much, `engine-stopped`.
pub(crate) fn compile_apart(
    command: &[String],
    config: &HostConfig,
    bytes: &[u8],
    stopping: &watch::Receiver<()>,
) -> Result<Vec<u8>, Error> {
    let mut worker = Worker::start(command, config, bytes).map_err(|error| {
        Error::internal(format!(
            "the compiler {command:?} cannot be started: {error}"
        ))
    })?;
    let deadline = Instant::now() + config.limits.compile;
    loop {
        if let Some(status) = worker.child.try_wait().map_err(Error::internal)? {
            return worker.answer(status, config);
        }
        if Instant::now() > deadline {
            return Err(took_too_long(config));
        }
        if !matches!(stopping.has_changed(), Ok(false)) {
            return Err(crate::host::stopped());
        }
        std::thread::sleep(LOOK);
    }
}

impl Worker {
    fn start(command: &[String], config: &HostConfig, bytes: &[u8]) -> std::io::Result<Self> {
        let (program, arguments) = command.split_first().ok_or_else(|| {
            std::io::Error::new(std::io::ErrorKind::InvalidInput, "the command is empty")
        })?;
        let mut component = tempfile::tempfile()?;
        component.write_all(bytes)?;
        component.seek(SeekFrom::Start(0))?;
        let (code, said) = (tempfile::tempfile()?, tempfile::tempfile()?);
        let order = serde_json::to_string(&Order::new(config))?;
        let child = Command::new(program)
            .args(arguments)
            .arg(order)
            .stdin(component)
            .stdout(Stdio::from(code.try_clone()?))
            .stderr(Stdio::from(said.try_clone()?))
            .env("RAYON_NUM_THREADS", n_threads().to_string())
            // A group of its own: Ctrl-C is for us to answer.
            .process_group(0)
            .spawn()?;
        Ok(Self { child, code, said })
    }

    /// What came of a worker that has ended.
    fn answer(&mut self, status: ExitStatus, config: &HostConfig) -> Result<Vec<u8>, Error> {
        if status.success() {
            let mut code = Vec::new();
            self.code
                .seek(SeekFrom::Start(0))
                .map_err(Error::internal)?;
            self.code.read_to_end(&mut code).map_err(Error::internal)?;
            return Ok(code);
        }
        let said = self.said();
        if status.code() == Some(EXIT_INVALID) {
            return Err(invalid(said));
        }
        match status.signal() {
            Some(libc::SIGXCPU | libc::SIGKILL) => Err(took_too_long(config)),
            // An allocation that is refused aborts; a thread that gets no memory for its stack panics.
            _ if said.contains("memory allocation of")
                || said.contains("Cannot allocate memory") =>
            {
                Err(took_too_much(config))
            }
            _ => Err(Error::internal(format!(
                "the compiler ended with {status}: {said}"
            ))),
        }
    }

    fn said(&mut self) -> String {
        let mut said = Vec::new();
        // What cannot be read is left out of the message.
        drop(self.said.seek(SeekFrom::Start(0)));
        drop((&self.said).take(MAX_SAID_BYTES).read_to_end(&mut said));
        String::from_utf8_lossy(&said).trim().to_owned()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // One that has ended cannot be killed.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Threads of one compilation.
pub(crate) fn n_threads() -> usize {
    const MOST: usize = 4;
    std::thread::available_parallelism().map_or(1, |n| n.get().min(MOST))
}

fn took_too_long(config: &HostConfig) -> Error {
    Error::new(
        ErrorCode::LimitCompile,
        format!(
            "compiling the program took longer than limits.compile_s = {} s; make it smaller, or raise the limit",
            config.limits.compile.as_secs_f64()
        ),
    )
}

fn took_too_much(config: &HostConfig) -> Error {
    Error::new(
        ErrorCode::LimitCompile,
        format!(
            "compiling the program took more memory than limits.compile_bytes = {}; make it smaller, or raise the limit",
            config.limits.compile_bytes
        ),
    )
}
