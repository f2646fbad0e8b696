//! What the host tells about a process: its standard error goes to the log of the server, its end to the table.

use super::*;
use crate::pacing::Pacing;

/// The observer of one process.
pub(super) struct Watch {
    /// Weak: the table holds the processes, and they hold their observers.
    processes: Weak<Processes>,
    label: String,
    pacing: Pacing,
}

impl Watch {
    pub(super) fn new(processes: &Arc<Processes>, label: String) -> Self {
        Self {
            processes: Arc::downgrade(processes),
            label,
            pacing: Pacing::new(),
        }
    }
}

impl pie_host::Observer for Watch {
    fn stderr(&self, pid: u64, text: &str) {
        if tracing::enabled!(target: "pie::program", tracing::Level::INFO) {
            self.pacing.lines(text, Instant::now(), |line| {
                tracing::info!(target: "pie::program", pid, program = self.label, "{line}");
            });
        }
    }

    fn ended(&self, pid: u64, last: &Event) {
        if let Some(processes) = self.processes.upgrade() {
            processes.ended(pid, last);
        }
    }
}
