//! What the host tells about a process: its standard error is written to the log of the server, its end is reported to
//! the table.

use std::time::Instant;

use pie_host::Event;

use crate::log_writer::PROGRAM_LOG;
use crate::pacing::Pacing;

/// Who is told of the end of a process.
type Ended = Box<dyn Fn(u64, &Event) + Send + Sync>;

/// The observer of one process.
pub(super) struct ProcessObserver {
    /// The program, as people know it.
    shown: String,
    ended: Ended,
    pacing: Pacing,
}

impl ProcessObserver {
    pub(super) fn new(shown: String, ended: Ended) -> Self {
        Self {
            shown,
            ended,
            pacing: Pacing::new(),
        }
    }
}

impl pie_host::Observer for ProcessObserver {
    fn stderr(&self, pid: u64, text: &str) {
        if tracing::enabled!(target: PROGRAM_LOG, tracing::Level::INFO) {
            self.pacing.lines(text, Instant::now(), |line| {
                tracing::info!(target: PROGRAM_LOG, pid, program = self.shown, "{line}");
            });
        }
    }

    fn ended(&self, pid: u64, last: &Event) {
        (self.ended)(pid, last);
    }
}
