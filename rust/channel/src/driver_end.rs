//! The side of the driver.

use std::io::{Error, ErrorKind, Result};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::N_SLOTS;
use crate::area::{Area, View};
use crate::control::{Control, slot_idx};
use crate::event::{Event, Woken};
use crate::host_end::Outcome;

/// Takes batches and answers them.
#[derive(Debug)]
pub struct DriverEnd {
    control: Control,
    batches: [Area; N_SLOTS],
    rows: [Area; N_SLOTS],
    own: Event,
    hosts: Event,
    /// Bytes of a row.
    row_bytes: usize,
    n_received: u32,
    n_answered: u32,
}

/// What a driver should do next.
#[derive(Debug)]
pub enum Received {
    /// Run this.
    Batch(Arrived),
    /// Answer the batch that was received first.
    Awaited,
    /// End: the host is gone.
    Gone,
}

/// Where a batch lies, and where its rows go. Views of either are good for any later batch of the same slot and the
/// same length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// Which of the slots it has.
    pub slot: usize,
    /// Words of the batch.
    pub n_words: usize,
    /// Words for which its area has room.
    pub n_most_words: usize,
    /// Rows for which there is room: more than are wanted.
    pub n_most_rows: usize,
}

impl DriverEnd {
    /// Opens what [`crate::HostEnd::descriptors`] gave, for rows of `vocab_size` logits.
    ///
    /// # Errors
    /// `InvalidData` where the descriptors are others; those of the system.
    pub fn open(descriptors: [OwnedFd; 7], vocab_size: u32) -> Result<Self> {
        let [control, first, second, first_rows, second_rows, hosts, own] = descriptors;
        Ok(Self {
            control: Control::open(control)?,
            batches: [Area::open(first)?, Area::open(second)?],
            rows: [Area::open(first_rows)?, Area::open(second_rows)?],
            own: Event::open(own),
            hosts: Event::open(hosts),
            row_bytes: vocab_size as usize * size_of::<f32>(),
            n_received: 0,
            n_answered: 0,
        })
    }

    /// Waits for what comes next: looks for as long as `looking`, then sleeps. `host` is readable, or hung up, when the
    /// host is gone.
    ///
    /// # Errors
    /// `InvalidData` where what the host wrote cannot be; those of the system.
    pub fn receive(&mut self, host: BorrowedFd<'_>, looking: Duration) -> Result<Received> {
        let n_under_way = self.n_received.wrapping_sub(self.n_answered);
        if n_under_way as usize >= N_SLOTS {
            return Ok(Received::Awaited);
        }
        let head = self.control.head();
        let (received, answered) = (self.n_received, self.n_answered);
        let is_sent = || head.sent.0.load(Ordering::Acquire) != received;
        let is_awaited = || n_under_way > 0 && head.awaited.0.load(Ordering::Acquire) != answered;
        let woken = loop {
            let woken = self.own.wait(
                &head.driver_sleeps.0,
                || is_sent() || is_awaited(),
                host,
                looking,
                None,
            )?;
            if woken != Woken::TimedOut {
                break woken;
            }
        };
        match woken {
            Woken::There if is_sent() => self.take().map(Received::Batch),
            Woken::There | Woken::TimedOut => Ok(Received::Awaited),
            Woken::Gone => Ok(Received::Gone),
        }
    }

    fn take(&mut self) -> Result<Arrived> {
        let n = self.n_received.wrapping_add(1);
        let slot = slot_idx(n);
        let n_words = self.control.slot(n).n_words.load(Ordering::Relaxed) as usize;
        let n_rows = self.control.slot(n).n_rows.load(Ordering::Relaxed) as usize;
        let (batch, rows) = (&mut self.batches[slot], &mut self.rows[slot]);
        follow(batch, n_words, size_of::<u32>())?;
        follow(rows, n_rows, self.row_bytes)?;
        self.n_received = n;
        Ok(Arrived {
            slot,
            n_words,
            n_most_words: batch.n_bytes() / size_of::<u32>(),
            n_most_rows: rows.n_bytes() / self.row_bytes.max(1),
        })
    }

    /// All words of a slot; those of a batch that is not answered stay as they are.
    pub fn words(&self, slot: usize) -> Option<View> {
        let area = self.batches.get(slot)?;
        Some(area.view(area.n_bytes() & !(size_of::<u32>() - 1)))
    }

    /// All rows of a slot.
    pub fn rows(&self, slot: usize) -> Option<View> {
        let area = self.rows.get(slot)?;
        let n_rows = area.n_bytes() / self.row_bytes.max(1);
        Some(area.view(n_rows * self.row_bytes))
    }

    /// Answers the batch that was received first, whose rows stand in its slot.
    ///
    /// # Errors
    /// `InvalidData` where no batch is under way; those of the system.
    pub fn answer(&mut self, outcome: Outcome, n_rows: usize, text: &str) -> Result<()> {
        self.end(outcome, n_rows, 0, text)
    }

    /// The same with what the driver drew: the rows that are wanted stand in its slot, and tokens, a word each, behind
    /// them. The text names sequences that failed; empty: none did.
    ///
    /// # Errors
    /// Those of [`DriverEnd::answer`].
    pub fn answer_drawn(&mut self, n_rows: usize, n_tokens: usize, text: &str) -> Result<()> {
        self.end(Outcome::Drawn, n_rows, n_tokens, text)
    }

    fn end(&mut self, outcome: Outcome, n_rows: usize, n_tokens: usize, text: &str) -> Result<()> {
        let n = self.oldest()?;
        let slot = self.control.slot(n);
        let n_tokens = u32::try_from(n_tokens).unwrap_or(u32::MAX);
        slot.n_tokens.store(n_tokens, Ordering::Relaxed);
        let n_rows = u32::try_from(n_rows).unwrap_or(u32::MAX);
        slot.n_rows.store(n_rows, Ordering::Relaxed);
        slot.outcome.store(outcome as u32, Ordering::Relaxed);
        if outcome != Outcome::Rows {
            self.control.put_text(n, text);
        }
        self.n_answered = n;
        let head = self.control.head();
        head.answered.0.store(n, Ordering::SeqCst);
        self.hosts.wake(&head.host_sleeps.0)
    }

    fn oldest(&self) -> Result<u32> {
        if self.n_received == self.n_answered {
            return Err(invalid("no batch is under way"));
        }
        Ok(self.n_answered.wrapping_add(1))
    }
}

/// Maps what the host has made longer.
fn follow(area: &mut Area, n: usize, n_bytes: usize) -> Result<()> {
    let wanted = n.checked_mul(n_bytes);
    if wanted.is_none_or(|wanted| wanted > area.n_bytes()) {
        area.follow()?;
    }
    match wanted {
        Some(wanted) if wanted <= area.n_bytes() => Ok(()),
        _ => Err(invalid("a batch is longer than its area")),
    }
}

fn invalid(message: &str) -> Error {
    Error::new(ErrorKind::InvalidData, message)
}
