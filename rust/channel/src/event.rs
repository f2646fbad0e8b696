//! Sleeping until the other side wakes one, or is gone.

#![expect(
    unsafe_code,
    reason = "eventfd and poll are calls of the system without a safe form in the standard library"
)]

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::time::{Duration, Instant};

/// Looks before the processor is offered to others between two looks: the other side may be among them.
const LOOKS: u32 = 256;

/// What one side sleeps on.
#[derive(Debug)]
pub(crate) struct Event(File);

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    /// What was waited for is there.
    There,
    /// The other side is gone, and it is not there.
    Gone,
    /// Nothing happened in time.
    TimedOut,
}

impl Event {
    pub(crate) fn make() -> Result<Self> {
        // SAFETY: the call takes two numbers.
        let descriptor = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if descriptor < 0 {
            return Err(Error::last_os_error());
        }
        // SAFETY: the call made this descriptor, and nobody else has it.
        Ok(Self(File::from(unsafe {
            OwnedFd::from_raw_fd(descriptor)
        })))
    }

    /// One that another process made.
    pub(crate) fn open(descriptor: OwnedFd) -> Self {
        Self(File::from(descriptor))
    }

    pub(crate) fn descriptor(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Wakes who sleeps, as `sleeps` says.
    pub(crate) fn wake(&self, sleeps: &AtomicU32) -> Result<()> {
        if sleeps.swap(0, Ordering::SeqCst) == 0 {
            return Ok(());
        }
        match (&self.0).write(&1u64.to_ne_bytes()) {
            // A count that is full wakes as well.
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
            _ => Ok(()),
        }
    }

    /// Waits until `is_there`: looks for as long as `looking`, then sleeps; whoever makes it so calls [`Event::wake`]
    /// with `sleeps`. `other` is readable, or hung up, when the other side is gone.
    pub(crate) fn wait(
        &self,
        sleeps: &AtomicU32,
        is_there: impl Fn() -> bool,
        other: BorrowedFd<'_>,
        looking: Duration,
        timeout: Option<Duration>,
    ) -> Result<Woken> {
        for _ in 0..LOOKS {
            if is_there() {
                return Ok(Woken::There);
            }
            std::hint::spin_loop();
        }
        let began = Instant::now();
        while began.elapsed() < looking {
            std::thread::yield_now();
            if is_there() {
                return Ok(Woken::There);
            }
        }
        loop {
            // Said before looking once more: who makes it so from now on will wake.
            sleeps.store(1, Ordering::SeqCst);
            // Neither side may see its own store and miss that of the other: whoever makes it so swaps `sleeps` after
            // its own store.
            fence(Ordering::SeqCst);
            let woken = if is_there() {
                Some(Woken::There)
            } else {
                let left = timeout.map(|timeout| timeout.saturating_sub(began.elapsed()));
                self.sleep(other, left)?
            };
            if is_there() {
                sleeps.store(0, Ordering::SeqCst);
                return Ok(Woken::There);
            }
            if let Some(woken) = woken {
                sleeps.store(0, Ordering::SeqCst);
                return Ok(woken);
            }
        }
    }

    /// Sleeps until it is woken (none), the other side is gone, or the time is over.
    fn sleep(&self, other: BorrowedFd<'_>, timeout: Option<Duration>) -> Result<Option<Woken>> {
        let waits = |descriptor| libc::pollfd {
            fd: descriptor,
            events: libc::POLLIN,
            revents: 0,
        };
        let mut both = [waits(self.descriptor()), waits(other.as_raw_fd())];
        let timeout = timeout.map(|timeout| libc::timespec {
            tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_nsec: libc::c_long::from(timeout.subsec_nanos()),
        });
        let timeout = timeout
            .as_ref()
            .map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: two structures, and a time that outlives the call.
        let n = unsafe { libc::ppoll(both.as_mut_ptr(), 2, timeout, std::ptr::null()) };
        if n < 0 {
            let error = Error::last_os_error();
            return match error.kind() {
                // The caller looks at its signals.
                ErrorKind::Interrupted => Ok(Some(Woken::TimedOut)),
                _ => Err(error),
            };
        }
        if both[0].revents != 0 {
            // The count is of no interest; one that was read already is not there.
            drop((&self.0).read(&mut [0; 8]));
            return Ok(None);
        }
        Ok(Some(if both[1].revents != 0 {
            Woken::Gone
        } else {
            Woken::TimedOut
        }))
    }
}
