//! Processor time of one program: counted while its task runs, and bounded.
//!
//! The clock of the thread is read, so that time in which the operating system ran something else does not count.

#![expect(
    unsafe_code,
    reason = "reads the processor clock of the calling thread through libc; the pointer is to a local value"
)]

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
    /// The task was last polled until its turn was over, not until it waits.
    yielded: AtomicBool,
}

impl CpuMeter {
    /// Time used in finished polls.
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
        let started = thread_cpu_ns();
        self.meter.poll_started_ns.store(started, Ordering::Relaxed);
        let result = self.inner.as_mut().poll(context);
        let spent = thread_cpu_ns().saturating_sub(started);
        self.meter.used_ns.fetch_add(spent, Ordering::Relaxed);
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

#[cfg(test)]
mod tests {
    use super::*;

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
