//! The processes of a host that have not ended.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pie_core::ErrorCode;

use crate::Error;
use crate::errors::stopped;
use crate::process::record::ProcessRecord;
use crate::sandbox::ticker::{Ticker, Ticking};
use crate::sync::lock;

/// The processes that have not ended.
pub(super) struct Live {
    most: u32,
    ticker: Ticker,
    state: Mutex<State>,
    all_ended: Condvar,
}

#[derive(Default)]
struct State {
    stopped: bool,
    processes: HashMap<u64, (Arc<ProcessRecord>, Ticking)>,
}

impl Live {
    /// A table of at most so many processes, which tick while there are some.
    pub(super) fn new(most: u32, ticker: Ticker) -> Self {
        Self {
            most,
            ticker,
            state: Mutex::default(),
            all_ended: Condvar::new(),
        }
    }

    /// Enters a process that begins.
    ///
    /// # Errors
    /// `limit-processes` when too many live, `engine-stopped` after [`Live::stop`].
    pub(super) fn enter(&self, record: &Arc<ProcessRecord>) -> Result<(), Error> {
        let mut state = lock(&self.state);
        if state.stopped {
            return Err(stopped());
        }
        let most = self.most;
        if state.processes.len() >= most as usize {
            let message = format!(
                "{most} processes live, the most that max_processes allows; wait for one to end, or raise the limit"
            );
            return Err(Error::new(ErrorCode::LimitProcesses, message));
        }
        let ticking = self.ticker.enter();
        state
            .processes
            .insert(record.pid, (record.clone(), ticking));
        Ok(())
    }

    /// Forgets a process that has ended.
    pub(super) fn end(&self, record: &ProcessRecord) {
        let mut state = lock(&self.state);
        state.processes.remove(&record.pid);
        record.close_input();
        if state.processes.is_empty() {
            self.all_ended.notify_all();
        }
    }

    /// Ends every process, and waits at most `patience` for them. Later ones are refused.
    pub(super) fn stop(&self, patience: Duration) {
        let mut state = lock(&self.state);
        state.stopped = true;
        for (record, _) in state.processes.values() {
            record.stop(stopped());
        }
        let deadline = Instant::now() + patience;
        while !state.processes.is_empty() {
            let Some(left) = deadline.checked_duration_since(Instant::now()) else {
                break;
            };
            let waited = self.all_ended.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// How many there are.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        lock(&self.state).processes.len()
    }
}
