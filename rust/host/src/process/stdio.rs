//! Standard output and error of a program, as events. A full queue of events suspends the program that prints.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use tokio::io::AsyncWrite;
use wasmtime_wasi::async_trait;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamError, StreamResult};

use super::queue::{EventQueue, writable};
use super::record::ProcessRecord;
use crate::Error;
use crate::event::{Event, EventKind};
use crate::limits::STREAM_BYTES;
use crate::sandbox::panicked::PanicListener;
use crate::sync::lock;

/// One of the two output streams of a process.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    record: Arc<ProcessRecord>,
    event: fn(String) -> Event,
    kind: EventKind,
    /// The first bytes of a character whose others have not been written.
    torn: Arc<Mutex<Vec<u8>>>,
    /// Bytes that the last `check_write` allowed and no write has used.
    permit: Arc<AtomicUsize>,
    /// Hears what is written to the standard error.
    panics: Option<Arc<Mutex<PanicListener>>>,
}

impl Output {
    pub(crate) fn stdout(record: Arc<ProcessRecord>) -> Self {
        Self::new(record, Event::Stdout, EventKind::Stdout)
    }

    pub(crate) fn stderr(record: Arc<ProcessRecord>) -> Self {
        Self {
            panics: Some(Arc::default()),
            ..Self::new(record, Event::Stderr, EventKind::Stderr)
        }
    }

    fn new(record: Arc<ProcessRecord>, event: fn(String) -> Event, kind: EventKind) -> Self {
        Self {
            record,
            event,
            kind,
            torn: Arc::default(),
            permit: Arc::default(),
            panics: None,
        }
    }

    /// What the program has said here of a panic of its own.
    pub(crate) fn panic(&self) -> Option<String> {
        lock(self.panics.as_ref()?).told()
    }

    /// What was said before is of another instance than the one that begins.
    pub(crate) fn forget_panic(&self) {
        if let Some(panics) = &self.panics {
            lock(panics).forget();
        }
    }

    /// Sends what is left of a character that was never completed.
    ///
    /// # Errors
    /// Those of [`EventQueue::push`].
    pub(crate) fn finish(&self) -> Result<(), Error> {
        let torn = std::mem::take(&mut *lock(&self.torn));
        if torn.is_empty() {
            return Ok(());
        }
        let rest = String::from_utf8_lossy(&torn).into_owned();
        self.record.events.push((self.event)(rest))
    }
}

/// Takes the whole characters from `pending`; bytes that can never be UTF-8 become U+FFFD, the beginning of a character
/// stays.
fn whole_characters(pending: &mut Vec<u8>) -> String {
    let mut text = String::new();
    let mut rest = pending.as_slice();
    loop {
        let error = match std::str::from_utf8(rest) {
            Ok(valid) => {
                text.push_str(valid);
                rest = &[];
                break;
            }
            Err(error) => error,
        };
        let (valid, after) = rest.split_at(error.valid_up_to());
        text.push_str(&String::from_utf8_lossy(valid));
        rest = after;
        match error.error_len() {
            Some(n_bytes) => {
                text.push(char::REPLACEMENT_CHARACTER);
                rest = &rest[n_bytes..];
            }
            None => break,
        }
    }
    *pending = rest.to_vec();
    text
}

#[async_trait]
impl Pollable for Output {
    async fn ready(&mut self) {
        writable(&self.record.events, self.kind).await;
    }
}

#[async_trait]
impl OutputStream for Output {
    /// A write without a permit is a fault of the program: it would grow the queue without bound.
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        let permit = self.permit.swap(0, Ordering::Relaxed);
        if bytes.len() > permit {
            return Err(StreamError::trap(&format!(
                "{} bytes were written where check-write permitted {permit}; ask check-write before each write",
                bytes.len()
            )));
        }
        self.record
            .count_output(bytes.len())
            .map_err(|error| StreamError::Trap(error.into()))?;
        let mut torn = lock(&self.torn);
        torn.extend_from_slice(&bytes);
        let text = whole_characters(&mut torn);
        drop(torn);
        if let Some(panics) = &self.panics {
            lock(panics).hear(&text);
        }
        if !text.is_empty() {
            let pushed = self.record.events.push((self.event)(text));
            pushed.map_err(|error| StreamError::Trap(error.into()))?;
        }
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        let permit = if self.record.events.has_room(self.kind) {
            STREAM_BYTES
        } else {
            0
        };
        self.permit.store(permit, Ordering::Relaxed);
        Ok(permit)
    }

    fn write_zeroes(&mut self, n_bytes: usize) -> StreamResult<()> {
        // More than any permit is refused by `write`, without the memory for it.
        self.write(Bytes::from(vec![0; n_bytes.min(STREAM_BYTES + 1)]))
    }
}

impl IsTerminal for Output {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Output {
    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }

    /// Serves later versions of WASI, which programs are not given.
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(tokio::io::sink())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::record;
    use super::*;
    use crate::Limits;

    fn output(limits: Limits) -> Output {
        Output::stdout(record(1, limits, false))
    }

    #[test]
    fn what_is_written_is_bounded_in_total() {
        let mut output = output(Limits {
            output_bytes: 5,
            ..Limits::default()
        });
        for (bytes, fits) in [("abc", true), ("de", true), ("f", false)] {
            output.check_write().unwrap();
            assert_eq!(
                output.write(Bytes::from_static(bytes.as_bytes())).is_ok(),
                fits
            );
        }
    }

    #[test]
    fn a_write_without_a_permit_is_a_fault() {
        let mut output = output(Limits {
            queue_events: 1,
            ..Limits::default()
        });
        let unasked = output.write(Bytes::from_static(b"x"));
        assert!(matches!(unasked, Err(StreamError::Trap(_))));
        assert_eq!(output.check_write().unwrap(), STREAM_BYTES);
        let huge = output.write_zeroes(usize::MAX);
        assert!(matches!(huge, Err(StreamError::Trap(_))));
        assert_eq!(output.check_write().unwrap(), STREAM_BYTES);
        output.write(Bytes::from_static(b"x")).unwrap();
        assert_eq!(output.check_write().unwrap(), 0);
        let full = output.write(Bytes::from_static(b"y"));
        assert!(matches!(full, Err(StreamError::Trap(_))));
    }

    #[test]
    fn characters_are_never_torn() {
        let mut pending = Vec::new();
        let mut text = String::new();
        for byte in "aß🦀".bytes() {
            pending.push(byte);
            text.push_str(&whole_characters(&mut pending));
        }
        assert_eq!(text, "aß🦀");
        assert!(pending.is_empty());
    }

    #[test]
    fn bytes_that_are_not_utf8_are_replaced() {
        let mut pending = b"a\xffb\xe2\x82".to_vec();
        assert_eq!(whole_characters(&mut pending), "a\u{fffd}b");
        assert_eq!(pending, b"\xe2\x82");
    }
}
