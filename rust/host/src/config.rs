//! What a host is made with. Every value is checked when the host is made.

use std::path::PathBuf;
use std::sync::Arc;

use pie_core::ErrorCode;

use crate::budget::{self, Budget};
use crate::{Error, Limits};

/// Components that may be compiled at once. What they may take is reserved from the memory of the engine.
pub(crate) const PARALLEL_COMPILATIONS: usize = 2;
/// One part in this many of the engine's memory is what one compilation may take at most.
const COMPILE_PART: u64 = 8;

/// The configuration of a host.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// Where compiled programs are kept between runs; none: nowhere.
    pub cache_dir: Option<PathBuf>,
    /// Where the engine keeps what has to outlive it; none: nowhere. The language runtimes that it ran with lie in
    /// `runtimes` below it.
    pub data_dir: Option<PathBuf>,
    /// The component that runs Python sources.
    pub python_runtime: Option<PathBuf>,
    /// The component that runs JavaScript and TypeScript sources.
    pub javascript_runtime: Option<PathBuf>,
    /// The name by which programs know this engine; none: a random one.
    pub instance_id: Option<String>,
    /// Threads that run programs; 0: one for each core.
    pub worker_threads: usize,
    /// How much lower the priority of those threads is than the driver's, in steps of `nice`, 0 to 19.
    pub worker_niceness: u8,
    /// The same of the first thread that runs programs which compute without waiting, 0 to 19; never less than
    /// `worker_niceness`. The others do so when no other thread wants the core.
    pub background_niceness: u8,
    /// Processes that may live at once.
    pub max_processes: u32,
    /// The command of the process that works on what users supply: a program that calls [`crate::compile_worker`]. It
    /// compiles components and removes types from scripts. None: components are compiled in this process, without
    /// limits, which is for those that one trusts; and sources in JavaScript are refused, since nothing in this process
    /// reads them.
    pub compiler: Option<Vec<String>>,
    /// Compiled programs kept in memory, beside the language runtimes.
    pub max_programs: usize,
    /// Bytes of stack that a program may use.
    pub stack_bytes: usize,
    /// Bytes that all users together may make the engine hold, compiling included; see [`crate::Budget`].
    pub memory_bytes: u64,
    /// Bytes that one user may make it hold; none: three eighths of them.
    pub user_memory_bytes: Option<u64>,
    /// What each process may use.
    pub limits: Limits,
}

impl Default for HostConfig {
    fn default() -> Self {
        Self {
            cache_dir: None,
            data_dir: None,
            python_runtime: None,
            javascript_runtime: None,
            instance_id: None,
            worker_threads: 0,
            worker_niceness: 5,
            background_niceness: 10,
            max_processes: 256,
            compiler: None,
            max_programs: 64,
            stack_bytes: 32 << 20,
            memory_bytes: 4 << 30,
            user_memory_bytes: None,
            limits: Limits::default(),
        }
    }
}

impl HostConfig {
    /// Checks every value against its range.
    ///
    /// # Errors
    /// `invalid-config`, naming the setting, its value and the range.
    pub(crate) fn check(&self) -> Result<(), Error> {
        in_range("worker_threads", self.worker_threads as u64, 0, 1024)?;
        in_range("worker_niceness", u64::from(self.worker_niceness), 0, 19)?;
        in_range(
            "background_niceness",
            u64::from(self.background_niceness),
            0,
            19,
        )?;
        in_range("max_processes", u64::from(self.max_processes), 1, 20_000)?;
        in_range("max_programs", self.max_programs as u64, 1, 1 << 20)?;
        in_range("stack_bytes", self.stack_bytes as u64, 64 << 10, 256 << 20)?;
        in_range(
            "memory_bytes",
            self.memory_bytes,
            budget::LEAST_BYTES,
            1 << 50,
        )?;
        if let Some(user_bytes) = self.user_memory_bytes {
            in_range("user_memory_bytes", user_bytes, 1 << 20, 1 << 50)?;
        }
        self.limits.check()
    }

    /// Bytes that one compilation may take: the limit, or an eighth of the engine's memory where that is less.
    pub(crate) fn compile_bytes(&self) -> u64 {
        self.limits
            .compile_bytes
            .min(self.memory_bytes / COMPILE_PART)
    }

    /// The budget of what users may make the engine hold: its memory less what compiling may take.
    pub(crate) fn budget(&self) -> Arc<Budget> {
        let compiling = self.compile_bytes() * PARALLEL_COMPILATIONS as u64;
        Budget::new(self.memory_bytes - compiling, self.user_memory_bytes)
    }
}

fn in_range(name: &str, value: u64, low: u64, high: u64) -> Result<(), Error> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(Error::new(
        ErrorCode::InvalidConfig,
        format!("{name} = {value} is outside {low} to {high}"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_out_of_range_is_named_with_its_range() {
        let config = HostConfig {
            max_processes: 0,
            ..HostConfig::default()
        };
        let error = config.check().unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidConfig);
        assert_eq!(error.message, "max_processes = 0 is outside 1 to 20000");
    }

    #[test]
    fn the_defaults_are_valid() {
        HostConfig::default().check().unwrap();
    }
}
