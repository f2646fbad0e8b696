//! The side of the host.

use std::io::{Error, ErrorKind, Result};
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::N_SLOTS;
use crate::area::{Area, View};
use crate::control::{Control, slot_idx};
use crate::event::{Event, Woken};

/// Bytes that an area begins with, whatever the sizes of batches are. What is longer makes it grow.
const FIRST_BYTES: usize = 64 << 10;

/// Hands batches over and takes answers.
#[derive(Debug)]
pub struct HostEnd {
    control: Control,
    batches: [Area; N_SLOTS],
    rows: [Area; N_SLOTS],
    own: Event,
    drivers: Event,
    /// Bytes of a row.
    row_bytes: usize,
    n_sent: u32,
    n_taken: u32,
    /// When the answer that is waited for was first waited for.
    waits_since: Option<Instant>,
    /// Whether the last answer took so long that looking for it was in vain.
    is_slow: bool,
}

/// Why a wait for an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// The answer is there.
    Answered,
    /// The driver is gone, and did not answer.
    Lost,
    /// Nothing happened in time.
    TimedOut,
}

/// How a batch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Outcome {
    /// With rows.
    Rows,
    /// With rows, and sequences that failed, which the text names.
    Failures,
    /// It failed, for the reason in the text.
    Failed,
    /// With the rows that are wanted and with tokens behind them; the text names sequences that failed, if any did.
    Drawn,
}

impl Outcome {
    const fn of(word: u32) -> Self {
        match word {
            0 => Self::Rows,
            1 => Self::Failures,
            3 => Self::Drawn,
            _ => Self::Failed,
        }
    }
}

/// The answer to a batch.
#[derive(Debug)]
pub struct Answer {
    /// How it ended.
    pub outcome: Outcome,
    /// The slot that holds the rows, which stay as they are until the batch after the next one is sent. A view of it is
    /// good for any later answer in the same slot with as much room.
    pub slot: usize,
    /// How many there are.
    pub n_rows: usize,
    /// How many have room.
    pub n_most_rows: usize,
    /// Tokens, a word each, that stand behind the rows.
    pub n_tokens: usize,
    /// What the outcome needs, else empty.
    pub text: String,
}

impl HostEnd {
    /// Memory for a driver whose rows have `vocab_size` logits.
    ///
    /// # Errors
    /// Those of the system, which may have no descriptors or memory left.
    pub fn new(vocab_size: u32) -> Result<Self> {
        let area = || Area::make(FIRST_BYTES);
        Ok(Self {
            control: Control::make()?,
            batches: [area()?, area()?],
            rows: [area()?, area()?],
            own: Event::make()?,
            drivers: Event::make()?,
            row_bytes: vocab_size as usize * size_of::<f32>(),
            n_sent: 0,
            n_taken: 0,
            waits_since: None,
            is_slow: false,
        })
    }

    /// What the process of the driver has to inherit, in the order in which [`crate::DriverEnd`] opens it.
    pub fn descriptors(&self) -> [RawFd; 7] {
        let [first, second] = &self.batches;
        let [first_rows, second_rows] = &self.rows;
        [
            self.control.area.descriptor(),
            first.descriptor(),
            second.descriptor(),
            first_rows.descriptor(),
            second_rows.descriptor(),
            self.own.descriptor(),
            self.drivers.descriptor(),
        ]
    }

    /// Batches that were sent and whose answers were not taken.
    pub const fn n_under_way(&self) -> u32 {
        self.n_sent.wrapping_sub(self.n_taken)
    }

