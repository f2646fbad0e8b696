//! What `src/sync.rs` of the host offers, on the model checker's threads and a clock that stands still but while
//! somebody waits.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};

use loom::sync::MutexGuard as LoomGuard;

thread_local! {
    /// All threads of the model run on one; only the driver asks for the time.
    static NOW: Cell<u64> = const { Cell::new(0) };
}

/// A time of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Instant(u64);

impl Instant {
    /// No wait takes so long: who waits until then and is not woken waits forever, which the checker reports.
    pub(crate) const NEVER: Self = Self(u64::MAX);

    /// The time that has come when somebody has waited for it once.
    pub(crate) fn soon() -> Self {
        Self(NOW.get() + 1)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(loom::sync::Mutex::new(value))
    }
}

pub(crate) struct MutexGuard<'a, T> {
    mutex: &'a Mutex<T>,
    held: LoomGuard<'a, T>,
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.held
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.held
    }
}

pub(crate) type Condvar = loom::sync::Condvar;

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    let held = mutex.0.lock().unwrap();
    MutexGuard { mutex, held }
}

/// Whoever waits for a time is not notified before it: to others that is a lock that was let go and taken again.
pub(crate) fn wait_until<'a, T>(
    condvar: &Condvar,
    guard: MutexGuard<'a, T>,
    deadline: Instant,
) -> Option<MutexGuard<'a, T>> {
    let MutexGuard { mutex, held } = guard;
    if deadline == Instant::NEVER {
        let held = condvar.wait(held).unwrap();
        return Some(MutexGuard { mutex, held });
    }
    if deadline.0 <= NOW.get() {
        return None;
    }
    drop(held);
    loom::thread::yield_now();
    NOW.set(deadline.0);
    Some(lock(mutex))
}
