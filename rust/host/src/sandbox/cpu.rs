//! Processor time of one program, and the memory that it meets for the first time: counted while its task runs, and
//! bounded. Work that the engine does for it on other threads is counted where it is done ([`CpuMeter::measured`]).
//!
//! The clock of the thread is read, so that time in which the operating system ran something else does not count. So is
//! its count of page faults; what a thread did between the turns of programs counts to the program that comes next.

#![expect(
    unsafe_code,
    reason = "reads the processor clock and the page faults of the calling thread through libc; the pointers are to local values"
)]

use std::cell::Cell;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

/// The processor time of one program.
#[derive(Debug, Default)]
pub(crate) struct CpuMeter {
    used_ns: AtomicU64,
    /// The thread's clock when the task was last polled.
    poll_started_ns: AtomicU64,
    /// Pages that were met for the first time.
    n_faults: AtomicU64,
    /// The task was last polled until its turn was over, not until it waits.
    yielded: AtomicBool,
}

impl CpuMeter {
    /// Time used in finished polls, and in work that was done apart from them.
    pub(crate) fn used(&self) -> Duration {
        Duration::from_nanos(self.used_ns.load(Ordering::Relaxed))
    }

    /// Time used, the running poll included; to be called from within it.
    pub(crate) fn used_with_running_poll(&self) -> Duration {
        self.used() + self.running_poll()
    }

    /// Time used in the running poll; to be called from within it.
    pub(crate) fn running_poll(&self) -> Duration {
        let started_ns = self.poll_started_ns.load(Ordering::Relaxed);
        Duration::from_nanos(thread_cpu_ns().saturating_sub(started_ns))
    }

    /// Bytes of memory met for the first time, up to the last poll or the last call of this.
    pub(crate) fn met_bytes(&self) -> u64 {
        self.n_faults
            .load(Ordering::Relaxed)
            .saturating_mul(page_bytes())
    }

    /// The same, the running poll included; to be called from within it.
    pub(crate) fn met_bytes_with_running_poll(&self) -> u64 {
        self.n_faults.fetch_add(take_faults(), Ordering::Relaxed);
        self.met_bytes()
    }

    /// Does work of the program on a thread of the engine, and counts the time that it takes there.
    pub(crate) fn measured<T>(&self, work: impl FnOnce() -> T) -> T {
        let started = thread_cpu_ns();
        let done = work();
        let spent = thread_cpu_ns().saturating_sub(started);
        self.used_ns.fetch_add(spent, Ordering::Relaxed);
        done
    }

    /// Notes that the running poll ends because the turn of the program is over.
    pub(crate) fn note_yield(&self) {
        self.yielded.store(true, Ordering::Relaxed);
    }

    /// Whether the last poll ended so; asking forgets it.
    pub(crate) fn take_yielded(&self) -> bool {
        self.yielded.swap(false, Ordering::Relaxed)
    }
}

/// A future whose polls are counted by a meter.
pub(crate) struct Metered<F> {
    meter: Arc<CpuMeter>,
    inner: Pin<Box<F>>,
}

impl<F: Future> Metered<F> {
    pub(crate) fn new(meter: Arc<CpuMeter>, inner: F) -> Self {
        Self {
            meter,
            inner: Box::pin(inner),
        }
    }
}

impl<F: Future> Future for Metered<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        begin_counting_faults();
        let started = thread_cpu_ns();
        self.meter.poll_started_ns.store(started, Ordering::Relaxed);
        let result = self.inner.as_mut().poll(context);
        let spent = thread_cpu_ns().saturating_sub(started);
        self.meter.used_ns.fetch_add(spent, Ordering::Relaxed);
        self.meter
            .n_faults
            .fetch_add(take_faults(), Ordering::Relaxed);
        result
    }
}

/// Processor time of the calling thread in nanoseconds; 0 where the clock cannot be read.
fn thread_cpu_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a live local of the type that the call fills.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) } != 0;
    if failed {
        return 0;
    }
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds
        .saturating_mul(1_000_000_000)
        .saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}

thread_local! {
    /// The faults of this thread when they were last counted.
    static COUNTED: Cell<Option<u64>> = const { Cell::new(None) };
}

/// What a thread did before it ran programs is nobody's.
fn begin_counting_faults() {
    COUNTED.with(|counted| {
        if counted.get().is_none() {
            counted.set(Some(thread_faults()));
        }
    });
}

/// Page faults of the calling thread since they were last counted.
fn take_faults() -> u64 {
    let faults = thread_faults();
    let before = COUNTED.with(|counted| counted.replace(Some(faults)));
    before.map_or(0, |before| faults.saturating_sub(before))
}

/// Pages that the calling thread met for the first time; 0 where they cannot be read.
fn thread_faults() -> u64 {
    // SAFETY: all of the type are numbers, for which zero is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live local of the type that the call fills.
    let failed = unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) } != 0;
    if failed {
        return 0;
    }
    u64::try_from(usage.ru_minflt).unwrap_or(0)
}

/// Bytes of a page of the system.
fn page_bytes() -> u64 {
    // SAFETY: a plain system call on numbers.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(bytes).unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn memory_that_is_written_is_met_once() {
        // More than an allocator keeps for another time: it is mapped afresh.
        const BYTES: usize = 48 << 20;
        let meter = Arc::new(CpuMeter::default());
        let memory = Metered::new(meter.clone(), async {
            let mut memory = vec![0_u8; BYTES];
            memory.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
            memory
        })
        .await;
        let met = meter.met_bytes();
        assert!((BYTES as u64..2 * BYTES as u64).contains(&met), "{met}");
        let memory = Metered::new(meter.clone(), async move {
            let mut memory = memory;
            memory.iter_mut().step_by(4096).for_each(|byte| *byte = 2);
            memory
        })
        .await;
        assert!(meter.met_bytes() - met < 1 << 20);
        drop(memory);
    }

    #[tokio::test]
    async fn work_counts_and_waiting_does_not() {
        let meter = Arc::new(CpuMeter::default());
        let inner = meter.clone();
        Metered::new(meter.clone(), async move {
            let mut sum = 0_u64;
            while inner.used_with_running_poll() < Duration::from_millis(5) {
                sum = std::hint::black_box(sum + 1);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        })
        .await;
        assert!(meter.used() >= Duration::from_millis(5));
        assert!(
            meter.used() < Duration::from_millis(45),
            "{:?}",
            meter.used()
        );
    }
}