    /// Hands a batch over, of which `n_rows` rows are wanted.
    ///
    /// # Errors
    /// `InvalidInput` where two batches are under way, or there cannot be as many rows; those of the system.
    pub fn send(&mut self, words: &[u32], n_rows: usize) -> Result<()> {
        if self.n_under_way() as usize >= N_SLOTS {
            return Err(invalid("two batches are under way already"));
        }
        let n = self.n_sent.wrapping_add(1);
        let n_words =
            u32::try_from(words.len()).map_err(|_| invalid("the batch has too many words"))?;
        // A row more than is wanted has room, so that a driver that answers too many is found out.
        let n_bytes = n_rows
            .checked_add(1)
            .and_then(|n_rows| n_rows.checked_mul(self.row_bytes));
        let n_bytes = n_bytes.ok_or_else(|| invalid("the batch wants too many rows"))?;
        make_room(&mut self.batches[slot_idx(n)], size_of_val(words))?;
        make_room(&mut self.rows[slot_idx(n)], n_bytes)?;
        if !self.batches[slot_idx(n)].put_words(words) {
            return Err(invalid("the batch does not fit its area"));
        }
        let n_rows =
            u32::try_from(n_rows + 1).map_err(|_| invalid("the batch wants too many rows"))?;
        let slot = self.control.slot(n);
        slot.n_words.store(n_words, Ordering::Relaxed);
        slot.n_rows.store(n_rows, Ordering::Relaxed);
        self.n_sent = n;
        let head = self.control.head();
        head.sent.0.store(n, Ordering::SeqCst);
        self.drivers.wake(&head.driver_sleeps.0)
    }

    /// Waits for the answer to the batch that was sent first of those under way: looks for as long as `looking`, then
    /// sleeps until `timeout` at most. It sleeps at once where the last answer took twice as long as that: who looks in
    /// vain takes a core from the driver. `process` is readable when the process of the driver has ended: a descriptor
    /// of it (pidfd).
    ///
    /// # Errors
    /// Those of the system.
    pub fn wait(
        &mut self,
        process: BorrowedFd<'_>,
        looking: Duration,
        timeout: Duration,
    ) -> Result<Waited> {
        let head = self.control.head();
        let taken = self.n_taken;
        let is_there = || head.answered.0.load(Ordering::Acquire) != taken;
        if !is_there() {
            head.awaited
                .0
                .store(taken.wrapping_add(1), Ordering::SeqCst);
            self.drivers.wake(&head.driver_sleeps.0)?;
        }
        let sleeps = &head.host_sleeps.0;
        let since = *self.waits_since.get_or_insert_with(Instant::now);
        let looks = if self.is_slow {
            Duration::ZERO
        } else {
            looking
        };
        let woken = self
            .own
            .wait(sleeps, is_there, process, looks, Some(timeout))?;
        self.is_slow = since.elapsed() > looking.saturating_mul(2);
        if woken != Woken::TimedOut {
            self.waits_since = None;
        }
        Ok(match woken {
            Woken::There => Waited::Answered,
            Woken::Gone => Waited::Lost,
            Woken::TimedOut => Waited::TimedOut,
        })
    }

    /// The answer that was waited for; none where there is none.
    pub fn take(&mut self) -> Option<Answer> {
        let answered = self.control.head().answered.0.load(Ordering::Acquire);
        if self.n_under_way() == 0 || answered == self.n_taken {
            return None;
        }
        let n = self.n_taken.wrapping_add(1);
        self.n_taken = n;
        let slot = self.control.slot(n);
        let outcome = Outcome::of(slot.outcome.load(Ordering::Relaxed));
        let area = &self.rows[slot_idx(n)];
        let n_most_rows = area.n_bytes() / self.row_bytes.max(1);
        let n_rows = (slot.n_rows.load(Ordering::Relaxed) as usize).min(n_most_rows);
        let text = match outcome {
            Outcome::Rows => String::new(),
            Outcome::Failures | Outcome::Failed | Outcome::Drawn => self.control.text(n),
        };
        // As many as there are words behind the rows.
        let n_words = (n_most_rows - n_rows) * (self.row_bytes / size_of::<u32>());
        let n_tokens = (slot.n_tokens.load(Ordering::Relaxed) as usize).min(n_words);
        Some(Answer {
            outcome,
            slot: slot_idx(n),
            n_rows,
            n_most_rows,
            n_tokens,
            text,
        })
    }

    /// All rows of a slot.
    pub fn rows(&self, slot: usize) -> Option<View> {
        let area = self.rows.get(slot)?;
        let n_rows = area.n_bytes() / self.row_bytes.max(1);
        Some(area.view(n_rows * self.row_bytes))
    }
}

/// Makes an area as large as is needed, and larger, so that it seldom grows.
fn make_room(area: &mut Area, n_bytes: usize) -> Result<()> {
    if n_bytes <= area.n_bytes() {
        return Ok(());
    }
    area.grow(n_bytes.max(area.n_bytes().saturating_mul(2)))
}

fn invalid(message: &str) -> Error {
    Error::new(ErrorKind::InvalidInput, message)
}
