//! When the program began. Below everything: QuickJS asks while the bindings are not to be called yet.

use std::cell::Cell;

thread_local! {
    /// In nanoseconds of the monotonic clock; none while the component is built.
    static BEGAN: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Notes that the program begins.
pub(crate) fn begin(now: u64) {
    BEGAN.set(Some(now));
}

/// When the program began; none while the component is built.
pub(crate) fn began() -> Option<u64> {
    BEGAN.get()
}
