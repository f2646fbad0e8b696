//! The time of day.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Seconds since 1970.
pub(crate) fn now_s() -> f64 {
    since_1970().as_secs_f64()
}

/// Whole seconds since 1970.
pub(crate) fn now() -> u64 {
    since_1970().as_secs()
}

fn since_1970() -> Duration {
    // A clock that stands before 1970 counts as one that stands there.
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}
