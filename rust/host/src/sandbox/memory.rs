//! The bound on the memory of an instance: its memories, its tables, and what the host holds for it.

use std::sync::Arc;

use wasmtime::ResourceLimiter;

use super::fault::{Refused, memory_limit};
use super::footprint::Footprint;
use crate::Limits;

/// Bytes of an element of a table: a pointer.
const ELEMENT_BYTES: usize = size_of::<usize>();

/// Bytes that the memories of a program may begin with before they are charged: they count when they are met, a few
/// pages at a time.
const FIRST_BYTES: u64 = 2 << 20;

/// Grants memory up to the limit of the process, and to what the budget of the engine has for its user. A refused
/// growth is not a trap: the program's own allocator sees it and may recover.
#[derive(Debug)]
pub(crate) struct MemoryLimiter {
    limit: u64,
    used: u64,
    footprint: Arc<Footprint>,
    /// What the memories of the instance may still begin with, uncharged.
    first: u64,
    /// What the last growth added, to take back should it fail.
    last_growth: Growth,
    refused: Option<Refused>,
}

/// A growth that was granted.
#[derive(Clone, Copy, Debug, Default)]
struct Growth {
    n_bytes: u64,
    /// Those of them that the budget was charged with.
    promised: u64,
}

impl MemoryLimiter {
    /// A limiter over `limit` bytes.
    pub(crate) fn new(limit: u64, footprint: Arc<Footprint>) -> Self {
        Self {
            limit,
            used: 0,
            footprint,
            first: FIRST_BYTES,
            last_growth: Growth::default(),
            refused: None,
        }
    }

    /// The memories begin as the image of a language runtime of the engine's own, which all its instances share until
    /// they write.
    ///
    /// One that a user brings has no such right: it could begin with any number of pages.
    pub(crate) fn share_image(&mut self) {
        self.first = u64::MAX;
    }

    /// Charges what the host holds behind a handle of the program: `before` bytes until now, `after` from now on.
    ///
    /// False where there is no room for it; it counts towards the limit all the same, until it is given back.
    pub(crate) fn recharge(&mut self, before: usize, after: usize) -> bool {
        let (before, after) = (before as u64, after as u64);
        let total = self.used.saturating_sub(before).saturating_add(after);
        let fits = after <= before || total <= self.limit;
        if !fits {
            self.refused = Some(Refused::Limit(total));
        }
        self.used = total;
        if after <= before {
            self.footprint.withdraw(before - after);
            return true;
        }
        fits && self.promise(after - before)
    }

    fn promise(&mut self, n_bytes: u64) -> bool {
        match self.footprint.promise(n_bytes) {
            Ok(()) => true,
            Err(error) => {
                self.refused = Some(Refused::Budget(error));
                false
            }
        }
    }

    fn grow(&mut self, n_bytes: u64, is_first: bool) -> bool {
        let total = self.used.saturating_add(n_bytes);
        if total > self.limit {
            self.refused = Some(Refused::Limit(total));
            return false;
        }
        let lent = if is_first { n_bytes.min(self.first) } else { 0 };
        let promised = n_bytes - lent;
        if promised > 0 && !self.promise(promised) {
            return false;
        }
        if lent > 0 {
            self.first -= lent;
            self.footprint.lend(lent);
        }
        self.used = total;
        self.last_growth = Growth { n_bytes, promised };
        true
    }

    /// Why memory was last refused, if it was.
    pub(crate) fn refused(&self) -> Option<&Refused> {
        self.refused.as_ref()
    }

    /// The error of memory that was refused.
    pub(crate) fn refusal(&self, limits: &Limits) -> wasmtime::Error {
        match self.refused() {
            Some(refused) => refused.error(limits).into(),
            None => memory_limit(limits.memory_bytes, limits).into(),
        }
    }
}

