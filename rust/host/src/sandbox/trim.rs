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

/// Has the allocator of this process give back what is freed, by bounds that stay. For a process whose large pieces
/// come from clients: one that allocates large arrays in each step would pay for fresh pages each time.
pub fn keep_little_free() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: plain calls on numbers.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES);
        libc::mallopt(libc::M_TRIM_THRESHOLD, FREE_BYTES);
    }
}
