//! What keeps a worker process to its work: an identity of its own, limits, and a filter of the calls that it may make
//! to the system.
//!
//! | step | what it takes away | where it holds |
//! |---|---|---|
//! | [`leave`] | open files, gaining privileges, dumps; root's identity, where the engine has that | Linux |
//! | [`limit`] | processor time, address space, writing files, opening them, new processes | Linux |
//! | [`filter`] | every call to the system but those for memory, threads that are there, and the three streams | Linux on x86-64 and ARM64 |
//!
//! A worker that makes another call is killed. Calls that libraries make in passing, and can do without, are refused
//! instead.
//!
//! Limits that cannot be set end the worker. Where the system refuses any other step the rest holds, and the worker
//! says which one it was ([`Lacking`]) before it reads what a user supplied.

#![expect(
    unsafe_code,
    reason = "sets limits, identity and the signal of a parent's death for this process through libc; only numbers and live locals cross"
)]

use crate::Error;

/// The user and the group that root's workers run as: nobody.
const NOBODY: libc::uid_t = 65534;
/// The three streams.
const N_STREAMS: libc::c_uint = 3;

/// A step that the system may refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Files,
    Privileges,
    Identity,
    Memory,
    Parent,
    Calls,
}

impl Step {
    const ALL: [Self; 6] = [
        Self::Files,
        Self::Privileges,
        Self::Identity,
        Self::Memory,
        Self::Parent,
        Self::Calls,
    ];

    /// What a worker can do where the step was refused.
    fn lack(self) -> &'static str {
        match self {
            Self::Files => "they keep the open files of the engine (close_range)",
            Self::Privileges => "they may gain privileges (no_new_privs)",
            Self::Identity => "they run as root (setresuid)",
            Self::Memory => "others of their user may read their memory (dumpable)",
            Self::Parent => "they may outlive the engine (pdeathsig)",
            Self::Calls => "they may make any call to the system (seccomp)",
        }
    }
}

/// The steps that the system refused, a bit for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lacking(u8);

impl Lacking {
    /// As a worker sends it.
    pub(crate) fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    pub(crate) fn bits(self) -> u8 {
        self.0
    }

    pub(super) fn note(&mut self, step: Step, holds: bool) {
        if !holds {
            self.0 |= 1 << step as u8;
        }
    }

    /// What workers can do for it.
    pub(crate) fn told(self) -> impl Iterator<Item = &'static str> {
        let lacking = move |step: &Step| self.0 & (1 << *step as u8) != 0;
        Step::ALL.into_iter().filter(lacking).map(Step::lack)
    }
}

/// Leaves what was inherited behind. Where the system refuses a part of it, the rest holds.
pub(super) fn leave() -> Lacking {
    let mut lacking = Lacking::default();
    // SAFETY: plain system calls on numbers. What stands behind the three streams belongs to nothing that goes on.
    unsafe {
        let closed = libc::syscall(libc::SYS_close_range, N_STREAMS, libc::c_uint::MAX, 0);
        lacking.note(Step::Files, closed == 0);
        let bound = libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        lacking.note(Step::Privileges, bound == 0);
        if libc::geteuid() == 0 {
            let changed = libc::setgroups(0, std::ptr::null()) == 0
                && libc::setresgid(NOBODY, NOBODY, NOBODY) == 0
                && libc::setresuid(NOBODY, NOBODY, NOBODY) == 0;
            lacking.note(Step::Identity, changed);
        }
        let hidden = libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
        lacking.note(Step::Memory, hidden == 0);
        // After the change of identity, which clears it: the worker ends with the thread that waits for it.
        let tied = libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
        lacking.note(Step::Parent, tied == 0);
    }
    lacking
}

/// Limits this process to so many seconds of processor time, and so many bytes beyond the address space that it has; it
/// can make neither files nor processes. Threads that it needs are there already.
///
/// # Errors
/// `internal` where the system refuses.
pub(super) fn limit(cpu_s: u64, memory_bytes: u64) -> Result<(), Error> {
    let bounds = [
        (libc::RLIMIT_CORE, 0),
        (libc::RLIMIT_FSIZE, 0),
        (libc::RLIMIT_NOFILE, u64::from(N_STREAMS)),
        (libc::RLIMIT_NPROC, 0),
        (libc::RLIMIT_CPU, cpu_s),
        (
            libc::RLIMIT_AS,
            address_space_bytes()?.saturating_add(memory_bytes),
        ),
    ];
    bounds.into_iter().try_for_each(|(resource, most)| {
        // A second more, so that what is over its time ends by a signal of its own: SIGKILL is of somebody who needed
        // its memory.
        let spare = u64::from(resource == libc::RLIMIT_CPU);
        let bound = libc::rlimit {
            rlim_cur: most,
            rlim_max: most + spare,
        };
        // SAFETY: the pointer is to a live local of the type that the call reads.
        if unsafe { libc::setrlimit(resource, &raw const bound) } == 0 {
            return Ok(());
        }
        Err(Error::internal(format!(
            "the limit {resource} cannot be set to {most}: {}",
            std::io::Error::last_os_error()
        )))
    })
}

