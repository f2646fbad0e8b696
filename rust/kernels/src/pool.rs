//! The threads of a plan: they spin for the next operation for a while, offer their core to others, then park.
//!
//! A step is a few hundred operations of microseconds each, so handing one out must cost far less than that: here one
//! store and one load a thread (0.1 us measured; a general-purpose pool takes 9 to 45 us). Between steps the threads
//! sleep.
//!
//! Nobody waits for a thread that has not begun: on a machine that is busy with other things, the system may let it run
//! milliseconds later, and there are hundreds of operations in a step. The caller does what nobody else takes, then
//! closes the operation.
//!
//! | `state` | who changes it | next |
//! |---|---|---|
//! | closed, nobody has joined | the caller, who has written the next operation | open |
//! | open | threads that join, each once an operation, and leave | open |
//! | open | the caller, whose own part is over | closed |
//! | closed, some have joined | threads that leave; the caller waits for the last one | closed, nobody has joined |
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

/// Polls before a thread offers its core to others between two polls: about 10 us, longer than the gap between two
/// operations of a step.
const SPINS_BEFORE_OFFER: u32 = 300;
/// Such offers before a thread parks: 0.1 ms or more, longer than the gap between two steps. Who gives out the next
/// step may run on as many cores as there are threads: one that only looked would keep its core from that.
const OFFERS_BEFORE_PARK: u32 = 400;
/// Polls before the caller lets others run, when a thread of the pool seems to have lost its core.
const SPINS_BEFORE_YIELD: u32 = 1_000;

/// Rows that a thread takes at once: enough work to be worth handing out.
const ROWS_AT_ONCE: usize = 4;

/// A bit of the state: threads may join the operation.
const OPEN: u64 = 1 << 15;
/// The bits of the state that count the threads which have joined and not left.
const JOINED: u64 = OPEN - 1;
/// The place of the operation's number in the state.
const EPOCH_SHIFT: u32 = 16;

/// A call of the closure that the caller lent to the pool.
#[derive(Clone, Copy)]
struct Job {
    call: unsafe fn(*const (), usize),
    data: *const (),
}

struct Shared {
    /// The number of the job, [`OPEN`], and [`JOINED`].
    state: AtomicU64,
    job: UnsafeCell<Job>,
    stopping: AtomicBool,
    panicked: AtomicBool,
    parked: Vec<AtomicBool>,
}

// SAFETY: `job` is written only while `state` is closed and nobody has joined, and read only by threads that have
// joined, which they can while it is open, after the write; the pointer in it is used until they leave, for which its
// owner waits in `Pool::run`.
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
            state: AtomicU64::new(0),
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

    /// Calls `f(thread_idx)` here, as thread 0, and at most once on each other thread that has time, and returns when
    /// all calls have. So `f` takes its work from where the others take theirs.
    pub(crate) fn run<F: Fn(usize) + Sync>(&mut self, f: &F) -> Result<()> {
        let shared = &*self.shared;
        // SAFETY: nobody has joined: the former call of this function closed its job and waited for those who had.
        unsafe {
            *shared.job.get() = Job {
                call: call::<F>,
                data: std::ptr::from_ref(f).cast(),
            }
        };
        let epoch = (shared.state.load(Ordering::Relaxed) >> EPOCH_SHIFT) + 1;
        shared
            .state
            .store(epoch << EPOCH_SHIFT | OPEN, Ordering::SeqCst);
        for (thread, parked) in self.threads.iter().zip(&shared.parked) {
            if parked.load(Ordering::SeqCst) {
                thread.thread().unpark();
            }
        }
        let own = catch_unwind(AssertUnwindSafe(|| f(0)));
        shared.state.fetch_and(!OPEN, Ordering::AcqRel);
        let mut spins = 0u32;
        while shared.state.load(Ordering::Acquire) & JOINED != 0 {
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
        self.shared
            .state
            .fetch_add(1 << EPOCH_SHIFT, Ordering::SeqCst);
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
        let state = next_epoch(shared, &shared.parked[helper_idx], seen);
        seen = state >> EPOCH_SHIFT;
        if shared.stopping.load(Ordering::SeqCst) {
            return;
        }
        if !join(shared, state) {
            continue;
        }
        // SAFETY: this thread has joined: the job is written, and its owner waits until it has left.
        let done = catch_unwind(AssertUnwindSafe(|| unsafe {
            let job = *shared.job.get();
            (job.call)(job.data, helper_idx + 1);
        }));
        if done.is_err() {
            shared.panicked.store(true, Ordering::Relaxed);
        }
        shared.state.fetch_sub(1, Ordering::Release);
    }
}