impl ResourceLimiter for MemoryLimiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        // One that is grown from nothing later is taken for one that begins.
        Ok(self.grow(desired.saturating_sub(current) as u64, current == 0))
    }

    fn memory_grow_failed(&mut self, _error: wasmtime::Error) -> wasmtime::Result<()> {
        let Growth { n_bytes, promised } = std::mem::take(&mut self.last_growth);
        self.used = self.used.saturating_sub(n_bytes);
        self.footprint.withdraw(promised);
        Ok(())
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let growth = desired
            .saturating_sub(current)
            .saturating_mul(ELEMENT_BYTES);
        Ok(desired <= super::TABLE_ELEMENTS && self.grow(growth as u64, current == 0))
    }

    fn table_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        self.memory_grow_failed(error)
    }
}

#[cfg(test)]
mod tests {
    use pie_core::ErrorCode;

    use super::*;
    use crate::budget::Budget;

    const MIB: u64 = 1 << 20;

    fn limiter(limit: u64) -> MemoryLimiter {
        let budget = Budget::new(64 * MIB, Some(32 * MIB));
        let footprint = Footprint::new(&budget.account("ada"), MIB).unwrap();
        MemoryLimiter::new(limit, Arc::new(footprint))
    }

    fn refused(limiter: &MemoryLimiter) -> Option<u64> {
        match limiter.refused() {
            Some(Refused::Limit(n_bytes)) => Some(*n_bytes),
            _ => None,
        }
    }

    #[test]
    fn growth_is_summed_over_memories() {
        let mut limiter = limiter(100);
        assert!(limiter.memory_growing(0, 60, None).unwrap());
        assert!(!limiter.memory_growing(0, 60, None).unwrap());
        assert_eq!(refused(&limiter), Some(120));
        assert!(limiter.memory_growing(60, 100, None).unwrap());
        assert!(!limiter.memory_growing(100, 101, None).unwrap());
    }

    #[test]
    fn tables_and_what_the_host_holds_count() {
        let mut limiter = limiter(100);
        assert!(limiter.table_growing(0, 5, None).unwrap());
        assert!(limiter.recharge(0, 60));
        assert!(!limiter.memory_growing(0, 1, None).unwrap());
        assert!(!limiter.recharge(60, 61));
        assert_eq!(refused(&limiter), Some(101));
        assert!(limiter.recharge(61, 0));
        assert!(limiter.memory_growing(0, 60, None).unwrap());
        assert!(!limiter.table_growing(5, 6, None).unwrap());
    }

    #[test]
    fn a_growth_that_failed_is_taken_back() {
        let mut limiter = limiter(100);
        assert!(limiter.memory_growing(0, 90, None).unwrap());
        limiter
            .memory_grow_failed(wasmtime::Error::msg("no slot"))
            .unwrap();
        assert!(limiter.memory_growing(0, 90, None).unwrap());
    }

    #[test]
    fn only_the_image_of_an_own_runtime_is_not_charged_at_first() {
        let n_bytes = usize::try_from(40 * MIB).unwrap();
        let mut brought = limiter(u64::MAX);
        assert!(!brought.memory_growing(0, n_bytes, None).unwrap());
        let mut own = limiter(u64::MAX);
        own.share_image();
        assert!(own.memory_growing(0, n_bytes, None).unwrap());
    }

    #[test]
    fn growth_beyond_the_budget_is_refused_by_its_name() {
        let mut limiter = limiter(u64::MAX);
        let bytes = |mib: u64| usize::try_from(mib * MIB).unwrap();
        assert!(!limiter.memory_growing(0, bytes(40), None).unwrap());
        let error = limiter.refused().unwrap().error(&Limits::default());
        assert_eq!(error.code, ErrorCode::LimitEngineMemory);
        assert!(limiter.memory_growing(0, bytes(2), None).unwrap());
        assert!(limiter.memory_growing(bytes(2), bytes(30), None).unwrap());
        assert!(!limiter.memory_growing(bytes(30), bytes(40), None).unwrap());
        limiter
            .memory_grow_failed(wasmtime::Error::msg("no slot"))
            .unwrap();
        assert!(limiter.memory_growing(bytes(2), bytes(30), None).unwrap());
    }
}
