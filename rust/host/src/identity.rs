//! Who this process runs as.

#![expect(
    unsafe_code,
    reason = "calls geteuid of the C library, which takes nothing and cannot fail"
)]

/// The number of the user whose rights this process has.
pub fn effective_user() -> u32 {
    // SAFETY: a plain call.
    unsafe { libc::geteuid() }
}
