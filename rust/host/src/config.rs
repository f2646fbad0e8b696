//! What a host is made with. Every value is checked when the host is made.

use std::path::PathBuf;

use pie_core::ErrorCode;

use crate::{Error, Limits};

/// The configuration of a host.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// Where compiled programs are kept between runs; none: nowhere.
    pub cache_dir: Option<PathBuf>,
    /// Where the engine keeps what has to outlive it; none: nowhere. The language runtimes that it ran with lie in `runtimes` below it.
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
    /// The same of the threads that run programs which compute without waiting, 0 to 19; never less than `worker_niceness`.
    pub background_niceness: u8,
    /// Processes that may live at once.
    pub max_processes: u32,
    /// The command of the process that compiles what users supply, to which its order is added as an argument: a program that calls
    /// [`crate::compile_worker`]. None: components are compiled in this process, without limits.
    pub compiler: Option<Vec<String>>,
    /// Compiled programs kept in memory, beside the language runtimes.
    pub max_programs: usize,
    /// Bytes of stack that a program may use.
    pub stack_bytes: usize,
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
        self.limits.check()
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
