//! Locking that still works after a panic of another holder.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks `mutex`. A panic of another holder was reported where it happened, and the value is used as it stands, so that
/// one fault does not become an outage.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
