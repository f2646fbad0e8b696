//! Locking that still works after a panic of another holder, and waiting.
//!
//! `model/inbox.rs` and `bus/topics.rs` synchronise by nothing but this file, so that `rust/interleavings` can put a
//! model checker in its place.

use std::sync::PoisonError;
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
pub(crate) use std::time::Instant;

/// Locks `mutex`. A panic elsewhere is a fault that is reported where it happened; poisoning every later caller would
/// turn it into an outage, so the value is used as it stands.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits to be notified, until `deadline` at most; that may also be for nothing, so look again. None: the deadline has
/// passed.
pub(crate) fn wait_until<'a, T>(
    condvar: &Condvar,
    guard: MutexGuard<'a, T>,
    deadline: Instant,
) -> Option<MutexGuard<'a, T>> {
    let left = deadline.checked_duration_since(Instant::now());
    let left = left.filter(|left| !left.is_zero())?;
    let waited = condvar.wait_timeout(guard, left);
    Some(waited.unwrap_or_else(PoisonError::into_inner).0)
}
