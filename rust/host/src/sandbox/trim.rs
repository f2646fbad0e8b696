//! Gives memory that was freed back to the system: the allocator keeps what many small pieces were freed from.

#![expect(
    unsafe_code,
    reason = "calls malloc_trim of the C library, which takes a number and may be called at any time from any thread"
)]

/// Gives back what the allocator holds free.
pub fn give_back_freed() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: a plain call on a number; it locks what it works on.
    unsafe {
        libc::malloc_trim(0);
    }
}
