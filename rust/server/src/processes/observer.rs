//! What the host tells about a process: its standard error is written to the log of the server, its end is reported to
//! the table.

use std::sync::Arc;
use std::time::Instant;

use pie_host::Event;

use crate::log_writer::PROGRAM_LOG;
use crate::pacing::Pacing;

/// Lines a second of one process in the log.
const OWN_LINES: u32 = 100;

/// Who is told of the end of a process.
type Ended = Box<dyn Fn(u64, &Event) + Send + Sync>;

/// The observer of one process.
pub(super) struct ProcessObserver {
    /// The program, as people know it.
    shown: String,
    ended: Ended,
    /// Of its own lines, and of those of all programs.
    pacing: Pacing,
    common: Arc<Pacing>,
}

impl ProcessObserver {
    pub(super) fn new(shown: String, common: Arc<Pacing>, ended: Ended) -> Self {
        Self {
            shown,
            ended,
            pacing: Pacing::new(OWN_LINES, "lines"),
            common,
        }
    }

    /// Logs a line, unless all programs together have too many.
    fn log(&self, pid: u64, line: &str, now: Instant) {
        self.common.lines(line, now, |line| {
            // Errors of handlers come by here, and the host cannot tell them from other lines.
            tracing::warn!(target: PROGRAM_LOG, pid, program = self.shown, "{line}");
        });
    }
}

impl pie_host::Observer for ProcessObserver {
    fn stderr(&self, pid: u64, text: &str) {
        if tracing::enabled!(target: PROGRAM_LOG, tracing::Level::WARN) {
            let now = Instant::now();
            self.pacing
                .lines(text, now, |line| self.log(pid, line, now));
        }
    }

    fn ended(&self, pid: u64, last: &Event) {
        if tracing::enabled!(target: PROGRAM_LOG, tracing::Level::WARN) {
            let now = Instant::now();
            self.pacing.end(|line| self.log(pid, line, now));
            // An end is an occasion to tell of lines of all that were left out before, where no more are written.
            self.log(pid, "", now);
        }
        (self.ended)(pid, last);
    }
}
