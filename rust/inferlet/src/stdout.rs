//! What the program prints.

use std::io::Write;

/// Sends what was printed without a line's end: output is never held back while the program sleeps, or when it ends.
pub(crate) fn flush_output() {
    // Where stdout is closed there is nobody to send to.
    drop(std::io::stdout().flush());
}
