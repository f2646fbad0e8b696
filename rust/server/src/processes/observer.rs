//! What the host tells about a process: its standard error is written to the log of the server, its end is reported to
//! the table.

use std::time::Instant;

use pie_host::Event;

use crate::pacing::Pacing;

/// Who is told of the end of a process.
type Ended = Box<dyn Fn(u64, &Event) + Send + Sync>;

/// The observer of one process.
pub(super) struct ProcessObserver {
    label: String,
    ended: Ended,
    pacing: Pacing,
}

impl ProcessObserver {
    pub(super) fn new(label: String, ended: Ended) -> Self {
        Self {
            label,
            ended,
            pacing: Pacing::new(),
        }
    }
}

impl pie_host::Observer for ProcessObserver {
    fn stderr(&self, pid: u64, text: &str) {
        if tracing::enabled!(target: "pie::program", tracing::Level::INFO) {
            self.pacing.lines(text, Instant::now(), |line| {
                tracing::info!(target: "pie::program", pid, program = self.label, "{line}");
            });
        }
    }

    fn ended(&self, pid: u64, last: &Event) {
        (self.ended)(pid, last);
    }
}
