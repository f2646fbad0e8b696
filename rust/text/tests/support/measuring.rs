//! An allocator that counts: what some work leaves allocated, and the most that it takes.
#![allow(
    unsafe_code,
    reason = "an allocator that counts hands on to that of the system"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Bytes that are held, and the most that were.
static HELD: AtomicIsize = AtomicIsize::new(0);
static MOST: AtomicIsize = AtomicIsize::new(0);
/// Who measures is alone.
static MEASURING: Mutex<()> = Mutex::new(());

struct Counting;

impl Counting {
    fn count(n_bytes: isize) {
        let now = HELD.fetch_add(n_bytes, Relaxed) + n_bytes;
        MOST.fetch_max(now, Relaxed);
    }
}

// SAFETY: every call is handed on as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::count(layout.size().cast_signed());
        // SAFETY: as the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        Self::count(-layout.size().cast_signed());
        // SAFETY: as the caller's.
        unsafe { System.dealloc(pointer, layout) }
    }

    // A large block grows where it lies: the system moves its pages.
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, n_bytes: usize) -> *mut u8 {
        Self::count(n_bytes.cast_signed() - layout.size().cast_signed());
        // SAFETY: as the caller's.
        unsafe { System.realloc(pointer, layout, n_bytes) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Keeps the other tests of a binary from allocating what `work` is charged with.
pub(crate) fn alone<T>(work: impl FnOnce() -> T) -> T {
    let _alone = MEASURING.lock().unwrap_or_else(PoisonError::into_inner);
    work()
}

/// What some work leaves allocated, and the most that it takes, in bytes.
pub(crate) fn measured<T>(work: impl FnOnce() -> T) -> (T, usize, usize) {
    let before = HELD.load(Relaxed);
    MOST.store(before, Relaxed);
    let done = work();
    let (now, most) = (HELD.load(Relaxed), MOST.load(Relaxed));
    let bytes = |at: isize| usize::try_from(at - before).unwrap_or(0);
    (done, bytes(now), bytes(most))
}

/// A table of what became of bad input: what was said, how long it took, and the most that it took.
#[derive(Default)]
pub(crate) struct Table {
    slowest_ms: f64,
    largest_bytes: usize,
    beyond: Vec<String>,
}

impl Table {
    /// The most that one line may take.
    const MAX_BYTES: usize = 64 << 20;

    /// Runs one line, and prints it. `said` is what is printed of its answer.
    pub(crate) fn line<T>(
        &mut self,
        name: &str,
        work: impl FnOnce() -> T,
        said: impl FnOnce(&T) -> String,
    ) -> T {
        let began = Instant::now();
        let (answer, _, most) = measured(work);
        let ms = began.elapsed().as_secs_f64() * 1e3;
        println!(
            "{name}: {ms:.0} ms, {:.1} MiB: {}",
            most as f64 / f64::from(1 << 20),
            said(&answer)
        );
        self.slowest_ms = self.slowest_ms.max(ms);
        self.largest_bytes = self.largest_bytes.max(most);
        if most > Self::MAX_BYTES {
            self.beyond.push(format!("{name}: {most} bytes"));
        }
        answer
    }

    /// Prints the sum, and fails where a line took too much.
    pub(crate) fn end(self) {
        println!(
            "the slowest takes {:.0} ms, the largest {} KiB",
            self.slowest_ms,
            self.largest_bytes >> 10
        );
        assert_eq!(self.beyond, Vec::<String>::new());
    }
}
