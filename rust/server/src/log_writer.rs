//! Writes the many lines of the log by a thread of its own, so that a reader of the log who is slow, or has stopped,
//! holds up nobody. Where it does not keep up, lines are left out and counted. Before the process ends, it waits for a
//! moment until what it has taken is written.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// The target of the log by which launches and ends are told.
pub const PROCESS_LOG: &str = "pie::process";
/// The target of the log by which what programs write to standard error is told.
pub const PROGRAM_LOG: &str = "pie::program";

/// Lines that wait to be written.
const MAX_WAITING: usize = 4096;

/// A writer that never waits. Each write is one line, with its end.
#[derive(Clone, Debug)]
pub struct LogWriter {
    lines: SyncSender<Vec<u8>>,
    /// Lines that were left out, since the last one that told of them.
    n_lost: Arc<AtomicU64>,
    progress: Arc<Progress>,
}

/// How far the thread is that writes.
#[derive(Debug, Default)]
struct Progress {
    counts: Mutex<Counts>,
    advanced: Condvar,
}

#[derive(Debug, Default)]
struct Counts {
    /// Lines that it was handed.
    n_taken: u64,
    /// The first of them, with which it has done.
    n_done: u64,
}

impl Progress {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LogWriter {
    /// Starts the thread that writes to `out`; it ends with the last of the writers.
    ///
    /// # Errors
    /// What the system says where it starts no thread.
    pub fn start(mut out: impl Write + Send + 'static) -> io::Result<Self> {
        let (lines, waiting) = sync_channel::<Vec<u8>>(MAX_WAITING);
        let n_lost = Arc::new(AtomicU64::new(0));
        let lost = n_lost.clone();
        let progress = Arc::new(Progress::default());
        let advancing = progress.clone();
        let write = move || {
            for line in waiting {
                // Whoever read the log may have gone, and then there is nobody to tell.
                drop(out.write_all(&line));
                let n_lost = lost.swap(0, Ordering::Relaxed);
                if n_lost > 0 {
                    drop(writeln!(
                        out,
                        "({n_lost} lines of the log were left out: its reader was too slow)"
                    ));
                }
                advancing.counts().n_done += 1;
                advancing.advanced.notify_all();
            }
        };
        thread::Builder::new()
            .name("pie-log".to_owned())
            .spawn(write)?;
        Ok(Self {
            lines,
            n_lost,
            progress,
        })
    }

    /// Waits, `patience` at most, until every line is written that was taken before. False where some are not.
    pub fn drain(&self, patience: Duration) -> bool {
        let counts = self.progress.counts();
        let n_taken = counts.n_taken;
        let waited = self
            .progress
            .advanced
            .wait_timeout_while(counts, patience, |counts| counts.n_done < n_taken);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
}

impl Write for LogWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let copied = line.to_vec();
        // Held until the line is handed over: lines are counted in the order in which they are written.
        let mut counts = self.progress.counts();
        if self.lines.try_send(copied).is_ok() {
            counts.n_taken += 1;
        } else {
            self.n_lost.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// A reader of the log that takes a line only when it is let.
    struct Slow {
        lets: Receiver<()>,
        taken: Sender<String>,
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.lets
                .recv()
                .map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
            let text = String::from_utf8_lossy(bytes).into_owned();
            drop(self.taken.send(text));
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_come_in_their_order() {
        let ((lets, is_let), (taken, comes)) = (channel(), channel());
        let mut log = LogWriter::start(Slow {
            lets: is_let,
            taken,
        })
        .unwrap();
        for line in ["one\n", "two\n"] {
            log.write_all(line.as_bytes()).unwrap();
            lets.send(()).unwrap();
        }
        assert_eq!(comes.recv().unwrap(), "one\n");
        assert_eq!(comes.recv().unwrap(), "two\n");
    }

    #[test]
    fn an_end_waits_for_the_lines_before_it_and_no_longer_than_it_has_patience() {
        let ((lets, is_let), (taken, comes)) = (channel(), channel());
        let mut log = LogWriter::start(Slow {
            lets: is_let,
            taken,
        })
        .unwrap();
        assert!(log.drain(Duration::ZERO));
        log.write_all(b"one\n").unwrap();
        assert!(!log.drain(Duration::from_millis(1)));
        lets.send(()).unwrap();
        assert!(log.drain(Duration::from_secs(60)));
        assert_eq!(comes.try_recv().unwrap(), "one\n");
    }

    #[test]
    fn a_reader_that_has_stopped_holds_up_nobody_and_is_told_how_much_it_missed() {
        let ((lets, is_let), (taken, comes)) = (channel(), channel());
        let mut log = LogWriter::start(Slow {
            lets: is_let,
            taken,
        })
        .unwrap();
        for _ in 0..2 * MAX_WAITING {
            log.write_all(b"line\n").unwrap();
        }
        drop(log);
        let mut told = Vec::new();
        loop {
            // The writer has ended where nobody is to be let any more.
            if lets.send(()).is_err() {
                break;
            }
            match comes.recv() {
                Ok(text) => told.push(text),
                Err(_) => break,
            }
        }
        let text = told.concat();
        let n_lines = text.lines().filter(|line| *line == "line").count();
        assert!(
            (MAX_WAITING..=MAX_WAITING + 1).contains(&n_lines),
            "{n_lines}"
        );
        let n_lost = 2 * MAX_WAITING - n_lines;
        assert!(text.contains(&format!("({n_lost} lines of the log were left out")));
    }
}
