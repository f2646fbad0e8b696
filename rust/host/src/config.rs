//! What a host is made with. Every value is checked when the host is made.

use std::path::PathBuf;
use std::time::Duration;

use pie_core::ErrorCode;

use crate::Error;

/// The configuration of a host.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// Where compiled programs are kept between runs; none: nowhere.
    pub cache_dir: Option<PathBuf>,
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
    /// Processes that may live at once.
    pub max_processes: u32,
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
            python_runtime: None,
            javascript_runtime: None,
            instance_id: None,
            worker_threads: 0,
            worker_niceness: 5,
            max_processes: 256,
            max_programs: 64,
            stack_bytes: 32 << 20,
            limits: Limits::default(),
        }
    }
}

/// What one process may use.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of memory, summed over the memories of the instance.
    pub memory_bytes: u64,
    /// Processor time of the program itself; none: without limit.
    pub cpu: Option<Duration>,
    /// Time from launch to end; none: without limit.
    pub wall: Option<Duration>,
    /// Handles held at once: contexts, generators, futures, pollables, streams.
    pub resources: usize,
    /// Bytes that one call may carry from the program to the host, or one message or file from the client to the program.
    pub message_bytes: usize,
    /// Events that wait for the client, and messages, and files, that wait for the program, before the writer waits or is refused.
    pub queue_events: usize,
    /// Bytes in the events that wait for the client before the program waits, and in the messages, and in the files, that wait for the
    /// program before the next one is refused.
    pub queue_bytes: usize,
    /// Bytes of the files of a program that is launched from source.
    pub source_bytes: usize,
    /// Bytes of a component.
    pub component_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory_bytes: 256 << 20,
            cpu: Some(Duration::from_secs(300)),
            wall: None,
            resources: 10_000,
            message_bytes: 8 << 20,
            queue_events: 1024,
            queue_bytes: 1 << 20,
            source_bytes: 64 << 20,
            component_bytes: 256 << 20,
        }
    }
}

impl HostConfig {
    /// Checks every value against its range.
    ///
    /// # Errors
    /// `invalid-config`, naming the setting, its value and the range.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let limits = &self.limits;
        in_range("worker_threads", self.worker_threads as u64, 0, 1024)?;
        in_range("worker_niceness", u64::from(self.worker_niceness), 0, 19)?;
        in_range("max_processes", u64::from(self.max_processes), 1, 20_000)?;
        in_range("max_programs", self.max_programs as u64, 1, 1 << 20)?;
        in_range("stack_bytes", self.stack_bytes as u64, 64 << 10, 256 << 20)?;
        in_range(
            "limits.memory_bytes",
            limits.memory_bytes,
            64 << 10,
            4 << 30,
        )?;
        in_range("limits.resources", limits.resources as u64, 16, 10_000_000)?;
        in_range(
            "limits.message_bytes",
            limits.message_bytes as u64,
            1 << 10,
            1 << 30,
        )?;
        in_range(
            "limits.queue_events",
            limits.queue_events as u64,
            1,
            1 << 20,
        )?;
        in_range("limits.queue_bytes", limits.queue_bytes as u64, 1, 1 << 30)?;
        in_range(
            "limits.source_bytes",
            limits.source_bytes as u64,
            1,
            1 << 30,
        )?;
        in_range(
            "limits.component_bytes",
            limits.component_bytes as u64,
            8,
            1 << 30,
        )?;
        for (name, limit) in [("limits.cpu", limits.cpu), ("limits.wall", limits.wall)] {
            if limit.is_some_and(|limit| limit.is_zero()) {
                return Err(Error::new(
                    ErrorCode::InvalidConfig,
                    format!("{name} = 0 s lets no program run; give a positive time or none"),
                ));
            }
        }
        Ok(())
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
