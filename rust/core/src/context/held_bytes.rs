//! What the passes of a process hold, as a sum that is kept: with many contexts it would take long to add it up for
//! each pass that is entered.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that the passes of one process hold together.
#[derive(Clone, Debug, Default)]
pub(crate) struct PassBytes(Arc<AtomicUsize>);

/// What one pass holds, until it is dropped: wherever a pass ends, it no longer counts.
#[derive(Debug)]
pub(crate) struct HeldBytes {
    sum: PassBytes,
    n_bytes: usize,
}

impl PassBytes {
    /// The sum.
    pub(crate) fn n_held(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Counts the bytes of one pass more; none where it holds nothing.
    pub(crate) fn hold(&self, n_bytes: usize) -> Option<HeldBytes> {
        (n_bytes > 0).then(|| {
            self.0.fetch_add(n_bytes, Ordering::Relaxed);
            HeldBytes {
                sum: self.clone(),
                n_bytes,
            }
        })
    }
}

impl HeldBytes {
    /// Those of this pass.
    pub(crate) const fn n_bytes(&self) -> usize {
        self.n_bytes
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.sum.0.fetch_sub(self.n_bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_that_of_what_is_held() {
        let sum = PassBytes::default();
        assert!(sum.hold(0).is_none());
        let [first, second] = [3, 4].map(|n_bytes| sum.hold(n_bytes).unwrap());
        assert_eq!((sum.n_held(), first.n_bytes()), (7, 3));
        drop(first);
        assert_eq!(sum.n_held(), 4);
        drop(second);
        assert_eq!(sum.n_held(), 0);
    }
}
