//! The priority of the threads that run programs: below the driver's, so that spinning programs do not halve the model.

#![expect(
    unsafe_code,
    reason = "sets the niceness of the calling thread through libc; no memory is passed"
)]

/// Lowers the priority of the calling thread by `niceness` steps. Where the system refuses, the thread keeps its priority: the
/// programs still run, only less politely.
pub(crate) fn lower_this_thread(niceness: u8) {
    if niceness == 0 {
        return;
    }
    // SAFETY: plain system calls on numbers. On Linux the niceness belongs to a thread, and id 0 is the calling one.
    unsafe {
        let current = libc::getpriority(libc::PRIO_PROCESS, 0);
        libc::setpriority(
            libc::PRIO_PROCESS,
            0,
            current.saturating_add(i32::from(niceness)).min(19),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_calling_thread_becomes_nicer() {
        // SAFETY: a plain system call on numbers.
        let niceness = || unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
        let before = niceness();
        let lowered = std::thread::spawn(move || {
            lower_this_thread(3);
            niceness()
        });
        assert_eq!(lowered.join().unwrap(), (before + 3).min(19));
        assert_eq!(niceness(), before);
    }
}
