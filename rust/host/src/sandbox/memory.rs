//! The bound on the memory of an instance: its memories, its tables, and what the host holds for it.

use wasmtime::ResourceLimiter;

/// Bytes of an element of a table: a pointer.
const ELEMENT_BYTES: usize = size_of::<usize>();

/// Grants memory up to a limit. A refused growth is not a trap: the program's own allocator sees it and may recover.
#[derive(Debug)]
pub(crate) struct MemoryLimiter {
    limit: u64,
    used: u64,
    /// What the last growth added, to take back should it fail.
    last_growth: u64,
    refused: Option<u64>,
}

impl MemoryLimiter {
    /// A limiter over `limit` bytes.
    pub(crate) fn new(limit: u64) -> Self {
        Self {
            limit,
            used: 0,
            last_growth: 0,
            refused: None,
        }
    }

    /// Charges what the host holds behind a handle of the program: `before` bytes until now, `after` from now on.
    ///
    /// False where there is no room for it; it is charged all the same, until it is given back.
    pub(crate) fn recharge(&mut self, before: usize, after: usize) -> bool {
        let total = self
            .used
            .saturating_sub(before as u64)
            .saturating_add(after as u64);
        let fits = after <= before || total <= self.limit;
        if !fits {
            self.refused = Some(total);
        }
        self.used = total;
        fits
    }

    fn grow(&mut self, growth: u64) -> bool {
        let total = self.used.saturating_add(growth);
        if total > self.limit {
            self.refused = Some(total);
            return false;
        }
        self.used = total;
        self.last_growth = growth;
        true
    }

    /// Bytes that the program would have had with the last growth that was refused.
    pub(crate) fn refused(&self) -> Option<u64> {
        self.refused
    }
}

impl ResourceLimiter for MemoryLimiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(self.grow(desired.saturating_sub(current) as u64))
    }

    fn memory_grow_failed(&mut self, _error: wasmtime::Error) -> wasmtime::Result<()> {
        self.used = self.used.saturating_sub(self.last_growth);
        self.last_growth = 0;
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
        Ok(desired <= super::TABLE_ELEMENTS && self.grow(growth as u64))
    }

    fn table_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        self.memory_grow_failed(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_summed_over_memories() {
        let mut limiter = MemoryLimiter::new(100);
        assert!(limiter.memory_growing(0, 60, None).unwrap());
        assert!(!limiter.memory_growing(0, 60, None).unwrap());
        assert_eq!(limiter.refused(), Some(120));
        assert!(limiter.memory_growing(60, 100, None).unwrap());
        assert!(!limiter.memory_growing(100, 101, None).unwrap());
    }

    #[test]
    fn tables_and_what_the_host_holds_count() {
        let mut limiter = MemoryLimiter::new(100);
        assert!(limiter.table_growing(0, 5, None).unwrap());
        assert!(limiter.recharge(0, 60));
        assert!(!limiter.memory_growing(0, 1, None).unwrap());
        assert!(!limiter.recharge(60, 61));
        assert_eq!(limiter.refused(), Some(101));
        assert!(limiter.recharge(61, 0));
        assert!(limiter.memory_growing(0, 60, None).unwrap());
        assert!(!limiter.table_growing(5, 6, None).unwrap());
    }

    #[test]
    fn a_growth_that_failed_is_taken_back() {
        let mut limiter = MemoryLimiter::new(100);
        assert!(limiter.memory_growing(0, 90, None).unwrap());
        limiter
            .memory_grow_failed(wasmtime::Error::msg("no slot"))
            .unwrap();
        assert!(limiter.memory_growing(0, 90, None).unwrap());
    }
}
