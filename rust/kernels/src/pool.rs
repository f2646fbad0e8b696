//! The threads of a plan: they spin for the next operation for a while, then park.
//!
//! A step is a few hundred operations of microseconds each, so handing one out must cost far less than that: here one store
//! and one load a thread (0.1 us measured; a general-purpose pool takes 9 to 45 us). Between steps the threads sleep.
#![allow(unsafe_code)] // The operation lives on the caller's stack while the threads run it.

use std::cell::UnsafeCell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;

use crate::error::{Error, Result};
use crate::float_env::FloatEnvironment;
use crate::memory::Disjoint;

/// Polls before a thread parks: about 0.1 ms, longer than the gap between two operations of a step.
const SPINS_BEFORE_PARK: u32 = 4_000;
/// Polls before the caller lets others run, when a thread of the pool seems to have lost its core.
const SPINS_BEFORE_YIELD: u32 = 1_000;

/// Rows that a thread takes at once: enough work to be worth handing out.
const ROWS_AT_ONCE: usize = 4;

/// A call of the closure that the caller lent to the pool.
#[derive(Clone, Copy)]
struct Job {
    call: unsafe fn(*const (), usize),
    data: *const (),
}

struct Shared {
    /// Counts jobs; a change hands out the job.
    epoch: AtomicU64,
    /// Threads that have not finished the job.
    running: AtomicUsize,
    job: UnsafeCell<Job>,
    stopping: AtomicBool,
    panicked: AtomicBool,
    parked: Vec<AtomicBool>,
}

// SAFETY: `job` is written only while no thread runs one (`running` is 0), and read only after the change of `epoch` that
// follows the write; the pointer in it is used while its owner waits in `Pool::run`.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

/// The caller and `n_threads - 1` threads of the pool's own; dropping it ends them.
pub(crate) struct Pool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Pool {
    /// Starts the threads. `n_threads` counts the caller.
    pub(crate) fn new(n_threads: usize) -> Result<Self> {
        let n_helpers = n_threads.saturating_sub(1);
        let shared = Arc::new(Shared {
            epoch: AtomicU64::new(0),
            running: AtomicUsize::new(0),
            job: UnsafeCell::new(Job {
                call: call_nothing,
                data: std::ptr::null(),
            }),
            stopping: AtomicBool::new(false),
            panicked: AtomicBool::new(false),
            parked: (0..n_helpers).map(|_| AtomicBool::new(false)).collect(),
        });
        let mut pool = Self {
            shared,
            threads: Vec::with_capacity(n_helpers),
        };
        for helper_idx in 0..n_helpers {
            let shared = Arc::clone(&pool.shared);
            let thread = std::thread::Builder::new()
                .name(format!("pie-kernels-{}", helper_idx + 1))
                .spawn(move || serve(&shared, helper_idx))
                .map_err(|error| {
                    Error::argument(format!(
                        "cannot start thread {} of {n_threads}: {error}; ask for fewer",
                        helper_idx + 2
                    ))
                })?;
            pool.threads.push(thread);
        }
        Ok(pool)
    }

    /// How many threads take part, the caller included.
    pub(crate) fn n_threads(&self) -> usize {
        self.threads.len() + 1
    }

