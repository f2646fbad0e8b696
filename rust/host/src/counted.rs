//! How many of something one process has at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The most that there may be at once, and how many there are.
#[derive(Debug)]
pub(crate) struct Bounded {
    n: Arc<AtomicUsize>,
    most: usize,
}

/// One that is there, until this is dropped.
#[derive(Debug)]
pub(crate) struct Counted(Arc<AtomicUsize>);

impl Bounded {
    /// None yet, of `most`.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            n: Arc::default(),
            most,
        }
    }

    /// One more; none where there are as many as may be. It is looked before it is counted, so that who is refused
    /// keeps nobody else out.
    pub(crate) fn take(&self) -> Option<Counted> {
        let more = |n| (n < self.most).then_some(n + 1);
        let counted = self
            .n
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        counted.ok().map(|_| Counted(self.n.clone()))
    }

    /// The most.
    pub(crate) const fn most(&self) -> usize {
        self.most
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_never_more_than_the_most() {
        let bounded = Bounded::new(2);
        let [first, second] = [bounded.take().unwrap(), bounded.take().unwrap()];
        assert!(bounded.take().is_none());
        drop(first);
        let third = bounded.take().unwrap();
        assert!(bounded.take().is_none());
        drop((second, third));
        assert_eq!(bounded.n.load(Ordering::Relaxed), 0);
    }
}
