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

/// The programs that were used last, bounded by their number and by the bytes of their images: machine code that is
/// mapped from a file is given back under pressure, but there may be no folder for such files.
#[derive(Debug)]
pub(crate) struct Cache<P> {
    most: usize,
    most_bytes: u64,
    used: Mutex<Used<P>>,
}

#[derive(Debug)]
struct Used<P> {
    entries: HashMap<Key, CachedProgram<P>>,
    /// Counts uses, to find the program that was used longest ago.
    clock: u64,
}

#[derive(Debug)]
struct CachedProgram<P> {
    used: u64,
    /// Of its image; 0 until it is compiled.
    n_bytes: u64,
    program: CacheEntry<P>,
}

impl<P> Cache<P> {
    /// One of at most so many programs, whose images have at most so many bytes together.
    pub(crate) fn new(most: usize, most_bytes: u64) -> Self {
        Self {
            most,
            most_bytes,
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
            used.drop_oldest(|_| true);
        }
        let entry = used.entries.entry(key).or_insert_with(|| CachedProgram {
            used: now,
            n_bytes: 0,
            program: CacheEntry::default(),
        });
        entry.used = now;
        entry.program.clone()
    }

    /// The image of a program has so many bytes. Those that were used longest ago give way, and one that is too large
    /// by itself is not kept: processes that run it hold it.
    pub(crate) fn weigh(&self, key: &Key, program: &CacheEntry<P>, n_bytes: u64) {
        let mut used = lock(&self.used);
        let entry = used.entries.get_mut(key);
        let Some(entry) = entry.filter(|entry| Arc::ptr_eq(&entry.program, program)) else {
            return;
        };
        if n_bytes > self.most_bytes {
            used.entries.remove(key);
            return;
        }
        if entry.n_bytes == n_bytes {
            return;
        }
        entry.n_bytes = n_bytes;
        while used.n_bytes() > self.most_bytes {
            used.drop_oldest(|kept| kept.n_bytes > 0);
        }
    }

    /// True where a program is compiled.
    pub(crate) fn has(&self, key: &Key) -> bool {
        let used = lock(&self.used);
        used.entries
            .get(key)
            .is_some_and(|entry| entry.program.is_made())
    }

    /// Lets the next launch try again.
    pub(crate) fn forget(&self, key: &Key, entry: &CacheEntry<P>) {
        let mut used = lock(&self.used);
        let is_kept = used.entries.get(key);
        if is_kept.is_some_and(|kept| Arc::ptr_eq(&kept.program, entry)) {
            used.entries.remove(key);
        }
    }
}

impl<P> Used<P> {
    fn n_bytes(&self) -> u64 {
        self.entries.values().map(|entry| entry.n_bytes).sum()
    }

    /// Of those that are chosen.
    fn drop_oldest(&mut self, is_chosen: impl Fn(&CachedProgram<P>) -> bool) {
        let chosen = self.entries.iter().filter(|(_, entry)| is_chosen(entry));
        let oldest = chosen.min_by_key(|(_, entry)| entry.used);
        if let Some(oldest) = oldest.map(|(key, _)| *key) {
            self.entries.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn key(n: u8) -> Key {
        (World::Program, [n; 32])
    }

    fn kept(cache: &Cache<u8>) -> Vec<u8> {
        let mut kept: Vec<u8> = lock(&cache.used)
            .entries
            .keys()
            .map(|(_, digest)| digest[0])
            .collect();
        kept.sort_unstable();
        kept
    }

    #[test]
    fn the_program_that_was_used_longest_ago_gives_way() {
        let cache = Cache::new(2, 100);
        let first = cache.entry(key(1));
        cache.entry(key(2));
        assert!(Arc::ptr_eq(&first, &cache.entry(key(1))));
        cache.entry(key(3));
        assert_eq!(kept(&cache), [1, 3]);
    }

    #[test]
    fn images_take_at_most_so_many_bytes_together() {
        let cache = Cache::new(10, 100);
        for n in 1..=3 {
            cache.weigh(&key(n), &cache.entry(key(n)), 40);
        }
        assert_eq!(kept(&cache), [2, 3]);
        cache.weigh(&key(2), &cache.entry(key(2)), 40);
        cache.weigh(&key(4), &cache.entry(key(4)), 60);
        assert_eq!(kept(&cache), [2, 4]);
        cache.weigh(&key(5), &cache.entry(key(5)), 101);
        assert_eq!(kept(&cache), [2, 4]);
        // One that is being compiled takes nothing yet, and stays.
        cache.entry(key(6));
        cache.weigh(&key(7), &cache.entry(key(7)), 100);
        assert_eq!(kept(&cache), [6, 7]);
    }

    #[test]
    fn what_was_replaced_meanwhile_is_not_weighed() {
        let cache = Cache::new(1, 100);
        let replaced = cache.entry(key(1));
        cache.entry(key(2));
        cache.entry(key(1));
        cache.weigh(&key(1), &replaced, 101);
        assert_eq!(kept(&cache), [1]);
    }
}
