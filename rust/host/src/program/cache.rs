//! Programs that are compiled, or are being compiled, by what they are linked with and their digest.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use super::artefact::World;
use super::single_flight::SingleFlight;
use crate::Error;
use crate::sync::lock;

/// A program, or why it is none.
pub(crate) type Outcome<P> = Result<Arc<P>, Error>;

/// A program that is there, or is being compiled.
pub(crate) type CacheEntry<P> = Arc<SingleFlight<Arc<P>>>;

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
    entries: HashMap<Key, (u64, CacheEntry<P>)>,
    /// Counts uses, to find the program that was used longest ago.
    clock: u64,
}

impl<P> Cache<P> {
    /// One of at most so many programs.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            used: Mutex::new(Used {
                entries: HashMap::new(),
                clock: 0,
            }),
        }
    }

    /// The entry of a program; where there is none yet, the one that was used longest ago gives way.
    pub(crate) fn entry(&self, key: Key) -> CacheEntry<P> {
        let mut used = lock(&self.used);
        used.clock += 1;
        let now = used.clock;
        if used.entries.len() >= self.most && !used.entries.contains_key(&key) {
            let oldest = used.entries.iter().min_by_key(|(_, (used, _))| *used);
            if let Some(oldest) = oldest.map(|(key, _)| *key) {
                used.entries.remove(&oldest);
            }
        }
        let (used, entry) = used.entries.entry(key).or_default();
        *used = now;
        entry.clone()
    }

    /// True where a program is compiled.
    pub(crate) fn has(&self, key: &Key) -> bool {
        let used = lock(&self.used);
        used.entries
            .get(key)
            .is_some_and(|(_, entry)| entry.is_made())
    }

    /// Lets the next launch try again.
    pub(crate) fn forget(&self, key: &Key, entry: &CacheEntry<P>) {
        let mut used = lock(&self.used);
        let is_kept = used.entries.get(key);
        if is_kept.is_some_and(|(_, kept)| Arc::ptr_eq(kept, entry)) {
            used.entries.remove(key);
        }
    }
}
