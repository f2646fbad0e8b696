//! The bound on the memory of an instance, summed over its memories.

use wasmtime::ResourceLimiter;

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
        let growth = desired.saturating_sub(current) as u64;
        let total = self.used.saturating_add(growth);
        if total > self.limit {
            self.refused = Some(total);
            return Ok(false);
        }
        self.used = total;
        self.last_growth = growth;
        Ok(true)
    }

    fn memory_grow_failed(&mut self, _error: wasmtime::Error) -> wasmtime::Result<()> {
        self.used = self.used.saturating_sub(self.last_growth);
        self.last_growth = 0;
        Ok(())
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(desired <= super::TABLE_ELEMENTS)
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
    fn a_growth_that_failed_is_taken_back() {
        let mut limiter = MemoryLimiter::new(100);
        assert!(limiter.memory_growing(0, 90, None).unwrap());
        limiter
            .memory_grow_failed(wasmtime::Error::msg("no slot"))
            .unwrap();
        assert!(limiter.memory_growing(0, 90, None).unwrap());
    }
}
