//! Gives memory that was freed back to the system: the allocator keeps what many small pieces were freed from.
//!
//! The C library of Linux takes large pieces from the system one by one and gives them back at once, but moves the
//! bound of what is large up to 32 MiB as they are freed, and keeps twice as much free at the end of each of its heaps,
//! where `malloc_trim` does not look. A server whose clients once sent large messages would keep hundreds of megabytes.

#![expect(
    unsafe_code,
    reason = "calls malloc_trim and mallopt of the C library, which take numbers and may be called at any time from any thread"
)]

/// Gives back what the allocator holds free.
pub fn give_back_freed() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: a plain call on a number; it locks what it works on.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Bytes of a piece that is taken from the system by itself.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE_BYTES: libc::c_int = 1 << 20;
/// Bytes that may stay free at the end of a heap.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const FREE_BYTES: libc::c_int = 512 << 10;

/// Has the allocator of this process give back what is freed, by bounds that stay. For a process whose large pieces come
/// from clients: one that allocates large arrays in each step would pay for fresh pages each time.
pub fn keep_little_free() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: plain calls on numbers.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES);
        libc::mallopt(libc::M_TRIM_THRESHOLD, FREE_BYTES);
    }
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use super::*;

    fn rss_bytes() -> usize {
        let pages = std::fs::read_to_string("/proc/self/statm").ok();
        let n_pages = pages.and_then(|pages| pages.split(' ').nth(1)?.parse().ok());
        n_pages.unwrap_or(0usize) * 4096
    }

    /// Pieces of growing sizes, as large messages are: after them, smaller ones are given back too.
    #[test]
    fn what_large_pieces_leave_free_is_given_back() {
        keep_little_free();
        let before = rss_bytes();
        for n_mib in [2, 8, 24] {
            drop(vec![1u8; n_mib << 20]);
        }
        let pieces: Vec<_> = (0..64).map(|_| vec![1u8; 1 << 20]).collect();
        assert!(rss_bytes() > before + (48 << 20));
        drop(pieces);
        assert!(rss_bytes() < before + (16 << 20));
    }
}
