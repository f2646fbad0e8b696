//! The threads of a host that run programs.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::runtime::{Handle, Runtime};

use crate::errors::stopped;
use crate::sandbox::priority;
use crate::sync::lock;
use crate::{Error, HostConfig};

/// The threads that run programs.
pub(super) struct Threads {
    /// None once the host has stopped.
    runtimes: Mutex<Option<Runtimes>>,
    foreground: Handle,
    background: Handle,
    /// How many the tasks have.
    pub(super) n_foreground: usize,
}

struct Runtimes {
    /// Those of the tasks.
    foreground: Runtime,
    /// Those of lower priority, which tasks are handed to.
    background: Runtime,
}

impl Threads {
    /// Starts them.
    ///
    /// # Errors
    /// `internal` where there are none to be had.
    pub(super) fn start(config: &HostConfig) -> Result<Self, Error> {
        let foreground = runtime(config, "pie-worker", {
            let niceness = config.worker_niceness;
            move || priority::lower_this_thread(niceness)
        })?;
        let background = runtime(config, "pie-background", {
            let niceness = config.background_niceness.max(config.worker_niceness);
            let has_one = AtomicBool::new(false);
            // One of them gets its part of a core however busy the others are, so that what computes for long comes to
            // an end.
            move || match has_one.swap(true, Ordering::Relaxed) {
                false => priority::lower_this_thread(niceness),
                true => priority::idle_this_thread(),
            }
        })?;
        Ok(Self {
            n_foreground: foreground.metrics().num_workers(),
            foreground: foreground.handle().clone(),
            background: background.handle().clone(),
            runtimes: Mutex::new(Some(Runtimes {
                foreground,
                background,
            })),
        })
    }

    /// Those that run programs.
    pub(super) const fn foreground(&self) -> &Handle {
        &self.foreground
    }

    /// Those of lower priority.
    pub(super) fn background(&self) -> &Handle {
        &self.background
    }

    /// Runs a task among the programs.
    ///
    /// # Errors
    /// `engine-stopped` once they are closed.
    pub(super) fn spawn(
        &self,
        task: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), Error> {
        let runtimes = lock(&self.runtimes);
        let runtimes = runtimes.as_ref().ok_or_else(stopped)?;
        runtimes.foreground.spawn(task);
        Ok(())
    }

    /// Takes no more tasks. Those that run continue until the returned value is dropped.
    pub(super) fn close(&self) -> Closed {
        Closed(lock(&self.runtimes).take())
    }
}

/// Threads that take no more tasks; they end without being waited for when it is dropped.
pub(super) struct Closed(Option<Runtimes>);

impl Drop for Closed {
    fn drop(&mut self) {
        if let Some(runtimes) = self.0.take() {
            runtimes.foreground.shutdown_background();
            runtimes.background.shutdown_background();
        }
    }
}

fn runtime(
    config: &HostConfig,
    name: &'static str,
    on_thread_start: impl Fn() + Send + Sync + 'static,
) -> Result<Runtime, Error> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder
        .enable_all()
        .thread_name(name)
        .on_thread_start(on_thread_start);
    if config.worker_threads > 0 {
        builder.worker_threads(config.worker_threads);
    }
    builder.build().map_err(|error| {
        Error::internal(format!(
            "the threads for programs cannot be started: {error}"
        ))
    })
}