/// Joins the job that was open in `state`. False: it is over.
fn join(shared: &Shared, mut state: u64) -> bool {
    let epoch = state >> EPOCH_SHIFT;
    while state & OPEN != 0 && state >> EPOCH_SHIFT == epoch {
        match shared.state.compare_exchange_weak(
            state,
            state + 1,
            Ordering::Acquire,
            Ordering::Relaxed,
        ) {
            Ok(_) => return true,
            Err(now) => state = now,
        }
    }
    false
}

/// The state, once it is that of another job than `seen`.
fn next_epoch(shared: &Shared, parked: &AtomicBool, seen: u64) -> u64 {
    let mut spins = 0;
    loop {
        let state = shared.state.load(Ordering::Acquire);
        if state >> EPOCH_SHIFT != seen {
            return state;
        }
        spins += 1;
        if spins <= SPINS_BEFORE_OFFER {
            std::hint::spin_loop();
            continue;
        }
        if spins <= SPINS_BEFORE_OFFER + OFFERS_BEFORE_PARK {
            std::thread::yield_now();
            continue;
        }
        parked.store(true, Ordering::SeqCst);
        // Looked at again after the flag: whoever hands out a job looks at the flag afterwards.
        while shared.state.load(Ordering::SeqCst) >> EPOCH_SHIFT == seen {
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
            // The caller waits for the other thread, which may come late.
            let came = AtomicBool::new(false);
            let result = pool.run(&|thread_idx| {
                match thread_idx {
                    0 => {
                        while !came.load(Ordering::Acquire) {
                            std::hint::spin_loop()
                        }
                    }
                    _ => came.store(true, Ordering::Release),
                }
                assert!(thread_idx != guilty);
            });
            assert!(result.is_err());
            assert!(pool.run(&|_| ()).is_ok());
        }
    }

    /// The closure lives on the stack of the caller: nobody may be in it any more.
    #[test]
    fn the_caller_waits_for_all_who_have_joined() {
        let mut pool = Pool::new(4).unwrap();
        let (n_inside, n_left) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let is_over = AtomicBool::new(false);
        pool.run(&|thread_idx| {
            if thread_idx == 0 {
                while n_inside.load(Ordering::Acquire) < 3 {
                    std::thread::yield_now();
                }
                is_over.store(true, Ordering::Release);
                return;
            }
            n_inside.fetch_add(1, Ordering::AcqRel);
            while !is_over.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            // Longer than the caller needs to return.
            (0..200).for_each(|_| std::thread::yield_now());
            n_left.fetch_add(1, Ordering::AcqRel);
        })
        .unwrap();
        assert_eq!(n_left.load(Ordering::Acquire), 3);
    }

    #[test]
    fn nobody_waits_for_a_thread_that_has_not_begun() {
        let mut pool = Pool::new(2).unwrap();
        let seen = AtomicBool::new(false);
        let shared = Arc::clone(&pool.shared);
        while !shared.parked[0].load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        // As if its core were taken: it is not woken.
        shared.parked[0].store(false, Ordering::SeqCst);
        for n in 1..100 {
            let done = AtomicUsize::new(0);
            pool.for_each(n, 1, |range, thread_idx| {
                seen.fetch_or(thread_idx != 0, Ordering::Relaxed);
                done.fetch_add(range.len(), Ordering::Relaxed);
            })
            .unwrap();
            assert_eq!(done.into_inner(), n);
        }
        assert!(!seen.into_inner());
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
