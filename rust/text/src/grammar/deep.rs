//! Work that recurs as deeply as a grammar does.
//!
//! The engine compiles a rule within the one that names it first, so that a chain of rules is as deep. Rules and the
//! groups in them are bounded; what they recur to at most has room on a stack of its own.

use std::thread::{Builder, scope};

use crate::caught::caught;

/// Bytes of the stack. What 10,000 rules in each other take is a tenth of it. It is memory only as far as it is used.
const STACK_BYTES: usize = 256 << 20;

/// What `work` returns; none where it panicked, or there is no thread for it. See [`caught`].
pub(super) fn with_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    scope(|scope| {
        let thread = Builder::new()
            .name("grammar".to_owned())
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, || caught(work));
        thread.ok()?.join().ok().flatten()
    })
}
