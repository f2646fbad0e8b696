//! Programs that are compiled, or are being compiled, by what they are linked with and their digest.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use super::artefact::World;
use super::place::Place;
use crate::Error;
use crate::sync::lock;

/// A program, or why it is none.
pub(crate) type Outcome<P> = Result<Arc<P>, Error>;

/// The place of a program.
pub(crate) type Slot<P> = Arc<Place<Arc<P>>>;

/// What is compiled: what it is linked with, and its digest.
pub(crate) type Key = (World, [u8; 32]);

/// The programs that were used last.
#[derive(Debug)]
pub(crate) struct Cache<P> {
    most: usize,
    used: Mutex<Used<P>>,
}

#[derive(Debug)]
struct Used<P> {
    slots: HashMap<Key, (u64, Slot<P>)>,
    /// Counts uses, to find the program that was used longest ago.
    clock: u64,
}

impl<P> Cache<P> {
    /// One of at most so many programs.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            used: Mutex::new(Used {
                slots: HashMap::new(),
                clock: 0,
            }),
        }
    }

    /// The place of a program; where there is none yet, the one that was used longest ago gives way.
    pub(crate) fn slot(&self, key: Key) -> Slot<P> {
        let mut used = lock(&self.used);
        used.clock += 1;
        let now = used.clock;
        if used.slots.len() >= self.most && !used.slots.contains_key(&key) {
            let oldest = used.slots.iter().min_by_key(|(_, (used, _))| *used);
            if let Some(oldest) = oldest.map(|(key, _)| *key) {
                used.slots.remove(&oldest);
            }
        }
        let (used, slot) = used.slots.entry(key).or_default();
        *used = now;
        slot.clone()
    }

    /// True where a program is compiled.
    pub(crate) fn has(&self, key: &Key) -> bool {
        let used = lock(&self.used);
        used.slots.get(key).is_some_and(|(_, slot)| slot.is_made())
    }

    /// Lets the next launch try again.
    pub(crate) fn forget(&self, key: &Key, slot: &Slot<P>) {
        let mut used = lock(&self.used);
        let is_kept = used.slots.get(key);
        if is_kept.is_some_and(|(_, kept)| Arc::ptr_eq(kept, slot)) {
            used.slots.remove(key);
        }
    }
}
