//! Whose turn it is on a core: threads that run programs stand below the driver's, so that spinning programs do not
//! halve the model.
//!
//! Where the system refuses any of this, the thread keeps what it has: everything runs, only less politely. No result
//! depends on it.

#![expect(
    unsafe_code,
    reason = "sets how the calling thread is scheduled through libc; the memory that is passed lives as long as the call"
)]

use std::mem::size_of;

/// How long a thread runs that takes short turns, before another one of its priority does: the least that Linux takes.
const SHORT_TURN_NS: u64 = 100_000;

/// Lowers the priority of the calling thread by `niceness` steps.
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

/// Has the calling thread run only while no other one wants its core, or nearly so, and lose it at once to one that
/// wakes.
pub(crate) fn idle_this_thread() {
    #[cfg(target_os = "linux")]
    // SAFETY: the structure of the call, which is of plain numbers, lives until it returns.
    unsafe {
        let mut parameters: libc::sched_param = std::mem::zeroed();
        parameters.sched_priority = 0;
        libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters);
    }
    #[cfg(not(target_os = "linux"))]
    lower_this_thread(19);
}

/// Has the calling thread, and those that it starts, run in short turns: when it wakes, it takes the core of one whose
/// turns are longer, though no more of the time. For the threads of which a token needs one after the other. Linux 6.12
/// and later; nothing happens elsewhere.
pub fn take_short_turns() {
    #[cfg(target_os = "linux")]
    {
        /// `struct sched_attr` of Linux, as far as it goes in every version.
        #[repr(C)]
        struct Attributes {
            size: u32,
            policy: u32,
            flags: u64,
            nice: i32,
            priority: u32,
            runtime: u64,
            deadline: u64,
            period: u64,
        }
        let bytes = size_of::<Attributes>() as u32;
        // SAFETY: the structure lives until the calls return, and says how large it is.
        unsafe {
            let mut attributes: Attributes = std::mem::zeroed();
            let found = libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, bytes, 0);
            if found == 0 && attributes.policy == libc::SCHED_OTHER as u32 {
                attributes.runtime = SHORT_TURN_NS;
                libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What runs the calling thread, its niceness and its turn in nanoseconds, as the system tells them.
    #[cfg(target_os = "linux")]
    fn scheduled() -> (u32, i32, u64) {
        let mut words = [0_u64; 6];
        // SAFETY: the system writes at most 48 bytes.
        let found =
            unsafe { libc::syscall(libc::SYS_sched_getattr, 0, words.as_mut_ptr(), 48_u32, 0) };
        assert_eq!(found, 0);
        ((words[0] >> 32) as u32, words[2] as i32, words[3])
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_thread_runs_when_no_other_wants_to() {
        let before = scheduled();
        let idle = std::thread::spawn(|| {
            idle_this_thread();
            scheduled().0
        });
        assert_eq!(idle.join().unwrap(), libc::SCHED_IDLE as u32);
        assert_eq!(scheduled(), before);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn short_turns_leave_the_priority_and_pass_to_threads_that_are_started() {
        let (policy, nice, _) = scheduled();
        let short = std::thread::spawn(|| {
            take_short_turns();
            (scheduled(), std::thread::spawn(scheduled).join().unwrap())
        });
        let (own, of_child) = short.join().unwrap();
        assert_eq!((own.0, own.1), (policy, nice));
        // Systems that know no such turns tell none.
        assert!(own.2 == SHORT_TURN_NS || own.2 == 0, "{own:?}");
        assert_eq!(of_child, own);
    }

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
