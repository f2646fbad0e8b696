//! Beside the files of a program, which it reads and writes by `std::fs`: why the engine refused something.

use crate::bindings::pie::core::files as raw;

/// Why the engine last refused a call on files, as `[code] message`; none where it has refused nothing.
///
/// An error of `std::io` has no more than a number. The codes are `limit-files` where `/scratch` is full or a path
/// is too long, `files-off` where there is no folder, `limit-resources` where too many files are open, and
/// `files-stalled` where the disk does not answer; the message names the limit.
///
/// ```no_run
/// # fn keep() -> inferlet::Result<()> {
/// std::fs::write("/scratch/notes.txt", "kept for the next run")
///     .map_err(|error| inferlet::files::refusal().unwrap_or_else(|| error.to_string()))
/// # }
/// ```
pub fn refusal() -> Option<String> {
    raw::check().err().map(String::from)
}
