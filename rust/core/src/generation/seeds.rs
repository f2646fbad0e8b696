//! Seeds that nobody gave: derived so that a launch repeats from its seed, and branches and retries differ.

use std::collections::{HashMap, VecDeque};

use crate::hash::fold;

/// Origins that a process remembers. Only a program that comes back to an older one than these could see it forgotten.
const MAX_ORIGINS: usize = 65_536;

/// The seeds of one process.
#[derive(Debug)]
pub(crate) struct Seeds {
    launch_seed: u64,
    /// Generators whose first step succeeded, by origin.
    counts: HashMap<u64, u64>,
    /// The origins in the order in which they were first counted.
    order: VecDeque<u64>,
}

impl Seeds {
    pub(crate) fn new(launch_seed: u64) -> Self {
        Self {
            launch_seed,
            counts: HashMap::new(),
            order: VecDeque::new(),
        }
    }

    /// The seed of a generation: `fold(fold(fold(0, launch seed), origin), generators before)`, where `origin` is the fork path of the context
    /// with the digest of its tokens folded in.
    pub(crate) fn seed(&self, origin: u64) -> u64 {
        let before = self.counts.get(&origin).copied().unwrap_or(0);
        fold(fold(fold(0, self.launch_seed), origin), before)
    }

    /// Counts a generator whose first step succeeded. The oldest origin is forgotten when there are too many.
    pub(crate) fn count(&mut self, origin: u64) {
        let count = self.counts.entry(origin).or_insert(0);
        *count += 1;
        if *count == 1 {
            self.order.push_back(origin);
            if self.order.len() > MAX_ORIGINS
                && let Some(oldest) = self.order.pop_front()
            {
                self.counts.remove(&oldest);
            }
        }
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
    fn memory_is_bounded() {
        let mut seeds = Seeds::new(7);
        for origin in 0..MAX_ORIGINS as u64 + 100 {
            seeds.count(origin);
        }
        assert_eq!(
            (seeds.counts.len(), seeds.order.len()),
            (MAX_ORIGINS, MAX_ORIGINS)
        );
        assert_eq!(seeds.seed(5), Seeds::new(7).seed(5));
    }
}
