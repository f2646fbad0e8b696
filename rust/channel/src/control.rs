//! The counters of both sides, and what belongs to each slot.

#![expect(
    unsafe_code,
    reason = "the structure lies at the beginning of an area; it consists of atomics alone"
)]

use std::io::{Error, ErrorKind, Result};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::area::Area;
use crate::{MAX_TEXT_BYTES, N_SLOTS};

const MAGIC: u32 = 0x5049_4532;
/// Where the texts begin.
const TEXTS: usize = 4096;
const N_BYTES: usize = TEXTS + N_SLOTS * MAX_TEXT_BYTES;

/// A word that one side writes, in a cache line of its own.
#[repr(C, align(64))]
pub(crate) struct Word(pub(crate) AtomicU32);

#[repr(C)]
pub(crate) struct Head {
    magic: Word,
    pub(crate) sent: Word,
    pub(crate) awaited: Word,
    pub(crate) answered: Word,
    pub(crate) host_sleeps: Word,
    pub(crate) driver_sleeps: Word,
    pub(crate) slots: [SlotHeader; N_SLOTS],
}

/// What both say of the batch in a slot.
#[repr(C, align(64))]
pub(crate) struct SlotHeader {
    /// Words of the batch.
    pub(crate) n_words: AtomicU32,
    /// How it ended; see [`crate::Outcome`].
    pub(crate) outcome: AtomicU32,
    /// Rows for which there has to be room, then those of the answer.
    pub(crate) n_rows: AtomicU32,
    /// Tokens behind the rows of the answer.
    pub(crate) n_tokens: AtomicU32,
    /// Bytes of the text.
    pub(crate) n_text_bytes: AtomicU32,
}

/// The area that holds them.
#[derive(Debug)]
pub(crate) struct Control {
    pub(crate) area: Area,
}

impl Control {
    pub(crate) fn make() -> Result<Self> {
        let control = Self {
            area: Area::make(N_BYTES)?,
        };
        control.head().magic.0.store(MAGIC, Ordering::SeqCst);
        Ok(control)
    }

    pub(crate) fn open(descriptor: OwnedFd) -> Result<Self> {
        let area = Area::open(descriptor)?;
        if area.n_bytes() != N_BYTES {
            return Err(not_ours());
        }
        let control = Self { area };
        if control.head().magic.0.load(Ordering::SeqCst) != MAGIC {
            return Err(not_ours());
        }
        Ok(control)
    }

    pub(crate) fn head(&self) -> &Head {
        const { assert!(size_of::<Head>() <= TEXTS) };
        // SAFETY: the area begins at a page, is longer than the structure, and stays mapped while `self` is borrowed:
        // it never grows. Atomics may be changed by another process at any time, and every bit pattern is one of
        // theirs.
        unsafe { self.area.start().cast::<Head>().as_ref() }
    }

    /// The slot of the n-th batch, counted from 1.
    pub(crate) fn slot(&self, n: u32) -> &SlotHeader {
        &self.head().slots[slot_idx(n)]
    }

    /// Writes the text of the n-th batch; what is too long is cut.
    pub(crate) fn put_text(&self, n: u32, text: &str) {
        let n_bytes = text.floor_char_boundary(MAX_TEXT_BYTES);
        let text = &text.as_bytes()[..n_bytes];
        self.area.put_bytes(text_offset(n), text);
        let n_bytes = &self.slot(n).n_text_bytes;
        n_bytes.store(text.len() as u32, Ordering::Relaxed);
    }

    /// The text of the n-th batch.
    pub(crate) fn text(&self, n: u32) -> String {
        let n_bytes = self.slot(n).n_text_bytes.load(Ordering::Relaxed) as usize;
        let bytes = self.area.bytes(text_offset(n), n_bytes.min(MAX_TEXT_BYTES));
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// Which slot the n-th batch has, counted from 1.
pub(crate) const fn slot_idx(n: u32) -> usize {
    n as usize % N_SLOTS
}

const fn text_offset(n: u32) -> usize {
    TEXTS + slot_idx(n) * MAX_TEXT_BYTES
}

fn not_ours() -> Error {
    Error::new(
        ErrorKind::InvalidData,
        "the shared memory is of another version of the channel",
    )
}
