//! Derived seeds. A launch repeats from its seed, and branches and retries differ from each other.

use std::collections::{HashMap, VecDeque};

use crate::hash::fold;

/// Origins, and opened paths, that a process remembers. Only a program that comes back to an older one than these could
/// see it forgotten.
const MAX_ORIGINS: usize = 65_536;

/// The words that stand in a path before the number of a saving and of an opening. Forks have their numbers alone, so
/// no two of the three are on one path.
const SAVED: u64 = u64::from_be_bytes(*b"\0\0\0saved");
const OPENED: u64 = u64::from_be_bytes(*b"\0\0opened");

/// The path of the `n`-th fork of a context, where its savings count too.
pub(crate) const fn forked(path: u64, n: u64) -> u64 {
    fold(path, n)
}

/// The path of a snapshot that was saved as the `n`-th copy of a context.
pub(crate) const fn saved(path: u64, n: u64) -> u64 {
    fold(fold(path, SAVED), n)
}

/// The path of the `n`-th context that a process makes from snapshots of that path.
const fn opened(path: u64, n: u64) -> u64 {
    fold(fold(path, OPENED), n)
}

/// The seeds of one process.
#[derive(Debug)]
pub(crate) struct Seeds {
    launch_seed: u64,
    /// Generators whose first step succeeded, by origin.
    generators: Counts,
    /// Contexts made from snapshots, by the path of the snapshot.
    opened: Counts,
    /// Names made for snapshots, by their path.
    named: Counts,
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
            named: Counts::default(),
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

    /// The path of the next context that this process makes from a snapshot of that path.
    pub(crate) fn open(&mut self, path: u64) -> u64 {
        opened(path, self.opened.add(path))
    }

    /// A name for a snapshot on that path. It follows from the launch seed, the path, and the names that the process
    /// has made on that path so far: contexts that are made afresh have one path.
    pub(crate) fn name(&mut self, path: u64) -> String {
        let n = self.named.add(path);
        let digest = [self.launch_seed, path, n].into_iter().fold(0, fold);
        format!("snapshot-{digest:016x}")
    }
}

impl Counts {
    fn of(&self, key: u64) -> u64 {
        self.counts.get(&key).copied().unwrap_or(0)
    }

    /// Counts one more, and returns how many there are with it.
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

    // rows: RS-064
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

    // rows: RS-035..036
    #[test]
    fn every_opening_has_a_path_of_its_own_and_a_launch_repeats() {
        let (mut seeds, mut again) = (Seeds::new(7), Seeds::new(7));
        let paths = [seeds.open(5), seeds.open(5), seeds.open(6)];
        assert_eq!(paths, [opened(5, 1), opened(5, 2), opened(6, 1)]);
        assert_eq!(paths, [again.open(5), again.open(5), again.open(6)]);
    }

    /// All that a few steps can make of a fresh context: no two are on one path.
    // rows: RS-035..036 RS-038..040
    #[test]
    fn forks_savings_and_openings_have_paths_of_their_own() {
        let mut distinct = std::collections::HashSet::new();
        let mut level = vec![0];
        for _ in 0..4 {
            let next = |&path: &u64| {
                (1..4).flat_map(move |n| [forked(path, n), saved(path, n), opened(path, n)])
            };
            level = level.iter().flat_map(next).collect();
            assert!(level.iter().all(|&path| distinct.insert(path)));
        }
        assert_eq!(distinct.len(), 9 + 81 + 729 + 6561);
    }

    #[test]
    fn a_made_up_name_counts_those_of_its_path_alone() {
        let (mut seeds, mut alone) = (Seeds::new(7), Seeds::new(7));
        let first = seeds.name(5);
        let other = seeds.name(6);
        seeds.count(5);
        seeds.open(5);
        let second = seeds.name(5);
        assert_eq!(other, Seeds::new(7).name(6));
        assert_eq!([&first, &second], [&alone.name(5), &alone.name(5)]);
        assert!(first != second && first != other && second != other);
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
