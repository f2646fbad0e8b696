//! The memory of the dummy driver: pages of slots, and host slots that hold copies of pages.

use std::ops::Range;

use crate::batch::{ArenaView, SequenceView};

/// Bytes of a slot that is given away.
const SLOT_BYTES: usize = 16;

/// What a write leaves in a slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) hash: u64,
    pub(super) token: u32,
}

/// Pages of a driver and of its host. A slot that nobody wrote holds nothing.
#[derive(Debug)]
pub(super) struct Memory {
    page_size: usize,
    pages: Vec<Option<Slot>>,
    host_pages: usize,
    /// Grows to the highest host slot that was swapped out to.
    host: Vec<Option<Slot>>,
    /// For each page: the number of the batch in which a sequence wrote it last, and which sequence. So nothing has to
    /// be cleared.
    writers: Vec<(u64, u32)>,
    n_batches: u64,
}

impl Memory {
    pub(super) fn new(n_pages: u32, page_size: u32) -> Self {
        let (n_pages, page_size) = (n_pages as usize, page_size as usize);
        Self {
            page_size,
            pages: vec![None; n_pages * page_size],
            host_pages: 0,
            host: Vec::new(),
            writers: vec![(0, 0); n_pages],
            n_batches: 0,
        }
    }

    pub(super) fn set_host_pages(&mut self, host_pages: u32) {
        self.host_pages = host_pages as usize;
    }

    pub(super) fn n_pages(&self) -> usize {
        self.writers.len()
    }

    pub(super) fn host_pages(&self) -> usize {
        self.host_pages
    }

    /// Checks every page and host slot that a batch names, and that each page that a sequence writes is used by that
    /// one alone.
    pub(super) fn check(&mut self, view: &ArenaView<'_>) -> Result<(), String> {
        for (page, slot) in view
            .swap_outs()
            .chain(view.swap_ins().map(|(slot, page)| (page, slot)))
        {
            self.check_page(page)?;
            if slot as usize >= self.host_pages {
                return Err(format!(
                    "host slot {slot} is not one of the {}",
                    self.host_pages
                ));
            }
        }
        for (src, dst) in view.copies() {
            self.check_page(src)?;
            self.check_page(dst)?;
        }
        self.n_batches += 1;
        for (index, sequence) in view.sequences().enumerate() {
            for &page in sequence.pages {
                self.check_page(page)?;
            }
            for &page in &sequence.pages[self.first_written(&sequence)..] {
                let writer = &mut self.writers[page as usize];
                if writer.0 == self.n_batches {
                    return Err(format!(
                        "page {page} is written by the sequences {} and {index}",
                        writer.1
                    ));
                }
                *writer = (self.n_batches, index as u32);
            }
        }
        for (index, sequence) in view.sequences().enumerate() {
            for &page in sequence.pages {
                let (batch, writer) = self.writers[page as usize];
                if batch == self.n_batches && writer != index as u32 {
                    return Err(format!(
                        "page {page} is written by sequence {writer} and used by sequence {index}"
                    ));
                }
            }
        }
        Ok(())
    }

    /// The first of a sequence's pages that is written.
    fn first_written(&self, sequence: &SequenceView<'_>) -> usize {
        if sequence.reread {
            sequence.pages.len()
        } else {
            (sequence.length - sequence.tokens.len()) / self.page_size
        }
    }

    fn check_page(&self, page: u32) -> Result<(), String> {
        if (page as usize) < self.n_pages() {
            return Ok(());
        }
        Err(format!(
            "page {page} is not one of the {} pages",
            self.n_pages()
        ))
    }

    /// Makes the copies of a checked batch, in the order of the contract.
    pub(super) fn copy(&mut self, view: &ArenaView<'_>) {
        for (page, slot) in view.swap_outs() {
            let (src, dst) = (self.span(page), self.span(slot));
            if self.host.len() < dst.end {
                self.host.resize(dst.end, None);
            }
            self.host[dst].copy_from_slice(&self.pages[src]);
        }
        for (slot, page) in view.swap_ins() {
            let (src, dst) = (self.span(slot), self.span(page));
            match self.host.get(src) {
                Some(kept) => self.pages[dst].copy_from_slice(kept),
                None => self.pages[dst].fill(None),
            }
        }
        for (src, dst) in view.copies() {
            let (src, dst) = (self.span(src), self.span(dst));
            self.pages.copy_within(src, dst.start);
        }
    }

    /// Bytes of a page that is given away.
    pub(super) const fn page_bytes(&self) -> usize {
        self.page_size * SLOT_BYTES
    }

    /// What a page holds: of each slot the hash (8 bytes), the token (4), and 1 where it was written (4).
    pub(super) fn export_page(&self, page: u32) -> Result<Vec<u8>, String> {
        self.check_page(page)?;
        let mut bytes = Vec::with_capacity(self.page_bytes());
        for slot in &self.pages[self.span(page)] {
            let (hash, token) = slot.map_or((0, 0), |slot| (slot.hash, slot.token));
            bytes.extend(hash.to_le_bytes());
            bytes.extend(token.to_le_bytes());
            bytes.extend(u32::from(slot.is_some()).to_le_bytes());
        }
        Ok(bytes)
    }

    /// The other way round.
    pub(super) fn import_page(&mut self, page: u32, bytes: &[u8]) -> Result<(), String> {
        self.check_page(page)?;
        let (slots, rest) = bytes.as_chunks::<SLOT_BYTES>();
        if slots.len() != self.page_size || !rest.is_empty() {
            let (found, wanted) = (bytes.len(), self.page_bytes());
            return Err(format!(
                "a page of {found} bytes is to be taken, and one has {wanted}"
            ));
        }
        let span = self.span(page);
        for (slot, bytes) in self.pages[span].iter_mut().zip(slots) {
            let (hash, rest) = bytes.split_at(8);
            let (token, is_written) = rest.split_at(4);
            let number = |bytes: &[u8]| {
                bytes
                    .iter()
                    .rev()
                    .fold(0, |sum, &byte| (sum << 8) | u64::from(byte))
            };
            *slot = (number(is_written) != 0).then(|| Slot {
                hash: number(hash),
                token: number(token) as u32,
            });
        }
        Ok(())
    }

    fn span(&self, index: u32) -> Range<usize> {
        let start = index as usize * self.page_size;
        start..start + self.page_size
    }

    /// Where the tokens of a checked sequence lie, in the order of storage.
    pub(super) fn slots_of(&self, sequence: &SequenceView<'_>) -> Vec<usize> {
        let mut slots: Vec<usize> = Vec::with_capacity(sequence.pages.len() * self.page_size);
        for &page in sequence.pages {
            slots.extend(self.span(page));
        }
        slots.truncate(sequence.length);
        slots
    }

    pub(super) fn read(&self, slot: usize) -> Option<Slot> {
        self.pages[slot]
    }

    pub(super) fn write(&mut self, slot: usize, value: Slot) {
        self.pages[slot] = Some(value);
    }
}
