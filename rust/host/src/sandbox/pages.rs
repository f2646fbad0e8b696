//! The size of the pages that this process gets where it touches memory.
//!
//! What a program has met is counted by page faults ([`super::footprint`]). Where the system gives huge pages unasked
//! (`/sys/kernel/mm/transparent_hugepage/enabled` is `always`), one fault brings 2 MiB of a stack or a memory, and
//! later the system may join pages without any fault: a thousand idle programs would hold gigabytes that nobody is
//! charged with. So a server has small pages in its own process. Advice on the pool of instances alone would not last:
//! wasmtime maps its parts anew when a slot gets another image, and does not say where they are. It costs nothing where
//! it counts: programs have small pages on most systems anyway (`madvise` is the default of the kernel), and weights
//! and keys and values are in the processes of drivers, which ask for huge pages and get them.

#![expect(
    unsafe_code,
    reason = "calls prctl of the C library with numbers, for this process"
)]

/// Says whether this process has small pages alone, or huge ones as the system is set up; what it starts inherits that.
/// Where the system cannot say so, nothing changes.
pub fn keep_small_pages(alone: bool) {
    #[cfg(target_os = "linux")]
    // SAFETY: a plain call on numbers; it changes how memory is backed, never what it holds.
    unsafe {
        libc::prctl(
            libc::PR_SET_THP_DISABLE,
            libc::c_ulong::from(alone),
            0,
            0,
            0,
        );
    }
    #[cfg(not(target_os = "linux"))]
    let _ = alone;
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// What the system says of this process; none where it is too old to.
    fn has_huge_pages() -> Option<bool> {
        let status = std::fs::read_to_string("/proc/self/status").ok()?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("THP_enabled:"))?;
        Some(line.trim() == "1")
    }

    #[test]
    fn pages_are_small_while_that_is_asked_for() {
        let Some(before) = has_huge_pages() else {
            return;
        };
        keep_small_pages(true);
        assert_eq!(has_huge_pages(), Some(false));
        keep_small_pages(false);
        assert!(has_huge_pages() == Some(true) || !before);
    }
}