    /// Calls `f(thread_idx)` once on each thread and returns when all calls have.
    pub(crate) fn run<F: Fn(usize) + Sync>(&mut self, f: &F) -> Result<()> {
        let shared = &*self.shared;
        shared.running.store(self.threads.len(), Ordering::Relaxed);
        // SAFETY: no thread runs a job: the former call of this function waited for all of them.
        unsafe {
            *shared.job.get() = Job {
                call: call::<F>,
                data: std::ptr::from_ref(f).cast(),
            }
        };
        shared.epoch.fetch_add(1, Ordering::SeqCst);
        for (thread, parked) in self.threads.iter().zip(&shared.parked) {
            if parked.load(Ordering::SeqCst) {
                thread.thread().unpark();
            }
        }
        let own = catch_unwind(AssertUnwindSafe(|| f(0)));
        let mut spins = 0u32;
        while shared.running.load(Ordering::Acquire) != 0 {
            spins += 1;
            if spins < SPINS_BEFORE_YIELD {
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
        }
        if own.is_err() || shared.panicked.swap(false, Ordering::Relaxed) {
            return Err(Error::internal(
                "a kernel failed; the results of this step are void",
            ));
        }
        Ok(())
    }

    /// Calls `f(range, thread_idx)` for ranges of at most `grain` that together make `0..n`, each given out once.
    pub(crate) fn for_each<F: Fn(Range<usize>, usize) + Sync>(
        &mut self,
        n: usize,
        grain: usize,
        f: F,
    ) -> Result<()> {
        let grain = grain.max(1);
        if n == 0 {
            return Ok(());
        }
        if self.threads.is_empty() || n <= grain {
            f(0..n, 0);
            return Ok(());
        }
        let next = AtomicUsize::new(0);
        self.run(&|thread_idx| {
            loop {
                let start = next.fetch_add(grain, Ordering::Relaxed);
                if start >= n {
                    break;
                }
                f(start..n.min(start + grain), thread_idx);
            }
        })
    }

    /// Calls `f(row_idx, row)` once for each row of `width` elements of `out`.
    pub(crate) fn for_each_row<T: Send, F: Fn(usize, &mut [T]) + Sync>(
        &mut self,
        out: &mut [T],
        width: usize,
        f: F,
    ) -> Result<()> {
        let n_rows = out.len() / width;
        let rows = Disjoint::new(out);
        self.for_each(n_rows, ROWS_AT_ONCE, |range, _thread_idx| {
            for row_idx in range {
                // SAFETY: each row index is given out once.
                f(row_idx, unsafe {
                    rows.part(row_idx * width..(row_idx + 1) * width)
                });
            }
        })
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        self.shared.epoch.fetch_add(1, Ordering::SeqCst);
        for thread in self.threads.drain(..) {
            thread.thread().unpark();
            // A thread catches the panics of its jobs, so there is nothing that joining could report.
            let _ = thread.join();
        }
    }
}

fn serve(shared: &Shared, helper_idx: usize) {
    let _environment = FloatEnvironment::enter();
    let mut seen = 0;
    loop {
        seen = next_epoch(shared, &shared.parked[helper_idx], seen);
        if shared.stopping.load(Ordering::SeqCst) {
            return;
        }
        // SAFETY: the epoch changed after the job was written, and its owner waits until `running` is 0.
        let done = catch_unwind(AssertUnwindSafe(|| unsafe {
            let job = *shared.job.get();
            (job.call)(job.data, helper_idx + 1);
        }));
        if done.is_err() {
            shared.panicked.store(true, Ordering::Relaxed);
        }
        shared.running.fetch_sub(1, Ordering::Release);
    }
}

fn next_epoch(shared: &Shared, parked: &AtomicBool, seen: u64) -> u64 {
    let mut spins = 0;
    loop {
        let epoch = shared.epoch.load(Ordering::Acquire);
        if epoch != seen {
            return epoch;
        }
        spins += 1;
        if spins <= SPINS_BEFORE_PARK {
            std::hint::spin_loop();
            continue;
        }
        parked.store(true, Ordering::SeqCst);
        // Looked at again after the flag: whoever changes the epoch looks at the flag afterwards.
        while shared.epoch.load(Ordering::SeqCst) == seen {
            std::thread::park();
        }
        parked.store(false, Ordering::SeqCst);
    }
}

/// # Safety
/// `data` points to an `F` that outlives the call.
unsafe fn call<F: Fn(usize) + Sync>(data: *const (), thread_idx: usize) {
    // SAFETY: the contract of this function.
    unsafe { (*data.cast::<F>())(thread_idx) }
}

/// The job before the first one.
unsafe fn call_nothing(_data: *const (), _thread_idx: usize) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_given_out_once() {
        for n_threads in [1, 2, 3] {
            let mut pool = Pool::new(n_threads).unwrap();
            for (n, grain) in [(0, 1), (1, 1), (7, 2), (1000, 3), (64, 64), (65, 64)] {
                let counts: Vec<AtomicUsize> = (0..n).map(|_| AtomicUsize::new(0)).collect();
                pool.for_each(n, grain, |range, thread_idx| {
                    assert!(thread_idx < n_threads);
                    for item in range {
                        counts[item].fetch_add(1, Ordering::Relaxed);
                    }
                })
                .unwrap();
                assert!(
                    counts
                        .iter()
                        .all(|count| count.load(Ordering::Relaxed) == 1),
                    "{n_threads} threads, {n} items by {grain}"
                );
            }
        }
    }

    #[test]
    fn a_panic_on_any_thread_is_an_error_and_the_pool_lives_on() {
        let mut pool = Pool::new(2).unwrap();
        for guilty in [0, 1] {
            let result = pool.run(&|thread_idx| assert!(thread_idx != guilty));
            assert!(result.is_err());
            assert!(pool.run(&|_| ()).is_ok());
        }
    }

    #[test]
    fn parked_threads_wake() {
        let mut pool = Pool::new(2).unwrap();
        for _ in 0..3 {
            while !pool.shared.parked[0].load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            pool.run(&|_| ()).unwrap();
        }
    }
}
