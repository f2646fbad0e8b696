//! Writes the many lines of the log by a thread of its own, so that a reader of the log who is slow, or has stopped,
//! holds up nobody. Where it does not keep up, lines are left out and counted.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

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
            }
        };
        thread::Builder::new()
            .name("pie-log".to_owned())
            .spawn(write)?;
        Ok(Self { lines, n_lost })
    }
}

impl Write for LogWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.lines.try_send(line.to_vec()).is_err() {
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
