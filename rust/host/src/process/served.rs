//! Processes that live without a reader: launched for clients that come and go.

use std::sync::Arc;
use std::time::Duration;

use pie_core::{ErrorCode, TokenBudget};

use super::log::LogText;
use super::purse::Holding;
use super::queue::{DetachableQueue, Next, NotAttached};
use super::record::ProcessRecord;
use crate::Error;
use crate::event::Event;

/// A launched program that runs to its end whoever holds it. One reader at a time is attached to its events: while one
/// is, a program whose reader is slow is suspended; while none is, nothing suspends it, and the oldest output is
/// dropped and counted.
#[derive(Clone, Debug)]
pub struct ServedProcess {
    record: Arc<ProcessRecord>,
    events: Arc<DetachableQueue>,
}

impl ServedProcess {
    pub(crate) fn new(record: Arc<ProcessRecord>, events: Arc<DetachableQueue>) -> Self {
        Self { record, events }
    }

    pub(crate) const fn record(&self) -> &Arc<ProcessRecord> {
        &self.record
    }

    /// Its number, unique in its host.
    pub fn pid(&self) -> u64 {
        self.record.pid
    }

    /// The seed from which every unseeded draw derives; launching with it again repeats the run.
    pub fn launch_seed(&self) -> u64 {
        self.record.launch_seed
    }

    /// Attaches a reader, which gets at most `window_bytes` of payload (one event may go beyond) ahead of what it
    /// acknowledges. What it has already, the events up to `after_seq`, is acknowledged for it; 0: none.
    ///
    /// # Errors
    /// `process-attached` while another one is attached, `session-closed` when every event was taken, the last one
    /// among them, and `invalid-argument` for an `after_seq` beyond the last event.
    pub fn attach(&self, window_bytes: usize, after_seq: u64) -> Result<Reader, Error> {
        let attached = self.events.attach(window_bytes, after_seq);
        let (number, first_seq) = attached.map_err(|refused| {
            let pid = self.record.pid;
            match refused {
                NotAttached::Taken => Error::new(
                    ErrorCode::ProcessAttached,
                    format!("another client is attached to process {pid}; wait until it has gone, or read with `pie logs`"),
                ),
                NotAttached::Over => Error::new(
                    ErrorCode::SessionClosed,
                    format!("process {pid} has ended and its events were taken; `pie logs {pid}` shows its output, and so does `logs({pid})` of a client, whose `outcome({pid})` says how it ended"),
                ),
                NotAttached::Beyond { last_seq } => Error::new(
                    ErrorCode::InvalidArgument,
                    format!("after_seq = {after_seq} is beyond {last_seq}, the number of the last event of process {pid} so far; give the number of the last event that you have, or 0 for every event that waits"),
                ),
            }
        })?;
        if after_seq > 0 {
            self.events.acknowledge(number, after_seq);
        }
        Ok(Reader {
            events: self.events.clone(),
            number,
            first_seq: first_seq.max(after_seq + 1),
        })
    }

    /// True while a reader is attached.
    pub fn is_attached(&self) -> bool {
        self.events.is_attached()
    }

    /// Sends a message to the program's `receive`.
    ///
    /// # Errors
    /// `limit-message` for one that is too long, `limit-queue` when too many wait, `session-closed` after
    /// [`ServedProcess::close_input`] or the end.
    pub fn send(&self, message: String) -> Result<(), Error> {
        self.record.mailbox.send(message)
    }

    /// Sends a file to the program's `receive_file`.
    ///
    /// # Errors
    /// As [`ServedProcess::send`].
    pub fn send_file(&self, data: Vec<u8>) -> Result<(), Error> {
        self.record.files.send(data)
    }

    /// Disconnects: when the program has received what waits, `receive` and `receive_file` answer `session-closed`.
    pub fn close_input(&self) {
        self.record.close_input();
    }

    /// Ends the process for `reason`, an error of the code `cancelled`; without effect when it has ended before.
    pub fn cancel(&self, reason: &str) {
        self.record.stop(Error::new(ErrorCode::Cancelled, reason));
    }

    /// Ends the process with an error of that code; without effect when it has ended before.
    pub fn end(&self, code: ErrorCode, reason: &str) {
        self.record.stop(Error::new(code, reason));
    }

    /// True while a child of it lives that ends with it.
    pub fn has_children(&self) -> bool {
        self.record.has_children()
    }

    /// Processor time that the program has used.
    pub fn cpu(&self) -> Duration {
        self.record.cpu.used()
    }

    /// Tokens that have entered its contexts, those that it wrote and those that it got.
    pub fn n_tokens(&self) -> u64 {
        self.record.budget.as_ref().map_or(0, TokenBudget::n_used)
    }

    /// What it has of the market for pages, in each model; nothing once it has ended.
    pub fn holdings(&self) -> Vec<Holding> {
        let purse = self.record.kin.purse();
        purse.map_or_else(Vec::new, |purse| purse.holdings())
    }

    /// Events dropped so far because nobody was attached.
    pub fn n_dropped(&self) -> u64 {
        self.events.n_dropped()
    }

    /// True while a reader is attached that has not acknowledged the last event.
    pub fn is_being_read(&self) -> bool {
        self.events.is_being_read()
    }

    /// Gives up the events and the log of a process that has ended. A reader that is attached and did not get all of
    /// them gets the error `unknown-process` in the place of what is missing.
    pub fn forget(&self) {
        self.events.forget();
    }

    /// Bytes of events and log that are held for the process.
    pub fn held_bytes(&self) -> usize {
        self.events.held_bytes()
    }

    /// Its output from position `after` on (bytes since the launch), at most the last `tail_bytes`; what is older than
    /// the kept log is gone.
    pub fn log(&self, after: u64, tail_bytes: usize) -> LogText {
        self.events.log(after, tail_bytes)
    }

    /// The last event, also when it was taken; none while the process lives, and after [`ServedProcess::forget`].
    pub fn outcome(&self) -> Option<Arc<Event>> {
        self.events.outcome()
    }

    /// Waits until there is output after position `after`, or the process has ended.
    pub async fn log_grown(&self, after: u64) {
        loop {
            let changed = self.events.changed();
            let log = self.events.log(after, 0);
            if log.ended || log.next > after {
                return;
            }
            changed.await;
        }
    }
}

/// The one reader of a process. When it is dropped, what it did not acknowledge waits for the next one.
#[derive(Debug)]
pub struct Reader {
    events: Arc<DetachableQueue>,
    number: u64,
    first_seq: u64,
}

impl Reader {
    /// The sequence number of the first event that it gets.
    pub fn first_seq(&self) -> u64 {
        self.first_seq
    }

    /// The next event and its sequence number. It waits while there is none and while the window is full; none after
    /// the last event and after [`Reader::detach`].
    pub async fn next(&self) -> Option<(u64, Arc<Event>)> {
        loop {
            let changed = self.events.changed();
            match self.events.read(self.number) {
                Next::Event(seq, event) => return Some((seq, event)),
                Next::Over => return None,
                Next::Wait => changed.await,
            }
        }
    }

    /// Everything up to `seq` was taken: it is forgotten, and the window moves.
    pub fn acknowledge(&self, seq: u64) {
        self.events.acknowledge(self.number, seq);
    }

    /// True when the last event was acknowledged, or when the reader is attached no more.
    pub fn is_drained(&self) -> bool {
        self.events.is_over(self.number)
    }

    /// Ends the attachment at once; dropping the reader does the same.
    pub fn detach(&self) {
        self.events.detach(self.number);
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.detach();
    }
}
