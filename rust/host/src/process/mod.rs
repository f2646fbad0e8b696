//! Processes: launched programs, and the way to talk to them.

pub(crate) mod adapter_files;
pub(crate) mod arguments;
pub(crate) mod child;
pub(crate) mod ending;
pub(crate) mod family;
pub(crate) mod handles;
pub(crate) mod joined;
pub(crate) mod kin;
mod launch;
mod log;
pub(crate) mod mail;
pub(crate) mod mailbox;
pub(crate) mod mistakes;
pub(crate) mod nameable;
pub(crate) mod pace;
pub(crate) mod programs;
pub(crate) mod purse;
pub(crate) mod queue;
mod random;
pub(crate) mod reading;
pub(crate) mod record;
mod served;
mod serving;
pub(crate) mod standing;
pub(crate) mod standstill;
pub(crate) mod state;
mod stated;
pub(crate) mod stdio;
pub(crate) mod surroundings;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod texts;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use pie_core::ErrorCode;

pub use kin::Inherited;
pub use launch::Launch;
pub(crate) use launch::{MAX_ARGS, random_seed};
pub use log::LogText;
pub use programs::{Finding, Named, Programs};
pub use purse::Holding;
use queue::PipeQueue;
use record::ProcessRecord;
pub use served::{Reader, ServedProcess};
pub use serving::{Observer, Serving};

use crate::Error;
use crate::event::Event;

/// A launched program. Dropping it ends the process: nobody could read its events.
#[derive(Debug)]
pub struct Process {
    record: Arc<ProcessRecord>,
    events: Arc<PipeQueue>,
}

impl Process {
    pub(crate) fn new(record: Arc<ProcessRecord>, events: Arc<PipeQueue>) -> Self {
        Self { record, events }
    }

    /// Its number, unique in its host.
    pub fn pid(&self) -> u64 {
        self.record.pid
    }

    /// The seed from which every unseeded draw derives; launching with it again repeats the run.
    pub fn launch_seed(&self) -> u64 {
        self.record.launch_seed
    }

    /// The next event, waiting at most `timeout` for it, or for ever without one. None: nothing came in time, or
    /// everything was read ([`Process::is_drained`]).
    pub fn next_event(&self, timeout: Option<Duration>) -> Option<Event> {
        self.events.next(timeout)
    }

    /// Waits for the end and returns the last event; it skips those before. None where the last one was read already.
    pub(crate) async fn last_event(&self) -> Option<Event> {
        loop {
            let changed = self.events.changed();
            while let Some(event) = self.events.next(Some(Duration::ZERO)) {
                if event.is_last() {
                    return Some(event);
                }
            }
            if self.is_drained() {
                return None;
            }
            changed.await;
        }
    }

    /// True when the last event was read.
    pub fn is_drained(&self) -> bool {
        self.events.is_drained()
    }

    /// Sends a message to the program's `receive`.
    ///
    /// # Errors
    /// `limit-message` for one that is too long, `limit-queue` when too many wait, `session-closed` after
    /// [`Process::close_input`].
    pub fn send(&self, message: String) -> Result<(), Error> {
        self.record.mailbox.send(message)
    }

    /// Waits at most `timeout` until a message can be sent, or never will be; false when the time is over.
    pub fn wait_for_room(&self, timeout: Duration) -> bool {
        self.record.mailbox.wait_for_room(timeout)
    }

    /// Sends a file to the program's `receive_file`. Files wait in a queue of their own, bounded as that of the
    /// messages.
    ///
    /// # Errors
    /// As [`Process::send`].
    pub fn send_file(&self, data: Vec<u8>) -> Result<(), Error> {
        self.record.files.send(data)
    }

    /// Waits at most `timeout` until a file can be sent, or never will be; false when the time is over.
    pub fn wait_for_file_room(&self, timeout: Duration) -> bool {
        self.record.files.wait_for_room(timeout)
    }

    /// Disconnects: when the program has received what waits, `receive` and `receive_file` fail with `session-closed`.
    pub fn close_input(&self) {
        self.record.close_input();
    }

    /// Ends the process; its last event is the error `cancelled`, unless it has ended before.
    pub fn cancel(&self) {
        self.record.stop(Error::new(
            ErrorCode::Cancelled,
            "the process was cancelled",
        ));
    }

    /// Calls that the program has made to the `pie:*` interfaces and to `wasi:io/poll`; drops of handles are not
    /// counted.
    pub fn n_calls(&self) -> u64 {
        self.record.n_calls()
    }

    /// Processor time that the program has used.
    pub fn cpu(&self) -> Duration {
        self.record.cpu.used()
    }

    /// Time from the launch to the call of the program's entry; none before.
    pub fn launch_time(&self) -> Option<Duration> {
        match self.record.entered_ns.load(Ordering::Relaxed) {
            0 => None,
            entered_ns => Some(Duration::from_nanos(entered_ns)),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.cancel();
        self.events.abandon();
    }
}