/// What this process takes of its address space.
fn address_space_bytes() -> Result<u64, Error> {
    const PAGE_BYTES: u64 = 4096;
    let status = std::fs::read_to_string("/proc/self/statm").map_err(Error::internal)?;
    let n_pages: u64 = status
        .split_whitespace()
        .next()
        .and_then(|field| field.parse().ok())
        .ok_or_else(|| Error::internal("/proc/self/statm cannot be read"))?;
    Ok(n_pages.saturating_mul(PAGE_BYTES))
}

/// Ends this process at once, whatever else runs in it.
pub(super) fn exit(code: i32) -> ! {
    // SAFETY: nothing runs after it.
    unsafe { libc::_exit(code) }
}

/// Keeps all threads of this process from calls to the system that their work does not need; false where the system has
/// no filters, and the other bounds hold alone.
///
/// # Errors
/// `internal` where the filter itself is wrong.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) fn filter() -> Result<bool, Error> {
    Ok(false)
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(super) use filters::filter;

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod filters {
    use std::collections::BTreeMap;

    use seccompiler::{
        BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
        SeccompRule, apply_filter_all_threads,
    };

    use crate::Error;

    /// What the work needs, whatever the arguments.
    const ALLOWED: &[libc::c_long] = &[
        libc::SYS_brk,
        libc::SYS_clock_gettime,
        libc::SYS_clock_nanosleep,
        libc::SYS_close,
        libc::SYS_exit,
        libc::SYS_exit_group,
        libc::SYS_futex,
        libc::SYS_getpid,
        libc::SYS_getrandom,
        libc::SYS_gettid,
        libc::SYS_madvise,
        libc::SYS_membarrier,
        libc::SYS_mremap,
        libc::SYS_munmap,
        libc::SYS_nanosleep,
        libc::SYS_read,
        libc::SYS_readv,
        libc::SYS_restart_syscall,
        libc::SYS_rseq,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_sched_getaffinity,
        libc::SYS_sched_yield,
        libc::SYS_set_robust_list,
        libc::SYS_sigaltstack,
        libc::SYS_write,
        libc::SYS_writev,
    ];

    /// What libraries try in passing, and can do without: names of threads and of memory, the number of cores, kinds of
    /// files.
    const REFUSED: &[libc::c_long] = &[
        libc::SYS_fcntl,
        libc::SYS_fstat,
        libc::SYS_getcwd,
        libc::SYS_ioctl,
        libc::SYS_lseek,
        libc::SYS_newfstatat,
        libc::SYS_openat,
        libc::SYS_readlinkat,
        libc::SYS_statx,
        libc::SYS_sysinfo,
        libc::SYS_uname,
    ];

    /// Conditions by call; none: whatever the arguments.
    type Rules = BTreeMap<i64, Vec<SeccompRule>>;

    /// Calls that may not make memory executable: the number of the argument that says so.
    const PROTECTING: &[(libc::c_long, u8)] = &[(libc::SYS_mmap, 2), (libc::SYS_mprotect, 2)];

    pub(in super::super) fn filter() -> Result<bool, Error> {
        match apply_filter_all_threads(&refusing()?) {
            // The system has no filters.
            Err(seccompiler::Error::Prctl(_) | seccompiler::Error::Seccomp(_)) => return Ok(false),
            applied => applied.map_err(Error::internal)?,
        }
        // The last one: it forbids to apply more.
        apply_filter_all_threads(&killing()?).map_err(Error::internal)?;
        Ok(true)
    }

    /// Refuses what libraries try in passing.
    fn refusing() -> Result<BpfProgram, Error> {
        let mut rules: Rules = REFUSED.iter().map(|&call| (call, Vec::new())).collect();
        // Applying the next filter sets this once more.
        let applying = u64::from(libc::PR_SET_NO_NEW_PRIVS.unsigned_abs());
        rules.insert(libc::SYS_prctl, vec![rule(0, SeccompCmpOp::Ne, applying)?]);
        let refused = SeccompAction::Errno(libc::EPERM.unsigned_abs());
        program(rules, SeccompAction::Allow, refused)
    }

    /// Kills at every call that is not known.
    fn killing() -> Result<BpfProgram, Error> {
        let mut rules: Rules = ALLOWED
            .iter()
            .chain(REFUSED)
            .chain(&[libc::SYS_prctl])
            .map(|&call| (call, Vec::new()))
            .collect();
        for &(call, argument) in PROTECTING {
            let executable = u64::from(libc::PROT_EXEC.unsigned_abs());
            rules.insert(
                call,
                vec![rule(argument, SeccompCmpOp::MaskedEq(executable), 0)?],
            );
        }
        // To abort is to send a signal to oneself.
        let own = u64::from(std::process::id());
        rules.insert(libc::SYS_tgkill, vec![rule(0, SeccompCmpOp::Eq, own)?]);
        program(rules, SeccompAction::KillProcess, SeccompAction::Allow)
    }

    fn rule(argument: u8, operator: SeccompCmpOp, value: u64) -> Result<SeccompRule, Error> {
        let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
            .map_err(Error::internal)?;
        SeccompRule::new(vec![condition]).map_err(Error::internal)
    }

    fn program(
        rules: Rules,
        otherwise: SeccompAction,
        matching: SeccompAction,
    ) -> Result<BpfProgram, Error> {
        let arch = std::env::consts::ARCH.try_into().map_err(Error::internal)?;
        SeccompFilter::new(rules, otherwise, matching, arch)
            .and_then(TryInto::try_into)
            .map_err(Error::internal)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, ExitStatus, Stdio};

    use super::*;

    /// This test, which is also the process that it confines.
    const NAME: &str = "program::confine::tests::a_confined_process_can_only_work";
    const PROBE: &str = "probe=";
    /// How a probe ends whose call was refused, and one that could make it.
    const REFUSED: i32 = 10;
    const DONE: i32 = 0;

    fn probed(what: &str) -> ExitStatus {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", NAME, "--nocapture", &format!("{PROBE}{what}")])
            .stdout(Stdio::null())
            .status()
            .unwrap()
    }

    /// Confines this process, and tries what a worker could be made to do.
    fn probe(what: &str) -> ! {
        let mut lacking = leave();
        limit(60, 1 << 30).unwrap();
        lacking.note(Step::Calls, filter().unwrap());
        // SAFETY: plain calls to the system, in a process of its own that ends here.
        let could = unsafe {
            match what {
                "work" => {
                    let numbers: Vec<u64> = (0..100_000).collect();
                    numbers.iter().sum::<u64>() > 0 && libc::write(2, c"".as_ptr().cast(), 0) == 0
                }
                "open" => std::fs::File::open("/proc/self/status").is_ok(),
                "socket" => libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0) >= 0,
                "fork" => libc::fork() >= 0,
                "execute" => {
                    libc::execl(
                        c"/bin/true".as_ptr(),
                        c"true".as_ptr(),
                        std::ptr::null::<libc::c_char>(),
                    ) == 0
                }
                "signal" => libc::kill(libc::getppid(), 0) == 0,
                "code" => {
                    let (protection, flags) = (
                        libc::PROT_READ | libc::PROT_EXEC,
                        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                    );
                    libc::mmap(std::ptr::null_mut(), 4096, protection, flags, -1, 0)
                        != libc::MAP_FAILED
                }
                "root" => libc::setresuid(0, 0, 0) == 0,
                "lacking" => lacking == Lacking::default(),
                _ => false,
            }
        };
        exit(if could { DONE } else { REFUSED });
    }

    #[test]
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    fn a_confined_process_can_only_work() {
        if let Some(what) =
            std::env::args().find_map(|argument| argument.strip_prefix(PROBE).map(str::to_owned))
        {
            probe(&what);
        }
        assert_eq!(probed("work").code(), Some(DONE));
        assert_eq!(probed("lacking").code(), Some(DONE));
        assert_eq!(probed("open").code(), Some(REFUSED));
        for what in ["socket", "fork", "execute", "signal", "code", "root"] {
            assert_eq!(probed(what).signal(), Some(libc::SIGSYS), "{what}");
        }
    }

    #[test]
    fn what_the_system_refuses_is_told() {
        let mut lacking = Lacking::default();
        for step in Step::ALL {
            lacking.note(step, step != Step::Identity && step != Step::Calls);
        }
        let told: Vec<_> = Lacking::from_bits(lacking.bits()).told().collect();
        let expected = [
            "they run as root (setresuid)",
            "they may make any call to the system (seccomp)",
        ];
        assert_eq!(told, expected);
    }
}
