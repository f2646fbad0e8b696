//! Seeds that nobody gave: derived so that a launch repeats from its seed, and branches and retries differ.

use std::collections::{HashMap, VecDeque};

use crate::hash::fold;

/// Origins, and opened paths, that a process remembers. Only a program that comes back to an older one than these could
/// see it forgotten.
const MAX_ORIGINS: usize = 65_536;

/// The seeds of one process.
#[derive(Debug)]
pub(crate) struct Seeds {
    launch_seed: u64,
    /// Generators whose first step succeeded, by origin.
    generators: Counts,
    /// Contexts made from snapshots, by the path of the snapshot.
    opened: Counts,
}

/// How often something happened, by key. The oldest key is forgotten when there are too many.
#[derive(Debug, Default)]
struct Counts {
    counts: HashMap<u64, u64>,
    /// The keys in the order in which they were first counted.
    order: VecDeque<u64>,
}

impl Seeds {
    pub(crate) fn new(launch_seed: u64) -> Self {
        Self {
            launch_seed,
            generators: Counts::default(),
            opened: Counts::default(),
        }
    }

    /// The seed of a generation: `fold(fold(fold(0, launch seed), origin), generators before)`, where `origin` is the
    /// fork path of the context with the digest of its tokens folded in.
    pub(crate) fn seed(&self, origin: u64) -> u64 {
        let before = self.generators.of(origin);
        fold(fold(fold(0, self.launch_seed), origin), before)
    }

    /// Counts a generator whose first step succeeded.
    pub(crate) fn count(&mut self, origin: u64) {
        self.generators.add(origin);
    }

    /// The path of the next context that this process makes from a snapshot of that path: `fold(path, n)` for the n-th,
    /// as a fork of it.
    pub(crate) fn open(&mut self, path: u64) -> u64 {
        fold(path, self.opened.add(path))
    }
}

impl Counts {
    fn of(&self, key: u64) -> u64 {
        self.counts.get(&key).copied().unwrap_or(0)
    }

    /// Counts one more, and answers how many there were with it.
    fn add(&mut self, key: u64) -> u64 {
        let count = self.counts.entry(key).or_insert(0);
        *count += 1;
        let count = *count;
        if count == 1 {
            self.order.push_back(key);
            if self.order.len() > MAX_ORIGINS
                && let Some(oldest) = self.order.pop_front()
            {
                self.counts.remove(&oldest);
            }
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launch_path_tokens_and_count_matter() {
        let mut seeds = Seeds::new(7);
        let origin = 11;
        let first = seeds.seed(origin);
        assert_eq!(seeds.seed(origin), first);
        assert_ne!(Seeds::new(8).seed(origin), first);
        assert_ne!(seeds.seed(12), first);
        assert_ne!(seeds.seed(13), first);
        seeds.count(origin);
        let second = seeds.seed(origin);
        assert_ne!(second, first);
        seeds.count(origin);
        assert_ne!(seeds.seed(origin), second);
    }

    #[test]
    fn every_opening_has_a_path_of_its_own_and_a_launch_repeats() {
        let (mut seeds, mut again) = (Seeds::new(7), Seeds::new(7));
        let paths = [seeds.open(5), seeds.open(5), seeds.open(6)];
        assert_eq!(paths, [fold(5, 1), fold(5, 2), fold(6, 1)]);
        assert_eq!(paths, [again.open(5), again.open(5), again.open(6)]);
    }

    #[test]
    fn memory_is_bounded() {
        let mut seeds = Seeds::new(7);
        for origin in 0..MAX_ORIGINS as u64 + 100 {
            seeds.count(origin);
        }
        let counts = &seeds.generators;
        assert_eq!(
            (counts.counts.len(), counts.order.len()),
            (MAX_ORIGINS, MAX_ORIGINS)
        );
        assert_eq!(seeds.seed(5), Seeds::new(7).seed(5));
    }
}
