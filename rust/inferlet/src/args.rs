//! The launch arguments: what was typed after `--`.

use std::ffi::OsString;

/// A parser of argument lists, re-exported from `pico-args`.
pub use pico_args::Arguments;

/// The launch arguments as they were typed, unparsed.
pub fn args() -> Vec<String> {
    crate::bindings::pie::core::runtime::args()
}

/// A parser over raw arguments.
///
/// ```
/// let mut args = inferlet::parse_args(["--n", "4", "poem"]);
/// assert_eq!(args.value_from_str::<_, u32>("--n")?, 4);
/// assert_eq!(args.free_from_str::<String>()?, "poem");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn parse_args<A: Into<OsString>>(raw: impl IntoIterator<Item = A>) -> Arguments {
    Arguments::from_vec(raw.into_iter().map(Into::into).collect())
}
